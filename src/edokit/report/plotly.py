"""Charts for the page, as the JSON that plotly.js reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit.report.chart import FAINT, INK, MUTED, SURFACE, Axis, Bars, Chart, Heatmap, Line, Points
from edokit.report.formatting import escape, rounded

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_SYMBOLS = {"circle": "circle", "diamond": "diamond", "ring": "circle-open"}
_ROTATED = 4
"""More labels than this are rotated below a chart."""


def to_plotly(chart: Chart) -> dict[str, Any]:
    """The chart as ``{"data": …, "layout": …}``, every name escaped."""
    layout = _layout(chart)
    data = []
    for mark in chart.marks:
        if isinstance(mark, Points):
            data.append(_points(mark))
        elif isinstance(mark, Bars):
            data.append(_bars(mark))
        elif isinstance(mark, Heatmap):
            data += _heatmap(mark, layout)
        elif mark.y is not None:
            data.append(_line(mark.x, mark.y, mark))
        else:
            _vertical(mark, chart, layout)
    return {"data": data, "layout": layout}


def _layout(chart: Chart) -> dict[str, Any]:
    compact = chart.height < 200
    heatmap = chart.heatmap
    gaps = heatmap is not None and any(value is None for row in heatmap.values for value in row)
    return {
        "height": chart.height,
        "margin": {"l": 48, "r": 12, "t": 8, "b": 40}
        if compact
        else {"l": 56, "r": 16, "t": 16, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        # A pair without a value is not a pair with a low one.
        "plot_bgcolor": FAINT if gaps else "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": INK},
        "hoverlabel": {
            "align": "left",
            "bgcolor": SURFACE,
            "bordercolor": FAINT,
            "font": {"color": INK, "size": 12, "family": FONT},
        },
        "barmode": "overlay",
        "showlegend": chart.legend,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": _axis(chart.x, heatmap),
        "yaxis": _axis(chart.y, heatmap, downwards=True),
    }


def _axis(axis: Axis, heatmap: Heatmap | None, downwards: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {
        "gridcolor": FAINT,
        "linecolor": MUTED,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        "title": {"standoff": 10, "text": escape(axis.title, 80)},
        "showgrid": heatmap is None and axis.labels is None,
    }
    if axis.range is not None:
        made["range"] = list(axis.range)
    if axis.ticks is not None:
        made["nticks"] = axis.ticks
    if axis.percent:
        made["tickformat"] = ".0%"
    if axis.integer:
        made |= {"tickformat": "d", "nticks": 11}
    if axis.labels is not None:
        last = len(axis.labels) - 0.5
        made["tickvals"] = list(range(len(axis.labels)))
        made["ticktext"] = [escape(name) for name in axis.labels]
        made["range"] = [last, -0.5] if downwards else [-0.5, last]
        if not downwards:
            made["tickangle"] = -45 if len(axis.labels) > _ROTATED else 0
    return made


def _points(mark: Points) -> dict[str, Any]:
    ring = mark.symbol == "ring"
    marker = {
        "color": mark.colour,
        "size": rounded(mark.size, 1),
        "symbol": _SYMBOLS[mark.symbol],
        "opacity": mark.opacity,
        "line": {"width": 2} if ring else {"width": 0.5, "color": FAINT},
    }
    trace = _named(mark) | {
        "type": "scatter",
        "mode": "lines+markers" if mark.line else "markers",
        "x": rounded(mark.x, 6),
        "y": rounded(mark.y, 6),
        "marker": marker,
    }
    if mark.line:
        trace["line"] = {"color": mark.colour, "width": 2}
    if mark.ids is not None:
        trace["customdata"] = list(mark.ids)
    if mark.interval is not None:
        trace["error_x"] = _error(mark.x, mark.interval, mark.colour, cap=0)
    return trace


def _bars(mark: Bars) -> dict[str, Any]:
    at, values = ("y", "x") if mark.horizontal else ("x", "y")
    trace = _named(mark) | {
        "type": "bar",
        "orientation": "h" if mark.horizontal else "v",
        at: rounded(mark.at, 6),
        values: rounded(mark.values, 6),
        "width": round(mark.width, 6),
        "marker": {"color": mark.colour, "opacity": mark.opacity},
    }
    if mark.text is not None:
        trace |= {"text": list(mark.text), "textposition": "outside", "cliponaxis": False}
    if mark.interval is not None:
        trace[f"error_{values}"] = _error(mark.values, mark.interval, INK, cap=4)
    return trace


def _heatmap(mark: Heatmap, layout: dict[str, Any]) -> list[dict[str, Any]]:
    bar: dict[str, Any] = {
        "thickness": 10,
        "outlinewidth": 0,
        "title": {"text": escape(mark.title)},
    }
    if mark.percent:
        bar["tickformat"] = ".0%"
    x, y = mark.origin
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": rounded(mark.values),
        "x": list(range(x, x + len(mark.values[0]))),
        "y": list(range(y, y + len(mark.values))),
        "colorscale": [list(stop) for stop in mark.scale],
        "zmin": round(mark.low, 4),
        "zmax": round(mark.high, 4),
        "xgap": 1,
        "ygap": 1,
        "colorbar": bar,
        "hoverongaps": False,
        "hoverinfo": "text",
        "hovertext": [[_lines(text) for text in row] for row in mark.hover or []],
    }
    if mark.text is not None:
        trace |= {"text": [list(row) for row in mark.text], "texttemplate": "%{text}"}
    if not mark.tree:
        return [trace]
    bar |= {"len": 0.8, "y": 0.4}
    layout["yaxis"]["domain"] = [0, 0.82]
    layout["yaxis2"] = {"visible": False, "domain": [0.83, 1], "rangemode": "tozero"}
    # One trace for all brackets: a None ends one.
    xs = [x for bracket, _ in mark.tree for x in (*bracket, None)]
    ys = [y for _, bracket in mark.tree for y in (*bracket, None)]
    return [trace, _line(xs, ys, Line((), colour=MUTED, dotted=False)) | {"yaxis": "y2"}]


def _line(x: Any, y: Any, mark: Line) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": rounded(x),
        "y": rounded(y),
        "hoverinfo": "skip",
        "showlegend": False,
        "line": {"color": mark.colour, "width": 1.2, "dash": "dot" if mark.dotted else "solid"},
    }


def _vertical(mark: Line, chart: Chart, layout: dict[str, Any]) -> None:
    """A vertical line over the whole height, its label on the side of the bars."""
    x = round(float(mark.x[0]), 6)
    dash = "dot" if mark.dotted else "solid"
    ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain"}
    line = {"color": mark.colour, "width": 1 if mark.dotted else 2, "dash": dash}
    layout.setdefault("shapes", []).append({"type": "line", **ends, "line": line})
    if mark.label:
        bars = next(one for one in chart.marks if isinstance(one, Bars))
        right = x > float(np.max(bars.at))
        layout.setdefault("annotations", []).append(
            {
                "x": x,
                "y": 1,
                "yref": "paper",
                "text": escape(mark.label),
                "showarrow": False,
                "xanchor": "right" if right else "left",
                "xshift": -6 if right else 6,
                "font": {"color": mark.colour},
            }
        )


def _named(mark: Points | Bars) -> dict[str, Any]:
    """The legend's name and what is shown of a point."""
    named: dict[str, Any] = {"name": escape(mark.name), "hoverinfo": "skip"}
    if mark.hover is not None:
        named |= {"hoverinfo": "text", "hovertext": [_lines(text) for text in mark.hover]}
    return named


def _lines(text: str) -> str:
    """Lines of a hover label, the first in bold if there are several."""
    first, *rest = (escape(line, 120) for line in text.split("\n"))
    return "<br>".join([f"<b>{first}</b>", *rest]) if rest else first


def _error(values: Any, interval: Any, colour: str, cap: int) -> dict[str, Any]:
    low, high = (np.asarray(end, dtype=np.float64) for end in interval)
    middle = np.asarray(values, dtype=np.float64)
    return {
        "type": "data",
        "symmetric": False,
        "array": rounded(np.maximum(high - middle, 0.0), 6),
        "arrayminus": rounded(np.maximum(middle - low, 0.0), 6),
        "color": colour,
        "thickness": 1.4,
        "width": cap,
    }
