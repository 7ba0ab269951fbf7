"""The results of a run as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edokit.report.data import ReportData, collect

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.predictions.core import Predictions

__all__ = [
    "ReportData",
    "collect",
    "write_report",
]


def write_report(
    run: str | Path | ReportData,
    out: str | Path | None = None,
    *,
    predictions: Predictions | None = None,
    annotations: Annotations | None = None,
    texts: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write the page of a run: one HTML file that needs nothing but a browser.

    Parameters
    ----------
    run : str, Path or ReportData
        Folder of a run, a saved ensemble, or what `collect` returned.
    out : str or Path, optional
        Where to write; by default ``report.html`` in the folder of the run.
    predictions, annotations : optional
        Items to show instead of those of the run, as in `collect`.
    texts : bool, default True
        Whether the page holds the texts of the items.
    overwrite : bool, default False
        Also replace a file that is no page of EDO's.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        If ``run`` is not the folder of a run or an ensemble.
    TypeError
        If ``run`` is a `ReportData` and there is no ``out``.
    """
    from edokit._io.atomic import whole_file
    from edokit.report.page import render
    from edokit.runs import REPORT, check_page, refuse_links

    if isinstance(run, ReportData):
        data = run
        if out is None:
            raise TypeError("a page of collected data needs a path: out=…")
    else:
        data = collect(run, predictions=predictions, annotations=annotations)
        if out is None:
            refuse_links(Path(run), REPORT)
            out = Path(run) / REPORT
    check_page(Path(out), overwrite=overwrite)
    page = render(data, texts=texts)
    with whole_file(Path(out)) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return Path(out)
