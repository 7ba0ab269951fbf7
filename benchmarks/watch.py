"""Measure the memory and time of a process with all its children."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

GIB = 2**30


class Watch:
    """Memory and processor time of a process and its children."""

    def __init__(self) -> None:
        self.most = 0
        """Bytes resident at the worst moment (pages that processes share count for each)."""
        self._ticks: dict[int, int] = {}

    @property
    def minutes(self) -> float:
        """Processor minutes."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK") / 60

    def look(self, pid: int) -> None:
        self.most = max(self.most, self._resident(pid))

    def _resident(self, pid: int) -> int:
        try:
            process = Path(f"/proc/{pid}")
            pages = int((process / "statm").read_text().split()[1])
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            self._ticks[pid] = int(fields[11]) + int(fields[12])
            children: list[int] = []
            for task in (process / "task").iterdir():
                children += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(self._resident, children))


def watched(command: list[str]) -> tuple[dict[str, Any], Watch]:
    """The JSON that a command prints, and its memory and time, sampled twenty times a second."""
    watch = Watch()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            watch.look(running.pid)
            time.sleep(0.05)
        assert running.stdout is not None
        printed = running.stdout.read()
    if running.returncode:
        raise SystemExit(running.returncode)
    return json.loads(printed), watch
