"""The reliability curve and the expected calibration error against soft labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import Problem, problems, simulated
from sklearn.calibration import calibration_curve

from edokit import metrics
from tests.errors import raises_code


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_the_curve_is_scikit_learns_on_hard_answers(bins: int) -> None:
    p, _, y = simulated(300, 2)
    q = np.eye(2)[y]
    true, predicted = calibration_curve(y, p[:, 1], n_bins=bins, strategy="uniform")
    curve = metrics.reliability_curve(p, q, bins=bins)
    np.testing.assert_allclose(curve.observed, true)
    np.testing.assert_allclose(curve.predicted, predicted)


def test_the_curve_of_a_small_example_by_hand() -> None:
    p = [[0.9, 0.1], [0.86, 0.14], [0.3, 0.7], [0.0, 1.0]]
    q = [[1.0, 0.0], [0.6, 0.4], [0.5, 0.5], [0.0, 1.0]]
    curve = metrics.reliability_curve(p, q)
    np.testing.assert_allclose(curve.low, [0.1, 0.7, 0.9])
    np.testing.assert_allclose(curve.high, [0.2, 0.8, 1.0])
    np.testing.assert_allclose(curve.predicted, [0.12, 0.7, 1.0])
    np.testing.assert_allclose(curve.observed, [0.2, 0.5, 1.0])
    np.testing.assert_array_equal(curve.count, [2, 1, 1])
    assert metrics.ece(p, q) == pytest.approx((2 * 0.08 + 0.2 + 0) / 4)


def test_more_than_two_classes_are_pooled() -> None:
    p, q, _ = simulated(200, 4)
    pooled = np.c_[1 - p.ravel(), p.ravel()], np.c_[1 - q.ravel(), q.ravel()]
    assert metrics.ece(p, q) == pytest.approx(metrics.ece(*pooled))
    assert metrics.reliability_curve(p, q).count.sum() == 200 * 4


def test_two_classes_count_once() -> None:
    p, q, _ = simulated(200, 2)
    assert metrics.reliability_curve(p, q).count.sum() == 200
    assert metrics.ece(p, q) == pytest.approx(metrics.ece(p[:, ::-1], q[:, ::-1]))


@given(problems(), st.integers(1, 12))
def test_every_point_lies_in_its_bin(problem: Problem, bins: int) -> None:
    p, q, _ = problem
    curve = metrics.reliability_curve(p, q, bins=bins)
    assert curve.count.min() >= 1
    assert curve.count.sum() == (len(p) if p.shape[1] == 2 else p.size)
    assert len(curve.count) <= bins
    assert np.all(curve.low - 1e-6 <= curve.predicted)
    assert np.all(curve.predicted <= curve.high + 1e-6)
    assert 0 <= curve.ece <= 1 + 1e-12


@given(problems())
def test_ece_is_zero_where_p_is_q_and_at_most_the_mean_gap(problem: Problem) -> None:
    p, q, _ = problem
    assert metrics.ece(q, q) == pytest.approx(0, abs=1e-12)
    assert metrics.ece(p, q) <= np.abs(p - q).mean() + 1e-12


@given(problems())
def test_the_parts_of_the_items_add_up_to_the_ece(problem: Problem) -> None:
    assert metrics.compute_metrics(*problem)["ece"] == pytest.approx(metrics.ece(*problem[:2]))


def test_a_share_on_an_edge_belongs_to_the_bin_above_despite_rounding() -> None:
    second = np.array([0.7, np.nextafter(0.7, 0), np.float32(0.7)])
    assert second[2] < 0.7
    p = np.c_[1 - second, second]
    np.testing.assert_allclose(metrics.reliability_curve(p, p).low, [0.7])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, ("invalid-number", "bins")),
        ({"bins": 2.5}, ("invalid-number", "bins", "2.5")),
    ],
)
def test_bad_bins_are_refused(options: dict[str, object], message: tuple[str, ...]) -> None:
    p, q, _ = simulated(5, 2)
    with raises_code(*message):
        metrics.ece(p, q, **options)
