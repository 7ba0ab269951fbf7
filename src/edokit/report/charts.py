"""Every chart of a run, built once for the page and for papers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from edokit._errors import counted
from edokit._types import Floats, Ints
from edokit.baselines.scores import Score
from edokit.baselines.slices import Slice
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.trade_off import TradeOff
from edokit.metrics import METRIC, Reliability
from edokit.report.chart import (
    BLUE,
    DIVERGING,
    INK,
    MUTED,
    NOMINAL,
    ORANGE,
    SIGNS,
    Axis,
    Bars,
    Chart,
    Heatmap,
    Line,
    Mark,
    Points,
)
from edokit.report.data import ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, number, percent
from edokit.report.results import Search, Trial, headline_value, is_ours, ranked_scores
from edokit.scales import Declared, Scale
from edokit.solvers import Trajectory
from edokit.tuning import Correlation

LOSS_TERMS = {
    "f1": "1 − soft F1",
    "ce": "Cross-entropy",
    "div": "Diversity",
    "reg": "Squared norm of the weights",
}
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
PARTS = {
    "item": "items",
    "annotator": "annotators",
    "group_item": "groups × items",
    "rest": "residual",
}
BINS = 20
POINTS = 1500
"""Points of a scatter plot; of more items, evenly spaced ones are drawn."""
NUMBERED = 12
"""Up to so many members, cells carry their numbers."""
MIN_ITEMS = 5
"""Fewer items than this do not make a mean."""


def all_charts(data: ReportData) -> dict[str, Chart]:
    """The charts that the data allow, by their name on the page."""
    charts: dict[str, Chart] = {}
    if data.search is not None and data.search.trials:
        pairs = combinations(data.search.metrics, 2)
        charts |= {f"pareto-{x}-{y}": pareto(data.search, x, y) for x, y in pairs}
        charts |= correlations(data.search.correlations)
    if data.ensemble is not None:
        charts["weights"] = weights(data.ensemble)
        trajectory = data.ensemble.trajectory_
        if trajectory is not None and len(trajectory):
            smallest = int(data.ensemble.settings_.get("min_members") or 1)
            charts |= epochs(trajectory, smallest)
    if data.trade_off is not None and len(data.trade_off.path) > 1:
        charts["cost"] = costs(data.trade_off)
    if data.evaluation is not None:
        charts |= _evaluated(data.evaluation)
    if scores := ranked_scores(data.comparison, data.evaluation):
        charts["methods"] = methods(scores)
    if data.evaluation is not None and data.evaluation.slices:
        charts["slices"] = slices(data.evaluation.slices)
    return charts | diagnosis(data.diagnosis or {})


def _evaluated(evaluation: Evaluation) -> dict[str, Chart]:
    """Reliability and entropies where there are annotations, distances of several members."""
    charts = {}
    if evaluation.reliability is not None and evaluation.annotations is not None:
        annotated, largest = evaluation.annotations.entropy, evaluation.max_entropy
        predicted, rho = evaluation.pooled.entropy, evaluation.rho.estimate
        charts["reliability"] = reliability(evaluation.reliability, evaluation.ece)
        charts["entropies"] = entropies(predicted, annotated, largest)
        charts["entropy-entropy"] = entropy_against_entropy(predicted, annotated, largest, rho)
        charts |= _on_scale(evaluation, evaluation.annotations.soft_labels)
    if len(evaluation.predictions.members) > 1:
        charts["members"] = members(evaluation.distances, evaluation.predictions.members)
    return charts


def weights(ensemble: EDOEnsemble) -> Chart:
    """A bar per member, largest weight first."""
    order = np.argsort(-ensemble.weights_, kind="stable")
    values = ensemble.weights_[order]
    bars = Bars(
        range(len(order)),
        values,
        horizontal=True,
        text=[f"{weight:.3f}" if weight > 0 else "0" for weight in values],
        notes=[f"own cross-entropy {ce:.4f}" for ce in ensemble.member_ce_[order]],
    )
    return Chart(
        "Weight of each member",
        [bars, Line([1 / len(order)])],
        x=Axis("weight (dotted: equal weights)", range=(0, max(float(values.max()) * 1.02, 0.05))),
        y=Axis(labels=[ensemble.members_[k] for k in order]),
        height=90 + 22 * len(order),
    )


def costs(trade_off: TradeOff) -> Chart:
    """Cost per item against what is lost, from the whole ensemble to one member."""
    path, short = trade_off.path, METRIC[trade_off.metric].short
    prices = [step.cost for step in path if step.cost is not None]
    priced = len(prices) == len(path)
    y = prices if priced else [len(step.members) for step in path]
    notes = [
        f"{'without ' + clean(step.dropped[-1], 40) if step.dropped else 'whole ensemble'}\n"
        f"{count(len(step.members), trade_off.unit)}, {short} {step.loss:.4f}"
        for step in path
    ]
    lows, highs = zip(*(step.interval for step in path), strict=True)
    differences = [step.difference for step in path]
    points = Points(differences, y, size=9, line=True, interval=(lows, highs), notes=notes)
    title = "cost per item" if priced else f"{trade_off.unit}s with weight"
    return Chart(
        f"{title.capitalize()} and {short} of cheaper ensembles",
        [Line([0.0]), points],
        x=Axis(f"Δ{short} (95 % interval; right is worse)"),
        y=Axis(title, range=(0, 1.08 * max(y))),
        height=340,
    )


def epochs(trajectory: Trajectory, smallest: int) -> dict[str, Chart]:
    """The distribution over ensemble sizes and the terms of the objective at each epoch."""
    shares = trajectory.sizes.T
    # A uniform distribution is shown half-way up the colour scale.
    high = min(max(float(shares.max()), 2 / len(shares)), 1.0)
    heatmap = Heatmap(shares.tolist(), 0, high, "probability", origin=(1, smallest))
    x = Axis("epoch", step=max(1, len(trajectory) // 5))
    y = Axis("ensemble size", step=max(1, len(shares) // 10))
    charts = {"sizes": Chart("Probability of each ensemble size", [heatmap], x, y, height=300)}
    for name, title in LOSS_TERMS.items():
        line = Points(range(1, len(trajectory) + 1), getattr(trajectory, name), size=5, line=True)
        charts[f"term-{name}"] = Chart(title, [line], x, height=190)
    return charts


def _on_scale(evaluation: Evaluation, q: Floats) -> dict[str, Chart]:
    """Ordinal: cumulative shares, and mean ratings; sets: how often each label is chosen."""
    p, names = evaluation.pooled.probabilities, evaluation.pooled.classes
    sources = (("annotations", q, ORANGE), ("ensemble", p, BLUE))
    if (places := evaluation.scale.positions) is not None:
        at = range(len(names))
        lines: list[Mark] = [
            Points(at, np.cumsum(shares.mean(axis=0)), colour, 8, line=True, name=name)
            for name, shares, colour in sources
        ]
        points = Axis("at most this point of the scale", [clean(name, 18) for name in names])
        ends = (places[0], places[-1])
        marks: list[Mark] = [Line(ends, ends), *_cloud(q @ places, p @ places, *ends)]
        axes = _both_axes("mean of annotations", "mean of ensemble", *ends)
        share, title = Axis("share", percent=True), "Cumulative shares, mean over items"
        return {
            "cumulative": Chart(title, lines, points, share, height=340, legend=True),
            "ratings": Chart("Mean rating of annotations and ensemble", marks, *axes, height=340),
        }
    if not evaluation.scale.is_multi_label:
        return {}
    largest = max(float(shares.mean(axis=0).max()) for _, shares, _ in sources)
    rates = [
        Points(shares.mean(axis=0), range(len(names)), colour, 10, name=name)
        for name, shares, colour in sources
    ]
    return {
        "labels": Chart(
            "How often each label is chosen, mean over items",
            rates,
            x=Axis("share", range=(0, 1.08 * largest), percent=True),
            y=Axis(labels=[clean(name, 24) for name in names]),
            height=max(110 + 30 * len(names), 200),
            legend=True,
        )
    }


def methods(scores: Sequence[Score]) -> Chart:
    """The headline metric of each method with its interval, EDO's in colour."""
    marks = []
    for ours, colour in ((False, MUTED), (True, BLUE)):
        at = [k for k, score in enumerate(scores) if is_ours(score) is ours]
        marks.append(_with_intervals([scores[k] for k in at], at, colour))
    return _headline_chart("method", scores[0], marks, [clean(score.name, 60) for score in scores])


