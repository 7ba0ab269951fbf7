"""A folder appears whole or not at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edokit._io.atomic import discard, remove_leftovers, whole_folder
from tests.errors import raises_code


def test_a_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "new" / "folder") as folder:
        (folder / "file").write_text("x")
        assert not (tmp_path / "new" / "folder").exists()
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["file"]
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["folder"]


def test_nothing_appears_when_writing_fails(tmp_path: Path) -> None:
    def write() -> None:
        with whole_folder(tmp_path / "folder") as folder:
            (folder / "file").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_came_first_stays(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "folder") as folder:
        (folder / "file").write_text("mine")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "file").write_text("theirs")
    assert (tmp_path / "folder" / "file").read_text() == "theirs"
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with raises_code("unwritable-file"), whole_folder(tmp_path / "file" / "a"):
        pass


def test_a_folder_is_as_public_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with whole_folder(tmp_path / "whole"):
        pass
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


KILLED = """
import os, sys
from pathlib import Path
from edokit._io.atomic import whole_folder

with whole_folder(Path(sys.argv[1]) / "a" / "folder") as folder:
    (folder / "file").write_text("x")
    os.kill(os.getpid(), 9)
"""


def test_what_dead_processes_left_is_removed_and_what_living_ones_write_is_not(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert len(list((tmp_path / "a").iterdir())) == 1
    with whole_folder(tmp_path / "b" / "folder") as folder:
        remove_leftovers(tmp_path)
        assert list((tmp_path / "a").iterdir()) == []
        assert folder.is_dir()
    assert (tmp_path / "b" / "folder").is_dir()


def test_what_is_left_beside_a_folder_goes_when_another_is_written(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    with whole_folder(tmp_path / "a" / "other"):
        pass
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["other"]


def test_folders_of_other_names_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-chapters").mkdir()
    remove_leftovers(tmp_path)
    assert (tmp_path / ".unfinished-chapters").is_dir()


def test_a_folder_goes_at_once_whatever_happens_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "member").mkdir()
    (tmp_path / "member" / "file").write_text("x")

    def killed(path: Path, **_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            discard(tmp_path / "member")
    assert not (tmp_path / "member").exists()
    discard(tmp_path / "never there")


def test_a_leftover_within_a_leftover_goes_with_it(tmp_path: Path) -> None:
    inner = tmp_path / ".edo-unfinished-12345678" / "member" / ".edo-unfinished-87654321"
    inner.mkdir(parents=True)
    (tmp_path / ".edo-unfinished-12345678" / ".lock").touch()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []
