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

from edokit import _outputs
from edokit._errors import EDOWarning, InputError
from edokit._outputs import (
    _KEYS,
    LAYOUTS,
    LOCK,
    Kind,
    begin_run,
    check_output,
    check_page,
    is_ours,
    kind_of,
    locked,
    output_folder,
    refuse_input,
)

unix = pytest.mark.skipif(os.name == "nt", reason="links need rights there")
OURS = {
    "README.md": "---\nlicense: mit\n---\n# An EDO ensemble\n\n2 of 3 members carry weight.\n",
    "report.html": '<!doctype html>\n<meta name="generator" content="edokit">\n',
    "journal.log": '{"op_code":0}\n',
}


def text_of(name: str) -> str:
    """The least that EDO would write under this name."""
    if name == "tuning.json":
        return json.dumps({"0f": dict.fromkeys(_KEYS[name])})
    return json.dumps(dict.fromkeys(_KEYS[name])) if name in _KEYS else OURS.get(name, "x")


def put(folder: Path, *names: str) -> None:
    """Write files as EDO would; a name that ends in / is a folder with something in it."""
    for name in names:
        path = folder / (name + "something" if name.endswith("/") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(path.name), encoding="utf-8")


def mark_of(kind: Kind) -> str:
    return LAYOUTS[kind].marks[0]


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ([], None),
        (["members/a/notes.txt"], None),
        (["members/a/member.json"], "members"),
        (["members/a/fold-0/member.json"], "members"),
        (["end-to-end/member.json"], "members"),
        (["plan.json", "course.json"], "members"),
        (["tuning.json"], "members"),
        (["ensemble.json"], "ensemble"),
        (["ensemble/ensemble.json"], "ensemble"),
        (["search/journal.log"], "search"),
        (["search/trials.parquet"], None),
        (["compare/methods.json", "ensemble/ensemble.json"], "comparison"),
        (["search/search.json", "results.json", "probabilities.csv"], "demo"),
        (["manifest.json", "predictions/dev.npz", "ensemble/ensemble.json"], "members"),
        (["predictions/dev.npz"], None),
    ],
)
def test_a_folder_is_known_by_what_it_holds(
    files: list[str], kind: Kind | None, tmp_path: Path
) -> None:
    put(tmp_path, *files)
    assert kind_of(tmp_path) == kind
    if kind is not None:
        check_output(tmp_path, kind)


@pytest.mark.parametrize("held", LAYOUTS)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_kind_wants_a_folder_of_its_own(kind: Kind, held: Kind, tmp_path: Path) -> None:
    put(tmp_path, mark_of(held))
    if held == kind:
        check_output(tmp_path, kind)
        return
    for overwrite in (False, True):
        with pytest.raises(InputError, match=f"{LAYOUTS[kind].title} .*{LAYOUTS[held].title}"):
            check_output(tmp_path, kind, overwrite=overwrite)


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, v in LAYOUTS.items() for n in v.files])
def test_what_edo_did_not_write_is_replaced_if_asked_for_alone(
    kind: Kind, name: str, tmp_path: Path
) -> None:
    path = tmp_path / (name + "mine.txt" if name.endswith("/") else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    for content in ("mine", "{}", "# My project", '{"name": "an app", "members": []}'):
        path.write_text(content)
        with pytest.raises(InputError, match="did not write") as refused:
            check_output(tmp_path, kind)
        assert path.name in str(refused.value) or name.rstrip("/") in str(refused.value)
        assert "overwrite" in refused.value.parameters
        check_output(tmp_path, kind, overwrite=True)
    # The same beside results of EDO's, wherever it can be known by its content.
    path.unlink()
    put(tmp_path, mark_of(kind))
    check_output(tmp_path, kind)
    if path.name in (*_KEYS, *OURS):
        path.write_text("mine")
        with pytest.raises(InputError, match=r"did not write|of its own"):
            check_output(tmp_path, kind)
        put(tmp_path, name)
        assert is_ours(path)
    check_output(tmp_path, kind)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_run_that_was_killed_is_known_by_what_is_written_first(
    kind: Kind, tmp_path: Path
) -> None:
    put(tmp_path, mark_of(kind), *LAYOUTS[kind].files)
    (tmp_path / ".edo-unfinished-abcd1234.json").touch()
    check_output(tmp_path, kind)
    (tmp_path / "other" / "members" / ".edo-unfinished-abcd1234" / "a").mkdir(parents=True)
    check_output(tmp_path / "other", "members")
    # Before the first fold of a member is finished, its folder is there.
    fold = tmp_path / "folds" / "members" / "linear-01" / ".edo-unfinished-abcd1234" / "fold-0"
    fold.mkdir(parents=True)
    (fold / "member.json").touch()
    check_output(tmp_path / "folds", "members")


@pytest.mark.parametrize("kind", LAYOUTS)
def test_the_root_and_addresses_are_no_folders(kind: Kind) -> None:
    for path in ("/", "/tmp/..", "//"):
        with pytest.raises(InputError, match="root of the file system"):
            check_output(Path(path), kind, overwrite=True)
    with pytest.raises(InputError, match="address") as refused:
        check_output(Path("postgresql://ann:geheim@host/study"), kind)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_file_is_no_folder_for_anything(kind: Kind, tmp_path: Path) -> None:
    put(tmp_path, "notes.txt")
    for path in ("notes.txt", "notes.txt/inside"):
        with pytest.raises(InputError, match=r"notes\.txt is a file"):
            check_output(tmp_path / path, kind)


@unix
@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, v in LAYOUTS.items() for n in v.files])
def test_nothing_is_written_through_links(kind: Kind, name: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "out"
    put(outside, "mine")
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(outside if name.endswith("/") else outside / "mine")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="through a link"):
            check_output(folder, kind, overwrite=overwrite)
    (folder / name).unlink()
    (folder / name).symlink_to(folder / "elsewhere in it")
    check_output(folder, kind, overwrite=True)


