"""Obtaining LeWiDi 2023: a real server on the loopback, and a local copy."""

from __future__ import annotations

import hashlib
import io
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from edokit import InputError
from edokit.datasets import get as module
from edokit.datasets.get import COMMIT, DATASETS, Published, get_dataset, open_https
from tests.errors import raises_code

get_lewidi2023 = partial(get_dataset, "lewidi2023")
get_lewidi2025 = partial(get_dataset, "lewidi2025")
LEWIDI2023 = DATASETS["lewidi2023"]
LEWIDI2025 = DATASETS["lewidi2025"]

CONTENT = {
    f"Tea_{split}.json": f'{{"1": "invented for {split}"}}'.encode() * 5000
    for split in ("train", "dev", "test")
}


class Server(ThreadingHTTPServer):
    """Serves ``content``; ``faults`` says what goes wrong with a file."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = dict(CONTENT)
        self.faults: dict[str, str] = {}
        self.asked: list[str] = []
        self.over = threading.Event()

    def open(self, url: str) -> BinaryIO:
        """What ``open_https`` does, from here."""
        assert url.startswith("https://raw.githubusercontent.com/")
        local = f"http://127.0.0.1:{self.server_port}/{url.split('/', 3)[3]}"
        body: BinaryIO = urllib.request.urlopen(local, timeout=5)
        return body


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        name = self.path.rsplit("/", 1)[1]
        fault = self.server.faults.get(name)
        content = self.server.content.get(name)
        if content is None or fault == "missing":
            self.send_error(404)
            return
        if fault == "slow headers":
            self.dribble(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 10_000)
            return
        self.send_response(200)
        if fault == "slow":
            self.end_headers()
            self.dribble(content)
            return
        if fault == "endless":
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                return
        if fault == "changed":
            content = content.replace(b"invented", b"INVENTED")
        if fault == "short":
            content = content[:-1]
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault == "cut" else content)

    def dribble(self, content: bytes) -> None:
        """A few bytes a second, until the reader leaves or the test is over."""
        for byte in content:
            if self.server.over.wait(0.05):
                return
            try:
                self.wfile.write(bytes([byte]))
            except OSError:
                return

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def _invented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three invented files in place of the published ones."""
    files = [
        Published(f"LeWiDi_2-2023/Tea_dataset/{name}", hashlib.sha256(content).hexdigest())
        for name, content in CONTENT.items()
    ]
    monkeypatch.setitem(DATASETS, "lewidi2023", files)
    monkeypatch.setattr(module, "_LARGEST", 1 << 20)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


ALL = ["Tea/Tea_dev.json", "Tea/Tea_test.json", "Tea/Tea_train.json"]


