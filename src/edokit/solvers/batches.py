"""Mini-batches of several seeds side by side, laid out so that a step is a few matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edokit._types import Floats, Ints
from edokit.objective.loss import InMemoryTerm, PoolTerm
from edokit.objective.pools import cumulative, slices
from edokit.objective.summaries import Problem

# Numbers that one block of steps may gather: few enough to stay near the processor.
_BLOCK = 2**21
# Numbers of mini-batches that are kept from one call to the next, at most.
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
    pooled: dict[str, tuple[Floats, Floats]]
    """By pool term, what is pooled [B, S, n·c, K] and the targets [B, S, 1, n, c]."""
    size_noise: Floats  # [B, S, 1, M]
    losses: Floats | None
    """[B, S, 1, n, K] for ``ce="random"``: the members' losses per item, divided likewise."""
    member_noise: Floats | None  # [B, S, 1, n, K] for ``ce="random"``
    counts: Floats  # [B] items of each step, fillers apart


class Batches:
    """The fit data, ready to be shuffled and cut."""

    def __init__(self, P: Floats, y: Ints, problem: Problem, batch_size: int) -> None:
        """Of P [N, K, C] and hard labels y [N]; ``problem`` holds the same members and items."""
        self._items, self._members, self._classes = map(int, P.shape)
        self._problem = problem
        self._batch = min(batch_size, self._items)
        self._steps = math.ceil(self._items / self._batch)  # per epoch; a short last batch counts
        # Item N is the filler: all members agree on it, so that it pulls none before another.
        positions = P if problem.steps is None else cumulative(P) * problem.steps
        self._P = _with_filler(positions, 1.0).transpose(2, 1, 0).copy()
        self._hits = _with_filler(np.take_along_axis(P, y[:, None, None], axis=2)[:, :, 0], 0.0)
        self._losses = _with_filler(problem.item_losses, 0.0)
        self._apart: Floats | None = None
        self._kept: dict[object, list[list[Block]]] = {}

    def epochs(
        self,
        count: int,
        seeds: Sequence[int],
        sizes: int,
        terms: Mapping[str, PoolTerm],
        *,
        sampled: bool,
    ) -> Iterable[Iterable[Block]]:
        """The steps of each epoch, block by block, every seed shuffled on its own; go in order.

        ``terms`` are the pool terms that are needed; ``sampled`` says whether the cross-entropy of
        one member drawn per item is. The last ones are kept, if they are few, for the next
        generation of a search.
        """
        key = (count, tuple(seeds), sizes, tuple(sorted(terms)), sampled)
        per_item = self._classes * len(terms) + 2 * sampled
        per_step = len(seeds) * self._members * (self._members + self._batch * per_item)
        if key not in self._kept:
            epochs = self._made(count, seeds, sizes, terms, sampled)
            if count * self._steps * per_step > _KEPT:
                return epochs
            self._kept = {key: [list(epoch) for epoch in epochs]}
        return self._kept[key]

    def _made(
        self,
        count: int,
        seeds: Sequence[int],
        sizes: int,
        terms: Mapping[str, PoolTerm],
        sampled: bool,
    ) -> Iterator[Iterator[Block]]:
        draws = [Draws(seed) for seed in seeds]
        pooled = {name: self._with_items(term) for name, term in terms.items()}
        per_item = 2 + sum(targets.shape[1] for _, targets in pooled.values())
        per_step = len(draws) * self._members * (self._members + self._batch * per_item)
        counts = np.full(self._steps, float(self._batch))
        counts[-1] = self._items - (self._steps - 1) * self._batch
        for _ in range(count):
            padded = np.full((len(draws), self._steps * self._batch), self._items)
            for s, draw in enumerate(draws):
                padded[s, : self._items] = draw.shuffle(self._items)
            places = padded.reshape(len(draws), self._steps, self._batch).swapaxes(0, 1)
            yield (
                self._block(places[part], counts[part], draws, sizes, pooled, sampled)
                for part in slices(self._steps, max(1, _BLOCK // per_step))
            )

    def _with_items(self, term: PoolTerm) -> tuple[Floats, Floats]:
        """What is pooled [N + 1, c, K] and targets [N + 1, c], the filler at the end."""
        rows, targets = InMemoryTerm.of(term, self._problem).items
        by_item = rows.reshape(self._members, *targets.shape).transpose(1, 2, 0)
        return _with_filler(by_item, 1.0), _with_filler(targets, 0.0)

    def _block(
        self,
        places: Ints,
        counts: Floats,
        draws: Sequence[Draws],
        sizes: int,
        pooled: Mapping[str, tuple[Floats, Floats]],
        sampled: bool,
    ) -> Block:
        """Of the items at ``places`` [B, S, n], ``counts`` [B] of them no fillers."""
        steps, seeds, batch = places.shape
        members = self._members
        losses = noise = None
        batches = {
            name: (
                np.take(rows, places, axis=0).reshape(steps, seeds, -1, members),
                np.take(targets, places, axis=0)[:, :, None],
            )
            for name, (rows, targets) in pooled.items()
        }
        if sampled:
            losses = np.take(self._losses, places, axis=0)[:, :, None]
            losses /= counts[:, None, None, None, None]
            member_draws = [draw.member_noise(steps, batch, members) for draw in draws]
            noise = np.stack(member_draws, axis=1)[:, :, None]
        size_noise = np.stack([draw.size_noise(steps, sizes) for draw in draws], axis=1)[:, :, None]
        return Block(*self._means(places, counts), batches, size_noise, losses, noise, counts)

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
