"""Several processes on one study: each place is filled once, whoever dies on the way."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import optuna
import psycopg
import pytest
from optuna.trial import TrialState, create_trial
from postgres import Server

from edokit._errors import EDOWarning, InputError
from edokit.fitdata import FitData
from edokit.tuning import run as run_module
from edokit.tuning import search
from edokit.tuning.postgres import own_mark
from edokit.tuning.run import run, run_study
from edokit.tuning.storage import Opened, open_storage
from edokit.tuning.study import Plan, open_study

optuna.logging.set_verbosity(optuna.logging.WARNING)
ELSEWHERE = "far/another-machine/1/1"
GONE = own_mark().rsplit("/", 2)[0] + "/1/never"


def small_problem() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.dirichlet([1, 1], size=(40, 4)), rng.dirichlet([2, 2], size=40)


PREDICTIONS, ANSWERS = small_problem()
HOW = {"trials": 16, "folds": 0, "population": 6, "random_state": 3}


def data_and_plan(**changes: Any) -> tuple[Any, Plan]:
    from edokit.ensemble.inputs import align_inputs, as_predictions

    named, people = align_inputs(as_predictions(PREDICTIONS), ANSWERS)
    plan = Plan(**{"population": 6, "folds": 0, "judge": "optimistic", "seed": 3, **changes})
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
    with open_storage(url) as opened:
        return what_was_found(search(PREDICTIONS, ANSWERS, storage=opened, **HOW))


def states(opened: Opened) -> list[TrialState]:
    study = optuna.load_study(study_name="edo", storage=opened.storage)
    return [trial.state for trial in study.get_trials(deepcopy=False)]


def test_workers_together_find_what_one_process_finds(
    database_server: Server, undisturbed: list[Any]
) -> None:
    url = database_server.new_database()

    def work() -> None:
        with open_storage(url) as opened:
            run_study(opened, plan, data, HOW["trials"], worker=True)

    data, plan = data_and_plan()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_storage(url) as opened:
        assert states(opened) == [TrialState.COMPLETE] * HOW["trials"]
        study = optuna.load_study(study_name="edo", storage=opened.storage)
        assert len({trial.user_attrs["by"] for trial in study.trials}) > 1
    assert result_in(url) == undisturbed


@pytest.mark.parametrize(
    ("by", "beat", "stale"),
    [
        (ELSEWHERE, 0.0, False),
        (ELSEWHERE, 50.0, False),
        (ELSEWHERE, 70.0, True),
        (ELSEWHERE, None, True),
        (None, None, True),
        (GONE, 0.0, True),
        (own_mark(), 0.0, False),
    ],
    ids=["fresh", "quiet", "silent", "never heard of", "nobody's", "gone", "another thread"],
)
def test_a_trial_is_freed_when_its_process_is_gone(
    database_server: Server, by: str | None, beat: float | None, stale: bool
) -> None:
    url = database_server.new_database()
    with open_storage(url) as opened:
        data, plan = data_and_plan()
        study = open_study(opened.storage, plan, data)
        attributes = {} if by is None else {"by": by, "place": [0, 0]}
        study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs=attributes))
        trial_id = study.trials[0]._trial_id
        if beat is not None:
            opened.storage.record_heartbeat(trial_id)
            with psycopg.connect(url) as connection:
                connection.execute(
                    "UPDATE trial_heartbeats SET heartbeat = heartbeat - make_interval(secs => %s)",
                    [beat],
                )
        claims = opened.claims()
        freed = claims.locked(study, lambda: claims.free_stale(study))
        assert freed == int(stale)
        assert study.trials[0].state == (TrialState.FAIL if stale else TrialState.RUNNING)


def test_a_silent_workers_trials_are_done_by_another(
    database_server: Server, undisturbed: list[Any]
) -> None:
    url = database_server.new_database()
    data, plan = data_and_plan()
    with open_storage(url, heartbeat=0.2, grace=1) as opened:
        study = opened.alone(lambda: open_study(opened.storage, plan, data))
        # Half a generation is taken by a process on a machine that has since gone down.
        for slot in range(3):
            attributes = {"by": ELSEWHERE, "place": [0, slot]}
            study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs=attributes))
        for trial in study.trials:
            opened.storage.record_heartbeat(trial._trial_id)
        run(study, plan, data, HOW["trials"], claims=opened.claims())
        assert states(opened).count(TrialState.FAIL) == 3
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
        assert len(states(opened)) == HOW["trials"] + 3
    assert result_in(url) == undisturbed


def test_a_worker_at_work_gives_signs_of_life(database_server: Server) -> None:
    with open_storage(database_server.new_database(), heartbeat=0.05, grace=1) as opened:
        data, plan = data_and_plan()
        study = open_study(opened.storage, plan, data)
        claims = opened.claims()
        study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs={"by": claims.name}))
        trial_id = study.trials[0]._trial_id
        claims.locked(study, lambda: None)
        with claims.alive([trial_id]):
            time.sleep(0.5)
            age = opened.storage.heartbeats(study._study_id)[trial_id]
        assert age is not None
        assert age < 0.4


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
                run_study(other, plan, data, HOW["trials"], worker=True)
        return real(*given)

    monkeypatch.setattr(run_module, "solve", sleepy)
    with open_storage(url) as opened:
        run_study(opened, plan, data, HOW["trials"], worker=True)
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
        assert TrialState.RUNNING not in states(opened)
    assert result_in(url) == undisturbed


def test_a_database_that_goes_away_in_the_middle_changes_nothing(
    database_server: Server, undisturbed: list[Any]
) -> None:
    url = database_server.new_database()
    data, plan = data_and_plan()
    with open_storage(url, patience=20) as opened:
        opened.alone(lambda: open_study(opened.storage, plan, data))

        def trouble() -> None:
            for pause in (0.3, 0.45):
                time.sleep(pause)
                database_server.stop()
                time.sleep(0.2)
                database_server.start()

        outage = threading.Thread(target=trouble)
        outage.start()
        with pytest.warns(EDOWarning, match="does not answer"):
            run_study(opened, plan, data, HOW["trials"], most=2, worker=True)
        outage.join()
        assert TrialState.RUNNING not in states(opened)
        assert states(opened).count(TrialState.COMPLETE) == HOW["trials"]
    assert result_in(url) == undisturbed


def test_workers_need_a_database(tmp_path: Any) -> None:
    data, plan = data_and_plan()
    with open_storage(tmp_path / "journal.log") as opened, pytest.raises(InputError, match="share"):
        run_study(opened, plan, data, 5, worker=True)


def test_a_study_of_another_shape_is_not_joined(database_server: Server) -> None:
    with open_storage(database_server.new_database()) as opened:
        data, plan = data_and_plan()
        run_study(opened, plan, data, 6, worker=True)
        with pytest.raises(InputError, match="seed 3 and not 4"):
            run_study(opened, data_and_plan(seed=4)[1], data, 6, worker=True)
        assert states(opened) == [TrialState.COMPLETE] * 6
