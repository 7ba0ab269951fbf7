"""Metrics of predicted probabilities: F1, cross-entropy, distances, calibration, intervals.

They take arrays: p predicted probabilities [N, C], q soft labels [N, C], y hard labels [N] (all
[N, L] for sets of labels), and raise `InputError` where these are no such thing or do not fit
together. Which metrics there are depends on the answer scale (`edokit.scales.Scale`); those of sets
of labels are computed by `compute_metrics` with their scale. Functions called ``*_items`` give one
value per item [N]. Logarithms are natural.
"""

# First the public functions, then checks of their input, then the formulas on checked arrays, so
# that many metrics check their input once.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, check_number, one_of
from edokit._package import lazy_names
from edokit._types import Bools, Codes, Floats, Ints
from edokit.scales import NOMINAL, TOLERANCE, Scale, number_list

if TYPE_CHECKING:
    from edokit.metrics.resampling import Interval, PairedTest, bootstrap, paired_test

__all__ = [
    "MAIN_METRICS",
    "METRIC",
    "Metric",
    "metrics_of",
    "main_metrics",
    "search_metrics",
    "headline_metric",
    "item_values",
    "compute_metrics",
    "best_possible",
    "MetricSums",
    "f1",
    "f1_items",
    "ce",
    "ce_items",
    "md",
    "md_items",
    "bs",
    "bs_items",
    "jsd",
    "w1",
    "w1_items",
    "rps",
    "entropy",
    "entropy_items",
    "ece",
    "reliability_curve",
    "Reliability",
    "bootstrap",
    "Interval",
    "paired_test",
    "PairedTest",
]
# What a fit does without.
__getattr__ = lazy_names(
    __name__, {"resampling": ("Interval", "PairedTest", "bootstrap", "paired_test")}
)

# Inside the logarithm p is in [CLIP, 1 − CLIP], as in the official LeWiDi scoring.
CLIP = 1e-12
# A cumulative share of one half may have been rounded by so much.
ROUNDING = 1e-9
# Entropies that differ by rounding alone (1/3 and 1 − 2/3) are ties.
ENTROPY_DECIMALS = 9


