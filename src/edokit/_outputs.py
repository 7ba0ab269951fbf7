"""Output folders and files: what each kind holds, and the guard that every command writes behind.

A folder holds one kind of output and is written by one process at a time. What a command writes
goes nowhere else: not through links, not over its own input, not over what EDO did not write.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edokit._errors import InputError, local_path, warn, without_credentials
from edokit._io import cannot_write
from edokit._io.atomic import is_leftover, keep_others, lock_file, remove_empty

Kind = Literal["bundle", "demo", "search", "comparison", "members", "ensemble"]

RUN_RECORD = "run.json"
BUNDLE = "bundle.json"
REPORT = "report.html"
LOCK = ".edo.lock"
"""In a folder that a process writes to; the lock on it, not its being there, keeps others out."""
REPLACE = "choose another output folder, or replace it with overwrite=True"


@dataclass(frozen=True)
class Layout:
    """One kind of output folder."""

    title: str
    """For messages."""
    marks: tuple[str, ...]
    """A folder is of this kind if it holds one of these, written by EDO; they are written first."""
    files: tuple[str, ...]
    """All that EDO writes there; a name that ends in / is a folder of EDO's own."""


_ENSEMBLE = ("ensemble/ensemble.json", "ensemble/README.md")
_SEARCH = ("search/journal.log", "search/trials.parquet", "search/search.json")
_CARDS = ("members/*/member.json", "members/*/fold-*/member.json", "end-to-end/member.json")
_PLAN = ("course.json", "plan.json", "tuning.json")

# A kind comes before those that are part of it.
LAYOUTS: dict[Kind, Layout] = {
    "bundle": Layout(
        title="a bundle",
        marks=(BUNDLE,),
        files=(BUNDLE, "ensemble/", "members/", "models/", "README.md"),
    ),
    "demo": Layout(
        title="a demo",
        marks=("results.json",),
        files=(
            *("annotations.parquet", "predictions/dev.npz", "predictions/test.npz"),
            *(*_ENSEMBLE, *_SEARCH, "probabilities.csv", "results.json", RUN_RECORD, REPORT),
            *("panels.csv", "panels.html"),
        ),
    ),
    "search": Layout(
        title="a search",
        marks=("search/search.json", "search/journal.log"),
        files=(*_SEARCH, *_ENSEMBLE, RUN_RECORD, REPORT),
    ),
    "comparison": Layout(
        title="a comparison",
        marks=("compare/methods.json",),
        files=("compare/", *_ENSEMBLE, RUN_RECORD, REPORT),
    ),
    "members": Layout(
        title="a set of trained members",
        marks=("manifest.json", *_CARDS, *_PLAN),
        files=("manifest.json", "members/", "end-to-end/", "predictions/", *_ENSEMBLE),
    ),
    "ensemble": Layout(
        title="a fitted ensemble",
        marks=("ensemble.json", "ensemble/ensemble.json"),
        files=("ensemble.json", "README.md", RUN_RECORD),
    ),
}

_KEYS: dict[str, set[str]] = {
    "bundle.json": {"kind", "format", "files"},
    "ensemble.json": {"kind", "format", "weights"},
    "manifest.json": {"format", "data", "groups", "members"},
    "member.json": {"format", "recipe", "fingerprint"},
    "course.json": {"items", "texts", "annotators"},
    "plan.json": {"units", "folds"},
    "tuning.json": {"group", "best", "trials"},
    "run.json": {"kind", "inputs", "versions"},
    "search.json": {"trials", "front", "chosen"},
    "methods.json": {"methods", "lowest_ce"},
    "results.json": {"regime", "methods"},
}
"""What each document of EDO's says, by which it is known."""
_WORDS = {
    "README.md": re.compile(r"(?m)^# An EDO (?:ensemble|bundle)$"),
    "report.html": re.compile(r'<meta name="generator" content="edokit|EDO report</title>'),
    "journal.log": re.compile(r'\A(?:\Z|\{"op_code":)'),
}


