"""Every chart of a run, built once for the page and for papers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edokit._types import Floats, Ints
from edokit.ensemble import EDOEnsemble
from edokit.metrics import Reliability
from edokit.report.chart import (
    BLUE,
    CLASSES,
    DIVERGING,
    INK,
    MUTED,
    ORANGE,
    SIGNS,
    Axis,
    Bars,
    Chart,
    Heatmap,
    Line,
    Points,
)
from edokit.report.data import ReportData
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, count, number, percent
from edokit.report.methods import Row, method_rows
from edokit.report.trials import Panel, Search, Trial
from edokit.solvers import Trajectory

TERMS = {
    "f1": "1 − soft F1",
    "ce": "Cross-entropy",
    "div": "Diversity",
    "reg": "Squared norm of the weights",
}
"""Terms of the objective, with their titles."""
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
VIEWS = {"f1-ce": ("f1", "ce"), "f1-md": ("f1", "md"), "ce-md": ("ce", "md")}
"""The linked views of the Pareto front."""
PARTS = {
    "item": "items",
    "annotator": "annotators",
    "group_item": "groups × items",
    "rest": "residual",
}
"""Components of the label variance."""
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
        charts |= {f"pareto-{view}": pareto(data.search, view) for view in VIEWS}
        charts |= correlations(data.search.correlations)
    if data.ensemble is not None:
        charts["weights"] = weights(data.ensemble)
        trajectory = data.ensemble.trajectory_
        if trajectory is not None and len(trajectory):
            charts["sizes"] = sizes(
                trajectory, int(data.ensemble.settings_.get("min_members") or 1)
            )
            charts |= {f"term-{name}": term(trajectory, name) for name in TERMS}
    if data.evaluation is not None:
        charts |= calibration(data.evaluation)
        if len(data.evaluation.predictions.members) > 1:
            charts["members"] = members(
                data.evaluation.distances, data.evaluation.predictions.members
            )
    rows = method_rows(data)
    if rows:
        charts["methods"] = methods(rows)
    return charts | diagnosis(data.diagnosis or {})


# The fitted ensemble and the methods it is compared with.


def weights(ensemble: EDOEnsemble) -> Chart:
    """A bar per member, largest weight first."""
    order = np.argsort(-ensemble.weights_, kind="stable")
    values = ensemble.weights_[order]
    names = [ensemble.members_[k] for k in order]
    bars = Bars(
        at=range(len(order)),
        values=values,
        horizontal=True,
        text=[f"{weight:.3f}" if weight > 0 else "0" for weight in values],
        hover=[
            f"{clean(name, 40)}\nweight {weight:.4f}\nown cross-entropy {ce:.4f}"
            for name, weight, ce in zip(names, values, ensemble.member_ce_[order], strict=True)
        ],
    )
    return Chart(
        "Weight of each member",
        [bars, Line([1 / len(order)])],
        x=Axis("weight (dotted: equal weights)", range=(0, max(float(values.max()) * 1.12, 0.05))),
        y=Axis(labels=names),
        height=90 + 22 * len(order),
    )


def sizes(trajectory: Trajectory, smallest: int) -> Chart:
    """The distribution over ensemble sizes at each epoch."""
    shares = trajectory.sizes.T
    # A uniform distribution is shown half-way up the colour scale.
    high = min(max(float(shares.max()), 2 / len(shares)), 1.0)
    hover = [
        [f"epoch {e + 1}\nsize {smallest + s}: {share:.3f}" for e, share in enumerate(row)]
        for s, row in enumerate(shares)
    ]
    return Chart(
        "Probability of each ensemble size",
        [Heatmap(shares.tolist(), 0, high, title="p", origin=(1, smallest), hover=hover)],
        x=Axis("epoch", integer=True),
        y=Axis("ensemble size", integer=True),
        height=300,
    )


def term(trajectory: Trajectory, name: str) -> Chart:
    """One term of the objective over the epochs."""
    values = getattr(trajectory, name)
    epochs = range(1, len(trajectory) + 1)
    hover = [f"epoch {epoch}: {value:.5f}" for epoch, value in zip(epochs, values, strict=True)]
    return Chart(
        TERMS[name],
        [Points(epochs, values, size=5, line=True, hover=hover)],
        x=Axis("epoch", ticks=6),
        y=Axis(ticks=4),
        height=190,
    )


def methods(rows: Sequence[Row]) -> Chart:
    """The cross-entropy of each method with its interval, EDO's in colour."""
    marks = []
    for ours, colour in ((False, MUTED), (True, BLUE)):
        held = [(at, row) for at, row in enumerate(rows) if row.ours is ours]
        ends = [row.ends or (row.ce, row.ce) for _, row in held]
        marks.append(
            Points(
                [row.ce for _, row in held],
                [at for at, _ in held],
                colour=colour,
                size=9,
                interval=([low for low, _ in ends], [high for _, high in ends]),
                hover=[f"{clean(row.name, 40)}: {row.ce:.4f}" for _, row in held],
            )
        )
    return Chart(
        "Cross-entropy of each method",
        marks,
        x=Axis("CE (lower is better)"),
        y=Axis(labels=[clean(row.name, 20) for row in rows]),
        height=80 + 26 * len(rows),
    )


