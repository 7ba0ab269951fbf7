"""Every chart of a run, built once for the page and for papers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from edokit._types import Floats, Ints
from edokit.annotations.core import Annotations
from edokit.baselines.scores import Score
from edokit.ensemble.estimator import EDOEnsemble
from edokit.metrics import METRIC, Reliability, reliability_curve
from edokit.planning import Plan
from edokit.report import vega
from edokit.report.colours import BLUE, INK, MUTED, ORANGE, SIGNS
from edokit.report.data import ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, named, number
from edokit.report.results import (
    Result,
    Search,
    find_result,
    headline_value,
    is_ours,
    ranked_scores,
)
from edokit.report.vega import Spec, rows

PARTS = {
    "item": "items",
    "annotator": "annotators",
    "group_item": "groups × items",
    "rest": "residual",
}
SOURCES = {"annotations": ORANGE, "ensemble": BLUE}
PLAIN_NAMES = {
    "edo": "EDO: this ensemble",
    "uniform": "plain average (uniform)",
    "best-single": "best single member",
    "constant": "constant answer",
}
# Points of a scatter plot; of more items, evenly spaced ones are drawn.
POINTS = 1500
# Fewer items than this do not make a mean.
MIN_ITEMS = 5


def all_charts(data: ReportData) -> dict[str, Spec]:
    """The charts that the data allow, by their name on the page."""
    charts: dict[str, Spec] = {}
    if data.search is not None and data.search.trials:
        pairs = combinations(data.search.metrics, 2)
        charts |= {f"pareto-{x}-{y}": pareto(data.search, x, y) for x, y in pairs}
    if data.ensemble is not None:
        charts["weights"] = weights(data.ensemble)
    if data.evaluation is not None and data.evaluation.annotations is not None:
        charts |= _annotated(data.evaluation, data.evaluation.annotations)
    has_weights = data.ensemble is None or len(data.ensemble.members_) > 1
    if has_weights and (result := find_result(data.comparison, data.evaluation)) is not None:
        charts["gain"] = gain(result)
    if scores := ranked_scores(data.comparison, data.evaluation):
        charts["methods"] = methods(scores)
    if data.plan is not None:
        charts["annotators-needed"] = annotators_needed(data.plan)
    return charts | diagnosis(data.diagnosis)


def _annotated(evaluation: Evaluation, labels: Annotations) -> dict[str, Spec]:
    """Reliability, entropies and shares of the classes."""
    predicted, rho = evaluation.pooled.entropy, evaluation.metrics["entropy_correlation"]
    p, q, largest = evaluation.pooled.probabilities, labels.soft_labels, evaluation.max_entropy
    return {
        "reliability": reliability(reliability_curve(p, q, scale=evaluation.scale)),
        "entropy-entropy": entropy_against_entropy(predicted, labels.entropy, largest, rho),
        "classes": class_shares(p, q, evaluation.pooled.classes),
    }


def dots(
    title: str, x: Spec, labels: Sequence[str], colour: Spec | None = None, **columns: Any
) -> Spec:
    """A dot for each name, with the interval between the columns ``low`` and ``high``."""
    data = rows(name=labels, **columns)
    encoding = {} if colour is None else {"color": colour}
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
        vega.layer("bar", data, height={"band": 0.65}, tooltip=vega.TIPS),
        vega.layer("text", data, text, align="left", dx=4, color=INK),
        vega.reference("weight", 1 / len(order)),
    ]
    largest = max(float(values.max()) * 1.06, 0.05)
    x = vega.numbers("weight", "weight (dotted: equal weights)", domain=(0, largest))
    y = vega.names("member", member_names)
    return vega.chart("Weight of each member", layers, x, y, 90 + 22 * len(order))


def class_shares(p: Floats, q: Floats, classes: Sequence[str]) -> Spec:
    """How often annotators and the ensemble choose each class, in the declared order."""
    labels = [clean(name, 24) for name in classes]
    means = np.ravel([q.mean(axis=0), p.mean(axis=0)])
    return dots(
        "How often each class is chosen, mean over items",
        vega.numbers("share", "share", domain=(0, 1.08 * float(means.max())), percent=True),
        labels * 2,
        vega.colours("of", SOURCES),
        share=means,
        of=np.repeat(list(SOURCES), len(labels)),
    )


def gain(result: Result) -> Spec:
    """How much better than a plain average in each metric, in colour where the interval says so."""
    gains = pd.DataFrame([vars(gain) for gain in result.gains.values()])
    chart = dots(
        "How much better than a plain average, by metric",
        vega.numbers("gain", "worse ← plain average → better", percent=True),
        [named(name) for name in result.gains],
        _blue_if("datum._clear"),
        gain=gains.share,
        low=gains.low,
        high=gains.high,
        _clear=[gain.standing != "unclear" for gain in result.gains.values()],
    )
    chart["layer"].insert(0, vega.reference("gain", 0.0))
    return chart


def annotators_needed(plan: Plan) -> Spec:
    """The distance of the soft label of so many annotators to that of all, with intervals."""
    name = next(name for name in ("w1", "md") if name in plan.curve[0]["soft_label"])
    labels = [count(row["annotators"], "annotator") for row in plan.curve]
    values, lows, highs = zip(*(row["soft_label"][name] for row in plan.curve), strict=True)
    columns: dict[str, Any] = {METRIC[name].short: values, "low": lows, "high": highs}
    return dots("Error of the soft label", _metric_axis(name), labels, **columns)


def methods(scores: Sequence[Score]) -> Spec:
    """The headline metric of each method with its interval, EDO's in colour."""
    labels = [PLAIN_NAMES.get(score.name, clean(score.name, 60)) for score in scores]
    metric = scores[0].headline
    ends = [score.intervals.get(metric, (None, None)) for score in scores]
    lows, highs = zip(*ends, strict=True)
    columns = {METRIC[metric].short: [headline_value(score) for score in scores]}
    return dots(
        f"{METRIC[metric].title.capitalize()} of each method",
        _metric_axis(metric),
        labels,
        _blue_if("datum._ours"),
        low=lows,
        high=highs,
        _ours=[is_ours(score) for score in scores],
        **columns,
    )


