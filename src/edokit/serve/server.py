"""The process: where it listens, how requests arrive, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from edokit._errors import InputError, is_loopback
from edokit.serve.app import TOKEN, App
from edokit.serve.members import About, Limits, MembersProcess, Worker

PATIENCE = 20.0
"""Seconds in which the head of a request, and then its body, must have arrived."""
_SHORTEST_TOKEN = 16
_LONGEST_HEAD = 1 << 16  # bytes of a request around its body
_GRACE = 60  # seconds in which clients must have taken their answers, once the server stops
_LINGER = 0.25  # seconds in which requests that are under way still arrive then


class _Protocol(HttpToolsProtocol):
    """HTTP with limits on what uvicorn waits for (a head, trailers, the end of a request) and on
    how many connections are open."""

    _size = 0  # bytes that arrived without a part of a body
    _in_body = False
    _body_due = False  # whether a head arrived, but not yet all of its body
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) == self.limit_concurrency:
            self.connections.discard(self)  # else uvicorn refuses the others, too
            self._refuse("503 Service Unavailable", "too many connections are open")
        self._wait(PATIENCE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait(PATIENCE)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._body_due = True
        self._wait(PATIENCE)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._in_body = True

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._body_due = False
        self._wait(None)

    def data_received(self, data: bytes) -> None:
        self._in_body = False
        super().data_received(data)
        self._size = 0 if self._in_body or self._late is None else self._size + len(data)
        if self._size > _LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("")
        elif self._late is None and self.cycle is not None and self.cycle.response_complete:
            self._wait(PATIENCE)  # what came after an answer has ended uvicorn's own wait

    def send_400_response(self, msg: str) -> None:
        """One clear message, as JSON."""
        self._refuse("400 Bad Request", "this is not an HTTP request that can be read")

    def _refuse(self, status: str, message: str) -> None:
        body = f'{{"error":"{message}"}}'
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write((head + body).encode())
        self.transport.close()

    def _wait(self, seconds: float | None) -> None:
        """Close the connection unless the next part of a request arrives; None: nothing is due."""
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(seconds, self._give_up) if seconds else None

    def _give_up(self) -> None:
        if self.flow.read_paused:  # by us, while an earlier request is answered
            self._wait(PATIENCE)
        elif self._body_due and not self.cycle.response_started:
            self.scope["edo.late"] = True  # type: ignore[typeddict-unknown-key]
            message = f"the request did not arrive in {PATIENCE:g} seconds"
            self._refuse("408 Request Timeout", message)
        else:
            self.transport.close()


class _Server(uvicorn.Server):
    """Stops on SIGTERM and SIGINT with what is under way answered, and returns."""

    def __init__(self, config: uvicorn.Config, worker: Worker) -> None:
        super().__init__(config)
        self._worker = worker

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, which would raise the signal again at the end."""
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
    worker = Worker(members, limits)

    def settled() -> None:
        if worker.about is None or worker.failure is not None:
            server.should_exit = True
        else:
            ready(worker.about, url)

    config = uvicorn.Config(
        App(worker, limits, settled, token, log),
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.max_connections + 1,
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Server(config, worker)
    gc.freeze()  # else what was imported is gone through again and again, while requests wait
    try:
        server.run(sockets=[listening])
        failure = worker.failure  # what follows ends the members, too
    finally:
        gc.unfreeze()
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
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        if token is None and not is_loopback(str(address[0])):
            raise InputError(
                f"host={host!r} is open to other machines, and no token protects it",
                f"set {TOKEN} in the environment, or leave the host out to listen on 127.0.0.1",
                parameters=("host",),
            )
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listening = socket.create_server(address, family=family, backlog=2048, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"can't listen on host={host!r}, port={port}: {reason.partition(' (while')[0]}",
            "choose another port",
            parameters=("host", "port"),
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return listening, f"http://{shown}:{listening.getsockname()[1]}"


def _log_without_details(log: Callable[[str], None]) -> None:
    """Log lines of the libraries in short: what follows their first line may quote a text."""

    class Short(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log(record.getMessage().strip().partition("\n")[0])

    for name in ("uvicorn", "asyncio", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Short(logging.WARNING)], False
