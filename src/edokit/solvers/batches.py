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

# A block of steps holds at most this many numbers, so that it stays in the processor's cache.
_BLOCK = 2**21
# Mini-batches are kept for the next call if they hold at most this many numbers.
_KEPT = 2**23
# Distances between members on each item are kept if there are at most this many.
_KEPT_DISTANCES = 2**22


class Block(NamedTuple):
    """B steps, each over n items of C classes.

    A short last batch is filled up with an item that moves no weight. Means are over the items of
    a step without the fillers; ``counts`` holds their number.
    """

    distances: Floats
    """[B, K, K] mean distance between each two members."""
    linear: Floats
    """[B, 2, K] two means per member: its probability of the hard label, and its cross-entropy."""
    pooled: dict[str, tuple[Floats, Floats]]
    """By pool term, the members' coordinates [B, n·c, K] and the targets [B, 1, n, c], neither
    divided by the number of items; c coordinates describe an item."""
    size_noise: Floats
    """[B, 1, M] Gumbel noise for the draw of a size."""
    losses: Floats | None
    """[B, 1, n, K] cross-entropy of each member on each item, divided by the number of items; only
    for ``ce="random"``."""
    member_noise: Floats | None
    """[B, 1, n, K] Gumbel noise for the draw of a member per item; only for ``ce="random"``."""
    counts: Floats
    """[B] number of items of each step, without the fillers."""


