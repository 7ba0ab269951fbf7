"""Names that pandas objects bring along: they are matched by them, never by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from edokit._errors import InputError
from edokit.predictions.shapes import Layout


def names_of_frames(values: Any, layout: str | None) -> dict[str, pd.Index[Any]]:
    """The names of the axes N, K and C that DataFrames know; empty for plain arrays."""
    if isinstance(values, pd.DataFrame):
        axes = {Layout.NC: "NC", Layout.NK: "NK", Layout.KN: "KN"}.get(Layout(layout or "NKC"), "")
        return dict(zip(axes, (values.index, values.columns), strict=False))
    parts = list(values.values()) if isinstance(values, Mapping) else values
    if not isinstance(parts, list | tuple) or not any(map(_is_frame, parts)):
        return {}
    first = parts[0]
    for part in parts:
        if not _is_frame(part) or not all(
            mine.equals(theirs) for mine, theirs in zip(_axes(part), _axes(first), strict=False)
        ):
            raise InputError(
                "tables of members must have the same index and columns in the same order, but"
                " they differ",
                "bring them into one order, for example with frame.reindex(...)",
            )
    return dict(zip("NC", _axes(first), strict=False))


def _is_frame(value: object) -> bool:
    return isinstance(value, pd.DataFrame | pd.Series)


def _axes(frame: Any) -> list[pd.Index[Any]]:
    return list(frame.axes)
