"""How good configurations are, in-sample and on held-out folds, and which ones nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edokit._errors import InputError
from edokit._types import Bools, Floats
from edokit.analysis.search.options import SearchPlan
from edokit.config import FitConfig
from edokit.fitdata.data import FitData
from edokit.objective.settings import Gumbel
from edokit.solvers import Solution
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel, warn_if_sampled

# The last digits of a fit depend on how many configurations are in its batch. Results rounded to
# this many digits don't, and a search that was interrupted within a generation continues alike.
_DIGITS = 12


@dataclass(frozen=True)
class TrialEvaluation:
    """How good a configuration is, and the weights that it leads to."""

    optimistic: dict[str, float]
    """Metrics on the data it was fitted on."""
    cross_fitted: dict[str, float] | None
    """Metrics on held-out folds; None without folds."""
    size: int
    weights: tuple[float, ...]
    """The members' weights [K], fitted on all data."""


class Evaluator:
    """Evaluates configurations on the fit data and on held-out folds, a batch at a time."""

    def __init__(self, data: FitData, plan: SearchPlan) -> None:
        self.data = data
        self.plan = plan
        self._folds: list[tuple[FitData, FitData]] = []
        if plan.folds:
            self._folds = data.folds(plan.folds, plan.random_state)
        if plan.solver == "gumbel":
            warn_if_sampled(data)

    def evaluate(self, configurations: Sequence[FitConfig]) -> list[TrialEvaluation]:
        """Evaluate each configuration; all of them are solved as one batch."""
        pools = [configuration.pool for configuration in configurations]
        solutions = solve(self.data, configurations, self.plan)
        optimistic = self.data.scores(_stack_weights(solutions), pools).estimates()
        fold_scores = []
        for fit_part, held_out_part in self._folds:
            fold_solutions = solve(fit_part, configurations, self.plan)
            fold_scores.append(held_out_part.scores(_stack_weights(fold_solutions), pools))
        cross_fitted: list[dict[str, float] | None] = [None] * len(solutions)
        if fold_scores:
            total = sum(fold_scores[1:], fold_scores[0])
            cross_fitted = [_rounded(estimate) for estimate in total.estimates()]
        evaluations = []
        for t, solution in enumerate(solutions):
            weights = tuple(solution.weights.round(_DIGITS).tolist())
            evaluations.append(
                TrialEvaluation(_rounded(optimistic[t]), cross_fitted[t], solution.size, weights)
            )
        return evaluations


def solve(data: FitData, configurations: Sequence[FitConfig], plan: SearchPlan) -> list[Solution]:
    """A solution for each configuration by the plan's solver."""
    if plan.solver == "exact":
        return [
            solve_exact(
                data,
                configuration.objective.resolve(configuration.pool),
                max_members=configuration.solver.max_members,
            )
            for configuration in configurations
        ]
    settings = []
    options = []
    for configuration in configurations:
        assert isinstance(configuration.solver, Gumbel)
        settings.append(configuration.objective.resolve(configuration.pool))
        # All steps of a trial are given, so that folds take as many as all items.
        options.append(configuration.solver.resolve(len(data)))
    with np.errstate(all="ignore"):
        solutions = solve_gumbel(
            data, settings, options, random_state=plan.random_state, trajectory=False
        )
    for solution, steps in zip(solutions, options, strict=True):
        if not np.isfinite(solution.weights).all():
            raise InputError(
                f"a trial ends in weights that are not finite, with {steps}",
                "narrow the space: a lower learning_rate, or a higher min_temperature",
                code="diverged-training",
            )
    return solutions


def non_dominated(points: Floats) -> Bools:
    """Whether no other of the points [T, M] is as low in every column and lower in one [T]."""
    on_front = np.ones(len(points), dtype=bool)
    for t, point in enumerate(points):
        is_as_low = (points <= point).all(axis=1)
        is_lower_somewhere = (points < point).any(axis=1)
        on_front[t] = not (is_as_low & is_lower_somewhere).any()
    return on_front


def _stack_weights(solutions: Sequence[Solution]) -> Floats:
    """The weights of all solutions [T, K]."""
    return np.stack([solution.weights for solution in solutions])


def _rounded(estimate: dict[str, float]) -> dict[str, float]:
    """The metrics without the digits that depend on the batch."""
    return {name: round(value, _DIGITS) for name, value in estimate.items()}
