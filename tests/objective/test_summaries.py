from __future__ import annotations

from itertools import pairwise

import literal
import numpy as np
import pytest
from hypothesis import given
from objective_cases import Case, cases, make_case

from edokit.objective.pools import pool
from edokit.objective.summaries import Summaries, rank_members
from tests.errors import raises_code

FIELDS = ("items", "class_counts", "soft_counts", "hits", "distances", "log_losses")


def assert_same(a: Summaries, b: Summaries, rtol: float = 1e-12) -> None:
    for field in FIELDS:
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=rtol, atol=rtol)


@given(cases())
def test_every_sum_is_the_sum_over_items(case: Case) -> None:
    P, q, y, _, _ = case
    sums = Summaries.from_arrays(P, q, y)
    hits = P[np.arange(len(y)), :, y].sum(axis=0)
    distances = np.abs(P[:, :, None] - P[:, None]).sum(axis=(0, 3))
    logs = -np.einsum("nc,nkc->kc", q, np.log(P + 1e-12))
    assert sums.items == len(y)
    np.testing.assert_array_equal(sums.class_counts, np.bincount(y, minlength=P.shape[2]))
    np.testing.assert_allclose(sums.soft_counts, q.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums.hits, hits, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.distances, distances, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.log_losses, logs, rtol=1e-12, atol=1e-12)


@given(cases())
def test_soft_micro_f1_equals_t_v(case: Case) -> None:
    P, q, y, v, _ = case
    sums = Summaries.from_arrays(P, q, y)
    soft_f1 = 1.0 - literal.value(literal.f1_loss(P, y, v))
    assert sums.hit_rates @ v == pytest.approx(soft_f1, abs=1e-9)
    assert pool(P, v)[np.arange(len(y)), y].mean() == pytest.approx(soft_f1, abs=1e-9)


@given(cases())
def test_tensors_give_the_same_sums(case: Case) -> None:
    torch = pytest.importorskip("torch")
    P, q, y, _, _ = case
    exact = Summaries.from_arrays(P, q, y)
    for codes in (y, y.astype("int32")):
        tensors = Summaries.from_arrays(*map(torch.from_numpy, (P, q, codes)))
        assert_same(tensors, exact)


@pytest.mark.parametrize("classes", [2, 3])
def test_seven_uneven_shards_add_up_to_the_whole(classes: int) -> None:
    P, q, y, _, _ = make_case(500, 5, classes, seed=3, zeros=0.1)
    cuts = [0, 1, 1, 40, 44, 200, 499, 500]
    shards = [Summaries.from_arrays(P[a:b], q[a:b], y[a:b]) for a, b in pairwise(cuts)]
    whole = Summaries.from_arrays(P, q, y)
    assert len(shards) == 7
    assert_same(sum(shards), whole)
    assert_same(shards[0] + sum(shards[1:]), whole)


