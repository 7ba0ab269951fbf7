"""The fit data as the joint loss sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from edokit.objective.arrays import Array, device_of, double, members_first, namespace, slices
from edokit.objective.pools import log_probabilities
from edokit.objective.settings import CE, Pool, Settings
from edokit.objective.summaries import Summaries, check_arrays, not_codes, not_finite

# Items that are put in the members' order in one go: what is read and written stays in the cache.
_TURNED = 256
_FEW_CLASSES = 8


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
        kind = Pool(pool)
        check_arrays(P, q, y)
        sums = Summaries.from_arrays(P, q, y) if summaries is None else summaries
        values = log_probabilities(double(P)) if kind is Pool.LOG else double(P)
        targets = double(q)
        return cls(
            sums.hit_rates,
            sums.mean_distances,
            sums.member_ce(class_weights),
            _by_member(values),
            targets * sums.class_weights() if class_weights else targets,
            class_weights,
            kind,
        )

    @classmethod
    def for_settings(cls, P: Array, q: Array, y: Array, settings: Settings) -> Problem:
        """The problem of arrays as above, with what these settings weigh and no more.

        Without a diversity term nobody asks for distances between all pairs of members, and
        without ``ce="all"`` or ``"random"`` nobody asks how good each is alone.
        """
        alone = settings.ce is not CE.MEAN and settings.lambda_ce > 0
        if settings.lambda_div or settings.class_weights or alone or not isinstance(P, np.ndarray):
            return cls.from_arrays(
                P, q, y, class_weights=settings.class_weights, pool=settings.pool
            )
        check_arrays(P, q, y)
        inside = (y >= 0) & (y < P.shape[2])
        if not inside.all():
            raise not_codes(int((~inside).sum()), len(y), P.shape[2])
        if len(P) and not (P.min() >= 0 and P.max() < np.inf and q.min() >= 0 and q.max() < np.inf):
            raise not_finite()
        hits = P[np.arange(len(y)), :, y].mean(axis=0, dtype=np.float64)
        values = log_probabilities(double(P)) if settings.pool is Pool.LOG else double(P)
        return cls(hits, None, None, _by_member(values), double(q), False, settings.pool)

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


def _by_member(values: Array) -> Array:
    """[N, K, C] -> [K, N·C]."""
    items, members, classes = values.shape
    if not isinstance(values, np.ndarray):
        return namespace(values).reshape(members_first(values), (members, -1))
    rows = np.empty((members, items * classes))
    turn(values, rows)
    return rows


def turn(values: Array, rows: Array) -> None:
    """Copy a numpy array [N, K, C] into rows [K, N·C], a block at a time."""
    items, members, classes = values.shape
    if classes > _FEW_CLASSES:
        rows.reshape(members, items, classes)[...] = members_first(values)
        return
    # Class by class, a block of items is a matrix to be turned, which numpy does several times
    # faster than it permutes three axes.
    flat = values.reshape(items, members * classes)
    for s in slices(items, _TURNED):
        for c in range(classes):
            rows[:, s.start * classes + c : s.stop * classes : classes] = flat[s, c::classes].T
