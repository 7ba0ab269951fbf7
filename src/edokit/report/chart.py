"""A chart as data, which `edokit.report.vega` turns into a Vega-Lite specification.

One description serves the page and the figures for papers. Names in a chart are raw text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edokit import scales
from edokit._types import Floats, Ints

Values = Sequence[float] | Floats | Ints

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE, OLIVE = "#56b4e9", "#cc79a7", "#b8a400"
INK, MUTED, FAINT, SURFACE = "#1f2328", "#858b94", "#e3e6ea", "#ffffff"
DARK = {
    BLUE: "#57aeea",
    VERMILION: "#f08144",
    GREEN: "#2fc197",
    SKY: "#a3dcff",
    OLIVE: "#d9c63a",
    INK: "#e6e8eb",
    MUTED: "#949ba6",
    FAINT: "#2c3138",
    SURFACE: "#16191d",
    # Each as far as possible from those before, light enough for a dark page.
    "#5c010b": "#057918",
    "#021e7c": "#7a5ee8",
    "#0e5715": "#276c87",
    "#9628a1": "#d9353c",
    "#8b504d": "#fbabe7",
    "#7f63ee": "#a76e11",
    "#4e3d6c": "#b3fab1",
    "#fd93e5": "#bf3ea7",
}
"""Replacements on a dark page; other colours stay."""
SIGNS = {"preserve": BLUE, "suppress": VERMILION, "": MUTED}
NOMINAL = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, OLIVE, MUTED, *list(DARK)[-8:])
"""Colours of things without an order, repeated if there are more."""
SEQUENTIAL = ((0.0, SURFACE), (1.0, BLUE))
DIVERGING = ((0.0, VERMILION), (0.5, SURFACE), (1.0, BLUE))
# Ramps for ordered classes on a light and on a dark page: what is higher, or further from 0,
# contrasts more with the page. The first is viridis.
_VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
_RAMPS = {
    "sequential": (_VIRIDIS[6::-1], _VIRIDIS[1:]),
    "below": (("#fdb97c", "#e1701f", "#7d2a02"), ("#6f4630", "#c9703a", "#ffb784")),
    "above": (("#a5cdea", "#3f8fcb", "#06386b"), ("#2f506c", "#3d8fd0", "#a9dcff")),
    "zero": (("#c4c9d1",), ("#5a616b",)),
}


def class_colours(
    names: Sequence[str], scale: scales.Scale = scales.NOMINAL
) -> list[tuple[str, str]]:
    """The colour of each class on a light page, and the one that replaces it on a dark page.

    Points of an ordinal scale, and three or more whole numbers of an undeclared one, are ordered:
    diverging colours if they lie on both sides of 0, sequential ones otherwise. Other classes, and
    the labels of sets, get colours that are easy to tell apart.
    """
    numeric = len(names) > 2 and not scale.is_multi_label
    numeric = numeric and all(re.fullmatch(r"[+-]?\d{1,15}", name, re.ASCII) for name in names)
    if scale.positions is None and not numeric:
        light = [NOMINAL[k % len(NOMINAL)] for k in range(len(names))]
        return [(colour, DARK.get(colour, colour)) for colour in light]
    values = np.array(scale.positions or [int(name) for name in names], dtype=np.float64)
    if values.min() < 0 < values.max():
        ramps = [("below", "zero", "above")[int(sign) + 1] for sign in np.sign(values)]
        positions = np.abs(values) / np.abs(values).max()
    else:
        ramps = ["sequential"] * len(values)
        positions = (values - values.min()) / max(np.ptp(values), 1e-300)
    colours = []
    for ramp, position in zip(ramps, positions, strict=True):
        light_ramp, dark_ramp = _RAMPS[ramp]
        colours.append((_interpolate(light_ramp, position), _interpolate(dark_ramp, position)))
    return colours


def _interpolate(ramp: Sequence[str], position: float) -> str:
    """The colour at this position, from 0 to 1, of a ramp."""
    stops = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ramp])
    places = np.linspace(0, 1, len(ramp))
    channels = [round(float(np.interp(position, places, channel))) for channel in stops.T]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis; ``labels`` are names at the positions 0, 1, …, for y from top to bottom."""

    title: str = ""
    labels: Sequence[str] | None = None
    range: tuple[float, float] | None = None
    percent: bool = False
    step: int | None = None
    """Between ticks."""

    @property
    def crowded(self) -> bool:
        """Whether the labels only fit side by side if they are turned."""
        labels = self.labels or ()
        return len(labels) > 4 and sum(map(len, labels)) > 40


@dataclass(frozen=True, eq=False)
class Points:
    """Markers, joined by a line if ``line``."""

    x: Values
    y: Values
    colour: str = BLUE
    size: float | Values = 7
    """Diameter in pixels of the page."""
    symbol: Literal["circle", "diamond", "ring"] = "circle"
    opacity: float = 1.0
    line: bool = False
    interval: tuple[Values, Values] | None = None
    """Low and high ends along x."""
    name: str = ""
    hover: Literal["values", "notes", "none"] = "values"
    """What the page shows under the pointer: the values and the notes, or these alone."""
    notes: Sequence[str] | None = None
    """Further lines about each point."""
    ids: Sequence[int] | None = None
    """What the page identifies each point by."""


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars at these positions."""

    at: Values
    values: Values
    colour: str = BLUE
    opacity: float = 1.0
    horizontal: bool = False
    width: float = 0.65
    text: Sequence[str] | None = None
    """At the end of each horizontal bar."""
    interval: tuple[Values, Values] | None = None
    """Low and high ends of horizontal bars."""
    name: str = ""
    notes: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class Line:
    """A line to compare with: vertical at ``x[0]`` if it has no ``y``."""

    x: Values
    y: Values | None = None
    colour: str = MUTED
    dotted: bool = True
    label: str = ""


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Values [rows, columns] as colours; None where there is no value."""

    values: Sequence[Sequence[float | None]]
    low: float
    high: float
    title: str = ""
    scale: Sequence[tuple[float, str]] = SEQUENTIAL
    percent: bool = False
    origin: tuple[int, int] = (0, 0)
    """Position of the first column and row."""
    text: Sequence[Sequence[str]] | None = None
    notes: Sequence[Sequence[str]] | None = None
    tree: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    """Brackets of a dendrogram above the columns: positions and heights."""


Mark = Points | Bars | Line | Heatmap


@dataclass(frozen=True, eq=False)
class Chart:
    """Marks on two axes."""

    title: str
    marks: Sequence[Mark]
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    height: int = 320
    """Pixels on the page."""
    legend: bool = False
    """Whether the page shows a legend; a figure for papers does so for all named marks."""

    @property
    def heatmap(self) -> Heatmap | None:
        """The heat map among the marks, if there is one."""
        return next((mark for mark in self.marks if isinstance(mark, Heatmap)), None)
