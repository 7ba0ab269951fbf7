"""`edo diagnose`: what kind of disagreement is in the annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit.cli import console, options


@options.reads(options.SPLIT, options.FORMATS)
def diagnose(
    annotations: options.Source,
    group_by: Annotated[
        str | None,
        typer.Option(help="Groups declared by this attribute of the annotators; else found."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Answers for these annotators by members that know them and have not seen the"
            " items (`edo score --annotators`): how much of the disagreement they explain."
        ),
    ] = None,
    permutations: Annotated[
        int, typer.Option(min=0, help="Permutations of the test; 0: no test.")
    ] = 99,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the permutations.")] = 0,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Coverage, agreement, groups of annotators: structured disagreement or noise? Advice."""
    from edokit.diagnosis import diagnose as run_diagnosis
    from edokit.predictions import read_predictions

    with console.progress() as bars:
        found = run_diagnosis(
            reading.annotations(annotations),
            groups=group_by,
            predictions=None if predictions is None else read_predictions(predictions),
            permutations=permutations,
            random_state=seed,
            step=console.add_bar(bars, "permuting labels"),
        )
    if json:
        console.print_json(found.to_dict())
        return
    console.print_lines(found.lines())
