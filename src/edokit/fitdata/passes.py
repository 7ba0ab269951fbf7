"""What is computed of some items at a time: things that add up over blocks, shards and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edokit._types import Bools, Floats, Ints
from edokit.metrics import MetricSums
from edokit.objective import (
    Curvature,
    Pool,
    Summaries,
    curvature_sums,
    log_probabilities,
    pool,
    sharpen,
)
from edokit.objective.arrays import member_rows, slices
from edokit.objective.pools import power_sums

# Numbers of P that are looked at in one go.
_BLOCK = 2**21
# Numbers of pooled probabilities at a time, over all weightings.
_SCORES_BLOCK = 2**22
_CLIP = 1e-12  # as the metrics do


class Arrays(NamedTuple):
    """Predictions P [n, K, C], soft labels q [n, C] and hard labels y [n] of some items."""

    P: NDArray[Any]
    q: Floats
    y: NDArray[Any]

    def take(self, items: NDArray[Any]) -> Arrays:
        """These items (positions, or a mask)."""
        return Arrays(self.P[items], self.q[items], self.y[items])

    def blocks(self) -> Iterator[Arrays]:
        """A few items after the other, in float64."""
        size = max(1, _BLOCK // max(1, self.P.shape[1] * self.P.shape[2]))
        for s in slices(len(self.y), size):
            yield Arrays(np.asarray(self.P[s], dtype=np.float64), self.q[s], self.y[s])


@dataclass(frozen=True)
class Fold:
    """One of ``count`` parts of the items, or all items but those (``held_out`` False)."""

    count: int
    number: int
    held_out: bool
    random_state: int

    def mask(self, shard: int, y: NDArray[Any]) -> Bools:
        """Which items [n] of a shard with hard labels y [n] these are."""
        dealt = deal(y, self.count, self.random_state, shard)
        mask: Bools = (dealt == self.number) == self.held_out
        return mask


def deal(y: NDArray[Any], count: int, random_state: int, shard: int = 0) -> Ints:
    """[n] the fold of each item of a shard: at random, and each hard label evenly over the folds.

    Arrays in memory are shard 0. The first fold moves on from shard to shard, so that what does
    not divide evenly does not always end up in the same one.
    """
    shuffled = np.random.default_rng([random_state, count, shard]).permutation(len(y))
    by_label = shuffled[np.argsort(y[shuffled], kind="stable")]
    fold = np.empty(len(y), dtype=np.int64)
    fold[by_label] = (np.arange(len(y)) + shard) % count
    return fold


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


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums over items for T weightings; ``a + b`` are those of both shards together."""

    items: int
    f1: Floats
    """[T] items whose likeliest class is the hard label."""
    ce: Floats
    """[T] Σ cross-entropy."""
    ce_squares: Floats
    """[T] Σ squared cross-entropy, for its standard error."""
    md: Floats
    """[T] Σ Manhattan distance."""

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.items + other.items,
            self.f1 + other.f1,
            self.ce + other.ce,
            self.ce_squares + other.ce_squares,
            self.md + other.md,
        )

    def estimates(self) -> list[dict[str, float]]:
        """F1, CE, MD and the standard error of CE, for each weighting."""
        ce = self.ce / self.items
        variance = np.maximum(self.ce_squares / self.items - ce**2, 0.0)
        error = np.sqrt(variance / max(self.items - 1, 1))
        columns = (self.f1 / self.items, ce, self.md / self.items, error)
        return [
            {"f1": float(f1), "ce": float(loss), "md": float(md), "ce_se": float(se)}
            for f1, loss, md, se in zip(*columns, strict=True)
        ]


def score_rows(
    rows: Callable[[Pool], Floats],
    q: Floats,
    y: NDArray[Any],
    weights: Floats,
    pools: Sequence[Pool],
) -> Scores:
    """Scores of pools with weights [T, K]; ``rows`` gives what each kind of pool adds up."""
    total = np.zeros((4, len(weights)))
    classes = q.shape[1]
    for kind in dict.fromkeys(pools):
        which = np.flatnonzero([other is kind for other in pools])
        what = rows(kind)
        for s in slices(len(y), max(1, _SCORES_BLOCK // (len(weights) * classes))):
            part = what[:, s.start * classes : s.stop * classes]
            p = (weights[which] @ part).reshape(len(which), -1, classes)
            if kind is Pool.LOG:
                p -= p.max(axis=-1, keepdims=True)
                np.exp(p, out=p)
                p /= p.sum(axis=-1, keepdims=True)
            total[:, which] += _score_sums(p, q[s], y[s])
    return Scores(len(y), *total)


def _score_sums(p: Floats, q: Floats, y: NDArray[Any]) -> Floats:
    """[4, T] hits, cross-entropies, their squares and distances of p [T, n, C], summed up."""
    hits = (p.argmax(axis=-1) == y).sum(axis=-1)
    distances = np.abs(p - q).sum(axis=(-1, -2))
    logs = np.log(np.clip(p, _CLIP, 1.0 - _CLIP))
    losses = -np.einsum("tnc,nc->tn", logs, q)
    return np.stack([hits, losses.sum(axis=-1), np.square(losses).sum(axis=-1), distances])


# What `FitData.total` adds up: functions of P [n, K, C] in float64, q [n, C], y [n] and more.


def add_summaries(P: Floats, q: Floats, y: NDArray[Any], threads: int | None) -> list[Summaries]:
    """Summaries of these items."""
    return [Summaries.from_arrays(P, q, y, threads=threads)]


def add_curvatures(
    P: Floats,
    q: Floats,
    y: NDArray[Any],
    weights: Floats,
    members: NDArray[Any] | None,
    alpha: Floats | None,
    kind: Pool,
) -> list[Curvature]:
    """Cross-entropy of the pools with weights [T, k] of these members (all, if None)."""
    if members is not None:
        P = P[:, members]
    return [curvature_sums(P, q, v, alpha, kind) for v in weights]


def add_metrics(
    P: Floats, q: Floats, y: NDArray[Any], weights: Floats, kind: str, temperature: float
) -> list[MetricSums]:
    """Metrics of the pools with weights [T, K]."""
    pooled = (sharpen(np.asarray(pool(P, v, kind)), temperature) for v in weights)
    return [MetricSums.of(p, q, y) for p in pooled]


def add_scores(
    P: Floats, q: Floats, y: NDArray[Any], weights: Floats, pools: tuple[Pool, ...]
) -> list[Scores]:
    """Scores of the pools with weights [T, K]."""
    rows = member_rows(P)
    return [
        score_rows(
            lambda kind: log_probabilities(rows) if kind is Pool.LOG else rows,
            q,
            y,
            weights,
            pools,
        )
    ]


def add_powers(
    P: Floats, q: Floats, y: NDArray[Any], weights: Floats, kind: str, power: float
) -> list[Floats]:
    """Cross-entropy of the pool after sharpening to a power, its slope and its bend."""
    return [power_sums(np.asarray(pool(P, weights, kind)), q, power)]
