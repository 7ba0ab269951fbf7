"""Colours that colour-blind people can tell apart, and what all charts share."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

# Okabe and Ito's colours.
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
"""What stands for a colour on a dark page; colours not named here stay."""

SIGNS = {"preserve": BLUE, "suppress": VERMILION, "": MUTED}
CLASSES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, "#b8a400", MUTED)
"""Of the first classes; further ones begin again."""
DEPTH = [[0.0, SURFACE], [1.0, BLUE]]
"""From nothing to much."""
AROUND_ZERO = [[0.0, VERMILION], [0.5, SURFACE], [1.0, BLUE]]
"""From −1 through nothing to +1."""

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def blank(height: int, **layout: Any) -> go.Figure:
    """An empty figure in the style of the page."""
    figure = go.Figure()
    figure.update_layout(
        template=go.layout.Template(),
        height=height,
        margin={"l": 56, "r": 16, "t": 16, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 12, "color": INK},
        hoverlabel={
            "align": "left",
            "bgcolor": SURFACE,
            "bordercolor": FAINT,
            "font": {"color": INK, "size": 12, "family": FONT},
        },
        showlegend=False,
        **layout,
    )
    axis = {
        "gridcolor": FAINT,
        "linecolor": MUTED,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        "title": {"standoff": 10},
    }
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure


def to_json(figure: go.Figure) -> str:
    """The figure as Plotly reads it, the same text for the same figure."""
    text: str = pio.to_json(figure, engine="json", pretty=False)
    return text
