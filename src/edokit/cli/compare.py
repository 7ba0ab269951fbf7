"""`edo compare`: every method side by side, fitted on dev, evaluated once on test."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from edokit._errors import InputError, local_path, one_of
from edokit.cli import console, options
from edokit.cli.report import WithReport, add_page

if TYPE_CHECKING:
    from edokit.annotations import Ties
    from edokit.baselines import Comparison


@options.reads(options.SPLIT, options.LABELS, options.LEARNING)
def compare(
    predictions: Annotated[
        Path, typer.Option(help="The members' predictions of the items to fit on (dev).")
    ],
    annotations: options.Labels,
    test_predictions: Annotated[
        Path, typer.Option(help="The same members' predictions of the test items.")
    ],
    test_annotations: Annotated[
        Path | None,
        typer.Option(help="The annotations of the test items; else those of --annotations."),
    ] = None,
    test_split: options.TestSplit = None,
    train_annotations: options.TrainAnnotations = None,
    train_split: options.TrainSplit = None,
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
            help="Only these, separated by commas: majority, best-single, top-5, wel, wel-ce,"
            " greedy, linear-pool, log-pool, edo-paper-fixed, edo-paper, edo (constant and uniform"
            " always); or all. If not given, all but wel and wel-ce, the slowest."
        ),
    ] = None,
    by: options.By = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results, tables and EDO's ensemble.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="Print it as markdown, csv or latex.")
    ] = None,
    bootstrap: options.Bootstrap = 1000,
    level: options.Level = 0.95,
    ties: options.Ties = "first",
    seed: Annotated[int, typer.Option(help="Seed of searches, intervals and random ties.")] = 0,
    report: WithReport = True,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Compare EDO with every baseline on the same members: F1, CE, MD, BS, intervals, tests."""
    from edokit import baselines
    from edokit._io.markup import FORMATS
    from edokit._outputs import output_folder
    from edokit.runs import command_text

    if form is not None:
        one_of("format", form, FORMATS)
    inputs = (predictions, annotations, test_predictions, test_annotations, train_annotations)
    guard = (
        nullcontext()
        if out is None
        else output_folder(out, "comparison", *inputs, overwrite=overwrite)
    )
    with guard, console.progress() as bars:
        update = console.add_bar(bars, "")
        found = baselines.compare(
            predictions,
            annotations,
            test_predictions,
            test_annotations,
            test_split=options.names(test_split),
            train_annotations=train_annotations,
            train_split=options.names(train_split),
            methods=options.names(methods),
            by=by,
            extra=_extras(extra),
            samples=bootstrap,
            level=level,
            ties=cast("Ties", ties),
            random_state=seed,
            step=lambda done, total, what: update(done, total, description=what),
            **reading.keywords(),
        )
        if out is not None:
            update(1, 1, description="writing")
            found.save(out, command=command_text(["edo", *sys.argv[1:]]), overwrite=overwrite)
            if report:
                add_page(out, overwrite=overwrite)
    _show(found, form, json)


def _show(found: Comparison, form: str | None, json: bool) -> None:
    if json:
        console.print_json(found.to_dict())
        return
    if form is not None:
        typer.echo(found.text(form), nl=False)  # type: ignore[arg-type]  # checked before
        if found.slices:
            typer.echo("\n" + found.slice_text(form), nl=False)  # type: ignore[arg-type]
        return
    table = found.table()
    console.print_table(table.title, table.header, table.shown(), table.notes, found.headline)
    if found.slices:
        table = found.slice_table()
        console.print_table(table.title, table.header, table.shown(), table.notes)


def _extras(given: list[str] | None) -> dict[str, tuple[Path, Path]]:
    """``["NAME=DEV,TEST"]`` as ``{"NAME": (DEV, TEST)}``."""
    found = {}
    for name, files in options.pairs(given, "--extra", "NAME=DEV,TEST").items():
        both = options.names(files) or []
        if len(both) != 2 or not all(both):
            raise InputError(
                f"--extra {name}={files} does not name two files, NAME=DEV,TEST",
                "write --extra soft-ce=soft-ce/dev.npz,soft-ce/test.npz",
            )
        found[name] = (local_path(both[0]), local_path(both[1]))
    return found
