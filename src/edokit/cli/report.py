"""`edo report`: a run as one page, and as figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import InputError, counted, warn
from edokit.cli import console, options

WithReport = Annotated[
    bool, typer.Option("--report/--no-report", help="Also make the page report.html in OUT.")
]


def add_page(folder: Path, *, fit_items: bool = True, overwrite: bool = False) -> None:
    """Make the page of a run; results stay good without it, so a failure is a note."""
    from edokit._outputs import locked
    from edokit.report import collect, write_report

    try:
        with locked(folder, wait=True):
            found = collect(folder, fit_items=fit_items)
            write_report(found, folder / "report.html", overwrite=overwrite)
        if not fit_items and found.evaluation is None:
            warn(
                f"{folder / 'report.html'} shows no items, since they were read shard by shard;"
                f" show a part of them with `edo report {folder} --predictions … --annotations …`"
            )
    except Exception as error:
        warn(
            f"the page {folder / 'report.html'} could not be made ({error}); the results are"
            f" complete, `edo report {folder}` tries again"
        )


@options.reads(options.SPLIT, options.LABELS)
def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="A folder made by `edo search`, `edo compare`, `edo demo --out` or `edo fit`."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page; report.html in the folder, if not given.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write figures for papers into this folder.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Show these items: the members' predictions of them, …")
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="… and their annotations (any source).")
    ] = None,
    by: options.By = None,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Keep the items' texts on the page.")
    ] = True,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Show what a run found: one self-contained page that opens from disk."""
    from edokit._outputs import REPORT, check_page, locked, output_files, refuse_links
    from edokit.predictions import read_predictions
    from edokit.report import collect, write_figures, write_report

    if annotations is None and reading.given:
        shown = ", ".join(f"--{name}" for name in reading.given)
        raise InputError(
            f"{shown}: there are no --annotations to read so", "give --annotations, too"
        )
    page = run / REPORT if out is None else out
    check_page(page, predictions, annotations, overwrite=overwrite)
    if out is None:
        refuse_links(run, (REPORT,))
    labels = None if annotations is None else reading.annotations(annotations)
    items = None if predictions is None else read_predictions(predictions)
    found = collect(run, predictions=items, annotations=labels, by=by)
    write_report(found, page, texts=texts, overwrite=overwrite)
    drawn = []
    if figures is not None:
        with locked(figures), output_files(figures, overwrite=overwrite):
            drawn = write_figures(found, figures)
    size = page.stat().st_size
    line = f"{page}: {size / 1e6:.1f} MB"
    if figures is not None:
        line += f", and {counted(len(drawn), 'file')} in {figures}"
    for what in found.missing:
        line += f"\n{what}"
    console.done(
        {
            "out": str(page),
            "bytes": size,
            "figures": [str(path) for path in drawn],
            "missing": found.missing,
        },
        line,
        json,
    )
