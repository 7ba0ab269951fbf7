"""Colours of charts and classes, on a light and on a dark page."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from edokit import scales

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE, OLIVE = "#56b4e9", "#cc79a7", "#b8a400"
INK, MUTED, FAINT, SURFACE = "#1f2328", "#858b94", "#e3e6ea", "#ffffff"
# What replaces a colour on a dark page; other colours stay.
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
SIGNS = {"preserve": BLUE, "suppress": VERMILION, "": MUTED}
# Things without an order; the colours repeat if there are more.
NOMINAL = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, OLIVE, MUTED, *list(DARK)[-8:])
SEQUENTIAL = (SURFACE, BLUE)
DIVERGING = (VERMILION, SURFACE, BLUE)
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
