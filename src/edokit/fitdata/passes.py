"""What is computed of one shard in one pass: lists of things that add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from edokit._types import Floats
from edokit.fitdata.cache import Arrays, Part, Told
from edokit.metrics import MetricSums
from edokit.objective.cross_entropy import Curvature, ce_mean_sums, log_pool_sums
from edokit.objective.pools import average_groups, log_probabilities, pool
from edokit.objective.settings import Pool
from edokit.objective.summaries import Summaries

Groups: TypeAlias = Sequence[str] | None
"""The group of each member [K], where groups are averaged first."""


@dataclass(frozen=True)
class Fold:
    """Some of the items: those that were dealt into one of ``count`` parts, or all others."""

    count: int
    number: int
    inside: bool
    seed: int

    def mask(self, shard: int, items: int) -> NDArray[np.bool_]:
        """Which items of a shard these are [n]."""
        dealt = np.random.default_rng([self.seed, self.count, shard]).integers(
            self.count, size=items, dtype=np.uint8 if self.count < 256 else np.int64
        )
        mask: NDArray[np.bool_] = (dealt == self.number) == self.inside
        return mask


class Sums:
    """Adds up lists entry by entry, in pairs: so the rounding of many hardly grows."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, list[Any]]] = []

    def add(self, part: list[Any]) -> None:
        """One more list; always of the same length."""
        count = 1
        while self._parts and self._parts[-1][0] == count:
            before, other = self._parts.pop()
            part, count = _added(other, part), before + count
        self._parts.append((count, part))

    def total(self) -> list[Any]:
        """All of them together; of none, an empty list."""
        done: list[Any] = []
        for _, part in self._parts:
            done = _added(done, part) if done else part
        return done


def _added(one: list[Any], other: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(one, other, strict=True)]


def first_look(part: Part, threads: int | None) -> tuple[Told | None, list[Any]]:
    """Lay a shard down, and sum it up."""
    return part.lay_down(), shard_total((part, None), summaries_of, (None, threads))


def _of_fold(part: Part, fold: Fold | None) -> Arrays:
    arrays = part.arrays()
    if fold is None:
        return arrays
    return arrays.take(np.flatnonzero(fold.mask(part.number, len(arrays.y))))


def shard_total(
    task: tuple[Part, Fold | None], work: Callable[..., list[Any]], given: tuple[Any, ...]
) -> list[Any]:
    """``work(P, q, y, *given)`` of a shard's items, block by block."""
    done = Sums()
    # Shards are what is done side by side; threads that wait for each other only cost.
    with threadpool_limits(1, user_api="blas"):
        for block in _of_fold(*task).blocks():
            done.add(work(*block, *given))
    return done.total()


def draw(task: tuple[Part, NDArray[Any], Fold | None]) -> Arrays:
    """The items at these places of a shard, as far as they belong to the fold."""
    part, places, fold = task
    arrays = part.arrays()
    if fold is not None:
        places = places[fold.mask(part.number, len(arrays.y))[places]]
    return arrays.take(places)


def units_of(P: Floats, groups: Groups) -> Floats:
    """[n, K, C] members, or the means of groups [n, G, C]."""
    if groups is None:
        return P
    means: Floats = average_groups(P, groups)
    return means


def ce_sums(P: Floats, q: Floats, alpha: Floats | None, v: Floats, kind: Pool | str) -> Curvature:
    """The pool's cross-entropy at v, in either kind of pool."""
    if Pool(kind) is Pool.LOG:
        return log_pool_sums(log_probabilities(P), q, alpha, v)
    return ce_mean_sums(P, q, alpha, v)


def summaries_of(
    P: Floats, q: Floats, y: NDArray[Any], groups: Groups, threads: int | None
) -> list[Summaries]:
    """Of members or groups."""
    return [Summaries.from_arrays(units_of(P, groups), q, y, threads=threads)]


def curvatures_of(
    P: Floats,
    q: Floats,
    y: NDArray[Any],
    weights: Floats,
    units: NDArray[Any] | None,
    alpha: Floats | None,
    kind: Pool,
    groups: Groups,
) -> list[Curvature]:
    """At each of the weights [T, k] of these units (all, if None)."""
    P = units_of(P, groups)
    if units is not None:
        P = P[:, units]
    return [ce_sums(P, q, alpha, v, kind) for v in weights]


def metrics_of(
    P: Floats, q: Floats, y: NDArray[Any], weights: Floats, kind: str, groups: Groups
) -> list[MetricSums]:
    """Of the pools with each of the weights [T, K]."""
    P = units_of(P, groups)
    return [MetricSums.of(pool(P, v, kind), q, y) for v in weights]
