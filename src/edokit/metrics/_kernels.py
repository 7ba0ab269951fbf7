"""The formulas of the metrics on checked arrays, so that many metrics check their input once.

Everywhere p and q are [N, C], y is [N]; the result has one value per item [N] unless stated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats, Ints

CLIP = 1e-12
"""Inside the logarithm p is in [CLIP, 1 − CLIP], as in the official LeWiDi scoring."""
ENTROPY_DECIMALS = 9
"""Entropies that differ by rounding alone (1/3 and 1 − 2/3) are ties."""


def right(p: Floats, y: Ints) -> Floats:
    """1 where the most probable class is y [N]."""
    hits: Floats = (p.argmax(axis=1) == y).astype(np.float64)
    return hits


def cross_entropy(p: Floats, q: Floats) -> Floats:
    logs = np.log(np.clip(p, CLIP, 1 - CLIP))
    total: Floats = -np.einsum("nc,nc->n", q, logs)
    return total


def manhattan(p: Floats, q: Floats) -> Floats:
    total: Floats = np.abs(p - q).sum(axis=1)
    return total


def brier(p: Floats, q: Floats) -> Floats:
    total: Floats = ((p - q) ** 2).sum(axis=1)
    return total


def shannon(p: Floats) -> Floats:
    logs = np.log(np.where(p > 0, p, 1.0))  # 0 ln 0 = 0
    total: Floats = -np.einsum("nc,nc->n", p, logs)
    return np.maximum(total, 0.0)


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    divergence = shannon((p + q) / 2) - (shannon(p) + shannon(q)) / 2
    return np.clip(divergence, 0.0, np.log(2))  # rounding may step over the bounds


def rounded_entropy(p: Floats) -> Floats:
    return np.round(shannon(p), ENTROPY_DECIMALS)


def macro_parts(p: Floats, y: Ints) -> tuple[Floats, Floats]:
    """Per item and class [N, C]: 1 if correctly predicted, and in how many of ŷ, y it occurs."""
    classes = np.arange(p.shape[1])
    predicted = p.argmax(axis=1)[:, None] == classes
    true = y[:, None] == classes
    return (predicted & true).astype(np.float64), predicted.astype(np.float64) + true


def macro_from_parts(hits: Floats, members: Floats) -> Floats:
    """Macro-F1 from summed parts [..., C]; a class that does not occur is left out."""
    occurs = members > 0
    each = 2 * hits / np.where(occurs, members, 1.0)
    mean: Floats = each.sum(axis=-1) / occurs.sum(axis=-1)
    return mean


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's ρ of x and y [N]; None where one of them is constant."""
    rho = RankCorrelation(x, y)(np.ones((1, len(x))))[0]
    return None if np.isnan(rho) else float(rho)


class RankCorrelation:
    """Spearman's ρ of x and y [N] as a function of how often each item is taken.

    Called with counts [B, N], it gives ρ of each multiset [B], NaN where undefined. It sorts
    once, so that a resample costs no sorting.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self._order = np.argsort(x, kind="stable")  # with x in order, its ranks need no gather
        self._x = _Levels(x[self._order])
        self._y = _Levels(y[self._order])

    def __call__(self, counts: Floats) -> Floats:
        taken = counts[:, self._order]
        a, b = self._x.centred_ranks(taken), self._y.centred_ranks(taken)
        spread = np.einsum("bn,bn,bn->b", taken, a, a) * np.einsum("bn,bn,bn->b", taken, b, b)
        together = np.einsum("bn,bn,bn->b", taken, a, b)
        defined = spread > 0
        rho = np.clip(together / np.sqrt(np.where(defined, spread, 1.0)), -1.0, 1.0)
        return np.where(defined, rho, np.nan)


class _Levels:
    """The distinct values of an array [N], and which items have which."""

    def __init__(self, values: Floats) -> None:
        self._order = np.argsort(values, kind="stable")
        ordered = values[self._order]
        self._first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        sizes = np.diff(np.r_[self._first, len(values)])
        self._level: npt.NDArray[np.intp] = np.empty(len(values), dtype=np.intp)
        self._level[self._order] = np.repeat(np.arange(len(sizes)), sizes)

    def centred_ranks(self, counts: Floats) -> Floats:
        """Mid-ranks of the items in each multiset [B, N], less their mean."""
        weight = np.add.reduceat(counts[:, self._order], self._first, axis=1)
        total = weight.sum(axis=1, keepdims=True)
        centred = np.cumsum(weight, axis=1) - weight / 2 - total / 2
        ranks: Floats = centred[:, self._level]
        return ranks
