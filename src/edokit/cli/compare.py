"""`edo compare`: every method side by side, fitted on dev, evaluated once on test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from edokit._errors import InputError, one_of
from edokit.cli import console, options
from edokit.cli.report import WithReport, add_page

if TYPE_CHECKING:
    from edokit.annotations import Ties
    from edokit.baselines import Comparison


def compare(
    predictions: Annotated[
        Path, typer.Option(help="The members' predictions of the items to fit on (dev).")
    ],
    annotations: Annotated[Path, typer.Option(help="The annotations of these items (any source).")],
    test_predictions: Annotated[
        Path, typer.Option(help="The same members' predictions of the test items.")
    ],
    test_annotations: Annotated[
        Path | None,
        typer.Option(help="The annotations of the test items; else those of --annotations."),
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
    """Compare EDO with every baseline on the same members: F1, CE, MD, BS, intervals, tests."""
    from edokit import baselines
    from edokit._io.markup import FORMATS
    from edokit._outputs import check_output
    from edokit.runs import command_text

    if form is not None:
        one_of("format", form, FORMATS)
    if out is not None:
        check_output(
            out, "comparison", predictions, annotations, test_predictions, test_annotations
        )
    with console.progress() as bars:
        bar = bars.add_task("", total=None, detail="")

        def step(done: int, total: int, what: str) -> None:
            bars.update(bar, completed=done, total=total, description=what)

        found = baselines.compare(
            predictions,
            annotations,
            test_predictions,
            test_annotations,
            split=options.names(split),
            test_split=options.names(test_split),
            methods=options.names(methods),
            extra=_extras(extra),
            samples=bootstrap,
            level=level,
            ties=cast("Ties", ties),
            random_state=seed,
            step=step,
            columns=options.pairs(column, "--column", "ROLE=NAME") or None,
            classes=options.names(classes),
            duplicates=duplicates,
        )
    if out is not None:
        found.save(out, command=command_text(["edo", *sys.argv[1:]]))
        if report:
            add_page(out)
    _show(found, form, json)


def _show(found: Comparison, form: str | None, json: bool) -> None:
    if json:
        console.print_json(found.to_dict())
        return
    if form is not None:
        typer.echo(found.text(form), nl=False)  # type: ignore[arg-type]  # checked before
        return
    table = found.table()
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
        found[name] = (Path(both[0]), Path(both[1]))
    return found
