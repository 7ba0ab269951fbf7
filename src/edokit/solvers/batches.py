"""Mini-batches, laid out so that a step is a few matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

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
    """B steps, each over n items of C classes.

    A last batch that is short is filled up with an item that adds nothing to any term.
    """

    distances: Floats  # [B, K, K] mean distances between members
    linear: Floats
    """[B, 2, K] mean probabilities on the hard label; mean cross-entropies of the members."""
    pooled: dict[str, tuple[Floats, Floats]]
    """By pool term, what is pooled [B, n·c, K] and the targets [B, 1, n, c]."""
    size_noise: Floats  # [B, 1, M]
    losses: Floats | None
    """[B, 1, n, K] for ``ce="random"``: the members' losses per item, divided likewise."""
    member_noise: Floats | None  # [B, 1, n, K] for ``ce="random"``
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
        if problem.steps is None:
            positions = P
        else:
            positions = cumulative(P) * problem.steps
        self._P = _with_filler(positions, 1.0).transpose(2, 1, 0).copy()
        self._hits = _with_filler(np.take_along_axis(P, y[:, None, None], axis=2)[:, :, 0], 0.0)
        self._losses = _with_filler(problem.item_losses, 0.0)
        self._apart: Floats | None = None
        self._kept: dict[object, list[list[Block]]] = {}

    def epochs(
        self, count: int, seed: int, sizes: int, terms: Mapping[str, PoolTerm], *, sampled: bool
    ) -> Iterable[Iterable[Block]]:
        """The steps of each epoch, block by block; go in order.

        ``terms`` are the pool terms that are needed; ``sampled`` says whether the cross-entropy of
        one member drawn per item is. The last ones are kept, if they are few, for the next
        generation of a search.
        """
        key = (count, seed, sizes, tuple(sorted(terms)), sampled)
        per_item = self._classes * len(terms) + 2 * sampled
        per_step = self._members * (self._members + self._batch * per_item)
        if key not in self._kept:
            epochs = self._made(count, Draws(seed), sizes, terms, sampled)
            if count * self._steps * per_step > _KEPT:
                return epochs
            self._kept = {key: [list(epoch) for epoch in epochs]}
        return self._kept[key]

    def _made(
        self, count: int, draws: Draws, sizes: int, terms: Mapping[str, PoolTerm], sampled: bool
    ) -> Iterator[Iterator[Block]]:
        pooled = {name: self._with_items(term) for name, term in terms.items()}
        per_item = 2 + sum(targets.shape[1] for _, targets in pooled.values())
        per_step = self._members * (self._members + self._batch * per_item)
        counts = np.full(self._steps, float(self._batch))
        counts[-1] = self._items - (self._steps - 1) * self._batch
        for _ in range(count):
            padded = np.full(self._steps * self._batch, self._items)
            padded[: self._items] = draws.shuffle(self._items)
            places = padded.reshape(self._steps, self._batch)
            yield (
                self._block(places[part], counts[part], draws, sizes, pooled, sampled)
                for part in slices(self._steps, max(1, _BLOCK // per_step))
            )

    def _with_items(self, term: PoolTerm) -> tuple[Floats, Floats]:
        """What is pooled [N + 1, c, K] and targets [N + 1, c], the filler at the end."""
        rows, targets = InMemoryTerm.from_problem(term, self._problem).items
        by_item = rows.reshape(self._members, *targets.shape).transpose(1, 2, 0)
        return _with_filler(by_item, 1.0), _with_filler(targets, 0.0)

    def _block(
        self,
        places: Ints,
        counts: Floats,
        draws: Draws,
        sizes: int,
        pooled: Mapping[str, tuple[Floats, Floats]],
        sampled: bool,
    ) -> Block:
        """Of the items at ``places`` [B, n], ``counts`` [B] of them no fillers."""
        steps, batch = places.shape
        losses = noise = None
        batches = {
            name: (rows[places].reshape(steps, -1, self._members), targets[places][:, None])
            for name, (rows, targets) in pooled.items()
        }
        if sampled:
            losses = (self._losses[places] / counts[:, None, None])[:, None]
            noise = draws.member_noise(steps, batch, self._members)[:, None]
        size_noise = draws.size_noise(steps, sizes)[:, None]
        linear = np.stack([self._hits[places].sum(axis=1), self._losses[places].sum(axis=1)], 1)
        return Block(
            self._distances(places) / counts[:, None, None],
            linear / counts[:, None, None],
            batches,
            size_noise,
            losses,
            noise,
            counts,
        )

    def _distances(self, places: Ints) -> Floats:
        """[B, K, K] distances between members, added up over each batch of items [B, n]."""
        members = self._members
        distances = np.zeros((len(places), members, members))
        if (self._items + 1) * members * (members - 1) // 2 <= _PAIRS:
            if self._apart is None:
                parts = [self._to_later(k, slice(None)) for k in range(members - 1)]
                self._apart = np.concatenate([np.empty((self._items + 1, 0)), *parts], axis=1)
            row, column = np.triu_indices(members, 1)
            distances[:, row, column] = self._apart[places].sum(axis=1)
        else:  # too many to keep: each member with those after it, in turn
            for k in range(members - 1):
                distances[:, k, k + 1 :] = self._to_later(k, places).sum(axis=1)
        return distances + distances.swapaxes(1, 2)

    def _to_later(self, k: int, places: slice | Ints) -> Floats:
        """[..., members after k] how far each of them is from member k, on items [...]."""
        P = self._P[:, k:, places]
        distances = P[:, 1:] - P[:, :1]
        return np.moveaxis(np.abs(distances, out=distances).sum(axis=0), 0, -1)


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
    # below 2^-53 (one draw in as many) would be unbounded noise.
    noise = rng.standard_exponential(shape)
    np.maximum(noise, 2.0**-53, out=noise)
    np.log(noise, out=noise)
    return np.negative(noise, out=noise)
