from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_cases import Case, cases, make_case

from edokit._errors import InputError
from edokit.objective import (
    Problem,
    Settings,
    Summaries,
    ce_mean,
    ce_mean_sums,
    joint_hessian,
    joint_loss,
    log_pool_sums,
    log_probabilities,
)
from edokit.objective import cross_entropy as curvature


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
    found = ce_mean_sums(case.P, case.q, alpha, case.v)
    problem = Problem.from_arrays(case.P, case.q * alpha, case.y)
    value, gradient = ce_mean(case.v[None], problem)
    assert found.items == len(case.y)
    assert found.value / found.items == pytest.approx(value[0], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.gradient / found.items, gradient[0], rtol=1e-9)
    np.testing.assert_allclose(found.hessian, literal_hessian(case, alpha), rtol=1e-9, atol=1e-9)


@given(cases(zeros=False))
def test_the_log_pool_curves_as_its_gradient_moves(case: Case) -> None:
    logs = log_probabilities(case.P)
    alpha = case.rng.uniform(0.5, 2.0, case.q.shape[1])
    found = log_pool_sums(logs, case.q, alpha, case.v)
    problem = Problem.from_arrays(case.P, case.q * alpha, case.y, pool="log")
    value, gradient = ce_mean(case.v[None], problem)
    assert found.value / found.items == pytest.approx(value[0], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.gradient / found.items, gradient[0], rtol=1e-9, atol=1e-9)
    step = 1e-5
    for k in range(len(case.v)):
        ahead, behind = (
            log_pool_sums(logs, case.q, alpha, case.v + sign * step * np.eye(len(case.v))[k])
            for sign in (1, -1)
        )
        moved = (ahead.gradient - behind.gradient) / (2.0 * step)
        scale = max(1.0, np.abs(found.hessian).max())
        np.testing.assert_allclose(found.hessian[k], moved, atol=1e-6 * scale)


@given(cases())
def test_both_cross_entropies_are_convex(case: Case) -> None:
    for found in (
        ce_mean_sums(case.P, case.q, None, case.v),
        log_pool_sums(log_probabilities(case.P), case.q, None, case.v),
    ):
        lowest = np.linalg.eigvalsh(found.hessian)[0]
        assert lowest >= -1e-12 * max(1.0, np.abs(found.hessian).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shards_and_blocks_add_up_to_the_whole(
    dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(100, 4, 3, seed=3)
    P = case.P.astype(dtype)
    logs = log_probabilities(P)
    alpha = Summaries.from_arrays(case.P, case.q, case.y).class_weights()
    for sums, rows in ((ce_mean_sums, P), (log_pool_sums, logs)):
        whole = sums(rows, case.q, alpha, case.v)
        with monkeypatch.context() as patch:
            patch.setattr(curvature, "_BLOCK", 60)
            parts = [
                sums(rows[a:b], case.q[a:b], alpha, case.v)
                for a, b in ((0, 1), (1, 1), (1, 30), (30, 31), (31, 70), (70, 99), (99, 100))
            ]
        total = sum(parts)
        assert total.items == 100
        assert total.value == pytest.approx(whole.value, rel=1e-12)
        np.testing.assert_allclose(total.gradient, whole.gradient, rtol=1e-12)
        np.testing.assert_allclose(total.hessian, whole.hessian, rtol=1e-12, atol=1e-12)
        assert whole.hessian.dtype == np.float64


@pytest.mark.parametrize("ce", ["mean", "all"])
@pytest.mark.parametrize("pool", ["linear", "log"])
@given(seed=st.integers(0, 1000))
def test_the_joint_hessian_is_how_the_joint_gradient_moves(ce: str, pool: str, seed: int) -> None:
    case = make_case(15, 4, 3, seed=seed)
    chosen = Settings(0.5, 0.8, 0.7, 0.3, diversity="suppress", ce=ce, pool=pool)
    problem = Problem.from_arrays(case.P, case.q, case.y, pool=pool)
    v = 0.9 * case.v + 0.025
    found = joint_hessian(v, problem, chosen)
    step = 1e-6
    moved = [
        (
            joint_loss(v + step * row, problem, chosen).gradient
            - joint_loss(v - step * row, problem, chosen).gradient
        )
        / (2.0 * step)
        for row in np.eye(4)
    ]
    np.testing.assert_allclose(found, moved, rtol=1e-4, atol=1e-5)


def test_blocks_do_not_change_the_joint_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(50, 4, 3)
    for pool in ("linear", "log"):
        problem = Problem.from_arrays(case.P, case.q, case.y, pool=pool)
        whole = joint_hessian(case.v, problem, Settings(pool=pool))
        with monkeypatch.context() as patch:
            patch.setattr(curvature, "_BLOCK", 60)
            blocks = joint_hessian(case.v, problem, Settings(pool=pool))
        np.testing.assert_allclose(blocks, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"ce": "random"}, {"regularize": "w"}])
def test_where_there_is_no_hessian_in_v_it_says_so(wrong: dict[str, str]) -> None:
    case = make_case(5, 2, 2)
    problem = Problem.from_arrays(case.P, case.q, case.y)
    with pytest.raises(InputError, match="use the gumbel solver"):
        joint_hessian(case.v, problem, Settings(**wrong))
