"""Which settings move which metric: the paper's heat maps, one panel per sign."""

from __future__ import annotations

import plotly.graph_objects as go

from edokit.report.charts.style import AROUND_ZERO, blank
from edokit.report.formatting import label, rounded
from edokit.report.trials import Panel
from edokit.search.figures import NAMES


def correlations(panel: Panel) -> go.Figure:
    """Spearman's ρ [settings, metrics], with stars where chance is an unlikely cause."""
    settings = [NAMES.get(name, name.replace("_", " ")) for name in panel.settings]
    metrics = [name.upper() for name in panel.metrics]
    rho, p_values = panel.rho, panel.p_values
    figure = blank(100 + 32 * len(settings))
    figure.add_heatmap(
        z=rounded([list(row) for row in rho]),
        x=list(range(len(metrics))),
        y=list(range(len(settings))),
        text=[
            [marked(r, p) for r, p in zip(rhos, ps, strict=True)]
            for rhos, ps in zip(rho, p_values, strict=True)
        ],
        texttemplate="%{text}",
        customdata=[
            [
                [label(setting, 40), label(metric), _chance(p)]
                for metric, p in zip(metrics, ps, strict=True)
            ]
            for setting, ps in zip(settings, p_values, strict=True)
        ],
        colorscale=AROUND_ZERO,
        zmin=-1,
        zmax=1,
        xgap=2,
        ygap=2,
        colorbar={"thickness": 10, "outlinewidth": 0, "title": {"text": "ρ"}},
        hovertemplate="%{customdata[0]} and %{customdata[1]}<br>"
        "ρ = %{z:.3f}%{customdata[2]}<extra></extra>",
    )
    figure.update_xaxes(
        tickvals=list(range(len(metrics))),
        ticktext=[label(metric) for metric in metrics],
        showgrid=False,
        side="top",
    )
    figure.update_yaxes(
        tickvals=list(range(len(settings))),
        ticktext=[label(name) for name in settings],
        range=[len(settings) - 0.5, -0.5],
        showgrid=False,
    )
    return figure


def marked(rho: float | None, p: float | None) -> str:
    """``0.42**``: one star below 0.05, two below 0.01, three below 0.001."""
    if rho is None or rho != rho:
        return "–"
    stars = "" if p is None else "*" * sum(p < bound for bound in (0.05, 0.01, 0.001))
    return f"{rho:.2f}{stars}".replace("-", "−")


def _chance(p: float | None) -> str:
    return "" if p is None or p != p else f", p = {p:.3g}"
