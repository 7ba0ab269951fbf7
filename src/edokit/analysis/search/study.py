"""The Optuna study of a search: trials are claimed, solved as one batch, and told.

Each trial has a place, its generation and its slot in it, so that workers can share a study and an
interrupted search is continued. Only Optuna's public interface is used.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from edokit._errors import InputError, option
from edokit._progress import Progress
from edokit.analysis.search.options import FORMAT, SearchPlan
from edokit.analysis.search.proposals import DIRECTIONS, Place, Proposals
from edokit.analysis.search.result import SearchTrial
from edokit.analysis.search.statistics import Evaluator, TrialEvaluation
from edokit.analysis.search.storage import StudyStorage, quiet
from edokit.fitdata.data import FitData
from edokit.metrics import search_metrics

IDENTITY = "edo"
"""Attribute of a study: the settings and data of its search."""
RESULT = "result"
"""Attribute of a trial: its estimates, size and weights."""
PLACE = "place"
"""Attribute of a trial: its generation and its slot in it."""
ALIVE = "alive"
"""Attribute of a trial in a shared study: its last heartbeat, in seconds since 1970."""
HEARTBEAT_INTERVAL = 10.0
"""Seconds between two heartbeats of a worker."""
GRACE_PERIOD = 60.0
"""Seconds without a heartbeat after which the trials of a worker are given to others."""
_POLL_INTERVAL = 0.25
"""Seconds until a worker that found no trial to do looks again."""
_SHARES = 4
"""A worker takes a quarter of a generation: few enough to share, enough to solve as a batch."""


def run_study(
    opened: StudyStorage, plan: SearchPlan, data: FitData, *, progress: Progress | None = None
) -> tuple[list[SearchTrial], int]:
    """The finished trials of the plan's study, and how many of them were there before.

    A worker shares the study with others: it claims a quarter of a generation at a time.
    """
    if plan.worker and not opened.shared:
        location = option("storage", "postgresql://USER@HOST/DATABASE")
        raise InputError(
            f"workers share a study on PostgreSQL, but the storage is {opened.location}",
            f"give {location}, or leave {option('worker')} out",
            code="inapplicable-option",
        )
    with quiet():
        study = SearchStudy(opened, plan, data)
        done_before = min(len(study.finished()), plan.trials)
        evaluator = Evaluator(data, plan)
        limit = None
        if plan.worker:
            limit = math.ceil(plan.population / _SHARES)
        while (done := len(study.finished())) < plan.trials:
            if progress is not None:
                progress(done, plan.trials, "searching")
            batch = study.claim(limit)
            if not batch:  # other processes have the rest of the generation
                time.sleep(_POLL_INTERVAL)
                continue
            with study.heartbeat(batch):
                evaluations = evaluator.evaluate(
                    [plan.fit_config(trial.params, study.rows) for trial in batch]
                )
            for trial, evaluation in zip(batch, evaluations, strict=True):
                study.tell(trial, evaluation)
        if progress is not None:
            progress(plan.trials, plan.trials, "searching")
        return study.results(), done_before


class SearchStudy:
    """The trials of a search in its storage, new or continued.

    Parameters
    ----------
    opened : StudyStorage
        Where the trials are stored.
    plan : SearchPlan
        What is searched.
    data : FitData
        What the search learns from.

    Raises
    ------
    InputError
        If the storage has another search under the name of the study.
    """

    def __init__(self, opened: StudyStorage, plan: SearchPlan, data: FitData) -> None:
        self.plan = plan
        self.rows = len(data.sample.y)
        """Rows to learn from, on which the number of steps depends."""
        self._metrics = search_metrics(data.scale)
        self._is_shared = opened.shared
        self._distributions = plan.space.distributions()
        with quiet():
            self._study = _open_study(opened.storage, plan, data)
            self._proposals = Proposals(self._distributions, plan.population, plan.random_state)
            if not self._is_shared:
                # No other process uses this storage, so their process is gone.
                self._fail(self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING]))

    def finished(self) -> dict[Place, FrozenTrial]:
        """The finished trials in the order of their places; of two for one place, the first."""
        by_place: dict[Place, FrozenTrial] = {}
        for trial in self._trials():
            if trial.state.is_finished():
                by_place.setdefault(_place(trial), trial)
        return {place: by_place[place] for place in sorted(by_place)}

    def claim(self, limit: int | None = None) -> list[Trial]:
        """Take trials of the current generation, up to all of it; none if others have them.

        A trial enters the storage as a whole, with its values and its place, and waits there:
        a process that is killed leaves a trial or none, never half of one.
        """
        if self._is_shared:
            self._fail_lost_trials()
        self._add_missing_trials()
        # The first place beyond the plan. The storage may have more trials, of a longer search.
        end = divmod(self.plan.trials, self.plan.population)
        # If two processes add a trial for the same place at once, the first one counts.
        first_numbers: dict[Place, int] = {}
        n_waiting = 0
        n_wanted = 0
        for trial in self._trials():
            first_number = first_numbers.setdefault(_place(trial), trial.number)
            if trial.state is TrialState.WAITING:
                n_waiting += 1
                if first_number == trial.number and _place(trial) < end:
                    n_wanted += 1
        if limit is not None:
            n_wanted = min(n_wanted, limit)
        claimed: list[Trial] = []
        while n_waiting > 0 and len(claimed) < n_wanted:
            n_waiting -= 1
            next_trial = self._study.ask()
            # If others have taken all waiting trials, `ask` makes one without a place.
            place = _place(next_trial) if PLACE in next_trial.user_attrs else end
            if place < end and first_numbers.get(place) == next_trial.number:
                claimed.append(next_trial)
            else:
                # Another worker may have given it up already.
                self._study.tell(next_trial, state=TrialState.FAIL, skip_if_finished=True)
        if self._is_shared:
            _record_heartbeat(claimed)
        return claimed

    @contextmanager
    def heartbeat(self, trials: Sequence[Trial]) -> Iterator[None]:
        """Tell other workers every few seconds that this one is alive and has these trials."""
        if not self._is_shared:
            yield
            return
        from sqlalchemy.exc import SQLAlchemyError

        is_done = threading.Event()

        def beat() -> None:
            while not is_done.wait(HEARTBEAT_INTERVAL):
                # A lost database ends the search when the results are told.
                with suppress(SQLAlchemyError, StorageInternalError):
                    _record_heartbeat(trials)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_done.set()
            thread.join()

    def tell(self, trial: Trial, evaluation: TrialEvaluation) -> None:
        """Store the result of a trial, unless others have given it up meanwhile and redo it."""
        estimates = {
            "optimistic": evaluation.optimistic,
            "cross-fitted": evaluation.cross_fitted,
        }
        judged = estimates[self.plan.judge]
        if judged is None:
            raise ValueError("trials compete on held-out folds, but there are none")
        result = {**estimates, "size": evaluation.size, "weights": list(evaluation.weights)}
        with suppress(UpdateFinishedTrialError):
            trial.set_user_attr(RESULT, result)
            values = [judged[metric] for metric in self._metrics]
            self._study.tell(trial, values, skip_if_finished=True)

    def results(self) -> list[SearchTrial]:
        """The finished trials in the order of their places."""
        trials = []
        for (generation, slot), trial in self.finished().items():
            result = dict(trial.user_attrs[RESULT])
            trials.append(
                SearchTrial(
                    number=trial.number,
                    generation=generation,
                    slot=slot,
                    searched=trial.params,
                    configuration=self.plan.fit_config(trial.params, self.rows),
                    judge=self.plan.judge,
                    metrics=self._metrics,
                    size=result.pop("size"),
                    weights=tuple(result.pop("weights")),
                    estimates=result,
                )
            )
        return trials

    def _trials(self) -> list[FrozenTrial]:
        """Trials of a place that wait, run or are finished, and were not given up."""
        trials = []
        for trial in self._study.get_trials(deepcopy=False):
            if PLACE in trial.user_attrs and trial.state is not TrialState.FAIL:
                trials.append(trial)
        return trials

    def _add_missing_trials(self) -> None:
        """Add a waiting trial for each free place of the first unfinished generation."""
        taken_places = {_place(trial) for trial in self._trials()}
        finished = self.finished()
        for place in _current_generation(self.plan, finished.keys()):
            if place not in taken_places:
                attributes: dict[str, object] = {PLACE: list(place)}
                if self._is_shared:
                    # A worker that is killed before its first heartbeat has this one.
                    attributes[ALIVE] = time.time()
                self._study.add_trial(
                    create_trial(
                        state=TrialState.WAITING,
                        params=self._proposals.propose(place, finished),
                        distributions=self._distributions,
                        user_attrs=attributes,
                    )
                )

    def _fail_lost_trials(self) -> None:
        """Give up the trials of workers that have had no heartbeat for a while."""
        latest = time.time() - GRACE_PERIOD
        running = self._study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
        self._fail([trial for trial in running if trial.user_attrs.get(ALIVE, 0.0) < latest])

    def _fail(self, trials: Sequence[FrozenTrial]) -> None:
        """Give up these trials, so that their places are free."""
        for trial in trials:
            with suppress(UpdateFinishedTrialError):
                self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


def _place(trial: FrozenTrial | Trial) -> Place:
    """The generation of a trial, and its slot in it."""
    generation, slot = trial.user_attrs[PLACE]
    return generation, slot


def _current_generation(plan: SearchPlan, finished: Collection[Place]) -> list[Place]:
    """The places of the first generation that is not finished."""
    for start in range(0, plan.trials, plan.population):
        size = min(plan.population, plan.trials - start)
        places = [(start // plan.population, slot) for slot in range(size)]
        if not all(place in finished for place in places):
            return places
    return []


def _record_heartbeat(trials: Sequence[Trial]) -> None:
    """Store the present time in each of these trials that is still running."""
    for trial in trials:
        with suppress(UpdateFinishedTrialError):
            trial.set_user_attr(ALIVE, time.time())


def _open_study(storage: BaseStorage, plan: SearchPlan, data: FitData) -> Study:
    """The plan's study, new or continued; another search under its name is refused."""
    # The sampler of this study is not used: its trials come with their values.
    sampler = RandomSampler()
    try:
        # A journal grows by every attempt to make a study, so look first.
        study = optuna.load_study(study_name=plan.study, storage=storage, sampler=sampler)
    except KeyError:
        study = optuna.create_study(
            storage=storage,
            study_name=plan.study,
            directions=DIRECTIONS,
            sampler=sampler,
            load_if_exists=True,
        )
    # Trials are read before the identity. Another worker writes its identity before its trials, so
    # that there are never trials without one.
    is_empty = not study.get_trials(deepcopy=False)
    begun = study.user_attrs.get(IDENTITY)
    identity = plan.identity(data.describe())
    refused = f"the study {plan.study!r} in this storage"
    remedy = f"choose another {option('study')}, {option('storage')} or output folder"
    if begun is None:
        if tuple(study.directions) != DIRECTIONS or not is_empty:
            raise InputError(f"{refused} is not an EDO search", remedy, code="wrong-content")
        study.set_metric_names(list(search_metrics(data.scale)))
        study.set_user_attr(IDENTITY, identity)
    elif begun.get("format") != FORMAT:
        raise InputError(
            f"{refused} was begun by another version of edokit, in a format other than {FORMAT}",
            f"continue it with that version, or {remedy}",
            code="other-version",
        )
    elif begun != identity:
        raise InputError(
            f"{refused} can't be continued with other settings: it has"
            f" {_differences(begun, identity)}",
            f"search with the same settings, or {remedy}",
            code="other-settings",
        )
    return study


def _differences(begun: dict[str, Any], requested: dict[str, Any]) -> str:
    """How the settings of a begun search differ from the requested ones."""
    texts = []
    for key, value in requested.items():
        before = begun[key]
        if before == value:
            continue
        if isinstance(before, dict):
            names = [name for name in {**before, **value} if before.get(name) != value.get(name)]
            texts.append(f"different {key} ({', '.join(names)})")
        else:
            texts.append(f"{key} {before!r} and not {value!r}")
    return "; ".join(texts)
