"""Every chart of a run, built once for the page and for papers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from edokit._types import Floats, Ints
from edokit.baselines.scores import Score
from edokit.baselines.slices import Slice
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.trade_off import TradeOff
from edokit.metrics import METRIC, Reliability
from edokit.report import vega
from edokit.report.colours import BLUE, DIVERGING, INK, MUTED, NOMINAL, ORANGE, SIGNS
from edokit.report.data import ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, number
from edokit.report.results import Search, headline_value, is_ours, ranked_scores
from edokit.report.vega import Spec, rows
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
SOURCES = {"annotations": ORANGE, "ensemble": BLUE}
RIVALS = {"uniform mean": MUTED, "constant": ORANGE}
BINS = 20
# Points of a scatter plot; of more items, evenly spaced ones are drawn.
POINTS = 1500
# Up to so many members, cells carry their numbers.
NUMBERED = 12
# Fewer items than this do not make a mean.
MIN_ITEMS = 5


def all_charts(data: ReportData) -> dict[str, Spec]:
    """The charts that the data allow, by their name on the page."""
    charts: dict[str, Spec] = {}
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


def _evaluated(evaluation: Evaluation) -> dict[str, Spec]:
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


def weights(ensemble: EDOEnsemble) -> Spec:
    """A bar per member, largest weight first."""
    order = np.argsort(-ensemble.weights_, kind="stable")
    member_names = [clean(ensemble.members_[k]) for k in order]
    values = ensemble.weights_[order]
    shown = [f"{weight:.3f}" if weight > 0 else "0" for weight in values]
    data = rows(member=member_names, weight=values, CE=ensemble.member_ce_[order], _text=shown)
    text = {"text": {"field": "_text"}}
    layers = [
        vega.layer("bar", data, height={"band": 0.65}, tooltip=vega.TIPS),
        vega.layer("text", data, text, align="left", dx=4, color=INK),
        *vega.reference("weight", 1 / len(order)),
    ]
    largest = max(float(values.max()) * 1.06, 0.05)
    x = vega.numbers("weight", "weight (dotted: equal weights)", domain=(0, largest))
    y = vega.names("member", member_names)
    return vega.chart("Weight of each member", layers, x, y, 90 + 22 * len(order))


def costs(trade_off: TradeOff) -> Spec:
    """Cost per item against what is lost, from the whole ensemble to one member."""
    path, short = trade_off.path, METRIC[trade_off.metric].short
    sizes = [len(step.members) for step in path]
    title, y = f"{trade_off.unit}s with weight", np.array(sizes, dtype=np.float64)
    if all(step.cost is not None for step in path):
        title, y = "cost per item", np.array([step.cost for step in path], dtype=np.float64)
    lows, highs = zip(*(step.interval for step in path), strict=True)
    data = rows(
        **{
            "without": [clean(step.dropped[-1], 40) if step.dropped else "–" for step in path],
            f"Δ{short}": [step.difference for step in path],
            short: [step.loss for step in path],
            title: y,
            "low": lows,
            "high": highs,
            f"{trade_off.unit}s": sizes,
        }
    )
    layers = [
        *vega.reference(f"Δ{short}", 0.0),
        # In the order of the path, not of x.
        vega.layer(
            "line", data, {"order": {"field": f"{trade_off.unit}s", "type": "quantitative"}}
        ),
        vega.intervals(data),
        vega.points(data, size=9),
    ]
    return vega.chart(
        f"{title.capitalize()} and {short} of cheaper ensembles",
        layers,
        vega.numbers(f"Δ{short}", f"Δ{short} (95 % interval; right is worse)"),
        vega.numbers(title, title, domain=(0, 1.08 * float(y.max()))),
        height=340,
    )


def epochs(trajectory: Trajectory, smallest: int) -> dict[str, Spec]:
    """The distribution over ensemble sizes and the terms of the objective at each epoch."""
    epoch = np.arange(1, len(trajectory) + 1)
    size = np.arange(smallest, smallest + trajectory.sizes.shape[1])
    # A uniform distribution is shown half-way up the colour scale.
    high = min(max(float(trajectory.sizes.max()), 2 / len(size)), 1.0)
    sizes = vega.heatmap(
        "Probability of each ensemble size",
        trajectory.sizes.T[::-1],
        vega.names("epoch", epoch.tolist(), "epoch", labelAngle=0, labelOverlap=True),
        vega.names("size", size[::-1].tolist(), "ensemble size", labelOverlap=True),
        "probability",
        domain=(0, high),
        height=300,
    )
    charts = {"sizes": sizes}
    for name, title in LOSS_TERMS.items():
        data = rows(epoch=epoch, value=getattr(trajectory, name))
        lines = [vega.layer("line", data), vega.points(data, size=5)]
        charts[f"term-{name}"] = vega.chart(
            title, lines, vega.numbers("epoch", "epoch"), vega.numbers("value"), 190
        )
    return charts


def _on_scale(evaluation: Evaluation, q: Floats) -> dict[str, Spec]:
    """Ordinal: cumulative shares, and mean ratings; sets: how often each label is chosen."""
    p = evaluation.pooled.probabilities
    labels = [clean(name, 24) for name in evaluation.pooled.classes]
    means = [shares.mean(axis=0) for shares in (q, p)]
    source = np.repeat(list(SOURCES), len(labels))
    by_source = {"color": vega.colours("of", SOURCES)}
    if (places := evaluation.scale.positions) is not None:
        at_most = np.cumsum(means, axis=1).ravel()
        data = rows(of=source, point=labels * 2, share=at_most, _at=[*range(len(labels))] * 2)
        in_order = by_source | {"order": {"field": "_at", "type": "quantitative"}}
        ends = (places[0], places[-1])
        fields = ("mean of annotations", "mean of ensemble")
        cloud = _cloud(*fields, q @ places, p @ places, *ends)
        return {
            "cumulative": vega.chart(
                "Cumulative shares, mean over items",
                [vega.layer("line", data, in_order), vega.points(data, by_source, size=8)],
                vega.names_below("point", labels, "at most this point of the scale"),
                vega.numbers("share", "share", percent=True),
                height=340,
            ),
            "ratings": vega.chart(
                "Mean rating of annotations and ensemble",
                [vega.diagonal(*fields, *ends), *cloud],
                *_both_axes(*fields, *ends),
                height=340,
            ),
        }
    if not evaluation.scale.is_multi_label:
        return {}
    data = rows(of=source, label=labels * 2, share=np.ravel(means))
    return {
        "labels": vega.chart(
            "How often each label is chosen, mean over items",
            [vega.points(data, by_source, size=10)],
            vega.numbers("share", "share", domain=(0, 1.08 * float(np.max(means))), percent=True),
            vega.names("label", labels),
            height=max(110 + 30 * len(labels), 200),
        )
    }


def methods(scores: Sequence[Score]) -> Spec:
    """The headline metric of each method with its interval, EDO's in colour."""
    labels = [clean(score.name, 60) for score in scores]
    ours = {"condition": {"test": "datum._ours", "value": BLUE}, "value": MUTED}
    data = rows(method=labels, **_with_ends(scores), _ours=[is_ours(score) for score in scores])
    layers = [vega.intervals(data, {"color": ours}), vega.points(data, {"color": ours}, size=9)]
    return _headline_chart("method", scores[0], layers, labels)