def slices(parts: Sequence[Slice]) -> Chart:
    """The headline metric of the ensemble on each slice, beside uniform mean and constant."""
    marks = []
    for method, name, colour in (
        ("uniform", "uniform mean", MUTED),
        ("constant", "constant", ORANGE),
    ):
        scores = {k: score for k, part in enumerate(parts) if (score := part.score(method))}
        values = [headline_value(score) for score in scores.values()]
        marks.append(Points(values, list(scores), colour, size=9, symbol="diamond", name=name))
    ours = [part.scores[0] for part in parts]
    marks.append(_with_intervals(ours, range(len(ours)), BLUE, "ensemble"))
    names = [f"{clean(part.name, 60)} ({part.items})" for part in parts]
    return _headline_chart("slice", ours[0], marks, names)


def _with_intervals(
    scores: Sequence[Score], at: Sequence[int], colour: str, name: str = ""
) -> Points:
    """The headline metric of each score, and its interval."""
    values = [headline_value(score) for score in scores]
    ends = [
        score.intervals.get(score.headline) or (value, value)
        for score, value in zip(scores, values, strict=True)
    ]
    interval = [low for low, _ in ends], [high for _, high in ends]
    return Points(values, at, colour, size=9, interval=interval, name=name)


def _headline_chart(
    noun: str, score: Score, marks: Sequence[Points], names: Sequence[str]
) -> Chart:
    metric = METRIC[score.headline]
    return Chart(
        f"{metric.title.capitalize()} of each {noun}",
        marks,
        x=Axis(f"{metric.short} (lower is better)"),
        y=Axis(labels=names),
        height=100 + 26 * len(names),
        legend=any(mark.name for mark in marks),
    )


