"""The search itself: a generation is asked, fitted in one batch, and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from edokit.search.data import FitData
from edokit.search.evaluate import Evaluator
from edokit.search.front import ParetoFront
from edokit.search.plan import Plan, check_trials
from edokit.search.study import Claims, ask, finished, tell
from edokit.search.trials import read_trials

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

Progress = Callable[[int, int, Mapping[str, float]], None]
"""Called with the finished trials, all trials, and the front's best F1, CE and MD so far."""


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

    ``most``: how many trials to take at once; a whole generation unless told.
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
    """Tell how far the search is."""
    if progress is None:
        return
    done = finished(study)
    able = [trial for trial in read_trials(done, plan.space, plan.judge) if trial.estimates]
    progress(min(len(done), trials), trials, ParetoFront.of(able).best if able else {})
