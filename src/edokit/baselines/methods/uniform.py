"""The plain mean of all members: what every other method has to beat."""

from __future__ import annotations

import numpy as np

from edokit._types import Codes, Floats
from edokit.baselines.method import WeightedPool
from edokit.baselines.registry import method


@method("uniform", "the plain mean of all members", place=10)
class Uniform(WeightedPool):
    """Every member with the same weight."""

    def learn(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return np.full(P.shape[1], 1.0 / P.shape[1])