@pytest.mark.parametrize("classes", [2, 3, 11])
def test_blocks_do_not_change_the_sums(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    P, q, y, _, _ = make_case(301, 4, classes, seed=5)
    at_once = Summaries.from_arrays(P, q, y)
    monkeypatch.setattr("edokit.objective.summaries._BLOCK", 13 * 4 * classes)
    assert_same(Summaries.from_arrays(P, q, y), at_once)


def test_float32_sums_are_right_to_float32_rounding() -> None:
    P, q, y, _, _ = make_case(2000, 6, 2, seed=1)
    exact = Summaries.from_arrays(P, q, y)
    single = Summaries.from_arrays(P.astype(np.float32), q.astype(np.float32), y)
    assert single.hits.dtype == np.float64
    assert_same(single, exact, rtol=2e-6)


def test_strides_do_not_matter() -> None:
    P, q, y, _, _ = make_case(60, 4, 3, seed=1)
    strided = np.asfortranarray(P)[::2, ::-1]
    assert_same(
        Summaries.from_arrays(strided, np.asfortranarray(q)[::2], y[::2]),
        Summaries.from_arrays(np.ascontiguousarray(P[::2, ::-1]), q[::2], y[::2]),
    )


def test_identical_members_are_at_distance_zero_exactly() -> None:
    P, q, y, _, _ = make_case(40, 1, 3)
    sums = Summaries.from_arrays(np.repeat(P, 4, axis=1), q, y)
    np.testing.assert_array_equal(sums.distances, np.zeros((4, 4)))


def test_a_zero_where_the_label_has_mass_costs_a_finite_log() -> None:
    P = np.array([[[1.0, 0.0]]])
    sums = Summaries.from_arrays(P, np.array([[0.0, 1.0]]), np.array([1]))
    assert sums.member_ce()[0] == pytest.approx(-np.log(1e-12))


@given(cases())
def test_selected_members_have_the_summaries_of_their_predictions(case: Case) -> None:
    P, q, y, _, rng = case
    chosen = rng.permutation(P.shape[1])[: max(1, P.shape[1] - 1)]
    assert_same(
        Summaries.from_arrays(P, q, y).select(chosen), Summaries.from_arrays(P[:, chosen], q, y)
    )


def test_means_and_class_weights_follow_their_formulas() -> None:
    P, q, y, _, _ = make_case(200, 3, 3, seed=2)
    sums = Summaries.from_arrays(P, q, y)
    weights = 200 / (3 * np.bincount(y))
    np.testing.assert_allclose(sums.class_weights(), weights)
    losses = -np.einsum("nc,nkc->kc", q, np.log(P + 1e-12)) / 200
    np.testing.assert_allclose(sums.member_ce(), losses.sum(axis=1))
    np.testing.assert_allclose(sums.member_ce(sums.class_weights()), losses @ weights)
    np.testing.assert_allclose(sums.matrices["div"] * 200, sums.distances)


def test_class_weights_are_global_not_those_of_a_shard() -> None:
    P, q, y, _, _ = make_case(90, 3, 3, seed=4)
    order = np.argsort(y, kind="stable")
    P = P[order]
    q = q[order]
    y = y[order]
    parts = [Summaries.from_arrays(P[s], q[s], y[s]) for s in (slice(0, 30), slice(30, 90))]
    whole = Summaries.from_arrays(P, q, y)
    np.testing.assert_allclose(
        sum(parts).member_ce(sum(parts).class_weights()), whole.member_ce(whole.class_weights())
    )


def test_class_weights_refuse_a_class_that_is_no_hard_label_but_has_mass() -> None:
    P = np.full((2, 1, 3), 1 / 3)
    q = np.array([[0.8, 0.0, 0.2], [0.2, 0.8, 0.0]])
    sums = Summaries.from_arrays(P, q, np.array([0, 1]))
    with raises_code("missing-class", "class 'maybe'"):
        sums.class_weights(["no", "yes", "maybe"])
    with raises_code("missing-class", "class 2"):
        sums.member_ce(sums.class_weights())
    assert np.isfinite(sums.member_ce()).all()


def test_a_class_without_any_mass_gets_weight_zero() -> None:
    P = np.full((2, 1, 3), 1 / 3)
    q = np.array([[0.8, 0.2, 0.0], [0.2, 0.8, 0.0]])
    sums = Summaries.from_arrays(P, q, np.array([0, 1]))
    np.testing.assert_allclose(sums.class_weights(), [2 / 3, 2 / 3, 0.0])
    assert np.isfinite(sums.member_ce(sums.class_weights())).all()


def test_members_are_ranked_by_their_own_unweighted_ce() -> None:
    P, q, y, _, _ = make_case(50, 5, 2, seed=6)
    sums = Summaries.from_arrays(P, q, y)
    assert list(rank_members(sums)) == list(np.argsort(sums.member_ce()))
    twins = Summaries.from_arrays(np.repeat(P[:, :1], 3, axis=1), q, y)
    assert list(rank_members(twins)) == [0, 1, 2]
