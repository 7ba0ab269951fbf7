"""Charts as Vega-Lite dictionaries, which Vega draws on the page.

Data are rows. The names of their fields are shown under the pointer, except for those that begin
with an underscore.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from edokit.report.colours import BLUE, FAINT, INK, MUTED

Spec = dict[str, Any]
Records = list[dict[str, Any]]

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
# Fonts that PDF readers and LaTeX know, instead of those of the reader's system.
_FILE_FONT = "Helvetica, Arial, sans-serif"
# Pixels of a label on an axis of a chart outside the page; longer ones are cut.
_LABEL_LIMIT = 320
CONFIG: Spec = {
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
}
TOOLTIP = {"content": "data"}
AREA_BY_COUNT: Spec = {"size": {"field": "_area", "type": "quantitative", "scale": None}}


def rows(**columns: object) -> Records:
    """A dictionary per row of these columns; what is not finite becomes None."""
    text = pd.DataFrame(columns).to_json(orient="records", double_precision=6)
    records: Records = json.loads(text)
    return records


def numbers(
    field: str,
    title: str | None = None,
    *,
    domain: tuple[float, float] | None = None,
) -> Spec:
    """An axis of numbers."""
    axis: Spec = {"tickCount": 6}
    scale: Spec = {"zero": False, "nice": True, "padding": 8}
    if domain is not None:
        scale = {"zero": False, "nice": False, "domain": list(domain)}
    channel: Spec = {"field": field, "type": "quantitative", "title": title, "stack": None}
    return channel | {"scale": scale, "axis": axis}


def percents(
    field: str,
    title: str | None,
    values: Sequence[float | None],
    *,
    domain: tuple[float, float] | None = None,
) -> Spec:
    """An axis of shares in percent, with as many digits as these values need for several ticks."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    span = max(finite, default=1.0) - min(finite, default=0.0)
    digits = 0
    while digits < 3 and span < 0.05 * 10**-digits:
        digits += 1
    channel = numbers(field, title, domain=domain)
    channel["axis"] |= {"format": f".{digits}%", "tickMinStep": 10 ** -(digits + 2)}
    return channel


def names(field: str, values: Sequence[object], **style: object) -> Spec:
    """An axis of names, from left to right or from top to bottom."""
    axis = {"grid": False, "domain": False, "labelOverlap": False, **style}
    scale = {"domain": list(values)}
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "axis": axis}


def layer(kind: str, data: Records, encoding: Spec | None = None, **style: object) -> Spec:
    """Marks of one kind, blue unless the encoding has a colour."""
    if encoding is None:
        encoding = {}
    mark: Spec = {"type": kind}
    if "color" not in encoding:
        mark["color"] = BLUE
    mark |= style
    return {"data": {"values": data}, "mark": mark, "encoding": encoding}


def points(
    data: Records, encoding: Spec | None = None, *, size: float = 7, **style: object
) -> Spec:
    """Markers of this diameter in pixels, described under the pointer."""
    style = {"filled": True, "opacity": 1, "size": size**2, "tooltip": TOOLTIP} | style
    return layer("point", data, encoding, **style)


def intervals(data: Records, encoding: Spec | None = None, **style: object) -> Spec:
    """Horizontal lines between the fields ``low`` and ``high``."""
    ends = {"x": {"field": "low"}, "x2": {"field": "high"}}
    return layer("rule", data, ends | (encoding or {}), **{"strokeWidth": 1.5} | style)


def reference(field: str, value: float) -> Spec:
    """A dotted vertical line to compare with."""
    height = {"y": {"value": 0}, "y2": {"value": "height"}}
    return layer("rule", rows(**{field: [value]}), height, strokeDash=[2, 3], color=MUTED)


def diagonal(x: str, y: str, low: float, high: float) -> Spec:
    """A dotted line where both axes have the same value."""
    ends = rows(**{x: [low, high], y: [low, high]})
    return layer("line", ends, color=MUTED, strokeDash=[2, 3], strokeWidth=1.2)


def chart(title: str, layers: Sequence[Spec], x: Spec, y: Spec, height: int = 320) -> Spec:
    """Layers on two axes; ``height`` is in pixels of the page."""
    return {"title": title, "height": height, "layer": list(layers), "encoding": {"x": x, "y": y}}


def notebook_spec(spec: Spec) -> Spec:
    """A chart outside the page with room around it, for fonts wider than the one measured here."""
    return spec | {"padding": {"left": 40, "right": 10, "top": 5, "bottom": 5}}


def standalone_spec(spec: Spec, width: int) -> Spec:
    """A chart outside the page: in a file, or in a notebook."""
    axis = {**CONFIG["axis"], "labelLimit": _LABEL_LIMIT}
    config = {**CONFIG, "axis": axis, "font": _FILE_FONT, "background": "white"}
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    return {"$schema": schema, **spec, "width": width, "config": config}


def page_spec(spec: Spec) -> Spec:
    """A chart in the width of its element, below its title."""
    size = {"width": "container", "autosize": {"type": "fit", "contains": "padding"}}
    return {key: value for key, value in spec.items() if key != "title"} | size
