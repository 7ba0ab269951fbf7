"""Mini-batches of several seeds side by side, laid out so that a step is a few matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edokit._types import Floats, Ints
from edokit.objective import EPSILON, Pool, Problem
from edokit.objective.pools import cumulative, slices

# Numbers that one block of steps may gather: few enough to stay near the processor.
_BLOCK = 2**21
# Numbers that are kept from one call to the next, at most.
_KEPT = 2**23
# Distances between members that are kept from one block to the next, at most.
_PAIRS = 2**22


class Block(NamedTuple):
    """B steps of S seeds, each over n items of C classes.

    A last batch that is short is filled up with an item that adds nothing to any term.
    """

    distances: Floats  # [B, S, K, K] mean distances between members
    linear: Floats
    """[B, S, 2, K] mean probabilities on the hard label; mean cross-entropies of the members."""
    targets: Floats  # [B, S, 1, n, C] soft labels, divided by the number of items of the batch
    size_noise: Floats  # [B, S, 1, M]
    rows: Floats | None
    """[B, S, n·C, K] for ``ce="mean"``: what is pooled (for a linear pool, plus ε)."""
    losses: Floats | None
    """[B, S, 1, n, K] for ``ce="random"``: the members' losses per item, divided likewise."""
    member_noise: Floats | None  # [B, S, 1, n, K] for ``ce="random"``
    soft_labels: Floats | None
    """[B, S, 1, n, C − 1] cumulative, for distances on a scale; NaN for the filler."""
    counts: Floats  # [B] items of each step, fillers apart


