"""Checks and locks of output folders.

An output folder must be new or empty, or contain earlier results of the same kind, unless
``overwrite`` is set. One process at a time writes to it. Inputs are never overwritten.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from edokit._errors import InputError, local_path, option, warn
from edokit._io.atomic import cannot_write, keep_others, remove_empty
from edokit._io.locks import FileLock, Timeout, drop_lock, take_lock

Kind = Literal["run", "bundle", "demo", "search", "comparison", "members", "ensemble"]

BUNDLE = "bundle.json"
REPORT = "report.html"
LOCK = ".edo.lock"
REPLACE = f"choose another output folder, or replace it with {option('overwrite', True)}"


class FolderKind(NamedTuple):
    """The documents by which a kind of output folder is recognised.

    Attributes
    ----------
    title : str
        The name of the kind in messages.
    markers : dict[str, set[str]]
        A folder is of this kind if it contains one of these documents with these keys, which is
        written before all other output.
    """

    title: str
    markers: dict[str, set[str]]


_MEMBER = {"format", "recipe", "fingerprint"}
# A kind comes before the kinds that its folders contain.
FOLDER_KINDS: dict[Kind, FolderKind] = {
    "run": FolderKind("a run", {"summary.json": {"options", "summary"}}),
    "bundle": FolderKind("a bundle", {BUNDLE: {"kind", "format", "files"}}),
    "demo": FolderKind("a demo", {"results.json": {"regime", "methods"}}),
    "search": FolderKind(
        "a search",
        {"search/search.json": {"trials", "front", "chosen"}, "search/journal.log": {"op_code"}},
    ),
    "comparison": FolderKind("a comparison", {"compare/methods.json": {"methods", "lowest_ce"}}),
    "members": FolderKind(
        "a set of trained members",
        {
            "manifest.json": {"format", "data", "groups", "members"},
            "members/*/member.json": _MEMBER,
            "members/*/fold-*/member.json": _MEMBER,
        },
    ),
    "ensemble": FolderKind("a fitted ensemble", {"ensemble.json": {"kind", "format", "weights"}}),
}


def kind_of(folder: Path) -> Kind | None:
    """The kind of output in a folder, complete or not; None without such output."""
    for kind, layout in FOLDER_KINDS.items():
        for marker, keys in layout.markers.items():
            if any(_has_keys(path, keys) for path in folder.glob(marker)):
                return kind
    return None


def _has_keys(path: Path, keys: set[str]) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        document = text
        if path.suffix == ".log":
            # The first line of a journal; it is empty if the search was killed at the start.
            document = text.partition("\n")[0] or "{}"
        content = json.loads(document)
        return isinstance(content, dict) and (not text or keys <= content.keys())
    except (OSError, ValueError, RecursionError):
        return False


def check_output(folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse a folder to which this kind of output can't be written.

    It must be new, empty or of this kind; with ``overwrite``, it may contain files that EDO did not
    write, but not another kind of output. It must not contain an input, or links that lead out of
    it.
    """
    _check_folder(folder)
    title = FOLDER_KINDS[kind].title
    present = kind_of(folder)
    if present not in (None, kind):
        raise InputError(
            f"{title} needs a separate folder, but {folder} contains {FOLDER_KINDS[present].title}",
            "choose another output folder",
            code="existing-folder",
        )
    refuse_input(folder, *inputs, below=True)
    refuse_links(folder)
    if present or overwrite:
        return
    file = _first_file(folder)
    if file is not None:
        raise InputError(
            f"{folder} does not contain {title}, but {file.relative_to(folder)}",
            REPLACE,
            code="existing-folder",
        )


def _check_folder(folder: Path) -> None:
    """Refuse paths that can't be a folder: a URL, a file or a path below a file, the root."""
    local_path(folder)
    for path in (folder, *folder.parents):
        if path.is_file():
            raise InputError(
                f"results are written into a folder, but {path} is a file",
                "choose another output folder",
                code="not-a-folder",
            )
    if os.path.realpath(folder) == Path(os.path.realpath(folder)).anchor:
        raise InputError(
            f"{folder} is the root of the file system, not a folder for results",
            "choose another output folder",
            code="not-a-folder",
        )