# The search.


def pareto(search: Search, view: str) -> Chart:
    """One view of the trials; all views hold the same trials in the same order."""
    x, y = VIEWS[view]
    marks = []
    for sign in SIGNS:
        for on_front in (False, True):
            trials = [t for t in search.trials if t.sign == sign and t.on_front == on_front]
            if trials:
                marks.append(
                    Points(
                        [getattr(trial, x) for trial in trials],
                        [getattr(trial, y) for trial in trials],
                        colour=SIGNS[sign],
                        size=10 if on_front else 7,
                        opacity=0.95 if on_front else 0.28,
                        symbol="diamond" if sign == "suppress" else "circle",
                        name=sign if on_front else "",
                        hover=[_trial(trial) for trial in trials],
                        ids=[trial.number for trial in trials],
                    )
                )
    chosen = search.chosen
    if chosen is not None:
        at = [getattr(chosen, x)], [getattr(chosen, y)]
        marks.append(Points(*at, colour=INK, size=20, symbol="ring", name="chosen"))
    titles = {"f1": "F1 (higher is better)", "ce": "CE (lower is better)"}
    titles["md"] = "MD (lower is better)"
    return Chart(
        f"{x.upper()} and {y.upper()} of the trials",
        marks,
        x=Axis(titles[x], ticks=6),
        y=Axis(titles[y], ticks=6),
    )


def _trial(trial: Trial) -> str:
    state = "chosen" if trial.chosen else "on the front" if trial.on_front else "dominated"
    metrics = f"F1 {trial.f1:.4f} · CE {trial.ce:.4f} · MD {trial.md:.4f}"
    settings = [f"{clean(name, 24)}: {clean(value, 24)}" for name, value in trial.settings.items()]
    return "\n".join([f"Trial {trial.number}, {state}", metrics, *settings])


def correlations(panels: Sequence[Panel]) -> dict[str, Chart]:
    """A heat map of Spearman's ρ [settings, metrics] for each sign."""
    return {f"correlations-{panel.sign}": _correlations(panel) for panel in panels}


def _correlations(panel: Panel) -> Chart:
    settings = [PARAMETERS.get(name, name.replace("_", " ")) for name in panel.settings]
    metrics = [name.upper() for name in panel.metrics]
    text, hover = [], []
    for setting, rhos, ps in zip(settings, panel.rho, panel.p_values, strict=True):
        cells = list(zip(metrics, rhos, ps, strict=True))
        text.append([with_stars(rho, p) for _, rho, p in cells])
        hover.append(
            [
                f"{clean(setting, 40)} and {metric}\nρ = {number(rho, 3)}"
                + ("" if p is None else f", p = {p:.3g}")
                for metric, rho, p in cells
            ]
        )
    return Chart(
        f"{panel.sign} ({count(panel.trials, 'trial')})",
        [Heatmap(panel.rho, -1, 1, DIVERGING, "ρ", text=text, hover=hover)],
        x=Axis(labels=metrics),
        y=Axis(labels=settings),
        height=110 + 32 * len(settings),
    )


