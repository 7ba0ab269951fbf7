"""Calibration, and all metrics of one set of predictions at once or as sums over shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, check_number, one_of, option
from edokit._types import Codes, Floats, Ints
from edokit.metrics import scores
from edokit.scales import NOMINAL, Scale

# Bins of equal width.
BINS = 10
# A share such as 0.3 belongs to the bin that starts there, even if rounding left it just below.
NUDGE = 1e-6


@dataclass(frozen=True)
class Reliability:
    """A reliability curve; every array [B] is over the bins that are not empty.

    Attributes
    ----------
    low, high : ndarray
        Edges of each bin.
    predicted : ndarray
        Mean predicted probability in the bin.
    observed : ndarray
        Mean share of annotators in the bin.
    count : ndarray
        Number of points in the bin.
    """

    low: Floats
    high: Floats
    predicted: Floats
    observed: Floats
    count: Ints

    @property
    def ece(self) -> float:
        """Mean |predicted − observed|, each bin weighted by its points."""
        gaps = np.abs(self.predicted - self.observed)
        return float(gaps @ self.count / self.count.sum())


def reliability_curve(
    p: npt.ArrayLike, q: npt.ArrayLike, bins: int = BINS, *, scale: Scale = NOMINAL
) -> Reliability:
    """Reliability curve of predicted probabilities against soft labels.

    Each (item, class) is one point (p_ic, q_ic); of two classes only the second counts, since the
    first mirrors it.

    Parameters
    ----------
    p, q : array-like of shape [N, C], or [N, L] for sets
        Predicted probabilities and soft labels.
    bins : int, default=10
        Number of bins of p, all of equal width. An edge belongs to the bin above.
    scale : Scale, default=NOMINAL
        The answer scale.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> curve = reliability_curve([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]], bins=2)
    >>> curve.predicted, curve.observed
    (array([0.2, 0.6]), array([0. , 0.5]))
    """
    check_number("bins", bins, 1, whole=True)
    points, shares = _points(*scores.pair(p, q, scale), scale)
    index, edges = _bin_of(points, bins).ravel(), np.linspace(0, 1, bins + 1)
    count = np.bincount(index, minlength=bins)
    filled = count > 0
    predicted, observed = (
        np.bincount(index, weights=values.ravel(), minlength=bins)[filled] / count[filled]
        for values in (points, shares)
    )
    ends = edges[:-1][filled], edges[1:][filled]
    return Reliability(*ends, predicted, observed, count[filled].astype(np.int64))


def ece(p: npt.ArrayLike, q: npt.ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error against soft labels.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    bins : int, default=10
        Number of calibration bins, as for `reliability_curve`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(ece([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.15
    """
    return reliability_curve(p, q, bins).ece


def _gap_parts(p: Floats, q: Floats, y: Ints, scale: Scale) -> Floats:
    """Each item's part in each bin's gap [N, B]: ECE = Σ_b |Σ_i parts[i, b]| / N."""
    points, shares = _points(p, q, scale)
    cell = _bin_of(points, BINS) + BINS * np.arange(len(p))[:, None]
    gaps = (points - shares) / points.shape[1]
    parts = np.bincount(cell.ravel(), weights=gaps.ravel(), minlength=len(p) * BINS)
    return parts.astype(np.float64, copy=False).reshape(len(p), BINS)


def _points(p: Floats, q: Floats, scale: Scale) -> tuple[Floats, Floats]:
    return (p[:, 1:], q[:, 1:]) if scale.is_binary(p.shape[1]) else (p, q)


def _bin_of(points: Floats, bins: int) -> npt.NDArray[np.intp]:
    """The bin of each point."""
    return np.minimum((points * bins + NUDGE).astype(np.intp), bins - 1)


# --- Metrics by name ------------------------------------------------------------------------------

# Of p, q and y, one value per item [N] or several [N, m], whose sums make a metric.
Parts = Callable[[Floats, Floats, Ints, Scale], Floats]


def _mean(sums: Any, items: Any) -> Any:
    return sums / items