def pareto(search: Search, x: str, y: str) -> Chart:
    """The trials by two metrics; all views hold the same trials in the same order."""
    marks = []
    for sign, on_front in product(SIGNS, (False, True)):
        trials = [t for t in search.trials if t.sign == sign and t.on_front == on_front]
        if trials:
            points = Points(
                [trial.metrics[x] for trial in trials],
                [trial.metrics[y] for trial in trials],
                colour=SIGNS[sign],
                size=10 if on_front else 7,
                opacity=0.95 if on_front else 0.28,
                symbol="diamond" if sign == "suppress" else "circle",
                name=sign,
                hover="notes",
                notes=[_trial(trial) for trial in trials],
                ids=[trial.number for trial in trials],
            )
            marks.append(points)
    if search.chosen is not None:
        at = [search.chosen.metrics[x]], [search.chosen.metrics[y]]
        marks.append(Points(*at, INK, 20, symbol="ring", name="chosen", hover="none"))
    title = f"{METRIC[x].short} and {METRIC[y].short} of the trials"
    return Chart(title, marks, _metric_axis(x), _metric_axis(y))


def _metric_axis(name: str) -> Axis:
    metric = METRIC[name]
    return Axis(f"{metric.short} ({'higher' if metric.higher else 'lower'} is better)")


def _trial(trial: Trial) -> str:
    state = "chosen" if trial.chosen else "on the front" if trial.on_front else "dominated"
    metrics = " · ".join(f"{METRIC[name].short} {v:.4f}" for name, v in trial.metrics.items())
    settings = [f"{clean(name, 24)}: {clean(value, 24)}" for name, value in trial.settings.items()]
    return "\n".join([f"Trial {trial.number}, {state}", metrics, *settings])


def correlations(rows: Sequence[Correlation]) -> dict[str, Chart]:
    """A heat map of Spearman's ρ [parameters, metrics] for each sign."""
    return {
        f"correlations-{sign}": _correlation_chart(sign, [r for r in rows if r.diversity == sign])
        for sign in dict.fromkeys(row.diversity for row in rows)
    }


