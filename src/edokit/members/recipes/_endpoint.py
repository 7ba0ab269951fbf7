"""Client of OpenAI-compatible chat endpoints: parallel requests, cached answers, counted costs.

The key comes from the environment and goes into one header. Texts are in requests alone: answers
are cached under a digest of their request, and errors quote nothing that was sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from edokit._errors import InputError, MissingExtraError, counted, is_loopback, option, printable
from edokit.members.pretrained import cache_folder

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_RETRIED = (408, 409, 425, 429)  # besides 5xx: what may be better the next time
_REFUSED = (400, 413, 422)
_PATH = "/chat/completions"
_LONGEST_WAIT = 300.0  # seconds; a longer Retry-After is an error
_FIRST_CONTACT = 2  # retries while a server has never responded: its address is probably wrong
_MOST_POSITIONS = 16  # tokens of an answer that are kept: a label is named by the first few
_QUOTED = 16  # a server's message that repeats so many characters of the request is not shown


@dataclass(frozen=True)
class Request:
    """The body of a request, and the number of the sample where it is sent several times."""

    body: Mapping[str, Any]
    draw: int = 0

    @property
    def content(self) -> str:
        """All that is sent, as one text."""
        return json.dumps(self.body, sort_keys=True)


@dataclass(frozen=True)
class Answer:
    """The answer of a model.

    ``logprobs`` has [token, log-probability] of each token, followed by those of alternatives.
    """

    text: str
    logprobs: list[list[list[Any]]] | None
    tokens_in: int = 0
    tokens_out: int = 0


class RefusedError(InputError):
    """The server understood a request, and does not accept it."""

    request: Request | None = None


class BudgetError(InputError):
    """The next request may cost more than is left."""


@dataclass
class Session:
    """What all requests of one command share: a budget, and whether any is sent.

    Attributes
    ----------
    budget : float or None
        What requests may cost.
    dry : bool
        Whether nothing is sent.
    member : str
        The member whose requests are sent.
    report : callable
        Called with the member and its progress.
    place : callable
        Names the item of a text that is asked about.
    reached : set of str
        Endpoints that have responded.
    previews : list of dict
        Of a dry run: what each member would ask.
    spent : float
        What requests cost so far.
    """

    budget: float | None = None
    dry: bool = False
    member: str = ""
    report: Callable[[str], None] | None = None
    place: Callable[[Any], str] | None = None
    reached: set[str] = field(default_factory=set)
    previews: list[dict[str, Any]] = field(default_factory=list)
    spent: float = 0.0
    _rate: float | None = None  # highest cost so far per character of a request
    _reserved: float = 0.0
    _running: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def preview(self, counts: Mapping[str, Any], **about: Any) -> None:
        """Add what a member would ask to what it would have asked before."""
        if not self.previews or self.previews[-1]["member"] != self.member:
            self.previews.append({"member": self.member, **about, **counts})
            return
        total = self.previews[-1]
        total |= {key: None if new is None else total[key] + new for key, new in counts.items()}

    def reserve(self, size: int) -> float:
        """Wait until a request of this size fits into the budget, or refuse it."""
        with self._changed:
            while self.budget is not None:
                # The cost of the first request is not known, so it runs alone.
                expected = (self._rate or 0.0) * size
                unknown = self._rate is None and self._running > 0
                remaining = self.budget - self.spent - self._reserved
                if not unknown and remaining > 0 and expected <= remaining:
                    break
                if not self._running:
                    raise BudgetError(
                        f"the budget of {self.budget:g} does not cover the next request;"
                        f" {self.spent:.4g} was spent on requests of this run, whose answers are"
                        " cached",
                        f"run the same command with a larger {option('budget')}: it resumes from"
                        " there",
                    )
                self._changed.wait()
            expected = (self._rate or 0.0) * size
            self._running, self._reserved = self._running + 1, self._reserved + expected
            return expected

    def settle(self, size: int, expected: float, cost: float | None) -> None:
        """Record the cost of a finished request; None if it failed."""
        with self._changed:
            self._running, self._reserved = self._running - 1, self._reserved - expected
            if cost is not None:
                self.spent += cost
                self._rate = max(self._rate or 0.0, cost / max(size, 1))
            self._changed.notify_all()


_SESSION: ContextVar[Session | None] = ContextVar("session", default=None)


@contextmanager
def session(*, budget: float | None = None, dry: bool = False) -> Iterator[Session]:
    """Requests inside share this budget; in a dry run none is sent."""
    if budget is not None and not budget >= 0:
        raise InputError(f"{option('budget')} is {budget}, but must be at least 0")
    outer = _SESSION.get()
    opened = Session(budget, dry)
    if outer is not None and outer.dry:
        opened.dry, opened.previews = True, outer.previews
    token = _SESSION.set(opened)
    try:
        yield opened
    finally:
        _SESSION.reset(token)


def current_session() -> Session:
    """The session that is open, or one without limits."""
    return _SESSION.get() or Session()


def check_address(base_url: str) -> str:
    """Normalise the URL of an endpoint; one with credentials is refused without quoting it."""
    parts = urlsplit(base_url.strip())
    host = None
    with suppress(ValueError):
        host, _ = parts.hostname, parts.port
    if parts.username or parts.password or "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"{option('base_url')} has credentials or query parameters, which would be written to"
            " files",
            f"remove them, and set the key in the environment: {KEY}",
        )
    odd = re.search(r"[^\w.:\[\]-]", parts.netloc) or not base_url.isprintable()
    if parts.scheme not in ("http", "https") or not host or odd:
        raise InputError(
            f"{option('base_url')} is not a valid URL", "use the form http://localhost:8000/v1"
        )
    path = parts.path.rstrip("/").removesuffix(_PATH)
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def refuse_address(where: str, base_url: str, trust: Collection[str] | None) -> None:
    """Refuse an endpoint that a file names, unless it is on this machine or trusted by the user.

    Users trust an endpoint by the environment or by ``trust``; None if there is no such option.
    """
    base_url = check_address(base_url)
    addresses = [os.environ.get(ADDRESS, ""), *(name for name in trust or () if "://" in name)]
    allowed = [check_address(address) for address in addresses if address]
    if is_loopback(urlsplit(base_url).hostname) or base_url in allowed:
        return
    permission = option("base_url" if trust is None else "trust", base_url)
    raise InputError(
        f"{where} would send texts, and your key, to {base_url}; a file can't ask for that",
        f"if you trust it, name it yourself: {permission}, or {ADDRESS} in the environment",
    )


class AnswerCache:
    """Answers by the digest of their request, each on disk before the next is awaited.

    SQLite lets several processes write, and keeps what a killed process had written.
    """

    def __init__(self, folder: Path) -> None:
        import sqlite3  # not every Python has it, and only answers need it

        self._broken = (OSError, sqlite3.Error, ValueError)
        self.path = folder / "answers.sqlite3"
        self._lock = threading.Lock()
        with self._errors():
            folder.mkdir(parents=True, exist_ok=True)
            # A model may repeat what it was asked: answers are for their owner alone.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._file = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)"
            )
            self._file.commit()

    def get(self, key: str) -> Any:
        """The value of a key; None if there is none."""
        with self._lock, self._errors():
            row = self._file.execute("SELECT answer FROM answers WHERE key = ?", [key]).fetchone()
            return None if row is None else json.loads(row[0])

    def put(self, key: str, answer: Any) -> None:
        """Write plain values under a key."""
        with self._lock, self._errors(), self._file:
            self._file.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?)", [key, json.dumps(answer)]
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._broken as error:
            raise InputError(
                f"{self.path}, where answers are cached so that none is paid for twice, can't"
                f" be used: {error}",
                "name another folder in EDO_CACHE, or remove the file if it is damaged",
            ) from error


class Endpoint:
    """A server by its address, with prices per million tokens where they are known."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float = 60.0,
        retries: int = 5,
        concurrency: int = 8,
        prices: tuple[float, float] | None = None,
    ) -> None:
        self.base_url = base_url
        self.timeout, self.retries, self.concurrency = timeout, retries, concurrency
        self.prices = prices
        self._resume_at = 0.0  # on the monotonic clock, when the server asked to wait

    def cost(self, answer: Answer) -> float | None:
        """The cost of an answer, if prices are known."""
        if self.prices is None:
            return None
        return (answer.tokens_in * self.prices[0] + answer.tokens_out * self.prices[1]) / 1e6

    def key(self, request: Request) -> str:
        """A digest of everything that determines the answer."""
        return _digest([self.base_url, dict(request.body), request.draw])

    def fact(self, name: str, value: Any = None) -> Any:
        """A fact about the server that was learned before; with a value, it is written."""
        key = _digest([self.base_url, name])
        with _answer_cache() as cache:
            if value is not None:
                cache.put(key, value)
            return cache.get(key)

    def cached(self, requests: Sequence[Request]) -> int:
        """How many of these distinct requests have been answered before."""
        with _answer_cache() as cache:
            return sum(cache.get(key) is not None for key in set(map(self.key, requests)))

    def ask(
        self, requests: Sequence[Request], report: Callable[[int], None] | None = None
    ) -> list[Answer]:
        """The answers, in order; cached ones are not asked for again.

        A request that fails for good ends all of them; the answers that came are cached.
        """
        keys = [self.key(request) for request in requests]
        waiting = dict(zip(keys, requests, strict=True))
        answers: dict[str, Answer] = {}
        with _answer_cache() as cache:
            for key in list(waiting):
                if (cached := cache.get(key)) is not None:
                    answers[key] = Answer(*cached)
                    del waiting[key]
            for key, answer in self._ask(waiting, cache):
                answers[key] = answer
                if report is not None:
                    report(len(answers))
        return [answers[key] for key in keys]

    def _ask(
        self, waiting: Mapping[str, Request], cache: AnswerCache
    ) -> Iterator[tuple[str, Answer]]:
        """Answers with their keys as they come, once they are cached."""
        if not waiting:
            return
        limits, stop = current_session(), threading.Event()
        if limits.budget is not None and self.prices is None:
            raise InputError(
                f"{option('budget')} needs prices, but what this server's tokens cost is not known",
                "pass price_in and price_out, per million tokens, as options of the recipe",
            )
        client = _client(self.timeout, self.concurrency, self.base_url)

        def send(key: str) -> Answer:
            answer = self._send_within_budget(client, waiting[key], limits, stop)
            # Before the next request of this thread: a killed run has lost no other answer.
            cache.put(key, astuple(answer))
            return answer

        pool = ThreadPoolExecutor(self.concurrency, "edo-llm")
        failure: Any = None
        try:
            futures: dict[Future[Answer], str] = {pool.submit(send, key): key for key in waiting}
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                if future.exception() is None:
                    yield futures[future], future.result()
                elif failure is None:
                    failure = future.exception()
                    failure.request = waiting[futures[future]]
                    # Requests under way are not tried again, but may be paid for already.
                    stop.set()
                    for pending in futures:
                        pending.cancel()
            if failure is not None:
                raise failure
        finally:
            stop.set()
            client.close()
            pool.shutdown(cancel_futures=True)

    def _send_within_budget(
        self, client: Any, request: Request, limits: Session, stop: threading.Event
    ) -> Answer:
        size = len(request.content)
        expected, cost = limits.reserve(size), None
        try:
            answer = self._post(client, request, limits, stop)
            cost = self.cost(answer)
        finally:
            limits.settle(size, expected, cost)
        return answer

    def _post(
        self, client: Any, request: Request, limits: Session, stop: threading.Event
    ) -> Answer:
        """The answer to a request, which is repeated while that may help."""
        for attempt in range(self.retries + 1):
            while (seconds := self._resume_at - time.monotonic()) > 0 and not stop.is_set():
                stop.wait(seconds)
            try:
                return self._attempt(client, request, limits)
            except _TemporaryError as error:
                problem = error
            if attempt >= min(self.retries, problem.retries):
                break
            if problem.pause is None:
                stop.wait(min(60.0, 2.0**attempt) * random.uniform(0.5, 1.0))
            elif problem.pause <= _LONGEST_WAIT:
                self._resume_at = max(self._resume_at, time.monotonic() + problem.pause)
            else:
                problem.reason += f" and asked to wait {problem.pause:.0f} s"
                break
            if stop.is_set():
                break
        attempts = counted(attempt + 1, "attempt")
        raise InputError(
            f"{self.base_url} {problem.reason} after {attempts}; the answers so far are cached",
            f"{problem.hint}; the same command then resumes from there",
        )

    def _attempt(self, client: Any, request: Request, limits: Session) -> Answer:
        """Send a request once; what may be better the next time is a `_TemporaryError`."""
        import httpx

        try:
            # As JSON in ASCII: half a character, which a text may hold, is escaped.
            response = client.post(self.base_url + _PATH, content=request.content)
        except httpx.TimeoutException:
            raise _TemporaryError(
                f"did not respond within {self.timeout:g} s",
                "raise the option timeout, or lower concurrency",
            ) from None
        except httpx.RequestError as error:
            hint = f"start the server, or correct {option('base_url')}"
            kind = type(error).__name__
            if not isinstance(error, httpx.ConnectError):
                raise _TemporaryError(f"closed the connection ({kind})", hint) from None
            retries = self.retries if self.base_url in limits.reached else _FIRST_CONTACT
            raise _TemporaryError(f"can't be reached ({kind})", hint, retries=retries) from None
        limits.reached.add(self.base_url)
        status = response.status_code
        if status == 200:
            try:
                return read_answer(response.content)
            except (ValueError, RecursionError):
                kind = response.headers.get("content-type", "").partition(";")[0]
                raise _TemporaryError(
                    f"returned something other than a chat completion ({kind})",
                    f"check {option('base_url')}: most end in /v1",
                ) from None
        self._refuse(status, response.content, request)
        hint = "lower the option concurrency, or try again later"
        raise _TemporaryError(
            f"returned status {status}",
            hint if status == 429 else "try again later",
            pause=_retry_after(response.headers.get("retry-after")),
        )

    def _refuse(self, status: int, content: bytes, request: Request) -> None:
        """Raise an error for a status that no repetition changes."""
        code, message = _error_of(content, request)
        server, details = self.base_url, f" ({message})" if message else ""
        if status == 429 and code == "insufficient_quota":
            raise InputError(
                f"{server} reports that your quota is exhausted (status 429)",
                "raise it there; the same command then resumes from here",
            )
        if status in _RETRIED or (status >= 500 and status != 501):  # 501: it never can
            return
        if status in (401, 403):
            has_key = bool(os.environ.get(KEY, "").strip())
            refused = f"the key in {KEY}" if has_key else f"requests without a key; {KEY} is empty"
            raise InputError(
                f"{server} does not accept {refused} (status {status})",
                f"put a key for this server into the environment: export {KEY}=…",
            )
        if status in _REFUSED:
            raise RefusedError(
                f"{server} refuses the request (status {status}){details}",
                "correct the options model, max_tokens, temperature or extra",
            )
        missing = f" (no such model as {request.body.get('model')!r}, or no API at this address)"
        raise InputError(
            f"{server} returned status {status}{missing if status == 404 else ''}{details}",
            f"check the option model and {option('base_url')}: most addresses end in /v1",
        )