def _first_file(folder: Path) -> Path | None:
    """A file in the folder that is not hidden: killed processes may leave hidden files."""
    for path in folder.rglob("*"):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not is_hidden and (path.is_symlink() or not path.is_dir()):
            return path
    return None


@contextmanager
def output_folder(
    folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False, wait: bool = False
) -> Iterator[None]:
    """Check a folder by `check_output`, and lock it for exclusive writing.

    If another process has the lock, wait for it with ``wait``, else raise.
    """
    check_output(folder, kind, *inputs, overwrite=overwrite)
    with locked(folder, wait=wait):
        # Another process may have written to the folder before it was locked.
        check_output(folder, kind, *inputs, overwrite=overwrite)
        yield


@contextmanager
def output_files(
    *outs: Path | None, inputs: Iterable[Path | None] = (), overwrite: bool = False
) -> Iterator[None]:
    """In this context, refuse to overwrite inputs and, without ``overwrite``, other content."""
    sources = list(inputs)
    for out in outs:
        if out is not None:
            local_path(out)
            refuse_input(out, *sources)
    if overwrite:
        yield
        return
    with keep_others():
        yield


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a folder for exclusive writing.

    If another process (or thread) has the lock, wait for it with ``wait``, else raise.
    """
    _check_folder(folder)
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    lock: FileLock | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(folder, wait)
    except (OSError, InputError) as error:
        remove_empty(new_folders)
        if isinstance(error, InputError):
            raise
        raise cannot_write(folder, error) from error
    try:
        yield
    finally:
        if lock is not None:
            drop_lock(lock)
        remove_empty(new_folders)


def _take_lock(folder: Path, wait: bool) -> FileLock | None:
    """The lock of a folder; None, with a warning, if the file system does not support locks."""
    path = Path(os.path.realpath(folder)) / LOCK
    try:
        return take_lock(path, reentrant=True)
    except Timeout:
        message = f"another process writes to {folder}"
        if not wait:
            raise InputError(
                message,
                "wait until it has ended, or choose another output folder",
                code="locked-output",
            ) from None
        warn(f"{message}; waiting until it has ended")
        return take_lock(path, wait=True, reentrant=True)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        warn(
            f"{folder} can't be locked here ({error.strerror}): make sure that only one command"
            " writes to it at a time"
        )
        path.unlink(missing_ok=True)  # the lock file may have been created
        return None


def refuse_links(folder: Path, name: str = "*") -> None:
    """Refuse links out of the folder, through which other files would be overwritten."""
    home = os.path.realpath(folder)
    for path in folder.rglob(name):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
            raise InputError(
                f"{path} is a link that leads out of {folder}, and its target would be overwritten",
                "remove the link, or choose another output folder",
                code="outside-link",
            )


def refuse_input(out: Path | None, *inputs: Path | None, below: bool = False) -> None:
    """Refuse to overwrite an input or, with ``below``, an input within the output folder."""
    for source in inputs:
        is_same = False
        # Invalid paths are refused when they are read or written.
        with suppress(OSError, ValueError):
            if out is not None and source is not None:
                target = Path(os.path.realpath(out))
                origin = Path(os.path.realpath(source))
                is_same = below and origin.is_relative_to(target)
                is_same = is_same or origin == target or out.samefile(source)
        if is_same:
            raise InputError(
                f"{source} is read and would be overwritten: input and output are the same file",
                "name another file for the output",
                code="overwritten-input",
            )


def check_page(out: Path, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse to write a page over its inputs, or over a file that EDO did not write."""
    refuse_input(out, *inputs)
    if not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"the name of a page must end in .html, but it is {out}",
            "name it report.html",
            code="unknown-ending",
        )
    if not overwrite and out.is_file() and not _is_page(out):
        raise InputError(
            f"edo did not write {out}, and it would be replaced",
            f"name another file, or replace it with {option('overwrite', True)}",
            code="existing-file",
        )


def _is_page(path: Path) -> bool:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as stream:
        start = stream.read(1 << 16)
        return '<meta name="generator" content="edokit' in start or "EDO report</title>" in start
    return False
