"""The process: who may ask, how requests arrive, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from edokit._errors import InputError
from edokit._version import __version__
from edokit.serve.app import PATIENCE, Metrics, make_app, refusal
from edokit.serve.members import About, MembersProcess, reported
from edokit.serve.worker import Limits, RefusedError, Worker

TOKEN = "EDO_SERVE_TOKEN"
"""The variable of the environment that holds the bearer token."""
_SHORTEST_TOKEN = 16
_OPEN = ("/health", "/docs", "/openapi.json")  # answered without a token
_LONGEST_HEAD = 1 << 16  # bytes of a request before its body
_GRACE = 60  # seconds in which clients must have taken their answers, once the server stops
_LINGER = 0.25  # seconds in which requests that are under way still arrive then


class Guard:
    """The outermost layer: who may ask, what is counted, and that no error escapes with its text.

    Parameters
    ----------
    app : FastAPI
    worker : Worker
    metrics : Metrics
    token : str or None
        The bearer token that requests must have.
    log : callable
        Takes one line on a failure of the server.
    """

    def __init__(
        self,
        app: FastAPI,
        worker: Worker,
        metrics: Metrics,
        token: str | None,
        log: Callable[[str], None],
    ) -> None:
        self._app, self._worker, self._metrics, self._log = app, worker, metrics, log
        self._expected = None if token is None else f"bearer {token}".encode()
        self._paths = {getattr(route, "path", "") for route in app.routes}

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
            self._admit(scope)
            if path == "/predict" and scope["method"] == "POST":
                # Straight to it: the layers between cost as much as all the rest of a request.
                response = await self._app.state.predict(Request(scope, receive))
                await response(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        except RefusedError as error:
            await refusal(error)(scope, receive, sending)
        except Exception as error:
            self._log(str(reported(error)))
            if not status:
                failed = RefusedError(500, "the server failed on this request", "see its log")
                await refusal(failed)(scope, receive, sending)
        finally:
            self._metrics.requests.labels(path, status or 499).inc()
            if path == "/predict":
                self._metrics.seconds.observe(time.perf_counter() - start)

    def _admit(self, scope: Any) -> None:
        headers = dict(scope["headers"])
        if self._expected is None:
            # Pages of other sites may make a browser ask this machine under a name of theirs.
            host = headers.get(b"host", b"").decode("latin-1")
            if not _is_loopback(_hostname(host)):
                raise RefusedError(
                    421,
                    "the host of the request is not this machine",
                    f"ask 127.0.0.1 or localhost, or set {TOKEN}",
                )
        elif scope["path"] not in _OPEN:
            given = headers.get(b"authorization", b"")
            scheme, _, token = given.partition(b" ")
            if not hmac.compare_digest(scheme.lower() + b" " + token.strip(), self._expected):
                raise RefusedError(
                    401,
                    "the bearer token is missing or wrong",
                    "send the header authorization: Bearer TOKEN",
                    www_authenticate="Bearer",
                )


class _Protocol(HttpToolsProtocol):
    """HTTP with limits on the size and the time of a request's head."""

    _size = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_head()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._has_head()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._late is not None:
            self._size += len(data)
            if self._size > _LONGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """One clear message, as JSON."""
        body = b'{"error":"this is not an HTTP request that can be read"}'
        head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _await_head(self) -> None:
        self._has_head()
        self._late = self.loop.call_later(PATIENCE, self.transport.close)

    def _has_head(self) -> None:
        self._size = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Server(uvicorn.Server):
    """Stops on SIGTERM and SIGINT with what is under way answered, and returns."""

    def __init__(self, config: uvicorn.Config, worker: Worker) -> None:
        super().__init__(config)
        self._worker = worker

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        stops = (signal.SIGTERM, signal.SIGINT)
        before = {stop: signal.signal(stop, self.handle_exit) for stop in stops}
        try:
            yield
        finally:
            for stop, handler in before.items():
                signal.signal(stop, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        # Requests on open connections still arrive; their answers close the connection.
        self._worker.drain()
        await asyncio.sleep(_LINGER)
        await super().shutdown(sockets)


def serve(
    bundle: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    device: str | None = None,
    trust: Sequence[str] = (),
    limits: Limits | None = None,
    token: str | None = None,
    ready: Callable[[About, str], None] = lambda about, url: None,
    log: Callable[[str], None] = lambda line: None,
) -> None:
    """Answer requests until SIGTERM or SIGINT; then finish those under way and return.

    Parameters
    ----------
    bundle : str or Path
        The folder of a bundle.
    host : str, default="127.0.0.1"
        Where to listen; anywhere but on loopback a token is needed.
    port : int, default=8000
        0 chooses a free one.
    device : str, default=None
        Where members compute, e.g. "cuda".
    trust : sequence of str, default=()
        As in `Bundle.load`.
    limits : Limits, default=None
    token : str, default=None
        The bearer token that requests must have.
    ready : callable
        Called with what is known of the bundle and with the address once the members are loaded.
    log : callable
        Takes each line of the log.

    Raises
    ------
    InputError
        If the address can't be used, a token is missing, or the bundle can't be loaded.
    """
    limits = limits or Limits()
    listening, url = _listen(host, port, token)
    _log_without_details(log)
    members = MembersProcess(bundle, device=device, trust=trust, max_length=limits.max_length)
    metrics = Metrics(lambda: members.pid)
    worker = Worker(members, limits, metrics.observe_batch)

    def settled() -> None:
        if worker.about is None or worker.failure is not None:
            server.should_exit = True
            return
        metrics.model.labels(worker.about.version, __version__).set(1)
        ready(worker.about, url)

    app = make_app(worker, limits, metrics, settled)
    config = uvicorn.Config(
        Guard(app, worker, metrics, token, log),
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Server(config, worker)
    try:
        server.run(sockets=[listening])
        failure = worker.failure  # what follows ends the members, too
    finally:
        members.stop()
    if failure is not None:
        raise failure


def _listen(host: str, port: int, token: str | None) -> tuple[socket.socket, str]:
    """A socket that listens, and its address; refused without a token unless it is loopback."""
    if token is not None and not re.fullmatch(rf"[!-~]{{{_SHORTEST_TOKEN},}}", token):
        raise InputError(
            f"the token in {TOKEN} is not {_SHORTEST_TOKEN} or more ASCII letters, digits and signs"
            " without blanks",
            "make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        if token is None and not _is_loopback(str(address[0])):
            raise InputError(
                f"host={host!r} is open to other machines, and no token protects it",
                f"set {TOKEN} in the environment, or leave the host out to listen on 127.0.0.1",
                parameters=("host",),
            )
        with contextlib.ExitStack() as unless_it_listens:
            listening = unless_it_listens.enter_context(socket.socket(family, kind, protocol))
            if sys.platform != "win32":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(2048)
            unless_it_listens.pop_all()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"can't listen on host={host!r}, port={port}: {reason}",
            "choose another port or host",
            parameters=("host", "port"),
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return listening, f"http://{shown}:{listening.getsockname()[1]}"


@lru_cache(64)
def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(host: str) -> str:
    """The name in a Host header: ``localhost:8000``, ``[::1]:8000``."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _log_without_details(log: Callable[[str], None]) -> None:
    """Log lines of the libraries in short: what follows their first line may quote a text."""

    class Short(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log(record.getMessage().strip().partition("\n")[0])

    for name in ("uvicorn", "asyncio", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Short(logging.WARNING)], False
