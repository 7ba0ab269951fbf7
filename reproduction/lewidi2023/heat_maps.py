"""The paper's heat maps: how settings of a search and metrics are correlated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from edokit.metrics import METRIC
from edokit.report.colours import DIVERGING
from edokit.report.formatting import clean, count, number
from edokit.report.vega import Spec, draw, figure_spec, heatmap, names, names_below
from edokit.tuning.trials import Correlation

PARAMETERS = {
    "lambda_f1": "λ F1",
    "lambda_ce": "λ CE",
    "lambda_div": "λ Div",
    "lambda_reg": "λ Reg",
    "learning_rate": "learning rate η",
    "temperature": "temperature T₀",
    "temperature_decay": "decay γ",
    "size": "size K*",
}


def correlation_figure(correlations: Sequence[Correlation], path: Path) -> Path:
    """Draw correlations of parameters and metrics, a panel per sign.

    The ending of the path names the format: ``.png``, ``.svg`` or ``.pdf``. One star marks
    p < 0.05, two p < 0.01, three p < 0.001.
    """
    signs = dict.fromkeys(row.diversity for row in correlations)
    panels = [[row for row in correlations if row.diversity == sign] for sign in signs]
    draw(figure_spec([_panel(*entry) for entry in zip(signs, panels, strict=True)]), path)
    return path


def _panel(sign: str, correlated: Sequence[Correlation]) -> Spec:
    """A heat map of Spearman's ρ [parameters, metrics]."""
    frame = pd.DataFrame([vars(row) for row in correlated])
    frame["text"] = [_with_stars(row) for row in correlated]
    parameters = list(dict.fromkeys(frame["parameter"]))
    metrics = [name for name in METRIC if name in set(frame["metric"])]
    rho, p_value, text = (
        frame.pivot(index="parameter", columns="metric", values=name).loc[parameters, metrics]
        for name in ("rho", "p_value", "text")
    )
    labels = [PARAMETERS.get(name, clean(name.replace("_", " "), 40)) for name in parameters]
    return heatmap(
        f"{sign} ({count(int(frame['trials'].max()), 'trial')})",
        rho.to_numpy(),
        names_below("metric", [METRIC[metric].short for metric in metrics]),
        names("parameter", labels),
        "ρ",
        domain=(-1, 1),
        shades=DIVERGING,
        height=110 + 32 * len(parameters),
        p=p_value.to_numpy(),
        _text=text.fillna("–").to_numpy(),
    )


def _with_stars(row: Correlation) -> str:
    """``0.42**``: one star for p below 0.05, two below 0.01, three below 0.001."""
    return number(row.rho, 2) + "*" * sum(row.p_value < bound for bound in (0.05, 0.01, 0.001))
