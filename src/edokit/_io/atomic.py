"""Files that are there and not empty, and results that are written whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edokit._errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place only when all is written."""
    path = Path(path)
    made: list[Path] = []
    done = False
    try:
        # A link is followed, so that it stays a link.
        target = Path(os.path.realpath(path))
        mode = _mode(path, target)
        made += [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = temporary_file(target.parent, target.suffix)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        _remove(made)
        raise cannot_write(path, error) from error
    if os.name == "nt":  # there, an open file can't be renamed
        os.close(handle)
    try:
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
        done = True
        for folder in (target.parent, *(folder.parent for folder in made)):
            sync_folder(folder)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if not done:
            # The first error counts, also where the disk lets nothing be removed.
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            _remove(made)
        if os.name != "nt":
            os.close(handle)


def check_file(path: str | Path) -> Path:
    """The path, if it is a file with something in it."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(
                f"a file is needed here, but {path} is a folder", "name a file inside it"
            )
        # Arrow, for one, opens no other names.
        str(path).encode()
        known = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"the file must exist, but {path} does not", "check the spelling"
        ) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeError as error:
        raise InputError(
            f"the name of a file must be valid Unicode, but {path} is not", "rename the file"
        ) from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} must be the name of a file, but {error}", "check the spelling"
        ) from error
    if not stat.S_ISREG(known.st_mode):
        raise InputError(
            f"an ordinary file is needed here, but {path} is a pipe or a device",
            "save its content to a file first",
        )
    if known.st_size == 0:
        raise InputError(
            f"the file must not be empty, but {path} is", "check that it was written to the end"
        )
    return path


def cannot_read(path: Path, error: OSError | ValueError) -> InputError:
    """The sentence for an input that the system does not hand out."""
    return InputError(
        f"{path} must be readable, but {getattr(error, 'strerror', None) or error}",
        "check the path and its permissions",
    )


def cannot_write(path: Path, error: OSError | ValueError) -> InputError:
    """The sentence for an output that can't be written."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{path} must be writable, but {reason}", "choose another place")


def _mode(path: Path, target: Path) -> int:
    """The permissions of the file that is replaced, else those of any other new file."""
    if target.is_file():
        return target.stat().st_mode & 0o777
    if target.exists():
        kind = "a folder" if target.is_dir() else "no ordinary file"
        raise InputError(f"{path} must be writable, but is {kind}", "choose another place")
    # mkstemp makes private files; the umask can only be read by setting it.
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _remove(folders: list[Path]) -> None:
    """Remove the folders that were made for a file that was not, innermost first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


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
