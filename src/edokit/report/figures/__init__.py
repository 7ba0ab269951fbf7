"""The charts of the page as static figures for papers: PNG, SVG and PDF."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edokit._errors import MissingExtraError
from edokit._io import whole_file
from edokit.report.data import ReportData

# No dates, no random ids: the same run gives the same bytes.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 200, "metadata": {"Software": None}},
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}
STYLE: Any = {
    "figure.dpi": 100,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#858b94",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "edo",
    # Names come from data: a dollar sign is a dollar sign.
    "text.parse_math": False,
    "text.usetex": False,
}


def figures(found: ReportData) -> dict[str, Callable[[], Any]]:
    """The figures that the data allows, by name; each is drawn when called."""
    from edokit.report.figures import disagreement, fitted, items, searched

    every: dict[str, Callable[[ReportData], Callable[[], Any] | None]] = {
        "pareto": searched.pareto,
        "correlations": searched.correlations,
        "weights": fitted.weights,
        "epochs": fitted.epochs,
        "methods": fitted.methods,
        "calibration": items.calibration,
        "members": items.members,
        "diagnosis": disagreement.diagnosis,
    }
    able = {name: make(found) for name, make in every.items()}
    return {name: draw for name, draw in able.items() if draw is not None}


def write_all(found: ReportData, folder: Path) -> list[Path]:
    """Write every figure in every format; where they are."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed", "pip install 'edokit[figures]'"
        ) from error
    written = []
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes; that is no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        for name, draw in figures(found).items():
            figure = draw()
            # Settle the layout once, not for each format again.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for ending, how in FORMATS.items():
                path = folder / f"{name}.{ending}"
                with whole_file(path) as temporary:
                    figure.savefig(temporary, format=ending, **how)
                written.append(path)
    return written