def slices(parts: Sequence[Slice]) -> Spec:
    """The headline metric of the ensemble on each slice, beside uniform mean and constant."""
    labels = [f"{clean(part.name, 60)} ({part.items})" for part in parts]
    ours = [part.scores[0] for part in parts]
    shade = {"color": vega.colours("of", RIVALS | {"ensemble": BLUE})}
    layers = []
    for name in RIVALS:
        scores = [score for part in parts if (score := part.score(name.split()[0])) is not None]
        data = rows(slice=labels, **_with_ends(scores), of=name)
        layers.append(vega.points(data, shade, size=9, shape="diamond"))
    data = rows(slice=labels, **_with_ends(ours), of="ensemble")
    layers += [vega.intervals(data, shade), vega.points(data, shade, size=9)]
    return _headline_chart("slice", ours[0], layers, labels)


def _with_ends(scores: Sequence[Score]) -> dict[str, Sequence[float | None]]:
    """Columns with the headline metric of each score, and its interval."""
    values = [headline_value(score) for score in scores]
    ends = [score.intervals.get(score.headline, (None, None)) for score in scores]
    lows, highs = zip(*ends, strict=True)
    return {METRIC[scores[0].headline].short: values, "low": lows, "high": highs}


def _headline_chart(noun: str, score: Score, layers: Sequence[Spec], labels: Sequence[str]) -> Spec:
    metric = METRIC[score.headline]
    x, y = _metric_axis(score.headline), vega.names(noun, labels)
    height = 100 + 26 * len(labels)
    return vega.chart(f"{metric.title.capitalize()} of each {noun}", layers, x, y, height)


