"""Run the script of an example in this process; its commands fork a process with all imports."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FORKING = multiprocessing.get_context("forkserver" if sys.platform != "win32" else "spawn")
IMPORTED = (
    "edokit.cli.app",
    "edokit.datasets.read",
    "edokit.ensemble.estimator",
    "edokit.members.manifest",
    "edokit.members.recipes.linear",
    "edokit.members.recipes.llm",
    "httpx2",
    "pandas",
    "rich.table",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.linear_model",
)


def run_here(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an example in this process; its commands print to the process's standard output."""
    if sys.platform != "win32":
        FORKING.set_forkserver_preload(list(IMPORTED))
    script = EXAMPLES / example / "run.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(folder)])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    monkeypatch.setattr(subprocess, "run", _run)
    runpy.run_path(str(script), run_name="__main__")


def _run(words: Sequence[str], *, cwd: Path, check: bool) -> subprocess.CompletedProcess[str]:
    """Run a command of `edo`, in place of `subprocess.run`."""
    assert words[0] == "edo"
    sys.stdout.flush()
    command = FORKING.Process(target=_command, args=(list(words), cwd, dict(os.environ)))
    command.start()
    command.join()
    done = subprocess.CompletedProcess[str](words, command.exitcode)
    if check:
        done.check_returncode()
    return done


def _command(words: list[str], cwd: Path, env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = words
    from edokit.cli import main

    main()
