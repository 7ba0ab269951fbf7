"""Getting named encoders: from a hub on the loopback, and from a folder."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from commands import answer, assert_one_line, edo
from edokit.members import catalogue
from edokit.members.catalogue import EncoderFile, KnownEncoder, find_encoder, get_encoder
from edokit.members.recipes.encoder import encoder_folder
from tests.errors import raises_code

hub = pytest.importorskip("huggingface_hub")

CONTENT = {"config.json": b"{}", "onnx/model.onnx": bytes(range(256)) * 4000}
REVISION = "0123456789abcdef0123456789abcdef01234567"


def small_encoder() -> KnownEncoder:
    files = tuple(
        EncoderFile(name, len(content), hashlib.sha256(content).hexdigest())
        for name, content in CONTENT.items()
    )
    return KnownEncoder(
        "tiny-encoder", "tiny", "org/tiny-encoder", REVISION, "MIT", "English", True, files
    )


class Hub(ThreadingHTTPServer):
    """Serves ``content``, and cuts off the ONNX file ``cuts`` times.

    With ``is_endless`` it sends files that never end.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = dict(CONTENT)
        self.cuts = 0
        self.etag = '"an-etag"'
        self.is_endless = False
        self.sent = 0
        self.ranges: list[str | None] = []
        self.authorizations: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.server.authorizations.append(self.headers.get("Authorization"))
        # A proxy gets whole addresses.
        path = self.path.removeprefix("http://hub.invalid")
        name = path.removeprefix(f"/org/tiny-encoder/resolve/{REVISION}/")
        content = self.server.content.get(name)
        if content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        wanted = self.headers.get("Range")
        if with_body and name.endswith(".onnx"):
            self.server.ranges.append(wanted)
        if wanted:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if wanted else 200)
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", self.server.etag)
        if not self.server.is_endless:
            self.send_header("Content-Length", str(len(content) - start))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not with_body:
            return
        if self.server.is_endless:
            with contextlib.suppress(OSError):
                while True:
                    self.server.sent += self.wfile.write(bytes(1 << 16))
            return
        body = content[start:]
        if self.server.cuts and name.endswith(".onnx"):
            self.server.cuts -= 1
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, and a cache of the test's own."""
    with Hub() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(hub.constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(hub.constants, "DOWNLOAD_CHUNK_SIZE", 2**16)  # what it keeps at a time
        monkeypatch.setattr(catalogue, "ENCODERS", (small_encoder(),))
        # Between its attempts, the library waits for seconds.
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        yield server
        # A session remembers the proxies that it began with.
        hub.close_session()
        server.shutdown()


def test_an_encoder_is_downloaded_once_and_found_by_all_its_names(server: Hub) -> None:
    encoder = find_encoder("tiny")
    assert encoder is not None
    assert encoder.folder() is None
    folder = get_encoder("tiny")
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT
    assert folder.name == REVISION
    assert folder == get_encoder("org/tiny-encoder") == encoder.folder()
    assert len(server.ranges) == 1
    if catalogue.find_spec("onnxruntime"):
        assert encoder_folder("tiny-encoder") == folder


def test_requests_go_through_the_proxy_of_the_environment(
    server: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("HTTP_PROXY", server.address)
    hub.close_session()
    assert (get_encoder("tiny") / "config.json").read_bytes() == CONTENT["config.json"]


def test_no_token_is_sent(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
    get_encoder("tiny")
    assert set(server.authorizations) == {None}


def test_another_content_is_removed_and_fetched_again(server: Hub) -> None:
    server.content["onnx/model.onnx"] = b"x" + CONTENT["onnx/model.onnx"][1:]
    with raises_code("wrong-checksum", "model.onnx"):
        get_encoder("tiny")
    encoder = find_encoder("tiny")
    assert encoder is not None
    assert encoder.folder() is None
    server.content = dict(CONTENT)
    assert (get_encoder("tiny") / "onnx/model.onnx").read_bytes() == CONTENT["onnx/model.onnx"]


def test_a_download_that_is_cut_off_goes_on_where_it_was(server: Hub) -> None:
    server.cuts = 1
    assert (get_encoder("tiny") / "onnx/model.onnx").read_bytes() == CONTENT["onnx/model.onnx"]
    first, second = server.ranges
    assert first is None
    assert second is not None
    assert int(second.removeprefix("bytes=").partition("-")[0]) > 0


def test_a_download_that_is_always_cut_off_ends_in_one_line_and_can_be_repeated(
    server: Hub,
) -> None:
    server.cuts = 1000
    with raises_code("failed-download", "model.onnx") as raised:
        get_encoder("tiny")
    assert "\n" not in str(raised.value)
    server.cuts = 0
    server.ranges.clear()
    folder = get_encoder("tiny")
    assert (folder / "onnx/model.onnx").read_bytes() == CONTENT["onnx/model.onnx"]
    # It goes on from where the last attempt ended, and leaves nothing else behind.
    [again] = server.ranges
    assert again is not None
    assert int(again.removeprefix("bytes=").partition("-")[0]) > 0
    assert [path.name for path in (folder / "onnx").iterdir()] == ["model.onnx"]


def test_a_download_that_was_killed_goes_on_where_it_was(server: Hub) -> None:
    folder = catalogue.hub_cache() / "models--org--tiny-encoder" / "snapshots" / REVISION
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx/model.onnx.partial").write_bytes(CONTENT["onnx/model.onnx"][:1000])
    assert get_encoder("tiny") == folder
    assert (folder / "onnx/model.onnx").read_bytes() == CONTENT["onnx/model.onnx"]
    assert server.ranges == ["bytes=1000-"]


def test_a_partial_file_of_another_content_is_fetched_anew_the_next_time(server: Hub) -> None:
    folder = catalogue.hub_cache() / "models--org--tiny-encoder" / "snapshots" / REVISION
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx/model.onnx.partial").write_bytes(b"x" * 1000)
    with raises_code("wrong-checksum"):
        get_encoder("tiny")
    assert (get_encoder("tiny") / "onnx/model.onnx").read_bytes() == CONTENT["onnx/model.onnx"]


@pytest.mark.parametrize("name", ["../../../mine.txt", "/{}/mine.txt"])
def test_a_hub_does_not_choose_where_files_are_written_or_removed(
    name: str, server: Hub, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    server.etag = f'"{name.format(tmp_path)}"'
    server.content["config.json"] = b"[]"
    with raises_code("wrong-checksum"):
        get_encoder("tiny")
    assert mine.read_text() == "mine"
    mine.unlink()
    with raises_code("wrong-checksum"):
        get_encoder("tiny")
    assert sorted(tmp_path.rglob("*")) == [path for path in before if path != mine]


def test_a_file_that_does_not_end_is_cut_off_at_its_published_size(server: Hub) -> None:
    server.is_endless = True
    with raises_code("failed-download", "2"):
        get_encoder("tiny")
    assert server.sent < 1 << 26  # what buffers hold


def test_a_damaged_file_that_is_a_link_out_of_the_cache_loses_the_link_alone(
    server: Hub, tmp_path: Path
) -> None:
    folder = get_encoder("tiny")
    mine = tmp_path / "mine.json"
    mine.write_text("mine")
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(mine)
    with raises_code("wrong-checksum"):
        get_encoder("tiny")
    assert mine.read_text() == "mine"
    assert (get_encoder("tiny") / "config.json").read_bytes() == CONTENT["config.json"]


def test_what_is_not_there_is_one_line(server: Hub) -> None:
    del server.content["onnx/model.onnx"]
    with raises_code("failed-download", "model.onnx", "404") as raised:
        get_encoder("tiny")
    assert "\n" not in str(raised.value)


def test_a_folder_stands_for_the_hub_if_its_files_are_the_published_ones(
    server: Hub, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "onnx").mkdir(parents=True)
    (source / "config.json").write_bytes(CONTENT["config.json"])
    with raises_code("incomplete-folder", "model.onnx"):
        get_encoder("tiny", source)
    (source / "onnx/model.onnx").write_bytes(b"exported elsewhere")
    with raises_code("wrong-checksum", "--encoder"):
        get_encoder("tiny", source)
    (source / "onnx/model.onnx").write_bytes(CONTENT["onnx/model.onnx"])
    folder = get_encoder("tiny", source)
    assert (folder / "onnx/model.onnx").read_bytes() == CONTENT["onnx/model.onnx"]
    assert server.ranges == []


def test_the_published_encoders_are_listed(tmp_path: Path) -> None:
    listed = answer("models", "list")["encoders"]
    assert [entry["short_name"] for entry in listed] == ["minilm", "multilingual"]
    for encoder in catalogue.ENCODERS:
        assert {len(file.sha256) for file in encoder.files} == {64}
        assert len(encoder.revision) == 40
        assert {"tokenizer.json", "onnx/model.onnx"} < {file.name for file in encoder.files}
    assert_one_line(edo("models", "get", "nobody/nothing"), "minilm", "multilingual", "hf download")