def with_stars(rho: float | None, p: float | None) -> str:
    """``0.42**``: one star for p below 0.05, two below 0.01, three below 0.001."""
    if rho is None or math.isnan(rho):
        return "–"
    stars = "" if p is None else "*" * sum(p < bound for bound in (0.05, 0.01, 0.001))
    return f"{number(rho, 2)}{stars}"


# The evaluated items.


def calibration(evaluation: Evaluation) -> dict[str, Chart]:
    """Reliability and entropies, where the items have annotations."""
    if evaluation.reliability is None or evaluation.annotations is None:
        return {}
    pair = (evaluation.entropy, evaluation.annotations.entropy, evaluation.max_entropy)
    return {
        "reliability": reliability(evaluation.reliability, evaluation.metrics.get("ece")),
        "entropies": entropies(*pair),
        "entropy-entropy": entropy_against_entropy(*pair, evaluation.entropy_correlation),
    }


def reliability(curve: Reliability, ece: float | None = None) -> Chart:
    """Share of annotations against predicted probability; larger dots hold more points."""
    hover = [
        f"predicted {p:.3f}, annotated {q:.3f}\n{n} points between {low:.3f} and {high:.3f}"
        for p, q, n, low, high in zip(
            curve.predicted, curve.observed, curve.count, curve.low, curve.high, strict=True
        )
    ]
    size = _dots(curve.count, 14)
    return Chart(
        f"Reliability (ECE {number(ece, 3)})",
        [
            Line([0, 1], [0, 1]),
            Points(curve.predicted, curve.observed, size=size, line=True, hover=hover),
        ],
        x=Axis("predicted probability", range=(-0.03, 1.03)),
        y=Axis("share of annotations", range=(-0.03, 1.03)),
        height=340,
    )


