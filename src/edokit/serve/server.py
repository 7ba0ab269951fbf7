"""The process: where it listens, how requests arrive, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import re
import signal
import socket
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from edokit._errors import InputError, is_loopback, option
from edokit.serve.access_log import AccessLog
from edokit.serve.app import TOKEN, App
from edokit.serve.batching import Answerer, Batcher, Limits, without_texts
from edokit.serve.requests import About

if TYPE_CHECKING:
    from edokit.ensemble.escalation import Against
    from edokit.members.familiarity import UnfamiliarPolicy

REQUEST_TIMEOUT = 20.0  # seconds for a request to arrive, and for its answer to be taken
_SHORTEST_TOKEN = 16
_LONGEST_HEAD = 1 << 16  # bytes of a request around its body
_SHUTDOWN_TIMEOUT = 60  # seconds for clients to take their answers once the server stops
_SHUTDOWN_DELAY = 0.25  # seconds for requests under way to arrive before it stops
_MAX_CONNECTIONS = 512
_SPARE_CONNECTIONS = 64  # beyond these, on which only /health is answered
_SMALLEST_PART = 512  # least bytes that are parsed at once; a part ends at an empty line
_EMPTY_LINE = re.compile(rb"\n\r?\n")
_REPEAT_AFTER = 60.0  # seconds after which a line of the log may be repeated
_MOST_LINES = 100  # different lines of the log that are remembered


class _Flow(FlowControl):
    """Reads nothing from a connection while pipelined requests of it wait."""

    has_waiting_requests = False

    def resume_reading(self) -> None:
        """Resume, as uvicorn asks for after each answer, unless requests still wait."""
        if not self.has_waiting_requests:
            super().resume_reading()


class _Protocol(HttpToolsProtocol):
    """HTTP with limits on time, head and pipelined requests of a connection: uvicorn has none.

    A client that does not take an answer before a deadline loses the connection. What fits into the
    buffers of the operating system counts as taken.

    The parser gets the bytes of one request at a time. Further (pipelined) requests wait as bytes,
    at most one read from the socket, and the socket is not read until they are parsed. Left to
    uvicorn, all pipelined requests would be parsed and queued as fast as a client sends them.
    """

    _head_size = 0  # bytes of the request around its body
    _deadline: asyncio.TimerHandle | None = None  # of a request
    _answer_deadline: asyncio.TimerHandle | None = None
    _waiting = b""  # bytes that were received, of which those before _position were parsed
    _position = 0
    _is_inside_request = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Requests whose heads were parsed and that are not answered, in their order.
        self._unanswered: deque[RequestResponseCycle] = deque()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request; refuse the connection if there are too many."""
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        # pause_writing is called whenever bytes wait for the client, resume_writing when none do.
        transport.set_write_buffer_limits(high=0)
        self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self._expire)
        if self.limit_concurrency and len(self.connections) >= self.limit_concurrency:
            self.connections.discard(self)  # else uvicorn refuses other connections, too
            self._refuse(
                "503 Service Unavailable", "too many connections are open", code="busy-server"
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all unanswered requests that their client has gone."""
        self._finish_request()
        self._stop_answer_deadline()
        self._waiting = b""
        super().connection_lost(exc)
        # uvicorn tells the last request alone; the others would go on to write.
        for request in self._unanswered:
            request.disconnected = True
            request.message_event.set()
        self._unanswered.clear()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes, and parse what may be parsed."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self._expire)
        self._waiting = self._waiting[self._position :] + data
        self._position = 0
        self._parse()

    def pause_writing(self) -> None:
        """Start the deadline for the client to take its answer."""
        super().pause_writing()
        # Also after close(), which waits for the client to take what is left.
        if self._answer_deadline is None:
            self._answer_deadline = self.loop.call_later(REQUEST_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has taken everything: stop that deadline."""
        super().resume_writing()
        self._stop_answer_deadline()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._is_inside_request = True
        if self._deadline is None:  # its first bytes came with the request before it
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self._expire)

    def on_headers_complete(self) -> None:
        """Its head is complete: it counts as unanswered."""
        super().on_headers_complete()
        self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Leave the body out of the size of the head, which is limited."""
        super().on_body(body)
        self._head_size -= len(body)

    def on_message_complete(self) -> None:
        """A request has arrived."""
        super().on_message_complete()
        self._is_inside_request = False
        self._finish_request()

    def on_response_complete(self) -> None:
        """Parse the next request that waits."""
        if self._unanswered:  # a lost connection has none
            self._unanswered.popleft()
        super().on_response_complete()
        if self._waiting:
            self._parse()

    def send_400_response(self, msg: str) -> None:
        """One clear message, as JSON."""
        self._refuse(
            "400 Bad Request",
            "this is not an HTTP request that can be read",
            code="invalid-request",
        )

    def _parse(self) -> None:
        """Parse what was received, up to the end of the first request that is not answered."""
        while self._waiting and self._may_parse():
            # Every head ends in an empty line, so that a part ends within one request of its
            # first bytes. Bodies may hold any number of empty lines: parts are not too small.
            line = _EMPTY_LINE.search(self._waiting, self._position + _SMALLEST_PART)
            stop = len(self._waiting) if line is None else line.end()
            part = self._waiting[self._position : stop]
            self._position = stop
            if stop == len(self._waiting):
                self._waiting = b""
                self._position = 0
            self._head_size += len(part)
            super().data_received(part)
            if self._head_size > _LONGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("")
        if self.transport.is_closing():
            self._waiting = b""
        self.flow.has_waiting_requests = bool(self._waiting)
        if self._waiting:
            self.flow.pause_reading()
        elif not self._unanswered:
            self.flow.resume_reading()

    def _may_parse(self) -> bool:
        """Whether the parser may get more bytes: those of one unanswered request at a time."""
        if self.transport.is_closing():
            return False
        if self._is_inside_request:
            return len(self._unanswered) <= 1
        return not self._unanswered

    def _finish_request(self) -> None:
        """Forget the size and the deadline of a request that has arrived, or never will."""
        self._head_size = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_answer_deadline(self) -> None:
        if self._answer_deadline is not None:
            self._answer_deadline.cancel()
            self._answer_deadline = None

    def _expire(self) -> None:
        """Refuse a request that did not arrive in time."""
        if self.flow.read_paused:  # by us, while an earlier request is answered
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self._expire)
        elif not self.transport.is_closing():
            message = f"the request did not arrive in {REQUEST_TIMEOUT:g} seconds"
            self._refuse("408 Request Timeout", message, code="slow-request")

    def _refuse(self, status: str, message: str, *, code: str) -> None:
        """Answer without the application, and close the connection."""
        body = f'{{"error":"{message}","code":"{code}"}}'
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write((head + body).encode())
        self.transport.close()


class _Server(uvicorn.Server):
    """Loads the bundle once it listens; stops on SIGTERM and SIGINT with all requests answered."""

    def __init__(
        self, config: uvicorn.Config, batcher: Batcher, ready: Callable[[About], None]
    ) -> None:
        super().__init__(config)
        self._batcher = batcher
        self._ready = ready
        self.failure: Exception | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, which would raise the signal again at the end."""
        stops = (signal.SIGTERM, signal.SIGINT)
        handlers = {stop: signal.signal(stop, self.handle_exit) for stop in stops}
        try:
            yield
        finally:
            for stop, handler in handlers.items():
                signal.signal(stop, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and start to load the bundle."""
        await super().startup(sockets)
        self._loading = asyncio.create_task(self._load())

    async def _load(self) -> None:
        """Load the bundle; an error ends the server."""
        try:
            self._ready(await self._batcher.start())
        except Exception as error:
            self.failure = without_texts(error)
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no further connections, and answer the requests on the open ones."""
        for server in self.servers:
            server.close()
        # Requests on open connections still arrive; their answers close the connection.
        self._batcher.stopping = True
        await asyncio.sleep(_SHUTDOWN_DELAY)
        await super().shutdown(sockets)


class _Log:
    """Writes lines in a thread, so that a pipe that nobody reads does not stop the server.

    A line that repeats is written once a minute at most, with how often it was left out.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._lines: Queue[str] = Queue(1000)
        self._write = write
        self._lock = threading.Lock()
        self._written_at: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def __call__(self, line: str) -> None:
        current_time = time.monotonic()
        with self._lock:
            written_at = self._written_at.get(line)
            if written_at is not None and current_time - written_at < _REPEAT_AFTER:
                self._left_out[line] += 1
                return
            if len(self._written_at) >= _MOST_LINES:
                self._written_at.clear()
                self._left_out.clear()
            self._written_at[line] = current_time
            left_out = self._left_out.pop(line, 0)
        if left_out:
            line = f"{line} (and {left_out:,} times before)"
        with contextlib.suppress(Full):  # rather lose a line than wait
            self._lines.put_nowait(line)

    def _run(self) -> None:
        """Write the waiting lines, one after the other."""
        while True:
            self._write(self._lines.get())


def serve(
    bundle: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    device: str | None = None,
    trust: Sequence[str] = (),
    limits: Limits | None = None,
    token: str | None = None,
    show_people: bool = False,
    unfamiliar: UnfamiliarPolicy | None = None,
    escalate: float | str | None = None,
    against: Against = "majority",
    page: bool = True,
    access_log: str | Path | None = None,
    ready: Callable[[About, str], None] = lambda about, url: None,
    log: Callable[[str], object] = lambda line: None,
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
        What is refused; None: the defaults.
    token : str, default=None
        The bearer token that requests must have.
    show_people : bool, default=False
        Let ``GET /people`` list the names of annotators beside their attributes.
    unfamiliar : {"answer", "constant", "people"}, default=None
        What texts get that are unlike those of the fit, as in `Bundle.describe_parts`.
    escalate : float or str, default=None
        Hand items to people, so that at most this share of the answers would be overruled, as in
        `EDOEnsemble.escalation`. Answers for annotators and panels are not handed over.
    against : {"majority", "annotator"}, default="majority"
        Who overrules.
    page : bool, default=True
        Answer ``GET /`` with a page to try it.
    access_log : str or Path, default=None
        Append a line of JSON for each request to this file, without texts; ``-`` for stdout.
    ready : callable
        Called with what is known of the bundle and with the address once the members are loaded.
    log : callable
        Takes each line of the log, in a thread of its own.

    Raises
    ------
    InputError
        If the address can't be used, a token is missing, or the bundle can't be loaded.
    """
    limits = limits or Limits()
    access = None
    if access_log is not None:
        access = AccessLog(access_log)
    listening, url = _listen(host, port, token)
    log_queue = _Log(log)
    _log_without_details(log_queue)

    def load() -> Answerer:
        # Threads that wait for each other must not spin: on a core that others use, too, they
        # would take turns with those they wait for. Read by OpenMP when the members load it.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        from edokit.bundle import Bundle

        loaded_bundle = Bundle.load(
            bundle, device=device, trust=trust, max_length=limits.max_length
        )
        escalation = None
        if escalate is not None:
            escalation = loaded_bundle.ensemble.escalation(escalate, against)
        return Answerer(loaded_bundle, unfamiliar, escalation)

    def announce(about: About) -> None:
        # Else the collector goes through all loaded objects again and again, and requests wait.
        gc.freeze()
        # Warnings about a request may name people, and nobody reads them.
        warnings.simplefilter("ignore")
        ready(about, url)

    batcher = Batcher(load, limits)

    def is_full() -> bool:
        return len(server.server_state.connections) > _MAX_CONNECTIONS

    app = App(
        batcher,
        limits,
        token,
        log_queue,
        is_full,
        show_people=show_people,
        page=page,
        access=access,
    )
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS + _SPARE_CONNECTIONS,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
    )
    server = _Server(config, batcher, announce)
    try:
        with warnings.catch_warnings():
            server.run(sockets=[listening])
    finally:
        gc.unfreeze()
        batcher.close()
        if access is not None:
            access.flush()
    if server.failure is not None:
        raise server.failure


