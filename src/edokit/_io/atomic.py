"""Files that are there and not empty, and results that are written whole or not at all."""

from __future__ import annotations

import errno
import filecmp
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from edokit._errors import InputError, in_bytes, local_path
from edokit._parallel import free_memory


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that replaces it only when all is written."""
    path = local_path(path)
    made: list[Path] = []
    done = False
    try:
        # A link is followed, so that it stays a link.
        target = Path(os.path.realpath(path))
        mode = _mode(path, target)
        made += [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = _temporary_file(target.parent, target.suffix)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        remove_empty(made)
        raise cannot_write(path, error) from error
    if os.name == "nt":  # there, an open file can't be renamed
        os.close(handle)
    try:
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        if _keeping.get() and target.exists() and not filecmp.cmp(temporary, target, shallow=False):
            raise _other_content(path)
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
            remove_empty(made)
        if os.name != "nt":
            os.close(handle)


def check_start(temporary: Path, path: Path) -> None:
    """Refuse as early as `whole_file` may: once what is written differs from what is there."""
    if _keeping.get() and path.exists():
        with temporary.open("rb") as new, path.open("rb") as old:
            while part := new.read(1 << 20):
                if old.read(len(part)) != part:
                    raise _other_content(path)


def _other_content(path: Path) -> InputError:
    return InputError(
        f"{path} is there already, with other content",
        "name another file, or replace it with overwrite=True",
        parameters=("overwrite",),
    )


_keeping: ContextVar[bool] = ContextVar("keeping", default=False)


@contextmanager
def keep_others() -> Iterator[None]:
    """Inside, `whole_file` replaces no file but by the same content."""
    before = _keeping.set(True)
    try:
        yield
    finally:
        _keeping.reset(before)


def files_below(folder: Path, home: Path | None = None) -> dict[str, Path]:
    """All files in a folder, by their names relative to it; none may be a pipe or a device.

    Nor may one be a link that leads out of the folder, or of ``home``.
    """
    found, real = {}, os.path.realpath(home or folder)
    for path in sorted(folder.rglob("*")):
        inside = Path(os.path.realpath(path)).is_relative_to(real)
        if not inside or (path.is_symlink() and path.is_dir()):
            raise InputError(f"{path} is a link that leads out of {folder}", "put a copy there")
        if path.is_dir():
            continue
        if not path.is_file():
            raise InputError(f"{path} is not a regular file", "remove it")
        found[path.relative_to(folder).as_posix()] = path
    return found


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check_file(path: str | Path) -> Path:
    """The path, if it is a file with something in it."""
    path = local_path(path)
    try:
        # Arrow, for one, opens no other names.
        str(path).encode()
        known = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"there is no file {path}", "check the spelling") from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeError as error:
        raise InputError(
            f"the name of the file {path} is not valid Unicode", "rename the file"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{path} can't be the name of a file: {error}", "check the spelling"
        ) from error
    if stat.S_ISDIR(known.st_mode):
        raise InputError(f"{path} is a folder, not a file", "name a file inside it")
    if not stat.S_ISREG(known.st_mode):
        raise InputError(
            f"{path} is a pipe or a device, not an ordinary file",
            "save its content to a file first",
        )
    if known.st_size == 0:
        raise InputError(f"{path} is empty", "check that it was written to the end")
    return path


_RATIO = 200
"""A file that becomes so many times as large in memory may be made to do harm."""
_CAUTION = 4
_LITTLE = 2**25


def check_memory(path: Path, needed: float) -> None:
    """Refuse a file that needs more memory than is free (one packed very tightly: a quarter)."""
    tight = needed > _RATIO * path.stat().st_size
    if needed < _LITTLE and not tight:  # looking takes longer than reading so little
        return
    free = free_memory()
    if needed > (free / _CAUTION if tight else free):
        share = ", of which a file packed so tightly gets a quarter" if tight else ""
        raise InputError(
            f"{path} would take {in_bytes(needed)} of memory, but {in_bytes(free)} are free{share}",
            "check that it is the right file; if it is, free memory or split it",
        )


def cannot_read(path: Path, error: OSError | ValueError) -> InputError:
    """The error for an input that the system does not open."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"can't read {path}: {reason}", "check the path and its permissions")