def _correlation_chart(sign: str, rows: Sequence[Correlation]) -> Chart:
    parameters = list(dict.fromkeys(row.parameter for row in rows))
    metrics = sorted({row.metric for row in rows}, key=list(METRIC).index)
    shape = len(parameters), len(metrics)
    values, text, notes = (np.full(shape, empty, object) for empty in (None, "–", ""))
    for row in rows:
        cell = parameters.index(row.parameter), metrics.index(row.metric)
        values[cell], text[cell], notes[cell] = row.rho, _with_stars(row), f"p = {row.p_value:.3g}"
    heatmap = Heatmap(
        values.tolist(), -1, 1, "ρ", DIVERGING, text=text.tolist(), notes=notes.tolist()
    )
    return Chart(
        f"{sign} ({count(max(row.trials for row in rows), 'trial')})",
        [heatmap],
        x=Axis(labels=[METRIC[metric].short for metric in metrics]),
        y=Axis(labels=[PARAMETERS.get(name, name.replace("_", " ")) for name in parameters]),
        height=110 + 32 * len(parameters),
    )


def _with_stars(row: Correlation) -> str:
    """``0.42**``: one star for p below 0.05, two below 0.01, three below 0.001."""
    return number(row.rho, 2) + "*" * sum(row.p_value < bound for bound in (0.05, 0.01, 0.001))


def reliability(curve: Reliability, ece: float | None = None) -> Chart:
    """Share of annotations against predicted probability; larger dots hold more points."""
    bins = zip(curve.count, curve.low, curve.high, strict=True)
    notes = [f"{counted(n, 'point')} between {low:.3f} and {high:.3f}" for n, low, high in bins]
    size = _dots(curve.count, 14)
    dots = Points(curve.predicted, curve.observed, size=size, line=True, notes=notes)
    return Chart(
        f"Reliability (ECE {number(ece, 3)})",
        [Line([0, 1], [0, 1]), dots],
        x=Axis("predicted probability", range=(-0.03, 1.03)),
        y=Axis("share of annotations", range=(-0.03, 1.03)),
        height=340,
    )


def entropies(predicted: Floats, annotated: Floats, max_entropy: float) -> Chart:
    """Histograms of the entropy of the annotations and of the ensemble's probabilities."""
    edges = np.linspace(0, max_entropy, BINS + 1)
    middle, width = (edges[:-1] + edges[1:]) / 2, float(edges[1]) * 0.94
    bars = []
    sources = (("annotations", annotated, ORANGE), ("ensemble", predicted, BLUE))
    for name, values, colour in sources:
        # Rounding may leave a value above the last edge.
        items = np.histogram(np.clip(values, 0, max_entropy), edges)[0]
        bars.append(Bars(middle, items, colour, 0.6, width=width, name=name))
    axes = Axis("entropy (nats)"), Axis("items")
    return Chart("Entropy of annotations and ensemble", bars, *axes, height=340, legend=True)


def entropy_against_entropy(
    predicted: Floats, annotated: Floats, max_entropy: float, rho: float | None = None
) -> Chart:
    """A point per item, and the ensemble's mean entropy per tenth of the annotations'."""
    # Shares of a few annotators take few values, so points are moved apart a little.
    jitter = (np.arange(len(annotated)) * 0.6180339887 % 1 - 0.5) * 0.03 * max_entropy
    marks = _cloud(annotated, predicted, 0.0, max_entropy, jitter)
    names = ("entropy of annotations (nats)", "entropy of ensemble (nats)")
    axes = _both_axes(*names, 0.0, max_entropy)
    return Chart(f"Entropy correlation (ρ = {number(rho, 2)})", marks, *axes, height=340)


def _cloud(x: Floats, y: Floats, low: float, high: float, jitter: Any = 0.0) -> list[Points]:
    """A point per item, and the means of y per tenth of x, which is between low and high."""
    rows = np.linspace(0, max(len(x) - 1, 0), min(len(x), POINTS)).astype(np.int64)
    at, mean, items = binned_means(x - low, y - low, high - low)
    notes = [f"mean of {count(int(k), 'item')}" for k in items]
    return [
        Points((x + jitter)[rows], y[rows], size=5, opacity=0.28, hover="none"),
        Points(at + low, mean + low, INK, _dots(items, 8), line=True, notes=notes),
    ]


