"""Greedy forward selection of members, as AutoGluon does it."""

from __future__ import annotations

import numpy as np

from edokit._types import Codes, Floats
from edokit.analysis.compare.method import WeightedPool, register_method
from edokit.metrics.formulas import CLIP

ROUNDS = 100
DECIMALS = 6
"""Losses that agree to this many decimals are tied."""


@register_method("greedy", "forward selection with replacement, as AutoGluon does it", order=60)
class Greedy(WeightedPool):
    """Greedy forward selection with replacement (Caruana et al. 2004), with AutoGluon's rules.

    In each of 100 rounds, the member is added that makes the cross-entropy of the mean lowest. The
    rounds after the lowest loss are dropped. The weight of a member is the share of the remaining
    rounds in which it was added.

    Losses that agree to six decimals are tied. A member that was added before wins a tie; else, the
    first by name does, where AutoGluon draws one at random.
    """

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        items, members, _ = P.shape
        total = np.zeros_like(P[:, 0])  # the sum of the added members' predictions
        added: list[int] = []
        losses: list[float] = []
        rounds = ROUNDS if members > 1 else 1
        for _ in range(rounds):
            mean = (total[:, None] + P) / (len(added) + 1)
            logs = np.log(np.clip(mean, CLIP, None))
            ce = np.round(-np.einsum("nkc,nc->k", logs, q) / items, DECIMALS)
            candidates = np.flatnonzero(ce == ce.min())
            added_before = [k for k in candidates if k in added]
            best = int(candidates[0])
            if added_before:
                best = int(added_before[0])
            added.append(best)
            losses.append(float(ce[best]))
            total = total + P[:, best]
        selected = added[: int(np.argmin(losses)) + 1]
        return np.bincount(selected, minlength=members) / len(selected)
