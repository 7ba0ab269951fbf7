"""A search sees shards as it sees arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import EDOWarning, Objective
from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.statistics import Evaluator, solve
from edokit.config import FitConfig
from edokit.fitdata.data import FitData
from edokit.fitdata.sharded import ShardedData
from edokit.objective.settings import PAPER_SOLVERS, Pool
from shard_cases import Cut, cut
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
POOLS = [Pool.LINEAR, Pool.LOG, Pool.LINEAR]
STEPS = replace(PAPER_SOLVERS["gumbel"], epochs=2)
CHOSEN = [
    FitConfig(objective=Objective(reg=0.03), solver=STEPS),
    FitConfig(
        objective=Objective(reg=0.03, ce="all", div=0.3), solver=replace(STEPS, max_members=3)
    ),
    FitConfig(objective=Objective(reg=0.03, class_weights=True, div=0.2), solver=STEPS),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return cut(tmp_path_factory.mktemp("shards"), 300, [90, 130])


@pytest.fixture(scope="module")
def shards(made: Cut) -> Any:
    with FitData.open(made.predictions, made.annotations, jobs=1) as data:
        yield data


@pytest.fixture(scope="module")
def arrays(made: Cut) -> FitData:
    return FitData.from_predictions(made.pool, made.people)


@pytest.mark.parametrize("solver", ["exact", "gumbel"])
def test_trials_are_solved_and_judged_as_in_memory(
    shards: ShardedData, arrays: FitData, solver: str
) -> None:
    assert (len(shards), shards.members) == (len(arrays), arrays.members)
    found, wanted = (
        solve(each, CHOSEN, SearchPlan(solver=solver, random_state=3)) for each in (shards, arrays)
    )
    for one, other in zip(found, wanted, strict=True):
        assert not isinstance(one, str)
        assert not isinstance(other, str)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-7)
    weights = np.stack([one.weights for one in found if not isinstance(one, str)])
    before = shards.passes
    scores = shards.scores(weights, POOLS)
    assert shards.passes == before + 1
    for one, other in zip(
        scores.estimates(), arrays.scores(weights, POOLS).estimates(), strict=True
    ):
        assert one == pytest.approx(other, abs=1e-10)


def test_groups_are_units(made: Cut, shards: ShardedData) -> None:
    data = shards.grouped()
    assert data.members == ("g0", "g1")
    (found,) = solve(data, CHOSEN[:1], SearchPlan(solver="exact"))
    assert not isinstance(found, str)
    assert found.weights.shape == (2,)


def test_folds_judge_every_item_once(shards: ShardedData) -> None:
    weights = np.full((1, 4), 0.25)
    parts = shards.folds(3)
    scores = [judge.scores(weights, [Pool.LINEAR]) for _, judge in parts]
    total = scores[0] + scores[1] + scores[2]
    assert total.estimates()[0] == pytest.approx(
        shards.scores(weights, [Pool.LINEAR]).estimates()[0], abs=1e-12
    )
    learn, judge = parts[0]
    assert len(learn) + len(judge) == 300
    (solution,) = solve(learn, CHOSEN[:1], SearchPlan(solver="exact"))
    assert not isinstance(solution, str)
    with raises_code("too-many-folds", "301", "300"):
        shards.folds(301)


def test_the_description_tells_data_apart(made: Cut, shards: ShardedData, tmp_path: Path) -> None:
    described = shards.describe()
    other = cut(tmp_path, 300, [10], seed=1)
    with FitData.open(made.predictions, made.people, jobs=1) as again:
        assert again.describe() == described
    with FitData.open(other.predictions, other.people, jobs=1) as different:
        assert different.describe()["digest"] != described["digest"]


def test_gumbel_trials_on_a_sample_are_told_once(
    made: Cut, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 90)
    with FitData.open(made.predictions, made.people, jobs=1, scratch=tmp_path) as shards:
        with pytest.warns(EDOWarning, match="90 of 300 items"):
            evaluator = Evaluator(shards, SearchPlan(folds=2))
        evaluator.evaluate(CHOSEN)
