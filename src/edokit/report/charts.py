"""Every chart of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from edokit.analysis.diagnose.groups.result import GroupComparison, value_of
from edokit.annotations.core import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.metrics import METRIC, Reliability, reliability_curve
from edokit.report import vega
from edokit.report.answers import label_shares, noun_of, spread_kind, spread_name, spread_values
from edokit.report.colours import BLUE, INK, MUTED, SURFACE, VERMILION, class_colours
from edokit.report.data import ReportData
from edokit.report.evaluation import EvaluatedItems
from edokit.report.formatting import clean, named, number
from edokit.report.groups import chart_names, is_clear
from edokit.report.results import (
    Headline,
    MethodRow,
    SearchTrials,
    find_headline,
    headline_value,
    method_rows,
    ranked_scores,
    trial_settings,
)
from edokit.report.vega import Spec, rows

_BINS = 20
# Labels that are drawn: the most frequent.
_MOST_LABELS = 15
METHOD_NAMES = {
    "edo": "EDO: this ensemble",
    "uniform": "plain average (uniform)",
    "best-single": "best single member",
    "constant": "constant answer",
    "soft": "one model of soft labels",
}


def all_charts(data: ReportData) -> dict[str, Spec]:
    """The charts that the data allow, by their name on the page."""
    charts: dict[str, Spec] = {}
    if data.search is not None and data.search.trials:
        pairs = combinations(data.search.metrics, 2)
        charts |= {f"pareto-{x}-{y}": pareto(data.search, x, y) for x, y in pairs}
    if data.evaluation is not None and len(data.evaluation.pooled.items):
        charts["answers"] = answers(data.evaluation)
    # Of one member there is nothing to compare.
    if data.ensemble is not None and len(data.ensemble.members_) > 1:
        charts["weights"] = weights(data.ensemble)
    if data.evaluation is not None and data.evaluation.annotations is not None:
        curve = reliability_curve(
            data.evaluation.pooled.probabilities,
            np.asarray(data.evaluation.annotations.soft_labels),
            scale=data.evaluation.scale,
        )
        charts["reliability"] = reliability(curve)
    has_weights = data.ensemble is None or len(data.ensemble.members_) > 1
    if has_weights and (result := find_headline(data.comparison, data.evaluation)) is not None:
        charts["gain"] = gain(result)
    rows_of_methods = method_rows(ranked_scores(data.comparison, data.evaluation))
    if len(rows_of_methods) > 1:
        charts["methods"] = methods(rows_of_methods)
    if data.groups is not None:
        for name, (attribute, class_name) in chart_names(data.groups).items():
            charts[name] = group_levels(data.groups, attribute, class_name)
    return charts


def dots(
    title: str, x: Spec, labels: Sequence[str], colour: Spec | None = None, **columns: Any
) -> Spec:
    """A dot for each name, with the interval between the columns ``low`` and ``high``."""
    data = rows(name=labels, **columns)
    encoding: Spec = {}
    if colour is not None:
        encoding["color"] = colour
    layers = [vega.points(data, encoding, size=9)]
    if "low" in columns:
        layers.insert(0, vega.intervals(data, encoding))
    names = list(dict.fromkeys(labels))
    return vega.chart(title, layers, x, vega.names("name", names), 100 + 26 * len(names))


def weights(ensemble: EDOEnsemble) -> Spec:
    """A bar per member, largest weight first."""
    order = np.argsort(-ensemble.weights_, kind="stable")
    member_names = [clean(ensemble.members_[k]) for k in order]
    values = ensemble.weights_[order]
    texts = [f"{weight:.3f}" if weight > 0 else "0" for weight in values]
    data = rows(member=member_names, weight=values, CE=ensemble.member_ce_[order], _text=texts)
    text = {"text": {"field": "_text"}}
    layers = [
        vega.layer("bar", data, height={"band": 0.65}, tooltip=vega.TOOLTIP),
        vega.layer("text", data, text, align="left", dx=4, color=INK),
        vega.reference("weight", 1 / len(order)),
    ]
    largest = max(float(values.max()) * 1.06, 0.05)
    x = vega.numbers("weight", "weight (dotted: equal weights)", domain=(0, largest))
    y = vega.names("member", member_names)
    return vega.chart("Weight of each member", layers, x, y, 90 + 22 * len(order))


def answers(evaluation: EvaluatedItems) -> Spec:
    """How expected points or probabilities spread over the items; else, labels by frequency."""
    if spread_kind(evaluation) in ("expected point", "probability"):
        return _histogram(evaluation)
    return _label_bars(evaluation)


def _histogram(evaluation: EvaluatedItems) -> Spec:
    """The share of the items in each interval of expected points or probabilities."""
    values = spread_values(evaluation)
    ends = (0.0, 1.0)
    positions = evaluation.scale.positions
    if positions is not None:
        ends = (positions[0], positions[-1])
    counts, edges = np.histogram(values, bins=_BINS, range=ends)
    shares = counts / len(values)
    name = spread_name(evaluation)
    columns = {
        "from": edges[:-1],
        "to": edges[1:],
        "items": counts,
        "share": shares,
        "_zero": 0.0,
    }
    data = rows(**columns)
    fields = {"x": "from", "x2": "to", "y": "share", "y2": "_zero"}
    corners = {channel: {"field": field} for channel, field in fields.items()}
    bars = vega.layer("rect", data, corners, tooltip=vega.TOOLTIP, stroke=SURFACE, strokeWidth=1)
    highest = float(shares.max()) * 1.06
    share_title = f"share of the {noun_of(evaluation)}"
    return vega.chart(
        f"How answers spread: {name}",
        [bars],
        vega.numbers("from", name, domain=ends),
        vega.percents("share", share_title, [0.0, highest], domain=(0.0, highest)),
        220,
    )


def _label_bars(evaluation: EvaluatedItems) -> Spec:
    """The share of the items with each label, and the annotators' share of it as a dot."""
    classes = [clean(name, 60) for name in evaluation.pooled.classes]
    shares = label_shares(evaluation)
    order = np.argsort(-shares, kind="stable")[:_MOST_LABELS]
    names = [classes[c] for c in order]
    columns = {"label": names, "share": shares[order]}
    layers = []
    largest = float(shares.max())
    if evaluation.annotations is not None:
        annotated = evaluation.annotations.soft_labels.mean(axis=0)[order]
        columns["annotators"] = annotated
        largest = max(largest, float(annotated.max()))
        place = {"x": {"field": "annotators"}}
        layers.append(vega.points(rows(**columns), place, color=VERMILION))
    bars = vega.layer("bar", rows(**columns), height={"band": 0.65}, tooltip=vega.TOOLTIP)
    domain = (0.0, max(largest * 1.06, 0.05))
    share_title = f"share of the {noun_of(evaluation)}"
    return vega.chart(
        "How answers spread: labels",
        [bars, *layers],
        vega.percents("share", share_title, domain, domain=domain),
        vega.names("label", names),
        90 + 26 * len(names),
    )


