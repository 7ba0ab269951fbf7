"""The results of a run as one self-contained page."""

from __future__ import annotations

from pathlib import Path

from edokit._errors import InputError, option
from edokit.report.data import ReportData, collect

__all__ = [
    "ReportData",
    "collect",
    "write_report",
]


def write_report(
    run: str | Path | ReportData,
    out: str | Path | None = None,
    *,
    texts: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write the page of a run: one HTML file that needs nothing but a browser.

    Parameters
    ----------
    run : str, Path or ReportData
        Folder of a run, a saved ensemble, or what `collect` returned.
    out : str or Path, optional
        Where to write; by default ``report.html`` in the folder of the run. Collected data need it.
    texts : bool, default True
        Whether the page holds the texts of the items.
    overwrite : bool, default False
        Also replace a file that EDO did not write.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        If ``run`` is not the folder of a run or an ensemble.
    """
    from edokit._io.atomic import whole_file
    from edokit.report.page import render
    from edokit.runs.folder import REPORT, check_page, refuse_links

    if isinstance(run, ReportData):
        data = run
        if out is None:
            raise InputError(
                "collected data do not name a folder for the page",
                f"give {option('out')}",
                code="missing-option",
            )
    else:
        data = collect(run)
        if out is None:
            refuse_links(Path(run), REPORT)
            out = Path(run) / REPORT
    check_page(Path(out), overwrite=overwrite)
    page = render(data, texts=texts)
    with whole_file(Path(out)) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return Path(out)
