"""Pipelined requests are answered in order, and take no memory while they wait."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from functools import partial
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn
from serve_soak import Server, leave_unread, pipeline
from uvicorn.server import ServerState

from edokit.serve import server as server_module
from edokit.serve.server import _Log, _Protocol

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
MEGABYTE = 1 << 20
LONG = 64 * MEGABYTE  # bytes of an answer


@linux
def test_pipelined_requests_take_no_memory(server: Server) -> None:
    pipeline(server, 200, 1)  # what the first requests load does not count
    flood = pipeline(server, 12_000, 1)
    assert flood.answers == 12_000
    assert flood.growth < 8 * MEGABYTE
    assert flood.health


@linux
@pytest.mark.slow
@pytest.mark.parametrize("connections", [1, 8])
def test_200_000_pipelined_requests_take_no_memory(
    connections: int, bundle: Path, tmp_path: Path
) -> None:
    with Server(bundle, tmp_path) as server:
        pipeline(server, 200, 1)
        flood = pipeline(server, 200_000, connections)
        assert flood.answers == 200_000
        assert flood.growth < 32 * MEGABYTE
        assert flood.health
        assert httpx.get(f"{server.url}/health").json()["status"] == "ready"
        assert server.written().count("\n") < 20


async def echo(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
    """Answers with the path and the body, in two parts and not at once."""
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await asyncio.sleep(0)
    content = scope["path"].encode() + b"=" + body + b";"
    headers = [(b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content[:2], "more_body": True})
    await send({"type": "http.response.body", "body": content[2:]})


async def answers(parts: list[bytes], seconds: float = 0.0) -> bytes:
    """All that `echo` answers behind our protocol to bytes that arrive in parts."""
    config = uvicorn.Config(echo, log_config=None, ws="none", lifespan="off")
    protocol = partial(_Protocol, config, ServerState(), {})
    listening = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(seconds)
    received = await reader.read()
    writer.close()
    listening.close()
    return received


BODIES = {
    "a": b"",
    "b": b"x\n\n\r\n\r\ny",
    "c": b"\n" * 3000,
    "d": b"{}",
    "e": b"GET / HTTP/1.1\r\n\r\n",
}


def posted(path: str, body: bytes, last: bool) -> bytes:
    head = f"POST /{path} HTTP/1.1\r\nhost: localhost\r\n"
    if last:
        head += "connection: close\r\n"
    if path == "d":
        chunk = b"%x\r\n%b\r\n" % (len(body), body)
        return head.encode() + b"transfer-encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("size", [1, 3, 100, 511, 10**6])
def test_requests_are_answered_in_order_wherever_their_bytes_are_cut(size: int) -> None:
    paths = [*BODIES] * 3
    content = b"".join(
        posted(path, BODIES[path], last=number == len(paths))
        for number, path in enumerate(paths, 1)
    )
    if size == 1:
        content = content[-400:]  # byte by byte, the last requests are enough
        content = content[content.index(b"POST ") :]
    cut = [content[start : start + size] for start in range(0, len(content), size)]
    received = asyncio.run(answers(cut))
    wanted = b"".join(f"/{path}=".encode() + BODIES[path] + b";" for path in paths)
    found = b"".join(
        answer.partition(b"\r\n\r\n")[2] for answer in received.split(b"HTTP/1.1 200 OK")[1:]
    )
    assert found == wanted[-len(found) :]
    assert size == 1 or found == wanted


def test_a_pipelined_request_that_never_ends_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT", 0.3)
    whole = posted("a", b"", last=False)
    received = asyncio.run(answers([whole + whole[:20]]))
    assert received.count(b"HTTP/1.1 200 ") == 1
    assert received.count(b"HTTP/1.1 408 ") == 1


async def leave_unanswered(content: bytes) -> None:
    """Send requests to an application that does not answer the first."""
    is_asked = asyncio.Event()
    may_answer = asyncio.Event()

    async def answer_later(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        is_asked.set()
        await may_answer.wait()

    config = uvicorn.Config(answer_later, log_config=None, ws="none", lifespan="off")
    protocol = partial(_Protocol, config, ServerState(), {})
    listening = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    writer.write(content)
    await is_asked.wait()
    await asyncio.sleep(0.3)  # the server could read on
    writer.transport.abort()
    listening.close()


@pytest.mark.parametrize("body", [b"", b"x" * 100, b"\n\n" * 2000])
def test_at_most_512_bytes_and_one_request_are_parsed_ahead(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = posted("a", body, last=False)
    counts: list[int] = []
    largest: list[int] = []
    parse = _Protocol._parse

    def parse_and_count(protocol: _Protocol) -> None:
        largest.append(len(protocol._waiting))
        parse(protocol)
        counts.append(len(protocol._unanswered))

    monkeypatch.setattr(_Protocol, "_parse", parse_and_count)
    content = whole * (8 * MEGABYTE // len(whole))
    asyncio.run(leave_unanswered(content))
    # One is being answered.
    assert 1 <= max(counts) <= 1 + 512 // len(whole) + 1
    # What one read gives, and the end of a request that the read before it began.
    assert max(largest) <= 256 * 1024 + len(whole)


async def send_long_answer(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
    """Answers with more than the buffers of the operating system hold."""
    headers = [(b"content-length", b"%d" % LONG)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": bytes(LONG)})


async def read_slowly(
    first_pause: float, state: ServerState, loop_seconds: float = 0.02
) -> tuple[int, bool]:
    """Bytes of a long answer that a client got, and whether the server let go of the client.

    The client waits before it reads, at most until it is cut off, and between reads.
    """
    config = uvicorn.Config(send_long_answer, log_config=None, ws="none", lifespan="off")
    protocol = partial(_Protocol, config, state, {})
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(protocol, "127.0.0.1", 0)
    with socket.socket() as line:
        line.setblocking(False)
        await loop.sock_connect(line, listening.sockets[0].getsockname())
        request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        await loop.sock_sendall(line, request)
        while not state.connections:
            await asyncio.sleep(0.01)
        pause_end = loop.time() + first_pause
        while state.connections and loop.time() < pause_end:
            await asyncio.sleep(0.01)
        is_released = not state.connections
        size = 0
        try:
            while received := await loop.sock_recv(line, 1 << 20):
                size += len(received)
                await asyncio.sleep(loop_seconds)
        except ConnectionResetError:
            pass
    listening.close()
    return size, is_released


def test_a_client_that_does_not_take_its_answer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT", 0.3)
    size, is_released = asyncio.run(read_slowly(60.0, ServerState()))
    assert is_released
    assert size < LONG


def test_a_client_that_takes_its_answer_slowly_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT", 30.0)
    size, is_released = asyncio.run(read_slowly(0.5, ServerState()))
    assert not is_released
    assert size > LONG


@linux
@pytest.mark.slow
def test_clients_that_never_read_lose_their_connections(bundle: Path, tmp_path: Path) -> None:
    """Behind the command, with its own deadline of 20 seconds."""
    with Server(bundle, tmp_path) as server:
        unread = leave_unread(server, 20, 90)
        assert unread.cut_off == 20
        assert unread.growth < 32 * MEGABYTE
        assert httpx.get(f"{server.url}/health").json()["status"] == "ready"


def test_a_line_of_the_log_that_repeats_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    log = _Log(lines.append)
    for _ in range(5000):
        log("Exceeded concurrency limit.")
    log("another line")
    monkeypatch.setattr(server_module, "_REPEAT_AFTER", 0.0)
    log("Exceeded concurrency limit.")
    while len(lines) < 3:
        time.sleep(0.01)
    assert lines == [
        "Exceeded concurrency limit.",
        "another line",
        "Exceeded concurrency limit. (and 4,999 times before)",
    ]