def _blue_if(test: str) -> Spec:
    return {"condition": {"test": test, "value": BLUE}, "value": MUTED}


def _metric_axis(name: str) -> Spec:
    metric = METRIC[name]
    better = "higher" if metric.higher else "lower"
    return vega.numbers(metric.short, f"{metric.short} ({better} is better)")


def pareto(search: Search, x: str, y: str) -> Spec:
    """The trials by two metrics, linked between the views of the page."""
    trials = sorted(search.trials, key=lambda trial: bool(trial.get("on_front")))
    values = {METRIC[name].short: [trial[name] for trial in trials] for name in (x, y)}
    trial_signs = [s if (s := trial.get("diversity")) in SIGNS else "" for trial in trials]
    data = rows(
        trial=[trial["number"] for trial in trials],
        **values,
        diversity=trial_signs,
        _front=[bool(trial.get("on_front")) for trial in trials],
    )
    signs = {sign: shade for sign, shade in SIGNS.items() if sign in trial_signs}
    shapes = ["diamond" if sign == "suppress" else "circle" for sign in signs]
    encoding = {
        "color": vega.colours("diversity", signs, legend=None),
        "shape": {
            "field": "diversity",
            "scale": {"domain": list(signs), "range": shapes},
            "legend": None,
        },
        "size": _first_of(49, {"datum.trial === hovered": 300, "datum._front": 100}),
        "opacity": _first_of(
            0.28, {"picked && indexof(picked, datum.trial) < 0": 0.05, "datum._front": 0.95}
        ),
    }
    brush = {"params": [{"name": "brush", "select": "interval"}]}
    layers = [vega.points(data, encoding) | brush]
    if search.chosen is not None:
        place = rows(**{METRIC[name].short: [search.chosen[name]] for name in (x, y)})
        ring = vega.points(place, size=20, color=INK, filled=False, strokeWidth=2, tooltip=None)
        layers.append(ring)
    title = f"{METRIC[x].short} and {METRIC[y].short} of the trials"
    return vega.chart(title, layers, _metric_axis(x), _metric_axis(y)) | {"params": vega.LINKS}


