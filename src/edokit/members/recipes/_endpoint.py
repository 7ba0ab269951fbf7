"""Client of OpenAI-compatible endpoints: parallel requests, cached answers, counted costs.

The key comes from the environment and goes into one header. Texts are in requests alone: answers
are cached under a digest of their request, and errors quote nothing that was sent.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from edokit._errors import (
    InputError,
    counted,
    in_bytes,
    is_loopback,
    missing_extra,
    option,
    warn,
)
from edokit._io.digests import digest_json
from edokit.members.contexts import Text
from edokit.members.pretrained import cache_folder
from edokit.members.recipes._completions import AnswerCache, Completion, read_answer, without_key
from edokit.members.spending import (
    Budget,
    Prices,
    TokenEstimate,
    current_session,
    estimate_tokens,
    mean_tokens,
    utf8_length,
)

if TYPE_CHECKING:
    import httpx2
    from anyio.from_thread import BlockingPortal

# Variables of the environment: the key and the address of the server, and a permission.
KEY_VARIABLE = "OPENAI_API_KEY"
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
ALLOW_HTTP_VARIABLE = "EDO_ALLOW_HTTP"
# Status codes after which a request is sent again, besides 5xx, and those that refuse it.
_RETRIED = (408, 409, 425, 429)
_REFUSED = (400, 413, 422)
CHAT = "/chat/completions"
EMBEDDINGS = "/embeddings"
_LONGEST_WAIT = 300.0  # seconds; a longer Retry-After is an error
_CONNECTION_RETRIES = 2  # where nothing listens, the address is probably wrong
# Bytes of a response. An answer of a few words has a few thousand, each alternative to a token that
# a request asks for about a hundred.
_MOST_BYTES = 2**18
_ALTERNATIVE_BYTES = 256
_MOST_BYTES_WITH_ALTERNATIVES = 2**22
# Parameters that limit the tokens of an answer; the second is OpenAI's newer name.
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True)
class Request:
    """A request to an endpoint, for a chat completion or an embedding.

    Attributes
    ----------
    body : mapping
        The parameters of the request.
    draw : int
        Number of the sample, where the same body is sent several times.
    text : str or (str, str)
        The text that the request asks about; errors name its item.
    """

    body: Mapping[str, object]
    draw: int = 0
    text: Text = ""

    @property
    def content(self) -> str:
        """All that is sent, as JSON in ASCII: unpaired surrogates are escaped."""
        return json.dumps(self.body, sort_keys=True)

    @property
    def most_answer_tokens(self) -> int | None:
        """How many tokens the answer may have; None if the request does not say."""
        if "input" in self.body:
            return 0  # a vector has none
        limits = [self.body[name] for name in _LIMITS if name in self.body]
        numbers = [limit for limit in limits if isinstance(limit, int)]
        return max(numbers, default=None)

    @property
    def estimate(self) -> TokenEstimate:
        """How many tokens the request and its answer have, before a server has counted them."""
        messages = self.body.get("messages")
        contents = []
        if "input" in self.body:
            contents.append(str(self.body["input"]))
        if isinstance(messages, Sequence):
            for message in messages:
                if isinstance(message, Mapping):
                    contents.append(str(message.get("content") or ""))
        return estimate_tokens(contents, self.most_answer_tokens)

    @property
    def most_bytes(self) -> int:
        """Bytes that a response may have."""
        alternatives = self.body.get("top_logprobs")
        if not isinstance(alternatives, int):
            return _MOST_BYTES
        tokens = self.most_answer_tokens
        if tokens is None:
            return _MOST_BYTES_WITH_ALTERNATIVES
        size = _MOST_BYTES + tokens * (alternatives + 1) * _ALTERNATIVE_BYTES
        return min(size, _MOST_BYTES_WITH_ALTERNATIVES)


class RequestRefusedError(InputError):
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
            f"remove them, and set the key in the environment: {KEY_VARIABLE}",
            code="exposed-key",
        )
    parts = _URL.fullmatch(base_url.strip())
    if parts is None:
        raise InputError(
            f"{option('base_url')} is not a valid URL",
            "use the form http://localhost:8000/v1",
            code="invalid-address",
        )
    path = (parts["path"] or "").rstrip("/").removesuffix(CHAT).removesuffix(EMBEDDINGS)
    return f"{parts['scheme']}://{parts['host']}{parts['port'] or ''}".lower() + path


def _is_local(base_url: str) -> bool:
    return is_loopback(urlsplit(base_url).hostname)


def refuse_address(where: str, base_url: str, trust: Collection[str] | None) -> None:
    """Refuse an endpoint that a file names, unless it is on this machine or trusted by the user.

    Users trust an endpoint by the environment or by ``trust``; None if there is no such option.
    """
    base_url = check_address(base_url)
    if _is_local(base_url):
        return
    addresses = [name for name in trust or () if "://" in name]
    if os.environ.get(ADDRESS_VARIABLE):
        addresses.append(os.environ[ADDRESS_VARIABLE])
    if base_url in [check_address(address) for address in addresses]:
        return
    permission = option("base_url" if trust is None else "trust", base_url)
    raise InputError(
        f"{where} would send texts, and your key, to {base_url}; a file can't ask for that",
        f"if you trust it, name it yourself: {permission}, or {ADDRESS_VARIABLE} in the"
        " environment",
        code="untrusted-address",
    )


def refuse_clear_text(base_url: str) -> None:
    """Refuse to send texts and the key to another machine over a connection without encryption."""
    if base_url.startswith("https:") or _is_local(base_url):
        return
    if current_session().allow_http or os.environ.get(ALLOW_HTTP_VARIABLE) == "1":
        return
    raise InputError(
        f"{base_url} is on another machine, and http would send texts and your key unencrypted",
        "use an https address; where the network is your own, allow it:"
        f" {option('allow_http', True)}, or {ALLOW_HTTP_VARIABLE}=1 in the environment",
        code="unencrypted-address",
    )


@dataclass(frozen=True)
class Forecast:
    """What requests will take, estimated before any of them is sent.

    Attributes
    ----------
    requests, cached : int
        Requests to send, and those whose answers are cached.
    tokens_in : int
        Tokens of the prompts, at four bytes a token.
    tokens_out : int or None
        Tokens that the answers may have; None if the requests do not limit them.
    cost : float or None
        The cost of these tokens; None without prices, or without a limit on answers.
    most_cost : float or None
        The same with a token for each byte of a prompt, which is what a budget reserves.
    """

    requests: int
    cached: int
    tokens_in: int
    tokens_out: int | None
    cost: float | None
    most_cost: float | None


@dataclass
class Endpoint:
    """A server by its address, with prices per million tokens where they are known.

    Requests go to ``path`` below the address, and ``read`` turns the content of a response into an
    answer.
    """

    base_url: str
    _: KW_ONLY
    path: str = CHAT
    read: Callable[[bytes], Completion] = read_answer
    timeout: float = 60.0
    retries: int = 5
    concurrency: int = 8
    prices: Prices | None = None

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """The cost of tokens, if prices are known."""
        if self.prices is None:
            return None
        return self.prices.cost(tokens_in, tokens_out)

    def digest(self, request: Request) -> str:
        """A digest of everything that determines the answer, under which it is cached."""
        return digest_json([self.base_url, dict(request.body), request.draw])

    def cached(self, requests: Sequence[Request]) -> set[str]:
        """The digests of requests that were answered before."""
        folder = cache_folder() / "answers"
        if not folder.is_dir():
            return set()
        cache = AnswerCache(folder)
        digests = {self.digest(request) for request in requests}
        return {digest for digest in digests if cache.get(digest) is not None}

    def forecast(self, requests: Sequence[Request]) -> Forecast:
        """What it would take to answer requests that were not answered before."""
        distinct = {self.digest(request): request for request in requests}
        cached = self.cached(requests)
        tokens_in = 0
        most_tokens_in = 0
        tokens_out: int | None = 0
        for digest, request in distinct.items():
            if digest in cached:
                continue
            estimate = request.estimate
            tokens_in += estimate.prompt
            most_tokens_in += estimate.most_prompt
            if tokens_out is not None and estimate.most_answer is not None:
                tokens_out += estimate.most_answer
            else:
                tokens_out = None
        cost = None
        most_cost = None
        if self.prices is not None and tokens_out is not None:
            cost = self.prices.cost(tokens_in, tokens_out)
            most_cost = self.prices.cost(most_tokens_in, tokens_out)
        requests_to_send = len(distinct) - len(cached)
        return Forecast(requests_to_send, len(cached), tokens_in, tokens_out, cost, most_cost)

    def ask(
        self, requests: Sequence[Request], report: Callable[[int], None] | None = None
    ) -> list[Completion]:
        """The answers, in order; cached ones are not asked for again.

        A request that fails for good ends all of them; the answers that came are cached.
        """
        cache = AnswerCache(cache_folder() / "answers")
        digests = [self.digest(request) for request in requests]
        answers: dict[str, Completion] = {}
        waiting: dict[str, Request] = {}
        for digest, request in zip(digests, requests, strict=True):
            if digest in answers or digest in waiting:
                continue
            answer = cache.get(digest)
            if answer is None:
                waiting[digest] = request
            else:
                answers[digest] = answer
        if cache.damaged:
            warn(
                f"{counted(len(cache.damaged), 'cached answer')} in {cache.folder} can't be used,"
                " since the file is damaged or of an earlier version: asking again"
            )
        if waiting:
            for digest, answer in self._send(waiting, cache):
                answers[digest] = answer
                if report is not None:
                    report(len(answers))
        completions = [answers[digest] for digest in digests]
        if self.prices is not None and not all(answer.has_usage for answer in completions):
            warn(
                f"{self.base_url} does not report how many tokens it used: costs are upper bounds,"
                " with a token for each byte of a prompt and max_tokens for an answer"
            )
        return completions

    def _send(
        self, waiting: Mapping[str, Request], cache: AnswerCache
    ) -> Iterator[tuple[str, Completion]]:
        """Answers with the digests of their requests as they come, once they are cached."""
        refuse_clear_text(self.base_url)
        budget = current_session().budget
        place = current_session().place
        self._check_budget(budget, waiting.values())
        api_key = _read_api_key()
        stop = threading.Event()

        def send(transport: _Transport, digest: str) -> Completion:
            request = waiting[digest]
            try:
                answer = self._post(transport, request, stop, budget)
            except RequestRefusedError as error:
                name = place(request.text) if place is not None else "a text"
                raise RequestRefusedError(
                    f"{name}: {error.message}",
                    f"shorten it, leave it out or choose a model that takes it; else {error.hint}",
                    code=error.code,
                ) from error
            answer = without_key(answer, api_key)
            # Cached before this thread sends its next request: a killed run loses nothing else.
            cache.put(digest, answer)
            return answer

        pool = ThreadPoolExecutor(self.concurrency, "edo-llm")
        try:
            with _open_transport(self, api_key) as transport:
                futures = {pool.submit(send, transport, digest): digest for digest in waiting}
                try:
                    for future in as_completed(futures):
                        yield futures[future], future.result()
                except InputError:
                    # Wait for requests under way, which may be paid for already, while there is a
                    # transport; they are not tried again.
                    stop.set()
                    pool.shutdown(cancel_futures=True)
                    raise
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _check_budget(self, budget: Budget, requests: Collection[Request]) -> None:
        """Refuse a budget for requests whose cost is unbounded."""
        if budget.limit is None:
            return
        if self.prices is None:
            raise InputError(
                f"{option('budget')} needs prices, but what this server's tokens cost is not known",
                "pass price_in and price_out, per million tokens, as options of the recipe",
                code="missing-option",
            )
        if any(request.most_answer_tokens is None for request in requests):
            raise InputError(
                f"{option('budget')} needs a limit on the tokens of an answer",
                "set the option max_tokens, or max_completion_tokens in extra",
                code="missing-option",
            )

    def _most_cost(self, request: Request) -> float:
        """What a request costs at most, unless the server counts more than it allows."""
        if self.prices is None:
            return 0.0
        estimate = request.estimate
        return self.prices.cost(estimate.most_prompt, estimate.most_answer or 0)

    def _post(
        self, transport: _Transport, request: Request, stop: threading.Event, budget: Budget
    ) -> Completion:
        """The answer to a request, which is repeated while that may help."""
        for attempt in range(self.retries + 1):
            reservation = budget.reserve(self._most_cost(request))
            cost = 0.0
            try:
                if stop.is_set():
                    raise InputError(
                        "the run was stopped before this request was sent", code="stopped-run"
                    )
                answer = self._attempt(transport, request)
                tokens_in, tokens_out = counted_tokens(request, answer)
                cost = self.cost(tokens_in, tokens_out) or 0.0
                return answer
            except _TemporaryError as error:
                problem = error
                if problem.may_be_charged:
                    cost = reservation.amount
            finally:
                budget.settle(reservation, cost)
            pause = problem.pause
            if pause is None:
                pause = min(60.0, 2.0**attempt) * random.uniform(0.5, 1.0)
            retries = self.retries
            if problem.retries is not None:
                retries = min(retries, problem.retries)
            if attempt >= retries or pause > _LONGEST_WAIT or stop.wait(pause):
                break
        raise InputError(
            f"{self.base_url} {problem.reason} after {counted(attempt + 1, 'attempt')}; the answers"
            " so far are cached",
            f"{problem.hint}; the same command then resumes from there",
            code="failed-request",
        )

    def _attempt(self, transport: _Transport, request: Request) -> Completion:
        """Send a request once; an error that another attempt may avoid is a `_TemporaryError`."""
        response = transport.exchange(request)
        if response.status != 200:
            raise self._error(response.status, response.retry_after, request)
        try:
            return self.read(response.content)
        except (ValueError, RecursionError):
            raise _TemporaryError(
                "returned an answer of an unexpected form, or impossible token counts",
                f"check {option('base_url')}: most end in /v1",
                may_be_charged=True,
            ) from None

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
            return RequestRefusedError(
                f"{self.base_url} refuses the request (status {status})",
                hint,
                code="refused-request",
            )
        problem = f"returned status {status} for the model {request.body['model']!r}"
        hint = f"check the option model and {option('base_url')}: most addresses end in /v1"
        if status in (401, 403):
            problem = (
                f"does not accept the key in {KEY_VARIABLE}, which may be empty (status {status})"
            )
            hint = f"put a key for this server into the environment: export {KEY_VARIABLE}=…"
        return InputError(f"{self.base_url} {problem}", hint, code="failed-request")


def counted_tokens(request: Request, answer: Completion) -> tuple[int, int]:
    """Tokens of a prompt and its answer: the larger of those reported and those estimated.

    What a server does not report counts as much as the request allows.
    """
    estimate = request.estimate
    if answer.tokens_in is None:
        tokens_in = estimate.most_prompt
    else:
        tokens_in = max(answer.tokens_in, estimate.prompt)
    estimated_tokens = mean_tokens(utf8_length(answer.text))
    if estimate.most_answer is not None:
        estimated_tokens = min(estimated_tokens, estimate.most_answer)
    if answer.tokens_out is not None:
        tokens_out = max(answer.tokens_out, estimated_tokens)
    elif estimate.most_answer is not None:
        tokens_out = estimate.most_answer
    else:
        tokens_out = estimated_tokens
    return tokens_in, tokens_out


def _read_api_key() -> str:
    """The key in the environment; empty if there is none."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            f"{KEY_VARIABLE} has characters that no key can have",
            "copy the key again",
            code="invalid-key",
        )
    return key


