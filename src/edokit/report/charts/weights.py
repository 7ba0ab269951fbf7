"""Which members carry weight, and how the fit came to it."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from edokit.ensemble import EDOEnsemble
from edokit.report.charts.style import BLUE, DEPTH, MUTED, blank
from edokit.report.formatting import label, rounded
from edokit.solvers import Trajectory

TERMS = {
    "f1": "1 − soft F1",
    "ce": "Cross-entropy",
    "div": "Disagreement between members",
    "reg": "Squared norm of the weights",
}
ROW = 22


def weights(ensemble: EDOEnsemble) -> go.Figure:
    """A bar per member, heaviest first, with its own cross-entropy."""
    order = np.argsort(-ensemble.weights_, kind="stable")
    held = ensemble.weights_[order]
    names = [label(ensemble.members_[k]) for k in order]
    own = ensemble.member_ce_[order]
    figure = blank(90 + ROW * len(order), bargap=0.35)
    figure.add_bar(
        x=rounded(held),
        y=list(range(len(order))),
        orientation="h",
        marker={"color": BLUE},
        text=[f"{weight:.3f}" if weight > 0 else "0" for weight in held],
        textposition="outside",
        cliponaxis=False,
        customdata=[[name, round(float(ce), 4)] for name, ce in zip(names, own, strict=True)],
        hovertemplate="%{customdata[0]}<br>weight %{x:.4f}<br>"
        "own cross-entropy %{customdata[1]:.4f}<extra></extra>",
    )
    # Uniform weights, to compare with.
    figure.add_vline(x=1 / len(order), line={"color": MUTED, "width": 1, "dash": "dot"})
    figure.update_xaxes(
        title_text="weight (dotted: all alike)", range=[0, max(float(held.max()) * 1.12, 0.05)]
    )
    figure.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=names,
        range=[len(order) - 0.4, -0.6],
        showgrid=False,
    )
    return figure


def sizes(trajectory: Trajectory, smallest: int) -> go.Figure:
    """The learned distribution over ensemble sizes, epoch by epoch."""
    figure = blank(300)
    # Sizes that are all alike are shown half-way between nothing and much.
    strongest = max(float(trajectory.sizes.max()), 2 / trajectory.sizes.shape[1])
    figure.add_heatmap(
        z=rounded(trajectory.sizes.T),
        x=list(range(1, len(trajectory) + 1)),
        y=list(range(smallest, smallest + trajectory.sizes.shape[1])),
        colorscale=DEPTH,
        zmin=0,
        zmax=round(min(strongest, 1.0), 4),
        xgap=1,
        ygap=1,
        colorbar={"thickness": 10, "outlinewidth": 0, "title": {"text": "share"}},
        hovertemplate="epoch %{x}<br>size %{y}: %{z:.3f}<extra></extra>",
    )
    figure.update_xaxes(title_text="epoch", showgrid=False)
    figure.update_yaxes(title_text="size (members kept)", showgrid=False, dtick=1)
    return figure


def term(trajectory: Trajectory, name: str) -> go.Figure:
    """One term of the loss, epoch by epoch."""
    figure = blank(190)
    figure.update_layout(margin={"l": 48, "r": 12, "t": 8, "b": 40})
    values = getattr(trajectory, name)
    figure.add_scatter(
        x=list(range(1, len(trajectory) + 1)),
        y=rounded(values, 6),
        mode="lines+markers",
        line={"color": BLUE, "width": 2},
        marker={"size": 5},
        hovertemplate="epoch %{x}: %{y:.5f}<extra></extra>",
    )
    figure.update_xaxes(title_text="epoch", nticks=6)
    figure.update_yaxes(nticks=4)
    return figure
