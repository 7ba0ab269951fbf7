"""The one member that comes closest to people's answers on the fit data."""

from __future__ import annotations

import numpy as np

from edokit._types import Codes, Floats
from edokit.baselines.method import WeightedPool, member_ce
from edokit.baselines.registry import method


@method("best-single", "the member with the lowest CE on dev", place=20)
class BestSingle(WeightedPool):
    """The member with the lowest cross-entropy; of equals, the first by name."""

    def learn(self, P: Floats, q: Floats, y: Codes) -> Floats:
        weights = np.zeros(P.shape[1])
        weights[member_ce(P, q).argmin()] = 1.0
        return weights
