"""The paths of the server: who may ask, what a request must be, and what is counted."""

from __future__ import annotations

import codecs
import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from functools import cache, lru_cache
from html import escape
from itertools import chain
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
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
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException

from edokit._errors import are, counted, examples, is_loopback
from edokit._version import __version__
from edokit.serve.members import About, Limits, Question, RefusedError, Worker, reported

TOKEN = "EDO_SERVE_TOKEN"
"""The variable of the environment that holds the bearer token."""
_OPEN = ("/health", "/docs", "/openapi.json")  # answered without a token
_STATUSES = {
    400: "The body is not JSON.",
    401: "The bearer token is missing or wrong.",
    408: "The request did not arrive in time.",
    413: "Too many bytes or texts.",
    415: "The body is not declared as JSON.",
    422: "A text is empty, too long or no string; an annotator or a metric is unknown.",
    503: "The members are being loaded, or too many texts wait: try again.",
}
_SEND = 'send {"texts": ["…"]}'
_JSON = b"content-type", b"application/json"
_FORMS = {
    "contexts": 'send a context for each text: "contexts": ["…"]',
    "annotators": 'send a list of names for each text: "annotators": [["…"]]',
    "panel": 'send a list of names: "panel": ["…"]',
    "attributes": 'send those of each annotator: "attributes": {"…": {"…": "…"}}',
    "for": 'send the name of a metric: "for": "f1"',
}
"""What a field is, for those who sent something else."""


class Prediction(BaseModel):
    """The answer to one text."""

    probabilities: dict[str, float]
    entropy: float
    spread: float
    label: str | list[str]
    median: str | None = None
    low: dict[str, float] | None = None
    high: dict[str, float] | None = None


class Predictions(BaseModel):
    """The answers to the texts of a request, in their order."""

    version: str
    classes: list[str]
    predictions: list[Prediction]
    notes: list[str] | None = None


def request_model(limits: Limits) -> type[BaseModel]:
    """What a request is, within these limits."""
    most = Field(min_length=1, max_length=limits.max_texts)
    Texts = Annotated[list[Annotated[str, Field(max_length=limits.max_length)]], most]
    Names = Annotated[list[str], most]

    class PredictRequest(BaseModel):
        model_config = ConfigDict(
            extra="forbid",
            strict=True,
            json_schema_extra={"example": {"texts": ["How kind of you.", "What a rude reply."]}},
        )

        texts: Texts = Field(description="The texts.")
        contexts: Texts | None = Field(
            None, description="What precedes each text, for members that were trained on pairs."
        )
        annotators: Annotated[list[Names], most] | None = Field(
            None, description="For each text a list of annotators, known to the bundle, to predict."
        )
        panel: Names | None = Field(None, description="Or one list of annotators for all texts.")
        attributes: Annotated[dict[str, dict[str, str]], most] | None = Field(
            None,
            description="By annotator, attributes that members use (their age, …): annotators whom"
            " the bundle does not know are predicted by them.",
        )
        answer_for: str | None = Field(
            None,
            alias="for",
            description="A metric that the answers are for (ce, md, w1, f1) instead of the pool.",
        )

    return PredictRequest


class Metrics:
    """What ``/metrics`` shows, in Prometheus format: numbers, and nothing of any text."""

    def __init__(self, worker: Worker) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        ProcessCollector(**own)
        ProcessCollector("members", lambda: worker.pid or "self", **own)
        seconds = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
        labels = ("path", "status")
        requests = Counter("edo_requests", "Requests by path and status.", labels, **own)
        self.requests = cache(requests.labels)
        self.texts = Counter("edo_texts", "Texts that were answered.", **own)
        self.seconds = Histogram(
            "edo_request_seconds", "From its head to its answer.", buckets=seconds, **own
        )
        batch = Histogram(
            "edo_batch_texts", "Texts of a batch.", buckets=[2**k for k in range(13)], **own
        )
        batch_seconds = Histogram(
            "edo_batch_seconds", "Of the members, a batch.", buckets=seconds, **own
        )
        waiting = Gauge("edo_queue_texts", "Texts that wait for the members.", **own)
        waiting.set_function(lambda: worker.waiting)
        labels = ("version", "edokit")
        self.model = Gauge("edo_model", "1 once its members are loaded.", labels, **own)

        def observe(texts: int, seconds: float) -> None:
            batch.observe(texts)
            batch_seconds.observe(seconds)

        worker.observe = observe


