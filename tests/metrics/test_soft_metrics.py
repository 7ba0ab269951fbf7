"""Soft accuracy, soft micro-F1 and ICM-Soft, as their authors define them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from edokit import Scale
from edokit.metrics import MetricSums, best_possible, bootstrap, compute_metrics

SETS = Scale("multi-label")
# Written by tools/icm_reference.py with PyEvALL.
ICM_TABLES = json.loads((Path(__file__).parent / "icm_reference.json").read_text())


def distributions(seed: int, items: int = 40, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(classes), items), rng.dirichlet(np.ones(classes), items)


def test_soft_accuracy_of_the_authors_example() -> None:
    # Kurniawan et al., test_soft_acc_correct of their code.
    scores = compute_metrics([[0.6, 0.4]], [[0.2, 0.8]], [1], metrics=["soft_accuracy", "soft_f1"])
    assert scores["soft_accuracy"] == pytest.approx(0.6)
    assert scores["soft_f1"] == pytest.approx(0.6)


def test_of_distributions_both_are_half_the_manhattan_distance_short_of_one() -> None:
    p, q = distributions(0)
    scores = compute_metrics(p, q, q.argmax(axis=1))
    assert scores["md"] is not None
    assert scores["soft_accuracy"] == pytest.approx(1 - scores["md"] / 2)
    assert scores["soft_f1"] == pytest.approx(scores["soft_accuracy"])


def test_of_certain_answers_they_are_accuracy_and_micro_f1() -> None:
    from sklearn.metrics import accuracy_score, f1_score

    rng = np.random.default_rng(1)
    predicted, true = rng.integers(3, size=(2, 50))
    scores = compute_metrics(np.eye(3)[predicted], np.eye(3)[true], true)
    assert scores["soft_accuracy"] == pytest.approx(accuracy_score(true, predicted))
    sets_predicted, sets = rng.integers(2, size=(2, 50, 3))
    scores = compute_metrics(sets_predicted, sets, sets, metrics=["soft_f1"], scale=SETS)
    assert scores["soft_f1"] == pytest.approx(f1_score(sets, sets_predicted, average="micro"))


def test_soft_f1_of_sets_is_the_formula_over_all_labels() -> None:
    rng = np.random.default_rng(2)
    p, q = rng.random((2, 30, 3))
    y = SETS.hard(q)
    common = sum(min(a, b) for a, b in zip(p.ravel(), q.ravel(), strict=True))
    expected = 2 * common / (p.sum() + q.sum())
    names = ["soft_f1"]
    assert compute_metrics(p, q, y, metrics=names, scale=SETS)["soft_f1"] == pytest.approx(expected)
    parts = [
        MetricSums.from_arrays(p[rows], q[rows], y[rows], SETS, names)
        for rows in (slice(9), slice(9, 30))
    ]
    assert (parts[0] + parts[1]).values()["soft_f1"] == pytest.approx(expected)
    empty = np.zeros((2, 3))
    assert compute_metrics(empty, empty, empty.astype(int), metrics=names, scale=SETS) == {
        "soft_f1": 1
    }


@pytest.mark.parametrize("number", range(len(ICM_TABLES)))
def test_icm_soft_is_what_pyevall_says(number: int) -> None:
    table = ICM_TABLES[number]
    p = np.array(table["p"])
    q = np.array(table["q"])
    scale = SETS if table["multi_label"] else Scale()
    y = scale.hard(q)
    scores = compute_metrics(p, q, y, metrics=["icm_soft"], scale=scale)
    assert scores["icm_soft"] == pytest.approx(table["icm_soft"], abs=1e-9)
    best = best_possible(q, y, metrics=["icm_soft"], scale=scale)["icm_soft"]
    assert best is not None
    assert best >= table["icm_soft"]


def test_icm_soft_needs_soft_labels_that_vary() -> None:
    p, q = distributions(3)
    constant = np.tile(q[0], (len(q), 1))
    y = constant.argmax(axis=1)
    assert compute_metrics(p, constant, y, metrics=["icm_soft"]) == {"icm_soft": None}


def test_soft_metrics_have_intervals() -> None:
    p, q = distributions(4, items=100)
    found = bootstrap(p, q, q.argmax(axis=1), samples=100)
    for name in ("soft_accuracy", "soft_f1", "icm_soft"):
        assert found[name].low < found[name].estimate < found[name].high
