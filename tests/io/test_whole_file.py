"""Results are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from edokit import InputError
from edokit._io.atomic import check_file, whole_file
from tests.errors import raises_code


def test_the_file_appears_only_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    with whole_file(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "half"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "error",
    [RuntimeError("stop"), KeyboardInterrupt("stop"), InputError("stop", code="stopped-run")],
)
def test_a_failure_leaves_nothing_and_keeps_the_old_file(
    error: BaseException, tmp_path: Path
) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old", encoding="utf-8")

    def fail() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_are_made_for_a_result_and_removed_after_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "some" / "new" / "result.txt"
    with pytest.raises(RuntimeError), whole_file(path):
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as temporary:
        temporary.write_text("all", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "all"


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with raises_code("unwritable-file", "result.txt"):  # noqa: SIM117
        with whole_file(path):
            raise full
    assert list(tmp_path.iterdir()) == []


def test_a_place_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with (
        raises_code("unwritable-file", "Permission denied"),
        whole_file(tmp_path / "new" / "result.txt"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_place_inside_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with raises_code("unwritable-file"), whole_file(tmp_path / "file" / "x"):
        pass


@pytest.mark.parametrize("name", ["a\0b.txt", "x" * 400 + ".txt"])
def test_a_name_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with raises_code("unwritable-file"), whole_file(tmp_path / name):
        pass


def test_a_long_but_possible_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".txt")
    with whole_file(path) as temporary:
        temporary.write_text("all", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "all"


def test_a_folder_or_device_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with raises_code("unwritable-file"), whole_file(tmp_path / "folder"):
        pass
    with raises_code("unwritable-file"), whole_file(os.devnull):
        pass
    assert not Path(os.devnull).is_file()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    link = tmp_path / "link.txt"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    with whole_file(link) as temporary:
        temporary.write_text("new", encoding="utf-8")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_new_file_is_as_public_as_any_and_an_old_one_stays_as_private(tmp_path: Path) -> None:
    plain, new, old = (tmp_path / name for name in ("plain", "new", "old"))
    plain.write_text("x", encoding="utf-8")
    old.write_text("x", encoding="utf-8")
    old.chmod(0o600)
    for path in (new, old):
        with whole_file(path) as temporary:
            temporary.write_text("y", encoding="utf-8")
    assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert stat.S_IMODE(old.stat().st_mode) == 0o600


def test_an_input_must_exist_and_hold_something(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    with raises_code("missing-file", "gone.csv"):
        check_file(tmp_path / "gone.csv")
    with raises_code("missing-file"):
        check_file(empty / "inside.csv")
    with raises_code("empty-file", "empty.csv"):
        check_file(empty)
    with raises_code("not-a-file"):
        check_file(tmp_path)
    with raises_code("unreadable-file", "long"):
        check_file(tmp_path / ("x" * 400))
    with raises_code("unreadable-file", "null"):
        check_file("a\0b")


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    left = tmp_path / ".edo-unfinished-abc_1234"
    mine = tmp_path / ".edo-settings.json"
    left.mkdir()
    (left / ".lock").touch()
    (left / ".file.json").write_text("half", encoding="utf-8")
    mine.write_text("my own", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from edokit._io.atomic import whole_file\n"
        "with whole_file(Path(sys.argv[1]) / 'slow.txt') as t:\n"
        "    t.write_text('all'); print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline().strip() == b"ready"
        assert not left.exists()
        with whole_file(tmp_path / "quick.txt") as temporary:
            temporary.write_text("all", encoding="utf-8")
        slow.communicate(b"")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        mine.name,
        "quick.txt",
        "slow.txt",
    ]


def test_content_and_name_are_on_the_disk_before_a_result_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync = os.fsync
    replace = Path.replace

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    with whole_file(tmp_path / "new" / "result.txt") as temporary:
        temporary.write_text("all", encoding="utf-8")
    # The folder of the result, and the one in which that folder is new.
    assert done == ["file", "name", "folder", "folder"]