class App:
    """The application: ``/predict``, ``/health``, ``/metrics``, ``/docs`` and ``/openapi.json``.

    It lets in who may ask, counts, and lets no error escape with its text.

    Parameters
    ----------
    worker : Worker
    limits : Limits
    settled : callable
        Called once the members are loaded, and when they fail or are lost.
    token : str or None
        The bearer token that requests must have.
    log : callable
        Takes one line on a failure of the server.
    """

    def __init__(
        self,
        worker: Worker,
        limits: Limits,
        settled: Callable[[], None],
        token: str | None,
        log: Callable[[str], None],
    ) -> None:
        self._worker, self._settled, self._log = worker, settled, log
        self._expected = None if token is None else f"bearer {token}".encode()
        self._metrics = Metrics(worker)
        self._model, self._read = request_model(limits), BodyReader(limits.max_bytes)
        self._app = self._fastapi()
        self._paths = {getattr(route, "path", "") for route in self._app.routes}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        path = scope["path"] if scope["path"] in self._paths else "other"

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._worker.stopping:  # the client's next request needs another server
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        try:
            headers = dict(scope["headers"])
            if sum(name == b"host" for name, _ in scope["headers"]) > 1:
                raise RefusedError(400, "the request has more than one header host", "send one")
            self._admit(scope["path"], headers)
            if path == "/predict" and scope["method"] == "POST":
                # Straight to it: the layers between cost as much as all the rest of a request.
                content = await self._predict(scope, headers, receive)
                size = b"content-length", b"%d" % len(content)
                head = {"type": "http.response.start", "status": 200, "headers": [_JSON, size]}
                await sending(head)
                await sending({"type": "http.response.body", "body": content})
            else:
                await self._app(scope, receive, sending)
        except RefusedError as error:
            await _refusal(error)(scope, receive, sending)
        except Exception as error:
            self._log(str(reported(error)))
            if not status:
                failed = RefusedError(500, "the server failed on this request", "see its log")
                await _refusal(failed)(scope, receive, sending)
        finally:
            self._metrics.requests(path, status or 499).inc()
            if path == "/predict":
                self._metrics.seconds.observe(time.perf_counter() - start)

    def _admit(self, path: str, headers: dict[bytes, bytes]) -> None:
        if self._expected is None:
            # Pages of other sites may make a browser ask this machine under a name of theirs.
            if not _is_here(headers.get(b"host", b"")):
                raise RefusedError(
                    421,
                    "the host of the request is not this machine",
                    f"ask 127.0.0.1 or localhost, or set {TOKEN}",
                )
        elif path not in _OPEN:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            if not hmac.compare_digest(scheme.lower() + b" " + token.strip(), self._expected):
                raise RefusedError(
                    401,
                    "the bearer token is missing or wrong",
                    "send the header authorization: Bearer TOKEN",
                    www_authenticate="Bearer",
                )

    def _loaded(self) -> About:
        """The bundle, once it can be asked."""
        if self._worker.about is None:
            raise RefusedError(503, "the members are being loaded", "try again", retry_after="2")
        return self._worker.about

    async def _predict(self, scope: Any, headers: dict[bytes, bytes], receive: Any) -> bytes:
        about = self._loaded()
        async with self._read(scope, headers, receive) as body:
            question = check_request(body, self._model, about)
            answers, unknown = await self._worker.ask(question)
        self._metrics.texts.inc(len(answers))
        answer = f'{about.head}, "predictions": [{", ".join(answers)}]'
        if notes := _notes(question, unknown):
            answer += f', "notes": {json.dumps(notes, ensure_ascii=False)}'
        return f"{answer}}}".encode()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        def settled() -> None:
            if self._worker.about is not None:
                self._metrics.model.labels(self._worker.about.version, __version__).set(1)
            self._settled()

        self._worker.start(settled)
        yield

    def _fastapi(self) -> FastAPI:
        app = FastAPI(
            title="EDO",
            version=__version__,
            summary="Texts in, distributions of people's answers out.",
            docs_url=None,  # FastAPI's own page loads scripts from elsewhere
            redoc_url=None,
            lifespan=self._lifespan,
        )
        content = {"application/json": {"schema": self._model.model_json_schema()}}
        found = {"model": Predictions, "description": "The answers, in the order of the texts."}

        @app.post(
            "/predict",
            openapi_extra={"requestBody": {"required": True, "content": content}},
            responses={200: found, **{k: {"description": what} for k, what in _STATUSES.items()}},
        )
        async def predict(request: Request) -> Response:
            """Answer each text with a distribution over the classes."""
            scope = request.scope
            return Response(await self._predict(scope, dict(scope["headers"]), request.receive))

        @app.get(
            "/health",
            response_description="They are.",
            responses={503: {"description": "Not yet, or no longer."}},
        )
        async def health() -> dict[str, str]:
            """Whether the members are loaded and requests are taken."""
            if self._worker.stopping:
                raise RefusedError(503, "the server stops", "ask another one", retry_after="5")
            return {"status": "ready", "version": self._loaded().version}

        @app.get(
            "/metrics",
            response_class=Response,
            response_description="The numbers.",
            responses={401: {"description": _STATUSES[401]}},
        )
        async def numbers() -> Response:
            """Requests by status, texts, seconds, batches and the queue, in Prometheus format."""
            return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

        @app.get("/docs", include_in_schema=False)
        async def docs() -> HTMLResponse:
            safe = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
            return HTMLResponse(docs_page(app.openapi()), headers=safe)

        @app.exception_handler(RefusedError)
        async def refused(_: Request, error: RefusedError) -> Response:
            return _refusal(error)

        @app.exception_handler(HTTPException)
        async def not_found(_: Request, error: HTTPException) -> Response:
            what = {404: "there is nothing at this path", 405: "this path takes another method"}
            message = what.get(error.status_code, "the request can't be answered")
            hint = "POST /predict, GET /health, /metrics, /docs"
            return _refusal(RefusedError(error.status_code, message, hint, **error.headers or {}))

        return app


def _refusal(error: RefusedError) -> Response:
    """What a client sees of an error."""
    content = {"error": error.message} | ({"hint": error.hint} if error.hint else {})
    return JSONResponse(content, error.status, error.headers)


@lru_cache(64)
def _is_here(host: bytes) -> bool:
    """Whether a Host header names this machine: ``localhost:8000``, ``[::1]:8000``."""
    name = host.decode("latin-1").lower()
    return is_loopback(name[1:].partition("]")[0] if name[:1] == "[" else name.partition(":")[0])


class BodyReader:
    """Reads the bodies of requests, and limits what all requests under way hold."""

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes
        self._held = 0  # bytes of all requests that are read or wait

    @contextlib.asynccontextmanager
    async def __call__(
        self, scope: Any, headers: dict[bytes, bytes], receive: Any
    ) -> AsyncIterator[bytes]:
        """The body of a request with JSON."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json" or b"content-encoding" in headers:
            raise RefusedError(
                415,
                "the headers declare something else than plain JSON",
                "send content-type: application/json, and do not compress the body",
            )
        if b"upgrade" in headers:
            raise RefusedError(
                400,
                "the request asks for another protocol, so that its body can't be read",
                "send it as HTTP/1.1, without the header upgrade (curl --http1.1)",
                connection="close",
            )
        parts: list[bytes] = []
        size, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    late = scope.get("edo.late", False)
                    raise RefusedError(408 if late else 400, "the request ends early")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                self._held += len(part)
                if self._held > 64 * self._most:
                    raise RefusedError(
                        503, "too many requests are under way", "try again", retry_after="1"
                    )
                parts.append(part)
                if size > self._most:
                    # A client that still writes does not read: the rest is dropped, to a point.
                    parts.clear()
                    more = more and size <= 8 * self._most
            if size > self._most:
                message, hint = f"the request has more than {self._most} bytes", "send fewer texts"
                raise RefusedError(413, message, f"{hint} at a time", connection="close")
            yield b"".join(parts)
        finally:
            self._held -= size


def check_request(body: bytes, model: type[BaseModel], about: About) -> Question:
    """The question that a request asks; errors give positions and quote nothing."""
    try:
        given: Any = _DECODER.decode(body.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError:
        raise RefusedError(400, "the body is not UTF-8", "encode it as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        message = f"the body is not valid JSON: {error.msg} in {where}"
        raise RefusedError(400, message, _SEND) from None
    except (ValueError, RecursionError):
        message = "the JSON can't be read: a name twice, too deep, or a number too long"
        raise RefusedError(400, message, _SEND) from None
    try:
        asked: Any = model.model_validate(given)
    except ValidationError as error:
        raise _invalid(error, given) from None
    texts, contexts, whose = asked.texts, asked.contexts, asked.annotators
    for position, text in enumerate(texts, start=1):
        if not text.strip():
            raise RefusedError(422, f"text {position} of {len(texts)} is empty", "leave it out")
    if about.pairs is not None and about.pairs != (contexts is not None):
        raise RefusedError(
            422,
            f"the members were trained on texts {'with' if about.pairs else 'without'} contexts",
            "give each text its context" if about.pairs else "leave contexts out",
        )
    for noun, of, values in (("context", "", contexts), ("list", " of annotators", whose)):
        if values is not None and len(values) != len(texts):
            message = f"{counted(len(texts), 'text')}, but {counted(len(values), noun)}{of}"
            raise RefusedError(422, message, f"give one {noun}{of} for each text")
    if contexts is not None:
        texts = list(zip(texts, contexts, strict=True))
    if whose is not None and asked.panel is not None:
        raise RefusedError(422, "both annotators and a panel are given", "leave one of them out")
    attributes = asked.attributes or {}
    if attributes and whose is None and asked.panel is None:
        message = "attributes are given, but neither annotators nor a panel"
        raise RefusedError(422, message, "name the annotators to predict")
    if any(name not in about.attributes for own in attributes.values() for name in own):
        hint = f"known attributes: {', '.join(about.attributes) or 'none'}"
        raise RefusedError(422, "the members do not use one of the attributes", hint)
    known = about.annotators | attributes.keys() if attributes else about.annotators
    new = f"send attributes ({', '.join(about.attributes)}), or " if about.attributes else ""
    if whose is not None:
        whose = [_known(names, known, f"text {k}", new) for k, names in enumerate(whose, start=1)]
    panel = None if asked.panel is None else _known(asked.panel, known, "the panel", new)
    if asked.answer_for is not None and asked.answer_for not in about.metrics:
        raise RefusedError(
            422,
            "this bundle makes no answers for this metric",
            f"known metrics: {', '.join(about.metrics)}; without one, the pool answers",
        )
    by_name = tuple((name, tuple(own.items())) for name, own in attributes.items())
    return Question(texts, whose, panel, asked.answer_for, by_name)


def _notes(question: Question, unknown: Collection[str]) -> list[str]:
    """What a client should know of the answer."""
    if not unknown:
        return []
    asked = dict.fromkeys(question.panel or chain.from_iterable(question.annotators or ()))
    named = [name for name in asked if name in unknown]
    count = are(len(named), len(asked), noun="annotator")
    note = f"{count} unknown to all members, and answered anonymously: {examples(named)}"
    return [note + " (no member was trained on such attributes)"] if named else []


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct)


def _known(names: list[str], known: Collection[str], of: str, new: str) -> tuple[str, ...]:
    """Annotators that the bundle knows, or whose attributes are given, each once."""
    seen = set[str]()
    for position, name in enumerate(names, start=1):
        place = f"annotator {position} of {len(names)} of {of}"
        if name not in known:
            raise RefusedError(
                422,
                f"{place} is unknown, among {counted(len(known), 'annotator')}"
                if known
                else "the members know no annotators apart",
                f"{new}leave the name out; without annotators and panel, the answer is for nobody"
                " in particular",
            )
        if name in seen:
            raise RefusedError(422, f"{place} is named twice", "name each once")
        seen.add(name)
    return tuple(names)


def _invalid(error: ValidationError, given: Any) -> RefusedError:
    """What is wrong with a value, without the value."""
    first = error.errors(include_url=False)[0]
    kind, at, most = first["type"], first["loc"], first.get("ctx", {}).get("max_length")
    if not isinstance(given, dict):
        return RefusedError(422, "the body is not a JSON object", _SEND)
    if kind == "extra_forbidden":
        known = "texts, contexts, annotators, panel, attributes and for"
        return RefusedError(422, "the request has an unknown field", f"known fields: {known}")
    place = str(at[0])
    inside: Any = given.get(place)
    for position in at[1:]:
        if isinstance(position, int):
            noun = place.partition(" ")[0].removesuffix("s")
            place, inside = f"{noun} {position + 1} of {len(inside)}", inside[position]
        elif isinstance(inside, dict):
            place, inside = f"an entry of {at[0]}", inside.get(position)
    if kind == "too_long":
        message = f"{place}: {len(inside)} are more than the {most} of one request"
        return RefusedError(413, message, "send fewer at a time")
    wrong = {
        "missing": "missing",
        "too_short": "empty",
        "string_too_long": f"longer than {most} characters",
        "string_type": f"{_KINDS.get(type(inside), 'something else')}, not a string",
        "list_type": f"{_KINDS.get(type(inside), 'something else')}, not a list",
        "dict_type": f"{_KINDS.get(type(inside), 'something else')}, not an object",
        "string_unicode": "text with half a character (a lone surrogate)",
    }
    be = "is" if " " in place or place in ("panel", "for") else "are"
    message = f"{place} {be} {wrong.get(kind, 'not what is expected')}"
    shorten = kind == "string_too_long"
    return RefusedError(422, message, "shorten it" if shorten else _FORMS.get(str(at[0]), _SEND))


_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
}
_KINDS |= {int: "a number", float: "a number", type(None): "null"}


def docs_page(schema: dict[str, Any]) -> str:
    """The OpenAPI description as a page that loads nothing and runs nothing."""
    parts = []
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            parts.append(f"<h2><code>{method.upper()} {path}</code></h2>")
            parts.append(f"<p>{escape(about['description'])}")
            if body := about.get("requestBody"):
                inner = body["content"]["application/json"]["schema"]
                parts.append(_table(inner["properties"].items()))
                parts.append(f"<pre>{escape(json.dumps(inner['example']))}</pre>")
            parts.append(_table(about["responses"].items()))
    title = escape(schema["info"]["summary"])
    return _PAGE.replace("TITLE", title).replace("CONTENT", "\n".join(parts))


def _table(rows: Iterable[tuple[str, Any]]) -> str:
    cells = (
        f"<tr><td><code>{name}</code><td>{escape(about['description'])}" for name, about in rows
    )
    return f"<table>{''.join(cells)}</table>"


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>EDO</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;
color:#222;background:#fff}table{border-collapse:collapse;margin:.5rem 0}td{vertical-align:top;
padding:.25rem .75rem .25rem 0;border-bottom:1px solid #ddd}pre{padding:.75rem;background:#f4f4f4;
overflow:auto}h2{margin-top:2rem;font-size:1.1rem}</style>
<h1>TITLE</h1><p>For machines: <a href="openapi.json">openapi.json</a>.
CONTENT</html>"""