class Metric(NamedTuple):
    """A metric: how it is called, and how it follows from sums over items.

    Attributes
    ----------
    short : str
        In the heading of a column.
    title : str
    parts : callable or None
        Parts of each item, from p, q, y and the scale; None where it is no function of sums.
    value : callable
        The metric from the sums of the parts [..., m] and the number of items.
    higher : bool
        Whether higher values are better.
    hard : bool
        Whether it is about hard labels alone; the best answer is then y, else q.
    """

    short: str
    title: str
    parts: Parts | None
    value: Callable[[Any, Any], Any] = _mean
    higher: bool = False
    hard: bool = False

    @property
    def arrow(self) -> str:
        """Where better values are."""
        return "↑" if self.higher else "↓"

    @property
    def label(self) -> str:
        """``CE ↓``."""
        return f"{self.short} {self.arrow}"

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of one value per item."""
        return self.parts is not None and self.value is _mean


def _by_row(values: Callable[[Floats, Floats, Ints], Floats]) -> Parts:
    """Values of distributions, averaged over the rows of an item."""

    def per_item(p: Floats, q: Floats, y: Ints, scale: Scale) -> Floats:
        rows = values(scale.rows(p), scale.rows(q), scale.row_codes(y))
        return scale.per_item(rows, len(p))

    return per_item


def _on_scale(values: Callable[[Floats, Floats, Floats], Floats]) -> Parts:
    """Values of distributions on an ordinal scale."""
    return lambda p, q, y, scale: values(p, q, np.array(scale.positions))


def _macro_parts(p: Floats, q: Floats, y: Ints, scale: Scale) -> Floats:
    """Whether each class is rightly predicted, and in how many of ŷ and y it occurs [N, 2C]."""
    predicted, hard = (scale.indicators(codes, p.shape[1]) for codes in (scale.hard(p), y))
    return np.hstack([predicted & hard, predicted.astype(np.float64) + hard])


def _macro_value(sums: Any, items: Any) -> Any:
    """The mean over the classes that occur; sets that are all empty, as predicted, are right."""
    hits, occurrences = np.split(sums, 2, axis=-1)
    count = (occurrences > 0).sum(axis=-1)
    by_class = 2 * hits / np.maximum(occurrences, 1.0)
    return np.where(count > 0, by_class.sum(axis=-1) / np.maximum(count, 1), 1.0)


def _overlap_value(sums: Any, items: Any) -> Any:
    shared, total = sums[..., 0], sums[..., 1]
    return np.where(total > 0, 2 * shared / np.where(total > 0, total, 1.0), 1.0)


_jsd = _by_row(lambda p, q, y: scores.jensen_shannon(p, q))
# All metrics by name, in the order of every table.
METRIC: dict[str, Metric] = {
    "f1": Metric(
        "F1",
        "accuracy (micro-F1)",
        _by_row(lambda p, q, y: scores.right(p, y)),
        higher=True,
        hard=True,
    ),
    "macro_f1": Metric("macro-F1", "macro-F1", _macro_parts, _macro_value, higher=True, hard=True),
    "exact_match": Metric(
        "exact",
        "exact match",
        lambda p, q, y, scale: (scale.hard(p) == y).all(axis=1).astype(np.float64),
        higher=True,
        hard=True,
    ),
    "label_error": Metric(
        "error", "label error", lambda p, q, y, scale: np.abs(scale.hard(p) - q).mean(axis=1)
    ),
    "ce": Metric("CE", "cross-entropy", _by_row(lambda p, q, y: scores.cross_entropy(p, q))),
    "rps": Metric("RPS", "ranked probability score", _on_scale(scores.ranked_probability)),
    "w1": Metric("W1", "Wasserstein distance", _on_scale(scores.wasserstein)),
    "mad": Metric("MAD", "mean absolute distance", _on_scale(scores.absolute_distance)),
    "md": Metric("MD", "Manhattan distance", _by_row(lambda p, q, y: scores.manhattan(p, q))),
    "bs": Metric("BS", "Brier score", _by_row(lambda p, q, y: scores.brier(p, q))),
    "jsd": Metric("JSD", "Jensen–Shannon divergence", _jsd),
    "soft_f1": Metric(
        "soft F1",
        "soft micro-F1",
        lambda p, q, y, scale: np.column_stack([np.minimum(p, q).sum(axis=1), (p + q).sum(axis=1)]),
        _overlap_value,
        higher=True,
    ),
    "po_jsd": Metric(
        "PO-JSD",
        "positively oriented JSD",
        _jsd,
        lambda sums, items: 1 - sums / items / np.log(2),
        higher=True,
    ),
    "entropy_correlation": Metric("ρ(H)", "entropy correlation", None, higher=True),
    "ece": Metric(
        "ECE",
        "calibration error to shares",
        _gap_parts,
        lambda gaps, items: np.abs(gaps).sum(axis=-1) / items,
    ),
}
# Metrics of one kind of scale; the others are of all.
_ONLY = {
    "exact_match": "multi-label",
    "label_error": "multi-label",
    "rps": "ordinal",
    "w1": "ordinal",
    "mad": "ordinal",
}
_MAIN = {
    "nominal": ("f1", "ce", "md", "bs"),
    "ordinal": ("f1", "ce", "rps", "w1"),
    "multi-label": ("f1", "ce", "md", "exact_match"),
}


def metrics_of(scale: Scale = NOMINAL) -> tuple[str, ...]:
    """Return the names of all metrics of an answer scale, in the order of every table.

    Examples
    --------
    >>> metrics_of(Scale("ordinal", (1, 2, 3)))[:6]
    ('f1', 'macro_f1', 'ce', 'rps', 'w1', 'mad')
    """
    return tuple(name for name in METRIC if _ONLY.get(name, scale.kind) == scale.kind)


def main_metrics(scale: Scale = NOMINAL) -> tuple[str, ...]:
    """Return the four metrics of comparisons on an answer scale.

    Examples
    --------
    >>> main_metrics()
    ('f1', 'ce', 'md', 'bs')
    """
    return _MAIN[scale.kind]


def search_metrics(scale: Scale = NOMINAL) -> tuple[str, ...]:
    """Return what a search optimises on an answer scale: F1, the headline metric, a distance.

    Examples
    --------
    >>> search_metrics(Scale("ordinal", (1, 2, 3)))
    ('f1', 'rps', 'w1')
    """
    return "f1", headline_metric(scale), "w1" if scale.kind == "ordinal" else "md"


def headline_metric(scale: Scale = NOMINAL) -> str:
    """Return the metric that ranks methods on an answer scale; it is proper, lower is better.

    Examples
    --------
    >>> headline_metric(), headline_metric(Scale("ordinal", (1, 2, 3)))
    ('ce', 'rps')
    """
    return "rps" if scale.kind == "ordinal" else "ce"


# Those of the paper's tables.
MAIN_METRICS = main_metrics()


def item_values(scale: Scale = NOMINAL) -> dict[str, Callable[[Floats, Floats, Any], Floats]]:
    """Return the metrics that are means of one value per item, as functions of p, q and y.

    Returns
    -------
    dict of str to callable
        Each takes checked arrays as `compute_metrics` does, and returns an array [N].

    Examples
    --------
    >>> import numpy as np
    >>> sets = Scale("multi-label")
    >>> p, q = np.array([[0.9, 0.2]]), np.array([[1.0, 0.5]])
    >>> item_values(sets)["md"](p, q, sets.hard(q)).round(2)
    array([0.4])
    """

    def on(parts: Any) -> Callable[[Floats, Floats, Any], Floats]:
        return lambda p, q, y: parts(p, q, y, scale)

    return {name: on(METRIC[name].parts) for name in metrics_of(scale) if METRIC[name].is_mean}


def compute_metrics(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] | None = None,
    scale: Scale = NOMINAL,
) -> dict[str, float | None]:
    """Compute several metrics at once.

    Parameters
    ----------
    p, q : array-like of shape [N, C], or [N, L] for sets
        Predicted probabilities and soft labels.
    y : array-like of int, shape [N], or [N, L] for sets
        Hard labels as class codes; of sets, 1 for each label that is chosen.
    metrics : iterable of str, default=None
        Names of the metrics; all of the scale if None (`metrics_of`).
    scale : Scale, default=NOMINAL
        The answer scale. Of sets, metrics of distributions are averaged over the two-class
        distributions of an item's labels.

    Returns
    -------
    dict of str to float
        The metrics by name; ``entropy_correlation`` is None where it is undefined.

    Examples
    --------
    >>> from edokit.metrics import compute_metrics, main_metrics
    >>> from edokit.scales import Scale
    >>> p, q = [[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]
    >>> found = compute_metrics(p, q, [0, 1], metrics=main_metrics())
    >>> {name: round(value, 4) for name, value in found.items()}
    {'f1': 1.0, 'ce': 0.4684, 'md': 0.3, 'bs': 0.05}
    >>> points = Scale("ordinal", (1, 2, 4))
    >>> found = compute_metrics([[0.5, 0.5, 0]], [[0, 0, 1]], [2], scale=points)
    >>> found["w1"], found["rps"], found["mad"]
    (2.5, 2.25, 3.0)
    """
    return values(checked_names(metrics, scale), *scores.answers(p, q, y, scale), scale)


def best_possible(
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] | None = None,
    scale: Scale = NOMINAL,
) -> dict[str, float | None]:
    """Return the best value of each metric that any answer can have on these labels.

    Where annotators disagree, no answer has a CE of 0, and no single answer a distance of 0 to all
    of them.

    Parameters
    ----------
    q, y, metrics, scale
        As for `compute_metrics`.

    Returns
    -------
    dict of str to float
        CE: the mean entropy of the soft labels; distances between distributions: 0; ``mad`` and
        ``label_error``: those of the best single answer for each item.

    Examples
    --------
    >>> best = best_possible([[1, 0], [0.5, 0.5]], [0, 1], metrics=["ce", "md", "f1"])
    >>> {name: round(value, 4) for name, value in best.items()}
    {'ce': 0.3466, 'md': 0.0, 'f1': 1.0}
    """
    names = checked_names(metrics, scale)
    _, soft, hard = scores.answers(q, q, y, scale)
    best = values(names, soft, soft, hard, scale)
    if "ce" in best:
        best["ce"] = float(floor_items(soft, "ce", scale).mean())
    certain = scale.indicators(hard, soft.shape[1]).astype(np.float64)
    hard_names = [name for name in names if METRIC[name].hard]
    return best | values(hard_names, certain, soft, hard, scale)


def floor_items(q: Floats, metric: str, scale: Scale = NOMINAL) -> Floats:
    """The lowest possible CE of each item, or 0 for a distance to the soft labels [N]."""
    if metric != "ce":
        return np.zeros(len(q))
    return scale.per_item(scores.shannon(scale.rows(q)), len(q))


def values(
    names: Iterable[str], p: Floats, q: Floats, y: Ints, scale: Scale = NOMINAL
) -> dict[str, float | None]:
    """`compute_metrics` on checked arguments."""
    results = MetricSums.of(p, q, y, scale, tuple(names)).values()
    if "entropy_correlation" in results:
        (rho,) = entropy_ranks(p, q, scale)(np.ones((1, len(p))))
        results["entropy_correlation"] = None if np.isnan(rho) else float(rho)
    return results


def entropy_ranks(p: Floats, q: Floats, scale: Scale) -> scores.RankCorrelation:
    """Spearman's ρ of the entropies of p and q."""
    return scores.RankCorrelation(floor_items(p, "ce", scale), floor_items(q, "ce", scale))


def checked_names(metrics: Iterable[str] | None, scale: Scale = NOMINAL) -> list[str]:
    """The names of metrics, each of them known on this scale."""
    if metrics is None:
        return list(metrics_of(scale))
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise InputError(
            f"{option('metrics')} is empty", f"name at least one, as in {option('metrics', ['ce'])}"
        )
    for name in names:
        if name in METRIC and name not in metrics_of(scale):
            raise InputError(
                f"{name} is a metric of {_ONLY[name]} answers, and the scale is {scale}",
                f"choose among {', '.join(metrics_of(scale))}, or give {option('scale')}",
            )
        one_of("metrics", name, metrics_of(scale))
    return names


_Sums = TypeVar("_Sums", bound="MetricSums")


@dataclass(frozen=True, eq=False)
class MetricSums:
    """Metrics as sums over items, which add up over shards: ``a + b`` are those of both.

    Attributes
    ----------
    items : int
        N.
    sums : mapping of str to ndarray
        Summed parts of each metric; None for the entropy correlation.

    Examples
    --------
    >>> import numpy as np
    >>> p, q, y = np.array([[0.8, 0.2]]), np.array([[1.0, 0.0]]), np.array([0])
    >>> shards = [MetricSums.of(p, q, y), MetricSums.of(q, q, y)]
    >>> round((shards[0] + shards[1]).values()["ce"], 4)
    0.1116
    """

    items: int
    sums: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        p: Floats,
        q: Floats,
        y: Ints | Codes,
        scale: Scale = NOMINAL,
        metrics: Iterable[str] | None = None,
    ) -> MetricSums:
        """The sums of one shard; parameters as for `compute_metrics`, not checked."""
        sums: dict[str, Any] = dict.fromkeys(metrics_of(scale) if metrics is None else metrics)
        for name in sums:
            parts: Any = METRIC[name].parts
            if parts is not None:
                sums[name] = parts(p, q, y, scale).sum(axis=0)
        return cls(len(p), sums)

    def __add__(self: _Sums, other: _Sums) -> _Sums:
        sums = {
            name: None if total is None else total + other.sums[name]
            for name, total in self.sums.items()
        }
        return type(self)(self.items + other.items, sums)

    def values(self) -> dict[str, float | None]:
        """The metrics by name.

        ``entropy_correlation`` is None: ranks among all items are no sum over shards.
        """
        return {
            name: None if total is None else float(METRIC[name].value(total, self.items))
            for name, total in self.sums.items()
        }
