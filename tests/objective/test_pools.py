from __future__ import annotations

import literal
import numpy as np
import pytest
from hypothesis import given
from objective_cases import Case, cases, make_case

from edokit.objective import pools
from edokit.objective.pools import (
    average_groups,
    group_names,
    log_probabilities,
    pool,
    spread_weights,
)
from tests.errors import raises_code


@given(cases())
def test_pools_follow_their_formulas(case: Case) -> None:
    P, _, _, v, _ = case
    np.testing.assert_allclose(pool(P, v), literal.pool(P, v), rtol=1e-12, atol=1e-15)
    expected = [[literal.value(x) for x in row] for row in literal.log_pool(P, v)]
    np.testing.assert_allclose(pool(P, v, "log"), expected, rtol=1e-9, atol=1e-15)


@given(cases())
def test_a_pool_is_a_distribution_per_item(case: Case) -> None:
    for kind in ("linear", "log"):
        phi = pool(case.P, case.v, kind)
        assert phi.shape == (case.P.shape[0], case.P.shape[2])
        assert (phi >= 0).all()
        np.testing.assert_allclose(phi.sum(axis=1), 1.0, rtol=1e-12)


def test_blocks_and_dtype_do_not_change_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(50, 3, 2, seed=1)
    whole = {kind: pool(case.P, case.v, kind) for kind in ("linear", "log")}
    monkeypatch.setattr(pools, "_BLOCK", 42)
    for kind, phi in whole.items():
        np.testing.assert_allclose(pool(case.P, case.v, kind), phi, rtol=1e-13)
        single = pool(case.P.astype(np.float32), case.v, kind)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, phi, rtol=1e-4)


def test_one_zero_vetoes_no_class_in_a_log_pool() -> None:
    P = np.array([[[1.0, 0.0], [0.01, 0.99]]])
    assert pool(P, np.array([0.1, 0.9]), "log")[0, 1] > 0.5
    assert np.isfinite(log_probabilities(P)).all()


def test_group_weights_spread_over_members_give_the_same_linear_pool() -> None:
    case = make_case(20, 6, 3, seed=2)
    groups = ["bert", "linear", "bert", "mpnet", "linear", "bert"]
    averaged = average_groups(case.P, groups)
    assert group_names(groups) == ["bert", "linear", "mpnet"]
    assert averaged.shape == (20, 3, 3)
    np.testing.assert_allclose(averaged[:, 0], case.P[:, [0, 2, 5]].mean(axis=1))
    weights = case.rng.dirichlet(np.ones(3))
    members = spread_weights(weights, groups)
    assert members.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(pool(averaged, weights), pool(case.P, members), rtol=1e-12)
    batch = case.rng.dirichlet(np.ones(3), size=4)
    np.testing.assert_allclose(spread_weights(batch, groups)[2], spread_weights(batch[2], groups))


def test_what_does_not_fit_together_is_refused() -> None:
    case = make_case(4, 3, 2)
    with raises_code("unknown-choice", "'linear', 'log'", "'mean'"):
        pool(case.P, case.v, "mean")
    with raises_code("wrong-shape", "(2,)", "3 members"):
        pool(case.P, case.v[:2])
