"""Spearman's rank correlation, also of resampled items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats


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
