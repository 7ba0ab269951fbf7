"""Terms of ordered classes: against literal loops, linear programming, shards and both solvers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from edokit import Exact, Objective, Scale
from edokit.config import FitConfig
from edokit.fitdata.data import FitData
from edokit.metrics import rps, w1
from edokit.objective.loss import SMOOTHING, joint_loss
from edokit.objective.pools import pool
from edokit.objective.settings import GumbelSteps, ObjectiveSettings, Pool
from edokit.objective.summaries import Summaries, rank_members
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel
from shard_cases import cut
from tests.errors import raises_code
from tests.objective import literal
from tests.objective.objective_cases import Case, cases, make_case
from tests.solvers.gumbel_cases import random_pool, step_by_step

pytestmark = pytest.mark.filterwarnings("ignore:.*items are tied:edokit._errors.EDOWarning")
ALONE = Objective(f1=0.0, ce_weight=0.0, reg=0.0).resolve()


def steps_of(case: Case) -> np.ndarray:
    return case.rng.uniform(0.5, 3.0, case.P.shape[2] - 1)


def places(steps: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(steps)])


def on(steps: np.ndarray) -> Scale:
    return Scale("ordinal", tuple(places(steps)))


@given(case=cases(), on_rps=st.floats(0.1, 2), on_w1=st.sampled_from([0.0, 0.7]))
def test_values_and_gradients_are_those_of_the_definitions(
    case: Case, on_rps: float, on_w1: float
) -> None:
    P, q, y, v, _ = case
    uneven = on(steps_of(case))
    steps = uneven.steps
    chosen = Objective(div=0.4, rps=on_rps, w1=on_w1).resolve()
    loss = joint_loss(v, FitData.from_arrays(P, q, y, scale=uneven).problem(chosen), chosen)
    assert loss.terms["rps"] == pytest.approx(rps(pool(P, v), q, uneven.positions), abs=1e-12)
    assert loss.terms["div"] == pytest.approx(literal.value(literal.scale_diversity(P, steps, v)))

    def total(weights):
        plain = [1.0] * P.shape[2]
        return (
            0.3 * literal.f1_loss(P, y, weights)
            + literal.ce_mean(P, q, plain, weights)
            - 0.4 * literal.scale_diversity(P, steps, weights)
            + 0.03 * literal.norm(weights)
            + on_rps * literal.rps(P, q, steps, weights)
            + on_w1 * literal.w1(P, q, steps, weights, SMOOTHING)
        )

    assert loss.total == pytest.approx(literal.value(total(v)))
    # Weights sum to one, so that only slopes along the simplex count.
    ours, expected = (x - x.mean() for x in (loss.gradient, literal.slope(total, v)))
    assert ours == pytest.approx(expected, rel=1e-6, abs=1e-6)
    if on_w1:
        exact = w1(pool(P, v), q, places(steps))
        assert exact - SMOOTHING * steps.sum() - 1e-12 <= loss.terms["w1"] <= exact + 1e-12


def test_summaries_of_shards_add_up() -> None:
    P, q, y, *_ = case = make_case(50, 4, 5)
    steps = steps_of(case)
    whole = Summaries.from_arrays(P, q, y, steps=steps)
    parts = [
        Summaries.from_arrays(P[s], q[s], y[s], steps=steps)
        for s in np.split(np.arange(50), [7, 30])
    ]
    both = sum(parts[1:], start=parts[0])
    assert both.rank_products == pytest.approx(whole.rank_products)
    assert both.distances == pytest.approx(whole.distances)


def test_torch_tensors_have_the_same_sums() -> None:
    torch = pytest.importorskip("torch")
    P, q, y, *_ = case = make_case(50, 4, 5)
    steps = steps_of(case)
    expected = Summaries.from_arrays(P, q, y, steps=steps)
    found = Summaries.from_arrays(*map(torch.as_tensor, (P, q, y)), steps=steps)
    assert found.rank_products.numpy() == pytest.approx(expected.rank_products)
    assert found.distances.numpy() == pytest.approx(expected.distances)


@pytest.mark.parametrize("seed", range(5))
def test_rps_is_solved_to_its_certificate(seed: int) -> None:
    P, q, y, *_ = case = make_case(60, 5, 6, seed)
    steps = steps_of(case)
    chosen = replace(ALONE, rps=1.0, reg=0.01)
    data = FitData.from_arrays(P, q, y, scale=on(steps))
    solution = solve_exact(data, chosen)
    assert solution.certificate.convex
    assert solution.certificate.gap < 1e-8

    def value(v: np.ndarray) -> float:
        return rps(pool(P, v), q, places(steps)) + 0.01 * float(v @ v)

    other = minimize(
        lambda v: value(np.abs(v) / np.abs(v).sum()),
        np.full(5, 0.2),
        method="Nelder-Mead",
        options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-13},
    )
    assert value(solution.weights) <= other.fun + 1e-7
    assert solution.terms["rps"] == pytest.approx(rps(pool(P, solution.weights), q, places(steps)))


@pytest.mark.parametrize("seed", range(5))
def test_w1_is_solved_within_its_stated_bound(seed: int) -> None:
    P, q, y, *_ = case = make_case(40, 5, 4, seed)
    steps = steps_of(case)
    solution = solve_exact(FitData.from_arrays(P, q, y, scale=on(steps)), replace(ALONE, w1=1.0))
    ours = w1(pool(P, solution.weights), q, places(steps))
    # Exactly, as a linear program: distances t ≥ ±(F·v − G).
    rows = np.cumsum(P, axis=2)[:, :, :-1].transpose(0, 2, 1).reshape(-1, 5)
    labels = np.cumsum(q, axis=1)[:, :-1].ravel()
    n = len(labels)
    program = linprog(
        np.r_[np.zeros(5), np.tile(steps, 40) / 40],
        A_ub=np.block([[rows, -np.eye(n)], [-rows, -np.eye(n)]]),
        b_ub=np.r_[labels, -labels],
        A_eq=np.r_[np.ones(5), np.zeros(n)][None],
        b_eq=[1.0],
    )
    assert solution.certificate.gap < 0.01
    assert program.fun - 1e-9 <= ours <= program.fun + solution.certificate.gap
    assert "smoothing" in solution.certificate.reason


@settings(max_examples=15)
@given(
    rps=st.sampled_from([0.0, 1.0]),
    w1=st.sampled_from([0.0, 0.5]),
    div=st.sampled_from([0.0, 0.2]),
    ce=st.sampled_from(["mean", "all"]),
)
def test_shards_have_the_optimum_of_memory(
    tmp_path_factory: pytest.TempPathFactory,
    rps: float,
    w1: float,
    div: float,
    ce: str,
) -> None:
    uneven = on(np.array([1.0, 2.0, 0.5]))
    folder = tmp_path_factory.mktemp("shards")
    made = cut(folder, 300, [90, 200], members=4, classes=4, scale=uneven)
    chosen = Objective(
        div=div,
        rps=rps,
        w1=w1,
        ce=ce,  # type: ignore[arg-type]
    ).resolve()
    with (
        pytest.MonkeyPatch.context() as patch,
        FitData.open(made.predictions, made.annotations, jobs=1) as streamed,
        FitData.open(made.predictions, made.annotations, jobs=1) as whole,
    ):
        patch.setattr("edokit.fitdata.sharded.SAMPLE", 120)
        assert streamed.is_sampled
        solution = solve_exact(streamed, chosen)
        patch.undo()
        assert not whole.is_sampled
        expected = solve_exact(whole, chosen)
    assert solution.terms["total"] == pytest.approx(expected.terms["total"], abs=2e-4)
    assert solution.certificate.gap < 5e-3


@pytest.mark.parametrize("term", ["rps", "w1"])
@pytest.mark.parametrize("ce", ["mean", "all", "random"])
def test_gumbel_comes_near_the_optimum(term: str, ce: str) -> None:
    P, q, y, *_ = case = make_case(70, 4, 5, 3)
    data = FitData.from_arrays(P, q, y, scale=on(steps_of(case)))
    chosen = Objective(f1=0.1, ce_weight=0.05, reg=0.01, ce=ce, **{term: 2.0}).resolve()  # type: ignore[arg-type]
    exact = solve_exact(data, chosen)
    how = GumbelSteps(epochs=400, learning_rate=0.03, min_members=4)
    (found,) = solve_gumbel(data, chosen, how)
    uniform = joint_loss(np.full(4, 0.25), data.problem(chosen), replace(chosen, ce="all")).total
    if ce != "random":
        assert found.terms["total"] < exact.terms["total"] + 0.1 * (uniform - exact.terms["total"])
    assert found.terms["rps"] > 0


@pytest.mark.parametrize("ce", ["mean", "all", "random"])
@pytest.mark.parametrize("class_weights", [False, True])
def test_gumbel_takes_the_steps_of_the_formulas(ce: str, class_weights: bool) -> None:
    data = random_pool()
    steps = np.array([1.0, 0.5])
    ranked = rank_members(Summaries.from_arrays(*data))
    data = data._replace(P=data.P[:, ranked])
    chosen = Objective(
        div=0.2,
        rps=0.7,
        w1=0.4,
        ce=ce,  # type: ignore[arg-type]
        class_weights=class_weights,
    ).resolve()
    how = GumbelSteps(epochs=5, batch_size=16, learning_rate=0.02)
    (found,) = solve_gumbel(
        FitData.from_arrays(*data, scale=on(steps)), chosen, how, random_state=3
    )
    expected = step_by_step(data, chosen, how, 3, steps)
    np.testing.assert_allclose(found.weights, expected, rtol=0, atol=1e-9)


def test_classes_without_an_order_have_no_such_terms(tmp_path: Path) -> None:
    P, q, y, *_ = make_case(20, 3, 4)
    for solve in (solve_exact, solve_gumbel):
        with raises_code("unordered-scale"):
            solve(FitData.from_arrays(P, q, y), Objective(rps=1.0).resolve())
    with raises_code("conflicting-options"):
        FitConfig(objective=Objective(w1=1.0), solver=Exact(), pool=Pool.LOG)


def hessian_along(problem, chosen: ObjectiveSettings, members: int) -> np.ndarray:
    """Second derivatives along the simplex of a quadratic objective, from its gradients."""
    corners = np.eye(members)
    slopes = np.array([joint_loss(v, problem, chosen).gradient for v in corners])
    along = corners[1:] - corners[0]
    return np.array([(slopes[k] - slopes[0]) @ along.T for k in range(1, members)])


@pytest.mark.parametrize("seed", range(4))
def test_suppress_with_rps_is_called_convex_or_concave_exactly_where_it_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, q, y, *_ = case = make_case(80, 5, 4, seed)
    scale = on(steps_of(case))
    data = FitData.from_arrays(P, q, y, scale=scale)
    others = rng.dirichlet(np.full(5, 0.5), size=3000)
    seen = set()
    for weight in (0.0, 0.1, 0.5, 3.0):
        for reg in (0.0, *np.geomspace(0.01, 2.0, 9)):
            chosen = Objective(
                ce="all", div=0.3, diversity="suppress", rps=weight, reg=reg
            ).resolve()
            problem = data.problem(chosen)
            bends = np.linalg.eigvalsh(hessian_along(problem, chosen, 5))
            solution = solve_exact(data, chosen)
            is_convex = bends.min() >= -1e-9
            is_concave = bends.max() <= 1e-9
            assert solution.certificate.convex == is_convex
            assert solution.certificate.global_optimum == (is_convex or is_concave)
            if solution.certificate.global_optimum:
                lowest = joint_loss(others, problem, chosen).total.min()
                assert solution.terms["total"] <= lowest + solution.certificate.gap + 1e-9
            seen.add("convex" if is_convex else "concave" if is_concave else "neither")
    assert seen == {"convex", "concave", "neither"}


def test_suppress_with_w1_claims_no_global_optimum() -> None:
    P, q, y, *_ = case = make_case(80, 5, 4)
    data = FitData.from_arrays(P, q, y, scale=on(steps_of(case)))
    solution = solve_exact(
        data, Objective(ce="all", div=0.3, diversity="suppress", w1=0.5, reg=0).resolve()
    )
    assert not solution.certificate.global_optimum


@pytest.mark.parametrize("weight", [0.25, 1.0, 4.0])
def test_the_gap_includes_what_smoothing_takes_from_the_weighted_w1(weight: float) -> None:
    P, q, y, *_ = case = make_case(60, 4, 4)
    steps = steps_of(case)
    solution = solve_exact(
        FitData.from_arrays(P, q, y, scale=on(steps)), Objective(w1=weight).resolve()
    )
    smoothing = weight * SMOOTHING * steps.sum()
    assert solution.certificate.gap == pytest.approx(smoothing, rel=0.01, abs=1e-8)