def _first_of(otherwise: float, values: dict[str, float]) -> Spec:
    """The value of the first test that holds."""
    tests = [{"test": test, "value": value} for test, value in values.items()]
    return {"condition": tests, "value": otherwise}


def reliability(curve: Reliability) -> Spec:
    """Share of annotations against predicted probability; larger dots hold more points."""
    fields = ("predicted probability", "share of annotations")
    bins = dict(zip(fields, (curve.predicted, curve.observed), strict=True))
    ends = {"from": curve.low, "to": curve.high, "points": curve.count}
    data = rows(**bins, **ends, _area=_areas(curve.count, 14))
    layers = [vega.diagonal(*fields, 0, 1), vega.layer("line", data), vega.points(data, vega.AREA)]
    return vega.chart(
        f"Reliability (ECE {number(curve.ece, 3)})", layers, *_both_axes(*fields, 1), 340
    )


def entropy_against_entropy(
    predicted: Floats, annotated: Floats, max_entropy: float, rho: float | None = None
) -> Spec:
    """A point per item, and the ensemble's mean entropy per tenth of the annotations'."""
    # Shares of a few annotators take few values, so points are moved apart a little.
    jitter = (np.arange(len(annotated)) * 0.6180339887 % 1 - 0.5) * 0.03 * max_entropy
    fields = ("entropy of annotations", "entropy of ensemble")
    sample = np.linspace(0, max(len(annotated) - 1, 0), min(len(annotated), POINTS)).astype(int)
    items = zip(fields, ((annotated + jitter)[sample], predicted[sample]), strict=True)
    *at, size = binned_means(annotated, predicted, max_entropy)
    means = rows(**dict(zip(fields, at, strict=True)), items=size, _area=_areas(size, 8))
    layers = [
        vega.points(rows(**dict(items)), size=5, opacity=0.28, tooltip=None),
        vega.layer("line", means, color=INK),
        vega.points(means, vega.AREA, color=INK),
    ]
    axes = _both_axes(*fields, max_entropy, unit=" (nats)")
    return vega.chart(f"Entropy correlation (ρ = {number(rho, 2)})", layers, *axes, 340)


def _both_axes(x: str, y: str, high: float, unit: str = "") -> tuple[Spec, Spec]:
    ends = (-0.04 * high, 1.04 * high)
    return vega.numbers(x, x + unit, domain=ends), vega.numbers(y, y + unit, domain=ends)


def binned_means(x: Floats, y: Floats, largest: float) -> tuple[Floats, Floats, Ints]:
    """Means of x and y and the number of items per tenth of x, where there are enough items."""
    tenth = np.minimum((x / largest * 10).astype(np.int64), 9)
    n = np.bincount(tenth, minlength=10)
    enough = n >= min(MIN_ITEMS, int(n.max()))
    means = [np.bincount(tenth, weights=v, minlength=10)[enough] / n[enough] for v in (x, y)]
    return means[0], means[1], n[enough].astype(np.int64)


def diagnosis(content: dict[str, Any] | None) -> dict[str, Spec]:
    """The charts that a diagnosis (`edokit.diagnose`, as a dictionary) has numbers for."""
    charts: dict[str, Spec] = {}
    if content is None:
        return charts
    parts = {name: (content["variance"] or {}).get(key) for key, name in PARTS.items()}
    if parts := {name: part for name, part in parts.items() if part and part["share"] is not None}:
        ends: Any = {
            key: [part[key] for part in parts.values()] for key in ("share", "low", "high")
        }
        axis = vega.numbers("share", "share of the label variance", percent=True, zero=True)
        charts["variance"] = dots("Components of the label variance", axis, list(parts), **ends)
    return charts


def _areas(n: Ints, growth: float) -> Floats:
    """Areas of dots, in square pixels, that grow with the number."""
    areas: Floats = (6 + growth * np.sqrt(n / max(int(n.max()), 1))) ** 2
    return areas
