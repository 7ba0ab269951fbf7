"""Colours of charts and classes, on a light and on a dark page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import cycle, islice

import numpy as np

from edokit import scales
from edokit._errors import InputError, one_of, option

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, VERMILION = "#0072b2", "#e69f00", "#d55e00"
INK, MUTED, FAINT, SURFACE = "#1f2328", "#858b94", "#e3e6ea", "#ffffff"
# Of things without an order, on a light and on a dark page; they repeat if there are more. Neither
# green nor red: a page must not say that one answer is right and another is wrong.
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
_GROUND = {INK: "#e6e8eb", FAINT: "#2c3138", SURFACE: "#16191d", VERMILION: "#f08144"}
DARK = _NOMINAL | _GROUND
SIGNS = {"preserve": BLUE, "suppress": VERMILION, "": MUTED}
# Ramps for ordered classes on a light and on a dark page: what is higher, or further from 0,
# contrasts more with the page. The first is cividis.
_CIVIDIS = ("#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55")
_RAMPS = {
    "sequential": (("#e1cc55", *_CIVIDIS[5::-1], "#00224e"), (*_CIVIDIS, "#fee838")),
    "below": (("#fdb97c", "#e1701f", "#7d2a02"), ("#6f4630", "#c9703a", "#ffb784")),
    "above": (("#a5cdea", "#3f8fcb", "#06386b"), ("#2f506c", "#3d8fd0", "#a9dcff")),
    "zero": (("#c4c9d1",), ("#5a616b",)),
}


def class_colours(
    names: Sequence[str],
    scale: scales.Scale = scales.NOMINAL,
    chosen: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """The colour of each class on a light page, and the one that replaces it on a dark page.

    Points of an ordinal scale, and three or more whole numbers of an undeclared one, are ordered:
    diverging colours if they lie on both sides of 0, sequential ones otherwise. Other classes, and
    the labels of sets, get colours that are easy to tell apart. ``chosen`` colours stay on both.
    """
    chosen = chosen or {}
    for name, colour in chosen.items():
        one_of("colours", name, names)
        if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
            raise InputError(
                f"{option('colours', f'{name}={colour}')}: {colour!r} is no colour",
                "write it as #RRGGBB, such as #5e3c99",
            )
    colours = _class_colours(names, scale)
    return [
        (chosen[name],) * 2 if name in chosen else pair
        for name, pair in zip(names, colours, strict=True)
    ]


def _class_colours(names: Sequence[str], scale: scales.Scale) -> list[tuple[str, str]]:
    numeric = len(names) > 2 and not scale.is_multi_label
    numeric = numeric and all(re.fullmatch(r"[+-]?\d{1,15}", name, re.ASCII) for name in names)
    if scale.positions is None and not numeric:
        return list(islice(cycle(_NOMINAL.items()), len(names)))
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
