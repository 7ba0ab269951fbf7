"""Members on vectors of an endpoint: a server on the loopback, its cache, budget and limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people

import edokit
from commands import edo
from edokit.members import parse_groups, preview_training, score_members, train_members
from tests.errors import raises_code

pytest.importorskip("httpx2")
pytestmark = pytest.mark.usefixtures("own_cache")
KEY = "sk-a-key-of-the-tests"
PEOPLE = small_people()


class Server(ThreadingHTTPServer):
    """Counts letters; ``answer`` replaces what it returns."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.keys: set[str | None] = set()
        self.answer: bytes | None = None
        self.status = 200

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/embeddings"
        assert set(body) == {"model", "input"}
        self.server.asked.append(body["input"])
        self.server.keys.add(self.headers.get("Authorization"))
        counts = [float(body["input"].count(letter)) + 0.1 for letter in "aeiourst"]
        content = self.server.answer
        if content is None:
            tokens = len(body["input"].split())
            answer = {"data": [{"embedding": counts}], "usage": {"prompt_tokens": tokens}}
            content = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def groups(server: Server, **options: Any) -> list[edokit.members.Group]:
    about = {"base_url": server.address, "model": "letters", **options}
    return parse_groups("embeddings:1", options=about)


def test_each_text_is_sent_once_and_the_bundle_answers(server: Server, tmp_path: Path) -> None:
    trained = train_members(PEOPLE, groups(server), out=tmp_path / "members")
    assert len(server.asked) == len(set(server.asked)) == len(set(PEOPLE.texts))
    assert server.keys == {f"Bearer {KEY}"}
    train_members(PEOPLE, groups(server, strength=1.0), out=tmp_path / "again")
    assert len(server.asked) == len(set(PEOPLE.texts))
    dev = trained.predictions["dev"], PEOPLE.split("dev")
    ensemble = edokit.EDOEnsemble.from_weights([1.0], *dev)
    edokit.Bundle.create(ensemble, tmp_path / "members", tmp_path / "bundle")
    texts = [str(text) for text in PEOPLE.texts[:2]]
    found = edokit.load(tmp_path / "bundle").predict_proba(texts)
    scored = score_members(tmp_path / "members", texts).uniform
    np.testing.assert_allclose(found, scored, atol=1e-6)
    assert server.address in (tmp_path / "bundle" / "README.md").read_text()
    for path in tmp_path.rglob("*.*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_vectors_have_length_one_and_the_servers_directions(server: Server) -> None:
    from edokit.members.recipes._embeddings import EmbeddingServer

    vectors = EmbeddingServer(server.address, "letters")(["tea", "", "a sea"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    expected = np.array([1.1, 1.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.1])
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), rtol=1e-6)


@pytest.mark.parametrize(
    "answer",
    [
        b"no JSON",
        b'{"data": []}',
        b'{"data": [{"embedding": []}]}',
        b'{"data": [{"embedding": ["a"]}]}',
        b'{"data": [{"embedding": [NaN, 1]}]}',
        b'{"data": [{"embedding": [1e300, 1]}]}',
        b'{"data": [{"embedding": [' + b"1," * 20_000 + b"1]}]}",
        b'{"data": [{"embedding": [' + b"1," * 200_000 + b"1]}]}",
    ],
)
def test_what_is_not_a_vector_is_one_line(server: Server, answer: bytes, tmp_path: Path) -> None:
    server.answer = answer
    with raises_code("failed-member", "127.0.0.1") as raised:
        train_members(PEOPLE, groups(server, retries=0), out=tmp_path / "members")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("with_context", [False, True])
def test_a_text_that_the_server_refuses_is_named_by_its_item(
    server: Server, tmp_path: Path, with_context: bool
) -> None:
    server.status = 413
    people = PEOPLE
    if with_context:
        people = replace(PEOPLE, contexts=np.full(len(PEOPLE.items), "a quay", dtype=object))
    with raises_code("failed-member", "the text of item 'item-", "413"):
        train_members(people, groups(server, concurrency=1), out=tmp_path / "members")


def test_a_budget_is_kept(server: Server, tmp_path: Path) -> None:
    with raises_code("failed-member", "price_in"):
        train_members(PEOPLE, groups(server), out=tmp_path / "a", budget=1.0)
    with raises_code("failed-member", "budget of 1 "):
        train_members(PEOPLE, groups(server, price=1e6), out=tmp_path / "b", budget=1.0)
    assert server.asked == []


def test_the_command_line_names_its_own_options_where_all_members_fail(
    server: Server, tmp_path: Path
) -> None:
    edokit.write_annotations(PEOPLE, tmp_path / "people.parquet")
    about = ("model=letters", f"base_url={server.address}", "price=1e6")
    options = [word for option in about for word in ("--option", option)]
    done = edo(
        *("train", tmp_path / "people.parquet", "--recipe", "embeddings", "--members", "1"),
        *(*options, "--budget", "1", "--out", tmp_path / "members"),
    )
    assert done.returncode == 2
    assert "no member was trained" in done.stderr
    assert "with a larger --budget" in done.stderr


def test_only_the_user_decides_where_texts_go(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"base_url": "http://embeddings.example.com/v1", "model": "letters"}
    with raises_code("failed-member", "http://embeddings.example.com/v1"):
        train_members(PEOPLE, parse_groups("embeddings:1", options=about), out=tmp_path / "a")
    pool = tmp_path / "pool.toml"
    pool.write_text(
        '[[group]]\nrecipe = "embeddings"\nmembers = 1\noptions.model = "m"\n'
        'options.base_url = "https://embeddings.example.com/v1"\n'
    )
    with raises_code("untrusted-address", "https://embeddings.example.com/v1"):
        parse_groups(str(pool))
    with raises_code("missing-option", "base_url"):
        train_members(PEOPLE, parse_groups("embeddings:1"), out=tmp_path / "b")


def test_a_dry_run_sends_nothing(server: Server) -> None:
    with raises_code("inapplicable-option", "embeddings"):
        preview_training(PEOPLE, groups(server))
    assert server.asked == []
