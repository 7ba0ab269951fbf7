"""The Optuna study of a search: its plan, its sampler, and the state of every trial."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.samplers import NSGAIISampler
from optuna.storages import BaseStorage, fail_stale_trials
from optuna.storages._heartbeat import BaseHeartbeat, is_heartbeat_enabled
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from edokit._errors import InputError, option
from edokit.fitdata import FitData
from edokit.metrics import search_metrics
from edokit.tuning.options import FORMAT, Plan
from edokit.tuning.trials import SearchTrial

DIRECTIONS: Sequence[Any] = ("maximize", "minimize", "minimize")
SHAPE = "edo"  # attribute of a study: which search it is
# Attributes of a trial:
RESULT = "result"  # its estimates, size and weights
PLACE = "place"  # its generation and its slot in it


def open_study(storage: BaseStorage, plan: Plan, data: FitData) -> Study:
    """The plan's study, new or continued; one of another shape under its name is refused."""
    name, shape = plan.study, plan.shape(data.describe())
    with quiet():
        try:
            # A journal grows by every attempt to make a study, so look first.
            study = optuna.load_study(study_name=name, storage=storage)
        except KeyError:
            study = optuna.create_study(
                storage=storage, study_name=name, directions=[*DIRECTIONS], load_if_exists=True
            )
        # Trials before the shape: another worker writes them in the opposite order.
        is_empty = not study.get_trials(deepcopy=False)
        begun, wrong = study.user_attrs.get(SHAPE), ""
        if begun is None:
            directions = tuple(direction.name.lower() for direction in study.directions)
            if directions != DIRECTIONS or not is_empty:
                wrong = "is no search of EDO's"
            else:
                study.set_metric_names(list(search_metrics(data.scale)))
                study.set_user_attr(SHAPE, shape)
        elif begun.get("format") != FORMAT:
            wrong = f"was begun by another version of edokit, in a format other than {FORMAT}"
        elif begun != shape:
            wrong = f"can't be continued with other settings: it has {differences(begun, shape)}"
    if wrong:
        raise InputError(
            f"the study {name!r} in this storage {wrong}",
            f"search as before, or choose another output folder, {option('study')} or"
            f" {option('storage')}",
        )
    return study


def take_trials(study: Study, plan: Plan, *, limit: int | None = None) -> list[FrozenTrial]:
    """Claim the next trials of the current generation, up to all of it; none if others have them.

    A trial comes into the storage as a whole, waiting, with its parameters and its place: a
    process that is killed meanwhile leaves a trial or none, never half of one.
    """
    with quiet():
        fail_stale_trials(study)
    known_trials = study.get_trials(deepcopy=False)
    places = _missing_places(known_trials, plan)
    if places:
        space = plan.space.distributions()
        sampler = PositionSampler(plan.population, plan.random_state, places[0][0])
        for generation, slot in places:
            draft = create_trial(state=TrialState.WAITING, user_attrs={PLACE: [generation, slot]})
            draft.params = sampler.propose(study, draft, space, slot)
            draft.distributions = space
            study.add_trial(draft)
        known_trials = study.get_trials(deepcopy=False)
    planned = [trial for trial in known_trials if _number(trial, plan) < plan.trials]
    return _claim(study, planned, limit)


def _claim(
    study: Study, known_trials: Sequence[FrozenTrial], limit: int | None
) -> list[FrozenTrial]:
    """Waiting trials that this process has got hold of."""
    storage, claimed = study._storage, list[FrozenTrial]()
    holders: dict[tuple[int, int], int] = {}
    for trial in known_trials:
        if _is_at_work(trial):
            number = holders.setdefault(tuple(trial.user_attrs[PLACE]), trial.number)
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


def _number(trial: FrozenTrial, plan: Plan) -> float:
    """How many places come before the trial's; infinity if it has none."""
    generation, slot = trial.user_attrs.get(PLACE, (math.inf, 0))
    return float(generation * plan.population + slot)


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
    return _finished(study.get_trials(deepcopy=False))


def _finished(known_trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    by_place: dict[tuple[int, int], FrozenTrial] = {}
    for trial in known_trials:
        if _is_at_work(trial) and trial.state.is_finished():
            by_place.setdefault(tuple(trial.user_attrs[PLACE]), trial)
    return [by_place[place] for place in sorted(by_place)]


def _is_at_work(trial: FrozenTrial) -> bool:
    """Whether the trial takes its place: it waits, runs or is done, and was not given up."""
    return PLACE in trial.user_attrs and trial.state is not TrialState.FAIL


def read_trials(finished: Sequence[FrozenTrial], plan: Plan, data: FitData) -> list[SearchTrial]:
    """The finished trials of a study that learns from these data."""
    trials, rows = [], len(data.sample.y)
    for trial in finished:
        generation, slot = trial.user_attrs[PLACE]
        result = trial.user_attrs[RESULT]
        trials.append(
            SearchTrial(
                number=trial.number,
                generation=generation,
                slot=slot,
                searched=trial.params,
                configuration=plan.space.configuration(trial.params, rows),
                judge=plan.judge,
                metrics=search_metrics(data.scale),
                estimates={name: result[name] for name in ("optimistic", "cross-fitted")},
                size=result["size"],
                weights=tuple(result["weights"]),
            )
        )
    return trials


@contextmanager
def quiet() -> Iterator[None]:
    """Without Optuna's log lines and its warnings about experimental methods."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _missing_places(known_trials: Sequence[FrozenTrial], plan: Plan) -> list[tuple[int, int]]:
    """Places without a trial, in the first generation that is not finished."""
    done = {tuple(trial.user_attrs[PLACE]) for trial in _finished(known_trials)}
    occupied = {tuple(trial.user_attrs[PLACE]) for trial in known_trials if _is_at_work(trial)}
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
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return _by_place([t for t in done if t.user_attrs.get(PLACE, (None,))[0] == generation])

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The best of the generations before, always in the same order."""
        return _by_place(super().get_parent_population(study, generation))


def _by_place(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    return sorted(trials, key=lambda trial: tuple(trial.user_attrs[PLACE]))


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
