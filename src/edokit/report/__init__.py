"""What a run found, as one page to look at and as figures for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.predictions import Predictions
    from edokit.report.data import ReportData

__all__ = ["collect", "write_figures", "write_report"]


def collect(
    run: str | Path,
    *,
    predictions: Predictions | None = None,
    annotations: Annotations | None = None,
    fit_items: bool = True,
) -> ReportData:
    """Everything that is known of a run's folder, or of a saved ensemble and the items given.

    ``fit_items=False`` leaves the items that it learned from alone, where they are too many.
    """
    from edokit.report.data import collect as gather

    return gather(run, predictions=predictions, annotations=annotations, fit_items=fit_items)


def write_report(
    run: str | Path | ReportData,
    out: str | Path | None = None,
    *,
    predictions: Predictions | None = None,
    annotations: Annotations | None = None,
    texts: bool = True,
) -> Path:
    """Write the page of a run (``report.html`` in its folder, unless told); where it is.

    ``texts=False`` leaves the items' texts out.
    """
    from edokit._io import whole_file
    from edokit._outputs import REPORT, refuse_links
    from edokit.report.data import ReportData
    from edokit.report.page import render

    if isinstance(run, ReportData):
        found, folder = run, None
    else:
        found, folder = collect(run, predictions=predictions, annotations=annotations), Path(run)
    if out is None:
        if folder is None:
            raise TypeError("say where to write the page of collected data: out=…")
        refuse_links(folder, (REPORT,))
        out = folder / REPORT
    page = render(found, texts=texts)
    with whole_file(out) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return Path(out)


def write_figures(run: str | Path | ReportData, folder: str | Path) -> list[Path]:
    """Write the charts of a run for papers, each as PNG, SVG and PDF (extra ``figures``)."""
    from edokit.report.data import ReportData
    from edokit.report.figures import write_all

    found = run if isinstance(run, ReportData) else collect(run)
    return write_all(found, Path(folder))
