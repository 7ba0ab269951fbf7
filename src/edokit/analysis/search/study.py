"""The Optuna study of a search: a generation of trials is proposed, fitted in one batch, and kept.

The study is known by its plan; each trial has a place in it, so that workers can share it and an
interrupted search goes on as if it had not been interrupted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import NSGAIISampler
from optuna.storages import BaseStorage, fail_stale_trials
from optuna.storages._heartbeat import BaseHeartbeat, get_heartbeat_thread, is_heartbeat_enabled
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from edokit._errors import InputError, counted, option, warn
from edokit._types import Floats
from edokit.analysis.search.space import FORMAT, Configuration, Plan
from edokit.analysis.search.storage import StudyStorage, quiet
from edokit.analysis.search.trials import SearchTrial
from edokit.fitdata.data import FitData
from edokit.metrics import search_metrics
from edokit.solvers import Solution
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel, warn_if_sampled

Progress = Callable[[int, int], None]
"""Called with the finished trials and all trials."""
DIRECTIONS: Sequence[Any] = ("maximize", "minimize", "minimize")
IDENTITY = "edo"  # attribute of a study: which search it is
# Attributes of a trial:
RESULT = "result"  # its estimates, size and weights
PLACE = "place"  # its generation and its slot in it


def open_study(storage: BaseStorage, plan: Plan, data: FitData) -> Study:
    """The plan's study, new or continued; another search under its name is refused."""
    name, identity = plan.study, plan.identity(data.describe())
    with quiet():
        try:
            # A journal grows by every attempt to make a study, so look first.
            study = optuna.load_study(study_name=name, storage=storage)
        except KeyError:
            study = optuna.create_study(
                storage=storage, study_name=name, directions=[*DIRECTIONS], load_if_exists=True
            )
        # Trials before the identity: another worker writes them in the opposite order.
        is_empty = not study.get_trials(deepcopy=False)
        begun, wrong = study.user_attrs.get(IDENTITY), ""
        hint = f"choose another {option('study')}, {option('storage')} or output folder"
        if begun is None:
            directions = tuple(direction.name.lower() for direction in study.directions)
            if directions != DIRECTIONS or not is_empty:
                wrong = "is not an EDO search"
            else:
                study.set_metric_names(list(search_metrics(data.scale)))
                study.set_user_attr(IDENTITY, identity)
        elif begun.get("format") != FORMAT:
            wrong = f"was begun by another version of edokit, in a format other than {FORMAT}"
            hint = f"continue it with that version, or {hint}"
        elif begun != identity:
            wrong = f"can't be continued with other settings: it has {differences(begun, identity)}"
            hint = f"search with the same settings, or {hint}"
    if wrong:
        raise InputError(f"the study {name!r} in this storage {wrong}", hint)
    return study


def take_trials(study: Study, plan: Plan, *, limit: int | None = None) -> list[FrozenTrial]:
    """Claim the next trials of the current generation, up to all of it; none if others have them.

    A trial comes into the storage as a whole, waiting, with its parameters and its place: a
    process that is killed meanwhile leaves a trial or none, never half of one.
    """
    with quiet():
        fail_stale_trials(study)
    places = _missing_places(_placed_trials(study), plan)
    if places:
        space = plan.space.distributions()
        sampler = PositionSampler(plan.population, plan.random_state, places[0][0])
        for generation, slot in places:
            draft = create_trial(state=TrialState.WAITING, user_attrs={PLACE: [generation, slot]})
            draft.params = sampler.propose(study, draft, space, slot)
            draft.distributions = space
            study.add_trial(draft)
    first_after = divmod(plan.trials, plan.population)
    planned = [trial for trial in _placed_trials(study) if _place(trial) < first_after]
    return _claim(study, planned, limit)


