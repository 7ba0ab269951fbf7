"""`edo data convert`: any source becomes a long table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import counted
from edokit.cli import console, options


def convert(
    source: options.Source,
    out: Annotated[
        Path, typer.Argument(help="The table: .csv, .tsv, .parquet or .jsonl.", show_default=False)
    ],
    split: options.Split = None,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    format: options.Format = None,
    control: options.Control = None,
    question: options.Question = None,
    multi_choice: options.MultiChoice = None,
    clean: options.Clean = False,
    dialogue: options.Dialogue = None,
    json: options.Json = False,
) -> None:
    """Write any source as one row per annotation: item, annotator, label and what else is known."""
    from edokit._outputs import refuse_input
    from edokit.datasets import write_annotations

    refuse_input(out, source)
    people = options.read_people(
        source,
        column=column,
        split=split,
        classes=classes,
        duplicates=duplicates,
        format=format,
        control=control,
        question=question,
        multi_choice=multi_choice,
        clean=clean,
        dialogue=dialogue,
    )
    write_annotations(people, out)
    console.done(
        {"out": str(out), "items": len(people.items), "annotations": len(people)},
        f"{out}: {counted(len(people), 'annotation')} of {counted(len(people.items), 'item')}",
        json,
    )