class Batches:
    """The fit data, ready to be shuffled and cut."""

    def __init__(self, P: Floats, y: Ints, problem: Problem, batch_size: int) -> None:
        """Prepare probabilities P [N, K, C] and hard labels y [N].

        ``problem`` is made of the same members and items.
        """
        items, members, classes = P.shape
        self._items = int(items)
        self._members = int(members)
        self._classes = int(classes)
        self._problem = problem
        self._batch = min(batch_size, self._items)
        # A short last batch is a step, too.
        self._steps_per_epoch = math.ceil(self._items / self._batch)
        # Points whose distance, the sum of absolute differences, is that of the members.
        if problem.steps is None:
            points = P
        else:
            points = cumulative(P) * problem.steps
        # Item N is the filler: all members agree on it, so that its slope is the same for each of
        # them and moves no weight.
        self._points = _with_filler(points, 1.0).transpose(2, 1, 0).copy()  # [c, K, N + 1]
        self._hits = _with_filler(np.take_along_axis(P, y[:, None, None], axis=2)[:, :, 0], 0.0)
        self._losses = _with_filler(problem.item_losses, 0.0)
        # [N + 1, K(K − 1)/2] on each item, if they are few.
        self._all_distances: Floats | None = None
        self._kept: dict[object, list[list[Block]]] = {}

    def epochs(
        self,
        count: int,
        seed: int,
        n_sizes: int,
        terms: Mapping[str, PoolTerm],
        *,
        with_drawn: bool,
    ) -> Iterable[Iterable[Block]]:
        """The steps of each epoch, block by block.

        Epochs and blocks must be read in order, because their noise is drawn as they are read. If
        they are few, they are kept, so that the next call with the same arguments finds them.

        Parameters
        ----------
        count : int
            The number of epochs.
        seed : int
            Seed of the shuffles and of the noise.
        n_sizes : int
            The number of sizes between which a fit chooses.
        terms : mapping of str to PoolTerm
            The pool terms whose items are needed.
        with_drawn : bool
            Whether the losses and the noise of members drawn per item are needed
            (``ce="random"``).
        """
        key = (count, seed, n_sizes, tuple(sorted(terms)), with_drawn)
        if key not in self._kept:
            kept_per_item = self._classes * len(terms) + 2 * with_drawn
            kept_per_step = self._members * (self._members + self._batch * kept_per_item)
            epochs = self._draw_epochs(count, Draws(seed), n_sizes, terms, with_drawn)
            if count * self._steps_per_epoch * kept_per_step > _KEPT:
                return epochs
            self._kept = {key: [list(epoch) for epoch in epochs]}
        return self._kept[key]

    def _draw_epochs(
        self,
        count: int,
        draws: Draws,
        n_sizes: int,
        terms: Mapping[str, PoolTerm],
        with_drawn: bool,
    ) -> Iterator[Iterator[Block]]:
        """Shuffle the items for each epoch, and cut them into blocks of steps."""
        pooled = {name: self._pooled_items(term) for name, term in terms.items()}
        gathered_per_item = 2 + sum(targets.shape[1] for _, targets in pooled.values())
        gathered_per_step = self._members * (self._members + self._batch * gathered_per_item)
        steps_per_block = max(1, _BLOCK // gathered_per_step)
        steps = self._steps_per_epoch
        counts = np.full(steps, float(self._batch))
        counts[-1] = self._items - (steps - 1) * self._batch
        for _ in range(count):
            # Places that no item takes, at the end of the last batch, keep the filler, item N.
            padded = np.full(steps * self._batch, self._items)
            padded[: self._items] = draws.shuffle(self._items)
            places = padded.reshape(steps, self._batch)
            yield (
                self._block(places[part], counts[part], draws, n_sizes, pooled, with_drawn)
                for part in slices(steps, steps_per_block)
            )

    def _pooled_items(self, term: PoolTerm) -> tuple[Floats, Floats]:
        """The members' coordinates [N + 1, c, K] and the targets [N + 1, c], with the filler."""
        rows, targets = InMemoryTerm.from_problem(term, self._problem).items
        by_item = rows.reshape(self._members, *targets.shape).transpose(1, 2, 0)
        return _with_filler(by_item, 1.0), _with_filler(targets, 0.0)

    def _block(
        self,
        places: Ints,
        counts: Floats,
        draws: Draws,
        n_sizes: int,
        pooled: Mapping[str, tuple[Floats, Floats]],
        with_drawn: bool,
    ) -> Block:
        """B steps over the items at ``places`` [B, n].

        ``counts`` [B] of the places in a step hold items, the others the filler.
        """
        steps, batch = places.shape
        losses = None
        member_noise = None
        batches = {
            name: (rows[places].reshape(steps, -1, self._members), targets[places][:, None])
            for name, (rows, targets) in pooled.items()
        }
        divisors = counts[:, None, None]
        if with_drawn:
            losses = (self._losses[places] / divisors)[:, None]
            member_noise = draws.member_noise(steps, batch, self._members)[:, None]
        hits = self._hits[places].sum(axis=1)
        member_ce = self._losses[places].sum(axis=1)
        return Block(
            distances=self._distances(places) / divisors,
            linear=np.stack([hits, member_ce], axis=1) / divisors,
            pooled=batches,
            size_noise=draws.size_noise(steps, n_sizes)[:, None],
            losses=losses,
            member_noise=member_noise,
            counts=counts,
        )

    def _distances(self, places: Ints) -> Floats:
        """[B, K, K] distances between members, summed over the items of each step [B, n]."""
        members = self._members
        distances = np.zeros((len(places), members, members))
        if (self._items + 1) * members * (members - 1) // 2 <= _KEPT_DISTANCES:
            if self._all_distances is None:
                parts = [self._distances_to_later(k, slice(None)) for k in range(members - 1)]
                # With a single member there are no parts to concatenate but the empty array.
                empty = np.empty((self._items + 1, 0))
                self._all_distances = np.concatenate([empty, *parts], axis=1)
            row, column = np.triu_indices(members, 1)
            distances[:, row, column] = self._all_distances[places].sum(axis=1)
        else:  # too many to keep: each member with those after it, in turn
            for k in range(members - 1):
                distances[:, k, k + 1 :] = self._distances_to_later(k, places).sum(axis=1)
        # Only the upper triangle is filled in so far.
        return distances + distances.swapaxes(1, 2)

    def _distances_to_later(self, k: int, places: slice | Ints) -> Floats:
        """[..., K − k − 1] distances from member k to each one after it, on items [...]."""
        points = self._points[:, k:, places]
        differences = points[:, 1:] - points[:, :1]
        np.abs(differences, out=differences)
        return np.moveaxis(differences.sum(axis=0), 0, -1)


def _with_filler(values: Floats, filler: float) -> Floats:
    """Append an item that is ``filler`` everywhere: [N, ...] -> [N + 1, ...]."""
    return np.concatenate([values, np.full((1, *values.shape[1:]), filler)])


class Draws:
    """The shuffles and the Gumbel noise of one seed, drawn as a fit asks for them.

    Shuffles, sizes and members have a random stream each: what is drawn from one of them does not
    depend on how much was drawn from the others.
    """

    def __init__(self, seed: int) -> None:
        order_seed, size_seed, member_seed = np.random.SeedSequence(seed).spawn(3)
        self._order_rng = np.random.default_rng(order_seed)
        self._size_rng = np.random.default_rng(size_seed)
        self._member_rng = np.random.default_rng(member_seed)

    def shuffle(self, items: int) -> Ints:
        """[N] the items in random order, for one epoch."""
        return self._order_rng.permutation(items)

    def size_noise(self, steps: int, sizes: int) -> Floats:
        """[steps, M] Gumbel noise for the draw of a size at each step."""
        return _gumbel(self._size_rng, (steps, sizes))

    def member_noise(self, steps: int, batch: int, members: int) -> Floats:
        """[steps, n, K] Gumbel noise for the draw of a member per item at each step."""
        return _gumbel(self._member_rng, (steps, batch, members))


def _gumbel(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Gumbel noise: minus the logarithm of an exponential variable, faster than `rng.gumbel`."""
    # Noise is infinite at an exponential of 0. The limit, 2^-53, changes one draw in 2^53.
    noise = rng.standard_exponential(shape)
    np.maximum(noise, 2.0**-53, out=noise)
    np.log(noise, out=noise)
    return np.negative(noise, out=noise)
