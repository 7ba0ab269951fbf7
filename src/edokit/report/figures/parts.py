"""What the static figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edokit.report.charts.style import AROUND_ZERO, DEPTH
from edokit.report.formatting import clean


def new(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def names(values: Sequence[object], most: int = 24) -> list[str]:
    """Names that fit beside an axis."""
    return [clean(value, most) for value in values]


def depth() -> Any:
    """From nothing to much, as on the page."""
    return _scale("edo-depth", DEPTH)


def diverging() -> Any:
    """From −1 through nothing to +1, as on the page."""
    return _scale("edo-around-zero", AROUND_ZERO)


def _scale(name: str, stops: list[list[Any]]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, [tuple(stop) for stop in stops])
