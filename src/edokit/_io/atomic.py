"""Checks of input files, and results that are written completely or not at all.

A result is first written to a temporary folder beside it. A lock marks the folder as in use:
without a lock, it is a leftover of a killed process.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from edokit._errors import InputError, local_path, option
from edokit._io.locks import FileLock, Timeout, take_lock


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary file that replaces ``path`` once it is completely written."""
    path = local_path(path)
    with _beside(path) as (target, folder):
        if target.exists() and not target.is_file():
            kind = "not a regular file"
            if target.is_dir():
                kind = "a folder"
            raise InputError(
                f"can't write {path}: it is {kind}", "choose another path", code="unwritable-file"
            )
        temporary = folder / f".file{target.suffix}"
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        if target.exists():
            if _keeping.get() and not filecmp.cmp(temporary, target, shallow=False):
                raise _other_content(path)
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty temporary folder that is renamed to ``path`` once it is completely written.

    If ``path`` has been created by then, it is kept and the new folder is dropped.
    """
    with _beside(path) as (target, folder):
        content = folder / target.name
        content.mkdir()
        yield content
        _sync(content)
        try:
            content.rename(target)
        except OSError:
            if not target.is_dir():
                raise


@contextmanager
def _beside(path: Path) -> Iterator[tuple[Path, Path]]:
    """The resolved path of an output, and a temporary folder beside it."""
    new_folders: list[Path] = []
    temporary: Path | None = None
    try:
        # The target of a link is replaced, so that the link itself remains.
        target = Path(os.path.realpath(path))
        new_folders += [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_folder(target.parent, _UNFINISHED)
    except (OSError, ValueError) as error:
        remove_empty(new_folders)
        raise cannot_write(path, error) from error
    try:
        yield target, temporary
        for folder in (target.parent, *(folder.parent for folder in new_folders)):
            sync_folder(folder)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        drop_folder(temporary)
        remove_empty(new_folders)


def check_start(temporary: Path, path: Path) -> None:
    """Refuse as early as possible what `whole_file` would refuse: a file with other content."""
    if _keeping.get() and path.exists():
        with temporary.open("rb") as new, path.open("rb") as old:
            while part := new.read(1 << 20):
                if old.read(len(part)) != part:
                    raise _other_content(path)


def _other_content(path: Path) -> InputError:
    return InputError(
        f"{path} exists already, with other content",
        f"name another file, or replace it with {option('overwrite', True)}",
        code="existing-file",
    )


_keeping: ContextVar[bool] = ContextVar("keeping", default=False)


@contextmanager
def keep_others() -> Iterator[None]:
    """In this context, `whole_file` refuses to replace a file that has other content."""
    before = _keeping.set(True)
    try:
        yield
    finally:
        _keeping.reset(before)


def files_below(folder: Path, home: Path | None = None) -> dict[str, Path]:
    """All files in a folder by their relative paths.

    Refuses pipes and devices, and links that lead out of the folder (or out of ``home``).
    """
    files = {}
    root = os.path.realpath(home or folder)
    for path in sorted(folder.rglob("*")):
        inside = Path(os.path.realpath(path)).is_relative_to(root)
        if not inside or (path.is_symlink() and path.is_dir()):
            raise InputError(
                f"{path} is a link that leads out of {folder}",
                "put a copy there",
                code="outside-link",
            )
        if path.is_dir():
            continue
        if not path.is_file():
            raise InputError(f"{path} is not a regular file", "remove it", code="not-a-file")
        files[path.relative_to(folder).as_posix()] = path
    return files


def check_file(path: str | Path) -> Path:
    """Return the path if it is a regular file that is not empty."""
    path = local_path(path)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"there is no file {path}", "check the spelling", code="missing-file"
        ) from error
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(
            f"{path} is a folder, not a file", "name a file inside it", code="not-a-file"
        )
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path} is a pipe or a device, not an ordinary file",
            "save its content to a file first",
            code="not-a-file",
        )
    if status.st_size == 0:
        raise InputError(
            f"{path} is empty", "check that it was written to the end", code="empty-file"
        )
    return path


def cannot_read(path: Path, error: OSError | ValueError) -> InputError:
    """The error for an input that the operating system can't open."""
    reason = getattr(error, "strerror", None) or error
    return InputError(
        f"can't read {path}: {reason}", "check the path and its permissions", code="unreadable-file"
    )


def cannot_write(path: Path, error: OSError | ValueError) -> InputError:
    """The error for an output that can't be written."""
    reason = getattr(error, "strerror", None) or error
    return InputError(
        f"can't write {path}: {reason}", "choose another path", code="unwritable-file"
    )


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that were created but remained empty, innermost first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


_UNFINISHED = ".edo-unfinished-"
"""Prefix of the names of temporary folders, before eight random letters or digits."""
_LOCK = ".lock"
_cleaned: set[tuple[Path, str]] = set()
_locks: dict[Path, FileLock] = {}


def temporary_folder(parent: Path, prefix: str) -> Path:
    """A new folder that this process owns until `drop_folder`.

    Folders with the same prefix that killed processes left behind are removed.
    """
    if (parent, prefix) not in _cleaned:
        _cleaned.add((parent, prefix))
        for entry in list(os.scandir(parent)):
            if _is_temporary(entry.name, prefix):
                _remove_unless_locked(Path(entry.path))
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            _locks[folder] = take_lock(folder / _LOCK)
        except (Timeout, FileNotFoundError):
            continue  # another process removed it as a leftover before it was locked
        except OSError:
            return folder  # some network file systems don't support locks
        return folder


def drop_folder(folder: Path) -> None:
    """Remove a folder that `temporary_folder` made."""
    _remove_content(folder)
    if folder in _locks:
        _locks.pop(folder).release()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_content(folder: Path) -> None:
    """Remove everything but the lock, which identifies a leftover if this process is killed."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _LOCK:
                os.unlink(entry.path)


@contextmanager
def whole_content(folder: Path, first_name: str) -> Iterator[Path]:
    """An empty temporary folder in ``folder``; once it is completely written, its entries replace
    those of the same names in ``folder``, beginning with ``first_name``."""
    inner: Path | None = None
    try:
        inner = temporary_folder(folder, _UNFINISHED)
        yield inner
        _sync(inner)
        names = [path.name for path in inner.iterdir() if path.name != _LOCK]
        for name in sorted(names, key=lambda name: (name != first_name, name)):
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
    """Remove a folder; it disappears at once, even if removing its files is interrupted."""
    try:
        if path.is_dir():
            outer = temporary_folder(path.parent, _UNFINISHED)
            path.rename(outer / path.name)
            drop_folder(outer)
    except OSError as error:
        raise cannot_write(path, error) from error


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary folders that killed processes left in it, at any depth."""
    for path in list(folder.rglob(f"{_UNFINISHED}*")):
        if _is_temporary(path.name, _UNFINISHED):
            _remove_unless_locked(path)


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to disk, as fsync does with the content of a file."""
    with suppress(OSError):  # Windows can't open folders, and some systems can't sync them
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_temporary(name: str, prefix: str) -> bool:
    return re.fullmatch(re.escape(prefix) + "[a-z0-9_]{8}", name) is not None


def _remove_unless_locked(folder: Path) -> None:
    """Remove a temporary folder, unless a living process has it locked."""
    if not folder.is_dir():
        return  # removed together with its parent; a lock would create it again
    if set(os.listdir(folder)) - {_LOCK} and not (folder / _LOCK).exists():
        return  # not made by `temporary_folder`
    try:
        lock = take_lock(folder / _LOCK)
    except OSError:
        return
    try:
        _remove_content(folder)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()
