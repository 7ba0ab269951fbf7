"""Both solvers find over shards what they find in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edokit import Objective
from edokit.fitdata.data import FitData
from edokit.fitdata.sharded import ShardedData
from edokit.objective.loss import JointObjective, joint_loss
from edokit.objective.settings import GumbelSteps, ObjectiveSettings
from edokit.objective.summaries import Problem
from edokit.solvers import Solution
from edokit.solvers.exact import solve_exact, streamed_terms
from edokit.solvers.gumbel import solve_gumbel
from shard_cases import Cut, cut

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")

chosen = st.builds(
    lambda pool, **options: Objective(**options).resolve(pool),
    f1=st.sampled_from([0.0, 0.5]),
    ce_weight=st.sampled_from([0.0, 0.3, 1.0]),
    div=st.sampled_from([0.0, 0.1, 1.0]),
    reg=st.sampled_from([1e-3, 1e-2]),
    ce=st.sampled_from(["mean", "all", "random"]),
    diversity=st.sampled_from(["preserve", "suppress"]),
    class_weights=st.booleans(),
    pool=st.sampled_from(["linear", "log"]),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return cut(tmp_path_factory.mktemp("shards"), 400, [90, 130, 300], members=6, classes=3)


@pytest.fixture(scope="module")
def shards(made: Cut) -> Any:
    with FitData.open(made.predictions, made.annotations, jobs=1) as data:
        assert not data.is_sampled
        yield data


@pytest.fixture(scope="module")
def streamed(made: Cut, shards: ShardedData) -> Any:
    """Shards whose sample is smaller than they are, so that solvers have to go through them."""
    with (
        pytest.MonkeyPatch.context() as patch,
        FitData.open(made.predictions, made.annotations, jobs=1) as data,
    ):
        patch.setattr("edokit.fitdata.sharded.SAMPLE", 150)
        assert data.is_sampled
        assert data.grouped().is_sampled
        yield data


def joint(data: ShardedData, settings: ObjectiveSettings, members: Any) -> JointObjective:
    problem = data.problem(settings, with_items=False).select(members)
    return JointObjective(problem, settings, streamed_terms(data, settings, np.asarray(members)))


def in_memory(made: Cut) -> FitData:
    return FitData.from_predictions(made.pool, made.people)


def assert_same(one: Solution, other: Solution) -> None:
    assert one.terms == pytest.approx(other.terms, abs=2e-7)
    assert one.terms["total"] == pytest.approx(other.terms["total"], abs=1e-9)
    assert one.certificate is not None
    assert other.certificate is not None
    assert (one.certificate.convex, one.certificate.global_optimum, one.certificate.reason) == (
        other.certificate.convex,
        other.certificate.global_optimum,
        other.certificate.reason,
    )
    assert one.certificate.gap < 1e-8


@settings(max_examples=40)
@given(objective=chosen, most=st.sampled_from([None, 3]), grouped=st.booleans())
def test_exact_finds_over_shards_what_it_finds_in_memory(
    made: Cut, streamed: ShardedData, objective: ObjectiveSettings, most: int | None, grouped: bool
) -> None:
    pair = streamed, in_memory(made)
    found, wanted = (
        solve_exact(data.grouped() if grouped else data, objective, max_members=most)
        for data in pair
    )
    assert_same(found, wanted)
    if found.certificate is not None and found.certificate.convex and objective.ce_weight:
        np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-4)
        np.testing.assert_allclose(found.ce_gradient, wanted.ce_gradient, atol=1e-4)
    assert found.weights.sum() == pytest.approx(1)
    assert sorted(found.order) == list(range(len(found.weights)))


def test_without_the_pools_cross_entropy_no_pass_is_needed(shards: ShardedData) -> None:
    shards.summaries()
    before = shards.passes
    solve_exact(shards, Objective(ce="all").resolve())
    solve_exact(shards, Objective(ce="random", div=1.0, diversity="suppress").resolve())
    assert shards.passes == before


def test_a_sample_is_a_start_and_no_more(
    made: Cut, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 60)
    with FitData.open(made.predictions, made.people, jobs=1, scratch=tmp_path) as data:
        for objective in (
            Objective().resolve(),
            Objective(div=0.3, diversity="suppress").resolve(),
        ):
            assert len(data.sample.y) == 60
            assert_same(solve_exact(data, objective), solve_exact(in_memory(made), objective))
        before = data.passes
        solve_exact(data, Objective().resolve())
        assert data.passes - before <= 8


def test_what_is_known_of_a_place_is_not_asked_again(shards: ShardedData) -> None:
    objective = joint(shards, Objective().resolve(), [2, 0, 1])
    v = np.array([0.2, 0.3, 0.5])
    before = shards.passes
    objective.ce.evaluate_at([v, np.full(3, 1 / 3)])
    objective.value(v), objective.slope(v), objective.curvature(v, np.array([0, 2]))
    objective.terms(np.full(3, 1 / 3))
    assert shards.passes == before + 1
    # A single member's pool is known from the summaries.
    objective.value(np.array([0.0, 1.0, 0.0]))
    assert shards.passes == before + 1


def test_the_slope_is_the_change_of_the_value(shards: ShardedData) -> None:
    objective = joint(shards, Objective(div=0.2, diversity="suppress").resolve(), np.arange(6))
    v = np.full(6, 1 / 6)
    step = np.array([1.0, -1.0, 0.5, 0.0, -0.5, 0.0])
    ahead, behind = (objective.value(v + sign * 1e-5 * step) for sign in (1, -1))
    assert (ahead - behind) / 2e-5 == pytest.approx(objective.slope(v) @ step, rel=1e-6)
    convex, concave = objective.curvature(v, np.arange(6))
    bend = (ahead - 2 * objective.value(v) + behind) / 1e-10
    assert bend == pytest.approx(step @ (convex + concave) @ step, abs=1e-3)


def test_gumbel_with_few_items_learns_from_all_of_them(made: Cut, shards: ShardedData) -> None:
    objectives = [Objective(ce=ce).resolve() for ce in ("mean", "all", "random")]
    options = [GumbelSteps(epochs=3, learning_rate=0.05, max_members=4)] * 3
    wanted = solve_gumbel(in_memory(made), objectives, options, random_state=2)
    solution = solve_gumbel(shards, objectives, options, random_state=2)
    for one, other in zip(solution, wanted, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-12)
        np.testing.assert_array_equal(one.order, other.order)
        assert one.terms == pytest.approx(other.terms)
        assert one.trajectory is not None
        assert other.trajectory is not None
        np.testing.assert_allclose(one.trajectory.weights, other.trajectory.weights, atol=1e-12)


def test_gumbel_on_a_sample_tells_the_terms_of_all_items(
    made: Cut, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 100)
    objectives = [
        Objective().resolve(),
        Objective().resolve("log"),
        Objective(ce="random", class_weights=True).resolve(),
        Objective(div=0.5).resolve(),
    ]
    options = [GumbelSteps(epochs=2)] * 4
    P = made.pool.probabilities.astype(np.float64)
    arrays = (P, made.people.soft_labels, made.people.hard_labels())
    with FitData.open(made.predictions, made.people, jobs=1, scratch=tmp_path) as data:
        found = solve_gumbel(data, objectives, options)
        before = data.passes
        solve_gumbel(data, objectives, options, trajectory=False)
        assert data.passes == before, "a search needs no terms"
    for objective, solution in zip(objectives, found, strict=True):
        whole = Problem.from_arrays(
            *arrays, class_weights=objective.class_weights, pool=objective.pool
        )
        kind = (
            objective
            if objective.ce != "random"
            else Objective(ce="all", class_weights=True).resolve()
        )
        loss = joint_loss(solution.weights, whole, kind)
        for name in ("f1", "ce", "div", "reg", "total"):
            assert solution.terms[name] == pytest.approx(float(loss.terms[name]))
