from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from objective_cases import Case, cases, make_case

from edokit.objective import loss
from edokit.objective.loss import CROSS_ENTROPY, Expansion, InMemoryTerm
from edokit.objective.summaries import Problem, Summaries


def curvature_sums(P, q, v, alpha=None, pool="linear"):
    """The cross-entropy of the pool, summed over items."""
    return Expansion.from_term(CROSS_ENTROPY[pool](alpha), P, q, v)


def ce_mean(v, problem):
    """Its mean over items of a problem, and the gradient."""
    return InMemoryTerm.from_problem(CROSS_ENTROPY[problem.pool](), problem).at(v)


def literal_hessian(case: Case, alpha: np.ndarray) -> np.ndarray:
    """Σ_ic α_c q_ic p_k p_l / (φ + ε)²."""
    P, q, _, v, _ = case
    total = np.zeros((len(v), len(v)))
    for i in range(P.shape[0]):
        for c in range(P.shape[2]):
            phi = v @ P[i, :, c] + 1e-12
            total += alpha[c] * q[i, c] * np.outer(P[i, :, c], P[i, :, c]) / phi**2
    return total


@given(cases())
def test_the_linear_pool_curves_as_its_formula_says(case: Case) -> None:
    alpha = case.rng.uniform(0.5, 2.0, case.q.shape[1])
    found = curvature_sums(case.P, case.q, case.v, alpha)
    problem = Problem.from_arrays(case.P, case.q * alpha, case.y)
    value, gradient = ce_mean(case.v[None], problem)
    assert found.items == len(case.y)
    assert found.value / found.items == pytest.approx(value[0], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.gradient / found.items, gradient[0], rtol=1e-9)
    np.testing.assert_allclose(found.hessian, literal_hessian(case, alpha), rtol=1e-9, atol=1e-9)


@given(cases(zeros=False))
def test_the_log_pool_curves_as_its_gradient_moves(case: Case) -> None:
    alpha = case.rng.uniform(0.5, 2.0, case.q.shape[1])
    found = curvature_sums(case.P, case.q, case.v, alpha, "log")
    problem = Problem.from_arrays(case.P, case.q * alpha, case.y, pool="log")
    value, gradient = ce_mean(case.v[None], problem)
    assert found.value / found.items == pytest.approx(value[0], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.gradient / found.items, gradient[0], rtol=1e-9, atol=1e-9)
    step = 1e-5
    for k in range(len(case.v)):
        ahead, behind = (
            curvature_sums(
                case.P, case.q, case.v + sign * step * np.eye(len(case.v))[k], alpha, "log"
            )
            for sign in (1, -1)
        )
        moved = (ahead.gradient - behind.gradient) / (2.0 * step)
        scale = max(1.0, np.abs(found.hessian).max())
        np.testing.assert_allclose(found.hessian[k], moved, atol=1e-6 * scale)


@given(cases())
def test_both_cross_entropies_are_convex(case: Case) -> None:
    for kind in ("linear", "log"):
        found = curvature_sums(case.P, case.q, case.v, pool=kind)
        lowest = np.linalg.eigvalsh(found.hessian)[0]
        assert lowest >= -1e-12 * max(1.0, np.abs(found.hessian).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shards_and_blocks_add_up_to_the_whole(
    dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(100, 4, 3, seed=3)
    P = case.P.astype(dtype)
    alpha = Summaries.from_arrays(case.P, case.q, case.y).class_weights()
    for kind in ("linear", "log"):
        whole = curvature_sums(P, case.q, case.v, alpha, kind)
        with monkeypatch.context() as patch:
            patch.setattr(loss, "_BLOCK", 60)
            parts = [
                curvature_sums(P[a:b], case.q[a:b], case.v, alpha, kind)
                for a, b in ((0, 1), (1, 1), (1, 30), (30, 31), (31, 70), (70, 99), (99, 100))
            ]
        total = sum(parts)
        assert total.items == 100
        assert total.value == pytest.approx(whole.value, rel=1e-12)
        np.testing.assert_allclose(total.gradient, whole.gradient, rtol=1e-12)
        np.testing.assert_allclose(total.hessian, whole.hessian, rtol=1e-12, atol=1e-12)
        assert whole.hessian.dtype == np.float64
