"""What kind of disagreement there is, from what `edokit.diagnose` found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from edokit.report.charts.style import (
    BLUE,
    CLASSES,
    DEPTH,
    FAINT,
    INK,
    MUTED,
    blank,
)
from edokit.report.formatting import label, rounded

PARTS = {
    "item": "items",
    "annotator": "annotators",
    "group_item": "groups by items",
    "rest": "rest: noise, own views",
}
BINS = 24


def diagnosis(found: dict[str, Any]) -> dict[str, go.Figure]:
    """The charts that this diagnosis has numbers for."""
    figures = {
        "variance": _variance(found.get("variance") or {}),
        "permutations": _permutations((found.get("test") or {}).get("group_item") or {}),
        "annotators": _annotators(found),
        "agreement": _agreement((found.get("agreement") or {}).get("matrix") or {}),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _variance(shares: dict[str, Any]) -> go.Figure | None:
    """To whom the variance of the labels belongs, with intervals."""
    parts = known_parts(shares)
    if not parts:
        return None
    figure = blank(70 + 34 * len(parts), bargap=0.4)
    values = [part["share"] for part in parts.values()]
    figure.add_bar(
        x=rounded(values),
        y=list(range(len(parts))),
        orientation="h",
        marker={"color": BLUE},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": rounded([max(p["high"] - p["share"], 0.0) for p in parts.values()]),
            "arrayminus": rounded([max(p["share"] - p["low"], 0.0) for p in parts.values()]),
            "color": INK,
            "thickness": 1.2,
            "width": 4,
        },
        customdata=[[p["low"], p["high"]] for p in parts.values()],
        hovertemplate="%{x:.1%} (%{customdata[0]:.1%} to %{customdata[1]:.1%})<extra></extra>",
    )
    figure.update_xaxes(tickformat=".0%", rangemode="tozero", title_text="share of the variance")
    figure.update_yaxes(
        tickvals=list(range(len(parts))),
        ticktext=[PARTS[name] for name in parts],
        range=[len(parts) - 0.5, -0.5],
        showgrid=False,
    )
    return figure


def known_parts(shares: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The parts of the variance that are known: share, low and high."""
    found = {}
    for name in PARTS:
        part = shares.get(name) or {}
        if part.get("share") is not None:
            share = float(part["share"])
            ends = {end: float(part.get(end) or share) for end in ("low", "high")}
            found[name] = {"share": share, **ends}
    return found


def _permutations(test: dict[str, Any]) -> go.Figure | None:
    """What chance alone gives, and what was found."""
    null = [value for value in test.get("null") or [] if value is not None]
    statistic = test.get("statistic")
    if len(null) < 2 or statistic is None:
        return None
    counts, edges = np.histogram(null, bins=BINS)
    figure = blank(320, bargap=0.05)
    figure.add_bar(
        x=rounded((edges[:-1] + edges[1:]) / 2, 6),
        y=counts.tolist(),
        width=[float(edges[1] - edges[0])] * BINS,
        marker={"color": MUTED, "opacity": 0.6},
        hovertemplate="%{y} permutations<extra></extra>",
    )
    figure.add_vline(x=statistic, line={"color": BLUE, "width": 2})
    figure.add_annotation(
        x=statistic,
        y=1,
        yref="paper",
        text="these people",
        showarrow=False,
        xanchor="right" if statistic > float(edges[-1]) else "left",
        xshift=-6 if statistic > float(edges[-1]) else 6,
        font={"color": BLUE},
    )
    figure.update_xaxes(title_text="how far groups stand apart, answers shuffled")
    figure.update_yaxes(title_text="permutations")
    return figure


def _annotators(found: dict[str, Any]) -> go.Figure | None:
    """An annotator per dot: how often they choose the last class, how often others agree."""
    classes = [str(name) for name in found.get("classes") or []]
    people = [
        person
        for person in found.get("people") or []
        if person.get("agreement") is not None and person.get("shares")
    ]
    if len(people) < 2 or len(classes) < 2:
        return None
    last = classes[-1]
    named = {str(person.get("group") or "") for person in people}
    # Those without a group are drawn first, under the others.
    groups = sorted(named)
    most = max(int(person.get("annotations") or 1) for person in people)
    figure = blank(320)
    for place, group in enumerate(groups):
        inside = [person for person in people if str(person.get("group") or "") == group]
        colour = CLASSES[place % len(CLASSES)] if group else MUTED if len(groups) > 1 else BLUE
        figure.add_scatter(
            x=[round(float(person["shares"].get(last) or 0.0), 4) for person in inside],
            y=[round(float(person["agreement"]), 4) for person in inside],
            name=label(group) or "no group",
            mode="markers",
            customdata=[
                [label(person.get("annotator", "")), int(person.get("annotations") or 0)]
                for person in inside
            ],
            marker={
                "color": colour,
                "opacity": 0.75,
                "size": [
                    round(6 + 12 * math.sqrt(int(person.get("annotations") or 1) / most), 1)
                    for person in inside
                ],
                "line": {"width": 0.5, "color": INK},
            },
            hovertemplate="%{customdata[0]}: %{customdata[1]} answers<br>"
            "chooses it %{x:.1%}, others agree %{y:.1%}<extra></extra>",
        )
    figure.update_layout(
        showlegend=len(groups) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    figure.update_xaxes(title_text=f"how often they say “{label(last)}”", tickformat=".0%")
    figure.update_yaxes(title_text="agreement with the others", tickformat=".0%")
    return figure


def _agreement(matrix: dict[str, Any]) -> go.Figure | None:
    """How often two annotators agree on the items they share."""
    names = [label(name, 18) for name in matrix.get("annotators") or []]
    values = matrix.get("agreement") or []
    if len(names) < 3 or len(values) != len(names):
        return None
    shared = matrix.get("shared") or [[None] * len(names)] * len(names)
    count = len(names)
    figure = blank(min(200 + 26 * count, 700))
    figure.add_heatmap(
        z=rounded(values),
        x=list(range(count)),
        y=list(range(count)),
        customdata=[
            [[names[i], names[j], shared[i][j]] for j in range(count)] for i in range(count)
        ],
        colorscale=DEPTH,
        xgap=1,
        ygap=1,
        colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".0%"},
        hovertemplate="%{customdata[0]} and %{customdata[1]}<br>agree on %{z:.1%} of"
        " %{customdata[2]} shared items<extra></extra>",
        hoverongaps=False,
    )
    ticks = {"tickvals": list(range(count)), "ticktext": names, "showgrid": False}
    # Where two never met there is nothing to see, which is not the same as a low agreement.
    figure.update_layout(plot_bgcolor=FAINT)
    figure.update_xaxes(**ticks, tickangle=-45 if count > 4 else 0)
    figure.update_yaxes(**ticks, range=[count - 0.5, -0.5])
    return figure