@pytest.mark.usefixtures("_invented")
class TestDownload:
    def test_every_file_arrives_under_its_dataset(self, server: Server, tmp_path: Path) -> None:
        files = get_lewidi2023(tmp_path / "new" / "out", open_url=server.open)
        assert files_in(tmp_path / "new" / "out") == ALL
        assert [file.read_bytes() for file in files] == list(CONTENT.values())

    def test_the_address_is_that_of_the_pinned_commit(self, server: Server, tmp_path: Path) -> None:
        get_lewidi2023(tmp_path, open_url=server.open)
        folder = f"/Le-Wi-Di/le-wi-di.github.io/{COMMIT}/LeWiDi_2-2023/Tea_dataset"
        assert server.asked == [f"{folder}/{name}" for name in CONTENT]

    def test_progress_is_told(self, server: Server, tmp_path: Path) -> None:
        told: list[tuple[int, int, str]] = []
        get_lewidi2023(tmp_path, open_url=server.open, progress=lambda *step: told.append(step))
        assert told == [(k, 3, name) for k, name in enumerate(CONTENT, 1)]

    @pytest.mark.parametrize(
        ("fault", "code", "fact"),
        [
            ("cut", "wrong-checksum", "bytes"),
            ("short", "wrong-checksum", "bytes"),
            ("changed", "wrong-checksum", "bytes"),
            ("endless", "wrong-checksum", "1,048,576 bytes"),
            ("missing", "failed-download", "Not Found"),
        ],
    )
    def test_a_bad_download_leaves_nothing_of_the_file(
        self, server: Server, tmp_path: Path, fault: str, code: str, fact: str
    ) -> None:
        server.faults["Tea_dev.json"] = fault
        with raises_code(code, fact) as caught:
            get_lewidi2023(tmp_path, open_url=server.open)
        assert "Tea_dev.json" in str(caught.value)
        assert caught.value.hint
        assert files_in(tmp_path) == ["Tea/Tea_train.json"]

    @pytest.mark.parametrize("fault", ["slow", "slow headers"])
    def test_a_server_that_dribbles_ends_at_the_deadline(
        self, server: Server, tmp_path: Path, fault: str
    ) -> None:
        server.faults["Tea_dev.json"] = fault
        with raises_code("failed-download"):
            get_lewidi2023(tmp_path, open_url=server.open, timeout=1)
        assert files_in(tmp_path) == ["Tea/Tea_train.json"]

    @pytest.mark.parametrize("timeout", [0, -1, float("nan")])
    def test_a_deadline_is_a_number_of_seconds(self, timeout: float, tmp_path: Path) -> None:
        with raises_code("invalid-number", "timeout"):
            get_lewidi2023(tmp_path, timeout=timeout)

    def test_a_second_call_goes_on_where_the_first_stopped(
        self, server: Server, tmp_path: Path
    ) -> None:
        server.faults["Tea_dev.json"] = "cut"
        with pytest.raises(InputError):
            get_lewidi2023(tmp_path, open_url=server.open)
        server.faults.clear()
        server.asked.clear()
        told: list[int] = []
        get_lewidi2023(tmp_path, open_url=server.open, progress=lambda done, *_: told.append(done))
        assert [path.rsplit("/", 1)[1] for path in server.asked] == [
            "Tea_dev.json",
            "Tea_test.json",
        ]
        assert told == [2, 3]
        assert files_in(tmp_path) == ALL

    def test_with_all_files_there_nothing_is_asked_for(
        self, server: Server, tmp_path: Path
    ) -> None:
        get_lewidi2023(tmp_path, open_url=server.open)
        server.asked.clear()
        assert len(get_lewidi2023(tmp_path, open_url=server.open)) == 3
        assert server.asked == []

    def test_a_file_with_another_content_is_replaced(self, server: Server, tmp_path: Path) -> None:
        (tmp_path / "Tea").mkdir()
        wrong = tmp_path / "Tea" / "Tea_train.json"
        wrong.write_bytes(b"x" * len(CONTENT["Tea_train.json"]))
        get_lewidi2023(tmp_path, open_url=server.open)
        assert wrong.read_bytes() == CONTENT["Tea_train.json"]

    def test_a_failed_replacement_leaves_the_old_file(self, server: Server, tmp_path: Path) -> None:
        (tmp_path / "Tea").mkdir()
        (tmp_path / "Tea" / "Tea_train.json").write_text("old")
        server.faults["Tea_train.json"] = "cut"
        with pytest.raises(InputError):
            get_lewidi2023(tmp_path, open_url=server.open)
        assert (tmp_path / "Tea" / "Tea_train.json").read_text() == "old"

    def test_an_interruption_leaves_nothing_half_written(
        self, server: Server, tmp_path: Path
    ) -> None:
        class Interrupted(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                raise KeyboardInterrupt

        def open_url(url: str) -> BinaryIO:
            if "dev" not in url:
                return server.open(url)
            with server.open(url) as body:
                return Interrupted(body.read())

        with pytest.raises(KeyboardInterrupt):
            get_lewidi2023(tmp_path, open_url=open_url)
        assert files_in(tmp_path) == ["Tea/Tea_train.json"]

    def test_no_network_is_said_plainly(self, tmp_path: Path) -> None:
        def open_url(url: str) -> BinaryIO:
            raise urllib.error.URLError(ConnectionRefusedError("refused"))

        with raises_code("failed-download", "source='DIR'"):
            get_lewidi2023(tmp_path, open_url=open_url)
        assert files_in(tmp_path) == []

    def test_a_place_that_cannot_be_written_is_refused(
        self, server: Server, tmp_path: Path
    ) -> None:
        (tmp_path / "out").write_text("a file")
        with raises_code("unwritable-file"):
            get_lewidi2023(tmp_path / "out", open_url=server.open)


@pytest.mark.usefixtures("_invented")
class TestLocalCopy:
    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        return tmp_path / "copy"

    def lay_out(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name, content in CONTENT.items():
            (folder / name).write_bytes(content)

    @pytest.mark.parametrize("layout", ["Tea", "Tea_dataset", "."])
    def test_a_copy_may_be_laid_out_as_here_as_there_or_flat(
        self, tmp_path: Path, copy: Path, layout: str
    ) -> None:
        self.lay_out(copy / layout)
        get_lewidi2023(tmp_path / "out", copy)
        assert files_in(tmp_path / "out") == ALL

    def test_one_wrong_file_and_nothing_is_written(self, tmp_path: Path, copy: Path) -> None:
        self.lay_out(copy)
        (copy / "Tea_test.json").write_bytes(b"cut off")
        with raises_code("wrong-checksum", "7", "Tea_test.json"):
            get_lewidi2023(tmp_path / "out", copy)
        assert not (tmp_path / "out").exists()

    def test_one_missing_file_and_nothing_is_written(self, tmp_path: Path, copy: Path) -> None:
        self.lay_out(copy)
        (copy / "Tea_test.json").unlink()
        with raises_code("incomplete-folder", "Tea_test.json", "LeWiDi_2", "2023"):
            get_lewidi2023(tmp_path / "out", copy)
        assert not (tmp_path / "out").exists()

    def test_a_copy_that_is_no_folder_is_refused(self, tmp_path: Path, copy: Path) -> None:
        with raises_code("incomplete-folder"):
            get_lewidi2023(tmp_path / "out", copy)

    def test_a_copy_onto_itself_changes_nothing(self, copy: Path) -> None:
        self.lay_out(copy / "Tea")
        get_lewidi2023(copy, copy)
        assert files_in(copy) == ALL


@pytest.mark.parametrize("scheme", ["http", "ftp", "file"])
def test_only_https_is_opened(server: Server, scheme: str) -> None:
    with pytest.raises(urllib.error.URLError, match="unknown url type"):
        open_https(f"{scheme}://127.0.0.1:{server.server_port}/Tea_dev.json")
    assert server.asked == []


def test_a_redirect_away_from_https_is_not_followed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Redirecting(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> Any:
            headers = Message()
            headers["Location"] = f"http://127.0.0.1:{server.server_port}/Tea_dev.json"
            answer = urllib.response.addinfourl(io.BytesIO(), headers, req.full_url, 302)
            answer.msg = "Found"  # type: ignore[attr-defined]
            return answer

    monkeypatch.setattr(urllib.request, "HTTPSHandler", Redirecting)
    with pytest.raises(urllib.error.URLError, match="unknown url type: http"):
        open_https("https://example.org/Tea_dev.json")
    assert server.asked == []


def test_there_are_twelve_published_files_each_with_its_own_checksum() -> None:
    assert len(LEWIDI2023) == len({file.digest for file in LEWIDI2023}) == 12
    assert all(len(file.digest) == 64 and file.url.startswith("https://") for file in LEWIDI2023)


def test_the_files_of_2025_are_checked_by_sha256_or_git_blob_id() -> None:
    assert len({file.url for file in LEWIDI2025}) == len({file.digest for file in LEWIDI2025}) == 16
    by_blob = [file.name for file in LEWIDI2025 if len(file.digest) == 40]
    assert len(by_blob) == 6
    tests = [f"{name}_test.json" for name in ("CSC", "MP", "Paraphrase", "VariErrNLI")]
    assert {*by_blob} == {*tests, "CSC_train.json", "MP_train.json"}
    url = LEWIDI2025[3].url
    assert url.endswith(f"{COMMIT}/LeWiDi_3-2025/CSC/CSC_annotators_meta.json")
    # git hash-object of a file with "hello\\n" in it
    blob = Published("Tea/Tea_test.json", "ce013625030ba8dba906f756967f9e9ca394464a")
    assert blob.matches(b"hello\n")
    assert not blob.matches(b"hello")


def test_a_blob_of_another_content_is_refused(server: Server, tmp_path: Path) -> None:
    server.content = {file.name: b"{}" for file in LEWIDI2025}
    with raises_code("wrong-checksum", "CSC_train.json", "2 bytes", "9661f5"):
        get_lewidi2025(tmp_path / "out", open_url=server.open)
    assert not list((tmp_path / "out").rglob("*.json"))


def test_a_local_copy_without_test_labels_is_not_the_published_one(
    lewidi2025: Path, tmp_path: Path
) -> None:
    with raises_code("wrong-checksum", "CSC_", ".json"):
        get_lewidi2025(tmp_path / "out", lewidi2025)
    assert not (tmp_path / "out").exists()


def test_the_real_files_have_the_published_checksums(
    lewidi: Path, server: Server, tmp_path: Path
) -> None:
    copied = get_lewidi2023(tmp_path / "copied", lewidi)
    server.content = {file.name: file.read_bytes() for file in copied}
    downloaded = get_lewidi2023(tmp_path / "downloaded", open_url=server.open)
    assert files_in(tmp_path / "copied") == files_in(tmp_path / "downloaded")
    assert downloaded[0] == tmp_path / "downloaded" / "ArMIS" / "ArMIS_train.json"
    assert server.asked[0].endswith("/LeWiDi_2-2023/ArMIS_dataset/ArMIS_train.json")
    assert len(downloaded) == 12
