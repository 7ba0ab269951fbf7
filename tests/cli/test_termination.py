"""A command that is terminated takes its worker processes with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = """
from joblib import Parallel, delayed
from edokit.cli.console import resumable

WORK = "import os, time; open(str(os.getpid()), 'w').close(); time.sleep(60)"
with resumable():
    Parallel(2)(delayed(exec)(WORK) for _ in range(2))
"""


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_sigterm_ends_workers_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND], cwd=tmp_path, stderr=-1) as command:
        workers: list[int] = []
        deadline = time.monotonic() + 60
        while len(workers) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            workers = [int(file.name) for file in tmp_path.iterdir()]
        assert len(workers) == 2
        command.send_signal(signal.SIGTERM)
        _, stderr = command.communicate(timeout=30)
    assert command.returncode == 128 + signal.SIGTERM
    assert stderr.splitlines() == [
        b"ended; what is finished is kept; run the same command again to resume"
    ]
    deadline = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))
