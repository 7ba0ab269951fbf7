"""Figures of items: calibration, and disagreement between members."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edokit.report.charts.calibration import BINS, POINTS, evenly, histogram, jittered, levels
from edokit.report.charts.members import NUMBERED, clustered
from edokit.report.charts.style import BLUE, INK, MUTED, ORANGE
from edokit.report.data import ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.figures.parts import depth, names, new


def calibration(found: ReportData) -> Callable[[], Any] | None:
    """Reliability, histograms of entropy, entropy against entropy."""
    evaluation = found.evaluation
    if evaluation is None or evaluation.reliability is None:
        return None
    return lambda: _calibration(evaluation)


def _calibration(evaluation: Evaluation) -> Any:
    curve, human, ours = (
        evaluation.reliability,
        evaluation.human_entropy,
        evaluation.predicted_entropy,
    )
    assert curve is not None
    assert human is not None
    figure = new(7.0, 2.5)
    first, second, third = figure.subplots(1, 3)
    first.plot([0, 1], [0, 1], color=MUTED, linestyle=":", linewidth=0.8)
    first.plot(curve.predicted, curve.observed, color=BLUE, linewidth=1.2)
    sizes = 6 + 60 * curve.count / max(int(curve.count.max()), 1)
    first.scatter(curve.predicted, curve.observed, s=sizes, color=BLUE)
    first.set_xlabel("predicted probability")
    first.set_ylabel("share of annotators")
    edges = np.linspace(0, evaluation.fullest, BINS + 1)
    for name, values, colour in (("people", human, ORANGE), ("ensemble", ours, BLUE)):
        counts = histogram(values, edges)
        second.bar(
            edges[:-1], counts, width=edges[1], align="edge", color=colour, alpha=0.6, label=name
        )
    second.set_xlabel("entropy (nats)")
    second.set_ylabel("items")
    second.legend()
    shown = evenly(len(human), POINTS)
    third.scatter(
        jittered(human, evaluation.fullest)[shown],
        ours[shown],
        s=5,
        color=BLUE,
        alpha=0.28,
        linewidths=0,
    )
    at, mean, _ = levels(human, ours, evaluation.fullest)
    third.plot(at, mean, "o-", color=INK, linewidth=1.2, markersize=3)
    third.set_xlabel("people’s entropy (nats)")
    third.set_ylabel("ensemble’s entropy (nats)")
    if evaluation.correlation is not None:
        third.set_title(f"ρ = {evaluation.correlation:.2f}")
    return figure


def members(found: ReportData) -> Callable[[], Any] | None:
    """The matrix D with the tree that ordered it."""
    evaluation = found.evaluation
    if evaluation is None or len(evaluation.predictions.members) < 2:
        return None
    return lambda: _members(evaluation)


def _members(evaluation: Evaluation) -> Any:
    order, brackets = clustered(evaluation.distances)
    count = len(order)
    shown = evaluation.distances[np.ix_(order, order)]
    side = min(2.2 + 0.28 * count, 9.0)
    figure = new(side, side)
    tree, axis = figure.subplots(2, 1, height_ratios=[1, 5], sharex=True)
    for xs, ys in brackets:
        tree.plot(xs, ys, color=MUTED, linewidth=0.8)
    tree.set_axis_off()
    image = axis.imshow(shown, cmap=depth(), vmin=0, aspect="auto")
    if count <= NUMBERED:
        half = float(shown.max()) * 0.6
        for i, j in zip(*np.nonzero(shown), strict=True):
            shade = "white" if shown[i, j] > half else INK
            axis.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", color=shade, fontsize=6)
    called = names([evaluation.predictions.members[k] for k in order], 20)
    axis.set_xticks(range(count), called, rotation=45, ha="right")
    axis.set_yticks(range(count), called)
    axis.grid(visible=False)
    figure.colorbar(image, ax=axis, label="mean distance", shrink=0.8)
    return figure
