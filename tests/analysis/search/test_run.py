"""Generation by generation: parents, resumption, failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from search_cases import QUICK, data, essence

from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.proposals import Proposals
from edokit.analysis.search.result import SearchTrial
from edokit.analysis.search.statistics import Evaluator, TrialEvaluation
from edokit.analysis.search.storage import StudyStorage, open_storage
from edokit.analysis.search.study import PLACE, SearchStudy, run_study
from tests.errors import raises_code

PLAN = SearchPlan(space=QUICK, population=4, folds=0, judge="optimistic")


@pytest.fixture
def memory() -> Iterator[StudyStorage]:
    with open_storage() as opened:
        yield opened


def run(opened: StudyStorage, trials: int, plan: SearchPlan = PLAN) -> list[SearchTrial]:
    """The trials of a search that goes on in this storage."""
    return run_study(opened, replace(plan, trials=trials), data())[0]


def searched(trials: int, plan: SearchPlan = PLAN) -> list[SearchTrial]:
    with open_storage() as opened:
        return run(opened, trials, plan)


def stored(opened: StudyStorage) -> list[optuna.trial.FrozenTrial]:
    """The trials as Optuna has them."""
    return optuna.load_study(study_name="edo", storage=opened.storage).trials


@pytest.fixture(scope="module")
def straight() -> list[SearchTrial]:
    return searched(18)


def test_generations_are_filled_one_after_the_other(straight: list[SearchTrial]) -> None:
    assert [(t.generation, t.slot) for t in straight] == [(n // 4, n % 4) for n in range(18)]
    assert [t.number for t in straight] == list(range(18))


def test_children_take_their_values_from_the_best_before_them(straight: list[SearchTrial]) -> None:
    """A random draw of a float never repeats; a child's values are its parents', few mutate."""
    inherited = 0
    total = 0
    for one in straight:
        earlier = [other for other in straight if other.generation < one.generation]
        for name in PLAN.space.searched:
            if not isinstance(one.searched[name], float):
                continue
            known = any(other.searched[name] == one.searched[name] for other in earlier)
            if one.generation == 0:
                assert not known
            else:
                inherited += known
                total += 1
    assert 0.7 < inherited / total < 1.0


def test_parents_are_the_elite_of_the_generations_before() -> None:
    """The second generation is worse in every respect, so the third inherits from the first."""
    distributions = {name: FloatDistribution(0, 1) for name in ("a", "b", "c", "d", "e")}
    proposals = Proposals(distributions, population=4, seed=0)
    finished: dict[tuple[int, int], optuna.trial.FrozenTrial] = {}
    for generation in range(2):
        for slot in range(4):
            place = (generation, slot)
            # Within a generation, none is better in every respect.
            loss = generation + slot / 10
            finished[place] = optuna.create_trial(
                params=proposals.propose(place, finished),
                distributions=distributions,
                values=[slot - 10 * generation, loss, loss],
            )
    first, second = (
        {value for slot in range(4) for value in finished[generation, slot].params.values()}
        for generation in range(2)
    )
    children = [proposals.propose((2, slot), finished) for slot in range(4)]
    inherited = [value for child in children for value in child.values() if value in first | second]
    assert len(inherited) > 10
    assert set(inherited) <= first
    # A process that comes later proposes the same.
    later = Proposals(distributions, population=4, seed=0)
    assert [later.propose((2, slot), finished) for slot in (3, 1)] == [children[3], children[1]]


def test_no_two_places_draw_the_same(straight: list[SearchTrial]) -> None:
    first = [tuple(t.searched.values()) for t in straight if t.generation == 0]
    assert len(set(first)) == 4
    assert essence(straight[:4]) != essence(
        searched(4, SearchPlan(**{**vars(PLAN), "random_state": 1}))
    )


def test_a_resumed_search_is_the_undisturbed_one(
    straight: list[SearchTrial], tmp_path: Path
) -> None:
    for stop in (4, 7, 18):
        with open_storage(tmp_path / "journal.log") as opened:
            found = run(opened, stop)
    assert essence(found) == essence(straight)
    assert [trial.number for trial in found] == list(range(18)), "none was run twice"


def test_a_resumed_search_evaluates_no_finished_trial_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Evaluator.evaluate
    evaluated = [0]

    def counted(self: Any, chosen: Any) -> Any:
        evaluated[0] += len(chosen)
        # A search that forgot a trial would do it for ever.
        assert evaluated[0] <= 10
        return real(self, chosen)

    monkeypatch.setattr(Evaluator, "evaluate", counted)
    for trials in (6, 6, 10):
        with open_storage(tmp_path / "journal.log") as opened:
            run(opened, trials)
        assert evaluated[0] == trials


def test_trials_that_died_are_tried_again_with_the_same_values(
    straight: list[SearchTrial], memory: StudyStorage
) -> None:
    run(memory, 6)
    # A process asks for the rest of the generation, tells one and is gone.
    lost = SearchStudy(memory, replace(PLAN, trials=8), data())
    claimed = lost.claim()
    optimistic = straight[6].estimates["optimistic"]
    assert optimistic is not None
    evaluation = TrialEvaluation(dict(optimistic), None, straight[6].size, straight[6].weights)
    lost.tell(claimed[0], evaluation)
    # Another one was killed before its trial had a place.
    optuna.load_study(study_name="edo", storage=memory.storage).ask()
    assert essence(run(memory, 18)) == essence(straight)
    states = [trial.state.name for trial in stored(memory)]
    assert states.count("FAIL") == 2
    assert "RUNNING" not in states


def test_a_waiting_trial_of_somebody_else_is_not_run(
    straight: list[SearchTrial], memory: StudyStorage
) -> None:
    run(memory, 4)
    study = optuna.load_study(study_name="edo", storage=memory.storage)
    study.enqueue_trial({"lambda_f1": 0.5})
    assert essence(run(memory, 18)) == essence(straight)
    assert [trial.state.name for trial in stored(memory)].count("FAIL") == 1


def test_a_longer_search_goes_on_from_a_shorter_one(
    straight: list[SearchTrial], memory: StudyStorage
) -> None:
    run(memory, 5)
    assert len(run(memory, 3)) == 5, "fewer trials than there are change nothing"
    assert essence(run(memory, 18)) == essence(straight)


def test_a_shorter_search_goes_on_from_one_that_was_killed(
    straight: list[SearchTrial], memory: StudyStorage
) -> None:
    """Its trials wait in the storage, some of them beyond what is asked for now."""
    SearchStudy(memory, replace(PLAN, trials=18), data()).claim(limit=1)
    assert essence(run(memory, 2)) == essence(straight[:2])
    assert essence(run(memory, 18)) == essence(straight)


def test_progress_tells_how_far(memory: StudyStorage) -> None:
    seen: list[Any] = []
    plan = replace(PLAN, trials=6)
    run_study(memory, plan, data(), progress=lambda *told: seen.append(told))
    assert [told[:2] for told in seen] == [(0, 6), (4, 6), (6, 6)]


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"population": 5}, ("population 4", "5")),
        ({"random_state": 1}, ("seed 0", "1")),
        ({"space": QUICK.with_(lambda_div=0.0)}, ("space", "(lambda_div)")),
        ({"folds": 2}, ("folds 0", "2")),
    ],
)
def test_another_search_under_the_same_name_is_refused(
    change: Any, facts: tuple[str, ...], memory: StudyStorage
) -> None:
    run(memory, 4)
    with raises_code("other-settings", *facts):
        run(memory, 4, SearchPlan(**{**vars(PLAN), **change}))
    assert len(stored(memory)) == 4, "nothing is lost"


def test_other_data_under_the_same_name_are_refused(memory: StudyStorage) -> None:
    run(memory, 4)
    with raises_code("other-settings"):
        run_study(memory, PLAN, data(items=61))
    other = replace(PLAN, study="another", trials=4)
    assert len(run_study(memory, other, data(items=61))[0]) == 4


def test_a_study_of_something_else_is_left_alone(memory: StudyStorage) -> None:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(study_name="edo", storage=memory.storage)
    optuna.logging.set_verbosity(verbosity)
    with raises_code("wrong-content", "EDO"):
        run(memory, 4)


def test_a_trial_added_by_hand_is_no_part_of_the_search(
    straight: list[SearchTrial], memory: StudyStorage
) -> None:
    run(memory, 4)
    study = optuna.load_study(study_name="edo", storage=memory.storage)
    study.add_trial(optuna.create_trial(values=[0.0, 9.0, 9.0]))
    assert essence(run(memory, 18)) == essence(straight)
    assert sum(PLACE in trial.user_attrs for trial in stored(memory)) == 18


def test_cross_fitted_estimates_differ_from_optimistic_ones() -> None:
    space = QUICK.with_(ce="mean", diversity="preserve", lambda_div=0.0)
    trials = searched(4, SearchPlan(space=space, solver="exact", population=4, folds=3))
    for trial in trials:
        assert trial.estimates["cross-fitted"] != trial.estimates["optimistic"]
        assert trial.ce == trial.estimates["cross-fitted"]["ce"]
    losses = {name: [t.estimates[name]["ce"] for t in trials] for name in trials[0].estimates}
    assert np.mean(losses["cross-fitted"]) > np.mean(losses["optimistic"])


def test_fifty_trials_in_one_go_or_in_three(tmp_path: Path) -> None:
    """The paper's number of trials, interrupted within and between generations."""
    plan = SearchPlan(space=QUICK, folds=2)
    whole = searched(50, plan)
    for stop in (13, 20, 50):
        with open_storage(tmp_path / "journal.log") as opened:
            found = run(opened, stop, plan)
    assert essence(found) == essence(whole)
    assert [trial.number for trial in found] == list(range(50))