class Batches:
    """The fit data, ready to be shuffled and cut."""

    def __init__(self, P: Floats, y: Ints, problem: Problem, batch_size: int) -> None:
        """Of P [N, K, C] and hard labels y [N]; ``problem`` holds the same members and items."""
        self._items, self._members, self._classes = (int(length) for length in P.shape)
        self._batch = min(batch_size, self._items)
        self._steps = math.ceil(self._items / self._batch)  # per epoch; a short last batch counts
        # Item N is the filler: all members agree on it, and it has neither soft nor hard label.
        positions = P if problem.steps is None else cumulative(P) * problem.steps
        self._P = _with_filler(positions, 1.0).transpose(2, 1, 0).copy()
        self._hits = _with_filler(np.take_along_axis(P, y[:, None, None], axis=2)[:, :, 0], 0.0)
        self._targets = _with_filler(problem.targets, 0.0)
        rows = problem.rows.reshape(P.shape[1], P.shape[0], P.shape[2])
        # Weights sum to one, so that ε beside every member is ε beside the pool.
        epsilon = EPSILON if problem.pool is Pool.LINEAR else 0.0
        self._rows = _with_filler(rows.transpose(1, 2, 0) + epsilon, 1.0)
        self._losses = _with_filler(problem.item_losses, 0.0)
        self._soft: Floats | None = None
        if problem.steps is not None:
            self._soft = _with_filler(cumulative(problem.soft_labels), np.nan)
        self._apart: Floats | None = None
        self._kept: tuple[tuple[object, ...], bool, bool, list[list[Block]]] | None = None

    def epochs(
        self,
        count: int,
        seeds: Sequence[int],
        sizes: int,
        *,
        pooled: bool,
        sampled: bool,
        keep: bool = False,
    ) -> Iterable[Iterable[Block]]:
        """The steps of each epoch, block by block, every seed shuffled on its own; go in order.

        ``pooled`` and ``sampled`` say which kinds of cross-entropy are needed: of the pool, and of
        one member drawn per item. With ``keep`` they are there for the next call, if they are few.
        """
        key = (count, tuple(seeds), sizes)
        if self._kept is not None and self._kept[0] == key:
            _, has_pooled, has_sampled, epochs = self._kept
            if has_pooled >= pooled and has_sampled >= sampled:
                return epochs
            pooled, sampled = pooled or has_pooled, sampled or has_sampled
        if not keep or count * self._steps * self._per_step(len(seeds), pooled, sampled) > _KEPT:
            return self._made(count, seeds, sizes, pooled, sampled)
        epochs = [list(epoch) for epoch in self._made(count, seeds, sizes, pooled, sampled)]
        self._kept = key, pooled, sampled, epochs
        return epochs

    def _made(
        self, count: int, seeds: Sequence[int], sizes: int, pooled: bool, sampled: bool
    ) -> Iterator[Iterator[Block]]:
        draws = [Draws(seed) for seed in seeds]
        at_a_time = max(1, _BLOCK // self._per_step(len(draws), True, True))
        counts = np.full(self._steps, float(self._batch))
        counts[-1] = self._items - (self._steps - 1) * self._batch
        for _ in range(count):
            padded = np.full((len(draws), self._steps * self._batch), self._items)
            for s, draw in enumerate(draws):
                padded[s, : self._items] = draw.shuffle(self._items)
            places = padded.reshape(len(draws), self._steps, self._batch).swapaxes(0, 1)
            yield (
                self._block(places[part], counts[part], draws, sizes, pooled, sampled)
                for part in slices(self._steps, at_a_time)
            )

    def _per_step(self, seeds: int, pooled: bool, sampled: bool) -> int:
        """Numbers that a step takes, more or less."""
        per_item = pooled * self._classes + sampled * 2
        return seeds * self._members * (self._members + self._batch * per_item)

    def _block(
        self,
        places: Ints,
        counts: Floats,
        draws: Sequence[Draws],
        sizes: int,
        pooled: bool,
        sampled: bool,
    ) -> Block:
        """Of the items at ``places`` [B, S, n], ``counts`` [B] of them no fillers."""
        steps, seeds, batch = places.shape
        members = self._members
        distances, linear = self._means(places, counts)
        targets = np.take(self._targets, places, axis=0) / counts[:, None, None, None]
        rows = losses = noise = None
        if pooled:
            rows = np.take(self._rows, places, axis=0).reshape(steps, seeds, -1, members)
        if sampled:
            losses = np.take(self._losses, places, axis=0)[:, :, None]
            losses /= counts[:, None, None, None, None]
            member_draws = [draw.member_noise(steps, batch, members) for draw in draws]
            noise = np.stack(member_draws, axis=1)[:, :, None]
        size_noise = np.stack([draw.size_noise(steps, sizes) for draw in draws], axis=1)
        targets, size_noise = targets[:, :, None], size_noise[:, :, None]
        soft = None if self._soft is None else np.take(self._soft, places, axis=0)[:, :, None]
        return Block(distances, linear, targets, size_noise, rows, losses, noise, soft, counts)

    def _means(self, places: Ints, counts: Floats) -> tuple[Floats, Floats]:
        """Distances [B, S, K, K] and linear terms [B, S, 2, K], means over each batch."""
        steps, seeds, batch = places.shape
        members = self._members
        # Seeds share items: look at each item of the block once, then add up by batch.
        in_block = np.zeros(self._items + 1, dtype=bool)
        in_block[places] = True
        index = (np.cumsum(in_block) - 1)[places].ravel()
        from scipy.sparse import csr_array

        by_batch = csr_array(
            (np.ones(index.size), index, np.arange(0, index.size + 1, batch)),
            shape=(steps * seeds, int(in_block.sum())),
        )
        distances = np.zeros((steps, seeds, members, members))
        for members_k, members_l, distances_by_item in self._pairs(in_block):
            sums = (by_batch @ distances_by_item).reshape(steps, seeds, -1)
            distances[:, :, members_k, members_l] = distances[:, :, members_l, members_k] = sums
        terms = np.concatenate([self._hits[in_block], self._losses[in_block]], axis=1)
        linear = (by_batch @ terms).reshape(steps, seeds, 2, members)
        per_batch = counts[:, None, None, None]
        return distances / per_batch, linear / per_batch

    def _pairs(self, in_block: NDArray[np.bool_]) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Members, other members, and how far they are apart on each used item [items, pairs]."""
        members = self._members
        if (self._items + 1) * members * (members - 1) // 2 <= _PAIRS:
            if self._apart is None:
                parts = [self._to_later(k, slice(None)) for k in range(members - 1)]
                self._apart = np.concatenate([np.empty((self._items + 1, 0)), *parts], axis=1)
            yield *np.triu_indices(members, 1), self._apart[in_block]
            return
        # Too many to keep: each member with those after it, in turn.
        for k in range(members - 1):
            later = np.arange(k + 1, members)
            yield np.full_like(later, k), later, self._to_later(k, in_block)

    def _to_later(self, k: int, in_block: slice | NDArray[np.bool_]) -> Floats:
        """[items, members after k]"""
        P = self._P[:, k:, in_block]
        distances = P[:, 1:] - P[:, :1]
        return np.asarray(np.abs(distances, out=distances).sum(axis=0).T)


def _with_filler(values: Floats, filler: float) -> Floats:
    """[N, ...] -> [N + 1, ...]"""
    return np.concatenate([values, np.full((1, *values.shape[1:]), filler)])


class Draws:
    """The shuffles and the Gumbel noise of one seed, drawn in the order in which a fit asks.

    Streams are separate: how many numbers one has given does not move the others.
    """

    def __init__(self, seed: int) -> None:
        streams = np.random.SeedSequence(seed).spawn(3)
        self._order, self._sizes, self._members = (np.random.default_rng(s) for s in streams)

    def shuffle(self, items: int) -> Ints:
        """[N] the items in random order, for one epoch."""
        return self._order.permutation(items)

    def size_noise(self, steps: int, sizes: int) -> Floats:
        """[steps, M] Gumbel noise for the draw of a size at each step."""
        return _gumbel(self._sizes, (steps, sizes))

    def member_noise(self, steps: int, batch: int, members: int) -> Floats:
        """[steps, n, K] Gumbel noise for the draw of a member per item at each step."""
        return _gumbel(self._members, (steps, batch, members))


def _gumbel(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    # Minus the logarithm of an exponential variable; much faster than rng.gumbel. An exponential
    # below 2^-53 (one draw in as many) would be noise without bounds.
    noise = rng.standard_exponential(shape)
    np.maximum(noise, 2.0**-53, out=noise)
    np.log(noise, out=noise)
    return np.negative(noise, out=noise)
