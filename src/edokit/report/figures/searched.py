"""Figures of a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edokit.report.charts.correlations import marked
from edokit.report.charts.pareto import AXES, VIEWS, group
from edokit.report.charts.style import INK, SIGNS
from edokit.report.data import ReportData
from edokit.report.figures.parts import diverging, names, new
from edokit.report.trials import Panel, Search
from edokit.search.figures import NAMES

MARKS = {"preserve": "o", "suppress": "D", "": "o"}


def pareto(found: ReportData) -> Callable[[], Any] | None:
    """Three views of the trials."""
    search = found.search
    if search is None or not search.trials:
        return None
    return lambda: _pareto(search)


def _pareto(search: Search) -> Any:
    figure = new(7.0, 2.5)
    panels = figure.subplots(1, len(VIEWS))
    for panel, (x, y) in zip(panels, VIEWS.values(), strict=True):
        for sign, colour in SIGNS.items():
            for on_front in (False, True):
                trials = group(search, sign, on_front)
                if not trials:
                    continue
                panel.scatter(
                    [getattr(trial, x) for trial in trials],
                    [getattr(trial, y) for trial in trials],
                    s=22 if on_front else 12,
                    c=colour,
                    marker=MARKS[sign],
                    alpha=0.95 if on_front else 0.25,
                    linewidths=0,
                    label=sign if on_front else None,
                )
        if search.chosen is not None:
            at = (getattr(search.chosen, x), getattr(search.chosen, y))
            panel.scatter(*at, s=90, facecolors="none", edgecolors=INK, label="chosen")
        panel.set_xlabel(AXES[x])
        panel.set_ylabel(AXES[y])
    marks = {text: mark for mark, text in zip(*panels[0].get_legend_handles_labels(), strict=True)}
    figure.legend(marks.values(), marks.keys(), loc="outside upper left", ncols=len(marks) or 1)
    return figure


def correlations(found: ReportData) -> Callable[[], Any] | None:
    """The paper's heat maps, one panel per sign."""
    search = found.search
    if search is None or not search.correlations:
        return None
    return lambda: _correlations(search.correlations)


def _correlations(panels: list[Panel]) -> Any:
    rows = max(len(panel.settings) for panel in panels)
    figure = new(1.2 + 2.6 * len(panels), 0.9 + 0.3 * rows)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    image = None
    for axis, panel in zip(axes, panels, strict=True):
        values = np.array(panel.rho, dtype=np.float64)
        image = axis.imshow(values, vmin=-1, vmax=1, cmap=diverging(), aspect="auto")
        for i, row in enumerate(panel.rho):
            for j, rho in enumerate(row):
                shade = "white" if rho is not None and abs(rho) > 0.6 else INK
                text = marked(rho, panel.p_values[i][j])
                axis.text(j, i, text, ha="center", va="center", color=shade, fontsize=7)
        axis.set_title(f"{panel.sign} ({panel.trials} trials)")
        axis.set_xticks(range(len(panel.metrics)), [name.upper() for name in panel.metrics])
        axis.set_yticks(
            range(len(panel.settings)), names([NAMES.get(name, name) for name in panel.settings])
        )
        axis.grid(visible=False)
    figure.colorbar(image, ax=list(axes), label="Spearman’s ρ", shrink=0.8)
    return figure