@dataclass(frozen=True)
class _Response:
    status: int
    retry_after: str | None
    content: bytes


class _Transport:
    """Connections to an endpoint, for requests of many threads.

    Requests run in an event loop: only there can an exchange be stopped at a deadline wherever it
    waits, be it for a connection, for a header that arrives byte by byte or for the rest of an
    answer.
    """

    def __init__(
        self, endpoint: Endpoint, client: httpx2.AsyncClient, portal: BlockingPortal
    ) -> None:
        self._url = endpoint.base_url + endpoint.path
        self._timeout = endpoint.timeout
        self._client = client
        self._portal = portal

    def exchange(self, request: Request) -> _Response:
        """Send a request and receive the response within one deadline."""
        import httpx2

        progress = _ExchangeProgress()
        try:
            return self._portal.call(self._exchange, request, progress)
        except (TimeoutError, httpx2.RequestError, httpx2.InvalidURL) as error:
            nothing_listens = isinstance(error, httpx2.ConnectError | httpx2.InvalidURL)
            raise _TemporaryError(
                f"can't be reached, or does not answer in {self._timeout:g} s"
                f" ({type(error).__name__})",
                f"start the server, correct {option('base_url')} or raise the option timeout",
                retries=_CONNECTION_RETRIES if nothing_listens else None,
                may_be_charged=progress.is_sent,
            ) from None

    async def _exchange(self, request: Request, progress: _ExchangeProgress) -> _Response:
        import anyio

        content = bytearray()
        most_bytes = request.most_bytes
        extensions = {"trace": progress.trace}
        with anyio.fail_after(self._timeout):
            async with self._client.stream(
                "POST", self._url, content=request.content, extensions=extensions
            ) as response:
                # Raw bytes: a compressed response, which was not asked for, is not decompressed.
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > most_bytes:
                        raise _TemporaryError(
                            f"sent more than {in_bytes(most_bytes)} for an answer",
                            "lower the option max_tokens",
                            may_be_charged=True,
                        )
                return _Response(
                    response.status_code, response.headers.get("retry-after"), bytes(content)
                )


