"""Mini-batches of several seeds side by side, laid out so that a step is two matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from edokit.objective import CE, Problem
from edokit.solvers.draws import Draws

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

# Numbers that one block of steps may gather: few enough to stay near the processor.
_BLOCK = 2**21


@dataclass(frozen=True, eq=False)
class Block:
    """B steps of S seeds, each over n items of C classes.

    A last batch that is short is filled up with an item that adds nothing to any term.
    """

    factors: Floats
    """[B, S, F, K] one matrix per step. Its rows: K of mean distances between members; the mean
    probabilities on the hard label; then, for ``ce="all"``, the members' cross-entropies, or for
    ``"mean"`` the n·C rows that are pooled."""
    targets: Floats
    """[B, S, 1, n, C] soft labels, divided by the number of items of the batch."""
    size_noise: Floats
    """[B, S, 1, M]"""
    losses: Floats | None
    """[B, K, S, 1, n] for ``ce="random"``: the members' losses per item, divided likewise."""
    member_noise: Floats | None
    """[B, K, S, 1, n] for ``ce="random"``."""


class Batches:
    """The fit data, ready to be shuffled and cut."""

    def __init__(self, P: Floats, y: Ints, problem: Problem, ce: CE, batch_size: int) -> None:
        """Of P [N, K, C] and hard labels y [N]; ``problem`` holds the same members and items."""
        self._items, self._members, self._classes = (int(length) for length in P.shape)
        self._batch = min(batch_size, self._items)
        self._ce = ce
        # Item N is the filler: all members agree on it, and it has neither soft nor hard label.
        self._P = _with_filler(P, 1.0).transpose(2, 1, 0).copy()
        self._hits = _with_filler(np.take_along_axis(P, y[:, None, None], axis=2)[:, :, 0], 0.0)
        self._targets = _with_filler(problem.targets, 0.0)
        if ce is CE.MEAN:
            rows = problem.rows.reshape(P.shape[1], P.shape[0], P.shape[2])
            self._rows = _with_filler(rows.transpose(1, 2, 0), 1.0)
        else:
            self._losses = _with_filler(problem.item_losses, 0.0)

    @property
    def steps(self) -> int:
        """Steps per epoch; a last short batch counts."""
        return math.ceil(self._items / self._batch)

    def epoch(self, draws: Sequence[Draws], sizes: int) -> Iterator[Block]:
        """The steps of one epoch, block by block, every seed in its own order."""
        padded = np.full((len(draws), self.steps * self._batch), self._items)
        for s, own in enumerate(draws):
            padded[s, : self._items] = own.shuffle(self._items)
        places = padded.reshape(len(draws), self.steps, self._batch).swapaxes(0, 1)
        counts = np.full(self.steps, float(self._batch))
        counts[-1] = self._items - (self.steps - 1) * self._batch
        per_step = len(draws) * self._members * (self._members + self._batch * self._classes)
        length = max(1, _BLOCK // per_step)
        for start in range(0, self.steps, length):
            part = slice(start, start + length)
            yield self._block(places[part], counts[part], draws, sizes)

    def _block(self, places: Ints, counts: Floats, draws: Sequence[Draws], sizes: int) -> Block:
        """Of the items at ``places`` [B, S, n], ``counts`` [B] of them no fillers."""
        steps, seeds, batch = places.shape
        members = self._members
        per_batch = counts[:, None, None, None]
        after = {CE.MEAN: batch * self._classes, CE.ALL: 1, CE.RANDOM: 0}[self._ce]
        factors = np.empty((steps, seeds, members + 1 + after, members))
        self._put_sums(factors, places)
        factors[:, :, : members + 2] /= per_batch
        losses = noise = None
        if self._ce is CE.MEAN:
            rows = np.take(self._rows, places, axis=0)
            factors[:, :, members + 1 :] = rows.reshape(steps, seeds, -1, members)
        elif self._ce is CE.RANDOM:
            losses = _members_first(np.take(self._losses, places, axis=0) / per_batch)
            noise = _members_first(
                np.stack([own.member_noise(steps, batch, members) for own in draws], axis=1)
            )
        targets = np.take(self._targets, places, axis=0) / per_batch
        size_noise = np.stack([own.size_noise(steps, sizes) for own in draws], axis=1)
        return Block(factors, targets[:, :, None], size_noise[:, :, None], losses, noise)

    def _put_sums(self, factors: Floats, places: Ints) -> None:
        """Fill in the rows that are sums over a batch."""
        steps, seeds, batch = places.shape
        # Seeds share items: look at each item of the block once, then add up by batch.
        used = np.zeros(self._items + 1, dtype=bool)
        used[places] = True
        index = (np.cumsum(used) - 1)[places].ravel()
        by_batch = csr_array(
            (np.ones(index.size), index, np.arange(0, index.size + 1, batch)),
            shape=(steps * seeds, int(used.sum())),
        )

        def sums(values: Floats) -> Floats:
            """[items, R] -> [B, S, R]"""
            total: Floats = (by_batch @ values).reshape(steps, seeds, -1)
            return total

        members = self._members
        P = self._P[:, :, used]
        for k in range(members):
            factors[:, :, k, k] = 0.0
            if k + 1 < members:
                apart = P[:, k + 1 :] - P[:, k : k + 1]
                to_later = sums(np.abs(apart, out=apart).sum(axis=0).T)
                factors[:, :, k, k + 1 :] = to_later
                factors[:, :, k + 1 : members, k] = to_later
        factors[:, :, members] = sums(self._hits[used])
        if self._ce is CE.ALL:
            factors[:, :, members + 1] = sums(self._losses[used])


def _with_filler(values: Floats, filler: float) -> Floats:
    """[N, ...] -> [N + 1, ...]"""
    return np.concatenate([values, np.full((1, *values.shape[1:]), filler)])


def _members_first(values: Floats) -> Floats:
    """[B, S, n, K] -> [B, K, S, 1, n]"""
    return values.transpose(0, 3, 1, 2)[:, :, :, None].copy()
