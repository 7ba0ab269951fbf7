"""A bundle over HTTP: the answers of Python and of the command line, and one clear message each
for what can't be answered; asked by a real client, of a server that is a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import numpy as np
import pandas as pd
import pytest
import uvicorn
from fastapi import Request
from serve_soak import PLANTED, Server, in_python, nonsense, same, under_load
from uvicorn.server import ServerState

import edokit
from commands import edo
from edokit import EDOError, Panel, Scale
from edokit.ensemble.pooled import Pooled
from edokit.rows import Rows
from edokit.serve import Limits
from edokit.serve import server as server_module
from edokit.serve.app import App, BodyReader, _is_this_machine
from edokit.serve.batching import Answerer, Batcher
from edokit.serve.requests import About, Question, RefusedError, read_request, request_model
from edokit.serve.server import _listen, _Log, _Protocol
from tests.errors import raises_code

if sys.platform == "linux":
    import fcntl
    import termios

TEXTS = ["how kind of you", "what a rude reply", "the bus was late again"]


def post(server: Server, body: Any, **headers: str) -> httpx.Response:
    how: dict[str, Any] = {"json": body} if not isinstance(body, bytes) else {"content": body}
    kind = {"content-type": "application/json"}
    return httpx.post(f"{server.url}/predict", **how, headers={**kind, **headers}, timeout=600)


def test_the_answers_are_those_of_python(server: Server, bundle: Path) -> None:
    loaded: Any = edokit.load(bundle)
    found = post(server, {"texts": TEXTS}).json()
    assert (found["version"], found["classes"]) == (loaded.version, list(loaded.classes))
    wanted = loaded.describe(TEXTS)
    each = found["predictions"]
    assert [list(one["probabilities"].values()) for one in each] == wanted.probabilities.tolist()
    assert [one["entropy"] for one in each] == wanted.entropy.tolist()
    assert [one["spread"] for one in each] == wanted.spread.tolist()
    assert [one["label"] for one in each] == list(map(str, loaded.predict(TEXTS)))


@pytest.mark.parametrize("token", [None, "a-token-that-nobody-guesses"])
def test_the_line_printed_when_ready_can_be_copied(
    token: str | None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = request.getfixturevalue("server" if token is None else "guarded").url
    about = About("1", ["no", "yes"], frozenset(), (), None)
    monkeypatch.setattr("edokit.cli.serve.run", lambda *_, ready, **options: ready(about, url))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal, which breaks longer lines
    if token is not None:
        monkeypatch.setenv("EDO_SERVE_TOKEN", token)
    line = edo("serve", "bundle").stdout.splitlines()[-1].replace("$EDO_SERVE_TOKEN", token or "")
    name, address, *flags = shlex.split(line)
    values = dict(zip(flags[1::2], flags[::2], strict=True))
    headers = dict(value.split(": ") for value, flag in values.items() if flag == "-H")
    assert name == "curl"
    assert httpx.post(address, content=flags[-1], headers=headers, timeout=60).status_code == 200


def test_the_answers_are_those_of_the_command_line(
    server: Server, bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    paths = ["--texts", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "found.parquet")]
    assert edo("predict", str(bundle), *paths)[0] == 0
    table = pd.read_parquet(tmp_path / "found.parquet")
    each = post(server, {"texts": TEXTS}).json()["predictions"]
    for name in ("entropy", "spread", "label"):
        assert [one[name] for one in each] == table[name].tolist()
    for name in each[0]["probabilities"]:
        assert [one["probabilities"][name] for one in each] == table[f"p_{name}"].tolist()


@pytest.mark.filterwarnings("ignore:the step for md was fitted on:edokit.EDOWarning")
def test_answers_of_annotators_of_a_panel_and_for_a_metric(server: Server, bundle: Path) -> None:
    loaded: Any = edokit.load(bundle)
    ann, ben = loaded.known_annotators[:2]
    whose = [[ann], [ben], [ann, ben]]
    asked: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"annotators": whose}, {"annotators": whose}),
        ({"panel": [ann, ben]}, {"panel": Panel((ann, ben))}),
        ({"for": "md"}, {"answer_for": "md"}),
    ]
    answers = []
    for fields, how in asked:
        each = post(server, {"texts": TEXTS, **fields}).json()["predictions"]
        answers.append([list(one["probabilities"].values()) for one in each])
        assert answers[-1] == loaded.predict_proba(TEXTS, **how).tolist()
        assert ("low" in each[0]) == ("panel" in fields)
    assert answers[0] != answers[1] != answers[2]


def test_answers_are_json_whatever_the_classes_are_called() -> None:
    names = ("100 %", 'so "so"')
    shares = np.array([[0.25, 0.75], [1.0, 1e-300]])
    pooled = Pooled(
        Rows.numbered(2),
        names,
        shares,
        spread=shares[:, 1],
        scale=Scale("ordinal", (1, 3)),
        low=shares,
        high=shares,
    )
    bundle: Any = SimpleNamespace(
        version="1",
        classes=names,
        scale=pooled.scale,
        known_annotators=(),
        ensemble=SimpleNamespace(fitted_=SimpleNamespace(answers=None), people_=None),
        members=SimpleNamespace(manifest={"data": {}}, endpoints=("http://localhost:1",)),
        describe=lambda *texts, **how: pooled,
    )
    first, second = Answerer(bundle)(Question(["a", "b"]))
    each = dict(zip(names, [0.25, 0.75], strict=True))
    assert first.pop("entropy") == pytest.approx(0.5623, abs=1e-4)
    assert first == {
        "probabilities": each,
        "spread": 0.75,
        "label": 'so "so"',
        "median": 'so "so"',
        "expected": 2.5,
        "at_least": {"100 %": 1.0, 'so "so"': 0.75},
        "low": each,
        "high": each,
    }
    assert (second["label"], second["median"], second["spread"]) == ("100 %", "100 %", 1e-300)


def test_clients_at_once_get_their_own_answers_from_shared_batches(
    server: Server, bundle: Path
) -> None:
    assert under_load(server, in_python(bundle), 300, clients=12) == {"right": 300}
    numbers = httpx.get(f"{server.url}/metrics").text
    texts = float(re.findall(r"^edo_batch_texts_sum (\S+)", numbers, re.MULTILINE)[0])
    batches = float(re.findall(r"^edo_batch_texts_count (\S+)", numbers, re.MULTILINE)[0])
    requests = float(re.findall(r'path="/predict",status="200"} (\S+)', numbers)[0])
    assert texts > requests > batches


def test_malformed_requests_disturb_nobody_and_leave_no_text(server: Server, bundle: Path) -> None:
    counts = nonsense(server, in_python(bundle), 1.0, seed=1)
    assert {"400", "422"} <= set(counts)
    numbers = httpx.get(f"{server.url}/metrics").text
    assert 'status="422"' in numbers
    for shown in (server.written(), numbers):
        assert "marmalade" not in shown
    assert server.process.poll() is None


def test_a_request_of_many_texts_is_answered_in_parts(server: Server, bundle: Path) -> None:
    texts = [f"{TEXTS[k % 3]} {k}" for k in range(200)]
    found = post(server, {"texts": texts}).json()["predictions"]
    assert same(found, in_python(bundle)(texts))


REFUSED: list[tuple[Any, int, str]] = [
    ({"texts": []}, 422, "texts: .* at least 1 item"),
    ({}, 422, "texts: field required"),
    ({"texts": PLANTED}, 422, "texts: .* valid array"),
    ([PLANTED], 422, "the body is not a JSON object"),
    ({"texts": [PLANTED, 7]}, 422, "text 2: .* valid string"),
    ({"texts": [PLANTED, None]}, 422, "text 2: .* valid string"),
    ({"texts": [PLANTED, " \n"]}, 422, "text 2 is empty"),
    ({"texts": [PLANTED, "x" * 100_001]}, 422, "text 2: .* at most 100000 characters"),
    (b'{"texts": ["a", "\\ud800"]}', 400, "invalid JSON"),
    ({"texts": [PLANTED], PLANTED: 1}, 422, "unknown field"),
    (b'{"texts": ["%b"], "texts": ["a"]}' % PLANTED.encode(), 422, "the key 'texts' twice"),
    ({"texts": [PLANTED] * 1025}, 413, "texts: .* at most 1024 items .* not 1025"),
    ({"texts": ["a"], "contexts": [PLANTED]}, 422, "trained on texts without contexts"),
    (
        {"texts": ["a", "b"], "annotators": [["Ann_0"]]},
        422,
        "2 texts, but 1 times a list of annotators",
    ),
    (
        {"texts": ["a"], "annotators": [["a", PLANTED]]},
        422,
        "annotator 1 of 2 of text 1 is unknown",
    ),
    ({"texts": ["a"], "annotators": [PLANTED]}, 422, "annotator 1: .* valid"),
    ({"texts": ["a"], "panel": PLANTED}, 422, "panel: must be a list of annotators, or levels"),
    ({"texts": ["a"], "panel": [PLANTED]}, 422, "annotator 1 of 1 of the panel is unknown"),
    ({"texts": ["a"], "for": PLANTED}, 422, "no answers for this metric"),
    (b'{"texts": ["%b"' % PLANTED.encode(), 400, "invalid JSON: .* line 1 column"),
    (b"\xff\xfe", 400, "invalid JSON"),
    (b"[" * 100_000, 400, "recursion limit"),
    (b"", 400, "invalid JSON"),
]


def test_where_nobody_is_known_it_is_said_what_to_do() -> None:
    about = About("1", ["no", "yes"], frozenset(), (), None)
    body = b'{"texts": ["a"], "panel": ["ann"]}'
    with raises_code("unknown-annotator", "0 annotators", kind=RefusedError):
        read_request(body, request_model(10, 100), about)


def test_messages_name_people_where_the_operator_allows_it() -> None:
    about = About("1", ["no", "yes"], frozenset(["ann"]), (), None)
    body = b'{"texts": ["a"], "panel": ["mira"]}'
    with pytest.raises(RefusedError) as hidden:
        read_request(body, request_model(10, 100), about)
    assert "'ann'" not in hidden.value.hint
    with pytest.raises(RefusedError) as shown:
        read_request(body, request_model(10, 100), about, show_people=True)
    assert "'ann'" in shown.value.hint


def test_bad_input_is_one_clear_message_that_quotes_nothing(server: Server) -> None:
    for body, status, message in REFUSED:
        answer = post(server, body)
        assert answer.status_code == status, message
        assert re.search(message, answer.json()["error"]), answer.text
        assert answer.json()["hint"]
        if "is unknown" in message:
            assert "ann-1" not in answer.text, "names are shown with --show-people alone"
        assert "marmalade" not in answer.text


@pytest.mark.parametrize(
    "start", ['{"texts":[', '{"texts":["a"],"x":[', '{"texts":["a"],"annotators":[[', "["]
)
@pytest.mark.parametrize("entry", ["1,", '{"a":1},'])
def test_four_megabytes_of_odd_json_are_one_short_refusal(start: str, entry: str) -> None:
    about = About("1", ["no", "yes"], frozenset(), (), None)
    body = (start + entry * (4 << 20))[: 4 << 20].encode()
    for ending in (b"", b"1]}"):
        with pytest.raises(RefusedError) as refused:
            read_request(body[: body.rindex(b",") + 1] + ending, request_model(1024, 100), about)
        assert len(refused.value.message) < 100


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory in /proc")
def test_odd_json_takes_bounded_memory(server: Server) -> None:
    def peak() -> int:
        lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    body = b'{"texts":["a"],"x":[' + b"[[]]," * 800_000 + b"1]}"
    before = peak()
    assert post(server, body).status_code == 422
    assert peak() - before < 150 * len(body)


def test_wrong_requests_are_refused_as_json(server: Server) -> None:
    kind = {"content-type": "application/json", "origin": "https://elsewhere.example"}
    wrong: list[tuple[str, str, dict[str, str], int]] = [
        ("POST", "/predict", {"content-type": "text/plain"}, 415),
        ("POST", "/predict", {"content-encoding": "gzip"}, 415),
        ("GET", "/predict", {}, 405),
        ("OPTIONS", "/predict", {"access-control-request-method": "POST"}, 405),
        ("GET", f"/{PLANTED}", {}, 404),
        ("POST", "/predict/", {}, 404),
        ("GET", "/health", {"host": "elsewhere.example"}, 421),
    ]
    for method, path, headers, status in wrong:
        how: dict[str, Any] = {"headers": {**kind, **headers}, "content": b"{}"}
        answer = httpx.request(method, server.url + path, **how)
        assert answer.status_code == status
        assert answer.json()["error"]
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("other", ["localhost", "elsewhere.example"])
def test_a_request_for_two_hosts_is_refused(server: Server, other: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        hosts = f"host: {other}\r\nhost: localhost\r\nconnection: close"
        line.sendall(f"GET /health HTTP/1.1\r\n{hosts}\r\n\r\n".encode())
        answer = line.makefile("rb").read()  # head and body may come one after the other
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"more than one header host" in answer


def test_a_body_that_another_protocol_is_asked_for_with_is_refused_for_that(server: Server) -> None:
    answer = post(server, {"texts": TEXTS}, connection="upgrade", upgrade="h2c")
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert "another protocol" in answer.json()["error"]


def test_health_and_openapi_need_no_token(server: Server) -> None:
    health = httpx.get(f"{server.url}/health")
    assert health.json() == {"status": "ready", "version": server.about["version"]}
    schema = httpx.get(f"{server.url}/openapi.json").json()
    body = schema["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    fields = {"texts", "contexts", "annotators", "panel", "for"}
    assert set(body["schema"]["properties"]) == fields
    # Every path may be refused for its host, and while too many connections are open.
    for path, methods in schema["paths"].items():
        (operation,) = methods.values()
        assert {"421", "503"} <= operation["responses"].keys(), path


def test_limits_are_kept_while_a_body_is_read(guarded: Server) -> None:
    token = {"authorization": "Bearer a-token-that-nobody-guesses"}
    assert "at most 3 items" in post(guarded, {"texts": list("abcd")}, **token).text
    assert "at most 50 characters" in post(guarded, {"texts": ["x" * 51]}, **token).text
    whole = json.dumps({"texts": ["x" * 40], "for": "y" * 2000}).encode()
    answers = [post(guarded, whole, **token)]
    kind = {"content-type": "application/json", **token}
    chunks = iter([whole[:500], whole[500:]])  # without a length, it is sent in chunks
    answers.append(httpx.post(f"{guarded.url}/predict", content=chunks, headers=kind))
    for answer in answers:
        assert answer.status_code == 413
        assert "more than 1000 bytes" in answer.json()["error"]


def test_endless_requests_are_not_read(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nx: " + b"x" * 70_000)
        assert line.recv(100).startswith(b"HTTP/1.1 400 ")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(
            b"GET /health HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        line.sendall(b"0\r\nx: " + b"x" * 70_000)  # what follows the body is no way around it
        with suppress(ConnectionResetError):
            while line.recv(1000):
                pass  # until the server closes the connection


def test_slow_requests_and_too_many_connections_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def run() -> list[bytes]:
        config = uvicorn.Config(application, ws="none", lifespan="off", limit_concurrency=3)
        config.load()
        protocol = partial(_Protocol, config, ServerState(), {})
        listening = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        address = listening.sockets[0].getsockname()
        lines = [await asyncio.open_connection(*address)]
        head = b"POST / HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n"
        lines[0][1].write(head + b"\r\n{")
        lines += [await asyncio.open_connection(*address) for _ in range(2)]
        answers = [await reader.read() for reader, _ in reversed(lines)]
        for _, writer in lines:
            writer.close()
        listening.close()
        return answers

    monkeypatch.setattr(server_module, "REQUEST_TIMEOUT", 0.3)
    refused, idle, slow = asyncio.run(run())
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"too many connections" in refused
    for late in (idle, slow):
        assert late.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive in 0.3 seconds" in late


@pytest.fixture(scope="module")
def unread(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, int]]:
    """A server whose errors go into a short pipe, and the end of it that nobody reads."""
    reading, writing = os.pipe()
    if sys.platform == "linux":
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writing, b"." * 4090)  # no room for a line
    folder = tmp_path_factory.mktemp("unread")
    with Server(bundle, folder, stderr=writing) as running:
        yield running, reading
    os.close(reading)
    os.close(writing)


def test_health_is_answered_beside_500_slow_connections(unread: tuple[Server, int]) -> None:
    server, _ = unread
    with contextlib.ExitStack() as open_lines:
        for _ in range(512):
            line = socket.create_connection(("127.0.0.1", server.port))
            open_lines.enter_context(line)
            line.sendall(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9")
        assert httpx.get(f"{server.url}/health").status_code == 200
        refused = post(server, {"texts": TEXTS})
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        assert "too many connections" in refused.json()["error"]


@pytest.mark.skipif(sys.platform != "linux", reason="sets the size of a pipe")
def test_a_full_pipe_of_errors_stops_neither_answers_nor_the_end(
    unread: tuple[Server, int],
) -> None:
    server, reading = unread
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
            line.sendall(b"nonsense\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.1 400 ")
    waiting = fcntl.ioctl(reading, termios.FIONREAD, bytes(4))
    assert int.from_bytes(waiting, sys.byteorder) == 4090
    assert post(server, {"texts": TEXTS}).status_code == 200
    assert server.stop() == 0


def test_bodies_of_requests_under_way_are_limited_together() -> None:
    async def run() -> None:
        scope = {"type": "http", "headers": [(b"content-type", b"application/json")]}
        read = BodyReader(10)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"0123456789"}

        async with contextlib.AsyncExitStack() as under_way:
            for _ in range(64):
                body = await under_way.enter_async_context(read(Request(scope, receive)))
                assert body == b"0123456789"
            with raises_code("busy-server", kind=RefusedError) as caught:
                await under_way.enter_async_context(read(Request(scope, receive)))
            assert caught.value.status == 503
        async with read(Request(scope, receive)):  # there is room again
            pass

    asyncio.run(run())


def test_a_question_that_fails_does_not_fail_those_of_its_batch() -> None:
    batches: list[list[str]] = []

    def answer(question: Question) -> Any:
        batches.append(question.texts)
        if "" in question.texts:
            raise EDOError("empty", code="missing-value")
        return question.texts

    async def run() -> None:
        answers: Any = answer
        answer.about = "loaded"  # type: ignore[attr-defined]
        batcher = Batcher(lambda: answers, Limits(max_batch=4))
        await batcher.start()
        texts = [["a"], ["b", "c"], [""], ["d"], ["e", "f", "g", "h", "i"]]
        asked = (batcher.ask(Question(part)) for part in texts)
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert found.pop(2).code == "missing-value"
        texts.pop(2)
        assert found == texts
        assert batches[0] == ["a", "b", "c", ""]
        assert batcher.waiting == 0
        batcher.close()

    asyncio.run(run())


def test_a_failure_is_logged_by_its_type_and_place_alone() -> None:
    async def fail(question: Question) -> None:
        raise RuntimeError(PLANTED)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(App(batcher, Limits(), None, lines.append))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/predict", json={"texts": [PLANTED]})

    about = About("1", ["no", "yes"], frozenset(), (), None)
    batcher: Any = SimpleNamespace(about=about, stopping=False, waiting=0, ask=fail)
    lines: list[str] = []
    answer = asyncio.run(ask())
    assert answer.status_code == 500
    (line,) = lines
    assert re.fullmatch(r"unexpected RuntimeError in line \d+ of test_serve\.py", line)
    assert "marmalade" not in answer.text


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    read = threading.Event()
    lines: list[str] = []
    log = _Log(lambda line: (read.wait(), lines.append(line)))
    for number in range(5000):
        log(str(number))
    read.set()
    while not lines:
        pass
    assert lines[0] == "0"


def test_a_token_is_asked_for_and_never_shown(guarded: Server) -> None:
    right = "Bearer a-token-that-nobody-guesses"
    for given in ("", "Bearer", "Bearer wrong", f"{right}x", right[7:], "Basic YTpi"):
        answer = post(guarded, {"texts": ["a"]}, authorization=given)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "nobody" not in answer.text
    assert httpx.get(f"{guarded.url}/health").status_code == 200
    assert httpx.get(f"{guarded.url}/metrics").status_code == 401
    numbers = httpx.get(f"{guarded.url}/metrics", headers={"authorization": right}).text
    assert 'status="401"' in numbers
    assert "nobody" not in numbers + guarded.written()


def test_a_full_queue_is_refused() -> None:
    async def run() -> None:
        batcher = Batcher(lambda: None, Limits(max_texts=3))
        question = Question(["a", "b", "c"])
        waiting = [asyncio.create_task(batcher.ask(question)) for _ in range(8)]
        await asyncio.sleep(0)
        with raises_code("busy-server", "24 texts", kind=RefusedError) as caught:
            await batcher.ask(question)
        assert (caught.value.status, caught.value.headers) == (503, {"retry-after": "1"})
        for task in waiting:
            task.cancel()
        batcher.close()

    asyncio.run(run())


def ask_at_once(
    server: Server, clients: int, body: Any, headers: dict[str, str]
) -> list[httpx.Response]:
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(post(server, body, **headers)))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def texts_at(server: Server, client: httpx.Client) -> tuple[float, float]:
    """The texts that wait for the members, and those that wait or were answered."""
    numbers = client.get(f"{server.url}/metrics").text
    waiting = float(re.findall(r"^edo_queue_texts (\S+)", numbers, re.MULTILINE)[0])
    answered = float(re.findall(r"^edo_batch_texts_sum (\S+)", numbers, re.MULTILINE)[0])
    return waiting, waiting + answered


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_what_is_under_way_is_answered_before_it_ends(bundle: Path, tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    body = {"texts": [PLANTED] * 500}

    def ask_six() -> None:
        answers[:] = ask_at_once(ending, 6, body, {})

    with Server(bundle, tmp_path, "--max-batch", "1") as ending:  # the slowest
        asking = threading.Thread(target=ask_six)
        asking.start()
        expected = 3000
        with httpx.Client(timeout=60) as client:
            while True:
                waiting, arrived = texts_at(ending, client)
                # All six requests have arrived, and two or more of them are under way.
                if arrived > expected - 500 and waiting > 1000:
                    break
                if arrived == expected and waiting == 0:  # it was too fast to be seen: ask again
                    asking.join()
                    asking = threading.Thread(target=ask_six)
                    asking.start()
                    expected += 3000
        assert ending.stop() == 0
    asking.join()
    assert [answer.status_code for answer in answers] == [200] * 6
    assert answers[-1].headers["connection"] == "close"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{ending.url}/health")
    assert "marmalade" not in ending.written()
    assert ending.err.read_text() == ""


def test_without_a_token_other_machines_are_not_listened_to(bundle: Path) -> None:
    for host in ("0.0.0.0", "::"):
        with raises_code("missing-token", "EDO_SERVE_TOKEN"):
            _listen(host, 0, None)
    status, _, err = edo("serve", str(bundle), "--host", "0.0.0.0", "--port", "0")
    assert (status, "--host 0.0.0.0 is open to other machines" in err) == (2, True)


def test_addresses_tokens_and_limits_that_cannot_be_used(server: Server) -> None:
    with raises_code("busy-port", f"port={server.port}"):
        _listen("127.0.0.1", server.port, None)
    for token in ("short", "with blanks in the token", "tokén-with-accents-in-it", ""):
        with raises_code("invalid-key", "EDO_SERVE_TOKEN") as caught:
            _listen("127.0.0.1", 0, token)
        assert not token or token not in str(caught.value)
    with raises_code("invalid-number", "max_length is 99999999999999999999"):
        Limits(max_length=99999999999999999999)


def test_a_bundle_that_cannot_be_loaded_ends_it_with_one_line(tmp_path: Path) -> None:
    status, out, err = edo("serve", str(tmp_path), "--port", "0")
    assert (status, out) == (2, "")
    assert re.fullmatch(r"edo: .*bundle\.json.*edo bundle.*\n", err)


def test_what_is_this_machine() -> None:
    for host in ("localhost:8000", "127.0.0.1", "127.0.0.2:80", "[::1]:8000", "LOCALHOST"):
        assert _is_this_machine(host.encode()), host
    others = ("", "localhost.example", "127.0.0.1.example:80", "10.0.0.1", "[::]", "0.0.0.0")
    forged = ("localhost:80@evil", "localhost:", "localhost:80:90", "[::1", "[::1]x", "127.0.0.1/")
    for host in (*others, *forged):
        assert not _is_this_machine(host.encode()), host


def test_the_example_of_a_container_starts_what_exists(server: Server) -> None:
    file = Path(__file__).resolve().parents[2] / "examples" / "serving" / "Dockerfile"
    lines = file.read_text().replace("\\\n", "").splitlines()
    words = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert {"FROM", "USER", "COPY", "HEALTHCHECK", "CMD"} <= words
    assert "ENV" not in words  # a secret would stay in the image
    last_content = json.loads(lines[-1].removeprefix("CMD "))
    status, _, err = edo(*last_content[1:])
    assert (status, "EDO_SERVE_TOKEN" in err) == (2, True)  # all but the token is right
    check = next(line for line in lines if line.startswith("HEALTHCHECK"))
    program = json.loads(check.partition(" CMD ")[2])
    assert program[:2] == ["python", "-c"]
    exec(program[2].replace("8000", str(server.port)), {})
    with pytest.raises(OSError, match="refused"):
        exec(program[2].replace("8000", "1"), {})


def test_a_panel_is_asked_by_level_of_an_attribute() -> None:
    labels = {"item": [], "annotator": [], "label": [], "age": []}  # type: dict[str, list[Any]]
    for item in range(20):
        for person, age in (("ann", "young"), ("ben", "old"), ("cem", "old")):
            labels["item"].append(f"item-{item}")
            labels["annotator"].append(person)
            labels["label"].append(int(item % 2 == 0 or person == "ann"))
            labels["age"].append(age)
    people = edokit.Annotations.from_table(labels)
    pool = np.full((20, 1, 2), 0.5)
    predictions = edokit.Predictions.from_arrays(
        pool, items=people.items, classes=people.classes, layout="NKC"
    )
    effects = edokit.EDOEnsemble().fit(predictions, people).people_
    about = About("1", ["0", "1"], frozenset(["ann", "ben", "cem"]), (), None, effects)
    model = request_model(8, 1000)
    asked = read_request(b'{"texts": ["a"], "panel": {"age": "old"}}', model, about)
    assert asked.panel == ("ben", "cem")
    for panel in ({"age": "ancient"}, {"height": "tall"}, {}):
        body = json.dumps({"texts": ["a"], "panel": panel}).encode()
        with pytest.raises(RefusedError) as refused:
            read_request(body, model, about)
        assert refused.value.status == 422


def test_people_are_listed_without_their_names(server: Server, bundle: Path) -> None:
    found = httpx.get(f"{server.url}/people", timeout=60).json()
    loaded: Any = edokit.load(bundle)
    assert found["people"] == len(loaded.known_annotators)
    assert "annotators" not in found
    assert not any(name in json.dumps(found) for name in loaded.known_annotators)