def _claim(
    study: Study, known_trials: Sequence[FrozenTrial], limit: int | None
) -> list[FrozenTrial]:
    """Waiting trials that this process has got hold of."""
    storage, claimed = study._storage, list[FrozenTrial]()
    holders: dict[tuple[int, int], int] = {}
    for trial in known_trials:
        number = holders.setdefault(_place(trial), trial.number)
        if trial.state is not TrialState.WAITING or len(claimed) == limit:
            continue
        with suppress(UpdateFinishedTrialError):
            if number != trial.number:
                # Two processes proposed the same trial at once; the first of them counts.
                storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
                continue
            if isinstance(storage, BaseHeartbeat):
                # Before it is claimed: a trial that never gave a sign of life is never stale.
                storage.record_heartbeat(trial._trial_id)
            if storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING):
                claimed.append(trial)
    return claimed


def give_up_interrupted(study: Study) -> None:
    """Fail the running trials of a storage that no other process uses; they are done again."""
    if not is_heartbeat_enabled(study._storage):
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)


def tell(
    study: Study,
    trial: FrozenTrial,
    result: dict[str, Any],
    judge: str,
    metrics: Sequence[str] = search_metrics(),
) -> None:
    """Keep the result of a trial, unless others have given it up meanwhile: they do it again."""
    with suppress(UpdateFinishedTrialError):
        study._storage.set_trial_user_attr(trial._trial_id, RESULT, result)
        values = [result[judge][metric] for metric in metrics]
        study.tell(trial.number, values, skip_if_finished=True)


def finished(study: Study) -> list[FrozenTrial]:
    """Trials that are done, by place; those of processes that died are not."""
    by_place: dict[tuple[int, int], FrozenTrial] = {}
    for trial in _placed_trials(study):
        if trial.state.is_finished():
            by_place.setdefault(_place(trial), trial)
    return [by_place[place] for place in sorted(by_place)]


def _placed_trials(study: Study) -> list[FrozenTrial]:
    """Trials that take their place: they wait, run or are done, and were not given up."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if PLACE in trial.user_attrs and trial.state is not TrialState.FAIL
    ]


def _place(trial: FrozenTrial) -> tuple[int, int]:
    generation, slot = trial.user_attrs[PLACE]
    return generation, slot


def read_trials(finished: Sequence[FrozenTrial], plan: Plan, data: FitData) -> list[SearchTrial]:
    """The finished trials of a study that learns from these data."""
    metrics, rows = search_metrics(data.scale), len(data.sample.y)
    trials = []
    for trial in finished:
        (generation, slot), result = _place(trial), dict(trial.user_attrs[RESULT])
        trials.append(
            SearchTrial(
                number=trial.number,
                generation=generation,
                slot=slot,
                searched=trial.params,
                configuration=plan.space.configuration(trial.params, rows),
                judge=plan.judge,
                metrics=metrics,
                size=result.pop("size"),
                weights=tuple(result.pop("weights")),
                estimates=result,
            )
        )
    return trials


def _missing_places(known_trials: Sequence[FrozenTrial], plan: Plan) -> list[tuple[int, int]]:
    """Places without a trial, in the first generation that is not finished."""
    occupied = {_place(trial) for trial in known_trials}
    done = {_place(trial) for trial in known_trials if trial.state.is_finished()}
    for start in range(0, plan.trials, plan.population):
        size = min(plan.population, plan.trials - start)
        places = [(start // plan.population, slot) for slot in range(size)]
        if not done.issuperset(places):
            return [place for place in places if place not in occupied]
    return []


def differences(begun: dict[str, Any], requested: dict[str, Any]) -> str:
    """Where a search that was begun differs from the one that is asked for."""
    texts = []
    for key, value in requested.items():
        before = begun[key]
        if before != value and isinstance(before, dict):
            names = [name for name in {**before, **value} if before.get(name) != value.get(name)]
            texts.append(f"different {key} ({', '.join(names)})")
        elif before != value:
            texts.append(f"{key} {before!r} and not {value!r}")
    return "; ".join(texts)


class PositionSampler(NSGAIISampler):
    """Proposes the trials of a generation, slot by slot.

    Its numbers come from the seed and the place, its parents from the generations before, so
    that a search that was interrupted proposes what it would have proposed anyway.
    """

    def __init__(self, population: int, seed: int, generation: int) -> None:
        # The first generation has no parents to cross, and needs no generator for it.
        super().__init__(population_size=population, seed=seed % 2**32 if generation else None)
        self._place = (seed, generation)
        self._draws = np.random.default_rng(0)

    def propose(
        self, study: Study, trial: FrozenTrial, space: dict[str, BaseDistribution], slot: int
    ) -> dict[str, Any]:
        """A value for every parameter of the space."""
        # Two streams: crossover and mutation must not draw the same numbers.
        crossing, drawing = np.random.SeedSequence([*self._place, slot]).generate_state(2)
        self._draws = np.random.default_rng(drawing)
        inherited: dict[str, Any] = {}
        if self._place[1] > 0:
            self._rng.rng.seed(crossing)
            several = {name: values for name, values in space.items() if not values.single()}
            inherited = self.sample_relative(study, trial, several)
        return {
            name: inherited[name] if name in inherited else _drawn(distribution, self._draws)
            for name, distribution in space.items()
        }

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:
        """The generation that is being filled."""
        return self._place[1]

    def get_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The completed trials of a generation, by slot."""
        return [trial for trial in finished(study) if _place(trial)[0] == generation]

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The best of the generations before, always in the same order."""
        return sorted(super().get_parent_population(study, generation), key=_place)


def _drawn(distribution: Any, draws: np.random.Generator) -> Any:
    """A value of the first generation, or a mutated one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[draws.integers(len(distribution.choices))]
    is_integer = isinstance(distribution, IntDistribution)
    # Each whole number has the unit interval around it.
    low, high = distribution.low - 0.5 * is_integer, distribution.high + 0.5 * is_integer
    if distribution.log:
        value = math.exp(draws.uniform(math.log(low), math.log(high)))
    else:
        value = draws.uniform(low, high)
    within = min(max(round(value) if is_integer else value, distribution.low), distribution.high)
    return int(within) if is_integer else float(within)