def _both_axes(x: str, y: str, low: float, high: float) -> tuple[Axis, Axis]:
    ends = (low - 0.04 * (high - low), high + 0.04 * (high - low))
    return Axis(x, range=ends), Axis(y, range=ends)


def binned_means(x: Floats, y: Floats, largest: float) -> tuple[Floats, Floats, Ints]:
    """Means of x and y and the number of items per tenth of x, where there are enough items."""
    tenth = np.minimum((x / largest * 10).astype(np.int64), 9)
    n = np.bincount(tenth, minlength=10)
    enough = n >= min(MIN_ITEMS, int(n.max()))
    means = [np.bincount(tenth, weights=v, minlength=10)[enough] / n[enough] for v in (x, y)]
    return means[0], means[1], n[enough].astype(np.int64)


def members(distances: Floats, names: Sequence[str]) -> Chart:
    """The mean distances [K, K], similar members side by side below their dendrogram."""
    order, tree = clustered(distances)
    values = distances[np.ix_(order, order)]
    high = max(float(distances.max()), 1e-4)
    text = None
    if len(order) <= NUMBERED:
        text = [[f"{value:.2f}" if value else "" for value in row] for row in values]
    heatmap = Heatmap(values.tolist(), 0, high, "distance", text=text, tree=tree)
    return _matrix("Mean distance between members", heatmap, [clean(names[k], 20) for k in order])


def clustered(distances: Floats) -> tuple[Ints, list[tuple[list[float], list[float]]]]:
    """An order that puts similar members side by side, and the brackets of the dendrogram."""
    from scipy.cluster.hierarchy import dendrogram, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(distances) < 3:
        return np.arange(len(distances), dtype=np.int64), []
    condensed = squareform(distances, checks=False)
    ordered = optimal_leaf_ordering(linkage(condensed, "average"), condensed)
    tree = dendrogram(ordered, no_plot=True)
    at = ((np.array(tree["icoord"]) - 5) / 10).tolist()
    heights = np.array(tree["dcoord"]).tolist()
    return np.array(tree["leaves"], dtype=np.int64), sorted(zip(at, heights, strict=True))


def diagnosis(content: dict[str, Any]) -> dict[str, Chart]:
    """The charts that a diagnosis (`edokit.diagnose`, as a dictionary) has numbers for."""
    scale = Declared(content.get("scale") or "nominal").on(content.get("classes") or ())
    charts = {
        "variance": _variance(content.get("variance") or {}),
        "permutations": _permutations((content.get("test") or {}).get("group_item") or {}),
        "annotators": _annotators(content, scale),
        "agreement": _agreement((content.get("agreement") or {}).get("matrix") or {}, scale.span),
    }
    return {name: chart for name, chart in charts.items() if chart is not None}


def _variance(components: dict[str, Any]) -> Chart | None:
    """The share of each component in the variance of the labels."""
    parts = {name: components.get(key) or {} for key, name in PARTS.items()}
    parts = {name: part for name, part in parts.items() if part.get("share") is not None}
    if not parts:
        return None
    shares, lows, highs = (
        [float(part.get(end) or part["share"]) for part in parts.values()]
        for end in ("share", "low", "high")
    )
    ends = zip(lows, highs, strict=True)
    notes = [f"interval {percent(low, 1)} to {percent(high, 1)}" for low, high in ends]
    at = range(len(parts))
    return Chart(
        "Components of the label variance",
        [Bars(at, shares, horizontal=True, width=0.6, interval=(lows, highs), notes=notes)],
        x=Axis("share of the label variance", percent=True),
        y=Axis(labels=list(parts)),
        height=70 + 34 * len(parts),
    )


def _permutations(test: dict[str, Any]) -> Chart | None:
    """The test statistic, and its distribution under permutation."""
    null = [value for value in test.get("null") or [] if value is not None]
    statistic = test.get("statistic")
    if len(null) < 2 or statistic is None or test.get("p", 1) is None:
        return None
    n, edges = np.histogram(null, bins=24)
    width = float(edges[1] - edges[0])
    bars = Bars((edges[:-1] + edges[1:]) / 2, n, MUTED, 0.6, width=width * 0.95)
    observed = Line([float(statistic)], colour=BLUE, dotted=False, label="observed")
    return Chart(
        "Permutation test of groups × items",
        [bars, observed],
        x=Axis("difference between groups (permuted labels)"),
        y=Axis("permutations"),
    )


