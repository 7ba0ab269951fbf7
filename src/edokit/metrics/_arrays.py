"""The arrays that metrics take: checks of the input, and the formulas on checked arrays.

Checks and formulas are apart, so that many metrics check their input once. Everywhere p and q are
[N, C], y is [N]; a formula gives one value per item [N] unless stated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Bools, Floats, Ints
from edokit.scales import NOMINAL, TOLERANCE, Scale

# Inside the logarithm p is in [CLIP, 1 − CLIP], as in the official LeWiDi scoring.
CLIP = 1e-12
# A cumulative share of one half may have been rounded by so much.
ROUNDING = 1e-9
# Entropies that differ by rounding alone (1/3 and 1 − 2/3) are ties.
ENTROPY_DECIMALS = 9


def distributions(name: str, values: npt.ArrayLike, scale: Scale = NOMINAL) -> Floats:
    """Checked probabilities [N, C], or [N, L] of sets, in double precision."""
    array = _finite(name, values, 2, "give one row per item and one column per class")
    if scale.rows(array).shape[1] < 2:
        raise InputError(
            f"{name} has fewer than two classes: its shape is {_shape(array)}",
            "give a column for every class, also for those that nobody chose",
        )

    def refuse(fault: str, row: tuple[int, ...]) -> InputError:
        numbers = ", ".join(f"{value:g}" for value in array[row])
        hint = "divide each row by its sum, or turn logits into probabilities first"
        return InputError(f"the probabilities {name}[{row[0]}] {fault}: ({numbers})", hint)

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
            per_value = np.add.reduceat(counts.take(order, axis=1), first, axis=1, dtype=np.int64)
            # Twice the mid-rank of each value, less the mean of all items.
            centred = (2 * np.cumsum(per_value, axis=1) - per_value).astype(np.float64)
            centred -= per_value.sum(axis=1, keepdims=True)
            spread *= np.einsum("bu,bu,bu->b", per_value, centred, centred)
            ranks.append(centred.take(codes, axis=1))
        together = np.einsum("bn,bn->b", counts * ranks[0], ranks[1])
        rho = together / np.sqrt(np.where(spread > 0, spread, np.nan))
        return np.asarray(np.clip(rho, -1.0, 1.0))
