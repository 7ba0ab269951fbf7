"""File locks: one process at a time writes to a place, and killed processes leave none behind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["FileLock", "Timeout", "drop_lock", "take_lock"]


def take_lock(path: Path, *, wait: bool = False, reentrant: bool = False) -> FileLock:
    """Lock a file, which is created if it does not exist.

    Parameters
    ----------
    path : Path
        The file of the lock.
    wait : bool, default=False
        Whether to wait while another process holds the lock; otherwise `Timeout` is raised.
    reentrant : bool, default=False
        Whether this thread may take the lock again while it holds it.

    Returns
    -------
    FileLock
        The lock, to be released by its method ``release`` or by `drop_lock`. The operating system
        releases the locks of a process that ends.
    """
    lock = FileLock(path, is_singleton=reentrant)
    timeout = 0.0
    if wait:
        timeout = -1.0  # without limit
    lock.acquire(timeout=timeout)
    return lock


def drop_lock(lock: FileLock) -> None:
    """Release a lock, and remove its file unless an outer block still holds it."""
    if lock.lock_counter <= 1:
        with suppress(OSError):  # Windows can't remove open files
            Path(lock.lock_file).unlink()
    lock.release()
