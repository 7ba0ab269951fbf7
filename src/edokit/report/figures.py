"""Charts for papers, drawn with matplotlib: PNG, SVG and PDF."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import MissingExtraError
from edokit._io import whole_file
from edokit.report.chart import FAINT, INK, MUTED, Axis, Bars, Chart, Heatmap, Mark, Points
from edokit.report.formatting import clean

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
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "edo",
    # Names come from data: a dollar sign is a dollar sign.
    "text.parse_math": False,
    "text.usetex": False,
}
PIXELS = 115
"""Pixels of the page to an inch of paper."""
WIDE, NARROW = 7.0, 4.5
"""Width in inches of a figure with several charts, and with one."""


def figure_layouts(charts: Mapping[str, Chart]) -> dict[str, list[list[str]]]:
    """The rows of charts in each figure, as far as there are such charts."""
    layouts = {
        "pareto": [[name for name in charts if name.startswith("pareto-")]],
        "correlations": [[name for name in charts if name.startswith("correlations-")]],
        "weights": [["weights"]],
        "cost": [["cost"]],
        "epochs": [["sizes", "term-f1", "term-ce"], ["sizes", "term-div", "term-reg"]],
        "methods": [["methods"]],
        "slices": [["slices"]],
        "calibration": [["reliability", "entropies", "entropy-entropy"]],
        "scale": [["cumulative", "ratings", "labels"]],
        "members": [["members"]],
        "diagnosis": [["variance", "permutations"]],
    }
    present = {
        name: [[one for one in row if one in charts] for row in rows]
        for name, rows in layouts.items()
    }
    return {name: rows for name, rows in present.items() if rows[0]}


def styled() -> Any:
    """The context in which figures are drawn and written."""
    try:
        import matplotlib
    except ImportError as error:
        message = "figures need matplotlib, which is not installed"
        raise MissingExtraError(message, "pip install 'edokit[figures]'") from error
    return matplotlib.rc_context(STYLE)


def write_all(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Write every figure in every format; their paths."""
    written = []
    with styled(), warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes; that is no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        for name, rows in figure_layouts(charts).items():
            figure = draw([[charts[one] for one in row] for row in rows])
            # Settle the layout once, not for each format again.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for ending, how in FORMATS.items():
                path = folder / f"{name}.{ending}"
                with whole_file(path) as temporary:
                    figure.savefig(temporary, format=ending, **how)
                written.append(path)
    return written


def draw(rows: Sequence[Sequence[Chart]]) -> Any:
    """A matplotlib figure with these charts; one that is in several rows spans them."""
    from matplotlib.figure import Figure

    every = list(dict.fromkeys(chart for row in rows for chart in row))
    columns = [dict.fromkeys(column) for column in zip(*rows, strict=True)]
    height = max(sum(chart.height for chart in column) for column in columns) / PIXELS
    square = len(every) == 1 and every[0].x.labels is not None
    width = WIDE if len(every) > 1 else max(NARROW, height) if square else NARROW
    figure = Figure(figsize=(width, height), layout="constrained")
    mosaic = figure.subplot_mosaic([[str(every.index(chart)) for chart in row] for row in rows])
    panels = list(mosaic.values())
    images = []
    for k, (axes, chart) in enumerate(zip(panels, every, strict=True)):
        for side, axis in (("x", chart.x), ("y", chart.y)):
            _axis(axes, side, axis, grid=chart.heatmap is None)
        images += [image for mark in chart.marks if (image := _draw(axes, mark)) is not None]
        if len(every) > 1:
            axes.set_title(clean(chart.title, 60))
        if k and chart.y.labels and chart.y.labels == every[k - 1].y.labels:
            axes.tick_params(labelleft=False)
    if images:
        title = next(chart.heatmap.title for chart in every if chart.heatmap)
        figure.colorbar(images[-1], ax=[one.axes for one in images], shrink=0.8, label=title)
    named = [(axes, axes.get_legend_handles_labels()) for axes in panels]
    named = [(axes, found) for axes, found in named if found[1]]
    if len(named) == 1:
        named[0][0].legend()
    elif named:
        marks = {name: mark for _, found in named for mark, name in zip(*found, strict=True)}
        figure.legend(marks.values(), marks.keys(), loc="outside upper left", ncols=len(marks))
    return figure


