"""Which members answer alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
from scipy.cluster.hierarchy import dendrogram, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from edokit._types import Floats
from edokit.report.charts.style import DEPTH, MUTED, blank
from edokit.report.formatting import label, rounded

NUMBERED = 12
"""Up to so many members, cells carry their numbers."""


def clustered(
    distances: Floats,
) -> tuple[npt.NDArray[np.int64], list[tuple[list[float], list[float]]]]:
    """The order that puts like members side by side, and the brackets of the tree above them.

    Brackets are in positions 0, 1, … of the ordered members and distances.
    """
    if len(distances) < 3:
        return np.arange(len(distances), dtype=np.int64), []
    condensed = squareform(distances, checks=False)
    tree = optimal_leaf_ordering(linkage(condensed, "average"), condensed)
    drawn = dendrogram(tree, no_plot=True)
    brackets = [
        ([(x - 5) / 10 for x in xs], [float(y) for y in ys])
        for xs, ys in zip(drawn["icoord"], drawn["dcoord"], strict=True)
    ]
    return np.array(drawn["leaves"], dtype=np.int64), sorted(brackets)


def disagreement(distances: Floats, members: tuple[str, ...]) -> go.Figure:
    """The matrix D [K, K], like members side by side, with the tree that ordered them."""
    order, brackets = clustered(distances)
    count = len(order)
    shown = distances[np.ix_(order, order)]
    names = [label(members[k], 20) for k in order]
    figure = blank(min(200 + 30 * count, 760))
    figure.add_heatmap(
        z=rounded(shown),
        x=list(range(count)),
        y=list(range(count)),
        text=[[f"{gap:.2f}" if gap else "" for gap in row] for row in shown]
        if count <= NUMBERED
        else None,
        texttemplate="%{text}" if count <= NUMBERED else None,
        customdata=[[[row, column] for column in names] for row in names],
        colorscale=DEPTH,
        zmin=0,
        zmax=max(round(float(distances.max()), 4), 1e-4),
        xgap=1,
        ygap=1,
        colorbar={"thickness": 10, "outlinewidth": 0, "len": 0.8, "y": 0.4},
        hovertemplate="%{customdata[0]} and %{customdata[1]}<br>%{z:.4f} apart<extra></extra>",
    )
    lines: tuple[list[float | None], list[float | None]] = ([], [])
    for xs, ys in brackets:
        lines[0].extend([*xs, None])
        lines[1].extend([*ys, None])
    figure.add_scatter(
        x=rounded(list(lines[0])),
        y=rounded(list(lines[1])),
        yaxis="y2",
        mode="lines",
        hoverinfo="skip",
        line={"color": MUTED, "width": 1.2},
    )
    top = 0.82 if brackets else 1.0
    positions = {"tickvals": list(range(count)), "ticktext": names, "showgrid": False}
    figure.update_layout(
        xaxis={**positions, "range": [-0.5, count - 0.5], "tickangle": -45 if count > 4 else 0},
        yaxis={**positions, "range": [count - 0.5, -0.5], "domain": [0, top]},
        yaxis2={"visible": False, "domain": [min(top + 0.01, 1), 1], "rangemode": "tozero"},
    )
    return figure
