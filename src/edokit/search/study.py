"""The search's memory: an Optuna study in which every trial has its place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from edokit._errors import InputError
from edokit.search.data import FitData
from edokit.search.plan import Plan
from edokit.search.sampler import PLACE, PlaceSampler

T = TypeVar("T")

METRICS = ("f1", "ce", "md")
DIRECTIONS: Sequence[Any] = ("maximize", "minimize", "minimize")
SHAPE = "edo"
"""The attribute of a study that says which search it is."""
RESULT = "result"
"""The attribute of a trial that holds its estimates, size and weights."""
FAILURE = "failure"
"""The attribute of a trial that failed by itself, in words why; it is not tried again."""
BY = "by"
"""The attribute of a trial that says which process took it."""


class Claims:
    """How processes that share a study keep out of each other's way; here there is only one."""

    name = ""
    """Written to each trial that this process takes."""

    def locked(self, study: Study, step: Callable[[], T]) -> T:
        """Do ``step`` while no other process takes trials."""
        return step()

    def free_stale(self, study: Study) -> int:
        """Give up the trials whose process is gone; how many these were."""
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for trial in running:
            study.tell(trial.number, state=TrialState.FAIL)
        return len(running)

    def alive(self, study: Study, trial_ids: Sequence[int]) -> AbstractContextManager[None]:
        """While it is held, others see that these trials are being worked on."""
        return nullcontext()

    def wait(self) -> None:
        """Pass a little time until others have finished their trials."""


def open_study(storage: BaseStorage | None, plan: Plan, data: FitData) -> Study:
    """The plan's study, new or continued; one of another shape under its name is refused."""
    name, shape = plan.name, plan.shape(data.described())
    storage = optuna.storages.InMemoryStorage() if storage is None else storage
    with quiet():
        try:
            # A journal grows by every attempt to make a study, so look first.
            study = optuna.load_study(study_name=name, storage=storage)
        except KeyError:
            study = optuna.create_study(
                storage=storage, study_name=name, directions=[*DIRECTIONS], load_if_exists=True
            )
        attributes = study.user_attrs
        if SHAPE not in attributes:
            _refuse_foreign(study, name)
            study.set_metric_names(list(METRICS))
            study.set_user_attr(SHAPE, shape)
        elif attributes[SHAPE] != shape:
            raise _another_shape(name, attributes[SHAPE], shape)
    return study


def ask(
    study: Study, plan: Plan, trials: int, *, most: int | None = None, by: str = ""
) -> list[FrozenTrial]:
    """The next trials of the current generation, up to all of it; none if others have them.

    A trial comes into the storage as a whole, running, with its parameters and its place: a
    process that is killed meanwhile leaves a trial or none, never half of one.
    """
    space, storage = plan.space.distributions(), study._storage
    asked = []
    places = _free_places(study, plan, trials)[:most]
    sampler = PlaceSampler(plan.population, plan.seed, places[0][0]) if places else None
    for generation, slot in places:
        about = {PLACE: [generation, slot], **({BY: by} if by else {})}
        new = create_trial(state=TrialState.RUNNING, user_attrs=about)
        assert sampler is not None
        new.params, new.distributions = sampler.propose(study, new, space, slot), space
        trial_id = storage.create_new_trial(study._study_id, template_trial=new)
        asked.append(storage.get_trial(trial_id))
    return asked


def tell(study: Study, trial: FrozenTrial, result: dict[str, Any] | str, judge: str) -> None:
    """Keep what came of a trial: its result, or in words why it failed.

    Nothing is kept of a trial that others have given up meanwhile: they do it again.
    """
    failed = isinstance(result, str)
    with suppress(UpdateFinishedTrialError):
        study._storage.set_trial_user_attr(trial._trial_id, FAILURE if failed else RESULT, result)
        if isinstance(result, str):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        else:
            values = [result[judge][name] for name in METRICS]
            study.tell(trial.number, values, skip_if_finished=True)


def finished(study: Study) -> list[FrozenTrial]:
    """Trials that are done, well or badly, by place; those of processes that died are not."""
    return _finished(study.get_trials(deepcopy=False))


def _finished(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    by_place: dict[tuple[int, int], FrozenTrial] = {}
    for trial in trials:
        told = trial.state is TrialState.COMPLETE or (
            trial.state is TrialState.FAIL and FAILURE in trial.user_attrs
        )
        if told and PLACE in trial.user_attrs:
            by_place.setdefault(tuple(trial.user_attrs[PLACE]), trial)
    return [by_place[place] for place in sorted(by_place)]


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna says neither that a study begins nor that a method is young."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _free_places(study: Study, plan: Plan, trials: int) -> list[tuple[int, int]]:
    """Places that nobody has taken, in the first generation that is not finished."""
    # Read once: others finish trials meanwhile.
    known = study.get_trials(deepcopy=False)
    done = {tuple(trial.user_attrs[PLACE]) for trial in _finished(known)}
    running = [trial for trial in known if trial.state is TrialState.RUNNING]
    taken = {tuple(t.user_attrs[PLACE]) for t in running if PLACE in t.user_attrs}
    for first in range(0, trials, plan.population):
        slots = range(min(plan.population, trials - first))
        open_ = [place for s in slots if (place := (first // plan.population, s)) not in done]
        if open_:
            return [place for place in open_ if place not in taken]
    return []


def _refuse_foreign(study: Study, name: str) -> None:
    """A study that something else has begun is left alone."""
    directions = tuple(direction.name.lower() for direction in study.directions)
    if directions != DIRECTIONS or study.get_trials(deepcopy=False):
        raise InputError(
            f"the study {name!r} must be one of EDO's searches, but something else began it",
            "choose another folder (--out), or another name (--study) or storage",
        )


def _another_shape(name: str, begun: dict[str, Any], asked: dict[str, Any]) -> InputError:
    """The sentence for a study that was begun with something else."""
    if begun.get("format") != asked["format"]:
        return InputError(
            f"the study {name!r} must have format {asked['format']}, but was begun by another"
            " version of edokit",
            "choose another folder (--out), or another name (--study) or storage",
        )
    return InputError(
        f"a search can be continued only as it was begun, but the study {name!r} has"
        f" {'; '.join(differences(begun, asked))}",
        "choose another folder (--out), or another name (--study) in shared storage, or search as"
        " before",
    )


def differences(begun: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """In words, where a search that was begun is not the one that is asked for."""
    return [
        f"{_IN_WORDS[key]} ({', '.join(_unlike(begun[key], value))})"
        if key in _IN_WORDS and isinstance(begun[key], dict)
        else f"{key} {begun[key]!r} and not {value!r}"
        for key, value in asked.items()
        if begun[key] != value
    ]


_IN_WORDS = {"space": "another search space", "data": "other data"}


def _unlike(begun: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """Where two dictionaries differ."""
    return [name for name in {**begun, **asked} if begun.get(name) != asked.get(name)]
