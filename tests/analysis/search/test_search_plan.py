"""A plan holds together, or says what does not."""

from __future__ import annotations

from typing import Any

import pytest

from edokit import SearchOptions, SearchSpace, search
from edokit.analysis.search.options import SearchPlan
from tests.errors import raises_code

FIXED = SearchSpace(
    **{f"lambda_{t}": 1 for t in ("f1", "ce", "div", "reg")},
    diversity="preserve",
    ce="mean",
    learning_rate=1e-3,
    temperature=0.5,
    temperature_decay=0.1,
)


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        ({"population": 1}, "invalid-number", "population is 1"),
        ({"folds": 1}, "invalid-number", "folds is 0"),
        ({"folds": -1}, "invalid-number", "folds is -1"),
        ({"random_state": -1}, "invalid-number", "random_state is -1"),
        ({"solver": "simplex"}, "unknown-choice", "'simplex'"),
        ({"space": FIXED}, "empty-search-space", "`edo fit`"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change: Any, code: str, fact: str) -> None:
    with raises_code(code, fact):
        SearchPlan(**change)


@pytest.mark.parametrize("trials", [0, -3, 2.5, True, "many"])
def test_a_search_has_at_least_one_trial(trials: Any) -> None:
    with raises_code("invalid-number", "trials", "1"):
        search([], [], trials=trials)


def test_an_exact_plan_keeps_what_exact_can_search() -> None:
    assert "learning_rate" not in SearchPlan(solver="exact").space.searched


@pytest.mark.parametrize(
    ("folds", "solver", "expected"),
    [
        (None, "gumbel", (5, "cross-fitted")),
        (None, "exact", (5, "cross-fitted")),
        (3, "gumbel", (3, "cross-fitted")),
        (0, "exact", (0, "optimistic")),
    ],
)
def test_folds_that_are_asked_for_are_judged_by(
    folds: Any, solver: Any, expected: tuple[int, str]
) -> None:
    plan = SearchOptions(folds=folds, solver=solver).plan()
    assert (plan.folds, plan.judge) == expected


def test_in_the_papers_space_trials_compete_in_sample() -> None:
    larger_steps = SearchSpace.paper(learning_rate=(1e-2, 1e-1))
    assert SearchOptions(space="paper").plan().judge == "optimistic"
    assert SearchOptions(space=larger_steps).plan().judge == "cross-fitted"
