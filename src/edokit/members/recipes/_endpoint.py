"""Client of OpenAI-compatible chat endpoints: parallel requests, cached answers, counted costs.

The key comes from the environment and goes into one header. Texts are in requests alone: answers
are cached under a digest of their request, and errors quote nothing that was sent.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import KW_ONLY, astuple, dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AliasPath, BaseModel, Field, OnErrorOmit

from edokit._errors import InputError, counted, is_loopback, missing_extra, option
from edokit._io.atomic import whole_file
from edokit._io.digests import digest_json
from edokit.members.contexts import Text
from edokit.members.pretrained import cache_folder
from edokit.members.spending import Budget, current_session

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_RETRIED = (408, 409, 425, 429)  # besides 5xx: what may be better the next time
_REFUSED = (400, 413, 422)
_PATH = "/chat/completions"
_LONGEST_WAIT = 300.0  # seconds; a longer Retry-After is an error
_CONNECTION_RETRIES = 2  # where nothing listens, the address is probably wrong
_MOST_BYTES = 1 << 26  # of a response; an answer with all its log-probabilities has a few million
_MOST_POSITIONS = 16  # tokens of an answer that are kept: a label is named by the first few


@dataclass(frozen=True)
class Request:
    """The body of a request, the number of the sample where it is sent several times, and the text.

    The text is that which the request asks about; errors name its item.
    """

    body: Mapping[str, Any]
    draw: int = 0
    text: Text = ""

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


_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?P<port>:\d{1,5})?(?P<path>/[!-~]*)?",
    re.IGNORECASE,
)


def check_address(base_url: str) -> str:
    """Normalise the URL of an endpoint; one with credentials is refused without quoting it."""
    if re.search(r"[@?#]", base_url):
        raise InputError(
            f"{option('base_url')} has credentials or query parameters, which would be written to"
            " files",
            f"remove them, and set the key in the environment: {KEY}",
        )
    parts = _URL.fullmatch(base_url.strip())
    if parts is None:
        raise InputError(
            f"{option('base_url')} is not a valid URL", "use the form http://localhost:8000/v1"
        )
    path = (parts["path"] or "").rstrip("/").removesuffix(_PATH)
    return f"{parts['scheme']}://{parts['host']}{parts['port'] or ''}".lower() + path


def _is_local(base_url: str) -> bool:
    return is_loopback(urlsplit(base_url).hostname)


def refuse_address(where: str, base_url: str, trust: Collection[str] | None) -> None:
    """Refuse an endpoint that a file names, unless it is on this machine or trusted by the user.

    Users trust an endpoint by the environment or by ``trust``; None if there is no such option.
    """
    base_url = check_address(base_url)
    addresses = [os.environ.get(ADDRESS, ""), *(name for name in trust or () if "://" in name)]
    if _is_local(base_url) or base_url in map(check_address, filter(None, addresses)):
        return
    permission = option("base_url" if trust is None else "trust", base_url)
    raise InputError(
        f"{where} would send texts, and your key, to {base_url}; a file can't ask for that",
        f"if you trust it, name it yourself: {permission}, or {ADDRESS} in the environment",
    )


class AnswerCache:
    """Answers by the digest of their request, a file each, whole before the next is awaited.

    Several processes may write, and what a killed one had written stays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)  # a model may repeat what it was asked
        except OSError as error:
            raise InputError(
                f"{folder}, where answers are cached so that none is paid for twice, can't be used:"
                f" {error}",
                "name another folder in EDO_CACHE",
            ) from error

    def get(self, key: str) -> Answer | None:
        """The answer to a request; None if there is none, or a damaged one."""
        with suppress(OSError, ValueError, TypeError):
            return Answer(*json.loads((self.folder / f"{key}.json").read_bytes()))
        return None

    def put(self, key: str, answer: Answer) -> None:
        """Write an answer."""
        with whole_file(self.folder / f"{key}.json") as path:
            path.write_text(json.dumps(astuple(answer)), encoding="utf-8")


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
        return digest_json(parts)

    def ask(
        self, requests: Sequence[Request], report: Callable[[int], None] | None = None
    ) -> list[Answer]:
        """The answers, in order; cached ones are not asked for again.

        A request that fails for good ends all of them; the answers that came are cached.
        """
        cache = AnswerCache(cache_folder() / "answers")
        keys = [self.key(request) for request in requests]
        stored = {key: cache.get(key) for key in keys}
        answers = {key: answer for key, answer in stored.items() if answer is not None}
        keyed = zip(keys, requests, strict=True)
        waiting = {key: request for key, request in keyed if key not in answers}
        for key, answer in self._send(waiting, cache) if waiting else ():
            answers[key] = answer
            if report is not None:
                report(len(answers))
        return [answers[key] for key in keys]

    def _send(
        self, waiting: Mapping[str, Request], cache: AnswerCache
    ) -> Iterator[tuple[str, Answer]]:
        """Answers with their keys as they come, once they are cached."""
        budget, place = current_session().budget, current_session().place
        stop = threading.Event()
        if budget.limit is not None and self.prices is None:
            raise InputError(
                f"{option('budget')} needs prices, but what this server's tokens cost is not known",
                "pass price_in and price_out, per million tokens, as options of the recipe",
            )
        client = self._client()

        def send(key: str) -> Answer:
            request, cost = waiting[key], None
            size = len(request.content)
            budget.reserve(size)
            try:
                answer = self._post(client, request, stop, budget)
                cost = self.cost(answer.tokens_in, answer.tokens_out)
            except RefusedError as error:
                name = place(request.text) if place is not None else "a text"
                raise RefusedError(
                    f"{name}: {error.message}",
                    f"shorten it, leave it out or choose a model that takes it; else {error.hint}",
                ) from error
            finally:
                budget.settle(size, cost)
            # Before the next request of this thread: a killed run has lost no other answer.
            cache.put(key, answer)
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

    def _client(self) -> Any:
        try:
            import httpx
        except ImportError as error:
            raise missing_extra(
                f"asking a server needs httpx, but it can't be imported: {error}", "llm"
            ) from error
        key = os.environ.get(KEY, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{KEY} has characters that no key can have", "copy the key again")
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        return httpx.Client(
            headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=self.timeout,
            limits=httpx.Limits(max_connections=self.concurrency),
            # A proxy of the environment can't reach what is on this machine.
            trust_env=not _is_local(self.base_url),
        )

    def _post(self, client: Any, request: Request, stop: threading.Event, budget: Budget) -> Answer:
        """The answer to a request, which is repeated while that may help."""
        for attempt in range(self.retries + 1):
            try:
                return self._attempt(client, request)
            except _TemporaryError as error:
                problem = error
                if problem.is_lost:
                    budget.count_lost(len(request.content))
            pause = problem.pause
            if pause is None:
                pause = min(60.0, 2.0**attempt) * random.uniform(0.5, 1.0)
            is_final = attempt >= min(self.retries, problem.retries) or pause > _LONGEST_WAIT
            if is_final or stop.wait(pause):
                break
        raise InputError(
            f"{self.base_url} {problem.reason} after {counted(attempt + 1, 'attempt')}; the answers"
            " so far are cached",
            f"{problem.hint}; the same command then resumes from there",
        )

    def _attempt(self, client: Any, request: Request) -> Answer:
        """Send a request once; what may be better the next time is a `_TemporaryError`."""
        import httpx

        try:
            response, content = self._receive(client, request)
        except (httpx.RequestError, httpx.InvalidURL) as error:
            never_listened = isinstance(error, httpx.ConnectError | httpx.InvalidURL)
            raise _TemporaryError(
                f"can't be reached, or does not answer in {self.timeout:g} s"
                f" ({type(error).__name__})",
                f"start the server, correct {option('base_url')} or raise the option timeout",
                retries=_CONNECTION_RETRIES if never_listened else self.retries,
                is_lost=isinstance(error, httpx.TimeoutException),
            ) from None
        if response.status_code != 200:
            raise self._error(response.status_code, response.headers.get("retry-after"), request)
        try:
            return read_answer(content)
        except (ValueError, RecursionError):
            raise _TemporaryError(
                "returned something other than a chat completion, or absurd counts of tokens",
                f"check {option('base_url')}: most end in /v1",
            ) from None

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

    def _error(self, status: int, retry_after: str | None, request: Request) -> Exception:
        """The error for a status.

        Nothing else that the server says is shown: it may repeat a text, or the key.
        """
        if status in _RETRIED or status >= 500:
            hint = "lower the option concurrency, check your quota, or try again later"
            pause = _retry_after(retry_after)
            return _TemporaryError(f"returned status {status}", hint, pause=pause)
        if status in _REFUSED:
            hint = "correct the options model, max_tokens, temperature or extra"
            return RefusedError(f"{self.base_url} refuses the request (status {status})", hint)
        problem = f"returned status {status} for the model {request.body['model']!r}"
        hint = f"check the option model and {option('base_url')}: most addresses end in /v1"
        if status in (401, 403):
            problem = f"does not accept the key in {KEY}, which may be empty (status {status})"
            hint = f"put a key for this server into the environment: export {KEY}=…"
        return InputError(f"{self.base_url} {problem}", hint)


class _TemporaryError(Exception):
    """What went wrong, but may be better the next time.

    ``is_lost``: the server may have answered, and count it, but no answer arrived.
    """

    def __init__(
        self,
        reason: str,
        hint: str,
        *,
        pause: float | None = None,
        retries: int = 1000,
        is_lost: bool = False,
    ) -> None:
        self.reason, self.hint, self.pause, self.retries = reason, hint, pause, retries
        self.is_lost = is_lost


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
    logprobs: list[OnErrorOmit[_Position]] | None = Field(
        None, validation_alias=AliasPath("choices", 0, "logprobs", "content")
    )
    tokens_in: _TokenCount = Field(None, validation_alias=AliasPath("usage", "prompt_tokens"))
    tokens_out: _TokenCount = Field(None, validation_alias=AliasPath("usage", "completion_tokens"))


def read_answer(content: bytes) -> Answer:
    """An answer from a chat completion; anything else is a ValueError."""
    # Half a character, which a cut answer may end with, becomes a question mark.
    text = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
    completion = _Completion.model_validate_json(text)
    tokens = [
        [[token.token, token.logprob] for token in (position, *position.top_logprobs)]
        for position in (completion.logprobs or [])[:_MOST_POSITIONS]
    ]
    # Without alternatives, a token is listed beside itself alone.
    has_alternatives = any(len(alternatives) > 2 for alternatives in tokens)
    counts = completion.tokens_in or 0, completion.tokens_out or 0
    return Answer(completion.message.content or "", tokens if has_alternatives else None, *counts)


def _retry_after(seconds: str | None) -> float | None:
    """Seconds to wait; None where a server names no number."""
    is_number = seconds is not None and re.fullmatch(r"\d{1,9}(\.\d{1,9})?", seconds)
    return float(seconds or 0) if is_number else None
