"""Metrics computed by name: all at once, as sums over shards, and their best possible values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Codes, Floats, HardLabels
from edokit.item_array import Order, classes_of
from edokit.metrics.checks import checked_p_q_y
from edokit.metrics.formulas import BLOCK, RankCorrelation, cross_entropy, shannon
from edokit.metrics.registry import METRIC, checked_names, metrics_of
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:  # annotations need pandas, which a bare GPU machine does not have
    from edokit.annotations.core import Annotations


def compute_metrics(
    p: npt.ArrayLike,
    q: npt.ArrayLike | Annotations,
    y: npt.ArrayLike | None = None,
    *,
    metrics: Iterable[str] | None = None,
    scale: Scale | None = None,
    order: Order | None = None,
) -> dict[str, float | None]:
    """Compute several metrics at once.

    Arrays with item ids are matched by id: the results of ``predict_proba`` and ``describe`` for
    named predictions, and the soft and hard labels of annotations. If only some arrays have ids,
    the others are refused unless ``order`` declares their order.

    Parameters
    ----------
    p : array-like of shape [N, C], or [N, L] for multi-label data
        Predicted probabilities, or the result of an ensemble's ``describe``.
    q : Annotations, or array-like of shape [N, C], or [N, L] for multi-label data
        Annotations of the same items, or their soft labels.
    y : array-like of int, shape [N], or [N, L] for multi-label data, default=None
        Hard labels as class codes; for multi-label data, 1 for each chosen label. None: those of
        the annotations.
    metrics : iterable of str, default=None
        Names of the metrics; all of the scale if None (`metrics_of`).
    scale : Scale, default=None
        The answer scale; None for that of the annotations, else nominal. For multi-label data,
        metrics of distributions are averaged over the two-class distributions of an item's labels.
    order : {"annotations"}, default=None
        The rows of arrays without ids are in the order of the annotations' items.

    Returns
    -------
    dict of str to float
        The metrics by name; ``entropy_correlation`` and ``icm_soft`` are None where undefined.

    Raises
    ------
    InputError
        If items, classes or shapes differ, or only some of the arrays have item ids.

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

    With annotations, items are matched by id:

    >>> from edokit import Annotations, ItemArray
    >>> annotations = Annotations.from_matrix([[0, 0], [1, 1]], items=["b", "a"])
    >>> p = ItemArray([[0.25, 0.75], [1, 0]], items=["a", "b"])
    >>> compute_metrics(p, annotations, metrics=["f1", "md"])
    {'f1': 1.0, 'md': 0.25}
    """
    labels = as_labels(p, q, y, scale)
    names = checked_names(metrics, labels.scale)
    predicted, soft, hard = checked_p_q_y(p, labels.soft, labels.hard, labels.scale, order)
    return checked_metrics(names, predicted, soft, hard, labels.scale)


class TargetLabels(NamedTuple):
    """Soft labels, hard labels and their scale, not yet checked."""

    soft: npt.ArrayLike
    hard: npt.ArrayLike
    scale: Scale


def as_labels(
    p: npt.ArrayLike,
    q: npt.ArrayLike | Annotations,
    y: npt.ArrayLike | None,
    scale: Scale | None,
) -> TargetLabels:
    """The labels that p is compared with: arrays, or those of annotations."""
    # Annotations are known by their attribute: their class can't be imported without pandas.
    if not hasattr(q, "soft_labels"):
        if y is None:
            raise InputError(
                "hard labels y are missing",
                "give y, or Annotations instead of q",
                code="missing-labels",
            )
        return TargetLabels(q, y, scale or NOMINAL)
    annotations = cast("Annotations", q)
    # Classes that nobody chose may be missing in the annotations, but not in the answers.
    classes = classes_of(p)
    if classes is not None and {*annotations.classes} < {*classes}:
        annotations = annotations.with_classes(classes)
    if y is None:
        y = annotations.hard_labels()
    return TargetLabels(annotations.soft_labels, y, scale or annotations.scale)


def best_possible(
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] | None = None,
    scale: Scale = NOMINAL,
) -> dict[str, float | None]:
    """Return the best possible value of each metric on these labels.

    If annotators disagree, no answer has a CE of 0, and no single answer has a distance of 0 to all
    of them.

    Parameters
    ----------
    q, y, metrics, scale
        See `compute_metrics`; q and y must be arrays.

    Returns
    -------
    dict of str to float
        For CE, the mean entropy of the soft labels; for distances between distributions, 0; for
        ``mad`` and ``label_error``, the value of the best single answer for each item.

    Examples
    --------
    >>> best = best_possible([[1, 0], [0.5, 0.5]], [0, 1], metrics=["ce", "md", "f1"])
    >>> {name: round(value, 4) for name, value in best.items()}
    {'ce': 0.3466, 'md': 0.0, 'f1': 1.0}
    """
    names = checked_names(metrics, scale)
    _, soft, hard = checked_p_q_y(q, q, y, scale)
    best = checked_metrics(names, soft, soft, hard, scale)
    if "ce" in best:
        # Exactly the entropy: the CE of q against itself clips q inside the logarithm.
        best["ce"] = float(item_entropies(soft, scale).mean())
    # Of metrics of hard labels, the best answer is y itself with certainty.
    certain = scale.indicators(hard, soft.shape[1]).astype(np.float64)
    hard_names = [name for name in names if METRIC[name].hard]
    return best | checked_metrics(hard_names, certain, soft, hard, scale)


def floor_items(q: Floats, metric: str, scale: Scale = NOMINAL) -> Floats:
    """The lowest possible CE of each item, or 0 for a distance to the soft labels [N]."""
    if metric == "ce":
        return item_entropies(q, scale)
    return np.zeros(len(q))


def item_entropies(q: Floats, scale: Scale = NOMINAL) -> Floats:
    """The entropy of each item [N]; for multi-label data, the mean over its labels."""
    entropies = np.zeros(len(q))
    for start in range(0, len(q), BLOCK):
        block = q[start : start + BLOCK]
        entropies[start : start + BLOCK] = scale.per_item(shannon(scale.rows(block)), len(block))
    return entropies


def checked_metrics(
    names: Iterable[str], p: Floats, q: Floats, y: HardLabels, scale: Scale = NOMINAL
) -> dict[str, float | None]:
    """`compute_metrics` on checked arguments."""
    names = tuple(names)
    sums = MetricSums.from_arrays(p[:BLOCK], q[:BLOCK], y[:BLOCK], scale, names)
    # Items are summed in blocks, so that intermediate arrays stay in the processor's cache.
    for start in range(BLOCK, len(p), BLOCK):
        block = slice(start, start + BLOCK)
        sums += MetricSums.from_arrays(p[block], q[block], y[block], scale, names)
    results = sums.values()
    for name in names:
        relative = METRIC[name].relative
        if relative is not None:
            value = float(relative(p, q, y, scale).mean())
            results[name] = None
            if not np.isnan(value):
                results[name] = value
    if "entropy_correlation" in results:
        correlation = entropy_correlation(p, q, scale)
        # Each item is drawn once: the correlation of the data.
        rho = correlation(np.ones((1, len(p))))[0]
        if not np.isnan(rho):
            results["entropy_correlation"] = float(rho)
    return results


class DeferredMetrics(Mapping[str, "float | None"]):
    """Metrics by name, which are computed when one of them is first read.

    Metrics of many items take longer than a fit of weights. Until they are read, ``compute`` and
    the arrays that it refers to stay in memory.
    """

    def __init__(self, compute: Callable[[], dict[str, float | None]]) -> None:
        self._compute: Callable[[], dict[str, float | None]] | None = compute
        self._values: dict[str, float | None] = {}

    def _read(self) -> dict[str, float | None]:
        compute = self._compute
        if compute is not None:
            self._values = compute()
            self._compute = None
        return self._values

    def __getitem__(self, name: str) -> float | None:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())

    def __reduce__(self) -> tuple[type[dict[str, float | None]], tuple[dict[str, float | None]]]:
        return dict, (self._read(),)


def entropy_correlation(p: Floats, q: Floats, scale: Scale) -> RankCorrelation:
    """Spearman's ρ of the entropies of p and q, as a function of how often each item is drawn."""
    return RankCorrelation(item_entropies(p, scale), item_entropies(q, scale))


