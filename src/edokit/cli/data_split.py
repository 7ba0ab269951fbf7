"""`edo data split`: train, dev and test parts of a source without splits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import InputError
from edokit.cli import console, options


def split(
    source: options.Source,
    out: Annotated[
        Path, typer.Argument(help="The table: .csv, .tsv, .parquet or .jsonl.", show_default=False)
    ],
    shares: Annotated[
        str, typer.Option(help="Names and shares of the splits.")
    ] = "train=0.8,dev=0.1,test=0.1",
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    format: options.Format = None,
    control: options.Control = None,
    question: options.Question = None,
    multi_choice: options.MultiChoice = None,
    json: options.Json = False,
) -> None:
    """Split by item, alike in hard labels, near-duplicate texts kept on one side."""
    from edokit._outputs import refuse_input
    from edokit.datasets import describe_annotations, split_items, write_annotations

    refuse_input(out, source)
    people = options.read_people(
        source,
        column=column,
        classes=classes,
        duplicates=duplicates,
        format=format,
        control=control,
        question=question,
        multi_choice=multi_choice,
    )
    parted = split_items(people, _shares(shares), random_state=seed)
    write_annotations(parted, out)
    result = describe_annotations(parted)
    if json:
        console.print_json({"out": str(out), **result})
        return
    console.print_described(str(out), result)


def _shares(text: str) -> dict[str, float]:
    shares = {}
    for part in text.split(","):
        name, _, share = part.strip().partition("=")
        try:
            shares[name] = float(share)
        except ValueError as error:
            raise InputError(
                f"--shares must be NAME=SHARE parts separated by commas, but got {part!r}",
                "write --shares train=0.8,dev=0.1,test=0.1",
            ) from error
    return shares