def _metric_axis(name: str) -> Spec:
    metric = METRIC[name]
    better = "higher" if metric.higher else "lower"
    return vega.numbers(metric.short, f"{metric.short} ({better} is better)")


def pareto(search: Search, x: str, y: str) -> Spec:
    """The trials by two metrics, linked between the views of the page."""
    trials = sorted(search.trials, key=lambda trial: trial.on_front)
    values = {METRIC[name].short: [trial.metrics[name] for trial in trials] for name in (x, y)}
    data = rows(
        trial=[trial.number for trial in trials],
        **values,
        diversity=[trial.sign for trial in trials],
        _front=[trial.on_front for trial in trials],
    )
    signs = {sign: SIGNS[sign] for sign in SIGNS if any(trial.sign == sign for trial in trials)}
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
        place = rows(**{METRIC[name].short: [search.chosen.metrics[name]] for name in (x, y)})
        ring = vega.points(place, size=20, color=INK, filled=False, strokeWidth=2, tooltip=None)
        layers.append(ring)
    title = f"{METRIC[x].short} and {METRIC[y].short} of the trials"
    return vega.chart(title, layers, _metric_axis(x), _metric_axis(y)) | {"params": vega.LINKS}


def _first_of(otherwise: float, values: dict[str, float]) -> Spec:
    """The value of the first test that holds."""
    tests = [{"test": test, "value": value} for test, value in values.items()]
    return {"condition": tests, "value": otherwise}


def correlations(correlated: Sequence[Correlation]) -> dict[str, Spec]:
    """A heat map of Spearman's ρ [parameters, metrics] for each sign."""
    return {
        f"correlations-{sign}": _correlation_chart(
            sign, [row for row in correlated if row.diversity == sign]
        )
        for sign in dict.fromkeys(row.diversity for row in correlated)
    }


