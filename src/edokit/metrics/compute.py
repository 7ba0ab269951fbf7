"""Calibration, and all metrics of one set of predictions at once or as sums over shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, one_of
from edokit._types import Floats, Ints
from edokit.metrics import _arrays

Binning = Literal["width", "mass"]
"""Bins of equal width, or of about equally many points."""
NUDGE = 1e-6
"""A share such as 0.3 belongs to the bin that starts there, even if rounding left it just below."""
METRICS = ("f1", "macro_f1", "ce", "md", "bs", "jsd", "entropy_correlation", "ece")
"""Names of all metrics, in the order of every table."""
MAIN_METRICS = ("f1", "ce", "md", "bs")
"""The metrics of the paper's tables."""
SEARCH_METRICS = ("f1", "ce", "md")
"""What a search optimises."""
ITEM_VALUES: dict[str, Callable[[Floats, Floats, Ints], Floats]] = {
    "f1": lambda p, q, y: _arrays.right(p, y),
    "ce": lambda p, q, y: _arrays.cross_entropy(p, q),
    "md": lambda p, q, y: _arrays.manhattan(p, q),
    "bs": lambda p, q, y: _arrays.brier(p, q),
    "jsd": lambda p, q, y: _arrays.jensen_shannon(p, q),
}
"""Metrics that are means of one value per item."""


@dataclass(frozen=True)
class Reliability:
    """A reliability curve; every array [B] is over the bins that are not empty."""

    low: Floats
    """Lower edge of each bin."""
    high: Floats
    """Upper edge of each bin."""
    predicted: Floats
    """Mean predicted probability in the bin."""
    observed: Floats
    """Mean share of annotators in the bin."""
    count: Ints
    """Number of points in the bin."""

    @property
    def ece(self) -> float:
        """Mean |predicted − observed|, each bin weighted by its points."""
        gaps = np.abs(self.predicted - self.observed)
        return float(gaps @ self.count / self.count.sum())


def reliability_curve(
    p: npt.ArrayLike, q: npt.ArrayLike, bins: int = 10, binning: Binning = "width"
) -> Reliability:
    """Reliability curve of predicted probabilities against soft labels.

    Each (item, class) is one point (p_ic, q_ic); of two classes only the second counts, since the
    first mirrors it.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    bins : int, default=10
        Number of bins of p.
    binning : {"width", "mass"}, default="width"
        Bins of equal width (an edge belongs to the bin above), or of about equally many points
        (equal probabilities share a bin, so there may be fewer bins).

    Returns
    -------
    Reliability

    Examples
    --------
    >>> curve = reliability_curve([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]], bins=2)
    >>> curve.predicted, curve.observed
    (array([0.2, 0.6]), array([0. , 0.5]))
    """
    return curve(*_arrays.pair(p, q), *checked_bins(bins, binning))


def ece(p: npt.ArrayLike, q: npt.ArrayLike, bins: int = 10, binning: Binning = "width") -> float:
    """Expected calibration error against soft labels.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    bins, binning : int, default=10, and {"width", "mass"}, default="width"
        Calibration bins, as for `reliability_curve`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(ece([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.15
    """
    return reliability_curve(p, q, bins, binning).ece


def checked_bins(bins: int, binning: Binning) -> tuple[int, Binning]:
    """The bins, refused where they make no sense."""
    one_of("binning", binning, get_args(Binning))
    return _arrays.whole("bins", bins), binning


def curve(p: Floats, q: Floats, bins: int, binning: Binning) -> Reliability:
    """`reliability_curve` on checked arguments."""
    points, shares = _points(p, q)
    index, edges = _assign(points, bins, binning)
    flat = index.ravel()
    count = np.bincount(flat, minlength=len(edges) - 1)
    held = count > 0
    predicted = np.bincount(flat, weights=points.ravel(), minlength=len(count))
    observed = np.bincount(flat, weights=shares.ravel(), minlength=len(count))
    return Reliability(
        low=edges[:-1][held],
        high=edges[1:][held],
        predicted=predicted[held] / count[held],
        observed=observed[held] / count[held],
        count=count[held].astype(np.int64),
    )


def gap_parts(p: Floats, q: Floats, bins: int, binning: Binning) -> Floats:
    """Each item's part in each bin's gap [N, B]: ECE = Σ_b |Σ_i parts[i, b]| / N."""
    points, shares = _points(p, q)
    index, edges = _assign(points, bins, binning)
    items, width = len(p), len(edges) - 1
    cell = index + width * np.arange(items)[:, None]
    gaps = (points - shares) / points.shape[1]
    parts = np.bincount(cell.ravel(), weights=gaps.ravel(), minlength=items * width)
    return parts.astype(np.float64, copy=False).reshape(items, width)


