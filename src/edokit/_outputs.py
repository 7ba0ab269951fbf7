"""Output folders: what each kind holds, and the checks that every command makes before it writes.

A folder holds one kind of output. What a command writes goes nowhere else: not through links, not
over its own input, not over the results of something else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edokit._errors import InputError
from edokit._io import cannot_write

Kind = Literal["demo", "search", "comparison", "members", "ensemble"]

RUN_RECORD = "run.json"
REPORT = "report.html"
REPLACE = "choose another output folder, or replace it with overwrite=True"


@dataclass(frozen=True)
class Layout:
    """One kind of output folder."""

    title: str
    """For messages."""
    marks: tuple[tuple[str, ...], ...]
    """A folder is of this kind if it holds all names of one of these."""
    files: tuple[str, ...]
    """All that EDO writes there; a name that ends in / is a folder of EDO's own."""


_ENSEMBLE = ("ensemble/ensemble.json", "ensemble/README.md")
_SEARCH = ("search/journal.log", "search/trials.parquet", "search/search.json")

# A kind comes before those that are part of it.
LAYOUTS: dict[Kind, Layout] = {
    "demo": Layout(
        title="a demo",
        marks=(("results.json", "probabilities.csv"),),
        files=(
            *("annotations.parquet", "predictions/dev.npz", "predictions/test.npz"),
            *(*_ENSEMBLE, *_SEARCH, "probabilities.csv", "results.json", RUN_RECORD, REPORT),
        ),
    ),
    "search": Layout(
        title="a search",
        marks=(("search/",),),
        files=(*_SEARCH, *_ENSEMBLE, RUN_RECORD, REPORT),
    ),
    "comparison": Layout(
        title="a comparison",
        marks=(("compare/",),),
        files=("compare/", *_ENSEMBLE, RUN_RECORD, REPORT),
    ),
    "members": Layout(
        title="a set of trained members",
        marks=(("manifest.json", "predictions/"), ("end-to-end/",)),
        files=("manifest.json", "members/", "end-to-end/", "predictions/", *_ENSEMBLE),
    ),
    "ensemble": Layout(
        title="a fitted ensemble",
        marks=(("ensemble.json",), ("ensemble/ensemble.json",)),
        files=("ensemble.json", "README.md"),
    ),
}


def kind_of(folder: Path) -> Kind | None:
    """Which kind of output a folder holds, finished or not; None if it holds none."""
    for kind, layout in LAYOUTS.items():
        if any(all((folder / name).exists() for name in names) for names in layout.marks):
            return kind
    return None


def check_output(folder: Path, kind: Kind, *inputs: Path | None) -> None:
    """Refuse, before any work, a folder that this kind of output can't be written to.

    That is a file or a path below one, a folder with another kind of output, one whose links lead
    out of it, and one in which an input would be overwritten.
    """
    layout = LAYOUTS[kind]
    for path in (folder, *folder.parents):
        if path.is_file():
            raise InputError(
                f"{layout.title} is kept in a folder, but {path} is a file",
                "choose another output folder",
            )
    found = kind_of(folder)
    if found not in (None, kind):
        raise InputError(
            f"{layout.title} needs a folder of its own, but {folder} holds {LAYOUTS[found].title}",
            "choose another output folder",
        )
    refuse_links(folder, layout.files)
    for name in layout.files:
        refuse_input(folder / name, *inputs)


def begin_run(folder: Path) -> None:
    """Remove the ``run.json`` of earlier results, which are about to be replaced.

    Where it is, the results beside it are complete.
    """
    refuse_links(folder)
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


def refuse_input(out: Path | None, *inputs: Path | None) -> None:
    """Refuse to overwrite an input with what is made of it."""
    for source in inputs:
        same = False
        # What is no path is refused where it is read or written.
        with suppress(OSError, ValueError):
            if out is not None and source is not None:
                same = os.path.realpath(out) == os.path.realpath(source) or out.samefile(source)
        if same:
            raise InputError(
                f"{source} is read and would be overwritten: input and output are the same file",
                "name another file for the output",
            )


def check_page(out: Path, *inputs: Path | None) -> None:
    """Refuse to write a page over what it is made of, or under the name of something else."""
    refuse_input(out, *inputs)
    if not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{out} is no name for a page: it must end in .html", "name it report.html"
        )


def other_content(folder: Path, what: str, difference: str) -> InputError:
    """The error for a folder whose content is of the right kind, but not the same."""
    wrong = f"{folder} already holds {what}, {difference}"
    return InputError(wrong, REPLACE, parameters=("overwrite",))
