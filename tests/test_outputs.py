"""An output folder holds one kind of output, is written by one process at a time, and nothing that
EDO did not write is replaced."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock

from edokit import EDOWarning, InputError
from edokit._io.documents import write_json
from edokit.runs.folder import (
    FOLDER_KINDS,
    LOCK,
    Kind,
    check_output,
    check_page,
    kind_of,
    locked,
    output_folder,
    refuse_input,
)
from tests.errors import raises_code

unix = pytest.mark.skipif(os.name == "nt", reason="links need rights there")
KINDS: list[Kind] = list(FOLDER_KINDS)


def put(folder: Path, *names: str) -> None:
    """Write files, markers as EDO would."""
    markers = {
        name: keys for layout in FOLDER_KINDS.values() for name, keys in layout.markers.items()
    }
    for name in names:
        path = folder / name.replace("*", "0")
        path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(dict.fromkeys(markers[name])) if name in markers else "x"
        path.write_text(content, encoding="utf-8")


def test_a_folder_of_one_kind_takes_more_of_it_and_nothing_else(tmp_path: Path) -> None:
    for present in KINDS:
        for marker in FOLDER_KINDS[present].markers:
            folder = tmp_path / present / marker.replace("/", "-").replace("*", "0")
            put(folder, marker, "notes.txt")
            (folder / ".edo-unfinished-abcd1234").mkdir()
            assert kind_of(folder) == present
            check_output(folder, present)
            for kind in set(KINDS) - {present}:
                titles = (FOLDER_KINDS[kind].title, FOLDER_KINDS[present].title)
                for overwrite in (False, True):
                    with raises_code("existing-folder", *titles):
                        check_output(folder, kind, overwrite=overwrite)


def test_a_search_that_was_killed_at_once_is_known_by_its_empty_journal(tmp_path: Path) -> None:
    put(tmp_path, "search/journal.log")
    (tmp_path / "search" / "journal.log").write_text("")
    check_output(tmp_path, "search")


def test_a_folder_with_other_files_is_written_to_with_overwrite_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "ensemble.json", "data/dev.npz"):
        folder = tmp_path / name.replace("/", "-")
        put(folder, name)
        (folder / name).write_text("mine")
        for kind in KINDS:
            with raises_code("existing-folder", name.partition("/")[0], "overwrite"):
                check_output(folder, kind)
            check_output(folder, kind, overwrite=True)


def test_a_folder_with_leftovers_alone_is_as_good_as_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "members" / ".edo-unfinished-abcd1234" / "fold-0").mkdir(parents=True)
    (tmp_path / LOCK).touch()
    for kind in KINDS:
        check_output(tmp_path, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_root_and_addresses_are_no_folders(kind: Kind) -> None:
    for path in ("/", "/tmp/..", "//"):
        with raises_code("not-a-folder"):
            check_output(Path(path), kind, overwrite=True)
    with raises_code("invalid-path") as refused:
        check_output(Path("postgresql://ann:geheim@host/study"), kind)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_no_folder_for_anything(kind: Kind, tmp_path: Path) -> None:
    put(tmp_path, "notes.txt")
    for path in ("notes.txt", "notes.txt/inside"):
        with raises_code("not-a-folder", "notes.txt"):
            check_output(tmp_path / path, kind)


def test_an_input_is_not_overwritten(tmp_path: Path) -> None:
    put(tmp_path, "results.json", "predictions/dev.npz")
    for source in ("predictions/dev.npz", "x/../results.json"):
        with raises_code("overwritten-input"):
            check_output(tmp_path, "demo", tmp_path / source, overwrite=True)
    check_output(tmp_path / "new", "ensemble", tmp_path / "predictions" / "dev.npz", None)
    refuse_input(None, tmp_path)
    with raises_code("unknown-ending", ".html"):
        check_page(tmp_path / "page.txt")


def test_a_page_of_edos_is_replaced_and_no_other(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check_page(page)
    page.write_text("<title>My page</title>")
    with raises_code("existing-file", "page.html"):
        check_page(page)
    check_page(page, overwrite=True)
    page.write_text('<!doctype html>\n<meta name="generator" content="edokit">\n')
    check_page(page)


# One process at a time

HOLD = """
import sys, time
from pathlib import Path
from edokit.runs.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that has the folder."""
    words = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_folder_in_use_is_refused_until_the_other_process_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    other = holder(folder)
    try:
        (tmp_path / "link").symlink_to(folder)
        for path in (folder, folder, tmp_path / "link"):
            with raises_code("locked-output", str(path)), output_folder(path, "search"):
                pass
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    # The file stays behind: the lock went with the process.
    assert (folder / LOCK).exists()
    with output_folder(folder, "search"):
        pass
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_was_not_replaced_by_the_shell_is_refused(kind: Kind) -> None:
    for folder in ("~", "~/run"):
        with raises_code("invalid-path"), output_folder(Path(folder), kind):
            pass


@unix
def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "run", "search/search.json")
    (tmp_path / "run" / "ensemble").symlink_to(tmp_path)
    with raises_code("outside-link"):
        check_output(tmp_path / "run", "search")


def test_a_folder_may_be_waited_for(tmp_path: Path) -> None:
    other = holder(tmp_path)
    threading.Timer(0.3, other.kill).start()
    said = pytest.warns(EDOWarning, match="another process .*waiting until it has ended")
    with said, output_folder(tmp_path, "search", wait=True):
        assert other.wait() == -signal.SIGKILL
    other.communicate()


def test_a_lock_leaves_nothing_behind_and_may_be_taken_again_inside(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "out"
    with locked(folder), locked(folder), output_folder(tmp_path / "new" / "." / "out", "search"):
        assert (folder / LOCK).exists()
    assert not (tmp_path / "new").exists()
    with suppress(KeyError), locked(folder):
        put(folder, "results")
        raise KeyError
    assert [path.name for path in folder.iterdir()] == ["results"]


def test_a_thread_does_not_share_the_lock_of_another(tmp_path: Path) -> None:
    said: list[str] = []

    def try_it() -> None:
        try:
            with locked(tmp_path):
                said.append("held")
        except InputError as error:
            said.append(str(error))

    with locked(tmp_path):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert "another process" in said[0]
    try_it()
    assert said[1] == "held"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_that_outlives_its_parent_holds_no_lock(tmp_path: Path) -> None:
    words = HOLD.replace(
        'print("held", flush=True)',
        'import os\n    if os.fork() == 0:\n        os.write(1, b"forked\\n")\n'
        '        time.sleep(20)\n    os.write(1, b"held\\n")',
    )
    script = [sys.executable, "-c", words, str(tmp_path)]
    parent = subprocess.Popen(script, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert {parent.stdout.readline() for _ in range(2)} == {"held\n", "forked\n"}
    with raises_code("locked-output"), locked(tmp_path):
        pass
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    with locked(tmp_path):
        pass


def test_where_nothing_can_be_locked_a_run_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(self: FileLock, **_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(FileLock, "acquire", unsupported)
    with pytest.warns(EDOWarning, match="can't be locked here"), locked(tmp_path):
        write_json({}, tmp_path / "result.json")
    assert {path.name for path in tmp_path.iterdir()} == {"result.json"}


@unix
def test_a_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    put(tmp_path, "mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).symlink_to(tmp_path / "mine")
    with raises_code("unwritable-file"), locked(tmp_path / "out"):
        pass
    assert (tmp_path / "mine").read_text() == "x"
