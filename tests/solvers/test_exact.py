"""The exact solver: optimal where the objective is convex, honest where it is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from edokit import Objective
from edokit.fitdata.data import FitData
from edokit.objective.loss import JointObjective, joint_loss
from edokit.objective.pools import pool
from edokit.objective.settings import ObjectiveSettings
from edokit.objective.summaries import Problem, Summaries, rank_members
from edokit.solvers.exact import local_optima, minimize_on_simplex, solve_exact

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def make(items: int, members: int, classes: int, seed: int) -> Arrays:
    """Members that see the same leaning of each item through more or less noise."""
    rng = np.random.default_rng(seed)
    leaning = rng.normal(size=(items, classes)) * 1.5
    q = _softmax(leaning)
    q = np.stack([rng.multinomial(5, row) for row in q]) / 5.0
    noise = rng.normal(size=(items, members, classes)) * rng.uniform(0.3, 2, size=(1, members, 1))
    return _softmax(leaning[:, None] + noise), q, q.argmax(axis=1)


def _softmax(values: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def problem_of(data: Arrays, settings: ObjectiveSettings) -> Problem:
    return Problem.from_arrays(*data, class_weights=settings.class_weights, pool=settings.pool)


convex_settings = st.builds(
    lambda pool, **options: Objective(**options).resolve(pool),
    f1=st.sampled_from([0.0, 0.5, 1.0]),
    ce_weight=st.sampled_from([0.3, 1.0]),
    div=st.sampled_from([0.0, 0.1, 1.0]),
    reg=st.sampled_from([0.0, 1e-3, 1e-2]),
    ce=st.sampled_from(["mean", "all"]),
    class_weights=st.booleans(),
    pool=st.sampled_from(["linear", "log"]),
)
shapes = st.tuples(
    st.integers(12, 120), st.integers(1, 12), st.sampled_from([2, 3, 11]), st.integers(0, 999)
)


def every_class_present(data: Arrays) -> bool:
    return len(np.unique(data[2])) == data[1].shape[1]


@given(convex_settings, shapes)
def test_preserve_is_certified_below_1e_8(settings: ObjectiveSettings, shape: Any) -> None:
    data = make(*shape)
    if not every_class_present(data):
        settings = replace(settings, class_weights=False)
    solution = solve_exact(FitData.from_arrays(*data), settings)
    assert solution.certificate is not None
    assert solution.certificate.convex
    assert solution.certificate.global_optimum
    assert solution.certificate.gap < 1e-8
    assert solution.weights.min() >= 0
    assert solution.weights.sum() == pytest.approx(1, abs=1e-12)


@given(convex_settings, shapes, st.integers(0, 99))
def test_no_other_weights_are_better_by_more_than_the_gap(
    settings: ObjectiveSettings, shape: Any, seed: int
) -> None:
    settings = replace(settings, class_weights=False)
    data = make(*shape)
    problem = problem_of(data, settings)
    solution = solve_exact(FitData.from_arrays(*data), settings)
    rng = np.random.default_rng(seed)
    others = rng.dirichlet(np.full(problem.members, 0.3), size=50)
    # Near ones, too: a little of every other corner.
    near = 0.99 * solution.weights + 0.01 * np.eye(problem.members)
    lowest = joint_loss(np.concatenate([others, near]), problem, settings).total.min()
    assert solution.certificate is not None
    assert solution.terms["total"] <= lowest + solution.certificate.gap + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_a_general_solver_finds_nothing_lower(seed: int) -> None:
    settings = Objective(f1=0.5, div=0.3).resolve()
    data = make(200, 8, 3, seed)
    problem = problem_of(data, settings)
    solution = solve_exact(FitData.from_arrays(*data), settings)
    found = minimize(
        lambda v: float(joint_loss(v, problem, settings).total),
        np.full(8, 1 / 8),
        jac=lambda v: joint_loss(v, problem, settings).gradient,
        bounds=[(0, 1)] * 8,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solution.terms["total"] <= found.fun + 1e-9
    assert solution.terms["total"] == pytest.approx(found.fun, abs=1e-6)


def test_preserve_has_one_optimal_value_and_pool() -> None:
    settings = Objective(div=0.5, reg=0.0).resolve()
    P, q, y = make(300, 6, 2, 0)
    # Interchangeable members may share weight differently; the pool may not differ.
    P = np.concatenate([P, P[:, [0, 3]]], axis=1)
    rng = np.random.default_rng(1)
    pools = []
    values = []
    for _ in range(5):
        order = rng.permutation(8)
        solution = solve_exact(FitData.from_arrays(P[:, order], q, y), settings)
        values.append(solution.terms["total"])
        pools.append(pool(P[:, order], solution.weights))
    assert np.ptp(values) < 1e-9
    assert np.ptp(pools, axis=0).max() < 1e-6


def test_with_preserve_disagreement_never_falls_as_its_weight_grows() -> None:
    data = make(400, 10, 2, 3)
    kept = []
    for strength in (0.0, 0.05, 0.2, 0.5, 1.0, 3.0):
        settings = Objective(div=strength).resolve()
        kept.append(solve_exact(FitData.from_arrays(*data), settings).terms["div"])
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(kept))


def test_growing_suppress_ends_in_one_member() -> None:
    data = make(400, 10, 2, 3)
    sizes = []
    for strength in (0.0, 0.1, 1.0, 10.0):
        settings = Objective(div=strength, diversity="suppress").resolve()
        sizes.append(solve_exact(FitData.from_arrays(*data), settings).size)
    assert sizes[0] > 1
    assert sizes[-1] == 1


@pytest.mark.parametrize("ce", ["mean", "all"])
def test_suppress_is_no_worse_than_any_vertex_and_says_that_it_is_local(ce: str) -> None:
    for seed in range(5):
        settings = Objective(ce=ce, div=0.3, reg=0.05, diversity="suppress").resolve()
        data = make(150, 7, 3, seed)
        problem = problem_of(data, settings)
        solution = solve_exact(FitData.from_arrays(*data), settings)
        corners = joint_loss(np.eye(7), problem, settings).total
        assert solution.terms["total"] <= corners.min() + 1e-12
        assert solution.certificate is not None
        assert solution.certificate.gap < 1e-8
        if ce == "mean":
            assert not solution.certificate.global_optimum
            assert "local" in solution.certificate.reason


@pytest.mark.parametrize("seed", [0, 31, 48])
def test_suppress_finds_the_better_of_two_camps_of_members(seed: int) -> None:
    rng = np.random.default_rng(seed)
    camps = [rng.normal(0.25, 0.06, (30, 2)), rng.normal(0.7, 0.06, (30, 4))]
    yes = np.clip(np.concatenate(camps, axis=1), 0.02, 0.98)
    y = (rng.random(30) < rng.uniform(0.3, 0.6)).astype(int)
    data = np.stack([1 - yes, yes], axis=2), np.eye(2)[y], y
    settings = Objective(ce="all", div=0.3, reg=0.2, diversity="suppress").resolve()
    means = np.array([[1 / 2, 1 / 2, 0, 0, 0, 0], [0, 0, 1 / 4, 1 / 4, 1 / 4, 1 / 4]])
    of_camps = joint_loss(means, problem_of(data, settings), settings).total
    solution = solve_exact(FitData.from_arrays(*data), settings)
    # From uniform weights the slope leads to the larger camp.
    assert of_camps[0] < of_camps[1]
    assert solution.terms["total"] <= of_camps[0]
    assert (np.diff(solution.weights[solution.order]) <= 0).all()


def test_suppress_is_no_worse_than_any_vertex_wherever_it_starts() -> None:
    settings = Objective(ce="all", div=1.0, diversity="suppress").resolve()
    objective = JointObjective(problem_of(make(150, 7, 3, 0), settings), settings)
    heights = [objective.value(vertex) for vertex in np.eye(7)]
    for start in np.eye(7):
        assert objective.value(local_optima(objective, [start])[0]) <= min(heights) + 1e-12


def test_a_tiny_weight_stays_where_the_optimum_needs_it() -> None:
    # The slope of a·v + ‖v‖² is the same for all three members at (½, ½, 5e-7), about.
    tiny = 5e-7
    losses = np.array([1.0, 1.0, 1.0 + (1 - tiny) - 2 * tiny])
    right = np.exp(-losses)
    data = np.stack([right, 1 - right], axis=1)[None], np.array([[1.0, 0.0]]), np.array([0])
    settings = Objective(f1=0.0, div=0.0, reg=1.0, ce="all").resolve()
    solution = solve_exact(FitData.from_arrays(*data), settings)
    assert solution.certificate is not None
    assert solution.certificate.gap < 1e-9
    assert solution.weights[2] == pytest.approx(tiny, rel=1e-3)


def test_suppress_with_ce_all_and_no_penalty_proves_its_vertex() -> None:
    settings = Objective(ce="all", div=0.2, reg=0.0, diversity="suppress").resolve()
    data = make(150, 6, 2, 0)
    problem = problem_of(data, settings)
    solution = solve_exact(FitData.from_arrays(*data), settings)
    assert solution.size == 1
    assert solution.certificate is not None
    assert solution.certificate.global_optimum
    rng = np.random.default_rng(0)
    others = joint_loss(rng.dirichlet(np.ones(6), size=2000), problem, settings).total
    assert solution.terms["total"] <= others.min()


def test_suppress_with_the_cross_entropy_of_the_pool_claims_no_optimum() -> None:
    """It is neither convex nor concave: the gap bounds nothing, no vertex is known to be best."""
    settings = Objective(ce="mean", div=0.5, reg=0.0, diversity="suppress").resolve()
    data = make(150, 6, 2, 3)
    solution = solve_exact(FitData.from_arrays(*data), settings)
    assert solution.certificate is not None
    assert not solution.certificate.convex
    assert not solution.certificate.global_optimum
    objective = JointObjective(problem_of(data, settings), settings)
    optima = local_optima(objective, [])
    assert len(optima) > 1
    assert objective.value(optima[0]) < objective.value(optima[-1])
    assert solution.terms["total"] <= objective.value(optima[0]) + 1e-12


def test_a_strong_penalty_makes_even_suppress_convex() -> None:
    settings = Objective(ce="all", div=0.01, reg=5.0, diversity="suppress").resolve()
    solution = solve_exact(FitData.from_arrays(*make(100, 5, 2, 0)), settings)
    assert solution.certificate is not None
    assert solution.certificate.convex
    assert solution.size == 5


def test_random_is_solved_in_expectation() -> None:
    data = make(100, 5, 2, 0)
    for ce in ("random", "all"):
        settings = Objective(ce=ce).resolve()
        solution = solve_exact(FitData.from_arrays(*data), settings)
        if ce == "random":
            first = solution
    np.testing.assert_allclose(first.weights, solution.weights, atol=1e-9)


def test_only_the_best_ranked_members_can_be_kept() -> None:
    settings = Objective().resolve()
    P, q, y = make(100, 8, 2, 0)
    best = rank_members(Summaries.from_arrays(P, q, y))[:3]
    solution = solve_exact(FitData.from_arrays(P, q, y), settings, max_members=3)
    assert set(np.flatnonzero(solution.weights)) <= set(best)


@pytest.mark.parametrize(
    "data",
    [
        make(1, 3, 2, 0),
        make(30, 1, 2, 0),
        (np.repeat(make(30, 1, 2, 0)[0], 4, axis=1), *make(30, 1, 2, 0)[1:]),
        (np.eye(2)[np.array([[0, 1], [1, 0], [0, 0]])], np.eye(2)[[1, 1, 0]], np.array([1, 1, 0])),
    ],
    ids=["one item", "one member", "identical members", "zeros where the label has mass"],
)
def test_edges_have_an_optimum_too(data: Arrays) -> None:
    settings = Objective().resolve()
    solution = solve_exact(FitData.from_arrays(*data), settings)
    assert np.isfinite(list(solution.terms.values())).all()
    assert solution.certificate is not None
    assert solution.certificate.gap < 1e-8


def test_many_items_give_the_same_optimum_from_a_sample_start() -> None:
    settings = Objective(div=0.2).resolve()
    data = make(5000, 12, 2, 0)
    solution = solve_exact(FitData.from_arrays(*data), settings)
    assert solution.certificate is not None
    assert solution.certificate.gap < 1e-8


@given(st.integers(1, 15), st.integers(1, 15), st.integers(0, 9999))
def test_the_quadratic_program_is_solved_to_its_optimality_conditions(
    size: int, rank: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, rank))
    hessian = factor @ factor.T
    linear = rng.normal(size=size) * rng.choice([0.01, 1.0, 100.0])
    x = minimize_on_simplex(hessian, linear)
    slope = hessian @ x + linear
    scale = max(1.0, np.abs(hessian).max(), np.abs(linear).max())
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1, abs=1e-12)
    assert slope @ x - slope.min() < 1e-9 * scale


@pytest.mark.parametrize("pool", ["linear", "log"])
def test_terms_that_nobody_weighs_may_be_left_out(pool: str) -> None:
    data = FitData.from_arrays(*make(300, 5, 3, 0))
    settings = Objective().resolve(pool)
    lean = solve_exact(data, settings, all_terms=False)
    full_solution = solve_exact(FitData.from_arrays(*data.sample), settings)
    np.testing.assert_allclose(lean.weights, full_solution.weights, atol=1e-9)
    assert "div" not in lean.terms
    assert {**full_solution.terms, "div": 0.0} == pytest.approx({**lean.terms, "div": 0.0})
    for more in ({"div": 0.1}, {"ce": "all"}, {"class_weights": True}):
        needs = replace(settings, **more)
        assert np.isfinite(solve_exact(data, needs, all_terms=False).weights).all()


def test_the_gradient_of_the_cross_entropy_comes_with_the_solution() -> None:
    data = make(200, 6, 2, 1)
    settings = Objective(div=0.1).resolve()
    solution = solve_exact(FitData.from_arrays(*data), settings)
    loss = joint_loss(solution.weights, problem_of(data, settings), settings)
    np.testing.assert_allclose(
        solution.ce_gradient, loss.objective.ce.at(solution.weights)[1], rtol=1e-9
    )


def test_a_certificate_is_one_among_the_members_that_compete():
    """The loss over all members can be far lower than the certificate's gap says."""
    rng = np.random.default_rng(3)
    q = rng.dirichlet([1, 1], size=40)
    away = rng.normal(scale=0.4, size=40)
    # The best member alone is lukewarm; two that err in opposite ways are right together.
    yes = np.clip([0.5 + 0 * away, q[:, 1] + away, q[:, 1] - away], 0.01, 0.99)
    P = np.stack([1 - yes, yes], axis=2).transpose(1, 0, 2)
    data = FitData.from_arrays(P, q, q.argmax(axis=1), members=["lukewarm", "a", "b"])
    settings = Objective(f1=0.0, reg=0.0).resolve()
    alone, together = (solve_exact(data, settings, max_members=limit) for limit in (1, None))
    assert alone.certificate is not None
    assert together.certificate is not None
    assert alone.certificate.among == ("lukewarm",)
    assert "among the 1 of 3 members" in alone.certificate.reason
    assert "no other weights of the 1 competing member lower" in str(alone.certificate)
    assert alone.certificate.global_optimum
    assert together.certificate.among is None
    assert together.terms["total"] < alone.terms["total"] - 0.05