def cannot_write(path: Path, error: OSError | ValueError) -> InputError:
    """The error for an output that can't be written."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"can't write {path}: {reason}", "choose another path")


def _mode(path: Path, target: Path) -> int:
    """The permissions of the file that is replaced, else those of any other new file."""
    if target.is_file():
        return target.stat().st_mode & 0o777
    if target.exists():
        kind = "a folder" if target.is_dir() else "not a regular file"
        raise InputError(f"can't write {path}: it is {kind}", "choose another path")
    # mkstemp makes private files; the umask can only be read by setting it.
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that were made for nothing, innermost first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


_UNFINISHED = ".edo-unfinished-"
"""With eight more letters or digits, the name of what is not whole; people use no such names."""
_LOCK = ".lock"
_cleaned: set[Path] = set()
_held: dict[Path, int] = {}


def _temporary_file(folder: Path, suffix: str) -> tuple[int, Path]:
    """A new file in the folder, open and locked for as long as this process needs it.

    Leftover temporary files of killed processes are removed: the system has freed their locks.
    """
    if folder not in _cleaned:
        _cleaned.add(folder)
        with suppress(OSError):
            for entry in list(os.scandir(folder)):
                if _is_temporary(Path(entry.name).stem, _UNFINISHED):
                    _remove_unless_held(Path(entry.path))
    while True:
        handle, name = tempfile.mkstemp(prefix=_UNFINISHED, suffix=suffix, dir=folder)
        _lock(handle)
        # Another process may have removed it before the lock was there.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def temporary_folder(parent: Path, prefix: str) -> Path:
    """A new folder that is this process's own until `drop_folder`.

    Leftover folders of the same prefix, of killed processes, are removed.
    """
    for entry in list(os.scandir(parent)):
        if _is_temporary(entry.name, prefix) and entry.is_dir():
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


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty temporary folder that is renamed to ``path`` only when all is written.

    If ``path`` came to exist meanwhile, it stays and the new folder is dropped.
    """
    outer: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        outer = temporary_folder(path.parent, _UNFINISHED)
        inner = outer / path.name
        inner.mkdir()
        yield inner
        _sync(inner)
        try:
            inner.rename(path)
        except OSError:
            if not path.is_dir():
                raise
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if outer is not None:
            drop_folder(outer)


@contextmanager
def whole_content(folder: Path, first: str) -> Iterator[Path]:
    """An empty temporary folder in ``folder``, whose entries replace those there of their names
    when all is written, ``first`` before the others."""
    inner: Path | None = None
    try:
        inner = temporary_folder(folder, _UNFINISHED)
        yield inner
        _sync(inner)
        names = [path.name for path in inner.iterdir() if path.name != _LOCK]
        for name in sorted(names, key=lambda name: (name != first, name)):
            if (folder / name).is_dir():
                discard(folder / name)
            (inner / name).replace(folder / name)
        sync_folder(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        if inner is not None:
            drop_folder(inner)


def _sync(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("r+b") as stream:
                os.fsync(stream.fileno())
        elif file.is_dir():
            sync_folder(file)
    sync_folder(folder)


def discard(path: Path) -> None:
    """Remove a folder: it is gone at once, even if removing its files is interrupted."""
    try:
        if path.is_dir():
            outer = temporary_folder(path.parent, _UNFINISHED)
            path.rename(outer / path.name)
            drop_folder(outer)
    except OSError as error:
        raise cannot_write(path, error) from error


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished folders in it, at any depth, that killed processes have left."""
    for left in list(folder.rglob(f"{_UNFINISHED}*")):
        if _is_temporary(left.name, _UNFINISHED):
            _remove_unless_held(left)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, as fsync does with the content of a file."""
    with suppress(OSError):  # folders can't be opened on Windows, nor synced everywhere else
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_temporary(name: str, prefix: str) -> bool:
    return re.fullmatch(re.escape(prefix) + "[a-z0-9_]{8}", name) is not None


def is_leftover(name: str) -> bool:
    """Whether this is the name of something unfinished."""
    return _is_temporary(Path(name).stem, _UNFINISHED)


def _remove_unless_held(path: Path) -> None:
    """Remove a temporary file or folder, unless a living process has it locked."""
    is_folder = path.is_dir()
    with suppress(OSError):
        # Killed before there was a lock; or in the making, and then another one is made.
        path.rmdir()
    with suppress(OSError):
        locked = path / _LOCK if is_folder else path
        handle = os.open(locked, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _lock(handle):
                shutil.rmtree(path, ignore_errors=True) if is_folder else path.unlink()
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    """Lock a temporary file until it is closed; False if another process has it, or none can."""
    if sys.platform == "win32":
        return False
    try:
        return lock_file(handle)
    except OSError:
        return False


# Beyond the end of any file: Windows keeps others from reading what is locked.
_FAR = 1 << 40


def lock_file(handle: int) -> bool:
    """Lock an open file for this process, until it is closed; False if another process has it.

    The system frees the lock when the process ends, however it ends. Where files can't be locked,
    as on some network file systems, that is an OSError.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True
