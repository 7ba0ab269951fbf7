"""Greedy forward selection of members, as AutoGluon does it."""

from __future__ import annotations

import numpy as np

from edokit._types import Codes, Floats
from edokit.analysis.compare.method import WeightedPool, register_method
from edokit.metrics.formulas import CLIP

ROUNDS = 100
DECIMALS = 6


@register_method("greedy", "forward selection with replacement, as AutoGluon does it", order=60)
class Greedy(WeightedPool):
    """Greedy forward selection with replacement (Caruana et al. 2004), with AutoGluon's rules.

    In each of 100 rounds the member joins that lowers the cross-entropy of the mean most; its share
    of the joins is its weight. Losses count to six decimals, of equals a member that is in already
    goes first, and the rounds after the lowest loss are dropped. Where AutoGluon breaks a tie at
    random, the first by name wins.
    """

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        items, members, _ = P.shape
        total = np.zeros_like(P[:, 0])
        joined: list[int] = []
        losses: list[float] = []
        rounds = ROUNDS if members > 1 else 1
        for _ in range(rounds):
            mean = (total[:, None] + P) / (len(joined) + 1)
            logs = np.log(np.clip(mean, CLIP, None))
            ce = np.round(-np.einsum("nkc,nc->k", logs, q) / items, DECIMALS)
            candidates = np.flatnonzero(ce == ce.min())
            already_in = [k for k in candidates if k in joined]
            best = int(candidates[0])
            if already_in:
                best = int(already_in[0])
            joined.append(best)
            losses.append(float(ce[best]))
            total = total + P[:, best]
        selected = joined[: int(np.argmin(losses)) + 1]
        return np.bincount(selected, minlength=members) / len(selected)
