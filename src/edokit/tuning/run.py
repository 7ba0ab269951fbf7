"""The loop of a search: a generation of trials is proposed, fitted in one batch, and stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.storages._heartbeat import get_heartbeat_thread

from edokit._errors import InputError, option, warn
from edokit._types import Floats
from edokit.fitdata import FitData
from edokit.metrics import search_metrics
from edokit.solvers import Solution
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel
from edokit.tuning.options import Plan
from edokit.tuning.space import Configuration
from edokit.tuning.storage import StudyStorage
from edokit.tuning.study import (
    finished,
    give_up_interrupted,
    open_study,
    read_trials,
    take_trials,
    tell,
)
from edokit.tuning.trials import ParetoFront, SearchTrial

if TYPE_CHECKING:
    from optuna.study import Study


def foldable(data: FitData, plan: Plan) -> bool:
    """Whether the usual folds leave something to learn from; warns if not."""
    sums = data.summaries()
    rare = plan.space.class_weights is not False and bool(
        (sums.class_counts[sums.soft_counts > 0] == 1).any()
    )
    if data.items >= 2 * plan.folds and not rare:
        return True
    reason = "a class has a single item" if rare else f"there are {data.items} items"
    warn(f"trials have no estimate on held-out folds, since {reason}; give folds to have one")
    return False


Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called with the finished trials, all trials, and the front's best metrics so far."""


def run_study(
    opened: StudyStorage, plan: Plan, data: FitData, *, progress: Progress | None = None
) -> tuple[list[SearchTrial], int]:
    """The finished trials of the plan's study, and how many of them were there before.

    A worker shares the study with others: it claims a quarter of a generation at a time.
    """
    if plan.worker and not opened.shared:
        location = option("storage", "postgresql://USER@HOST/DATABASE")
        raise InputError(
            f"workers share a study on PostgreSQL, but the storage is {opened.shown}",
            f"give {location}, or leave {option('worker')} out",
        )
    study = open_study(opened.storage, plan, data)
    done_before = min(len(finished(study)), plan.trials)
    run(study, plan, data, progress=progress)
    return read_trials(finished(study), plan, data), done_before


def run(study: Study, plan: Plan, data: FitData, *, progress: Progress | None = None) -> None:
    """Finish the study's trials, as many as are planned; those that are done stay as they are."""
    evaluator, rows = Evaluator(data, plan), len(data.sample.y)
    metrics = search_metrics(data.scale)
    limit = -(-plan.population // _SHARE) if plan.worker else None

    def report() -> None:
        if progress is None:
            return
        done = read_trials(finished(study), plan, data)
        best = ParetoFront.of(done).best if done else {}
        progress(min(len(done), plan.trials), plan.trials, best)

    report()
    give_up_interrupted(study)
    while len(finished(study)) < plan.trials:
        batch = take_trials(study, plan, limit=limit)
        if not batch:  # other processes have the rest of the generation
            time.sleep(_POLL)
            continue
        with ExitStack() as heartbeats:
            for trial in batch:
                thread: Any = get_heartbeat_thread(trial._trial_id, study._storage)
                heartbeats.enter_context(thread)
            results = evaluator([plan.space.configuration(trial.params, rows) for trial in batch])
        for trial, result in zip(batch, results, strict=True):
            tell(study, trial, result, plan.judge, metrics)
        report()


_POLL = 0.25  # seconds
# A worker takes a quarter of a generation: few enough to share, enough to be solved in batches.
_SHARE = 4
# The last digits of a fit depend on how many configurations it is batched with; without them, a
# search that was interrupted within a generation goes on as if it had not been.
_DIGITS = 12


class Evaluator:
    """Estimates how good configurations are, on the fit data and on held-out folds."""

    def __init__(self, data: FitData, plan: Plan) -> None:
        self.data, self.plan = data, plan
        self._folds = data.folds(plan.folds, plan.random_state) if plan.folds else []
        if plan.solver == "gumbel" and data.is_sampled:
            warn(
                "gumbel trials learn from a random sample of"
                f" {len(data.sample.y) // data.rows_per_item} of {data.items} items"
                f" and are evaluated on all ({option('solver', 'exact')} learns from all)",
            )

    def __call__(self, chosen: Sequence[Configuration]) -> list[dict[str, Any]]:
        """The estimates ``optimistic`` and ``cross-fitted`` (None without folds) of each
        configuration, its ``size`` and ``weights``."""
        pools = [configuration.settings.pool for configuration in chosen]
        solutions = solve(self.data, chosen, self.plan)
        optimistic = self.data.scores(_weights(solutions), pools).estimates()
        scores = []
        for learn, judge in self._folds:
            try:
                weights = _weights(solve(learn, chosen, self.plan))
            except InputError as error:
                raise InputError(
                    f"without one of the {self.plan.folds} folds, {error._message}",
                    f"leave held-out estimates out with {option('folds', 0)}, or fix"
                    f" {option('class_weights', False)}",
                ) from error
            scores.append(judge.scores(weights, pools))
        held_out = sum(scores[1:], scores[0]).estimates() if scores else None
        return [
            {
                "optimistic": _rounded(optimistic[t]),
                "cross-fitted": None if held_out is None else _rounded(held_out[t]),
                "size": solution.size,
                "weights": solution.weights.round(_DIGITS).tolist(),
            }
            for t, solution in enumerate(solutions)
        ]


def _weights(solutions: Sequence[Solution]) -> Floats:
    """[T, K]"""
    return np.stack([solution.weights for solution in solutions])


def _rounded(estimate: dict[str, float]) -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in estimate.items()}


def solve(data: FitData, chosen: Sequence[Configuration], plan: Plan) -> list[Solution]:
    """A solution per configuration."""
    settings = [configuration.settings for configuration in chosen]
    if any(objective.class_weights for objective in settings):
        # A class without items is refused by its name.
        data.summaries().class_weights(data.row_classes)
    if plan.solver == "exact":
        limits = [configuration.options.max_members for configuration in chosen]
        return [
            solve_exact(data, objective, order=plan.order, max_members=limit)
            for objective, limit in zip(settings, limits, strict=True)
        ]
    options = [replace(configuration.options, order=plan.order) for configuration in chosen]
    with np.errstate(all="ignore"):
        solutions = solve_gumbel(
            data, settings, options, random_state=plan.random_state, trajectory=False
        )
    for solution, steps in zip(solutions, options, strict=True):
        if not np.isfinite(solution.weights).all():
            raise InputError(
                f"a trial ends in weights that are not finite, with {steps}",
                "narrow the space: a lower learning_rate, or a higher min_temperature",
            )
    return solutions
