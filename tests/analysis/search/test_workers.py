"""Several processes on one study: each place is filled once, whoever dies on the way."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from postgres import Server, silence_workers

from edokit import search
from edokit.analysis.search import study as study_module
from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.statistics import Evaluator
from edokit.analysis.search.storage import StudyStorage, open_storage
from edokit.analysis.search.study import SearchStudy, run_study
from edokit.fitdata.data import FitData
from tests.errors import raises_code

optuna.logging.set_verbosity(optuna.logging.WARNING)


def small_problem() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.dirichlet([1, 1], size=(40, 4)), rng.dirichlet([2, 2], size=40)


PREDICTIONS, ANSWERS = small_problem()
HOW = {"trials": 16, "folds": 0, "population": 6, "random_state": 3}


def data_and_plan(**changes: Any) -> tuple[Any, SearchPlan]:
    from edokit.fitdata.arrays import as_predictions
    from edokit.fitdata.inputs import align_inputs

    named, people = align_inputs(as_predictions(PREDICTIONS), ANSWERS)
    plan = SearchPlan(
        **{"population": 6, "folds": 0, "judge": "optimistic", "random_state": 3, **changes}
    )
    return FitData.from_predictions(named, people, random_state=3), plan


def what_was_found(result: Any) -> list[Any]:
    """Places and settings as they are; results but for digits that depend on who is fitted with."""
    return [
        (t.generation, t.slot, t.searched, [round(x, 9) for x in (t.f1, t.ce, t.md, *t.weights)])
        for t in result.trials
    ]


@pytest.fixture(scope="module")
def undisturbed() -> list[Any]:
    return what_was_found(search(PREDICTIONS, ANSWERS, **HOW))


def result_in(url: str) -> list[Any]:
    """What stands in the storage, once all is done: nothing more is fitted."""
    return what_was_found(search(PREDICTIONS, ANSWERS, storage=url, **HOW))


def states(opened: StudyStorage) -> list[TrialState]:
    study = optuna.load_study(study_name="edo", storage=opened.storage)
    return [trial.state for trial in study.get_trials(deepcopy=False)]


def test_workers_together_find_what_one_process_finds(
    database_server: Server, undisturbed: list[Any]
) -> None:
    url = database_server.new_database()

    def work() -> None:
        with open_storage(url) as opened:
            run_study(opened, replace(plan, trials=HOW["trials"], worker=True), data)

    data, plan = data_and_plan()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_storage(url) as opened:
        # Workers that propose the same trial at once give the second one up.
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
        assert TrialState.RUNNING not in states(opened)
    assert result_in(url) == undisturbed


def test_a_silent_workers_trials_are_done_by_another(
    database_server: Server, undisturbed: list[Any]
) -> None:
    url = database_server.new_database()
    data, plan = data_and_plan()
    plan = replace(plan, trials=HOW["trials"])
    with open_storage(url) as opened:
        # Half a generation is taken by a process on a machine that has since gone down.
        assert len(SearchStudy(opened, plan, data).claim(limit=3)) == 3
        silence_workers(url)
        run_study(opened, plan, data)
        assert states(opened).count(TrialState.FAIL) == 3
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
        assert len(states(opened)) == HOW["trials"] + 3
    assert result_in(url) == undisturbed


def test_a_trial_that_was_taken_over_is_not_told_twice(
    database_server: Server, undisturbed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that slept comes back to find its trials done by others."""
    url = database_server.new_database()
    data, plan = data_and_plan()

    real = Evaluator.evaluate
    slept: list[bool] = []

    def sleepy(self: Evaluator, chosen: Any) -> Any:
        """The first batch takes so long that the worker is given up."""
        if not slept:
            slept.append(True)
            silence_workers(url)
            with open_storage(url) as other:
                run_study(other, replace(plan, trials=HOW["trials"], worker=True), data)
        return real(self, chosen)

    monkeypatch.setattr(Evaluator, "evaluate", sleepy)
    with open_storage(url) as opened:
        run_study(opened, replace(plan, trials=HOW["trials"], worker=True), data)
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
        assert TrialState.RUNNING not in states(opened)
    assert result_in(url) == undisturbed


def test_a_worker_signs_while_it_fits(
    database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database_server.new_database()
    data, plan = data_and_plan()
    monkeypatch.setattr(study_module, "HEARTBEAT_INTERVAL", 0.01)
    with open_storage(url) as opened:
        study = SearchStudy(opened, plan, data)
        claimed = study.claim(limit=2)
        silence_workers(url)
        with study.heartbeat(claimed):
            while signs(opened)[:2] == [0, 0]:
                time.sleep(0.01)
        assert study.claim(limit=2), "they are not waiting any more"
        assert TrialState.FAIL not in states(opened)


def signs(opened: StudyStorage) -> list[float]:
    study = optuna.load_study(study_name="edo", storage=opened.storage)
    return [trial.user_attrs["alive"] for trial in study.get_trials(deepcopy=False)]


def test_workers_need_a_database(tmp_path: Any) -> None:
    data, plan = data_and_plan()
    with open_storage(tmp_path / "journal.log") as opened, raises_code("inapplicable-option"):
        run_study(opened, replace(plan, trials=5, worker=True), data)


def test_a_study_of_another_shape_is_not_joined(database_server: Server) -> None:
    with open_storage(database_server.new_database()) as opened:
        data, plan = data_and_plan()
        run_study(opened, replace(plan, trials=6, worker=True), data)
        with raises_code("other-settings", "3", "4"):
            run_study(
                opened, replace(data_and_plan(random_state=4)[1], trials=6, worker=True), data
            )
        assert states(opened) == [TrialState.COMPLETE] * 6
