"""Output folders and files: how each kind is known, and the guard that every command writes behind.

A folder for results is new, empty or holds earlier results of the same kind, unless the user says
``overwrite``; one process writes to it at a time. Inputs are kept.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from filelock import FileLock, Timeout

from edokit._errors import InputError, local_path, option, warn
from edokit._io import cannot_write
from edokit._io.atomic import keep_others, remove_empty

Kind = Literal["run", "bundle", "demo", "search", "comparison", "members", "ensemble"]

RUN_RECORD = "run.json"
BUNDLE = "bundle.json"
REPORT = "report.html"
LOCK = ".edo.lock"
REPLACE = f"choose another output folder, or replace it with {option('overwrite', True)}"


class Layout(NamedTuple):
    """One kind of output folder.

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
LAYOUTS: dict[Kind, Layout] = {
    "run": Layout("a run", {"summary.json": {"options", "summary"}}),
    "bundle": Layout("a bundle", {BUNDLE: {"kind", "format", "files"}}),
    "demo": Layout("a demo", {"results.json": {"regime", "methods"}}),
    "search": Layout(
        "a search",
        {"search/search.json": {"trials", "front", "chosen"}, "search/journal.log": {"op_code"}},
    ),
    "comparison": Layout("a comparison", {"compare/methods.json": {"methods", "lowest_ce"}}),
    "members": Layout(
        "a set of trained members",
        {
            "manifest.json": {"format", "data", "groups", "members"},
            "members/*/member.json": _MEMBER,
            "members/*/fold-*/member.json": _MEMBER,
        },
    ),
    "ensemble": Layout("a fitted ensemble", {"ensemble.json": {"kind", "format", "weights"}}),
}


def kind_of(folder: Path) -> Kind | None:
    """Which kind of output a folder holds, finished or not; None if it holds none."""
    for kind, layout in LAYOUTS.items():
        for marker, keys in layout.markers.items():
            if any(_has_keys(path, keys) for path in folder.glob(marker)):
                return kind
    return None


def _has_keys(path: Path, keys: set[str]) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        # Of a journal, the first of its lines; a search that was killed at once wrote none.
        content = json.loads(text.partition("\n")[0] or "{}" if path.suffix == ".log" else text)
        return isinstance(content, dict) and (not text or keys <= content.keys())
    except (OSError, ValueError, RecursionError):
        return False


def check_output(folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse, before any work, a folder that this kind of output can't be written to.

    It must be new, empty or of this kind; with ``overwrite`` it may hold what EDO did not write,
    but no other kind of output. Nor may it hold an input, or links that lead out of it.
    """
    _check_folder(folder)
    title, present = LAYOUTS[kind].title, kind_of(folder)
    if present not in (None, kind):
        raise InputError(
            f"{title} needs a folder of its own, but {folder} holds {LAYOUTS[present].title}",
            "choose another output folder",
        )
    refuse_input(folder, *inputs, below=True)
    refuse_links(folder)
    file = None if present or overwrite else _first_file(folder)
    if file is not None:
        raise InputError(
            f"{folder} holds no {title.partition(' ')[2]} of edo's, but {file.relative_to(folder)}",
            REPLACE,
        )


def _check_folder(folder: Path) -> None:
    """Refuse what is no folder to write to: an address, a file or a path below one, the root."""
    local_path(folder)
    for path in (folder, *folder.parents):
        if path.is_file():
            raise InputError(
                f"results are written into a folder, but {path} is a file",
                "choose another output folder",
            )
    if os.path.realpath(folder) == Path(os.path.realpath(folder)).anchor:
        raise InputError(
            f"{folder} is the root of the file system, and no folder for results",
            "choose another output folder",
        )


def _first_file(folder: Path) -> Path | None:
    """A file in a folder, if there is one that is not hidden, as what killed processes left is."""
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

    With ``wait``, the end of a process that has it is waited for.
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
    with nullcontext() if overwrite else keep_others():
        yield


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a folder for exclusive writing; refused if another process (or thread) has it.

    With ``wait``, the end of the other one is waited for.
    """
    _check_folder(folder)
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    # One instance per file: it may be acquired again where it is held.
    lock = FileLock(Path(os.path.realpath(folder)) / LOCK, is_singleton=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _acquire(lock, folder, wait)
    except (OSError, InputError) as error:
        remove_empty(new_folders)
        if isinstance(error, InputError):
            raise
        raise cannot_write(folder, error) from error
    try:
        yield
    finally:
        if lock.lock_counter <= 1:
            with suppress(OSError):  # Windows removes no open file
                (folder / LOCK).unlink()
        lock.release()
        remove_empty(new_folders)


def _acquire(lock: FileLock, folder: Path, wait: bool) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        message = f"another process writes to {folder}"
        if not wait:
            raise InputError(
                message, "wait until it has ended, or choose another output folder"
            ) from None
        warn(f"{message}; waiting until it has ended")
        lock.acquire()
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        warn(
            f"{folder} can't be locked here ({error.strerror}): make sure that only one command"
            " writes to it at a time"
        )


def begin_run(folder: Path) -> None:
    """Remove the ``run.json`` of earlier results, which are about to be replaced.

    Where it is, the results beside it are complete.
    """
    try:
        (folder / RUN_RECORD).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder / RUN_RECORD, error) from error


def refuse_links(folder: Path, name: str = "*") -> None:
    """Refuse links that lead out of the folder, by which other files would be overwritten."""
    home = os.path.realpath(folder)
    for path in folder.rglob(name):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
            raise InputError(
                f"{path} leads out of {folder} through a link, and what it leads to would be"
                " overwritten",
                "remove the link, or choose another output folder",
            )


def refuse_input(out: Path | None, *inputs: Path | None, below: bool = False) -> None:
    """Refuse to overwrite an input, or one ``below`` a folder, with what is made of it."""
    for source in inputs:
        is_same = False
        # What is no path is refused where it is read or written.
        with suppress(OSError, ValueError):
            if out is not None and source is not None:
                target, origin = os.path.realpath(out), Path(os.path.realpath(source))
                is_same = below and origin.is_relative_to(target)
                is_same = is_same or origin == Path(target) or out.samefile(source)
        if is_same:
            raise InputError(
                f"{source} is read and would be overwritten: input and output are the same file",
                "name another file for the output",
            )


def check_page(out: Path, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse to write a page over what it is made of or what is no page of EDO's."""
    refuse_input(out, *inputs)
    if not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{out} is no name for a page: it must end in .html", "name it report.html"
        )
    if not overwrite and out.is_file() and not _is_page(out):
        raise InputError(
            f"edo did not write {out}, and it would be replaced",
            f"name another file, or replace it with {option('overwrite', True)}",
        )


def _is_page(path: Path) -> bool:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as stream:
        start = stream.read(1 << 16)
        return '<meta name="generator" content="edokit' in start or "EDO report</title>" in start
    return False


def other_content(folder: Path, what: str, difference: str) -> InputError:
    """The error for a folder whose content is of the right kind, but not the same."""
    return InputError(f"{folder} already holds {what}, {difference}", REPLACE)
