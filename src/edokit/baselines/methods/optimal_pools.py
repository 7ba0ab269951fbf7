"""The pools with the lowest cross-entropy on the fit data, and no other term: exactly solved."""

from __future__ import annotations

from edokit._types import Codes, Floats
from edokit.baselines.method import WeightedPool
from edokit.baselines.registry import method
from edokit.objective import Pool, Problem, Settings
from edokit.solvers import solve_exact


@method("linear-pool", "the linear pool with the lowest CE on dev", place=70)
class LinearPool(WeightedPool):
    """Log-score-optimal weights of the weighted mean."""

    def learn(self, P: Floats, q: Floats, y: Codes) -> Floats:
        kind = Pool(self.pool)
        settings = Settings(lambda_f1=0.0, lambda_ce=1.0, lambda_div=0.0, lambda_reg=0.0, pool=kind)
        problem = Problem.for_settings(P, q, y, settings)
        return solve_exact(problem, settings).weights


@method("log-pool", "the logarithmic pool with the lowest CE on dev", place=80)
class LogPool(LinearPool):
    """Log-score-optimal weights of the normalised weighted geometric mean."""

    pool = "log"
