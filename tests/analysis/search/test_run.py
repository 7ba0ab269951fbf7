"""Generation by generation: parents, resumption, failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from search_cases import QUICK, data, essence

from edokit._errors import InputError
from edokit.analysis.search import study as run_module
from edokit.analysis.search.space import Plan
from edokit.analysis.search.storage import open_storage
from edokit.analysis.search.study import (
    PLACE,
    finished,
    open_study,
    read_trials,
    run_trials,
    take_trials,
    tell,
)

PLAN = Plan(space=QUICK, population=4, folds=0, judge="optimistic")


def begun(plan: Plan = PLAN, storage: Any = None) -> optuna.Study:
    return open_study(storage or optuna.storages.InMemoryStorage(), plan, data())


def trials_of(study: optuna.Study, plan: Plan = PLAN) -> list[Any]:
    return read_trials(finished(study), plan, data())


def searched(trials: int, plan: Plan = PLAN) -> list[Any]:
    study = begun(plan)
    run_trials(study, replace(plan, trials=trials), data())
    return trials_of(study, plan)


@pytest.fixture(scope="module")
def straight() -> list[Any]:
    return searched(18)


def test_generations_are_filled_one_after_the_other(straight: list[Any]) -> None:
    assert [(t.generation, t.slot) for t in straight] == [(n // 4, n % 4) for n in range(18)]
    assert [t.number for t in straight] == list(range(18))


def test_children_take_their_values_from_the_best_before_them(straight: list[Any]) -> None:
    """A random draw of a float never repeats; a child's values are its parents', few mutate."""
    inherited = total = 0
    for one in straight:
        earlier = [other for other in straight if other.generation < one.generation]
        for name in PLAN.space.searched:
            if not isinstance(one.searched[name], float):
                continue
            known = any(other.searched[name] == one.searched[name] for other in earlier)
            if one.generation == 0:
                assert not known
            else:
                inherited, total = inherited + known, total + 1
    assert 0.7 < inherited / total < 1.0


def test_parents_are_the_elite_of_the_generations_before() -> None:
    study = begun()
    run_trials(study, replace(PLAN, trials=8), data())
    take_trials(study, replace(PLAN, trials=12))
    attrs = study._storage.get_study_system_attrs(study._study_id)
    parents = set(attrs["PositionSampler:parent:2"])
    done = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    assert len(parents) == 4
    best = {trial._trial_id for trial in study.best_trials}
    assert parents <= best or best <= parents
    assert parents <= {trial._trial_id for trial in done}


def test_no_two_places_draw_the_same(straight: list[Any]) -> None:
    first = [tuple(t.searched.values()) for t in straight if t.generation == 0]
    assert len(set(first)) == 4
    assert essence(straight[:4]) != essence(searched(4, Plan(**{**vars(PLAN), "random_state": 1})))


def test_a_resumed_search_is_the_undisturbed_one(straight: list[Any], tmp_path: Path) -> None:
    for stop in (4, 7, 18):
        with open_storage(tmp_path / "journal.log") as opened:
            study = begun(storage=opened.storage)
            run_trials(study, replace(PLAN, trials=stop), data())
    with open_storage(tmp_path / "journal.log") as opened:
        study = begun(storage=opened.storage)
        assert essence(trials_of(study)) == essence(straight)
        assert [t.number for t in trials_of(study)] == list(range(18)), "none was run twice"


def test_a_resumed_search_evaluates_no_finished_trial_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, evaluated = run_module.Evaluator.__call__, [0]

    def counted(self: Any, chosen: Any) -> Any:
        evaluated[0] += len(chosen)
        # A search that forgot a trial would do it for ever.
        assert evaluated[0] <= 10
        return real(self, chosen)

    monkeypatch.setattr(run_module.Evaluator, "__call__", counted)
    for trials, in_all in ((6, 6), (6, 6), (10, 10)):
        with open_storage(tmp_path / "journal.log") as opened:
            run_trials(begun(storage=opened.storage), replace(PLAN, trials=trials), data())
        assert evaluated[0] == in_all


def test_trials_that_died_are_tried_again_with_the_same_values(straight: list[Any]) -> None:
    study = begun()
    run_trials(study, replace(PLAN, trials=6), data())
    # A process asks for the rest of the generation, tells one and is gone; another was killed
    # before its trial had a place.
    asked = take_trials(study, replace(PLAN, trials=8))
    result = {
        "optimistic": straight[6].estimates["optimistic"],
        "cross-fitted": None,
        "size": straight[6].size,
        "weights": list(straight[6].weights),
    }
    tell(study, asked[0], result, "optimistic")
    study.ask()
    run_trials(study, replace(PLAN, trials=18), data())
    assert essence(trials_of(study)) == essence(straight)
    states = [trial.state.name for trial in study.get_trials()]
    assert states.count("FAIL") == 2
    assert "RUNNING" not in states


def test_a_longer_search_goes_on_from_a_shorter_one(straight: list[Any]) -> None:
    study = begun()
    run_trials(study, replace(PLAN, trials=5), data())
    run_trials(study, replace(PLAN, trials=3), data())
    assert len(trials_of(study)) == 5, "fewer trials than there are change nothing"
    run_trials(study, replace(PLAN, trials=18), data())
    assert essence(trials_of(study)) == essence(straight)


def test_progress_tells_how_far() -> None:
    seen: list[Any] = []
    run_trials(begun(), replace(PLAN, trials=6), data(), progress=lambda *told: seen.append(told))
    assert seen == [(0, 6), (4, 6), (6, 6)]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"population": 5}, "population 4 and not 5"),
        ({"random_state": 1}, "seed 0 and not 1"),
        ({"space": QUICK.with_(lambda_div=0.0)}, r"different space \(lambda_div\)"),
        ({"folds": 2}, "folds 0 and not 2"),
    ],
)
def test_another_search_under_the_same_name_is_refused(change: Any, part: str) -> None:
    storage = optuna.storages.InMemoryStorage()
    run_trials(begun(storage=storage), replace(PLAN, trials=4), data())
    with pytest.raises(InputError, match=part):
        begun(Plan(**{**vars(PLAN), **change}), storage)
    kept = optuna.load_study(study_name="edo", storage=storage)
    assert len(kept.trials) == 4, "nothing is lost"


def test_other_data_under_the_same_name_are_refused() -> None:
    storage = optuna.storages.InMemoryStorage()
    begun(storage=storage)
    with pytest.raises(InputError, match=r"different data \(items, digest\)"):
        open_study(storage, PLAN, data(items=61))
    open_study(storage, Plan(**{**vars(PLAN), "study": "another"}), data(items=61))


def test_a_study_of_something_else_is_left_alone() -> None:
    storage = optuna.storages.InMemoryStorage()
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(study_name="edo", storage=storage)
    optuna.logging.set_verbosity(verbosity)
    with pytest.raises(InputError, match="not an EDO search"):
        begun(storage=storage)


def test_a_trial_added_by_hand_is_no_part_of_the_search(straight: list[Any]) -> None:
    study = begun()
    run_trials(study, replace(PLAN, trials=4), data())
    study.add_trial(optuna.create_trial(values=[0.0, 9.0, 9.0]))
    run_trials(study, replace(PLAN, trials=18), data())
    assert essence(trials_of(study)) == essence(straight)
    assert sum(PLACE in t.user_attrs for t in study.get_trials()) == 18


def test_cross_fitted_estimates_differ_from_optimistic_ones() -> None:
    space = QUICK.with_(ce="mean", diversity="preserve", lambda_div=0.0)
    trials = searched(4, Plan(space=space, solver="exact", population=4, folds=3))
    for one in trials:
        assert one.estimates["cross-fitted"] != one.estimates["optimistic"]
        assert one.ce == one.estimates["cross-fitted"]["ce"]
    losses = {name: [t.estimates[name]["ce"] for t in trials] for name in trials[0].estimates}
    assert np.mean(losses["cross-fitted"]) > np.mean(losses["optimistic"])


def test_fifty_trials_in_one_go_or_in_three(tmp_path: Path) -> None:
    """The paper's number of trials, interrupted within and between generations."""
    plan = Plan(space=QUICK, folds=2)
    whole = searched(50, plan)
    for stop in (13, 20, 50):
        with open_storage(tmp_path / "journal.log") as opened:
            study = begun(plan, opened.storage)
            run_trials(study, replace(plan, trials=stop), data())
            found = trials_of(study, plan)
    assert essence(found) == essence(whole)
    assert [t.number for t in found] == list(range(50))