def f1(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Micro-F1 on hard labels: the share of items whose most probable class is y.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    y : array-like of int, shape [N]
        Hard labels as class codes.

    Returns
    -------
    float

    Examples
    --------
    >>> f1([[0.8, 0.2], [0.4, 0.6]], [0, 0])
    0.5
    """
    return float(f1_items(p, y).mean())


def f1_items(p: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Whether the most probable class (the first on ties) is y, item by item.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    y : array-like of int, shape [N]
        Hard labels as class codes.

    Returns
    -------
    numpy.ndarray of shape [N]
        1 or 0.

    Examples
    --------
    >>> f1_items([[0.8, 0.2], [0.4, 0.6]], [0, 0])
    array([1., 0.])
    """
    predicted = distributions("p", p)
    return right(predicted, hard_labels(y, predicted))


def ce(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Cross-entropy −mean Σ q ln p, with p clipped to [1e-12, 1 − 1e-12].

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> round(ce([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.4684
    """
    return float(ce_items(p, q).mean())


def ce_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Cross-entropy −Σ q ln p of each item.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> ce_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.2231, 0.7136])
    """
    return cross_entropy(*pair(p, q))


def md(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Manhattan distance mean ‖p − q‖₁.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to 2.

    Examples
    --------
    >>> round(md([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.3
    """
    return float(md_items(p, q).mean())


def md_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Manhattan distance ‖p − q‖₁ of each item.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> md_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.4, 0.2])
    """
    return manhattan(*pair(p, q))


def bs(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Brier score mean ‖p − q‖₂².

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to 2.

    Examples
    --------
    >>> round(bs([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.05
    """
    return float(bs_items(p, q).mean())


def bs_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Brier score ‖p − q‖₂² of each item.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> bs_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.08, 0.02])
    """
    return brier(*pair(p, q))


def jsd(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Jensen–Shannon divergence (not its square root), averaged over items.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to ln 2.

    Examples
    --------
    >>> round(jsd([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.04
    """
    return float(jensen_shannon(*pair(p, q)).mean())


def w1(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Wasserstein-1 distance between answers on a scale, averaged over items.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels of the ordered classes.
    positions : array-like of shape [C], default=None
        Where the classes are on the scale, ascending; 0, 1, 2, … if None.

    Returns
    -------
    float
        In units of the scale.

    Examples
    --------
    >>> w1([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]])
    1.5
    """
    return float(w1_items(p, q, positions).mean())


def w1_items(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> Floats:
    """Wasserstein-1 distance of each item; parameters as for `w1`.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> w1_items([[0.5, 0.5, 0.0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]])
    array([1.5, 0. ])
    """
    return wasserstein(*_placed(p, q, positions))


def rps(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Ranked probability score Σ_c (F_c − G_c)² of cumulative shares, averaged over items.

    A proper score: the best answer is the annotators' distribution. Parameters as for `w1`; each
    square counts as much as its step is wide.

    Returns
    -------
    float

    Examples
    --------
    >>> rps([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]])
    1.25
    """
    return float(ranked_probability(*_placed(p, q, positions)).mean())


def entropy(q: npt.ArrayLike) -> float:
    """Mean entropy; that of the soft labels is the lowest CE that predictions can have.

    Parameters
    ----------
    q : array-like of shape [N, C]
        Distributions, such as soft labels or predicted probabilities.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> round(entropy([[1, 0], [0.5, 0.5]]), 4)
    0.3466
    """
    return float(entropy_items(q).mean())


def entropy_items(q: npt.ArrayLike) -> Floats:
    """Entropy −Σ q ln q of each item.

    Parameters
    ----------
    q : array-like of shape [N, C]
        Distributions, such as soft labels or predicted probabilities.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> entropy_items([[1, 0], [0.5, 0.5]]).round(4)
    array([0.    , 0.6931])
    """
    return shannon(distributions("q", q))


def annotation_errors(
    p: Floats, items: Codes, labels: Floats, scale: Scale
) -> tuple[Floats, Floats]:
    """Cross-entropy and error of each annotation [M].

    ``p`` [N, C] are predictions, ``items`` [M] the row of p and ``labels`` [M, C] the shares of
    each annotation. The error is 1 minus the annotator's share of the predicted class; of sets both
    are means over labels.
    """
    rows, shares = scale.rows(p[items]), scale.rows(labels)
    chosen_shares = np.take_along_axis(shares, rows.argmax(axis=1)[:, None], axis=1)[:, 0]
    losses = cross_entropy(rows, shares)
    return scale.per_item(losses, len(items)), scale.per_item(1 - chosen_shares, len(items))


def _placed(
    p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Checked distributions, and where the classes are on the scale [C]."""
    predicted, soft = pair(p, q)
    places = np.arange(predicted.shape[1]) if positions is None else positions
    scale = Scale("ordinal", tuple(losses("positions", places).tolist()))
    return *pair(predicted, soft, scale), np.array(scale.positions)


# --- Checks ---------------------------------------------------------------------------------------


def distributions(name: str, values: npt.ArrayLike, scale: Scale = NOMINAL) -> Floats:
    """Checked probabilities [N, C], or [N, L] of sets, in double precision."""
    array = _finite(name, values, 2, "give one row per item and one column per class")
    if scale.rows(array).shape[1] < 2:
        raise InputError(
            f"{name} has fewer than two classes: its shape is {_shape(array)}",
            "give a column for every class, also for those that nobody chose",
        )

    def refuse(fault: str, row: tuple[int, ...]) -> InputError:
        numbers, hint = number_list(array[row]), "turn logits into probabilities first"
        if "sum" in fault:
            hint = f"divide each row by its sum, or {hint}"
        wrong = int((~scale.are_distributions(array)).sum())
        return InputError(
            f"the probabilities {name}[{row[0]}] {fault}: ({numbers})"
            f" ({wrong} of {len(array)} are wrong)",
            hint,
        )

    return scale.distributions(array, TOLERANCE, refuse)


def pair(p: npt.ArrayLike, q: npt.ArrayLike, scale: Scale = NOMINAL) -> tuple[Floats, Floats]:
    """Checked predicted probabilities and soft labels, both [N, C], or [N, L] of sets."""
    predicted, soft = distributions("p", p, scale), distributions("q", q, scale)
    if predicted.shape != soft.shape:
        raise InputError(
            f"p has the shape {_shape(predicted)}, q has {_shape(soft)}",
            "match the items by id, and give both the same classes in the same order",
        )
    if scale.positions is not None and len(scale.positions) != predicted.shape[1]:
        raise InputError(
            f"p has {predicted.shape[1]} classes, the scale {len(scale.positions)} positions",
            "give one position per class",
        )
    return predicted, soft


def answers(
    p: npt.ArrayLike, q: npt.ArrayLike, y: npt.ArrayLike, scale: Scale
) -> tuple[Floats, Floats, Ints]:
    """Checked predicted probabilities, soft labels and hard labels."""
    predicted, soft = pair(p, q, scale)
    return predicted, soft, hard_labels(y, predicted, scale)


def hard_labels(y: npt.ArrayLike, p: Floats, scale: Scale = NOMINAL) -> Ints:
    """Checked class codes [N], or [N, L] of sets: 1 for each label that is chosen."""
    shape, classes = scale.hard(p).shape, scale.rows(p).shape[1]
    array = as_array("y", y)
    if array.shape != shape:
        raise InputError(
            f"y has the shape {_shape(array)}, not [{', '.join(map(str, shape))}]",
            "give one class code each; of sets, 1 for each label that is chosen and 0 for others",
        )
    if array.dtype.kind not in "iub":
        raise InputError(
            f"y holds {array.dtype} values, not class codes (whole numbers)",
            "give each class as its position in the list, counted from 0",
        )
    problem = f"but class codes are from 0 to {classes - 1}"
    hint = "drop the missing ones, and count from 0"
    _refuse("y", array, (array < 0) | (array >= classes), problem, hint)
    return array.astype(np.int64)


def losses(name: str, values: npt.ArrayLike) -> Floats:
    """Checked per-item values [N]."""
    return _finite(name, values, 1, "give one loss per item, for example from ce_items")


def as_array(name: str, values: npt.ArrayLike, dtype: Any = None) -> npt.NDArray[Any]:
    """An array of any type."""
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is no array of numbers with rows of the same length",
            "give every row the same length, and turn it into numbers first",
        ) from None


def _finite(name: str, values: npt.ArrayLike, dimensions: int, hint: str) -> Floats:
    """Finite numbers with so many axes, at least one row of them."""
    array = as_array(name, values, np.float64)
    if array.ndim != dimensions or not len(array):
        axes = "[N]" if dimensions == 1 else "[N, C]"
        raise InputError(f"{name} has the shape {_shape(array)}, not {axes} with N > 0", hint)
    hint = "drop or fill in the items that have no value"
    _refuse(name, array, ~np.isfinite(array), "not a finite number", hint)
    return array


def _refuse(name: str, values: npt.NDArray[Any], wrong: Bools, problem: str, hint: str) -> None:
    """Refuse an array of which some values are wrong; the message names the first of them."""
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{name}[{', '.join(map(str, at))}] is {values[at]:.6g}, {problem}"
            f" ({wrong.sum()} of {wrong.size} are wrong)",
            hint,
        )


def _shape(array: npt.NDArray[Any]) -> str:
    return "[" + ", ".join(map(str, array.shape)) + "]"


# --- Formulas -------------------------------------------------------------------------------------


def right(p: Floats, y: Ints) -> Floats:
    """1 where the most probable class is y [N]."""
    return np.asarray((p.argmax(axis=1) == y).astype(np.float64))


def cross_entropy(p: Floats, q: Floats) -> Floats:
    logs = np.log(np.clip(p, CLIP, 1 - CLIP))
    return np.asarray(-np.einsum("nc,nc->n", q, logs))


def manhattan(p: Floats, q: Floats) -> Floats:
    return np.asarray(np.abs(p - q).sum(axis=1))


def brier(p: Floats, q: Floats) -> Floats:
    return np.asarray(((p - q) ** 2).sum(axis=1))


def shannon(p: Floats) -> Floats:
    logs = np.log(np.where(p > 0, p, 1.0))  # 0 ln 0 = 0
    total: Floats = -np.einsum("nc,nc->n", p, logs)
    return np.maximum(total, 0.0)


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    divergence = shannon((p + q) / 2) - (shannon(p) + shannon(q)) / 2
    return np.clip(divergence, 0.0, np.log(2))  # rounding may step over the bounds


def ranked_probability(p: Floats, q: Floats, positions: Floats) -> Floats:
    return np.asarray(np.cumsum(p - q, axis=1)[:, :-1] ** 2 @ np.diff(positions))


def wasserstein(p: Floats, q: Floats, positions: Floats) -> Floats:
    return np.asarray(np.abs(np.cumsum(p - q, axis=1)[:, :-1]) @ np.diff(positions))


def absolute_distance(p: Floats, q: Floats, positions: Floats) -> Floats:
    """Mean distance between the median of p and the answers q."""
    distances = np.abs(positions - positions[medians(p)][:, None])
    return np.asarray(np.einsum("nc,nc->n", q, distances))


def medians(p: Floats) -> npt.NDArray[np.intp]:
    """The class at which the cumulative share reaches one half [N]; the lower one on a tie."""
    reached = np.cumsum(p, axis=1) >= 0.5 - ROUNDING
    positions: npt.NDArray[np.intp] = reached.argmax(axis=1)
    return positions


def decisions(p: Floats, scale: Scale) -> Codes:
    """Return single answers: the median on a scale, else the most probable class or labels.

    Returns
    -------
    numpy.ndarray of shape [N], or [N, L] for sets
        Class codes, or 1 for each chosen label.

    Examples
    --------
    >>> import numpy as np
    >>> decisions(np.array([[0.4, 0.3, 0.3]]), Scale("ordinal", (1, 2, 3)))
    array([1], dtype=int32)
    """
    return medians(p).astype(np.int32) if scale.kind == "ordinal" else scale.hard(p)


class RankCorrelation:
    """Spearman's ρ of x and y [N] as a function of how often each item is taken.

    Called with counts [B, N], it gives ρ of each multiset [B], NaN where undefined. Ranks follow
    from counts of distinct values, so that a resample costs no sorting.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self._sides = []
        for values in (x, y):
            _, codes, sizes = np.unique(
                np.round(values, ENTROPY_DECIMALS), return_inverse=True, return_counts=True
            )
            first = np.cumsum(sizes) - sizes
            self._sides.append((np.argsort(codes, kind="stable"), first, codes))

    def __call__(self, counts: npt.NDArray[Any]) -> Floats:
        ranks, spread = [], np.ones(len(counts))
        for order, first, codes in self._sides:
            per_value = counts.take(order, axis=1, mode="clip")  # quicker than with checks
            if len(first) < len(order):
                per_value = np.add.reduceat(per_value, first, axis=1, dtype=np.int64)
            # Twice the mid-rank of each value, less the mean of all items.
            centred = 2.0 * np.cumsum(per_value, axis=1, dtype=np.int64)
            centred -= per_value
            centred -= per_value.sum(axis=1, keepdims=True)
            spread *= np.einsum("bu,bu,bu->b", per_value, centred, centred)
            ranks.append(centred.take(codes, axis=1, mode="clip"))
        together = np.einsum("bn,bn->b", counts * ranks[0], ranks[1])
        rho = together / np.sqrt(np.where(spread > 0, spread, np.nan))
        return np.asarray(np.clip(rho, -1.0, 1.0))


# --- Calibration, and all metrics of one set of predictions at once or as sums over shards --------

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
    points, shares = _points(*pair(p, q, scale), scale)
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
    return values(checked_names(metrics, scale), *answers(p, q, y, scale), scale)


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
    _, soft, hard = answers(q, q, y, scale)
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
    return scale.per_item(shannon(scale.rows(q)), len(q))


def values(
    names: Iterable[str], p: Floats, q: Floats, y: Ints, scale: Scale = NOMINAL
) -> dict[str, float | None]:
    """`compute_metrics` on checked arguments."""
    results = MetricSums.of(p, q, y, scale, tuple(names)).values()
    if "entropy_correlation" in results:
        (rho,) = entropy_ranks(p, q, scale)(np.ones((1, len(p))))
        results["entropy_correlation"] = None if np.isnan(rho) else float(rho)
    return results


def entropy_ranks(p: Floats, q: Floats, scale: Scale) -> RankCorrelation:
    """Spearman's ρ of the entropies of p and q."""
    return RankCorrelation(floor_items(p, "ce", scale), floor_items(q, "ce", scale))


def checked_names(metrics: Iterable[str] | None, scale: Scale = NOMINAL) -> list[str]:
    """The names of metrics, each of them known on this scale."""
    if metrics is None:
        return list(metrics_of(scale))
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
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
