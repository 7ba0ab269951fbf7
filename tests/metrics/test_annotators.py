"""The error for each annotator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from metric_cases import simulated

from edokit import metrics
from edokit._errors import InputError
from edokit.scales import Scale


def annotations(items: int, classes: int, count: int = 200) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    # annotator codes 3, 7 … with gaps: not every known annotator judged these items
    who = rng.choice([3, 7, 8, 20], size=count)
    return rng.integers(items, size=count), who, rng.integers(classes, size=count)


@pytest.mark.parametrize("classes", [2, 5])
def test_errors_are_those_of_a_group_by(classes: int) -> None:
    p, _, _ = simulated(40, classes)
    item, who, label = annotations(40, classes)
    rows = pd.DataFrame(
        {"who": who, "ce": -np.log(p[item, label]), "error": p[item].argmax(axis=1) != label}
    )
    expected = rows.groupby("who").agg(n=("ce", "size"), ce=("ce", "mean"), error=("error", "mean"))
    found = metrics.annotator_errors(p, item, who, label)
    np.testing.assert_array_equal(found.annotator, expected.index)
    np.testing.assert_array_equal(found.n, expected["n"])
    np.testing.assert_allclose(found.ce, expected["ce"])
    np.testing.assert_allclose(found.error, expected["error"])


def test_a_sure_probability_is_the_same_as_a_class() -> None:
    p, _, _ = simulated(40, 3)
    item, who, label = annotations(40, 3)
    by_code = metrics.annotator_errors(p, item, who, label)
    by_probability = metrics.annotator_errors(p, item, who, np.eye(3)[label])
    np.testing.assert_allclose(by_probability.ce, by_code.ce)
    np.testing.assert_allclose(by_probability.error, by_code.error)


def test_an_unsure_annotator_is_half_wrong() -> None:
    found = metrics.annotator_errors([[0.9, 0.1]], [0], [0], [[0.5, 0.5]])
    assert found.error[0] == pytest.approx(0.5)
    assert found.ce[0] == pytest.approx(-(np.log(0.9) + np.log(0.1)) / 2)


def test_annotators_of_all_items_average_to_the_overall_ce() -> None:
    p, _, _ = simulated(30, 2)
    rng = np.random.default_rng(1)
    label = rng.integers(2, size=(30, 4))
    q = np.stack([(label == c).mean(axis=1) for c in range(2)], axis=1)
    found = metrics.annotator_errors(
        p, np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30), label.ravel()
    )
    assert found.ce.mean() == pytest.approx(metrics.ce(p, q))


def test_a_certain_and_wrong_prediction_is_clipped() -> None:
    found = metrics.annotator_errors([[1.0, 0.0]], [0], [0], [1])
    assert found.ce[0] == pytest.approx(-np.log(1e-12))
    assert found.error[0] == 1


@pytest.mark.parametrize(
    ("items", "annotators", "labels", "message"),
    [
        ([], [], [], "items is empty"),
        ([0, 5], [0, 1], [0, 1], r"items\[1\] is 5, .* item codes are from 0 to 3"),
        ([0, 1], [0], [0, 1], r"annotators has the shape \[1\], not \[2\]"),
        ([0, 1], [0, -1], [0, 1], r"annotators\[1\] is -1, .* 0 or more"),
        ([0, 1], [0, 1], [0, 2], r"labels\[1\] is 2"),
        ([0, 1], ["a", "b"], [0, 1], "annotator codes"),
        ([0, 1], [0, 1], [[0.5, 0.5]], r"labels has the shape \[1, 2\].* probabilities \[2, 2\]"),
        ([0, 1], [0, 1], [[0.5, 0.7], [0.5, 0.5]], r"sum of labels\[0\] is 1.2"),
        ([0, 1], [0, 1], [[1.0], [0.5, 0.5]], "labels is no array .* same length"),
    ],
)
def test_bad_annotations_are_refused(
    items: list[int], annotators: list[int], labels: list[object], message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        metrics.annotator_errors(np.full((4, 2), 0.5), items, annotators, labels)
    assert refused.value.hint


def test_errors_on_sets_are_means_over_labels() -> None:
    p = np.array([[0.9, 0.2], [0.4, 0.4]])
    chosen = np.array([[1, 0], [0, 1], [1, 1]])
    found = metrics.annotator_errors(p, [0, 0, 1], [0, 1, 1], chosen, scale=Scale("multi-label"))
    assert found.n.tolist() == [1, 2]
    assert found.error.tolist() == [0, 1]
    first = -(np.log(0.9) + np.log(0.8)) / 2
    others = -(np.log(0.1) + np.log(0.2) + np.log(0.4) + np.log(0.4)) / 4
    assert found.ce == pytest.approx([first, others])
