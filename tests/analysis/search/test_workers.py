"""Several processes on one study: each place is filled once, whoever dies on the way."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import psycopg
import pytest
from optuna.trial import TrialState
from postgres import Server

from edokit._errors import InputError
from edokit.analysis.search import study as run_module
from edokit.analysis.search.result import search
from edokit.analysis.search.space import Plan
from edokit.analysis.search.storage import StudyStorage, open_storage
from edokit.analysis.search.study import open_study, run_study, run_trials, take_trials
from edokit.fitdata.data import FitData

optuna.logging.set_verbosity(optuna.logging.WARNING)


def small_problem() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.dirichlet([1, 1], size=(40, 4)), rng.dirichlet([2, 2], size=40)


PREDICTIONS, ANSWERS = small_problem()
HOW = {"trials": 16, "folds": 0, "population": 6, "random_state": 3}


def data_and_plan(**changes: Any) -> tuple[Any, Plan]:
    from edokit.fitdata.inputs import align_inputs, as_predictions

    named, people = align_inputs(as_predictions(PREDICTIONS), ANSWERS)
    plan = Plan(
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


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
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
    with open_storage(url) as opened, psycopg.connect(url) as connection:
        study = open_study(opened.storage, plan, data)
        # Half a generation is taken by a process on a machine that has since gone down.
        assert len(take_trials(study, replace(plan, trials=HOW["trials"]), limit=3)) == 3
        connection.execute("UPDATE trial_heartbeats SET heartbeat = '2000-01-01'")
        connection.commit()
        run_trials(study, replace(plan, trials=HOW["trials"]), data)
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

    real, slept = run_module.solve, []

    def sleepy(*given: Any) -> Any:
        """The first fit takes so long that the worker is given up."""
        if not slept:
            slept.append(True)
            with open_storage(url) as other, psycopg.connect(url) as connection:
                connection.execute("UPDATE trial_heartbeats SET heartbeat = '2000-01-01'")
                connection.commit()
                run_study(other, replace(plan, trials=HOW["trials"], worker=True), data)
        return real(*given)

    monkeypatch.setattr(run_module, "solve", sleepy)
    with open_storage(url) as opened:
        run_study(opened, replace(plan, trials=HOW["trials"], worker=True), data)
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
        assert TrialState.RUNNING not in states(opened)
    assert result_in(url) == undisturbed


def test_workers_need_a_database(tmp_path: Any) -> None:
    data, plan = data_and_plan()
    with open_storage(tmp_path / "journal.log") as opened, pytest.raises(InputError, match="share"):
        run_study(opened, replace(plan, trials=5, worker=True), data)


def test_a_study_of_another_shape_is_not_joined(database_server: Server) -> None:
    with open_storage(database_server.new_database()) as opened:
        data, plan = data_and_plan()
        run_study(opened, replace(plan, trials=6, worker=True), data)
        with pytest.raises(InputError, match="seed 3 and not 4"):
            run_study(
                opened, replace(data_and_plan(random_state=4)[1], trials=6, worker=True), data
            )
        assert states(opened) == [TrialState.COMPLETE] * 6
