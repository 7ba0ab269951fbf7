"""Every chart that the data allows, by the name of its place on the page."""

from __future__ import annotations

import plotly.graph_objects as go

from edokit.report.charts import calibration, correlations, diagnosis, members, methods, weights
from edokit.report.charts.pareto import VIEWS, pareto
from edokit.report.data import ReportData
from edokit.report.methods import Row


def draw(found: ReportData, rows: list[Row]) -> dict[str, go.Figure]:
    """The figures; a name that is missing has nothing to show."""
    figures: dict[str, go.Figure] = {}
    if found.search is not None and found.search.trials:
        figures |= {f"pareto-{view}": pareto(found.search, view) for view in VIEWS}
        for panel in found.search.correlations:
            figures[f"correlations-{panel.sign}"] = correlations.correlations(panel)
    if found.ensemble is not None:
        figures["weights"] = weights.weights(found.ensemble)
        trajectory = found.ensemble.trajectory_
        if trajectory is not None and len(trajectory):
            smallest = int(found.ensemble.settings_.get("min_members") or 1)
            figures["sizes"] = weights.sizes(trajectory, smallest)
            figures |= {f"term-{name}": weights.term(trajectory, name) for name in weights.TERMS}
    evaluation = found.evaluation
    if evaluation is not None:
        human = evaluation.human_entropy
        if evaluation.reliability is not None and human is not None:
            figures["reliability"] = calibration.reliability(evaluation.reliability)
            entropies = (evaluation.predicted_entropy, human, evaluation.fullest)
            figures["entropies"] = calibration.entropies(*entropies)
            figures["entropy-entropy"] = calibration.entropy_against_entropy(*entropies)
        if len(evaluation.predictions.members) > 1:
            figures["members"] = members.disagreement(
                evaluation.distances, evaluation.predictions.members
            )
    if rows:
        figures["methods"] = methods.methods(rows)
    if found.diagnosis is not None:
        figures |= diagnosis.diagnosis(found.diagnosis)
    return figures