class _ExchangeProgress:
    """How far an exchange has come; a request that was sent may be charged."""

    def __init__(self) -> None:
        self.is_sent = False

    async def trace(self, event: str, info: Mapping[str, object]) -> None:
        """Called by the client with the name of each step."""
        if event.endswith("send_request_headers.complete"):
            self.is_sent = True


@contextmanager
def _open_transport(endpoint: Endpoint, key: str) -> Iterator[_Transport]:
    """Connections to an endpoint, and the thread with their event loop."""
    try:
        import httpx2
        from anyio.from_thread import start_blocking_portal
    except ImportError as error:
        raise missing_extra(
            f"asking a server needs httpx2, but it can't be imported: {error}", "llm"
        ) from error
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    client = httpx2.AsyncClient(
        headers=headers,
        timeout=None,  # one deadline for the whole exchange, in `_Transport`
        limits=httpx2.Limits(max_connections=endpoint.concurrency),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        # A proxy of the environment can't reach what is on this machine.
        trust_env=not _is_local(endpoint.base_url),
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield _Transport(endpoint, client, portal)


class _TemporaryError(Exception):
    """An error of a request that may succeed if it is sent again.

    Attributes
    ----------
    pause : float or None
        Seconds to wait, if the server says so.
    retries : int or None
        How often to try again at most; None: as often as the endpoint allows.
    may_be_charged : bool
        Whether the server may have answered, and charge for it, though no answer can be used.
    """

    def __init__(
        self,
        reason: str,
        hint: str,
        *,
        pause: float | None = None,
        retries: int | None = None,
        may_be_charged: bool = False,
    ) -> None:
        self.reason = reason
        self.hint = hint
        self.pause = pause
        self.retries = retries
        self.may_be_charged = may_be_charged


def _retry_after(seconds: str | None) -> float | None:
    """Seconds to wait; None where a server names no number."""
    if seconds is None or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", seconds):
        return None
    return float(seconds)
