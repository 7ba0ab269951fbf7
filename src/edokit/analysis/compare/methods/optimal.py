"""The pools with the lowest cross-entropy on dev, without any other term."""

from __future__ import annotations

from edokit._types import Codes, Floats
from edokit.analysis.compare.method import WeightedPool, register_method
from edokit.fitdata.data import FitData
from edokit.objective.settings import Objective
from edokit.solvers.exact import solve_exact


@register_method("linear-pool", "the linear pool with the lowest CE on dev", order=70)
class LinearPool(WeightedPool):
    """Log-score-optimal weights of the weighted mean."""

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        settings = Objective(f1=0.0, reg=0.0).resolve(self.pool)
        data = FitData.from_arrays(P, q, y)
        return solve_exact(data, settings, all_terms=False).weights


@register_method("log-pool", "the logarithmic pool with the lowest CE on dev", order=80)
class LogPool(LinearPool):
    """Log-score-optimal weights of the normalised weighted geometric mean."""

    pool = "log"
