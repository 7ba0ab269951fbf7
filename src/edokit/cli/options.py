"""Options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.members.texts import Texts

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Source = Annotated[
    Path,
    typer.Argument(
        help="A table (CSV, TSV, Parquet, JSONL), a LeWiDi JSON or a folder of its splits, a Label"
        " Studio or Argilla export.",
        show_default=False,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="ROLE=NAME", help="Another column name, e.g. item=id (repeatable)."
    ),
]
Split = Annotated[str | None, typer.Option(help="Only this split, e.g. dev, or these: train,dev.")]
Classes = Annotated[
    str | None, typer.Option(help="All classes in order, separated by commas, e.g. no,maybe,yes.")
]
Duplicates = Annotated[
    str | None,
    typer.Option(help="The same annotator twice on an item: error, first or all."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="What the source is, if it can't be told: lewidi, table, label-studio, argilla.",
    ),
]
Control = Annotated[
    str | None, typer.Option(help="Label Studio: the name of the labelling control.")
]
Question = Annotated[str | None, typer.Option(help="Argilla: the name of the question.")]
MultiChoice = Annotated[
    str | None,
    typer.Option(help="Several choices in one annotation: error, first, split or join."),
]

Clean = Annotated[
    bool,
    typer.Option("--clean", help="Clean texts as the paper does (markup, URLs, mentions, …)."),
]
Dialogue = Annotated[
    str | None, typer.Option(help="ConvAbuse's conversations: user-last, user-first or user-only.")
]


Judges = Annotated[
    Path | None,
    typer.Option(
        help="Who judges each item (item and annotator columns, or a source of annotations):"
        " members with a head per annotator answer for these people."
    ),
]


def pairs(given: list[str] | None, option: str, form: str) -> dict[str, str]:
    """``["item=id"]`` as ``{"item": "id"}``."""
    result = {}
    for pair in given or []:
        left, equals, right = pair.partition("=")
        if not (left and equals and right):
            raise InputError(
                f"{option} must be written {form}, but got {pair!r}", f"write {option} {form}"
            )
        result[left] = right
    return result


def named_file(text: str) -> tuple[str | None, Path]:
    """``"NAME=FILE"`` or ``"FILE"`` as name and path; a file whose name has a = in it is a file."""
    name, equals, file = text.partition("=")
    if equals and name and file and not Path(text).exists():
        return name, Path(file)
    return None, Path(text)


def names(text: str | None) -> list[str] | None:
    """``"no, yes"`` as ``["no", "yes"]``."""
    return None if text is None else [part.strip() for part in text.split(",")]


def read_people(
    source: Path,
    *,
    column: list[str] | None = None,
    classes: str | None = None,
    split: str | None = None,
    clean: bool = False,
    **said: Any,
) -> Annotations:
    """Read what the shared options describe."""
    from edokit.datasets import read_annotations

    several = names(split) or []
    people = read_annotations(
        source,
        columns=pairs(column, "--column", "ROLE=NAME") or None,
        classes=names(classes),
        split=split if len(several) == 1 else None,
        clean=clean,
        **said,
    )
    return people.split(*several) if len(several) > 1 else people


def read_asked(
    texts: Path,
    judges: Path | None,
    *,
    column: list[str] | None,
    split: str | None,
    context: bool,
    dialogue: str | None = None,
) -> tuple[Texts, dict[str, tuple[str, ...]] | None]:
    """Texts that members are asked about, and who judges them, if that is known."""
    from edokit.members import read_annotators, read_texts

    columns = pairs(column, "--column", "ROLE=NAME")
    people = None if judges is None else read_annotators(judges, columns=columns)
    if people is not None and split is None:
        columns.pop("annotator", None)  # said of the judges' table; one of texts has none
    return read_texts(texts, columns=columns, pairs=context, split=split, dialogue=dialogue), people