def _points(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    return (p[:, 1:], q[:, 1:]) if p.shape[1] == 2 else (p, q)


def _assign(points: Floats, bins: int, binning: Binning) -> tuple[npt.NDArray[np.intp], Floats]:
    """The bin of each point, and the edges of the bins."""
    if binning == "width":
        index = np.minimum((points * bins + NUDGE).astype(np.intp), bins - 1)
        return index, np.linspace(0, 1, bins + 1)
    inner = np.unique(np.quantile(points, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.searchsorted(inner, points, side="left"), np.r_[0.0, inner, 1.0]


def compute_metrics(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] = METRICS,
    bins: int = 10,
    binning: Binning = "width",
) -> dict[str, float | None]:
    """Compute several metrics at once.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    y : array-like of int, shape [N]
        Hard labels as class codes.
    metrics : iterable of str, default=METRICS
        Names of the metrics.
    bins, binning : int, default=10, and {"width", "mass"}, default="width"
        Calibration bins, as for `reliability_curve`.

    Returns
    -------
    dict of str to float
        The metrics by name; ``entropy_correlation`` is None where it is undefined.

    Examples
    --------
    >>> from edokit.metrics import MAIN_METRICS, compute_metrics
    >>> p, q = [[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]
    >>> found = compute_metrics(p, q, [0, 1], metrics=MAIN_METRICS)
    >>> {name: round(value, 4) for name, value in found.items()}
    {'f1': 1.0, 'ce': 0.4684, 'md': 0.3, 'bs': 0.05}
    """
    names = checked_names(metrics)
    predicted, soft = _arrays.pair(p, q)
    hard = _arrays.hard_labels(y, predicted)
    return values(names, predicted, soft, hard, *checked_bins(bins, binning))


def values(
    names: Iterable[str], p: Floats, q: Floats, y: Ints, bins: int, binning: Binning
) -> dict[str, float | None]:
    """`compute_metrics` on checked arguments."""
    found: dict[str, float | None] = {}
    for name in names:
        if name == "macro_f1":
            found[name] = _arrays.macro_f1(p, y)
        elif name == "entropy_correlation":
            found[name] = _arrays.entropy_correlation(p, q)
        elif name == "ece":
            found[name] = curve(p, q, bins, binning).ece
        else:
            found[name] = float(np.mean(ITEM_VALUES[name](p, q, y)))
    return found


def checked_names(metrics: Iterable[str]) -> list[str]:
    """The names of metrics, each of them known."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise InputError(
            "metrics is empty", "name at least one, as in metrics=['ce']", parameters=("metrics",)
        )
    for name in names:
        one_of("metrics", name, METRICS)
    return names


_BINS = 10


@dataclass(frozen=True, eq=False)
class MetricSums:
    """Metrics as sums over items, which add up over shards: ``a + b`` are those of both.

    Examples
    --------
    >>> import numpy as np
    >>> p, q, y = np.array([[0.8, 0.2]]), np.array([[1.0, 0.0]]), np.array([0])
    >>> shards = [MetricSums.of(p, q, y), MetricSums.of(q, q, y)]
    >>> round(sum(shards).values()["ce"], 4)
    0.1116
    """

    items: int
    """N."""
    totals: Floats
    """[M] sum of each metric that is a mean over items: f1, ce, md, bs, jsd."""
    hits: Floats
    """[C] items correctly predicted, by class."""
    members: Floats
    """[C] items predicted plus items labelled, by class."""
    gaps: Floats
    """[B] predicted minus observed, summed over each bin of the calibration curve."""

    @classmethod
    def of(cls, p: Floats, q: Floats, y: Ints) -> MetricSums:
        """The sums of one shard: p [N, C], soft labels q [N, C], hard labels y [N], not checked."""
        hits, members = _arrays.macro_parts(p, y)
        totals = [each(p, q, y).sum() for each in ITEM_VALUES.values()]
        gaps = gap_parts(p, q, _BINS, "width").sum(axis=0)
        return cls(len(y), np.array(totals), hits.sum(axis=0), members.sum(axis=0), gaps)

    def __add__(self, other: MetricSums) -> MetricSums:
        if not isinstance(other, MetricSums):
            return NotImplemented
        return MetricSums(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )

    def __radd__(self, other: object) -> MetricSums:
        # sum(shards) starts at 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def values(self) -> dict[str, float | None]:
        """The metrics by name.

        ``entropy_correlation`` is None: ranks among all items are no sum over shards.
        """
        if self.items == 0:
            raise InputError("these sums have no items", "add a shard")
        found: dict[str, float | None] = {
            name: float(total / self.items)
            for name, total in zip(ITEM_VALUES, self.totals, strict=True)
        }
        found["macro_f1"] = float(_arrays.macro_from_parts(self.hits, self.members))
        found["ece"] = float(np.abs(self.gaps).sum() / self.items)
        return {name: found.get(name) for name in METRICS}
