"""Temporary folders go with the process that made them, at the latest when the next one comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edokit._io.atomic import drop_folder, temporary_folder

MADE = """
import sys; from pathlib import Path; from edokit._io.atomic import temporary_folder
folder = temporary_folder(Path(sys.argv[1]), "copy-")
(folder / "large").write_text("x")
print(folder.name, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_dropped_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = temporary_folder(tmp_path, "copy-")
    (folder / "large").write_text("x", encoding="utf-8")
    drop_folder(folder)
    drop_folder(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there, nothing is tidied")
def test_what_a_killed_process_left_goes_and_what_a_living_one_holds_stays(tmp_path: Path) -> None:
    (tmp_path / "copy-of my thesis").mkdir()
    (tmp_path / "copy-12345678").mkdir()  # killed before there was a lock
    (tmp_path / "copy-somebody").mkdir()
    (tmp_path / "copy-somebody" / "thesis").write_text("x", encoding="utf-8")
    started = {
        fate: subprocess.Popen(
            [sys.executable, "-c", MADE, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for fate in ("killed", "alive")
    }
    held = {}
    for fate, process in started.items():
        assert process.stdout is not None
        held[fate] = process, tmp_path / process.stdout.readline().strip()
    held["killed"][0].kill()
    held["killed"][0].communicate()
    mine = temporary_folder(tmp_path, "copy-")
    assert not held["killed"][1].exists()
    assert (held["alive"][1] / "large").exists()
    assert (tmp_path / "copy-of my thesis").exists()
    assert not (tmp_path / "copy-12345678").exists()
    assert (tmp_path / "copy-somebody" / "thesis").exists()
    drop_folder(mine)
    held["alive"][0].communicate("")
