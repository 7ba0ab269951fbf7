"""The loop of a search: a generation of trials is proposed, fitted in one batch, and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError, warn
from edokit._types import Floats
from edokit.fitdata import FitData
from edokit.solvers import Solution, solve_exact, solve_gumbel
from edokit.tuning.front import ParetoFront
from edokit.tuning.space import Configuration
from edokit.tuning.storage import Opened
from edokit.tuning.study import (
    Claims,
    Plan,
    ask,
    check_trials,
    finished,
    open_study,
    read_trials,
    tell,
)

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


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
"""Called with the finished trials, all trials, and the front's best F1, CE and MD so far."""


def run_study(
    opened: Opened,
    plan: Plan,
    data: FitData,
    trials: int,
    *,
    worker: bool = False,
    most: int | None = None,
    progress: Progress | None = None,
) -> tuple[Study, int]:
    """The plan's study with ``trials`` finished trials, and how many of these it had before.

    A ``worker`` shares the study with others: it claims ``most`` trials at a time, by default a
    quarter of a generation.
    """
    if worker and not opened.shared:
        raise InputError(
            f"workers share a study on PostgreSQL, but the storage is {opened.shown}",
            "give storage='postgresql://USER@HOST/DATABASE', or leave worker out",
            parameters=("storage", "worker"),
        )
    study = opened.alone(lambda: open_study(opened.storage, plan, data))
    before = min(len(finished(study)), trials)
    if worker and most is None:
        most = -(-plan.population // _SHARE)
    run(study, plan, data, trials, claims=opened.claims(), most=most, progress=progress)
    return study, before


def run(
    study: Study,
    plan: Plan,
    data: FitData,
    trials: int,
    *,
    claims: Claims | None = None,
    most: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Finish the study's first ``trials`` trials; those that are done already stay as they are.

    ``most``: how many trials to take at once; a whole generation by default.
    """
    claims, evaluator = claims or Claims(), Evaluator(data, plan)
    trials = check_trials(trials)

    def take() -> list[FrozenTrial]:
        claims.free_stale(study)
        return ask(study, plan, trials, most=most, by=claims.name)

    _report(study, plan, trials, progress)
    while True:
        asked = claims.locked(study, take)
        if not asked:
            if len(finished(study)) >= trials:
                return
            claims.wait()
            continue
        with claims.alive(study, [trial._trial_id for trial in asked]):
            results = evaluator([plan.space.configuration(trial.params) for trial in asked])
        for trial, result in zip(asked, results, strict=True):
            tell(study, trial, result, plan.judge)
        _report(study, plan, trials, progress)


def _report(study: Study, plan: Plan, trials: int, progress: Progress | None) -> None:
    """Report how far the search is."""
    if progress is None:
        return
    done = finished(study)
    able = [trial for trial in read_trials(done, plan.space, plan.judge) if trial.estimates]
    progress(min(len(done), trials), trials, ParetoFront.of(able).best if able else {})


# A worker takes a quarter of a generation: work for four, still solved in batches.
_SHARE = 4
# The last digits of a fit depend on how many configurations it is batched with; without them, a
# search that was interrupted within a generation goes on as if it had not been.
_DIGITS = 12

Result = dict[str, Any]
"""``optimistic`` and ``cross-fitted`` estimates (None without folds), ``size``, ``weights``."""


class Evaluator:
    """Estimates how good configurations are, on the fit data and on held-out folds."""

    def __init__(self, data: FitData, plan: Plan) -> None:
        self.data, self.plan = data, plan
        self._folds = data.folds(plan.folds, plan.seed) if plan.folds else []
        if plan.solver == "gumbel" and data.is_sampled:
            warn(
                f"gumbel trials learn from a random sample of {len(data.sample.y)} of {data.items}"
                " items and are evaluated on all (solver='exact' learns from all)",
                parameters=("solver",),
            )

    def __call__(self, chosen: Sequence[Configuration]) -> list[Result | str]:
        """A result per configuration, or in words why there is none."""
        whole = solve(self.data, chosen, self.plan)
        weights = _weights(whole, len(self.data.members))
        pools = [one.settings.pool for one in chosen]
        optimistic = self.data.scores(weights, pools).estimates()
        parts = [self._without_a_fold(learn, chosen) for learn, _ in self._folds]
        held_out: Sequence[dict[str, float] | None] = [None] * len(chosen)
        if parts:
            scores = [
                judge.scores(_weights(part, len(self.data.members)), pools)
                for part, (_, judge) in zip(parts, self._folds, strict=True)
            ]
            held_out = sum(scores[1:], scores[0]).estimates()
        return [
            _failure(t, whole, parts)
            or {
                "optimistic": _rounded(optimistic[t]),
                "cross-fitted": _rounded(held_out[t]),
                "size": getattr(whole[t], "size", 0),
                "weights": weights[t].round(_DIGITS).tolist(),
            }
            for t in range(len(chosen))
        ]

    def _without_a_fold(
        self, learn: FitData, chosen: Sequence[Configuration]
    ) -> list[Solution | str]:
        try:
            return solve(learn, chosen, self.plan)
        except InputError as error:
            raise InputError(
                f"without one of the {self.plan.folds} folds, {error.message}",
                "leave held-out estimates out with folds=0, or fix class_weights=False",
                parameters=("folds", "class_weights"),
            ) from error


def solve(data: FitData, chosen: Sequence[Configuration], plan: Plan) -> list[Solution | str]:
    """A solution per configuration, or in words why there is none."""
    if any(one.settings.class_weights for one in chosen):
        data.summaries().class_weights(data.classes)  # a class without items is refused by its name
    found: list[Solution | str]
    with np.errstate(all="ignore"):
        if plan.solver == "gumbel":
            found = [
                *solve_gumbel(
                    data,
                    [one.settings for one in chosen],
                    [one.options for one in chosen],
                    random_state=plan.seed,
                    order=plan.order,
                    keep=True,
                    trajectory=False,
                )
            ]
        else:
            found = [_exact(data, one, plan.order) for one in chosen]
    return [_sound(solution) for solution in found]


def _exact(data: FitData, one: Configuration, order: str) -> Solution | str:
    try:
        return solve_exact(data, one.settings, order=order, max_members=one.options.max_members)
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return f"{type(error).__name__}: {error}"


def _sound(solution: Solution | str) -> Solution | str:
    if isinstance(solution, str) or np.isfinite(solution.weights).all():
        return solution
    return "the weights are not finite"


def _weights(fitted: Sequence[Solution | str], members: int) -> Floats:
    """[T, K] weights; where there are none, any will do, for their scores are not used."""
    filler = np.full(members, 1.0 / members)
    return np.stack([filler if isinstance(one, str) else one.weights for one in fitted])


def _failure(
    t: int, whole: Sequence[Solution | str], parts: Sequence[Sequence[Solution | str]]
) -> str | None:
    """Why configuration t could not be fitted, on all data or without one of the folds."""
    return next((one[t] for one in (whole, *parts) if isinstance(one[t], str)), None)  # type: ignore[return-value]


def _rounded(estimate: dict[str, float] | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {name: round(value, _DIGITS) for name, value in estimate.items()}
