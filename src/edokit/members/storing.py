"""Folders that appear and go whole or not at all."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edokit._errors import InputError

_MARK = ".unfinished-"


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path`` that takes its place only when all is written.

    If ``path`` came to exist meanwhile, it stays and the new folder is dropped.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(path)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("r+b") as stream:
                    os.fsync(stream.fileno())
            elif file.is_dir():
                _sync_names(file)
        _sync_names(temporary)
        # mkdtemp makes private folders; the umask can only be read by setting it.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
        _sync_names(path.parent)
    except OSError as error:
        raise InputError(
            f"{path} must be writable, but {error.strerror or error}", "choose another place"
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def discard(path: Path) -> None:
    """Remove a folder: at once for all who look, whatever happens meanwhile."""
    try:
        if path.is_dir():
            gone = _beside(path)
            path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
    except OSError as error:
        raise InputError(
            f"{path} must be replaced, but {error.strerror or error}", "choose another place"
        ) from error


def remove_unfinished(folder: Path) -> None:
    """Remove what processes of this machine that are gone have left behind."""
    for left in list(folder.rglob(f"{_MARK}*")):
        host, _, process = left.name.removeprefix(_MARK).rpartition("-")[0].rpartition("-")
        if host == platform.node() and process.isdecimal() and not _alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A new folder beside ``path`` that says whose it is."""
    name = f"{_MARK}{platform.node()}-{os.getpid()}-"
    return Path(tempfile.mkdtemp(prefix=name, dir=path.parent))


def _sync_names(folder: Path) -> None:
    """Bring the names in a folder to the disk; Windows can't."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _alive(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