def entropies(predicted: Floats, annotated: Floats, max_entropy: float) -> Chart:
    """Histograms of the entropy of the annotations and of the ensemble's probabilities."""
    edges = np.linspace(0, max_entropy, BINS + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    bars = []
    for name, values, colour in (
        ("annotations", annotated, ORANGE),
        ("ensemble", predicted, BLUE),
    ):
        # Rounding may leave a value above the last edge.
        items = np.histogram(np.clip(values, 0, max_entropy), edges)[0]
        hover = [f"{name}: {n} items at {at:.2f}" for n, at in zip(items, middle, strict=True)]
        bars.append(Bars(middle, items, colour, 0.6, width=edges[1] * 0.94, name=name, hover=hover))
    return Chart(
        "Entropy of annotations and ensemble",
        bars,
        x=Axis("entropy (nats)"),
        y=Axis("items"),
        height=340,
        legend=True,
    )


def entropy_against_entropy(
    predicted: Floats, annotated: Floats, max_entropy: float, rho: float | None = None
) -> Chart:
    """A point per item, and the ensemble's mean entropy per tenth of the annotations'."""
    shown = evenly_spaced(len(annotated), POINTS)
    # Shares of a few annotators take few values, so points are moved apart a little.
    jitter = (np.arange(len(annotated)) * 0.6180339887 % 1 - 0.5) * 0.03 * max_entropy
    items = Points((annotated + jitter)[shown], predicted[shown], size=5, opacity=0.28)
    at, mean, n = binned_means(annotated, predicted, max_entropy)
    hover = [
        f"annotations {x:.2f}, ensemble {y:.2f} on average ({count(int(k), 'item')})"
        for x, y, k in zip(at, mean, n, strict=True)
    ]
    means = Points(at, mean, INK, size=_dots(n, 8), line=True, hover=hover)
    ends = (-0.04 * max_entropy, 1.04 * max_entropy)
    return Chart(
        f"Entropy correlation (ρ = {number(rho, 2)})",
        [items, means],
        x=Axis("entropy of annotations (nats)", range=ends),
        y=Axis("entropy of ensemble (nats)", range=ends),
        height=340,
    )


def binned_means(x: Floats, y: Floats, largest: float) -> tuple[Floats, Floats, Ints]:
    """Means of x and y and the number of items per tenth of x, where there are enough items."""
    tenth = np.minimum((x / largest * 10).astype(np.int64), 9)
    n = np.bincount(tenth, minlength=10)
    enough = n >= min(MIN_ITEMS, int(n.max()))
    means = [np.bincount(tenth, weights=v, minlength=10)[enough] / n[enough] for v in (x, y)]
    return means[0], means[1], n[enough].astype(np.int64)


def evenly_spaced(n: int, most: int) -> Ints:
    """At most so many positions out of ``n``."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).astype(np.int64))


def members(distances: Floats, names: Sequence[str]) -> Chart:
    """The mean distances [K, K], similar members side by side below their dendrogram."""
    order, tree = clustered(distances)
    shown = distances[np.ix_(order, order)]
    names = [clean(names[k], 20) for k in order]
    text = [[f"{gap:.2f}" if gap else "" for gap in row] for row in shown]
    return Chart(
        "Mean distance between members",
        [
            Heatmap(
                shown.tolist(),
                0,
                max(float(distances.max()), 1e-4),
                title="MD",
                text=text if len(order) <= NUMBERED else None,
                hover=_pairs(names, [[f"distance {gap:.4f}" for gap in row] for row in shown]),
                tree=tree,
            )
        ],
        x=Axis(labels=names),
        y=Axis(labels=names),
        height=min(200 + 30 * len(order), 760),
    )


def clustered(distances: Floats) -> tuple[Ints, list[tuple[list[float], list[float]]]]:
    """An order that puts similar members side by side, and the brackets of the dendrogram."""
    from scipy.cluster.hierarchy import dendrogram, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(distances) < 3:
        return np.arange(len(distances), dtype=np.int64), []
    condensed = squareform(distances, checks=False)
    tree = dendrogram(optimal_leaf_ordering(linkage(condensed, "average"), condensed), no_plot=True)
    brackets = [
        ([(x - 5) / 10 for x in xs], [float(y) for y in ys])
        for xs, ys in zip(tree["icoord"], tree["dcoord"], strict=True)
    ]
    return np.array(tree["leaves"], dtype=np.int64), sorted(brackets)


# The diagnosis of the annotations.


def diagnosis(found: dict[str, Any]) -> dict[str, Chart]:
    """The charts that a diagnosis (`edokit.diagnose`, as a dictionary) has numbers for."""
    charts = {
        "variance": _variance(found.get("variance") or {}),
        "permutations": _permutations((found.get("test") or {}).get("group_item") or {}),
        "annotators": _annotators(found),
        "agreement": _agreement((found.get("agreement") or {}).get("matrix") or {}),
    }
    return {name: chart for name, chart in charts.items() if chart is not None}


def _variance(components: dict[str, Any]) -> Chart | None:
    """The share of each component in the variance of the labels."""
    names, shares, lows, highs = [], [], [], []
    for key, name in PARTS.items():
        part = components.get(key) or {}
        if part.get("share") is not None:
            names.append(name)
            shares.append(float(part["share"]))
            lows.append(float(part.get("low") or shares[-1]))
            highs.append(float(part.get("high") or shares[-1]))
    if not names:
        return None
    hover = [
        f"{percent(share, 1)} ({percent(low, 1)} to {percent(high, 1)})"
        for share, low, high in zip(shares, lows, highs, strict=True)
    ]
    at = range(len(names))
    return Chart(
        "Components of the label variance",
        [Bars(at, shares, horizontal=True, width=0.6, interval=(lows, highs), hover=hover)],
        x=Axis("share of the label variance", percent=True),
        y=Axis(labels=names),
        height=70 + 34 * len(names),
    )


def _permutations(test: dict[str, Any]) -> Chart | None:
    """The test statistic, and its distribution under permutation."""
    null = [value for value in test.get("null") or [] if value is not None]
    statistic = test.get("statistic")
    if len(null) < 2 or statistic is None:
        return None
    n, edges = np.histogram(null, bins=24)
    bars = Bars(
        (edges[:-1] + edges[1:]) / 2,
        n,
        MUTED,
        0.6,
        width=float(edges[1] - edges[0]) * 0.95,
        hover=[count(int(one), "permutation") for one in n],
    )
    return Chart(
        "Permutation test of groups × items",
        [bars, Line([float(statistic)], colour=BLUE, dotted=False, label="observed")],
        x=Axis("difference between groups (permuted labels)"),
        y=Axis("permutations"),
    )


def _annotators(found: dict[str, Any]) -> Chart | None:
    """A point per annotator: how often they choose the last class and agree with others."""
    classes = [str(name) for name in found.get("classes") or []]
    known = [
        one
        for one in found.get("people") or []
        if one.get("agreement") is not None and one.get("shares")
    ]
    if len(known) < 2 or len(classes) < 2:
        return None
    totals = np.array([int(one.get("annotations") or 1) for one in known])
    size = _dots(totals, 12)
    # Annotators without a group are drawn first, below the others.
    groups = sorted({str(one.get("group") or "") for one in known})
    marks = []
    for position, group in enumerate(groups):
        inside = [k for k, one in enumerate(known) if str(one.get("group") or "") == group]
        x = [float(known[k]["shares"].get(classes[-1]) or 0.0) for k in inside]
        y = [float(known[k]["agreement"]) for k in inside]
        hover = [
            f"{clean(known[k].get('annotator', ''), 24)}: {count(int(totals[k]), 'annotation')}\n"
            f"chooses it {percent(share, 1)}, agreement {percent(agreement, 1)}"
            for k, share, agreement in zip(inside, x, y, strict=True)
        ]
        colour = MUTED if len(groups) > 1 else BLUE
        marks.append(
            Points(
                x,
                y,
                CLASSES[position % len(CLASSES)] if group else colour,
                size[inside],
                opacity=0.75,
                name=group or "no group",
                hover=hover,
            )
        )
    return Chart(
        "Annotators",
        marks,
        x=Axis(f"share of label “{clean(classes[-1], 24)}”", percent=True),
        y=Axis("agreement with the others", percent=True),
        legend=len(groups) > 1,
    )


def _agreement(matrix: dict[str, Any]) -> Chart | None:
    """How often two annotators agree on the items they share."""
    names = [clean(name, 18) for name in matrix.get("annotators") or []]
    values = matrix.get("agreement") or []
    if len(names) < 3 or len(values) != len(names):
        return None
    shared = matrix.get("shared") or [[None] * len(names)] * len(names)
    known = [value for row in values for value in row if value is not None]
    text = [
        [f"agree on {percent(a, 1)} of {n} shared items" for a, n in zip(row, ns, strict=True)]
        for row, ns in zip(values, shared, strict=True)
    ]
    low, high = min(known, default=0.0), max(known, default=1.0)
    return Chart(
        "Agreement on shared items",
        [Heatmap(values, low, max(high, low + 1e-4), percent=True, hover=_pairs(names, text))],
        x=Axis(labels=names),
        y=Axis(labels=names),
        height=min(200 + 26 * len(names), 700),
    )


def _pairs(names: Sequence[str], text: Sequence[Sequence[str]]) -> list[list[str]]:
    """A hover text for each pair of names."""
    return [
        [f"{row} and {column}\n{one}" for column, one in zip(names, ones, strict=True)]
        for row, ones in zip(names, text, strict=True)
    ]


def _dots(n: Ints, growth: float) -> Floats:
    """Diameters whose area grows with the number."""
    sizes: Floats = 6 + growth * np.sqrt(n / max(int(n.max()), 1))
    return sizes
