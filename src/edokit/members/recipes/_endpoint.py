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
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import KW_ONLY, astuple, dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from edokit._errors import InputError, MissingExtraError, counted, is_loopback, option
from edokit.members.pretrained import cache_folder

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_RETRIED = (408, 409, 425, 429)  # besides 5xx: what may be better the next time
_REFUSED = (400, 413, 422)
_PATH = "/chat/completions"
_LONGEST_WAIT = 300.0  # seconds; a longer Retry-After is an error
_CONNECTION_RETRIES = 2  # where nothing listens, the address is probably wrong
_MOST_BYTES = 1 << 26  # of a response; an answer with all its log-probabilities has a few million
_LONGEST_MESSAGE = 200  # characters of a server's message that are shown
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
def session(
    *,
    budget: float | None = None,
    dry: bool = False,
    place: Callable[[Any], str] | None = None,
) -> Iterator[Session]:
    """Requests inside share this budget; in a dry run none is sent."""
    if budget is not None and not budget >= 0:
        raise InputError(f"{option('budget')} is {budget}, but must be at least 0")
    outer = _SESSION.get()
    opened = Session(budget, dry, place=place)
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
    if re.search(r"[@?#]", base_url):
        raise InputError(
            f"{option('base_url')} has credentials or query parameters, which would be written to"
            " files",
            f"remove them, and set the key in the environment: {KEY}",
        )
    host = None
    with suppress(ValueError):  # no port, or brackets without an address
        parts = urlsplit(base_url.strip())
        host, _ = parts.hostname, parts.port
    is_plain = re.fullmatch(r"https?://[\w.:\[\]-]+(/[!-~]*)?", base_url.strip(), re.IGNORECASE)
    if not host or not is_plain:
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
        except (OSError, sqlite3.Error, ValueError) as error:
            raise InputError(
                f"{self.path}, where answers are cached so that none is paid for twice, can't"
                f" be used: {error}",
                "name another folder in EDO_CACHE, or remove the file if it is damaged",
            ) from error


@dataclass
class Endpoint:
    """A server by its address, with prices per million tokens where they are known."""

    base_url: str
    _: KW_ONLY
    timeout: float = 60.0
    retries: int = 5
    concurrency: int = 8
    prices: tuple[float, float] | None = None

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """The cost of tokens, if prices are known."""
        if self.prices is None:
            return None
        return (tokens_in * self.prices[0] + tokens_out * self.prices[1]) / 1e6

    def key(self, request: Request) -> str:
        """A digest of everything that determines the answer."""
        parts = [self.base_url, dict(request.body), request.draw]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

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
            request, cost = waiting[key], None
            size = len(request.content)
            expected = limits.reserve(size)
            try:
                answer = self._post(client, request, stop)
                cost = self.cost(answer.tokens_in, answer.tokens_out)
            except RefusedError as error:
                error.request = request
                raise
            finally:
                limits.settle(size, expected, cost)
            # Before the next request of this thread: a killed run has lost no other answer.
            cache.put(key, astuple(answer))
            return answer

        pool = ThreadPoolExecutor(self.concurrency, "edo-llm")
        try:
            futures = {pool.submit(send, key): key for key in waiting}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except InputError:
            # Requests under way are not tried again, but may be paid for already.
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            stop.set()
            client.close()
            pool.shutdown(cancel_futures=True)

    def _post(self, client: Any, request: Request, stop: threading.Event) -> Answer:
        """The answer to a request, which is repeated while that may help."""
        for attempt in range(self.retries + 1):
            try:
                return self._attempt(client, request)
            except _TemporaryError as error:
                problem = error
            pause = problem.pause
            if pause is None:
                pause = min(60.0, 2.0**attempt) * random.uniform(0.5, 1.0)
            is_final = attempt >= min(self.retries, problem.retries) or pause > _LONGEST_WAIT
            if is_final or stop.wait(pause):
                break
        attempts = counted(attempt + 1, "attempt")
        raise InputError(
            f"{self.base_url} {problem.reason} after {attempts}; the answers so far are cached",
            f"{problem.hint}; the same command then resumes from there",
        )

    def _attempt(self, client: Any, request: Request) -> Answer:
        """Send a request once; what may be better the next time is a `_TemporaryError`."""
        import httpx

        try:
            response, content = self._receive(client, request)
        except httpx.TimeoutException:
            raise _TemporaryError(
                f"did not respond within {self.timeout:g} s",
                "raise the option timeout, or lower concurrency",
            ) from None
        except httpx.RequestError as error:
            hint = f"start the server, or correct {option('base_url')}"
            refused = isinstance(error, httpx.ConnectError)
            problem = "can't be reached" if refused else "closed the connection"
            retries = _CONNECTION_RETRIES if refused else self.retries
            kind = type(error).__name__
            raise _TemporaryError(f"{problem} ({kind})", hint, retries=retries) from None
        status = response.status_code
        if status == 200:
            try:
                return read_answer(content)
            except (ValueError, RecursionError):
                raise _TemporaryError(
                    "returned something other than a chat completion, or absurd counts of tokens",
                    f"check {option('base_url')}: most end in /v1",
                ) from None
        self._refuse(status, content, request)
        hint = "lower the option concurrency, or try again later"
        raise _TemporaryError(
            f"returned status {status}",
            hint if status == 429 else "try again later",
            pause=_retry_after(response.headers.get("retry-after")),
        )

    def _receive(self, client: Any, request: Request) -> tuple[Any, bytes]:
        """The response to a request, cut off where it is too large or takes too long."""
        import httpx

        content, deadline = bytearray(), time.monotonic() + self.timeout
        # As JSON in ASCII: half a character, which a text may hold, is escaped.
        url, body = self.base_url + _PATH, request.content
        with client.stream("POST", url, content=body) as response:
            # As it is sent: a packed response, which nobody asked for, is not unpacked.
            for chunk in response.iter_raw():
                content += chunk
                if len(content) > _MOST_BYTES:
                    problem = f"sent more than {_MOST_BYTES >> 20} MiB for an answer"
                    raise _TemporaryError(problem, "lower the option max_tokens")
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the response never ends")
        return response, bytes(content)

    def _refuse(self, status: int, content: bytes, request: Request) -> None:
        """Raise an error for a status that no repetition changes."""
        code, message = _error_of(content, request)
        server, details = self.base_url, f" ({message})" if message else ""
        has_quota = code != "insufficient_quota"
        if (status in _RETRIED and has_quota) or (status >= 500 and status != 501):
            return  # 501: it never can
        hint = f"check the option model and {option('base_url')}: most addresses end in /v1"
        problem = f"returned status {status}{details}"
        if status == 429:
            problem, hint = "reports that your quota is exhausted (status 429)", "raise it there"
        elif status in (401, 403):
            key = f"the key in {KEY}" if os.environ.get(KEY) else f"no key; {KEY} is empty"
            problem = f"refuses {key} (status {status})"
            hint = f"put a key for this server into the environment: export {KEY}=…"
        elif status == 404:
            model = request.body.get("model")
            problem = f"has no model {model!r}, or no API at this address (status 404){details}"
        elif status in _REFUSED:
            raise RefusedError(
                f"{server} refuses the request (status {status}){details}",
                "correct the options model, max_tokens, temperature or extra",
            )
        raise InputError(f"{server} {problem}", hint)


