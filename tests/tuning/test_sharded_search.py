"""A search sees shards as it sees arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit._errors import EDOWarning, InputError
from edokit.fitdata.sharded import LabelledShards
from edokit.objective import Pool, Settings
from edokit.solvers import GumbelSettings
from edokit.tuning.data import ArrayData
from edokit.tuning.sharded import ShardData
from edokit.tuning.space import Configuration
from shard_cases import Cut, cut

pytestmark = pytest.mark.filterwarnings("ignore:.*items are tied:edokit._errors.EDOWarning")
POOLS = [Pool.LINEAR, Pool.LOG, Pool.LINEAR]
CHOSEN = [
    Configuration(Settings(), GumbelSettings(epochs=2)),
    Configuration(Settings(ce="all", lambda_div=0.3), GumbelSettings(epochs=2, max_members=3)),
    Configuration(Settings(class_weights=True, lambda_div=0.2), GumbelSettings(epochs=2)),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return cut(tmp_path_factory.mktemp("shards"), 300, [90, 130])


@pytest.fixture(scope="module")
def shards(made: Cut) -> Any:
    with LabelledShards.open(made.predictions, made.annotations, jobs=1) as data:
        yield data


@pytest.fixture(scope="module")
def arrays(made: Cut) -> ArrayData:
    y = made.people.hard_labels()
    return ArrayData(
        made.pool.probabilities, made.people.soft_labels, y, made.pool.members, made.pool.classes
    )


@pytest.mark.parametrize("solver", ["exact", "gumbel"])
def test_trials_are_solved_and_judged_as_in_memory(
    shards: LabelledShards, arrays: ArrayData, solver: str
) -> None:
    data = ShardData.of(shards)
    assert (data.items, data.members) == (arrays.items, arrays.members)
    found, wanted = (
        each.solve(CHOSEN, solver=solver, seed=3, order="ce") for each in (data, arrays)
    )
    for one, other in zip(found, wanted, strict=True):
        assert not isinstance(one, str)
        assert not isinstance(other, str)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-7)
    weights = np.stack([one.weights for one in found if not isinstance(one, str)])
    before = shards.passes
    scores = data.scores(weights, POOLS)
    assert shards.passes == before + 1
    for one, other in zip(
        scores.estimates(), arrays.scores(weights, POOLS).estimates(), strict=True
    ):
        assert one == pytest.approx(other, abs=1e-10)


def test_groups_are_units(made: Cut, shards: LabelledShards) -> None:
    data = ShardData.of(shards, groups=True)
    assert data.members == ("g0", "g1")
    (found,) = data.solve(CHOSEN[:1], solver="exact", seed=0, order="ce")
    assert not isinstance(found, str)
    assert found.weights.shape == (2,)


def test_folds_judge_every_item_once(shards: LabelledShards) -> None:
    data = ShardData.of(shards)
    weights = np.full((1, 4), 0.25)
    parts = data.folds(3, seed=0)
    scores = [judge.scores(weights, [Pool.LINEAR]) for _, judge in parts]
    total = scores[0] + scores[1] + scores[2]
    assert total.estimates()[0] == pytest.approx(
        data.scores(weights, [Pool.LINEAR]).estimates()[0], abs=1e-12
    )
    learn, judge = parts[0]
    assert learn.items + judge.items == 300
    (solution,) = learn.solve(CHOSEN[:1], solver="exact", seed=0, order="ce")
    assert not isinstance(solution, str)
    with pytest.raises(InputError, match="folds must be at most"):
        data.folds(301, seed=0)


def test_the_description_tells_data_apart(
    made: Cut, shards: LabelledShards, tmp_path: Path
) -> None:
    described = ShardData.of(shards).described()
    other = cut(tmp_path, 300, [10], seed=1)
    with LabelledShards.open(made.predictions, made.people, jobs=1) as again:
        assert ShardData.of(again).described() == described
    with LabelledShards.open(other.predictions, other.people, jobs=1) as different:
        assert ShardData.of(different).described()["digest"] != described["digest"]


def test_gumbel_trials_on_a_sample_are_told_once(
    made: Cut, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 90)
    with LabelledShards.open(made.predictions, made.people, jobs=1, scratch=tmp_path) as shards:
        data = ShardData.of(shards)
        with pytest.warns(EDOWarning, match="a random sample of 90 of 300 items"):
            data.solve(CHOSEN, solver="gumbel", seed=0, order="ce")
        for again in (data, data.folds(2, seed=0)[0][0]):
            again.solve(CHOSEN[:1], solver="gumbel", seed=0, order="ce")