def class_shares(annotations: Annotations) -> Spec:
    """The share of the annotations with each class; on an ordinal scale, points in their order."""
    shares = annotations.counts.sum(axis=0) / max(len(annotations), 1)
    order = np.arange(len(shares))
    if annotations.scale.positions is None:
        order = np.argsort(-shares, kind="stable")[:_MOST_LABELS]
    names = [clean(annotations.classes[c], 60) for c in order]
    colours = [light for light, _ in class_colours(annotations.classes, annotations.scale)]
    data = rows(label=names, share=shares[order], _colour=[colours[c] for c in order])
    colour: Spec = {"color": {"field": "_colour", "type": "nominal", "scale": None}}
    bars = vega.layer("bar", data, colour, height={"band": 0.65}, tooltip=vega.TOOLTIP)
    domain = (0.0, max(float(shares.max()) * 1.06, 0.05))
    return vega.chart(
        "How often each class was chosen",
        [bars],
        vega.percents("share", "share of the annotations", domain, domain=domain),
        vega.names("label", names),
        60 + 26 * len(names),
    )


def gain(result: Headline) -> Spec:
    """How much better than a plain average in each metric, in colour where the interval says so."""
    gains = pd.DataFrame([vars(gain) for gain in result.gains.values()])
    ends = [*gains.low, *gains.high]
    chart = dots(
        "How much better than a plain average, by metric",
        vega.percents("gain", "worse ← plain average → better", ends),
        [named(name) for name in result.gains],
        _blue_if("datum._clear"),
        gain=gains.share,
        low=gains.low,
        high=gains.high,
        _clear=[gain.standing != "unclear" for gain in result.gains.values()],
    )
    chart["layer"].insert(0, vega.reference("gain", 0.0))
    return chart


def method_name(names: Sequence[str]) -> str:
    """The methods of a row, in words."""
    return " = ".join(METHOD_NAMES.get(name, clean(name, 60)) for name in names)


def methods(method_rows: Sequence[MethodRow]) -> Spec:
    """The headline metric of each method with its interval, EDO's in colour."""
    labels = [method_name(row.names) for row in method_rows]
    scores = [row.score for row in method_rows]
    metric = scores[0].headline_metric
    intervals = [score.intervals.get(metric, (None, None)) for score in scores]
    columns = {METRIC[metric].short: [headline_value(score) for score in scores]}
    return dots(
        f"{METRIC[metric].title.capitalize()} of each method",
        _metric_axis(metric),
        labels,
        _blue_if("datum._ours"),
        low=[low for low, _ in intervals],
        high=[high for _, high in intervals],
        _ours=[row.is_ours for row in method_rows],
        **columns,
    )


