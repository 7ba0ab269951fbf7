"""The paths of the server: who may ask, how bodies are read, and what is counted."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from edokit._errors import is_loopback
from edokit._package import __version__
from edokit.serve.access_log import Access, known_method, utc_now
from edokit.serve.batching import Batcher, Limits, without_texts
from edokit.serve.pages import Page, docs_page, try_page
from edokit.serve.requests import About, Question, RefusedError, read_request, request_model

TOKEN = "EDO_SERVE_TOKEN"  # the variable of the environment that holds the bearer token
_TEXT_COUNT_KEY = "edo.texts"  # key of the number of answered texts in the scope of a request
_LONG_BODY = 1 << 16  # bytes from which on a body is parsed in another thread
_PUBLIC_PATHS = ("/health", "/openapi.json", "/", "/docs")  # answered without a token
_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9.-]+))(?::[0-9]{1,5})?")
"""A Host header: a name or an address, and a port or none."""
_STATUSES = {
    400: "The body is not JSON.",
    401: "The bearer token is missing or wrong.",
    408: "The request did not arrive in time.",
    413: "Too many bytes or texts.",
    415: "The body is not declared as JSON.",
    421: "No token is set, and the Host header does not name this machine.",
    422: "A text is empty, too long or no string; an annotator or a metric is unknown.",
    503: "The members are being loaded, or too many requests are open: try again.",
}


class Prediction(BaseModel):
    """The answer to one text."""

    probabilities: dict[str, float] = Field(description="The pool, or the answers for a metric.")
    entropy: float = Field(
        description="The entropy of the pool, even if the answers are for a metric."
    )
    spread: float
    label: str | list[str] | None = Field(
        description="None if a panel answers and the text can't be read."
    )
    median: str | None = None
    expected: float | None = Field(None, description="The expected point of an ordinal scale.")
    at_least: dict[str, float] | None = Field(
        None, description="The probability of each point of an ordinal scale or a higher one."
    )
    familiarity: float | None = Field(
        None, description="Rank of the text among held-out texts of the fit, from 0 to 1."
    )
    unfamiliar: bool | None = Field(
        None, description="Whether the text is unlike those that the ensemble learned from."
    )
    decision: str | list[str] | None = Field(
        None, description="The label, or people: where the server hands texts over."
    )
    low: dict[str, float] | None = None
    high: dict[str, float] | None = None


class Predictions(BaseModel):
    """The answers to the texts of a request, in their order."""

    version: str
    classes: list[str]
    predictions: list[Prediction]


class Metrics:
    """What ``/metrics`` shows, in Prometheus format: numbers, and nothing of any text."""

    def __init__(self, batcher: Batcher) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        registry = self.registry
        ProcessCollector(registry=registry)
        seconds = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
        sizes = [2**power for power in range(13)]
        self.requests = Counter(
            "edo_requests", "Requests by path and status.", ("path", "status"), registry=registry
        )
        self.texts = Counter("edo_texts", "Texts that were answered.", registry=registry)
        self.seconds = Histogram(
            "edo_request_seconds",
            "From its head to its answer.",
            buckets=seconds,
            registry=registry,
        )
        batch = Histogram("edo_batch_texts", "Texts of a batch.", buckets=sizes, registry=registry)
        waiting = Gauge("edo_queue_texts", "Texts that wait for the members.", registry=registry)
        waiting.set_function(lambda: batcher.waiting)
        batcher.observe = batch.observe


class AboutAnswer(BaseModel):
    """What can be asked of the server."""

    version: str = Field(description="Servers of one version answer alike.")
    classes: list[str] = Field(description="In the order of the probabilities.")
    scale: str = Field(description="nominal, ordinal or multi-label.")
    contexts: bool | None = Field(
        description="Whether texts need contexts; null if both are possible."
    )
    answers_for: list[str] = Field(description="Metrics that there are answers for.")
    people: int = Field(description="The number of annotators whom the bundle knows by name.")
    max_texts: int = Field(description="Texts of one request.")
    max_length: int = Field(description="Characters of a text, its context included.")
    sends_to: list[str] = Field(description="Addresses to which members send texts.")
    promise: str | None = Field(description="With --escalate, what is promised of the decisions.")


class App:
    """The application: ``/predict``, ``/about``, ``/people``, ``/health``, ``/metrics``, and pages.

    The pages are ``/`` and ``/docs``; ``/openapi.json`` describes the rest.

    It admits requests, counts them, and lets no error escape with its text.

    Parameters
    ----------
    batcher : Batcher
        Answers the questions.
    limits : Limits
        What is refused.
    token : str or None
        The bearer token that requests must have.
    log : callable
        Called with one line of text when the server fails.
    is_full : callable
        Whether the limit of connections is reached, so that only ``/health`` is answered.
    show_people : bool, default=False
        Whether ``/people`` lists the names of annotators, too.
    page : bool, default=True
        Whether there is a page at ``/`` to try it.
    access : callable, default=None
        Takes an `Access` for each request.
    """

    def __init__(
        self,
        batcher: Batcher,
        limits: Limits,
        token: str | None,
        log: Callable[[str], None],
        is_full: Callable[[], bool] = lambda: False,
        *,
        show_people: bool = False,
        page: bool = True,
        access: Callable[[Access], None] | None = None,
    ) -> None:
        self._batcher = batcher
        self._limits = limits
        self._log = log
        self._access = access
        self._is_full = is_full
        self._show_people = show_people
        self._authorization = None if token is None else f"bearer {token}".encode()
        self.metrics = Metrics(batcher)
        self._model = request_model(limits.max_texts, limits.max_length)
        self._read = BodyReader(limits.max_bytes)
        self._app = self._fastapi()
        self._add_pages(page)
        self._paths = {getattr(route, "path", "") for route in self._app.routes}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        start = time.perf_counter()
        arrived = utc_now()
        status = 0
        path = scope["path"] if scope["path"] in self._paths else "other"

        async def send_noting_status(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._batcher.stopping:  # the client's next request needs another server
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        try:
            self._admit(scope)
            await self._app(scope, receive, send_noting_status)
        except RefusedError as error:
            await _error_response(error)(scope, receive, send_noting_status)
        except Exception as error:
            self._log(str(without_texts(error)))
            if not status:
                failure = RefusedError(
                    500, "the server failed on this request", "see its log", code="internal-error"
                )
                await _error_response(failure)(scope, receive, send_noting_status)
        finally:
            seconds = time.perf_counter() - start
            self.metrics.requests.labels(path, status or 499).inc()
            if path == "/predict":
                self.metrics.seconds.observe(seconds)
            if self._access is not None:
                method = known_method(scope["method"])
                texts = scope.get(_TEXT_COUNT_KEY)
                self._access(Access(arrived, method, path, status or 499, round(seconds, 6), texts))

    def _admit(self, scope: Any) -> None:
        """Refuse a request by its headers: too many connections, another host, a wrong token."""
        headers = dict(scope["headers"])
        path = scope["path"]
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            raise RefusedError(
                400, "the request has more than one header host", "send one", code="invalid-request"
            )
        if path != "/health" and self._is_full():
            raise RefusedError(
                503,
                "too many connections are open",
                "try again",
                connection="close",
                code="busy-server",
            )
        # Pages of other sites may make a browser ask this machine under a name of theirs.
        if self._authorization is None and not _is_this_machine(headers.get(b"host", b"")):
            hint = f"ask 127.0.0.1 or localhost, or set {TOKEN}"
            raise RefusedError(
                421, "the host of the request is not this machine", hint, code="unknown-host"
            )
        if self._authorization is None or path in _PUBLIC_PATHS:
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        authorization = scheme.lower() + b" " + token.strip()
        if not hmac.compare_digest(authorization, self._authorization):
            hint = "send the header authorization: Bearer TOKEN"
            message = "the bearer token is missing or wrong"
            raise RefusedError(401, message, hint, www_authenticate="Bearer", code="invalid-token")

    def _about_loaded(self) -> About:
        """What may be asked of the bundle; a request that comes before it is loaded is refused."""
        if self._batcher.about is None:
            raise RefusedError(
                503,
                "the members are being loaded",
                "try again",
                retry_after="2",
                code="loading-server",
            )
        return self._batcher.about

    async def _predict(self, request: Request) -> Response:
        """Read the question, wait for its answer, and count its texts."""
        about = self._about_loaded()
        async with self._read(request) as body:
            if len(body) < _LONG_BODY:
                question = self._question(body, about)
            else:
                question = await asyncio.to_thread(self._question, body, about)
            rows = await self._batcher.ask(question)
        self.metrics.texts.inc(len(rows))
        request.scope[_TEXT_COUNT_KEY] = len(rows)
        answer = {
            "version": about.version,
            "classes": about.classes,
            "predictions": rows,
        }
        return JSONResponse(answer)

    def _about(self, about: About) -> AboutAnswer:
        """What a page or a program needs to know before it asks."""
        return AboutAnswer(
            version=about.version,
            classes=about.classes,
            scale=about.scale,
            contexts=about.has_contexts,
            answers_for=list(about.metrics),
            people=len(about.annotators),
            max_texts=self._limits.max_texts,
            max_length=self._limits.max_length,
            sends_to=list(about.endpoints),
            promise=None if about.escalation is None else str(about.escalation),
        )

    def _question(self, body: bytes, about: About) -> Question:
        """The question of a request; messages name people where the operator allows it."""
        return read_request(body, self._model, about, show_people=self._show_people)

    def _people(self, about: About) -> dict[str, object]:
        """The attributes and levels of people; their names where the operator allows it."""
        attributes: dict[str, dict[str, int]] = {}
        if about.people is not None:
            for attribute in about.people.attributes:
                levels = zip(attribute.levels, attribute.people, strict=True)
                attributes[attribute.name] = dict(levels)
        answer: dict[str, object] = {"people": len(about.annotators), "attributes": attributes}
        if self._show_people:
            answer["annotators"] = sorted(about.annotators)
        return answer

    def _fastapi(self) -> FastAPI:
        """The application with all paths but those of the pages."""
        app = FastAPI(
            title="EDO",
            version=__version__,
            summary="Texts in, distributions of people's answers out.",
            docs_url=None,  # FastAPI's own page loads scripts from elsewhere
            redoc_url=None,
            redirect_slashes=False,
        )
        content = {"application/json": {"schema": self._model.model_json_schema()}}
        answers = {"model": Predictions, "description": "The answers, in the order of the texts."}
        statuses: dict[int | str, Any] = {
            status: {"description": text} for status, text in _STATUSES.items()
        }
        common_statuses: dict[int | str, Any] = {
            status: statuses[status] for status in (401, 421, 503)
        }

        @app.post(
            "/predict",
            openapi_extra={"requestBody": {"required": True, "content": content}},
            responses={200: answers, **statuses},
        )
        async def predict(request: Request) -> Response:
            """Answer each text with a distribution over the classes."""
            return await self._predict(request)

        @app.get(
            "/health",
            response_description="Ready.",
            responses={421: statuses[421], 503: {"description": "Not yet, or no longer."}},
        )
        async def health() -> dict[str, str]:
            """Whether the members are loaded and requests are taken."""
            if self._batcher.stopping:
                raise RefusedError(
                    503,
                    "the server stops",
                    "ask another one",
                    retry_after="5",
                    code="stopping-server",
                )
            return {"status": "ready", "version": self._about_loaded().version}

        @app.get(
            "/about",
            response_model=AboutAnswer,
            response_description="Classes, scale, limits and version.",
            responses=common_statuses,
        )
        async def about() -> AboutAnswer:
            """What can be asked: classes, scale, limits, and where texts are sent."""
            return self._about(self._about_loaded())

        @app.get(
            "/people",
            response_description="Attributes and levels, with the number of people.",
            responses=common_statuses,
        )
        async def people() -> dict[str, Any]:
            """Whose view a panel may take: attributes of the annotators, and their levels."""
            return self._people(self._about_loaded())

        @app.get(
            "/metrics",
            response_class=Response,
            response_description="The numbers.",
            responses=common_statuses,
        )
        async def numbers() -> Response:
            """Requests by status, texts, seconds, batches and the queue, in Prometheus format."""
            return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)

        @app.exception_handler(RefusedError)
        async def answer_refused(_: Request, error: RefusedError) -> Response:
            return _error_response(error)

        @app.exception_handler(HTTPException)
        async def answer_http_error(_: Request, error: HTTPException) -> Response:
            message = "the request can't be answered"
            code = "invalid-request"
            if error.status_code == 404:
                message = "there is nothing at this path"
                code = "unknown-path"
            if error.status_code == 405:
                message = "this path takes another method"
                code = "unsupported-method"
            hint = "POST /predict, GET /health, /about, /people, /metrics, /openapi.json, /docs"
            headers = error.headers or {}
            refusal = RefusedError(error.status_code, message, hint, code=code, **headers)
            return _error_response(refusal)

        return app

    def _add_pages(self, page: bool) -> None:
        """Add the pages, which are made once."""
        pages = {}
        if page:
            pages["/"] = try_page()
        has_token = self._authorization is not None
        pages["/docs"] = docs_page(self._app.openapi(), has_token=has_token, has_page=page)
        for path, page_text in pages.items():
            self._app.add_api_route(
                path, _sender(page_text), methods=["GET", "HEAD"], include_in_schema=False
            )


def _sender(page: Page) -> Callable[[], Awaitable[Response]]:
    """An endpoint that answers with a page."""

    async def send() -> Response:
        return Response(page.content, headers=page.headers)

    return send


def _error_response(error: RefusedError) -> Response:
    """The response that tells a client why a request is refused."""
    content = {"error": error.message, "code": error.code}
    if error.hint:
        content["hint"] = error.hint
    return JSONResponse(content, error.status, error.headers)


@lru_cache(64)
def _is_this_machine(host: bytes) -> bool:
    """Whether a Host header names this machine: ``localhost:8000``, ``[::1]:8000``."""
    match = _HOST.fullmatch(host.decode("latin-1").lower())
    if match is None:
        return False
    return is_loopback(match["ipv6"] or match["name"])


class BodyReader:
    """Reads the bodies of requests within limits.

    Parameters
    ----------
    max_bytes : int
        Bytes of one body; all requests under way may hold 64 times as many.
    """

    def __init__(self, max_bytes: int) -> None:
        self._limit = max_bytes
        self._bytes_in_memory = 0  # of all requests that are read or wait

    @contextlib.asynccontextmanager
    async def __call__(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a request with JSON."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or "content-encoding" in request.headers:
            hint = "send content-type: application/json, and do not compress the body"
            raise RefusedError(
                415,
                "the Content-Type is not application/json, or the body is compressed",
                hint,
                code="invalid-request",
            )
        if "upgrade" in request.headers:
            message = "the request asks for another protocol, so that its body can't be read"
            raise RefusedError(
                400, message, "send it as HTTP/1.1", connection="close", code="invalid-request"
            )
        body = bytearray()
        size = 0
        try:
            async for part in request.stream():
                size += len(part)
                self._bytes_in_memory += len(part)
                if self._bytes_in_memory > 64 * self._limit:
                    message = "too many requests are under way"
                    raise RefusedError(
                        503, message, "try again", retry_after="1", code="busy-server"
                    )
                # A client that still writes does not read: the rest is dropped, to a point.
                if size > 8 * self._limit:
                    break
                if size <= self._limit:
                    body += part
            if size > self._limit:
                message = f"the request has more than {self._limit} bytes"
                raise RefusedError(
                    413,
                    message,
                    "send fewer texts at a time",
                    connection="close",
                    code="too-large-request",
                )
            yield bytes(body)
        except ClientDisconnect:
            raise RefusedError(400, "the request ends early", code="incomplete-request") from None
        finally:
            self._bytes_in_memory -= size
