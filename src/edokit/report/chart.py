"""A chart as data, which `plotly` draws on the page and `figures` draws for papers.

Names in a chart are raw text; each renderer escapes them for its own markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from edokit._types import Floats, Ints

Values = Sequence[float] | Floats | Ints

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE = "#56b4e9", "#cc79a7"
INK, MUTED, FAINT, SURFACE = "#1f2328", "#858b94", "#e3e6ea", "#ffffff"
DARK = {
    BLUE: "#57aeea",
    VERMILION: "#f08144",
    GREEN: "#2fc197",
    INK: "#e6e8eb",
    MUTED: "#949ba6",
    FAINT: "#2c3138",
    SURFACE: "#16191d",
}
"""Replacements on a dark page; other colours stay."""
SIGNS = {"preserve": BLUE, "suppress": VERMILION, "": MUTED}
CLASSES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, "#b8a400", MUTED)
"""Colours of the classes, repeated if there are more classes."""
SEQUENTIAL = ((0.0, SURFACE), (1.0, BLUE))
DIVERGING = ((0.0, VERMILION), (0.5, SURFACE), (1.0, BLUE))


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis; ``labels`` are names at the positions 0, 1, …, for y from top to bottom."""

    title: str = ""
    labels: Sequence[str] | None = None
    range: tuple[float, float] | None = None
    percent: bool = False
    step: int | None = None
    """Between ticks."""


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
    """Whether the page shows a legend beside the marks."""

    @property
    def heatmap(self) -> Heatmap | None:
        """The heat map among the marks, if there is one."""
        return next((mark for mark in self.marks if isinstance(mark, Heatmap)), None)
