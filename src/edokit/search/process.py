"""Which process is at work: a mark that others on the same machine can check."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path


def own_mark() -> str:
    """This process, as ``HOST/PLACE/PID/START``."""
    host = socket.gethostname().replace("/", "-") or "host"
    return f"{host}/{_place()}/{os.getpid()}/{_start(os.getpid())}"


def is_gone(mark: str) -> bool:
    """Whether the marked process has surely ended; False where that can't be told from here."""
    parts = mark.rsplit("/", 3)
    if len(parts) != 4 or parts[1] != _place() or not _place() or not parts[2].isdecimal():
        return False
    return _start(int(parts[2])) != parts[3]


def _place() -> str:
    """One running system and its numbering of processes; empty where it has no name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _start(pid: int) -> str:
    """When the process began, in ticks since the machine did; empty if there is none."""
    if sys.platform != "linux":
        return ""
    with suppress(OSError):
        # The name of the program stands in parentheses and may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = fields.rpartition(")")[2].split()
        if state not in "ZX":
            return rest[18]
    return ""
