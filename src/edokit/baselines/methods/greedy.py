"""Greedy forward selection with replacement (Caruana et al. 2004), with AutoGluon's rules."""

from __future__ import annotations

import numpy as np

from edokit._types import Codes, Floats
from edokit.baselines.method import WeightedPool
from edokit.baselines.registry import method
from edokit.metrics.scores import CLIP

ROUNDS = 100
DECIMALS = 6


@method("greedy", "forward selection with replacement, as AutoGluon does it", place=60)
class Greedy(WeightedPool):
    """In each of 100 rounds the member joins that lowers the cross-entropy of the mean most.

    A member may join again and again; its share of the joins is its weight. As in AutoGluon,
    losses count to six decimals, of equals a member that is in already goes first, and the
    rounds after the lowest loss are dropped. Where AutoGluon draws lots, the first by name wins.
    """

    def learn(self, P: Floats, q: Floats, y: Codes) -> Floats:
        items, members, _ = P.shape
        total = np.zeros_like(P[:, 0])
        joined: list[int] = []
        losses: list[float] = []
        for _ in range(ROUNDS if members > 1 else 1):
            mean = (total[:, None] + P) / (len(joined) + 1)
            logs = np.log(np.clip(mean, CLIP, None))
            each = np.round(-np.einsum("nkc,nc->k", logs, q) / items, DECIMALS)
            equal = np.flatnonzero(each == each.min())
            inside = [k for k in equal if k in joined]
            best = int(inside[0] if inside else equal[0])
            joined.append(best)
            losses.append(float(each[best]))
            total = total + P[:, best]
        kept = joined[: int(np.argmin(losses)) + 1]
        return np.bincount(kept, minlength=members) / len(kept)
