"""Figures of the fitted weights and of methods side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edokit.ensemble import EDOEnsemble
from edokit.report.charts.style import BLUE, MUTED
from edokit.report.charts.weights import TERMS
from edokit.report.data import ReportData
from edokit.report.figures.parts import depth, names, new
from edokit.report.methods import Row, method_rows
from edokit.solvers import Trajectory


def weights(found: ReportData) -> Callable[[], Any] | None:
    """A bar per member."""
    ensemble = found.ensemble
    return None if ensemble is None else lambda: _weights(ensemble)


def _weights(ensemble: EDOEnsemble) -> Any:
    order = np.argsort(-ensemble.weights_, kind="stable")
    held = ensemble.weights_[order]
    figure = new(4.5, 0.8 + 0.19 * len(order))
    axis = figure.subplots()
    places = range(len(order))
    axis.barh(places, held, color=BLUE, height=0.65)
    for place, weight in zip(places, held, strict=True):
        axis.text(weight, place, f" {weight:.3f}" if weight > 0 else " 0", va="center", fontsize=7)
    axis.axvline(1 / len(order), color=MUTED, linewidth=0.8, linestyle=":")
    axis.set_yticks(list(places), names([ensemble.members_[k] for k in order]))
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.set_xlim(0, max(float(held.max()) * 1.15, 0.05))
    axis.set_xlabel("weight (dotted: all alike)")
    axis.grid(visible=False, axis="y")
    return figure


def epochs(found: ReportData) -> Callable[[], Any] | None:
    """Sizes and terms of the loss, epoch by epoch."""
    ensemble = found.ensemble
    trajectory = None if ensemble is None else ensemble.trajectory_
    if ensemble is None or trajectory is None or not len(trajectory):
        return None
    smallest = int(ensemble.settings_.get("min_members") or 1)
    return lambda: _epochs(trajectory, smallest)


def _epochs(trajectory: Trajectory, smallest: int) -> Any:
    figure = new(7.0, 3.4)
    panels = figure.subplot_mosaic([["sizes", "f1", "ce"], ["sizes", "div", "reg"]])
    steps = np.arange(1, len(trajectory) + 1)
    largest = smallest + trajectory.sizes.shape[1]
    image = panels["sizes"].imshow(
        trajectory.sizes.T,
        cmap=depth(),
        vmin=0,
        origin="lower",
        aspect="auto",
        extent=(0.5, len(trajectory) + 0.5, smallest - 0.5, largest - 0.5),
    )
    panels["sizes"].grid(visible=False)
    panels["sizes"].set_xlabel("epoch")
    panels["sizes"].set_ylabel("size (members kept)")
    figure.colorbar(image, ax=panels["sizes"], label="share")
    for name, title in TERMS.items():
        panels[name].plot(steps, getattr(trajectory, name), color=BLUE, linewidth=1.2)
        panels[name].set_title(title)
        panels[name].set_xlabel("epoch")
    return figure


def methods(found: ReportData) -> Callable[[], Any] | None:
    """A dot per method with the interval of its cross-entropy."""
    rows = method_rows(found)
    return (lambda: _methods(rows)) if rows else None


def _methods(rows: list[Row]) -> Any:
    figure = new(4.5, 0.8 + 0.22 * len(rows))
    axis = figure.subplots()
    for place, row in enumerate(rows):
        low, high = row.ends or (row.ce, row.ce)
        colour = BLUE if row.ours else MUTED
        axis.plot([low, high], [place, place], color=colour, linewidth=1.2)
        axis.plot([row.ce], [place], "o", color=colour, markersize=4)
    axis.set_yticks(range(len(rows)), names([row.name for row in rows]))
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel("cross-entropy to people’s answers (lower is better)")
    axis.grid(visible=False, axis="y")
    return figure