def _annotators(content: dict[str, Any], scale: Scale) -> Chart | None:
    """A point per annotator: how often they choose a class, and agree with others.

    Of several classes, the one whose share differs most between annotators; on a scale, the mean
    rating and the distance from others.
    """
    classes = [str(name) for name in content.get("classes") or []]
    people = [row for row in content.get("people") or [] if row.get("agreement") is not None]
    if len(people) < 2 or len(classes) < 2:
        return None
    totals = np.array([int(person.get("annotations") or 1) for person in people])
    shares = np.array(
        [[float(person["shares"].get(c) or 0.0) for c in classes] for person in people]
    )
    agreement = np.array([float(person["agreement"]) for person in people])
    if scale.span is not None:
        title, axes = "Annotators", (Axis("mean rating"), Axis("distance from the others"))
        x, y = shares @ np.array(scale.positions), (1 - agreement) * scale.span
    else:
        # Of two classes, which differ alike, the last.
        title, column = "Annotators", len(classes) - 1
        if not scale.is_binary(len(classes)):
            title += ", by the label they differ most in"
            mean = totals @ shares / totals.sum()
            column = int((totals @ (shares - mean) ** 2).argmax())
        x, y = shares[:, column], agreement
        label = Axis(f"share of label “{clean(classes[column], 24)}”", percent=True)
        axes = label, Axis("agreement with the others", percent=True)
    marks = _by_group(people, x, y, totals)
    return Chart(title, marks, *axes, legend=len(marks) > 1)


def _by_group(people: Sequence[dict[str, Any]], x: Floats, y: Floats, totals: Ints) -> list[Points]:
    """Points in the colour of their group; those without one are drawn first, below the others."""
    group_of = [str(person.get("group") or "") for person in people]
    groups, sizes = sorted(set(group_of)), _dots(totals, 12)
    marks = []
    for k, group in enumerate(groups):
        rows = [i for i, name in enumerate(group_of) if name == group]
        colour = NOMINAL[k % len(NOMINAL)] if group else BLUE if len(groups) == 1 else MUTED
        notes = [
            f"{clean(people[i].get('annotator', ''), 24)}, {count(int(totals[i]), 'annotation')}"
            for i in rows
        ]
        name = "" if len(groups) == 1 else group or "no group"
        marks.append(
            Points(x[rows], y[rows], colour, sizes[rows], opacity=0.75, name=name, notes=notes)
        )
    return marks


def _agreement(matrix: dict[str, Any], span: float | None) -> Chart | None:
    """How often two annotators agree on the items they share, or how far apart they rate."""
    names = [clean(name, 18) for name in matrix.get("annotators") or []]
    table = matrix.get("agreement") or []
    if len(names) < 3 or len(table) != len(names):
        return None
    values = np.array(table, dtype=np.float64)
    values = values if span is None else (1 - values) * span
    low, high = (0.0, 1.0) if np.isnan(values).all() else (np.nanmin(values), np.nanmax(values))
    shared = matrix.get("shared")
    notes = shared and [[counted(n, "shared item") for n in row] for row in shared]
    title = "agreement" if span is None else "distance"
    cells = [[None if np.isnan(value) else float(value) for value in row] for row in values]
    ends = float(low), max(float(high), float(low) + 1e-4)
    heatmap = Heatmap(cells, *ends, title, percent=span is None, notes=notes)
    return _matrix(f"{title.capitalize()} on shared items", heatmap, names)


def _matrix(title: str, heatmap: Heatmap, names: Sequence[str]) -> Chart:
    axis = Axis(labels=names)
    return Chart(title, [heatmap], x=axis, y=axis, height=min(200 + 28 * len(names), 740))


def _dots(n: Ints, growth: float) -> Floats:
    """Diameters whose area grows with the number."""
    diameters: Floats = 6 + growth * np.sqrt(n / max(int(n.max()), 1))
    return diameters