def _axis(axes: Any, side: str, axis: Axis, grid: bool) -> None:
    """Title, ticks and limits of the x or y axis."""
    from matplotlib.ticker import MultipleLocator, PercentFormatter

    own = getattr(axes, f"{side}axis")
    own.set_label_text(clean(axis.title, 60))
    limits = axis.range
    if axis.labels is not None:
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        style = turned if side == "x" and axis.crowded else {}
        own.set_ticks(range(len(axis.labels)), [clean(name, 24) for name in axis.labels], **style)
        last = len(axis.labels) - 0.5
        limits = (last, -0.5) if side == "y" else (-0.5, last)
    if limits is not None:
        getattr(axes, f"set_{side}lim")(limits)
    if not grid or axis.labels is not None:
        axes.grid(visible=False, axis=side)
    if axis.step is not None:
        own.set_major_locator(MultipleLocator(axis.step))
    if axis.percent:
        own.set_major_formatter(PercentFormatter(1, decimals=0))


def _draw(axes: Any, mark: Mark) -> Any:
    """Draw a mark; the image of a heat map."""
    if isinstance(mark, Heatmap):
        return _heatmap(axes, mark)
    if isinstance(mark, Points):
        _points(axes, mark)
    elif isinstance(mark, Bars):
        _bars(axes, mark)
    else:
        style = {"color": mark.colour, "linestyle": ":" if mark.dotted else "-", "linewidth": 1}
        if mark.y is None:
            axes.axvline(mark.x[0], **style)
        else:
            axes.plot(mark.x, mark.y, **style)
    return None


def _points(axes: Any, mark: Points) -> None:
    if mark.line:
        axes.plot(mark.x, mark.y, color=mark.colour, linewidth=1.2)
    if mark.interval is not None:
        axes.hlines(mark.y, *mark.interval, color=mark.colour, linewidth=1.2)
    ring = mark.symbol == "ring"
    axes.scatter(
        mark.x,
        mark.y,
        # A point of paper is about two pixels of the page.
        s=(np.asarray(mark.size, dtype=np.float64) / 2) ** 2,
        facecolors="none" if ring else mark.colour,
        edgecolors=mark.colour if ring else "none",
        marker="D" if mark.symbol == "diamond" else "o",
        alpha=mark.opacity,
        label=clean(mark.name, 24) or None,
    )


def _bars(axes: Any, mark: Bars) -> None:
    at, values = np.asarray(mark.at, dtype=np.float64), np.asarray(mark.values, dtype=np.float64)
    style = {"color": mark.colour, "alpha": mark.opacity, "label": mark.name or None}
    (axes.barh if mark.horizontal else axes.bar)(at, values, mark.width, **style)
    for position, value, text in zip(at, values, mark.text or (), strict=False):
        axes.text(value, position, f" {text}", va="center", fontsize=7)
    if mark.interval is not None:
        low, high = (np.asarray(end, dtype=np.float64) for end in mark.interval)
        ends = np.maximum([values - low, high - values], 0)
        line = {"fmt": "none", "ecolor": INK, "elinewidth": 0.8, "capsize": 2}
        axes.errorbar(values, at, xerr=ends, **line)


def _heatmap(axes: Any, mark: Heatmap) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    values = np.array(mark.values, dtype=np.float64)
    x, y = mark.origin
    rows, columns = values.shape
    upwards = axes.get_ylim()[0] < axes.get_ylim()[1]
    edges = (y - 0.5, y + rows - 0.5)
    image = axes.imshow(
        values if upwards else values[::-1],
        vmin=mark.low,
        vmax=mark.high,
        cmap=LinearSegmentedColormap.from_list("edo", list(mark.scale)),
        aspect="auto",
        origin="lower",
        extent=(x - 0.5, x + columns - 0.5, *(edges if upwards else edges[::-1])),
    )
    axes.set_facecolor(FAINT)
    deep = 0.6 * max(abs(mark.low), abs(mark.high))
    for (i, j), value in np.ndenumerate(values):
        if mark.text is not None:
            shade = "white" if abs(value) > deep else INK
            where = {"ha": "center", "va": "center", "color": shade, "fontsize": 7}
            axes.text(x + j, y + i, mark.text[i][j], **where)
    if mark.tree:
        tree = axes.inset_axes((0, 1.01, 1, 0.2), sharex=axes)
        tree.set_axis_off()
        for xs, heights in mark.tree:
            tree.plot(xs, heights, color=MUTED, linewidth=0.8)
    return image
