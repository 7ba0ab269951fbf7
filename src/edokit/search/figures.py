"""Figures of a search; they need matplotlib (the extra `figures`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edokit._errors import InputError, MissingExtraError
from edokit.search.trials import METRICS, SIGNS, Correlation

NAMES = {
    "lambda_f1": "λ F1",
    "lambda_ce": "λ CE",
    "lambda_div": "λ Div",
    "lambda_reg": "λ Reg",
    "learning_rate": "learning rate η",
    "temperature": "temperature T₀",
    "temperature_decay": "decay γ",
    "size": "size K*",
}


def correlation_figure(found: Sequence[Correlation]) -> Any:
    """The paper's heat map as a matplotlib figure: a panel per sign, ``*`` where p < 0.05."""
    if not found:
        raise InputError(
            "a heat map needs correlations, but there are none",
            "search over numeric parameters, with three trials or more of one sign",
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed", "pip install 'edokit[figures]'"
        ) from error
    signs = [sign for sign in SIGNS if any(one.diversity == sign for one in found)]
    parameters = list(dict.fromkeys(one.parameter for one in found))
    size = (1.6 + 2.2 * len(signs), 1.0 + 0.34 * len(parameters))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(signs), sharey=True, squeeze=False)[0]
    image: Any = None
    for panel, sign in zip(panels, signs, strict=True):
        here = {(one.parameter, one.metric): one for one in found if one.diversity == sign}
        grid = np.full((len(parameters), len(METRICS)), np.nan)
        for (parameter, metric), one in here.items():
            row, column = parameters.index(parameter), METRICS.index(metric)
            grid[row, column] = one.rho
            mark = "*" if one.significant else ""
            shade = "white" if abs(one.rho) > 0.6 else "black"
            label = f"{one.rho:.2f}{mark}"
            panel.text(column, row, label, ha="center", va="center", color=shade, fontsize=8)
        image = panel.imshow(grid, vmin=-1, vmax=1, cmap="RdBu_r", aspect="auto")
        count = next(iter(here.values())).trials
        panel.set_title(f"{sign} ({count} trials)", fontsize=9)
        panel.set_xticks(range(len(METRICS)), [metric.upper() for metric in METRICS], fontsize=8)
        shown = [NAMES.get(name, name.replace("_", " ")) for name in parameters]
        panel.set_yticks(range(len(parameters)), shown, fontsize=8)
    figure.colorbar(image, ax=list(panels), label="Spearman's ρ", shrink=0.8)
    return figure
