"""Claims about the paper's algorithm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gumbel_cases import Data, fit, random_pool, solve_by_seed, step_by_step, three_of_ten
from scipy.optimize import minimize

from edokit import Gumbel, Objective
from edokit.objective.loss import joint_loss
from edokit.objective.pools import effective_weights, softmax
from edokit.objective.settings import CE, Diversity, GumbelSteps, ObjectiveSettings, Pool
from edokit.objective.summaries import Problem, Summaries, rank_members
from edokit.solvers import Solution, batches
from edokit.solvers.gumbel import solve_gumbel
from tests.errors import raises_code

EVERYTHING = Objective(f1=0.7, ce_weight=1.0, div=0.5, reg=0.1).resolve()
QUICK = GumbelSteps(epochs=3, batch_size=16, learning_rate=0.05)
# Enough steps to arrive: every step sees all items, and the size is fixed.
FIXED_SIZE = GumbelSteps(
    epochs=250, batch_size=10**6, learning_rate=0.1, min_members=5, max_members=5
)


def one(data: Data, settings: ObjectiveSettings, options: GumbelSteps, seed: int = 0) -> Solution:
    return solve_gumbel(fit(data), settings, options, random_state=seed)[0]


def optimum(problem: Problem, settings: ObjectiveSettings) -> float:
    """The lowest joint loss on the simplex that a general solver finds."""
    members = problem.members

    def loss(v: np.ndarray) -> tuple[float, np.ndarray]:
        at = joint_loss(v, problem, settings)
        return float(at.total), np.asarray(at.gradient)

    result = minimize(
        loss,
        np.full(members, 1 / members),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * members,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert result.success
    return float(result.fun)


@pytest.mark.parametrize(
    "settings",
    [
        EVERYTHING,
        replace(EVERYTHING, class_weights=True),
        replace(EVERYTHING, ce=CE.ALL),
        replace(EVERYTHING, ce=CE.RANDOM),
        replace(EVERYTHING, reg=3.0),
        replace(EVERYTHING, pool=Pool.LOG, diversity=Diversity.SUPPRESS),
        replace(EVERYTHING, ce=CE.RANDOM, class_weights=True),
        replace(EVERYTHING, ce=CE.ALL, class_weights=True),
    ],
    ids=lambda s: f"{s.ce} {s.pool} {s.reg} {s.class_weights}",
)
@pytest.mark.parametrize("sizes", [(1, 5), (2, 4), (3, 3)])
def test_a_batch_of_configurations_takes_the_steps_of_the_formulas(settings, sizes):
    # 60 items in batches of 16: the last one is short.
    data = random_pool()
    ranked = rank_members(Summaries.from_arrays(*data))
    data = data._replace(P=data.P[:, ranked])
    options = replace(QUICK, min_members=sizes[0], max_members=sizes[1])
    found = one(data, settings, options, seed=3).weights
    # Members that cannot be kept are out from the start.
    kept = data._replace(P=data.P[:, : sizes[1]])
    expected = step_by_step(kept, settings, options, seed=3)
    np.testing.assert_allclose(found[: sizes[1]], expected, rtol=0, atol=1e-11)
    assert not found[sizes[1] :].any()


@pytest.mark.parametrize("ce", ["mean", "all"])
@pytest.mark.parametrize("pool", ["linear", "log"])
@pytest.mark.parametrize("seed", range(4))
def test_given_enough_steps_it_reaches_the_optimum(ce, pool, seed):
    data = random_pool(seed=seed)
    settings = replace(EVERYTHING, ce=CE(ce), pool=Pool(pool))
    best = optimum(Problem.from_arrays(*data, pool=pool), settings)
    found = one(data, settings, FIXED_SIZE).terms["total"]
    assert best - 1e-9 <= found <= best + 1e-3


def test_mini_batches_reach_the_optimum_too():
    data = random_pool(items=200)
    options = GumbelSteps(epochs=100, learning_rate=0.02, min_members=5, max_members=5)
    found = one(data, EVERYTHING, options).terms["total"]
    assert found <= optimum(Problem.from_arrays(*data), EVERYTHING) + 1e-3


def test_thorough_settings_find_a_size_and_weights_near_the_optimum():
    data = random_pool(items=120)
    options = Gumbel().resolve(120)
    assert options.epochs * 4 >= 2000
    best = optimum(Problem.from_arrays(*data), EVERYTHING)
    for solution in solve_by_seed(data, EVERYTHING, options, range(5)):
        assert solution.terms["total"] <= best + 1e-3
        assert solution.trajectory.temperature[-1] == pytest.approx(0.1)


def test_the_same_seed_gives_the_same_answer_and_another_seed_another():
    data = random_pool()
    for ce in ("mean", "all", "random"):
        settings = replace(EVERYTHING, ce=CE(ce))
        first, again, other = (one(data, settings, QUICK, seed) for seed in (5, 5, 6))
        np.testing.assert_array_equal(first.trajectory.theta, again.trajectory.theta)
        np.testing.assert_array_equal(first.weights, again.weights)
        assert np.abs(first.trajectory.theta - other.trajectory.theta).max() > 1e-4


def test_a_configuration_does_not_depend_on_its_companions():
    data = random_pool()
    rng = np.random.default_rng(0)
    settings = []
    options = []
    for t in range(24):
        settings.append(
            Objective(
                **dict(zip(("f1", "ce_weight", "div", "reg"), rng.random(4), strict=True)),
                diversity=rng.choice(["preserve", "suppress"]),
                ce=["mean", "all", "random"][t % 3],
                class_weights=bool(rng.integers(2)),
            ).resolve(rng.choice(["linear", "log"]))
        )
        options.append(
            GumbelSteps(
                epochs=int(rng.integers(1, 4)),
                batch_size=int(rng.choice([16, 32])),
                learning_rate=rng.uniform(0.001, 0.1),
                temperature=rng.uniform(0.1, 1.0),
                temperature_decay=rng.uniform(0.01, 0.5),
                min_members=int(rng.integers(1, 3)),
            )
        )
    together = solve_gumbel(fit(data), settings, options, random_state=2)
    for t, companion in enumerate(together):
        alone = solve_gumbel(fit(data), settings[t], options[t], random_state=2)[0]
        np.testing.assert_allclose(companion.weights, alone.weights, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            companion.trajectory.total, alone.trajectory.total, rtol=0, atol=1e-12
        )
        assert companion.size == alone.size


def test_memory_blocks_do_not_change_the_answer(monkeypatch):
    data = random_pool()
    settings = [replace(EVERYTHING, ce=CE(ce)) for ce in ("mean", "all", "random")]
    full_solution = solve_gumbel(fit(data), settings, QUICK)
    monkeypatch.setattr(batches, "_BLOCK", 1)
    for ours, theirs in zip(full_solution, solve_gumbel(fit(data), settings, QUICK), strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, rtol=0, atol=1e-12)


def test_of_ten_members_of_which_seven_are_noise_about_three_keep_weight():
    data = three_of_ten()
    options = GumbelSteps(epochs=30, learning_rate=0.1)
    found = solve_by_seed(data, Objective().resolve(), options, range(20))
    weights = np.array([solution.weights for solution in found])
    assert np.mean([3 <= solution.size <= 4 for solution in found]) >= 0.9
    assert np.mean((weights > 0.02).sum(axis=1) == 3) >= 0.9
    assert weights[:, :3].sum(axis=1).mean() > 0.98


def test_suppress_ends_in_one_member():
    data = random_pool()
    settings = Objective(div=20.0, diversity="suppress").resolve()
    options = GumbelSteps(epochs=150, batch_size=10**6, learning_rate=0.1)
    for solution in solve_by_seed(data, settings, options, range(5)):
        assert solution.weights.max() > 0.99


def test_preserve_does_not_lose_diversity():
    data = random_pool()
    settings = Objective(ce_weight=0.0, div=1.0, reg=0.0).resolve()
    problem = Problem.from_arrays(*data)
    uniform = float(joint_loss(np.full(5, 0.2), problem, settings).terms["div"])
    options = replace(FIXED_SIZE, min_members=1)
    div = np.array([s.terms["div"] for s in solve_by_seed(data, settings, options, range(5))])
    assert (div > uniform - 1e-3).all()
    assert div.max() > uniform


def test_random_is_all_on_average_and_shrinks_towards_uniform_when_hot():
    data = random_pool(items=200)
    cold = GumbelSteps(epochs=20, learning_rate=0.02, temperature=0.2, min_members=5)
    hot = replace(cold, temperature=1.0, temperature_decay=0.0)

    def weights(ce: str, options: GumbelSteps) -> np.ndarray:
        found = solve_by_seed(data, replace(EVERYTHING, ce=CE(ce)), options, range(10))
        return np.mean([solution.weights for solution in found], axis=0)

    of_all = weights("all", cold)
    assert np.abs(of_all - 0.2).max() > 0.2  # there was something to learn
    np.testing.assert_allclose(weights("random", cold), of_all, atol=0.04)
    # The straight-through gradient is that of a softmax, not of the draw: exact only when cold.
    assert np.abs(weights("random", hot) - of_all).max() > 0.08


def test_weights_are_on_the_simplex_and_reach_no_further_than_the_size():
    data = random_pool(members=8)
    options = replace(QUICK, min_members=2, max_members=4)
    for solution in solve_by_seed(data, EVERYTHING, options, range(6)):
        assert 2 <= solution.size <= 4
        assert solution.weights.sum() == pytest.approx(1.0)
        kept = solution.order[: solution.size]
        assert (solution.weights[kept] > 0).all()
        assert np.flatnonzero(solution.weights).tolist() == sorted(kept)
        np.testing.assert_array_equal(solution.order, rank_members(Summaries.from_arrays(*data)))


def test_the_order_of_the_members_does_not_matter():
    data = random_pool(members=6)
    worst_first = rank_members(Summaries.from_arrays(*data))[::-1]
    data = data._replace(P=data.P[:, worst_first])
    options = replace(QUICK, max_members=1)
    assert solve_gumbel(fit(data), EVERYTHING, options)[0].weights[-1] == 1.0


def test_terms_and_trajectory_are_those_of_the_joint_loss():
    data = random_pool()
    settings = replace(EVERYTHING, ce=CE.RANDOM, class_weights=True)
    solution = one(data, settings, QUICK)
    problem = Problem.from_arrays(*data, class_weights=True)
    expected = replace(settings, ce=CE.ALL)
    course = solution.trajectory
    assert len(course) == QUICK.epochs
    np.testing.assert_allclose(
        course.temperature, [0.5 * np.exp(-0.05 * epoch) for epoch in range(3)]
    )
    for weights, terms in (
        (solution.weights, solution.terms),
        *((course.weights[e], {"total": course.total[e], "div": course.div[e]}) for e in range(3)),
    ):
        loss = joint_loss(weights, problem, expected)
        for name, value in terms.items():
            assert value == pytest.approx(float(loss.terms[name]), abs=1e-12)
    np.testing.assert_allclose(course.sizes, softmax(course.pi))
    ranked = course.weights[:, solution.order]
    np.testing.assert_allclose(ranked, effective_weights(course.theta, course.sizes))


def test_the_temperature_stops_at_its_minimum():
    options = replace(QUICK, temperature=0.3, temperature_decay=0.9, min_temperature=0.2)
    course = one(random_pool(), EVERYTHING, options).trajectory
    np.testing.assert_allclose(course.temperature, [0.3, 0.2, 0.2])


@pytest.mark.parametrize("ce", ["mean", "all", "random"])
@pytest.mark.parametrize(
    ("items", "members", "classes"), [(1, 5, 3), (30, 1, 2), (1, 1, 2), (40, 4, 11)]
)
def test_small_and_wide_problems(ce, items, members, classes):
    data = random_pool(items, members, classes)
    solution = one(data, replace(EVERYTHING, ce=CE(ce)), QUICK)
    assert solution.weights.sum() == pytest.approx(1.0)
    assert all(np.isfinite(value) for value in solution.terms.values())
    if members == 1:
        assert solution.size == 1


@pytest.mark.parametrize("ce", ["mean", "all", "random"])
def test_identical_members_share_the_weight(ce):
    data = random_pool(members=1)
    data = data._replace(P=np.repeat(data.P, 4, axis=1))
    solution = one(data, replace(EVERYTHING, ce=CE(ce), reg=0.0), QUICK)
    kept = solution.order[: solution.size]
    np.testing.assert_allclose(solution.weights[kept], 1 / solution.size, atol=1e-9)
    assert solution.size == 1  # nothing to choose by: the smallest


@pytest.mark.parametrize("pool", ["linear", "log"])
@pytest.mark.parametrize("ce", ["mean", "all", "random"])
def test_a_member_without_probability_where_the_label_has_mass_loses_its_weight(ce, pool):
    data = random_pool(members=3)
    data.P[:, 2] = 0.0
    data.P[np.arange(len(data.y)), 2, (data.y + 1) % 3] = 1.0
    options = GumbelSteps(epochs=50, learning_rate=0.1)
    solution = one(data, Objective(ce=ce, div=0.0).resolve(pool), options)
    assert np.isfinite(solution.trajectory.total).all()
    assert solution.weights[2] < 0.1


def test_absurd_steps_still_end_on_the_simplex():
    options = GumbelSteps(epochs=20, learning_rate=500.0)
    for solution in solve_by_seed(random_pool(), EVERYTHING, options, range(10)):
        assert solution.weights.sum() == pytest.approx(1.0)
        assert np.isfinite(solution.trajectory.total).all()


def test_float32_and_integer_labels_of_any_width_are_welcome():
    data = random_pool()
    narrow = Data(data.P.astype(np.float32), data.q.astype(np.float32), data.y.astype(np.int8))
    ours, theirs = (one(some, EVERYTHING, QUICK) for some in (data, narrow))
    np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, ("invalid-number", "epochs")),
        ({"batch_size": 1.5}, ("invalid-number", "batch_size", "1.5")),
        ({"learning_rate": 0.0}, ("invalid-number", "learning_rate", "0.0")),
        ({"temperature": float("nan")}, ("invalid-number",)),
        (
            {"temperature_decay": -0.1},
            ("invalid-number", "temperature_decay", "-0.1"),
        ),
        ({"min_members": 3, "max_members": 2}, ("invalid-range",)),
    ],
)
def test_impossible_options_are_refused(values, message):
    with raises_code(*message):
        Gumbel(**values)


def test_calls_that_do_not_fit_together_are_refused():
    data = random_pool()
    with raises_code("too-few-members", "min_members=6", "5 members"):
        solve_gumbel(fit(data), EVERYTHING, GumbelSteps(min_members=6))
    with raises_code("invalid-number", "random_state"):
        solve_gumbel(fit(data), EVERYTHING, random_state=-1)