def group_levels(comparison: GroupComparison, attribute: str, class_name: str) -> Spec:
    """How much each level of an attribute differs from the others, in colour where it is shown.

    All charts of a comparison have the same scale, which contains every interval.
    """
    levels = [level for level in comparison.levels_of(attribute) if level.difference is not None]
    unit = "points"
    title = f"{clean(attribute, 60)}: difference to the others"
    if class_name:
        unit = "share"
        title = f"{clean(attribute, 60)}: difference to the others in the share of {class_name!r}"
    axis_title = f"lower ← the others → higher ({unit})"
    ends = _ends_of_intervals(comparison)
    axis = vega.numbers(unit, axis_title, domain=ends)
    if class_name:
        axis = vega.percents(unit, axis_title, ends, domain=ends)
    chart = dots(
        title,
        axis,
        [clean(f"{level.level} ({level.people})", 60) for level in levels],
        _blue_if("datum._clear"),
        low=[value_of(level.low, class_name) for level in levels],
        high=[value_of(level.high, class_name) for level in levels],
        people=[level.people for level in levels],
        _clear=[is_clear(level, class_name) for level in levels],
        **{unit: [value_of(level.difference, class_name) for level in levels]},
    )
    chart["layer"].insert(0, vega.reference(unit, 0.0))
    return chart


def _ends_of_intervals(comparison: GroupComparison) -> tuple[float, float]:
    """The lowest and the highest end of the intervals of all levels and classes, around zero."""
    ends = [0.0]
    for level in comparison.levels:
        for name in comparison.classes or ("",):
            for end in (level.low, level.difference, level.high):
                value = value_of(end, name)
                if value is not None:
                    ends.append(value)
    room = 0.03 * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def _blue_if(test: str) -> Spec:
    """Blue for the rows that pass a test, grey for the others."""
    return {"condition": {"test": test, "value": BLUE}, "value": MUTED}


def _metric_axis(name: str) -> Spec:
    """The axis of a metric, with the direction in which it is better."""
    metric = METRIC[name]
    better = "lower"
    if metric.higher:
        better = "higher"
    return vega.numbers(metric.short, f"{metric.short} ({better} is better)")


def pareto(search: SearchTrials, x: str, y: str) -> Spec:
    """The trials by two metrics; the pointer shows all metrics and settings of a trial."""
    trials = sorted(search.trials, key=lambda trial: bool(trial.get("on_front")))
    data = rows(**pd.DataFrame([_trial(trial, search.metrics) for trial in trials]))
    encoding = {
        "color": _by_sign({"preserve": BLUE, "suppress": VERMILION}, MUTED),
        "shape": _by_sign({"suppress": "diamond"}, "circle"),
        "size": _if_on_front(100, 49),
        "opacity": _if_on_front(0.95, 0.28),
    }
    layers = [vega.points(data, encoding)]
    if search.chosen is not None:
        place = rows(**{METRIC[name].short: [search.chosen[name]] for name in (x, y)})
        ring = vega.points(place, size=20, color=INK, filled=False, strokeWidth=2, tooltip=None)
        layers.append(ring)
    title = f"{METRIC[x].short} and {METRIC[y].short} of the trials"
    return vega.chart(title, layers, _metric_axis(x), _metric_axis(y))


def _trial(trial: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """A row of a chart: number, metrics and settings."""
    on_front = bool(trial.get("on_front"))
    state = "dominated"
    if trial.get("chosen"):
        state = "chosen"
    elif on_front:
        state = "on the front"
    return {
        **{clean(name): clean(value) for name, value in trial_settings(trial).items()},
        "trial": trial["number"],
        "state": state,
        **{METRIC[name].short: trial[name] for name in metrics},
        "_sign": trial.get("diversity"),
        "_front": on_front,
    }


def _by_sign(values: Mapping[str, str], otherwise: str) -> Spec:
    """A value for each sign of the diversity term; ``otherwise`` for trials without one."""
    conditions = []
    for sign, value in values.items():
        conditions.append({"test": f"datum._sign === '{sign}'", "value": value})
    return {"condition": conditions, "value": otherwise}


def _if_on_front(value: float, otherwise: float) -> Spec:
    """A value for trials on the front, and another one for the rest."""
    return {"condition": {"test": "datum._front", "value": value}, "value": otherwise}


def reliability(curve: Reliability) -> Spec:
    """Share of annotations against predicted probability; larger dots hold more points."""
    x_field = "predicted probability"
    y_field = "share of annotations"
    # In square pixels.
    areas = (6 + 14 * np.sqrt(curve.count / max(int(curve.count.max()), 1))) ** 2
    columns = {
        x_field: curve.predicted,
        y_field: curve.observed,
        "from": curve.low,
        "to": curve.high,
        "points": curve.count,
        "_area": areas,
    }
    data = rows(**columns)
    layers = [
        vega.diagonal(x_field, y_field, 0, 1),
        vega.layer("line", data),
        vega.points(data, vega.AREA_BY_COUNT),
    ]
    x = vega.numbers(x_field, x_field, domain=(-0.04, 1.04))
    y = vega.numbers(y_field, y_field, domain=(-0.04, 1.04))
    return vega.chart(f"Reliability (ECE {number(curve.ece, 3)})", layers, x, y, 340)