def is_ours(path: Path, name: str = "") -> bool:
    """Whether EDO wrote a file that is known by its content, under this name if not its own."""
    name = name or path.name
    try:
        if name in _WORDS:
            with path.open(encoding="utf-8", errors="replace") as stream:
                return _WORDS[name].search(stream.read(1 << 16)) is not None
        content = json.loads(path.read_text(encoding="utf-8"))
        if name == "tuning.json":  # one entry per tuned group
            content = next(iter(content.values()))
        return bool(_KEYS[name] <= content.keys())
    except (OSError, ValueError, LookupError, RecursionError, AttributeError, StopIteration):
        return False


def kind_of(folder: Path) -> Kind | None:
    """Which kind of output a folder holds, finished or not; None if it holds none."""
    for kind, layout in LAYOUTS.items():
        if any(is_ours(path) for mark in layout.marks for path in folder.glob(mark)):
            return kind
    return None


def check_output(
    folder: Path,
    kind: Kind,
    *inputs: Path | None,
    overwrite: bool = False,
    more: Sequence[str] = (),
) -> None:
    """Refuse, before any work, a folder that this kind of output can't be written to.

    That is a file or a path below one, the root, a folder with another kind of output, one whose
    links lead out of it, one in which an input would be overwritten, and, without ``overwrite``,
    one in which something would be that EDO did not write. ``more`` are further names of files.
    """
    layout = LAYOUTS[kind]
    names = (*layout.files, *more)
    _check_folder(folder)
    found = kind_of(folder)
    if found not in (None, kind):
        raise InputError(
            f"{layout.title} needs a folder of its own, but {folder} holds {LAYOUTS[found].title}",
            "choose another output folder",
        )
    refuse_links(folder, names)
    for name in names:
        path = folder / name
        # Which files a folder of EDO's own gets is known later.
        refuse_input(path, *inputs, below=name.endswith("/"))
        ours = is_ours(path) if path.name in (*_KEYS, *_WORDS) else found == kind
        if not overwrite and not ours and _is_there(path):
            raise InputError(
                f"edo did not write {path}, or it is damaged, and it would be replaced",
                REPLACE,
                parameters=("overwrite",),
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


def _is_there(path: Path) -> bool:
    """Whether there is a file, also in folders, that is no leftover of a killed process."""
    if path.is_symlink() or not path.is_dir():
        return os.path.lexists(path)
    try:
        return any(_is_there(inside) for inside in path.iterdir() if not is_leftover(inside.name))
    except OSError:
        return True


@contextmanager
def output_folder(
    folder: Path,
    kind: Kind,
    *inputs: Path | None,
    overwrite: bool = False,
    more: Sequence[str] = (),
    wait: bool = False,
) -> Iterator[None]:
    """Have a folder to write to for oneself; refused like `check_output`, or if it is in use.

    With ``wait``, the end of a process that has it is waited for.
    """
    check_output(folder, kind, *inputs, overwrite=overwrite, more=more)
    with locked(folder, wait=wait):
        # Another process may have finished there meanwhile.
        check_output(folder, kind, *inputs, overwrite=overwrite, more=more)
        yield


@contextmanager
def output_files(
    *outs: Path | None, inputs: Iterable[Path | None] = (), overwrite: bool = False
) -> Iterator[None]:
    """Write files, but not over an input nor, without ``overwrite``, over any other content."""
    given = list(inputs)
    for out in outs:
        if out is not None:
            local_path(out)
            refuse_input(out, *given)
    with nullcontext() if overwrite else keep_others():
        yield


_held: dict[str, tuple[int, int]] = {}
"""Folders that this process has locked: the open file that holds the lock, and whose thread."""


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Have a folder for oneself, as long as this process lives; refused if another one has it.

    With ``wait``, the end of the other one is waited for.
    """
    home = os.path.realpath(folder)
    thread = threading.get_ident()
    if home in _held and _held[home][1] == thread:
        yield
        return
    _check_folder(folder)
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        _held[home] = _take(folder, wait), thread
    except (OSError, ValueError) as error:
        remove_empty(made)
        if isinstance(error, InputError):
            raise
        raise cannot_write(folder, error) from error
    try:
        yield
    finally:
        handle, _ = _held.pop(home, (-1, 0))
        with suppress(OSError):
            if sys.platform == "win32":  # there, an open file can't be removed
                os.close(handle)
            (folder / LOCK).unlink()
        with suppress(OSError):
            os.close(handle)
        remove_empty(made)


_WHO = b'{"pid": '
"""How the words in a lock begin: who has it."""


def _take(folder: Path, wait: bool) -> int:
    """The open and locked file of a folder."""
    path = folder / LOCK
    warned = False
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:
            if folder.is_dir():
                raise
            # A process that ended just now removed the folder that it had made.
            continue
        try:
            # A pipe would not end.
            plain = stat.S_ISREG(os.fstat(handle).st_mode)
            words = os.read(handle, 1 << 12) if plain else b"no words"
            if words and not words.startswith(_WHO):
                raise InputError(
                    f"edo did not write {path}, which it would use to lock the folder",
                    "rename it, or choose another output folder",
                )
            if not lock_file(handle):
                used = _in_use(folder, words)
                if not wait:
                    raise used
                if not warned:
                    warn(f"{used.message}; waiting until it has ended")
                warned = True
                os.close(handle)
                time.sleep(0.2)
                continue
            if os.name != "nt" and not os.fstat(handle).st_nlink:
                # Its process ended and removed it just now.
                os.close(handle)
                continue
        except InputError:
            os.close(handle)
            raise
        except OSError as error:
            warn(
                f"{folder} can't be locked here ({error.strerror}): make sure that only one command"
                " writes to it at a time"
            )
        # On a full disk the lock holds without these words.
        with suppress(OSError):
            command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:2]])
            who = {"pid": os.getpid(), "host": socket.gethostname(), "command": command}
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, without_credentials(json.dumps(who)).encode())
        return handle


def _in_use(folder: Path, words: bytes) -> InputError:
    who = ""
    with suppress(ValueError, LookupError, TypeError):
        owner = json.loads(words)
        who = f" (process {owner['pid']} on {owner['host']}: {owner['command']})"
    return InputError(
        f"{folder} is in use: another process writes to it{who}",
        "wait until it has ended, or choose another output folder",
    )


def _forget() -> None:
    """A forked process has no part in the locks of its parent, which may end before it."""
    for handle, _ in _held.values():
        with suppress(OSError):
            os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def begin_run(folder: Path) -> None:
    """Remove the ``run.json`` of earlier results, which are about to be replaced.

    Where it is, the results beside it are complete.
    """
    try:
        (folder / RUN_RECORD).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder / RUN_RECORD, error) from error


def refuse_links(folder: Path, names: Iterable[str] = ("./",)) -> None:
    """Refuse links that lead out of the folder, by which other files would be overwritten.

    ``names`` are the files to be written; of one that ends in / all that is below it counts, too.
    """
    home = os.path.realpath(folder)
    for name in names:
        below = (folder / name).rglob("*") if name.endswith("/") else ()
        for path in (folder / name, *below):
            if not Path(os.path.realpath(path)).is_relative_to(home):
                raise InputError(
                    f"{path} leads out of {folder} through a link, and what it leads to would be"
                    " overwritten",
                    "remove the link, or choose another output folder",
                )


def refuse_input(out: Path | None, *inputs: Path | None, below: bool = False) -> None:
    """Refuse to overwrite an input, or one ``below`` a folder, with what is made of it."""
    for source in inputs:
        same = False
        # What is no path is refused where it is read or written.
        with suppress(OSError, ValueError):
            if out is not None and source is not None:
                there, given = os.path.realpath(out), Path(os.path.realpath(source))
                same = below and given.is_relative_to(there)
                same = same or given == Path(there) or out.samefile(source)
        if same:
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
    if not overwrite and out.is_file() and not is_ours(out, REPORT):
        raise InputError(
            f"edo did not write {out}, and it would be replaced",
            "name another file, or replace it with overwrite=True",
            parameters=("overwrite",),
        )


def other_content(folder: Path, what: str, difference: str) -> InputError:
    """The error for a folder whose content is of the right kind, but not the same."""
    wrong = f"{folder} already holds {what}, {difference}"
    return InputError(wrong, REPLACE, parameters=("overwrite",))
