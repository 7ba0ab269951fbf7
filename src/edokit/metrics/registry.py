"""All metrics by name: what they are called, how they are computed, and for which scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from edokit._errors import one_of
from edokit._types import Floats, Ints
from edokit.metrics.calibration import gap_parts
from edokit.metrics.formulas import (
    absolute_distance,
    brier,
    cross_entropy,
    jensen_shannon,
    manhattan,
    ranked_probability,
    right,
    wasserstein,
)
from edokit.scales import NOMINAL, Scale

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


# All metrics by name, in the order of every table.
METRIC: dict[str, Metric] = {
    "f1": Metric(
        "F1",
        "accuracy (micro-F1)",
        _by_row(lambda p, q, y: right(p, y)),
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
    "ce": Metric("CE", "cross-entropy", _by_row(lambda p, q, y: cross_entropy(p, q))),
    "rps": Metric("RPS", "ranked probability score", _on_scale(ranked_probability)),
    "w1": Metric("W1", "Wasserstein distance", _on_scale(wasserstein)),
    "mad": Metric("MAD", "mean absolute distance", _on_scale(absolute_distance)),
    "md": Metric("MD", "Manhattan distance", _by_row(lambda p, q, y: manhattan(p, q))),
    "bs": Metric("BS", "Brier score", _by_row(lambda p, q, y: brier(p, q))),
    "jsd": Metric(
        "JSD", "Jensen–Shannon divergence", _by_row(lambda p, q, y: jensen_shannon(p, q))
    ),
    "entropy_correlation": Metric("ρ(H)", "entropy correlation", None, higher=True),
    "ece": Metric(
        "ECE",
        "calibration error to shares",
        gap_parts,
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


def checked_names(metrics: Iterable[str] | None, scale: Scale = NOMINAL) -> list[str]:
    """The names of metrics, each of them known on this scale."""
    if metrics is None:
        return list(metrics_of(scale))
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        one_of("metrics", name, metrics_of(scale))
    return names