def foldable(data: FitData, plan: Plan) -> bool:
    """Whether the usual folds leave something to learn from; warns if not."""
    sums = data.summaries()
    rare = plan.space.class_weights is not False and bool(
        (sums.class_counts[sums.soft_counts > 0] == 1).any()
    )
    if len(data) >= 2 * plan.folds and not rare:
        return True
    reason = "a class has a single item" if rare else f"the data hold {counted(len(data), 'item')}"
    warn(
        f"trials have no estimate on held-out folds, since {reason}; give {option('folds')} to"
        " have one"
    )
    return False


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
    with quiet():
        done_before = min(len(finished(study)), plan.trials)
        run_trials(study, plan, data, progress=progress)
        return read_trials(finished(study), plan, data), done_before


def run_trials(
    study: Study, plan: Plan, data: FitData, *, progress: Progress | None = None
) -> None:
    """Finish the study's trials, as many as are planned; those that are done stay as they are."""
    evaluator, rows = Evaluator(data, plan), len(data.sample.y)
    metrics = search_metrics(data.scale)
    limit = -(-plan.population // _SHARE) if plan.worker else None
    report = progress or (lambda done, total: None)
    give_up_interrupted(study)
    while (done := len(finished(study))) < plan.trials:
        report(done, plan.trials)
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
    report(plan.trials, plan.trials)


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
        if plan.solver == "gumbel":
            warn_if_sampled(data)

    def __call__(self, configurations: Sequence[Configuration]) -> list[dict[str, Any]]:
        """The estimates ``optimistic`` and ``cross-fitted`` (None without folds) of each
        configuration, its ``size`` and ``weights``."""
        pools = [configuration.settings.pool for configuration in configurations]
        solutions = solve(self.data, configurations, self.plan)
        optimistic = self.data.scores(_weights(solutions), pools).estimates()
        scores = []
        for learn, judge in self._folds:
            scores.append(judge.scores(_weights(solve(learn, configurations, self.plan)), pools))
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


def solve(data: FitData, configurations: Sequence[Configuration], plan: Plan) -> list[Solution]:
    """A solution per configuration."""
    settings = [configuration.settings for configuration in configurations]
    if plan.solver == "exact":
        limits = [configuration.options.max_members for configuration in configurations]
        return [
            solve_exact(data, objective, max_members=limit)
            for objective, limit in zip(settings, limits, strict=True)
        ]
    options = [configuration.options for configuration in configurations]
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
