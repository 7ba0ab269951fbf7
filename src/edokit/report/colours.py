"""Colours of charts and classes, on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np

from edokit import scales

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE = "#0072b2"
ORANGE = "#e69f00"
VERMILION = "#d55e00"
INK = "#1f2328"
MUTED = "#858b94"
FAINT = "#e3e6ea"
SURFACE = "#ffffff"
# Colours of classes without an order: on a light page, and on a dark page. They repeat if there are
# more classes. None is green or red: no answer must look right or wrong.
_NOMINAL = {
    BLUE: "#57aeea",
    ORANGE: ORANGE,
    "#cc79a7": "#e29cc4",
    "#56b4e9": "#a3dcff",
    "#8c510a": "#c98a4b",
    MUTED: "#949ba6",
    "#5e3c99": "#9d82d8",
    "#b8a400": "#d9c63a",
    "#12355b": "#4c7fc0",
    "#c49a6c": "#e3c39b",
    "#8e4585": "#c77fbf",
    "#7fa7c4": "#7693a8",
    "#5a4a3a": "#a08f7c",
    "#b2abd2": "#cfc9ea",
    "#3f7f93": "#5fa9bf",
    "#d8b365": "#f0d493",
}
# What replaces a colour on a dark page; other colours stay.
_PAGE_COLOURS = {INK: "#e6e8eb", FAINT: "#2c3138", SURFACE: "#16191d", VERMILION: "#f08144"}
DARK = _NOMINAL | _PAGE_COLOURS
# Ramps for ordered classes on a light and on a dark page: what is higher contrasts more with the
# page. They are cividis.
_CIVIDIS = ("#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55")
_LIGHT_RAMP = (*_CIVIDIS[::-1], "#00224e")
_DARK_RAMP = (*_CIVIDIS, "#fee838")


def class_colours(
    names: Sequence[str], scale: scales.Scale = scales.NOMINAL
) -> list[tuple[str, str]]:
    """The colour of each class on a light page and on a dark page.

    Points of an ordinal scale have ordered colours; other classes, and the labels of multi-label
    data, have colours that are easy to tell apart.
    """
    if scale.positions is None:
        return list(islice(cycle(_NOMINAL.items()), len(names)))
    values = np.array(scale.positions, dtype=np.float64)
    places = (values - values.min()) / max(np.ptp(values), 1e-300)
    return [(_interpolate(_LIGHT_RAMP, x), _interpolate(_DARK_RAMP, x)) for x in places]


def _interpolate(ramp: Sequence[str], position: float) -> str:
    """The colour at this position, from 0 to 1, of a ramp."""
    stops = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ramp])
    places = np.linspace(0, 1, len(ramp))
    channels = [round(float(np.interp(position, places, channel))) for channel in stops.T]
    return "#" + "".join(f"{channel:02x}" for channel in channels)
