"""A folder appears whole or not at all."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from edokit._errors import InputError
from edokit.members.storing import remove_unfinished, whole_folder


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
    with pytest.raises(InputError, match="must be writable"), whole_folder(tmp_path / "file" / "a"):
        pass


def test_a_folder_is_as_public_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with whole_folder(tmp_path / "whole"):
        pass
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_dead_processes_left_is_removed_and_what_living_ones_write_is_not(
    tmp_path: Path,
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = {
        pid: tmp_path / "a" / f".unfinished-{platform.node()}-{pid}-xyz"
        for pid in (dead.pid, os.getpid())
    }
    for folder in left.values():
        folder.mkdir(parents=True)
    remove_unfinished(tmp_path)
    assert not left[dead.pid].exists()
    assert left[os.getpid()].exists()
