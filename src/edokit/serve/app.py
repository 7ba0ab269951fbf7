"""The paths of the server, and what a request must be."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from html import escape
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from edokit._errors import counted
from edokit._version import __version__
from edokit.serve.members import About, Question
from edokit.serve.worker import Limits, RefusedError, Worker

PATIENCE = 20.0
"""Seconds in which a request must have arrived."""
_STATUSES = {
    400: "The body is not JSON.",
    401: "The bearer token is missing or wrong.",
    408: "The request did not arrive in time.",
    413: "Too many bytes or texts.",
    415: "The body is not declared as JSON.",
    422: "A text is empty, too long or no string; an annotator or a metric is unknown.",
    503: "The members are being loaded, or too many texts wait: try again.",
}
_EXAMPLE: dict[str, Any] = {"texts": ["How kind of you.", "What a rude reply."]}
_SEND = 'send {"texts": ["…"]}'


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


def request_model(limits: Limits) -> type[BaseModel]:
    """What a request is, within these limits."""
    most: Any = Field(min_length=1, max_length=limits.max_texts)
    text = Annotated[str, StringConstraints(max_length=limits.max_length)]
    names = Annotated[list[str], most]
    config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": _EXAMPLE})

    def field(about: str, **how: Any) -> Any:
        return Field(description=about, **how)

    return create_model(
        "Request",
        __config__=config,
        texts=(Annotated[list[text], most], field("The texts.")),
        contexts=(
            Annotated[list[text], most] | None,
            field("What precedes each text, for members that were trained on pairs.", default=None),
        ),
        annotators=(
            Annotated[list[names], most] | None,
            field("For each text the annotators, known to the bundle, to predict.", default=None),
        ),
        panel=(names | None, field("Or the annotators to predict for every text.", default=None)),
        answer_for=(
            str | None,
            field(
                "A metric that the answers are for (ce, md, w1, f1) instead of the pool.",
                alias="for",
                default=None,
            ),
        ),
    )


class Metrics:
    """What ``/metrics`` shows, in Prometheus format: numbers, and nothing of any text.

    Parameters
    ----------
    members : callable
        Returns the process of the members.
    """

    def __init__(self, members: Callable[[], int | None] = lambda: None) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        ProcessCollector("members", lambda: members() or "self", registry=own)
        seconds = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
        self.requests = Counter(
            "edo_requests", "Requests by path and status.", ("path", "status"), registry=own
        )
        self.texts = Counter("edo_texts", "Texts that were answered.", registry=own)
        self.seconds = Histogram(
            "edo_request_seconds", "From its head to its answer.", buckets=seconds, registry=own
        )
        self.batch = Histogram(
            "edo_batch_texts", "Texts of a batch.", buckets=[2**k for k in range(13)], registry=own
        )
        self.batch_seconds = Histogram(
            "edo_batch_seconds", "Of the members, a batch.", buckets=seconds, registry=own
        )
        self.waiting = Gauge("edo_queue_texts", "Texts that wait for the members.", registry=own)
        self.model = Gauge(
            "edo_model", "1 once its members are loaded.", ("version", "edokit"), registry=own
        )

    def observe_batch(self, texts: int, seconds: float) -> None:
        """Count a batch."""
        self.batch.observe(texts)
        self.batch_seconds.observe(seconds)


def make_app(
    worker: Worker,
    limits: Limits,
    metrics: Metrics,
    settled: Callable[[], None] = lambda: None,
) -> FastAPI:
    """The application: ``/predict``, ``/health``, ``/metrics``, ``/docs`` and ``/openapi.json``."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker.start(settled)
        yield
        worker.close()

    app = FastAPI(
        title="EDO",
        version=__version__,
        summary="Texts in, distributions of people's answers out.",
        docs_url=None,  # FastAPI's own page loads scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    model, body_of = request_model(limits), BodyReader(limits.max_bytes)
    content = {"application/json": {"schema": model.model_json_schema()}}
    responses: dict[int | str, dict[str, Any]] = {
        200: {"model": Predictions, "description": "The answers, in the order of the texts."}
    }
    responses |= {status: {"description": meaning} for status, meaning in _STATUSES.items()}

    @app.post(
        "/predict",
        openapi_extra={"requestBody": {"required": True, "content": content}},
        responses=responses,
    )
    async def predict(request: Request) -> Response:
        """Answer each text with a distribution over the classes."""
        about = _loaded(worker)
        question = check_request(await body_of(request), model, about)
        answers = await worker.ask(question)
        metrics.texts.inc(len(answers))
        head = json.dumps({"version": about.version, "classes": about.classes}, ensure_ascii=False)
        content = f'{head[:-1]}, "predictions": [{", ".join(answers)}]}}'
        return Response(content.encode(), media_type="application/json")

    app.state.predict = predict

    @app.get("/health", responses={503: {"description": "Not yet, or no longer."}})
    async def health() -> Response:
        """Whether the members are loaded and requests are taken."""
        if worker.stopping:
            raise RefusedError(503, "the server stops", "ask another one", retry_after="5")
        return json_response({"status": "ready", "version": _loaded(worker).version})

    @app.get("/metrics", response_class=Response)
    async def numbers() -> Response:
        """Requests by status, texts, seconds, batches and the queue, in Prometheus format."""
        metrics.waiting.set(worker.waiting)
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(generate_latest(metrics.registry), media_type=kind)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        safe = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(docs_page(app.openapi()), headers=safe)

    async def refused(_: Request, error: Any) -> Response:
        return refusal(error)

    async def not_found(_: Request, error: Any) -> Response:
        what = {404: "there is nothing at this path", 405: "this path does not take this method"}
        message = what.get(error.status_code, "the request can't be answered")
        hint = "POST /predict, GET /health, /metrics, /docs"
        return refusal(RefusedError(error.status_code, message, hint, **(error.headers or {})))

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(HTTPException, not_found)
    return app


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A response with JSON."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body.encode(), status, headers, "application/json")


def refusal(error: RefusedError) -> Response:
    """What a client sees of an error."""
    content = {"error": error.message} | ({"hint": error.hint} if error.hint else {})
    return json_response(content, error.status, error.headers)


def _loaded(worker: Worker) -> About:
    """The bundle, once it can be asked."""
    if worker.about is None:
        raise RefusedError(503, "the members are being loaded", "try again", retry_after="2")
    return worker.about


class BodyReader:
    """Reads the bodies of requests, within limits of size and time."""

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes
        self._held = 0  # bytes of all requests that are being read

    async def __call__(self, request: Request) -> bytes:
        """The body of a request with JSON."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or "content-encoding" in request.headers:
            raise RefusedError(
                415,
                "the headers declare something else than plain JSON",
                "send content-type: application/json, and do not compress the body",
            )
        parts: list[bytes] = []
        size = 0
        try:
            with anyio.fail_after(PATIENCE):
                async for part in request.stream():
                    size += len(part)
                    self._held += len(part)
                    if self._held > 64 * self._most:
                        raise RefusedError(
                            503, "too many requests arrive at once", "try again", retry_after="1"
                        )
                    parts.append(part)
                    if size > self._most:
                        # A client that still writes does not read: the rest is dropped, to a point.
                        parts.clear()
                        if size > 8 * self._most:
                            break
        except ClientDisconnect:
            raise RefusedError(400, "the request ends early") from None
        except TimeoutError:
            raise RefusedError(
                408, f"the request did not arrive in {PATIENCE:g} seconds", "send it faster"
            ) from None
        finally:
            self._held -= size
        if size > self._most:
            raise RefusedError(
                413,
                f"the request has more than {self._most} bytes",
                "send fewer texts at a time",
                connection="close",
            )
        return b"".join(parts)


def check_request(body: bytes, model: type[BaseModel], about: About) -> Question:
    """The question that a request asks; errors give positions and quote nothing."""
    try:
        given: Any = json.loads(body, object_pairs_hook=_distinct)
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
        first = error.errors(include_url=False, include_context=True)[0]
        raise _invalid(first["type"], first["loc"], given, first.get("ctx", {})) from None
    texts, contexts = asked.texts, asked.contexts
    for position, text in enumerate(texts, start=1):
        if not text.strip():
            raise RefusedError(422, f"text {position} of {len(texts)} is empty", "leave it out")
    if about.pairs is not None and about.pairs != (contexts is not None):
        raise RefusedError(
            422,
            f"the members were trained on texts {'with' if about.pairs else 'without'} contexts",
            "give each text its context" if about.pairs else "leave contexts out",
        )
    for name in ("contexts", "annotators"):
        values = getattr(asked, name)
        if values is not None and len(values) != len(texts):
            message = f"{counted(len(texts), 'text')} have {len(values)} {name}"
            raise RefusedError(422, message, f"give {name} for each text")
    if contexts is not None:
        texts = list(zip(texts, contexts, strict=True))
    if asked.annotators is not None and asked.panel is not None:
        raise RefusedError(422, "both annotators and a panel are given", "leave one of them out")
    whose = asked.annotators
    if whose is not None:
        whose = [
            _known(names, about, f" of text {position}")
            for position, names in enumerate(whose, start=1)
        ]
    panel = None if asked.panel is None else _known(asked.panel, about, " of the panel")
    if asked.answer_for is not None and asked.answer_for not in about.metrics:
        raise RefusedError(
            422,
            "this bundle makes no answers for this metric",
            f"known metrics: {', '.join(about.metrics)}; without one, the pool answers",
        )
    return Question(texts, whose, panel, asked.answer_for)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice")
    return found


def _known(names: list[str], about: About, of: str) -> tuple[str, ...]:
    """Annotators that the bundle knows, each once."""
    for position, name in enumerate(names, start=1):
        place = f"annotator {position} of {len(names)}{of}"
        if name not in about.annotators:
            raise RefusedError(
                422,
                f"{place} is unknown: this bundle knows"
                f" {counted(len(about.annotators), 'annotator')}",
                "leave annotators out for the answer of nobody in particular",
            )
        if name in names[: position - 1]:
            raise RefusedError(422, f"{place} is named twice", "name each once")
    return tuple(names)


def _invalid(kind: str, at: tuple[int | str, ...], given: Any, limits: Any) -> RefusedError:
    """What is wrong with a value, without the value."""
    if not isinstance(given, dict):
        return RefusedError(422, "the body is not a JSON object", _SEND)
    if kind == "extra_forbidden":
        return RefusedError(422, "the request has an unknown field", "see /docs for the fields")
    place = str(at[0])
    inside: Any = given.get(place)
    for position in at[1:]:
        if isinstance(position, int):
            noun = place.partition(" ")[0].removesuffix("s")
            place, inside = f"{noun} {position + 1} of {len(inside)}", inside[position]
    if kind == "too_long":
        message = f"{place}: {len(inside)} are more than the {limits['max_length']} of one request"
        return RefusedError(413, message, "send fewer at a time")
    wrong = {
        "missing": "missing",
        "too_short": "empty",
        "string_too_long": f"longer than {limits.get('max_length')} characters",
        "string_type": f"{_KINDS.get(type(inside), 'something else')}, not a string",
        "list_type": f"{_KINDS.get(type(inside), 'a string')}, not a list",
        "string_unicode": "text with half a character (a lone surrogate)",
    }
    be = "is" if " " in place or place in ("panel", "for") else "are"
    return RefusedError(422, f"{place} {be} {wrong.get(kind, 'not what is expected')}", _SEND)


_KINDS = {
    dict: "an object",
    list: "a list",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def docs_page(schema: dict[str, Any]) -> str:
    """The OpenAPI description as a page that loads nothing and runs nothing."""
    parts = []
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            parts.append(f"<h2><code>{method.upper()} {path}</code></h2>")
            parts.append(f"<p>{escape(about['description'])}")
            if body := about.get("requestBody"):
                inner = body["content"]["application/json"]["schema"]
                fields = inner["properties"].items()
                parts.append(_table((name, field["description"]) for name, field in fields))
                parts.append(f"<pre>{escape(json.dumps(inner['example']))}</pre>")
            answers = about["responses"].items()
            parts.append(_table((status, answer["description"]) for status, answer in answers))
    title = escape(schema["info"]["summary"])
    return _PAGE.replace("TITLE", title).replace("CONTENT", "\n".join(parts))


def _table(rows: Any) -> str:
    cells = (f"<tr><td><code>{name}</code><td>{escape(about)}" for name, about in rows)
    return f"<table>{''.join(cells)}</table>"


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>EDO</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;
color:#222;background:#fff}table{border-collapse:collapse;margin:.5rem 0}td{vertical-align:top;
padding:.25rem .75rem .25rem 0;border-bottom:1px solid #ddd}pre{padding:.75rem;background:#f4f4f4;
overflow:auto}h2{margin-top:2rem;font-size:1.1rem}</style>
<h1>TITLE</h1><p>For machines: <a href="openapi.json">openapi.json</a>.
CONTENT</html>"""
