"""Metrics of predicted probabilities p against soft labels q and hard labels y.

First the public functions, then checks of their input, then the formulas on checked arrays, so that
many metrics check their input once. Everywhere p and q are [N, C], y is [N]; ``*_items`` and
formulas give one value per item [N]. Logarithms are natural. All public functions raise
`InputError` where p or q hold no distributions, y no class codes, or their shapes differ. Metrics
of sets of labels are those of `compute_metrics` with their scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, option
from edokit._types import Bools, Codes, Floats, Ints
from edokit.scales import NOMINAL, TOLERANCE, Scale, number_list

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
    classes = predicted.shape[1]
    places = losses("positions", np.arange(classes) if positions is None else positions)
    if len(places) != classes or not (np.diff(places) > 0).all():
        raise InputError(
            f"{classes} classes need as many ascending positions, but {option('positions')} is"
            f" {places.tolist()}",
            "give one number per class, in the order of the classes",
        )
    return predicted, soft, places


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
