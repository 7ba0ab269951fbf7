"""`edo diagnose`: what kind of disagreement is in the annotations."""

from __future__ import annotations

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

    with console.progress() as bars:
        found = run_diagnosis(
            reading.annotations(annotations),
            groups=group_by,
            permutations=permutations,
            random_state=seed,
            step=console.add_bar(bars, "permuting labels"),
        )
    if json:
        console.print_json(found.to_dict())
        return
    console.print_lines(found.lines())
