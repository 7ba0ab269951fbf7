"""A server that is interrupted, killed, or whose bundle is replaced while it serves."""

from __future__ import annotations

import shutil
import signal
import socket
import sys
from pathlib import Path

import httpx2 as httpx
import pytest
from serve_soak import Server, in_python, killed, same

from edokit._io.atomic import files_below
from edokit._io.digests import digest_file

TEXTS = ["how kind of you", "what a rude reply", "the bus was late again"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


def contents(folder: Path) -> dict[str, str]:
    return {name: digest_file(path) for name, path in files_below(folder).items()}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_asked_to_end_answers_everyone_first(
    how: signal.Signals, bundle: Path, tmp_path: Path
) -> None:
    counts = killed(bundle, tmp_path, in_python(bundle), seed=1, how=how)
    assert counts["right"] > 0
    assert {key for key in counts if key.startswith(("lost", "status"))} == set()


def test_after_a_kill_the_bundle_is_as_before_and_is_served_again(
    bundle: Path, tmp_path: Path
) -> None:
    before = contents(bundle)
    wanted = in_python(bundle)(TEXTS)
    with Server(bundle, tmp_path) as server:
        line = socket.create_connection(("127.0.0.1", server.port))
        line.sendall(b"POST /predict HTTP/1.1\r\nhost: localhost\r\n")
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        line.close()
        port = server.port
    assert contents(bundle) == before
    with Server(bundle, tmp_path, "--port", str(port)) as again:
        answer = httpx.post(f"{again.url}/predict", json={"texts": TEXTS}, timeout=60)
        assert same(answer.json()["predictions"], wanted)
    assert contents(bundle) == before


def test_a_bundle_that_is_damaged_and_removed_while_it_is_served_changes_no_answer(
    bundle: Path, tmp_path: Path
) -> None:
    def damage() -> None:
        for path in files_below(copy).values():
            path.write_bytes(b"something else")

    copy = tmp_path / "bundle"
    shutil.copytree(bundle, copy)
    wanted = in_python(bundle)(TEXTS)
    with Server(copy, tmp_path) as server:
        version = httpx.get(f"{server.url}/health").json()["version"]
        for change in (damage, lambda: shutil.rmtree(copy)):
            change()
            answer = httpx.post(f"{server.url}/predict", json={"texts": TEXTS}, timeout=60).json()
            assert same(answer["predictions"], wanted)
            assert answer["version"] == version
            assert httpx.get(f"{server.url}/health").json()["version"] == version
        assert server.stop() == 0
