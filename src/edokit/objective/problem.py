"""The fit data as the joint loss sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from edokit.objective.arrays import Array, device_of, double, like, member_rows, namespace
from edokit.objective.pools import log_probabilities
from edokit.objective.settings import Pool
from edokit.objective.summaries import Summaries, check_arrays


@dataclass(frozen=True, eq=False)
class Problem:
    """K members on N items of C classes, in float64, laid out for pools of many weights."""

    hit_rates: Array
    """[K] t, the mean probability on the hard label."""
    distances: Array
    """[K, K] D, the mean L1 distance between members; None if it was not asked for."""
    member_ce: Array
    """[K] a, the cross-entropy of each member alone (class-weighted if ``class_weights``); None if
    it was not asked for."""
    rows: Array
    """[K, N·C] what is pooled: probabilities, or their logarithms for a log pool."""
    targets: Array
    """[N, C] soft labels q, times the class weights α if ``class_weights``."""
    class_weights: bool = False
    pool: Pool = Pool.LINEAR

    @classmethod
    def from_arrays(
        cls,
        P: Array,
        q: Array,
        y: Array,
        *,
        class_weights: bool = False,
        pool: Pool | str = Pool.LINEAR,
        summaries: Summaries | None = None,
    ) -> Problem:
        """The problem of P [N, K, C], soft labels q [N, C] and hard label codes y [N].

        ``summaries`` of more items than these (all shards, say) give the terms that need no
        items, and the class weights.
        """
        check_arrays(P, q, y)
        sums = Summaries.from_arrays(P, q, y) if summaries is None else summaries
        rows = member_rows(P)
        return cls.from_summaries(
            sums,
            class_weights=class_weights,
            pool=pool,
            rows=log_probabilities(rows) if Pool(pool) is Pool.LOG else rows,
            soft_labels=double(q),
        )

    @classmethod
    def from_summaries(
        cls,
        summaries: Summaries,
        *,
        class_weights: bool = False,
        pool: Pool | str = Pool.LINEAR,
        rows: Array | None = None,
        soft_labels: Array | None = None,
        classes: Sequence[str] | None = None,
    ) -> Problem:
        """The problem whose terms are those of the summaries.

        Without ``rows`` [K, N·C] and ``soft_labels`` [N, C] it has no items, which is enough for
        every term but the pool's cross-entropy. ``classes`` are named in errors.
        """
        alpha = summaries.class_weights(classes) if class_weights else None
        if rows is None or soft_labels is None:
            rows = like(np.zeros((summaries.members, 0)), summaries.hits)
            soft_labels = like(np.zeros((0, summaries.classes)), summaries.hits)
        alone = summaries.log_losses is not None
        return cls(
            summaries.hit_rates,
            None if summaries.distances is None else summaries.mean_distances,
            summaries.member_ce(class_weights) if alone else None,
            rows,
            soft_labels if alpha is None else soft_labels * alpha,
            class_weights,
            Pool(pool),
        )

    @property
    def members(self) -> int:
        """K, the number of members."""
        return int(self.rows.shape[0])

    @property
    def items(self) -> int:
        """N, the number of items."""
        return int(self.targets.shape[0])

    @cached_property
    def item_losses(self) -> Array:
        """[N, K] cross-entropy of each member on each item."""
        xp = namespace(self.rows)
        rows = xp.reshape(self.rows, (self.members, *self.targets.shape))
        logs = rows if self.pool is Pool.LOG else log_probabilities(rows)
        return -xp.sum(xp.permute_dims(logs, (1, 0, 2)) * self.targets[:, None, :], axis=2)

    def take(self, items: Array) -> Problem:
        """The problem with only these items (positions) in the terms that need items.

        The other terms stay those of all items: a mini-batch adds no noise to them.
        """
        xp = namespace(self.rows)
        index = xp.asarray(items, device=device_of(self.rows))
        rows = xp.reshape(self.rows, (self.members, *self.targets.shape))
        part = replace(
            self,
            rows=xp.reshape(xp.take(rows, index, axis=1), (self.members, -1)),
            targets=xp.take(self.targets, index, axis=0),
        )
        if "item_losses" in self.__dict__:
            part.__dict__["item_losses"] = xp.take(self.item_losses, index, axis=0)
        return part

    def select(self, members: Array) -> Problem:
        """The problem of these members (positions), in this order."""
        xp = namespace(self.rows)
        index = xp.asarray(np.asarray(members, dtype=np.int64), device=device_of(self.rows))
        return replace(
            self,
            hit_rates=xp.take(self.hit_rates, index, axis=0),
            distances=None
            if self.distances is None
            else xp.take(xp.take(self.distances, index, axis=0), index, axis=1),
            member_ce=None if self.member_ce is None else xp.take(self.member_ce, index, axis=0),
            rows=xp.take(self.rows, index, axis=0),
        )
