"""Limits on the memory that a file may take, checked by an estimate before it is allocated.

A file may take as much memory as is free. A file that expands to more than 200 times its size may
be malicious: it may take a quarter of the free memory, and at most 512 MiB. `EDO_MAX_MEMORY` in
the environment replaces both limits.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from edokit._errors import InputError, in_bytes

LIMIT = "EDO_MAX_MEMORY"
"""The environment variable with the bytes of memory that a file may take."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*", re.IGNORECASE)
_SUSPICIOUS_RATIO = 200
"""A file that expands to more than this multiple of its size may be malicious."""
_SUSPICIOUS_SHARE = 0.25
"""Share of the free memory that such a file may take."""
_SUSPICIOUS_LIMIT = 2**29
"""Largest number of bytes of memory that such a file may take."""
_FIRST_CHECK = 2**25
"""Bytes of memory up to which nothing is checked, since checking takes longer than reading."""


def check_memory(path: Path, needed: float) -> None:
    """Refuse a file that would take ``needed`` bytes of memory if they exceed the limit."""
    MemoryBudget(path).take(needed)


class MemoryBudget:
    """The estimated memory that reading a file takes; above the limit, the file is refused.

    Parameters
    ----------
    path : Path
        The file that is read, or the folder of files.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = _size_on_disk(path)
        self._needed = 0.0
        self._next_check = float(_FIRST_CHECK)
        self._free: float | None = None

    def take(self, needed: float) -> None:
        """Add an estimate in bytes before this memory is allocated."""
        self._needed += needed
        if self._needed < self._next_check and not self._is_suspicious():
            return
        # The limit is checked again once the estimate has grown by a tenth.
        self._next_check = max(self._next_check, 1.1 * self._needed)
        self._check()

    def _is_suspicious(self) -> bool:
        """Whether the file expands so much that it may be malicious."""
        return self._needed > _SUSPICIOUS_RATIO * self._size

    def _check(self) -> None:
        stated = stated_limit()
        if stated is not None:
            if self._needed > stated:
                raise self._refusal(f"{LIMIT} allows {in_bytes(stated)}")
            return
        if self._free is None:  # measured before anything is read
            from edokit._parallel import free_memory

            self._free = free_memory()
        if self._is_suspicious():
            limit = min(self._free * _SUSPICIOUS_SHARE, _SUSPICIOUS_LIMIT)
            if self._needed > limit:
                raise self._refusal(
                    f"{in_bytes(self._free)} are free, and a file with such high compression may"
                    f" take {in_bytes(limit)} of it"
                )
        elif self._needed > self._free:
            raise self._refusal(f"{in_bytes(self._free)} are free")

    def _refusal(self, reason: str) -> InputError:
        enough = int(2 * self._needed / 2**20) + 1
        return InputError(
            f"{self._path} would take {in_bytes(self._needed)} of memory, but {reason}",
            "check that it is the right file; if it is, split it, or set the variable"
            f" {LIMIT}={enough}M in the environment",
            code="too-large-file",
        )


def _size_on_disk(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def stated_limit() -> float | None:
    """The bytes that `EDO_MAX_MEMORY` allows; None if it is not set."""
    stated = os.environ.get(LIMIT, "")
    if not stated:
        return None
    match = _SIZE.fullmatch(stated)
    if match is None:
        raise InputError(
            f"{LIMIT}={stated} is not a size",
            f"write {LIMIT}=500M or {LIMIT}=4G",
            code="invalid-number",
        )
    return float(match[1]) * _UNITS[match[2].upper()]