class _TemporaryError(Exception):
    """What went wrong, but may be better the next time."""

    def __init__(
        self, reason: str, hint: str, *, pause: float | None = None, retries: int = 1000
    ) -> None:
        self.reason, self.hint, self.pause, self.retries = reason, hint, pause, retries


def _answer_cache() -> AbstractContextManager[AnswerCache]:
    return closing(AnswerCache(cache_folder() / "answers"))


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
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        },
        timeout=httpx.Timeout(timeout),
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        # A proxy of the environment can't reach what is on this machine.
        trust_env=not is_loopback(urlsplit(base_url).hostname),
    )


class _Token(BaseModel):
    token: str
    logprob: float


class _Position(_Token):
    top_logprobs: list[_Token]


class _Message(BaseModel):
    content: str | None = None


_TokenCount = Annotated[int | None, Field(ge=0, le=10**9)]


class _Completion(BaseModel):
    """The parts of a chat completion that count."""

    message: _Message = Field(validation_alias=AliasPath("choices", 0, "message"))
    logprobs: Any = Field(None, validation_alias=AliasPath("choices", 0, "logprobs", "content"))
    tokens_in: _TokenCount = Field(None, validation_alias=AliasPath("usage", "prompt_tokens"))
    tokens_out: _TokenCount = Field(None, validation_alias=AliasPath("usage", "completion_tokens"))


def read_answer(content: bytes) -> Answer:
    """An answer from a chat completion; anything else is a ValueError."""
    # Half a character, which a cut answer may end with, becomes a question mark.
    text = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
    completion = _Completion.model_validate_json(text)
    return Answer(
        completion.message.content or "",
        read_logprobs(completion.logprobs),
        completion.tokens_in or 0,
        completion.tokens_out or 0,
    )


def read_logprobs(logprobs: Any) -> list[list[list[Any]]] | None:
    """Each token with its alternatives; None where a server does not return any."""
    try:
        positions = TypeAdapter(list[_Position]).validate_python(logprobs)
    except ValidationError:
        return None
    tokens = [
        [[token.token, token.logprob] for token in (position, *position.top_logprobs)]
        for position in positions[:_MOST_POSITIONS]
    ]
    # Without alternatives, a token is listed beside itself alone.
    return tokens if any(len(alternatives) > 2 for alternatives in tokens) else None


def _retry_after(seconds: str | None) -> float | None:
    with suppress(TypeError, ValueError):
        return max(0.0, float(seconds))  # type: ignore[arg-type]
    return None


def _error_of(content: bytes, request: Request) -> tuple[str, str]:
    """Code and message of an error; no message that is long, or repeats what was sent or a key."""
    try:
        error = json.loads(content)
        error = error.get("error") or error
        code, message = str(error.get("code")), " ".join(str(error.get("message") or "").split())
    except (ValueError, AttributeError, RecursionError):
        return "", ""
    lines = "\n".join(str(m["content"]) for m in request.body["messages"]).splitlines()
    sent = " ".join(" ".join(lines).split())
    pieces = (message[i : i + _QUOTED] for i in range(max(1, len(message) - _QUOTED + 1)))
    secrets = [line.strip() for line in lines if len(line.strip()) > 2]
    secrets += filter(None, [os.environ.get(KEY, "").strip()[:8]])
    quotes = any(secret in message for secret in secrets) or any(piece in sent for piece in pieces)
    is_plain = message.isprintable() and len(message) <= _LONGEST_MESSAGE
    return code, message if is_plain and not quotes else ""