class _TemporaryError(Exception):
    """What went wrong, but may be better the next time."""

    def __init__(
        self, reason: str, hint: str, *, pause: float | None = None, retries: int = 1000
    ) -> None:
        self.reason, self.hint, self.pause, self.retries = reason, hint, pause, retries


@contextmanager
def _answer_cache() -> Iterator[AnswerCache]:
    cache = AnswerCache(cache_folder() / "answers")
    try:
        yield cache
    finally:
        cache.close()


def _client(timeout: float, connections: int, base_url: str) -> Any:
    try:
        import httpx
    except ImportError as error:
        raise MissingExtraError(
            f"asking a server needs httpx, but it can't be imported: {error}",
            'install it with: pip install "edokit[llm]"',
        ) from error
    key = os.environ.get(KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{KEY} has characters that no key can have", "copy the key again")
    return httpx.Client(
        headers={
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        },
        timeout=httpx.Timeout(timeout),
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        # A proxy of the environment can't reach what is on this machine.
        trust_env=not is_loopback(urlsplit(base_url).hostname),
    )


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Token(BaseModel):
    token: str
    logprob: float


class _Position(_Token):
    top_logprobs: list[_Token]


class _Logprobs(BaseModel):
    content: list[_Position]


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    logprobs: Any = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(BaseModel):
    """The parts of a chat completion that count."""

    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None


def read_answer(content: bytes) -> Answer:
    """An answer from a chat completion; anything else is a ValueError."""
    # Half a character, which a cut answer may end with, becomes a question mark.
    text = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
    completion = _Completion.model_validate_json(text)
    choice, usage = completion.choices[0], completion.usage or _Usage()
    return Answer(
        choice.message.content or "",
        read_logprobs(choice.logprobs),
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
    )


def read_logprobs(logprobs: Any) -> list[list[list[Any]]] | None:
    """Each token with its alternatives; None where a server does not return any."""
    try:
        positions = _Logprobs.model_validate(logprobs).content
    except ValidationError:
        return None
    tokens = [
        [[token.token, token.logprob] for token in (position, *position.top_logprobs)]
        for position in positions[:_MOST_POSITIONS]
    ]
    # Without alternatives, a token is listed beside itself alone.
    return tokens if any(len(alternatives) > 2 for alternatives in tokens) else None


def _retry_after(value: str | None) -> float | None:
    """Seconds, from a number of them or a date."""
    if value is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None


def _error_of(content: bytes, request: Request) -> tuple[str, str]:
    """Code and message of an error; no message that repeats what was sent, or a key."""
    code = message = ""
    with suppress(ValueError, AttributeError, TypeError, RecursionError):
        error = json.loads(content)
        error = error.get("error") or error
        code, message = str(error.get("code") or ""), str(error.get("message") or "")
    message = printable(" ".join(message.split()))[:300]
    key = os.environ.get(KEY, "").strip()
    lines = "\n".join(str(m["content"]) for m in request.body["messages"]).splitlines()
    sent = " ".join(" ".join(lines).split())
    pieces = (message[i : i + _QUOTED] for i in range(max(1, len(message) - _QUOTED + 1)))
    leaks = any(piece in sent for piece in pieces)
    leaks |= any(line.strip() in message for line in lines if len(line.strip()) > 2)
    return code, "" if leaks or (key and key[:8] in message) else message
