"""The error on each annotation."""

from __future__ import annotations

import numpy as np
import pytest
from metric_cases import simulated

from edokit import Scale, metrics
from edokit.metrics.compute import annotation_errors
from edokit.scales import NOMINAL


@pytest.mark.parametrize("classes", [2, 5])
def test_errors_are_those_of_the_label(classes: int) -> None:
    p, _, _ = simulated(40, classes)
    rng = np.random.default_rng(0)
    item = rng.integers(40, size=200)
    label = rng.integers(classes, size=200)
    ce, error = annotation_errors(p, item, np.eye(classes)[label], NOMINAL)
    np.testing.assert_allclose(ce, -np.log(p[item, label]))
    np.testing.assert_array_equal(error, p[item].argmax(axis=1) != label)


def test_an_unsure_annotator_is_half_wrong() -> None:
    ce, error = annotation_errors(
        np.array([[0.9, 0.1]]), np.array([0]), np.array([[0.5, 0.5]]), NOMINAL
    )
    assert error == pytest.approx(0.5)
    assert ce == pytest.approx(-(np.log(0.9) + np.log(0.1)) / 2)


def test_annotations_of_all_items_average_to_the_overall_ce() -> None:
    p, _, _ = simulated(30, 2)
    label = np.random.default_rng(1).integers(2, size=(30, 4))
    q = np.stack([(label == c).mean(axis=1) for c in range(2)], axis=1)
    items = np.repeat(np.arange(30), 4)
    ce, _ = annotation_errors(p, items, np.eye(2)[label.ravel()], NOMINAL)
    assert ce.mean() == pytest.approx(metrics.ce(p, q))


def test_a_certain_and_wrong_prediction_is_clipped() -> None:
    ce, error = annotation_errors(np.eye(2)[:1], np.array([0]), np.eye(2)[1:], NOMINAL)
    assert ce == pytest.approx(-np.log(1e-12))
    assert error == 1


def test_errors_on_sets_are_means_over_labels() -> None:
    p = np.array([[0.9, 0.2], [0.4, 0.4]])
    chosen = np.array([[1, 0], [0, 1], [1, 1]])
    ce, error = annotation_errors(p, np.array([0, 0, 1]), chosen, Scale("multi-label"))
    assert error.tolist() == [0, 1, 1]
    expected = [(0.9, 0.8), (0.1, 0.2), (0.4, 0.4)]
    assert ce == pytest.approx([-np.log(pair).mean() for pair in expected])
