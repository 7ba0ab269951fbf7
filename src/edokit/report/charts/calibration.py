"""Do the probabilities mean what they say, and is the pool unsure where people disagree?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from edokit._types import Floats
from edokit.metrics import Reliability
from edokit.report.charts.style import BLUE, INK, MUTED, ORANGE, blank
from edokit.report.formatting import rounded

BINS = 20
SOME = 5
POINTS = 1500
"""Points of a scatter plot; of more items, evenly spaced ones are drawn."""


def reliability(curve: Reliability) -> go.Figure:
    """Share of annotators against predicted probability; the dot's size is how many points."""
    figure = blank(340)
    largest = max(int(curve.count.max()), 1)
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", hoverinfo="skip", line={"color": MUTED, "dash": "dot"}
    )
    figure.add_scatter(
        x=rounded(curve.predicted),
        y=rounded(curve.observed),
        customdata=[
            [round(float(low), 3), round(float(high), 3), int(count)]
            for low, high, count in zip(curve.low, curve.high, curve.count, strict=True)
        ],
        mode="lines+markers",
        line={"color": BLUE, "width": 2},
        marker={
            "size": rounded(6 + 14 * np.sqrt(curve.count / largest), 1),
            "color": BLUE,
            "opacity": 1,
            "line": {"width": 0},
        },
        hovertemplate="predicted %{x:.3f}, people %{y:.3f}<br>%{customdata[2]} points between"
        " %{customdata[0]} and %{customdata[1]}<extra></extra>",
    )
    figure.update_xaxes(title_text="predicted probability", range=[-0.03, 1.03])
    figure.update_yaxes(title_text="share of annotators", range=[-0.03, 1.03])
    return figure


def entropies(predicted: Floats, human: Floats, fullest: float) -> go.Figure:
    """How divided the pool's answers are, and the people's."""
    edges = np.linspace(0, fullest, BINS + 1)
    figure = blank(340, barmode="overlay", bargap=0.06)
    for name, values, colour in (("people", human, ORANGE), ("ensemble", predicted, BLUE)):
        counts = histogram(values, edges)
        figure.add_bar(
            x=rounded((edges[:-1] + edges[1:]) / 2),
            y=counts.tolist(),
            name=name,
            width=[float(edges[1])] * BINS,
            marker={"color": colour, "opacity": 0.6},
            hovertemplate=f"{name}: %{{y}} items at about %{{x:.2f}}<extra></extra>",
        )
    figure.update_layout(
        showlegend=True, legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02}
    )
    figure.update_xaxes(title_text="entropy (nats)")
    figure.update_yaxes(title_text="items")
    return figure


def histogram(values: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """Items per bin; a value that rounding left above the last edge belongs to the last bin."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return counts.astype(np.int64)


def entropy_against_entropy(predicted: Floats, human: Floats, fullest: float) -> go.Figure:
    """An item per point, with the mean of the pool's entropy per level of the people's."""
    shown = evenly(len(human), POINTS)
    figure = blank(340)
    figure.add_scatter(
        x=rounded(jittered(human, fullest)[shown]),
        y=rounded(predicted[shown]),
        mode="markers",
        hoverinfo="skip",
        marker={"size": 5, "color": BLUE, "opacity": 0.28},
    )
    at, mean, count = levels(human, predicted, fullest)
    sizes = 5 + 8 * np.sqrt(count / max(int(count.max()), 1))
    figure.add_scatter(
        x=rounded(at),
        y=rounded(mean),
        customdata=count.tolist(),
        mode="lines+markers",
        line={"color": INK, "width": 2},
        marker={"size": rounded(sizes, 1), "color": INK, "opacity": 1},
        hovertemplate="people %{x:.2f}, ensemble %{y:.2f} on average"
        " (%{customdata} items)<extra></extra>",
    )
    room = 0.04 * fullest
    figure.update_xaxes(title_text="people’s entropy (nats)", range=[-room, fullest + room])
    figure.update_yaxes(title_text="ensemble’s entropy (nats)", range=[-room, fullest + room])
    return figure


def jittered(human: Floats, fullest: float) -> Floats:
    """The same values, moved a little: shares of a few annotators take few values."""
    turns = np.arange(len(human), dtype=np.float64) * 0.6180339887 % 1 - 0.5
    moved: Floats = human + turns * 0.03 * fullest
    return moved


def levels(
    human: Floats, predicted: Floats, fullest: float
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Mean entropies of people and pool per tenth of the scale, where there are some items."""
    place = np.minimum((human / fullest * 10).astype(np.int64), 9)
    count = np.bincount(place, minlength=10)
    held = count >= min(SOME, int(count.max()))
    at = np.bincount(place, weights=human, minlength=10)[held] / count[held]
    mean = np.bincount(place, weights=predicted, minlength=10)[held] / count[held]
    return at, mean, count[held].astype(np.int64)


def evenly(count: int, most: int) -> npt.NDArray[np.int64]:
    """At most so many positions out of ``count``, evenly spaced."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    return np.linspace(0, count - 1, most).astype(np.int64)
