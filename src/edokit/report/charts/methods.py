"""Methods side by side."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from edokit.report.charts.style import BLUE, MUTED, blank
from edokit.report.formatting import label
from edokit.report.methods import Row


def methods(rows: Sequence[Row]) -> go.Figure:
    """A dot per method with the interval of its cross-entropy, EDO's in colour."""
    figure = blank(80 + 26 * len(rows))
    for place, row in enumerate(rows):
        low, high = row.ends or (row.ce, row.ce)
        colour = BLUE if row.ours else MUTED
        figure.add_scatter(
            x=[round(row.ce, 6)],
            y=[place],
            mode="markers",
            marker={"color": colour, "size": 9},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [round(high - row.ce, 6)],
                "arrayminus": [round(row.ce - low, 6)],
                "color": colour,
                "thickness": 1.5,
                "width": 0,
            },
            text=[label(row.name, 40)],
            hovertemplate="%{text}: %{x:.4f}<extra></extra>",
        )
    figure.update_xaxes(title_text="CE (lower is better)")
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[label(row.name, 20) for row in rows],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
    )
    return figure