def _correlation_chart(sign: str, correlated: Sequence[Correlation]) -> Spec:
    frame = pd.DataFrame([vars(row) for row in correlated])
    frame["text"] = [_with_stars(row) for row in correlated]
    parameters = list(dict.fromkeys(frame["parameter"]))
    metrics = [name for name in METRIC if name in set(frame["metric"])]
    rho, p_value, text = (
        frame.pivot(index="parameter", columns="metric", values=name).loc[parameters, metrics]
        for name in ("rho", "p_value", "text")
    )
    labels = [PARAMETERS.get(name, clean(name.replace("_", " "), 40)) for name in parameters]
    return vega.heatmap(
        f"{sign} ({count(int(frame['trials'].max()), 'trial')})",
        rho.to_numpy(),
        vega.names_below("metric", [METRIC[metric].short for metric in metrics]),
        vega.names("parameter", labels),
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


def reliability(curve: Reliability, ece: float | None = None) -> Spec:
    """Share of annotations against predicted probability; larger dots hold more points."""
    fields = ("predicted probability", "share of annotations")
    bins = dict(zip(fields, (curve.predicted, curve.observed), strict=True))
    ends = {"from": curve.low, "to": curve.high, "points": curve.count}
    data = rows(**bins, **ends, _area=_areas(curve.count, 14))
    layers = [vega.diagonal(*fields, 0, 1), vega.layer("line", data), vega.points(data, vega.AREA)]
    return vega.chart(
        f"Reliability (ECE {number(ece, 3)})", layers, *_both_axes(*fields, 0, 1), 340
    )


def entropies(predicted: Floats, annotated: Floats, max_entropy: float) -> Spec:
    """Histograms of the entropy of the annotations and of the ensemble's probabilities."""
    edges = np.linspace(0, max_entropy, BINS + 1)
    data: vega.Rows = []
    for source, values in zip(SOURCES, (annotated, predicted), strict=True):
        # Rounding may leave a value above the last edge.
        data += vega.histogram(
            np.clip(values, 0, max_entropy), edges, "entropy", "items", of=source
        )
    layers = [vega.columns(data, {"color": vega.colours("of", SOURCES)})]
    axes = vega.numbers("entropy", "entropy (nats)"), vega.numbers("items", "items", zero=True)
    return vega.chart("Entropy of annotations and ensemble", layers, *axes, 340)


def entropy_against_entropy(
    predicted: Floats, annotated: Floats, max_entropy: float, rho: float | None = None
) -> Spec:
    """A point per item, and the ensemble's mean entropy per tenth of the annotations'."""
    # Shares of a few annotators take few values, so points are moved apart a little.
    jitter = (np.arange(len(annotated)) * 0.6180339887 % 1 - 0.5) * 0.03 * max_entropy
    fields = ("entropy of annotations", "entropy of ensemble")
    layers = _cloud(*fields, annotated, predicted, 0.0, max_entropy, jitter)
    axes = _both_axes(*fields, 0.0, max_entropy, unit=" (nats)")
    return vega.chart(f"Entropy correlation (ρ = {number(rho, 2)})", layers, *axes, 340)


def _cloud(
    x_field: str, y_field: str, x: Floats, y: Floats, low: float, high: float, jitter: Any = 0.0
) -> list[Spec]:
    """A point per item, and the means of y per tenth of x, which is between low and high."""
    drawn = np.linspace(0, max(len(x) - 1, 0), min(len(x), POINTS)).astype(np.int64)
    items = rows(**{x_field: (x + jitter)[drawn], y_field: y[drawn]})
    at, mean, size = binned_means(x - low, y - low, high - low)
    means = rows(
        **{x_field: at + low, y_field: mean + low, "items": size, "_area": _areas(size, 8)}
    )
    return [
        vega.points(items, size=5, opacity=0.28, tooltip=None),
        vega.layer("line", means, color=INK),
        vega.points(means, vega.AREA, color=INK),
    ]


def _both_axes(x: str, y: str, low: float, high: float, unit: str = "") -> tuple[Spec, Spec]:
    margin = 0.04 * (high - low)
    ends = (low - margin, high + margin)
    return vega.numbers(x, x + unit, domain=ends), vega.numbers(y, y + unit, domain=ends)


def binned_means(x: Floats, y: Floats, largest: float) -> tuple[Floats, Floats, Ints]:
    """Means of x and y and the number of items per tenth of x, where there are enough items."""
    tenth = np.minimum((x / largest * 10).astype(np.int64), 9)
    n = np.bincount(tenth, minlength=10)
    enough = n >= min(MIN_ITEMS, int(n.max()))
    means = [np.bincount(tenth, weights=v, minlength=10)[enough] / n[enough] for v in (x, y)]
    return means[0], means[1], n[enough].astype(np.int64)


def members(distances: Floats, member_names: Sequence[str]) -> Spec:
    """The mean distances [K, K], similar members side by side."""
    order = clustered(distances)
    values = distances[np.ix_(order, order)]
    labels = [clean(member_names[k]) for k in order]
    text = (
        {"_text": [[f"{v:.2f}" for v in row] for row in values]} if len(order) <= NUMBERED else {}
    )
    high = max(float(distances.max()), 1e-4)
    return _matrix(
        "Mean distance between members", values, labels, "distance", domain=(0, high), **text
    )


def clustered(distances: Floats) -> Ints:
    """An order that puts similar members side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 3:
        return np.arange(len(distances), dtype=np.int64)
    condensed = squareform(distances, checks=False)
    leaves = leaves_list(linkage(condensed, "average", optimal_ordering=True))
    return leaves.astype(np.int64)


def diagnosis(content: dict[str, Any]) -> dict[str, Spec]:
    """The charts that a diagnosis (`edokit.diagnose`, as a dictionary) has numbers for."""
    scale = Declared(content.get("scale") or "nominal").on(content.get("classes") or ())
    charts = {
        "variance": _variance(content.get("variance") or {}),
        "permutations": _permutations((content.get("test") or {}).get("group_item") or {}),
        "annotators": _annotators(content, scale),
        "agreement": _agreement((content.get("agreement") or {}).get("matrix") or {}, scale.span),
    }
    return {name: spec for name, spec in charts.items() if spec is not None}


def _variance(components: dict[str, Any]) -> Spec | None:
    """The share of each component in the variance of the labels."""
    parts = {name: components.get(key) or {} for key, name in PARTS.items()}
    parts = {name: part for name, part in parts.items() if part.get("share") is not None}
    if not parts:
        return None
    ends = {key: [part[key] for part in parts.values()] for key in ("share", "low", "high")}
    data = rows(component=list(parts), **ends)
    return vega.chart(
        "Components of the label variance",
        [
            vega.layer("bar", data, height={"band": 0.6}, tooltip=vega.TIPS),
            vega.intervals(data, color=INK, tooltip=None),
        ],
        vega.numbers("share", "share of the label variance", percent=True, zero=True),
        vega.names("component", list(parts)),
        height=70 + 34 * len(parts),
    )


def _permutations(test: dict[str, Any]) -> Spec | None:
    """The test statistic, and its distribution under permutation."""
    null = [value for value in test.get("null") or [] if value is not None]
    statistic = test.get("statistic")
    if len(null) < 2 or statistic is None or test.get("p", 1) is None:
        return None
    bins = vega.histogram(null, np.histogram_bin_edges(null, 24), "difference", "permutations")
    side = "right" if statistic > max(null) else "left"
    observed = vega.reference("difference", float(statistic), "observed", align=side)
    return vega.chart(
        "Permutation test of groups × items",
        [vega.columns(bins, color=MUTED), *observed],
        vega.numbers("difference", "difference between groups (permuted labels)"),
        vega.numbers("permutations", "permutations", zero=True),
    )


def _annotators(content: dict[str, Any], scale: Scale) -> Spec | None:
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
    title = "Annotators"
    if scale.span is not None:
        x, y = shares @ np.array(scale.positions), (1 - agreement) * scale.span
        axes = (
            vega.numbers("mean rating", "mean rating"),
            vega.numbers("distance", "distance from the others"),
        )
    else:
        # Of two classes, which differ alike, the last.
        column = len(classes) - 1
        if not scale.is_binary(len(classes)):
            title += ", by the label they differ most in"
            mean = totals @ shares / totals.sum()
            column = int((totals @ (shares - mean) ** 2).argmax())
        x, y = shares[:, column], agreement
        label = f"share of label “{clean(classes[column], 24)}”"
        agreed = vega.numbers("agreement", "agreement with the others", percent=True)
        axes = vega.numbers("share", label, percent=True), agreed
    places = {axis["field"]: values for axis, values in zip(axes, (x, y), strict=True)}
    return vega.chart(title, [_by_group(people, places, totals)], *axes)


def _by_group(people: Sequence[dict[str, Any]], places: dict[str, Floats], totals: Ints) -> Spec:
    """Points in the colour of their group, if there are several."""
    group_of = [clean(person.get("group") or "no group", 24) for person in people]
    groups = sorted(set(group_of) - {"no group"})
    shades = {group: NOMINAL[k % len(NOMINAL)] for k, group in enumerate(groups)}
    if len(groups) < len(set(group_of)):
        shades["no group"] = MUTED
    data = rows(
        annotator=[clean(person.get("annotator", ""), 24) for person in people],
        **places,
        annotations=totals,
        group=group_of,
        _area=_areas(totals, 12),
    )
    colour = {"color": vega.colours("group", shades)} if len(shades) > 1 else {}
    return vega.points(data, vega.AREA | colour, opacity=0.75)


def _agreement(matrix: dict[str, Any], span: float | None) -> Spec | None:
    """How often two annotators agree on the items they share, or how far apart they rate."""
    labels = [clean(name, 18) for name in matrix.get("annotators") or []]
    table = matrix.get("agreement") or []
    if len(labels) < 3 or len(table) != len(labels):
        return None
    values = np.array(table, dtype=np.float64)
    values = values if span is None else (1 - values) * span
    low, high = (0.0, 1.0) if np.isnan(values).all() else (np.nanmin(values), np.nanmax(values))
    name = "agreement" if span is None else "distance"
    return _matrix(
        f"{name.capitalize()} on shared items",
        values,
        labels,
        name,
        domain=(float(low), max(float(high), float(low) + 1e-4)),
        percent=span is None,
        **{"shared items": matrix["shared"]},
    )


def _matrix(title: str, values: Floats, labels: Sequence[str], value: str, **options: Any) -> Spec:
    """A heat map of pairs."""
    x, y = vega.names_below("and", labels), vega.names("between", labels)
    height = min(200 + 28 * len(labels), 740)
    return vega.heatmap(title, values, x, y, value, height=height, **options)


def _areas(n: Ints, growth: float) -> Floats:
    """Areas of dots, in square pixels, that grow with the number."""
    areas: Floats = (6 + growth * np.sqrt(n / max(int(n.max()), 1))) ** 2
    return areas
