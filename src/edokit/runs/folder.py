"""The folder that a command writes to.

It is new, empty or holds earlier results of the same kind, unless the user says ``overwrite``; one
process writes to it at a time. Inputs are kept.
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
    """How one kind of output folder is recognised.

    Attributes
    ----------
    title : str
        For messages.
    markers : dict[str, set[str]]
        A folder is of this kind if it holds one of these documents, with these keys; a document of
        this kind is written before all other output.
    """

    title: str
    markers: dict[str, set[str]]


_MEMBER = {"format", "recipe", "fingerprint"}
# A kind comes before those that are part of it.
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
    """Which kind of output a folder holds, finished or not; None if it holds none."""
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
            # The first line of a journal; a search that was killed at once wrote none.
            document = text.partition("\n")[0] or "{}"
        content = json.loads(document)
        return isinstance(content, dict) and (not text or keys <= content.keys())
    except (OSError, ValueError, RecursionError):
        return False


def check_output(folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse, before any work, a folder that this kind of output can't be written to.

    It must be new, empty or of this kind; with ``overwrite`` it may hold what EDO did not write,
    but no other kind of output. Nor may it hold an input, or links that lead out of it.
    """
    _check_folder(folder)
    title = FOLDER_KINDS[kind].title
    present = kind_of(folder)
    if present not in (None, kind):
        raise InputError(
            f"{title} needs a folder of its own, but {folder} holds {FOLDER_KINDS[present].title}",
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
            f"{folder} holds no {title.partition(' ')[2]} of edo's, but {file.relative_to(folder)}",
            REPLACE,
            code="existing-folder",
        )


def _check_folder(folder: Path) -> None:
    """Refuse what can't be a folder: an address, a file or a path below one, the root."""
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
            f"{folder} is the root of the file system, and no folder for results",
            "choose another output folder",
            code="not-a-folder",
        )


def _first_file(folder: Path) -> Path | None:
    """A file in the folder; hidden files, which killed processes may leave, do not count."""
    for path in folder.rglob("*"):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not is_hidden and (path.is_symlink() or not path.is_dir()):
            return path
    return None


@contextmanager
def output_folder(
    folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False, wait: bool = False
) -> Iterator[None]:
    """Lock a folder for exclusive writing; refused as by `check_output`, or if it is in use.

    With ``wait``, it waits for the process that has the lock.
    """
    check_output(folder, kind, *inputs, overwrite=overwrite)
    with locked(folder, wait=wait):
        # Another process may have finished there meanwhile.
        check_output(folder, kind, *inputs, overwrite=overwrite)
        yield


@contextmanager
def output_files(
    *outs: Path | None, inputs: Iterable[Path | None] = (), overwrite: bool = False
) -> Iterator[None]:
    """Write files, but not over an input nor, without ``overwrite``, over any other content."""
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
    """Lock a folder for exclusive writing; refused if another process (or thread) has it.

    With ``wait``, it waits for the other one.
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
    """The lock of a folder; None, with a warning, where nothing can be locked."""
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
        path.unlink(missing_ok=True)  # the file of the lock may have been made
        return None


def refuse_links(folder: Path, name: str = "*") -> None:
    """Refuse links that lead out of the folder, by which other files would be overwritten."""
    home = os.path.realpath(folder)
    for path in folder.rglob(name):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
            raise InputError(
                f"{path} leads out of {folder} through a link, and what it leads to would be"
                " overwritten",
                "remove the link, or choose another output folder",
                code="outside-link",
            )


def refuse_input(out: Path | None, *inputs: Path | None, below: bool = False) -> None:
    """Refuse to overwrite an input, or one ``below`` a folder, with what is made of it."""
    for source in inputs:
        is_same = False
        # Invalid paths are refused where they are read or written.
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