def _listen(host: str, port: int, token: str | None) -> tuple[socket.socket, str]:
    """A socket that listens, and its URL; other machines may connect only where a token is set."""
    if token is not None and not re.fullmatch(rf"[!-~]{{{_SHORTEST_TOKEN},}}", token):
        raise InputError(
            f"the token in {TOKEN} is not {_SHORTEST_TOKEN} or more ASCII letters, digits and signs"
            " without blanks",
            "make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            code="invalid-key",
        )
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = addresses[0]
        if token is None and not is_loopback(str(address[0])):
            raise InputError(
                f"{option('host', host)} is open to other machines, and no token protects it",
                f"set {TOKEN} in the environment, or leave the host out to listen on 127.0.0.1",
                code="missing-token",
            )
        dual_stack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listening = socket.create_server(
            address, family=family, backlog=2048, dualstack_ipv6=dual_stack
        )
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"can't listen on {option('host', host)}, {option('port', port)}:"
            f" {reason.partition(' (while')[0]}",
            "choose another port",
            code="busy-port",
        ) from error
    name = host
    if ":" in host:  # an IPv6 address
        name = f"[{host}]"
    return listening, f"http://{name}:{listening.getsockname()[1]}"


def _log_without_details(log: _Log) -> None:
    """Log the first line of each message of the libraries: further lines may quote a text."""

    class FirstLines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log(record.getMessage().strip().partition("\n")[0])

    for name in ("uvicorn", "asyncio", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers = [FirstLines(logging.WARNING)]
        logger.propagate = False
