"""`edo diagnose`: what kind of disagreement is in the annotations."""

from __future__ import annotations

from typing import Annotated

import typer

from edokit.cli import console, options


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
    split: options.Split = None,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    format: options.Format = None,
    control: options.Control = None,
    question: options.Question = None,
    multi_choice: options.MultiChoice = None,
    json: options.Json = False,
) -> None:
    """Coverage, agreement, groups of annotators: structured disagreement or noise? Advice."""
    from edokit.diagnosis import diagnose as diagnose_annotations

    labelled = options.read_people(
        annotations,
        column=column,
        split=split,
        classes=classes,
        duplicates=duplicates,
        format=format,
        control=control,
        question=question,
        multi_choice=multi_choice,
    )
    with console.progress() as bars:
        task = bars.add_task("permuting labels", total=None, detail="")

        def step(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        found = diagnose_annotations(
            labelled, groups=group_by, permutations=permutations, random_state=seed, step=step
        )
    if json:
        console.print_json(found.to_dict())
        return
    console.print_lines(found.lines())