def test_what_is_not_ours_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "data").symlink_to(tmp_path)
    check_output(tmp_path / "out", "search")


def test_an_input_is_not_overwritten(tmp_path: Path) -> None:
    put(tmp_path, "predictions/dev.npz", "results.json")
    with pytest.raises(InputError, match="input and output are the same file"):
        check_output(tmp_path, "demo", tmp_path / "predictions" / "dev.npz")
    (tmp_path / "results.json").unlink()
    with pytest.raises(InputError, match="input and output are the same file"):
        check_output(tmp_path, "search", tmp_path / "x" / ".." / "search" / "search.json")
    check_output(tmp_path, "ensemble", tmp_path / "predictions" / "dev.npz", None)
    refuse_input(None, tmp_path)
    with pytest.raises(InputError, match=r"\.html"):
        check_page(tmp_path / "page.txt")


def test_a_page_of_edos_is_replaced_and_no_other(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check_page(page)
    page.write_text("<title>My page</title>")
    with pytest.raises(InputError, match=r"did not write .*page\.html"):
        check_page(page)
    check_page(page, overwrite=True)
    page.write_text(OURS["report.html"])
    check_page(page)


# One process at a time

HOLD = """
import sys, time
from pathlib import Path
from edokit._outputs import locked
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


def test_a_folder_in_use_is_refused_with_the_other_process_until_that_one_is_gone(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "out"
    other = holder(folder)
    try:
        for _ in range(2):
            said = pytest.raises(InputError, match=rf"in use.*process {other.pid} on")
            with said, output_folder(folder, "search"):
                pass
        (tmp_path / "link").symlink_to(folder)
        with pytest.raises(InputError, match=f"process {other.pid}"), locked(tmp_path / "link"):
            pass
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    # The file stays behind, and says nothing: the lock went with the process.
    assert json.loads((folder / LOCK).read_text())["pid"] == other.pid
    os.utime(folder / LOCK, (2**33, 2**33))
    with output_folder(folder, "search"):
        assert json.loads((folder / LOCK).read_text())["pid"] == os.getpid()
    assert list(folder.iterdir()) == []


def test_a_lock_of_ones_own_making_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    os.link(tmp_path / "mine", tmp_path / LOCK)
    with pytest.raises(InputError, match=r"did not write .*lock the folder"), locked(tmp_path):
        pass
    assert (tmp_path / LOCK).read_text(encoding="utf-8") == "mine"
    if hasattr(os, "mkfifo"):
        (tmp_path / LOCK).unlink()
        os.mkfifo(tmp_path / LOCK)
        with pytest.raises(InputError, match="did not write"), locked(tmp_path):
            pass
        assert (tmp_path / LOCK).is_fifo()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder in which no file can be")
def test_a_folder_that_takes_no_files_is_refused() -> None:
    with pytest.raises(InputError, match="can't write"), locked(Path("/proc")):
        pass


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_folder_that_was_not_replaced_by_the_shell_is_refused(kind: Kind) -> None:
    for folder in ("~", "~/run"):
        with pytest.raises(InputError, match="home folder"), output_folder(Path(folder), kind):
            pass


@unix
def test_a_link_elsewhere_in_the_folder_does_not_end_a_run(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    with output_folder(tmp_path, "search"):
        begin_run(tmp_path)


def test_an_input_below_a_folder_that_is_replaced_is_kept(tmp_path: Path) -> None:
    put(tmp_path, "compare/test.npz")
    said = pytest.raises(InputError, match="would be overwritten")
    with (
        said,
        output_folder(tmp_path, "comparison", tmp_path / "compare" / "test.npz", overwrite=True),
    ):
        pass


def test_a_folder_may_be_waited_for(tmp_path: Path) -> None:
    other = holder(tmp_path)
    threading.Timer(0.3, other.kill).start()
    said = pytest.warns(EDOWarning, match=rf"process {other.pid} on.*waiting until it has ended")
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
    assert f"process {os.getpid()}" in said[0]
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
    with pytest.raises(InputError, match=f"process {parent.pid}"), locked(tmp_path):
        pass
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    with locked(tmp_path):
        pass


def test_where_nothing_can_be_locked_a_run_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(handle: int) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(_outputs, "lock_file", unsupported)
    with pytest.warns(EDOWarning, match="can't be locked here"), locked(tmp_path):
        put(tmp_path, "results")
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_a_lock_holds_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        lock = locked(tmp_path)
        lock.__enter__()
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "is in use: another process writes to it; wait" in refused.stderr
    lock.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


@unix
def test_a_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    put(tmp_path, "mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="can't write"), locked(tmp_path / "out"):
        pass
    assert (tmp_path / "mine").read_text() == "x"
