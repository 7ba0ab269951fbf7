"""`edo compare`: every method side by side, learned on dev, judged once on test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from edokit._errors import InputError, one_of
from edokit.cli import console, options
from edokit.cli.report import WithReport, add_page

if TYPE_CHECKING:
    from edokit.annotations import Ties
    from edokit.baselines import Comparison
    from edokit.predictions import Predictions


def compare(
    predictions: Annotated[
        Path, typer.Option(help="What the members say of the items to learn from (dev).")
    ],
    annotations: Annotated[Path, typer.Option(help="What the people said of them (any source).")],
    test_predictions: Annotated[
        Path, typer.Option(help="What the same members say of the items to judge on (test).")
    ],
    test_annotations: Annotated[
        Path | None,
        typer.Option(help="What the people said of these; as --annotations, unless told."),
    ] = None,
    split: options.Split = None,
    test_split: Annotated[
        str | None, typer.Option(help="The split of the test annotations, e.g. test.")
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DEV,TEST",
            help="Another pool, or a single model, on the same items: its predictions on dev and"
            " on test (repeatable).",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Only these, separated by commas: best-single, top-5, wel, wel-ce, greedy,"
            " linear-pool, log-pool, edo-paper-fixed, edo-paper, edo-default, edo (uniform always)."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results, tables and EDO's ensemble.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="Print it as markdown, csv or latex.")
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Bootstrap samples; 0 for none.")] = 1000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    ties: Annotated[
        str, typer.Option(help="Hard label of evenly split items: first, error or random.")
    ] = "first",
    seed: Annotated[int, typer.Option(help="Seed of searches, intervals and random ties.")] = 0,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    report: WithReport = True,
    json: options.Json = False,
) -> None:
    """Judge EDO and every baseline on the same members: F1, CE, MD, BS, intervals and tests."""
    from edokit import baselines
    from edokit._io.markup import FORMATS
    from edokit._outputs import check_output
    from edokit.baselines.keep import keep
    from edokit.predictions import read_predictions

    if form is not None:
        one_of("format", form, FORMATS)
    if out is not None:
        check_output(out, "comparison")
    said: dict[str, Any] = {"column": column, "classes": classes, "duplicates": duplicates}
    judged_by = annotations if test_annotations is None else test_annotations
    if judged_by == annotations and split == test_split:
        raise InputError(
            "the items to judge on must be others than those to learn from, but both are"
            f" {annotations}{'' if split is None else f', split {split}'}",
            "give --test-annotations, or --split dev --test-split test",
        )
    dev = options.read_people(annotations, split=split, **said)
    test = options.read_people(judged_by, split=test_split, **said)
    for people, source, part in ((dev, annotations, split), (test, judged_by, test_split)):
        options.tell_if_unanimous(people.classes, people.counts.sum(axis=0), source, part)
    with console.progress() as bars:
        bar = bars.add_task("", total=None, detail="")

        def step(done: int, total: int, what: str) -> None:
            bars.update(bar, completed=done, total=total, description=what)

        found = baselines.compare(
            (read_predictions(predictions), dev),
            (read_predictions(test_predictions), test),
            methods=options.names(methods),
            extra=_extras(extra),
            seed=seed,
            samples=bootstrap,
            level=level,
            ties=cast("Ties", ties),
            step=step,
        )
    if out is not None:
        keep(
            found,
            out,
            {"predictions": predictions, "test_predictions": test_predictions},
            {
                "annotations": (annotations, options.read_as(split=split, **said)),
                "test_annotations": (judged_by, options.read_as(split=test_split, **said)),
            },
            arguments=["edo", *sys.argv[1:]],
        )
        if report:
            add_page(out)
    _show(found, form, json)


def _show(found: Comparison, form: str | None, json: bool) -> None:
    if json:
        console.print_json(found.to_dict())
        return
    if form is not None:
        typer.echo(found.text(form), nl=False)
        return
    table = found.table()
    console.print_table(table.title, table.header, table.shown(), table.notes)


def _extras(given: list[str] | None) -> dict[str, tuple[Predictions, Predictions]]:
    """``["NAME=DEV,TEST"]`` with both files read."""
    from edokit.predictions import read_predictions

    found = {}
    for name, files in options.pairs(given, "--extra", "NAME=DEV,TEST").items():
        both = options.names(files) or []
        if len(both) != 2 or not all(both):
            raise InputError(
                f"--extra must name two files, NAME=DEV,TEST, but got {name}={files}",
                "write --extra soft-ce=soft-ce/dev.npz,soft-ce/test.npz",
            )
        found[name] = (read_predictions(Path(both[0])), read_predictions(Path(both[1])))
    return found
