"""Charts as Vega-Lite specifications: what the page and the figures for papers are drawn from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edokit.report.chart import FAINT, INK, MUTED, SURFACE, Axis, Bars, Chart, Heatmap, Line, Points
from edokit.report.formatting import clean, rounded

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
CONFIG: dict[str, Any] = {
    # The element around a chart has the description.
    "aria": False,
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "title": {"color": INK, "fontSize": 12, "fontWeight": "normal"},
    "axis": {
        **dict.fromkeys(("titleColor", "labelColor"), INK),
        **dict.fromkeys(("domainColor", "tickColor"), MUTED),
        "gridColor": FAINT,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 11,
        "ticks": False,
        "labelPadding": 5,
    },
    "legend": {
        **dict.fromkeys(("titleColor", "labelColor"), INK),
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "symbolOpacity": 1,
        "symbolType": "circle",
        "gradientThickness": 10,
    },
}
TREE = 0.22
"""Height of a dendrogram, as a share of that of the heat map below it."""
CELL = 34
"""Cells narrower than this many pixels hold no numbers."""

CORNERS = {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "tooltip": {"field": "tip"}}

Layer = dict[str, Any]


def page_spec(chart: Chart) -> Layer:
    """The chart in the width of its element, with tooltips; trials are linked between charts."""
    spec = _layers(chart, legend=chart.legend) | {
        "width": "container",
        "height": chart.height,
        "autosize": {"type": "fit", "contains": "padding"},
    }
    if any(isinstance(mark, Bars) and mark.text for mark in chart.marks):
        spec["padding"] = {"left": 5, "top": 5, "right": 36, "bottom": 5}
    points = [layer for layer in spec["layer"] if "id" in next(iter(layer["data"]["values"]), ())]
    if points:
        spec["params"] = [{"name": "hovered", "value": None}, {"name": "picked", "value": None}]
        points[0]["params"] = [{"name": "brush", "select": "interval"}]
        for layer in points:
            size, opacity = layer["mark"].pop("size"), layer["mark"].pop("opacity")
            layer["encoding"]["size"] = _condition("datum.id === hovered", 3 * size, size)
            picked = "!picked || indexof(picked, datum.id) >= 0"
            layer["encoding"]["opacity"] = _condition(picked, opacity, 0.05)
    return spec


def figure_spec(columns: Sequence[Sequence[Chart]], width: int) -> Layer:
    """Charts for a paper: columns side by side, each with its charts one below the other."""
    height = max(sum(chart.height for chart in column) for column in columns)
    titled = sum(map(len, columns)) > 1
    stacks = []
    for column in columns:
        panels = []
        for chart in column:
            panel = _layers(chart, legend=True)
            for layer in panel["layer"]:
                layer["encoding"].pop("tooltip", None)
                if layer["mark"]["type"] == "text":
                    layer["mark"]["opacity"] = 1
            panel |= {"width": width // len(columns), "height": height // len(column)}
            panels.append(panel | ({"title": clean(chart.title, 60)} if titled else {}))
        stacks.append({"vconcat": panels} if len(panels) > 1 else panels[0])
    figure = {"$schema": SCHEMA, "config": CONFIG | {"background": SURFACE}}
    return figure | {"hconcat": stacks, "resolve": {"scale": {"color": "shared"}}}


def _layers(chart: Chart, legend: bool) -> Layer:
    """The marks of a chart on its axes."""
    bars = [mark for mark in chart.marks if isinstance(mark, Bars)]
    legend_marks = [mark for mark in chart.marks if isinstance(mark, Points | Bars) and mark.name]
    colours = {clean(mark.name, 24): mark.colour for mark in legend_marks}
    names = {id(mark): clean(mark.name, 24) for mark in legend_marks} if legend else {}
    layers = []
    for mark in chart.marks:
        for layer in _LAYERS[type(mark)](mark, chart):
            if id(mark) in names:
                _name(layer, names[id(mark)], colours)
            layers.append(layer)
    lengths = {"x" if mark.horizontal else "y" for mark in bars}
    heatmap, channels = chart.heatmap, {}
    for side, axis in (("x", chart.x), ("y", chart.y)):
        channels[side] = _axis(axis, side, heatmap, padding=8 * (side not in lengths))
    spec: Layer = {"layer": layers, "encoding": channels}
    if heatmap is not None and None in itertools.chain(*heatmap.values):
        # A pair without a value must not look like one with a low value.
        spec["view"] = {"fill": FAINT, "stroke": None}
    return spec


def _name(layer: Layer, name: str, colours: dict[str, str]) -> None:
    """Put a layer into the legend, in its colour."""
    layer["mark"].pop("color")
    layer["transform"] = [{"calculate": json.dumps(name), "as": "name"}]
    layer["encoding"]["color"] = {
        "field": "name",
        "type": "nominal",
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": {"orient": "top", "title": None},
    }


def _axis(axis: Axis, side: str, heatmap: Heatmap | None, padding: int) -> Layer:
    """The channel of an axis; labels are at the positions 0, 1, …, for y from top to bottom."""
    style: Layer = {"grid": heatmap is None and axis.labels is None}
    scale: Layer = {"zero": False, "nice": False}
    if axis.range is not None:
        scale["domain"] = list(axis.range)
    elif heatmap is None and axis.labels is None:
        scale |= {"nice": True, "padding": padding}
    if axis.percent:
        style |= {"format": ".0%", "tickMinStep": 0.01}
    if axis.step is not None:
        style |= {"tickMinStep": axis.step, "format": "d"}
    if axis.labels is None:
        style["tickCount"] = 6
    else:
        names = [clean(name, 24) for name in axis.labels]
        # A count of ticks would thin them out. A string literal in an expression is data,
        # whatever it holds.
        style |= {"values": list(range(len(names))), "labelOverlap": False}
        style |= {"labelExpr": f"{json.dumps(names)}[datum.value]", "domain": False}
        style["labelAngle"] = -45 if side == "x" and axis.crowded else 0
        end, tree = len(names) - 0.5, heatmap is not None and heatmap.tree
        top = -0.5 - TREE * len(names) if tree else -0.5
        scale["domain"] = [end, top] if side == "y" else [-0.5, end]
    title = clean(axis.title, 80) or None
    return {"field": side, "type": "quantitative", "title": title, "scale": scale, "axis": style}


def _points(mark: Points, chart: Chart) -> list[Layer]:
    """Markers, over the line that joins them and their intervals."""
    x, y, size = rounded(mark.x, 6), rounded(mark.y, 6), np.asarray(mark.size, dtype=np.float64)
    rows = [{"x": a, "y": b, "k": k} for k, (a, b) in enumerate(zip(x, y, strict=True))]
    layers: list[Layer] = []
    if mark.line:
        line = {"type": "line", "color": mark.colour, "strokeWidth": 2}
        layers.append(_layer(line, rows, order={"field": "k", "type": "quantitative"}))
    layers += _intervals(mark, y, {"color": mark.colour, "strokeWidth": 1.5})
    tips = _tips(mark, chart, mark.x, mark.y)
    for k, row in enumerate(rows):
        row.pop("k")
        row |= {"tip": tips[k]} if tips else {}
        row |= {"size": round(float(size[k]) ** 2, 1)} if size.ndim else {}
        row |= {} if mark.ids is None else {"id": mark.ids[k]}
    ring = mark.symbol == "ring"
    point: Layer = {
        "type": "point",
        "shape": "diamond" if mark.symbol == "diamond" else "circle",
        "filled": not ring,
        "color": mark.colour,
        "opacity": mark.opacity,
    }
    point |= {"strokeWidth": 2} if ring else {}
    point |= {} if size.ndim else {"size": float(size) ** 2}
    area = {"field": "size", "type": "quantitative", "scale": None}
    layer = _layer(point, rows, **({"size": area} if size.ndim else {}))
    layer["encoding"]["tooltip"] = {"field": "tip"} if tips else None
    return [*layers, layer]


def _intervals(mark: Points | Bars, y: Sequence[float], style: Layer) -> list[Layer]:
    """The intervals of points or bars along x, if they have some."""
    if mark.interval is None:
        return []
    ends = zip(*(rounded(end, 6) for end in mark.interval), y, strict=True)
    spans = [{"x": low, "x2": high, "y": at} for low, high, at in ends]
    return [_layer({"type": "rule"} | style, spans, x2={"field": "x2"})]


def _bars(mark: Bars, chart: Chart) -> list[Layer]:
    """Bars from 0, their intervals, and a text at the end of each."""
    sides = ("y", "x") if mark.horizontal else ("x", "y")
    x, y = (mark.values, mark.at) if mark.horizontal else (mark.at, mark.values)
    tips = _tips(mark, chart, x, y)
    at, values = (rounded(numbers, 6) for numbers in (mark.at, mark.values))
    half = mark.width / 2
    rows = []
    for k, (place, value) in enumerate(zip(at, values, strict=True)):
        across = {sides[0]: round(place - half, 6), f"{sides[0]}2": round(place + half, 6)}
        rows.append(across | {sides[1]: value, f"{sides[1]}2": 0, "tip": tips[k]})
    rect = {"type": "rect", "color": mark.colour, "opacity": mark.opacity}
    layers = [_layer(rect, rows, **CORNERS)]
    layers += _intervals(mark, at, {"color": INK, "strokeWidth": 1.4})
    if mark.text is not None:
        texts = zip(values, at, mark.text, strict=True)
        labels = [{"x": value, "y": place, "text": text} for value, place, text in texts]
        style = {"type": "text", "align": "left", "dx": 4, "color": INK}
        layers.append(_layer(style, labels, text={"field": "text"}))
    return layers


def _line(mark: Line, chart: Chart) -> list[Layer]:
    """A line to compare with; a vertical one has its label on the side of the bars."""
    style: Layer = {"color": mark.colour, "strokeWidth": 1.2 if mark.dotted else 2}
    style |= {"strokeDash": [2, 3]} if mark.dotted else {}
    if mark.y is not None:
        ends = zip(rounded(mark.x, 6), rounded(mark.y, 6), strict=True)
        return [_layer({"type": "line"} | style, [{"x": x, "y": y} for x, y in ends])]
    rows = [{"x": round(float(mark.x[0]), 6)}]
    full_height = {"y": {"value": 0}, "y2": {"value": "height"}}
    layers = [_layer({"type": "rule"} | style, rows, **full_height)]
    if mark.label:
        right = all(mark.x[0] > np.max(bars.at) for bars in chart.marks if isinstance(bars, Bars))
        side = {"align": "right", "dx": -6} if right else {"align": "left", "dx": 6}
        text = {"type": "text", "baseline": "top", "color": mark.colour, **side}
        layers.append(_layer(text, rows, y={"value": 0}, text={"value": mark.label}))
    return layers


def _heatmap(mark: Heatmap, chart: Chart) -> list[Layer]:
    """Coloured cells, their numbers where there is room, and the dendrogram above."""
    left, top = mark.origin
    cells: list[dict[str, Any]] = []
    numbers: list[dict[str, Any]] = []
    for (i, j), value in np.ndenumerate(np.array(mark.values, dtype=np.float64)):
        x, y = left + j, top + i
        if mark.text is not None:
            numbers.append({"x": x, "y": y, "text": mark.text[i][j], "value": mark.values[i][j]})
        if not np.isnan(value):
            note = mark.notes[i][j] if mark.notes else ""
            tip = _tip(chart, x, y, "", _value(mark.title, value, mark.percent), note)
            edges = {"x": x - 0.5, "x2": x + 0.5, "y": y - 0.5, "y2": y + 0.5}
            cells.append(edges | {"value": round(value, 4), "tip": tip})
    low, high = round(mark.low, 4), round(mark.high, 4)
    colour = {
        "field": "value",
        "type": "quantitative",
        "scale": {
            "domain": [low + stop * (high - low) for stop, _ in mark.scale],
            "range": [shade for _, shade in mark.scale],
            "interpolate": "rgb",
        },
        "legend": {"title": mark.title, "format": ".0%" if mark.percent else "", "tickCount": 5},
    }
    rect = {"type": "rect", "stroke": SURFACE, "strokeWidth": 1}
    layers = [_layer(rect, cells, color=colour, **CORNERS)]
    if numbers:
        room = f"width / {len(mark.values[0])} < {CELL} ? 0 : 1"
        deep = 0.6 * max(abs(mark.low), abs(mark.high))
        shade = _condition(f"abs(datum.value) > {deep:.6g}", SURFACE, INK)
        style = {"type": "text", "fontSize": 11, "opacity": {"expr": room}}
        layers.append(_layer(style, numbers, text={"field": "text"}, color=shade))
    return [*layers, _dendrogram(mark)] if mark.tree else layers


def _dendrogram(mark: Heatmap) -> Layer:
    """The brackets above the first row."""
    tallest = max(max(heights) for _, heights in mark.tree) or 1.0
    scale = 0.9 * TREE * len(mark.values) / tallest
    points = [
        {"x": x, "y": round(-0.55 - scale * height, 4), "bracket": k, "k": n}
        for k, bracket in enumerate(mark.tree)
        for n, (x, height) in enumerate(zip(*bracket, strict=True))
    ]
    line = {"type": "line", "color": MUTED, "strokeWidth": 1.2}
    order = {"field": "k", "type": "quantitative"}
    return _layer(line, points, detail={"field": "bracket"}, order=order)


_LAYERS: dict[type, Callable[..., list[Layer]]] = {
    Points: _points,
    Bars: _bars,
    Line: _line,
    Heatmap: _heatmap,
}


def _layer(mark: Layer, rows: list[dict[str, Any]], **encoding: Any) -> Layer:
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _condition(test: str, value: Any, otherwise: Any) -> Layer:
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def _tips(mark: Points | Bars, chart: Chart, x: Any, y: Any) -> list[str]:
    """What is shown under the pointer at each point, a line each."""
    hover = getattr(mark, "hover", "values")
    if hover == "none":
        return []
    notes = mark.notes or [""] * len(x)
    if hover == "notes":
        return [_lines(*note.split("\n")) for note in notes]
    points = zip(x, y, notes, strict=True)
    return [_tip(chart, *at, mark.name, note) for *at, note in points]


def _tip(chart: Chart, x: float, y: float, name: str, *notes: str) -> str:
    """The labels or values of a point on both axes, then the notes."""
    names, values = [name] if name else [], []
    for axis, value in ((chart.y, y), (chart.x, x)):
        if axis.labels is not None:
            names.append(str(axis.labels[int(value)]))
        else:
            values.append(_value(axis.title, value, axis.percent))
    return _lines(" and ".join(names), ", ".join(values[::-1]), *notes)


def _value(title: str, value: float, percent: bool) -> str:
    return f"{title.partition(' (')[0]} " + (f"{value:.1%}" if percent else f"{value:.4g}")


def _lines(*lines: str) -> str:
    return "\n".join(clean(line, 120) for line in lines if line)