def annotation_errors(
    p: Floats, items: Codes, labels: Floats, scale: Scale
) -> tuple[Floats, Floats]:
    """Cross-entropy and error of each annotation [M].

    Annotation m gives the shares ``labels[m]`` [C] to the classes of the item whose predictions are
    ``p[items[m]]``. The error is 1 minus the share that the annotation gives to the predicted
    class. For multi-label data, both are means over labels.
    """
    rows = scale.rows(p[items])
    shares = scale.rows(labels)
    predicted = rows.argmax(axis=1)
    predicted_shares = np.take_along_axis(shares, predicted[:, None], axis=1)[:, 0]
    row_losses = cross_entropy(rows, shares)
    losses = scale.per_item(row_losses, len(items))
    errors = scale.per_item(1 - predicted_shares, len(items))
    return losses, errors


_Sums = TypeVar("_Sums", bound="MetricSums")


@dataclass(frozen=True, eq=False)
class MetricSums:
    """Metrics as sums over items, which can be added over shards as ``a + b``.

    Attributes
    ----------
    items : int
        Number of items, N.
    sums : mapping of str to ndarray or None
        Sums of the parts of each metric; None for a metric without a formula.

    Examples
    --------
    >>> import numpy as np
    >>> p, q, y = np.array([[0.8, 0.2]]), np.array([[1.0, 0.0]]), np.array([0])
    >>> shards = [MetricSums.from_arrays(p, q, y), MetricSums.from_arrays(q, q, y)]
    >>> round((shards[0] + shards[1]).values()["ce"], 4)
    0.1116
    """

    items: int
    sums: Mapping[str, Floats | None]

    @classmethod
    def from_arrays(
        cls,
        p: Floats,
        q: Floats,
        y: HardLabels,
        scale: Scale = NOMINAL,
        metrics: Iterable[str] | None = None,
    ) -> MetricSums:
        """Return the sums of one shard; see `compute_metrics` for the parameters (not checked)."""
        if metrics is None:
            metrics = metrics_of(scale)
        sums: dict[str, Floats | None] = {}
        for name in metrics:
            formula = METRIC[name].formula
            sums[name] = None
            if formula is not None:
                sums[name] = np.asarray(formula(p, q, y, scale).sum(axis=0))
        return cls(len(p), sums)

    def __add__(self: _Sums, other: _Sums) -> _Sums:
        sums: dict[str, Floats | None] = {}
        for name, total in self.sums.items():
            further = other.sums[name]
            sums[name] = None
            if total is not None and further is not None:
                sums[name] = total + further
        return type(self)(self.items + other.items, sums)

    def values(self) -> dict[str, float | None]:
        """The metrics by name.

        ``entropy_correlation`` and ``icm_soft`` are None, since ranks among all items and the
        variation of soft labels can't be computed from sums over shards.
        """
        results: dict[str, float | None] = {}
        for name, total in self.sums.items():
            results[name] = None
            if total is not None:
                results[name] = float(np.asarray(METRIC[name].combine(total, self.items)))
        return results
