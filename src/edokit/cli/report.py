"""`edo report`: a run as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from edokit._errors import InputError, counted, option, warn
from edokit.cli import console, options


def add_page(folder: Path, *, fit_items: bool = True, overwrite: bool = False) -> None:
    """Make the page of a run; the results do not depend on it, so a failure is only a warning."""
    from edokit.report import collect, write_report
    from edokit.runs.folder import locked

    try:
        with locked(folder, wait=True):
            data = collect(folder, fit_items=fit_items)
            write_report(data, folder / "report.html", overwrite=overwrite)
    except Exception as error:
        warn(
            f"the page {folder / 'report.html'} could not be made ({error}); the results are"
            f" complete, `edo report {folder}` tries again"
        )


def report(
    run: options.Argument,
    /,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    figure_format: options.Names = None,
    predictions: Path | None = None,
    annotations: Path | None = None,
    texts: Annotated[bool, options.TWO_SIDED] = True,
    overwrite: options.Overwrite = False,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Show what a run found: one self-contained page that opens from disk.

    Parameters
    ----------
    run : Path
        A folder made by `edo run`, `edo search`, `edo compare`, `edo demo --out` or `edo fit`.
    out : Path, optional
        The page; report.html in the folder, if not given.
    figures : Path, optional
        Also write each chart as a file of its own into this folder.
    figure_format : list of str, optional
        Formats of these files: pdf, svg, png, html, json, separated by commas; pdf if not given.
    predictions : Path, optional
        The members' predictions of other items, to show these instead of those of the run.
    annotations : Path, optional
        The annotations of these items (any source).
    texts : bool, default=True
        Keep the items' texts on the page.
    """
    from edokit.figures import check_formats, save_figures
    from edokit.predictions.shards import read_predictions
    from edokit.report import collect, write_report
    from edokit.runs.folder import REPORT, check_page, output_files, refuse_links

    formats = figure_format or ["pdf"]
    if figures is None:
        if figure_format is not None:
            raise InputError(
                f"{option('figure_format')} needs {option('figures')}",
                "name a folder",
                code="missing-option",
            )
    else:
        check_formats(formats)
    if annotations is None:
        options.refuse_given(reading, "--annotations, which is not given")
    page = out
    if page is None:
        page = run / REPORT
    check_page(page, predictions, annotations, overwrite=overwrite)
    if out is None:
        refuse_links(run, REPORT)
    items = None
    if predictions is not None:
        items = read_predictions(predictions)
    labels = None
    if annotations is not None:
        labels = reading.annotations(annotations)
    content = collect(run, predictions=items, annotations=labels)
    write_report(content, page, texts=texts, overwrite=overwrite)
    line = f"{page}: {page.stat().st_size / 1e6:.1f} MB"
    summary = {"out": str(page), "bytes": page.stat().st_size, "missing": content.missing}
    lines = [line, *content.missing]
    if figures is not None:
        with output_files(figures, inputs=[run, predictions, annotations], overwrite=overwrite):
            paths = save_figures(content, figures, formats=formats)
        summary["figures"] = [str(path) for path in paths]
        lines.append(f"{figures}: {counted(len(paths), 'figure')}")
    console.print_result(summary, "\n".join(lines), json)
