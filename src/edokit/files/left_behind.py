"""Temporary files and folders, told apart from those that a killed process has left behind."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = ".edo-"
_NAME = re.compile(r"\.edo-[a-z0-9_]{8}(\..*)?")
_LOCK = ".lock"
_tidied: set[Path] = set()
_held: dict[Path, int] = {}


def temporary_file(folder: Path, suffix: str) -> tuple[int, Path]:
    """A new file in the folder, open and locked for as long as this process needs it.

    What killed processes have left there is removed: the system has freed their locks.
    """
    if folder not in _tidied:
        _tidied.add(folder)
        _tidy(folder)
    while True:
        handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=suffix, dir=folder)
        _lock(handle)
        # Somebody may have tidied up before the lock was there.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def temporary_folder(parent: Path, prefix: str) -> Path:
    """A new folder that is this process's own until `drop_folder`.

    Those of the same prefix that killed processes have left beside it are removed.
    """
    for entry in list(os.scandir(parent)):
        if re.fullmatch(re.escape(prefix) + "[a-z0-9_]{8}", entry.name) and entry.is_dir():
            _remove_unless_held(Path(entry.path))
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            _lock(handle)
            if os.fstat(handle).st_nlink:
                _held[folder] = handle
                return folder
            os.close(handle)


def drop_folder(folder: Path) -> None:
    """Remove a folder that `temporary_folder` made."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder in _held:
        os.close(_held.pop(folder))


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, as fsync does with the content of a file."""
    with suppress(OSError):  # folders can't be opened on Windows, nor synced everywhere else
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _tidy(folder: Path) -> None:
    with suppress(OSError):
        left = [entry.path for entry in os.scandir(folder) if _NAME.fullmatch(entry.name)]
        for path in left:
            with suppress(OSError):
                handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _lock(handle):
                        os.unlink(path)
                finally:
                    os.close(handle)


def _remove_unless_held(folder: Path) -> None:
    with suppress(OSError):
        # Killed before there was a lock; or in the making, and then another one is made.
        folder.rmdir()
    with suppress(OSError):
        handle = os.open(folder / _LOCK, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _lock(handle):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    """Lock a file until it is closed; False where another process has it or nothing can be."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
