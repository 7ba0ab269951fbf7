"""The paper's heat maps: how settings of a search and metrics are correlated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from edokit.figures import Figure
from edokit.metrics import METRIC
from edokit.report import vega
from edokit.report.colours import BLUE, FAINT, INK, SURFACE, VERMILION
from edokit.report.formatting import clean, count, number
from edokit.report.vega import Spec

PARAMETERS = {
    "lambda_f1": "λ F1",
    "lambda_ce": "λ CE",
    "lambda_div": "λ Div",
    "lambda_reg": "λ Reg",
    "learning_rate": "learning rate η",
    "temperature": "temperature T0",
    "temperature_decay": "decay γ",
    "size": "size K*",
}


WIDTH = 420  # pixels of a panel


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ of a parameter (or the size) and a metric over the trials of one sign."""

    diversity: str
    parameter: str
    metric: str
    rho: float
    p_value: float
    trials: int

    @property
    def significant(self) -> bool:
        """Whether p < 0.05, as in the paper, without correction for the number of pairs."""
        return self.p_value < 0.05


def correlation_figure(correlations: Sequence[Correlation]) -> Figure:
    """Draw correlations of parameters and metrics, with a panel for each sign.

    One star marks p < 0.05, two p < 0.01, three p < 0.001.
    """
    panels = []
    for sign in dict.fromkeys(row.diversity for row in correlations):
        panels.append(_panel(sign, [row for row in correlations if row.diversity == sign]))
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": vega.CONFIG | {"background": SURFACE, "legend": {"gradientThickness": 10}},
        "hconcat": panels,
        "resolve": {"scale": {"color": "shared"}},
    }
    return Figure("Correlations of settings and metrics", spec)


def _panel(sign: str, correlated: Sequence[Correlation]) -> Spec:
    """A heat map of Spearman's ρ [parameters, metrics]."""
    frame = pd.DataFrame([vars(row) for row in correlated])
    frame["text"] = [_with_stars(row) for row in correlated]
    parameters = list(dict.fromkeys(frame["parameter"]))
    metrics = [name for name in METRIC if name in set(frame["metric"])]
    rho = _grid(frame, "rho", parameters, metrics)
    p_value = _grid(frame, "p_value", parameters, metrics)
    text = _grid(frame, "text", parameters, metrics)
    labels = [PARAMETERS.get(name, clean(name.replace("_", " "), 40)) for name in parameters]
    columns = [METRIC[metric].short for metric in metrics]
    cells = vega.rows(
        parameter=np.repeat(labels, len(columns)),
        metric=np.tile(columns, len(labels)),
        ρ=rho.to_numpy().ravel(),
        p=p_value.to_numpy().ravel(),
        _text=text.fillna("–").to_numpy().ravel(),
    )
    title = f"{sign} ({count(int(frame['trials'].max()), 'trial')})"
    x = vega.names("metric", columns, labelAngle=0)
    y = vega.names("parameter", labels)
    # A cell without a value must not look like one with a low value.
    background = {"view": {"fill": FAINT, "stroke": None}}
    chart = vega.chart(title, _layers(cells), x, y, 110 + 32 * len(labels))
    return chart | background | {"width": WIDTH}


def _grid(
    frame: pd.DataFrame, column: str, parameters: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """The values of a column [parameters, metrics]."""
    table = frame.pivot(index="parameter", columns="metric", values=column)
    return table.loc[list(parameters), list(metrics)]


def _layers(cells: vega.Records) -> list[Spec]:
    """Cells in the shade of their ρ, vermilion below 0 and blue above, and the text on them."""
    shade = {
        "field": "ρ",
        "type": "quantitative",
        "scale": {
            "domain": [-1.0, 0.0, 1.0],
            "range": [VERMILION, SURFACE, BLUE],
            "interpolate": "rgb",
        },
        "legend": {"title": "ρ", "format": "", "tickCount": 5},
    }
    filled = [cell for cell in cells if cell["ρ"] is not None]
    edges = {"stroke": SURFACE, "strokeWidth": 1, "tooltip": vega.TOOLTIP}
    ink = {"condition": {"test": "abs(datum['ρ']) > 0.6", "value": SURFACE}, "value": INK}
    return [
        vega.layer("rect", filled, {"color": shade}, **edges),
        vega.layer("text", cells, {"text": {"field": "_text"}, "color": ink}, fontSize=11),
    ]


def _with_stars(row: Correlation) -> str:
    """``0.42**``: one star for p below 0.05, two below 0.01, three below 0.001."""
    return number(row.rho, 2) + "*" * sum(row.p_value < bound for bound in (0.05, 0.01, 0.001))
