"""Charts for the page, as the JSON that plotly.js reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edokit.report.chart import FAINT, INK, MUTED, SURFACE, Axis, Bars, Chart, Heatmap, Line, Points
from edokit.report.formatting import escape, rounded

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
CLEAR = "rgba(0,0,0,0)"
COMPACT = 200
"""Charts below this height have narrow margins."""


def to_plotly(chart: Chart) -> dict[str, Any]:
    """The chart as ``{"data": …, "layout": …}``, every name escaped."""
    heatmap = chart.heatmap
    gaps = heatmap is not None and any(value is None for row in heatmap.values for value in row)
    left, right, top, bottom = (48, 12, 8, 40) if chart.height < COMPACT else (56, 16, 16, 48)
    hover = {"color": INK, "size": 12, "family": FONT}
    layout: dict[str, Any] = {
        "height": chart.height,
        "margin": {"l": left, "r": right, "t": top, "b": bottom},
        "paper_bgcolor": CLEAR,
        # A pair without a value must not look like one with a low value.
        "plot_bgcolor": FAINT if gaps else CLEAR,
        "font": {"family": FONT, "size": 12, "color": INK},
        "hoverlabel": {"align": "left", "bgcolor": SURFACE, "bordercolor": FAINT, "font": hover},
        "barmode": "overlay",
        "showlegend": chart.legend,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": _axis(chart.x, grid=heatmap is None),
        "yaxis": _axis(chart.y, grid=heatmap is None, downwards=True),
    }
    data = []
    for mark in chart.marks:
        if not isinstance(mark, Line):
            data.append(_TRACES[type(mark)](mark, chart))
        elif mark.y is not None:
            data.append(_line(mark.x, mark.y, "dot"))
        else:
            _vertical(mark, chart, layout)
    if heatmap is not None and heatmap.tree:
        layout["yaxis"]["domain"] = [0, 0.82]
        layout["yaxis2"] = {"visible": False, "domain": [0.83, 1], "rangemode": "tozero"}
        data[0]["colorbar"] |= {"len": 0.8, "y": 0.4}
        # One trace for all brackets: a None ends one.
        xs = [x for bracket, _ in heatmap.tree for x in (*bracket, None)]
        ys = [y for _, bracket in heatmap.tree for y in (*bracket, None)]
        data.append(_line(xs, ys, "solid") | {"yaxis": "y2"})
    return {"data": data, "layout": layout}


def _axis(axis: Axis, grid: bool, downwards: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {
        "gridcolor": FAINT,
        "linecolor": MUTED,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        "nticks": 6,
        "title": {"standoff": 10, "text": escape(axis.title, 80)},
        "showgrid": grid and axis.labels is None,
    }
    if axis.range is not None:
        made["range"] = list(axis.range)
    if axis.percent:
        made["tickformat"] = ".0%"
    if axis.step is not None:
        made["dtick"] = axis.step
    if axis.labels is not None:
        last = len(axis.labels) - 0.5
        made["tickvals"] = list(range(len(axis.labels)))
        made["ticktext"] = [escape(name) for name in axis.labels]
        made["range"] = [last, -0.5] if downwards else [-0.5, last]
        made["tickangle"] = -45 if axis.crowded and not downwards else 0
    return made


def _points(mark: Points, chart: Chart) -> dict[str, Any]:
    ring = mark.symbol == "ring"
    trace: dict[str, Any] = {
        "type": "scatter",
        "name": escape(mark.name),
        "mode": "lines+markers" if mark.line else "markers",
        "x": rounded(mark.x, 6),
        "y": rounded(mark.y, 6),
        "marker": {
            "color": mark.colour,
            "size": rounded(mark.size, 1),
            "symbol": "circle-open" if ring else mark.symbol,
            "opacity": mark.opacity,
            "line": {"width": 2} if ring else {"width": 0.5, "color": FAINT},
        },
        "line": {"color": mark.colour, "width": 2},
        "hoverinfo": "skip" if mark.hover == "none" else "text",
    }
    if mark.hover == "notes":
        trace["hovertext"] = [_lines(*note.split("\n")) for note in mark.notes or ()]
    elif mark.hover == "values":
        trace["hovertext"] = _hovers(mark, chart, mark.x, mark.y)
    if mark.ids is not None:
        trace["customdata"] = list(mark.ids)
    if mark.interval is not None:
        trace["error_x"] = _error(mark.x, mark.interval, mark.colour, cap=0)
    return trace


def _bars(mark: Bars, chart: Chart) -> dict[str, Any]:
    x, y = (mark.values, mark.at) if mark.horizontal else (mark.at, mark.values)
    trace = {
        "type": "bar",
        "name": escape(mark.name),
        "orientation": "h" if mark.horizontal else "v",
        "x": rounded(x, 6),
        "y": rounded(y, 6),
        "width": round(mark.width, 6),
        "marker": {"color": mark.colour, "opacity": mark.opacity},
        "hoverinfo": "text",
        "hovertext": _hovers(mark, chart, x, y),
    }
    if mark.text is not None:
        trace |= {"text": list(mark.text), "textposition": "outside", "cliponaxis": False}
    if mark.interval is not None:
        trace["error_x"] = _error(mark.values, mark.interval, INK, cap=4)
    return trace


def _heatmap(mark: Heatmap, chart: Chart) -> dict[str, Any]:
    xs = list(range(mark.origin[0], mark.origin[0] + len(mark.values[0])))
    ys = list(range(mark.origin[1], mark.origin[1] + len(mark.values)))
    notes = mark.notes or [[""] * len(xs)] * len(ys)
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": rounded(mark.values),
        "x": xs,
        "y": ys,
        "colorscale": [list(stop) for stop in mark.scale],
        "zmin": round(mark.low, 4),
        "zmax": round(mark.high, 4),
        "xgap": 1,
        "ygap": 1,
        "colorbar": {
            "thickness": 10,
            "outlinewidth": 0,
            "title": {"text": escape(mark.title), "side": "right"},
            "tickformat": ".0%" if mark.percent else "",
        },
        "hoverongaps": False,
        "hoverinfo": "text",
        "hovertext": [
            [
                _hover(chart, x, y, "", _value(mark.title, value, mark.percent), note)
                for x, value, note in zip(xs, *row, strict=True)
            ]
            for y, *row in zip(ys, mark.values, notes, strict=True)
        ],
    }
    if mark.text is not None:
        trace |= {"text": [list(row) for row in mark.text], "texttemplate": "%{text}"}
    return trace


_TRACES: dict[type, Callable[..., Any]] = {Points: _points, Bars: _bars, Heatmap: _heatmap}


def _line(x: Any, y: Any, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": rounded(x),
        "y": rounded(y),
        "hoverinfo": "skip",
        "showlegend": False,
        "line": {"color": MUTED, "width": 1.2, "dash": dash},
    }


def _vertical(mark: Line, chart: Chart, layout: dict[str, Any]) -> None:
    """A vertical line over the whole height, with its label on the side of the bars."""
    x = round(float(mark.x[0]), 6)
    width, dash = (1, "dot") if mark.dotted else (2, "solid")
    line = {"color": mark.colour, "width": width, "dash": dash}
    ends = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain"}
    layout["shapes"] = [{"type": "line", "line": line, **ends}]
    if mark.label:
        right = all(x > np.max(bars.at) for bars in chart.marks if isinstance(bars, Bars))
        side = {"xanchor": "right", "xshift": -6} if right else {"xanchor": "left", "xshift": 6}
        text = {"text": escape(mark.label), "showarrow": False, "font": {"color": mark.colour}}
        layout["annotations"] = [{"x": x, "y": 1, "yref": "paper", **text, **side}]


def _hovers(mark: Points | Bars, chart: Chart, x: Any, y: Any) -> list[str]:
    points = zip(x, y, mark.notes or [""] * len(x), strict=True)
    return [_hover(chart, *at, mark.name, note) for *at, note in points]


def _hover(chart: Chart, x: float, y: float, name: str, *notes: str) -> str:
    """The labels or values of a point on both axes, then the notes."""
    names, values = [name] if name else [], []
    for axis, value in ((chart.y, y), (chart.x, x)):
        if axis.labels is not None:
            names.append(str(axis.labels[int(value)]))
        else:
            values.append(_value(axis.title, value, axis.percent))
    return _lines(" and ".join(names), ", ".join(values[::-1]), *notes)


def _value(title: str, value: float | None, percent: bool) -> str:
    if value is None:
        return ""
    shown = f"{value:.1%}" if percent else f"{value:.4g}"
    return f"{title.partition(' (')[0]} {shown}"


def _lines(*lines: str) -> str:
    return "<br>".join(escape(line, 120) for line in lines if line)


def _error(values: Any, interval: Any, colour: str, cap: int) -> dict[str, Any]:
    low, high = (np.asarray(end, dtype=np.float64) for end in interval)
    middle = np.asarray(values, dtype=np.float64)
    ends = {
        "array": rounded(np.maximum(high - middle, 0.0), 6),
        "arrayminus": rounded(np.maximum(middle - low, 0.0), 6),
    }
    style = {"color": colour, "thickness": 1.4, "width": cap}
    return {"type": "data", "symmetric": False, **ends, **style}
