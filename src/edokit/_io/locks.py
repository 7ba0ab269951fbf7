"""Locks on files: one process at a time writes to a place, and a killed one leaves none behind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["FileLock", "Timeout", "drop_lock", "take_lock"]


def take_lock(path: Path, *, wait: bool = False, reentrant: bool = False) -> FileLock:
    """Lock a file, which is made if it is not there.

    Parameters
    ----------
    path : Path
        The file of the lock.
    wait : bool, default=False
        Whether to wait while another process has it; otherwise, that raises `Timeout`.
    reentrant : bool, default=False
        Whether this thread may take it again while it has it.

    Returns
    -------
    FileLock
        The lock, to be released by its ``release`` or by `drop_lock`. The system releases the lock
        of a process that ends.
    """
    lock = FileLock(path, is_singleton=reentrant)
    lock.acquire(timeout=-1 if wait else 0)
    return lock


def drop_lock(lock: FileLock) -> None:
    """Release a lock, and remove its file unless it is still held by an outer block."""
    if lock.lock_counter <= 1:
        with suppress(OSError):  # Windows removes no open file
            Path(lock.lock_file).unlink()
    lock.release()
