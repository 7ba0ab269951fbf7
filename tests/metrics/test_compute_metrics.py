"""All metrics in one call, and known points of the real data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from metric_cases import Array, Problem, problems, simulated

from edokit import metrics
from tests.errors import raises_code


@given(problems())
def test_evaluate_gives_what_each_metric_gives(problem: Problem) -> None:
    p, q, y = problem
    values = metrics.compute_metrics(p, q, y)
    for name in ("ce", "md", "bs", "jsd"):
        assert values[name] == getattr(metrics, name)(p, q)
    assert values["f1"] == metrics.f1(p, y)
    assert values["ece"] == pytest.approx(metrics.ece(p, q), abs=1e-15)


def test_every_value_is_a_plain_number_that_json_can_write() -> None:
    for items in (1, 20):
        values = metrics.compute_metrics(*simulated(items, 3))
        assert json.loads(json.dumps(values, allow_nan=False)) == values
        assert list(values) == list(metrics.metrics_of())


def test_only_the_named_metrics_are_computed() -> None:
    case = simulated(10, 2)
    assert list(metrics.compute_metrics(*case, metrics=["md", "ce", "md"])) == ["md", "ce"]
    assert list(metrics.compute_metrics(*case, metrics="bs")) == ["bs"]
    with raises_code("unknown-choice", "'f1'", "'accuracy'"):
        metrics.compute_metrics(*case, metrics=["ce", "accuracy"])


def test_mismatched_arrays_are_refused() -> None:
    p, q, y = simulated(10, 2)
    with raises_code("shapes-differ", "[10, 2]", "[9, 2]"):
        metrics.compute_metrics(p, q[:9], y)
    with raises_code("shapes-differ", "[9]", "[10]"):
        metrics.compute_metrics(p, q, y[:9])


def read_split(folder: Path, name: str, split: str) -> tuple[Array, np.ndarray]:
    """Published soft labels (rounded to two decimals) and hard labels of a LeWiDi split."""
    rows = json.loads((folder / name / f"{name}_{split}.json").read_text("utf-8")).values()
    soft = [[float(row["soft_label"][label]) for label in ("0", "1")] for row in rows]
    return np.array(soft), np.array([int(row["hard_label"]) for row in rows])


@pytest.mark.lewidi
@pytest.mark.parametrize(
    ("name", "best_ce", "constant_ce", "constant_f1"),
    [
        ("ArMIS", 0.232, 0.684, 0.572),
        ("ConvAbuse", 0.086, 0.453, 0.821),
        ("HS-Brexit", 0.181, 0.388, 0.893),
        ("MD-Agreement", 0.337, 0.653, 0.667),
    ],
)
def test_reference_points_of_the_real_test_sets(
    lewidi: Path, name: str, best_ce: float, constant_ce: float, constant_f1: float
) -> None:
    train, _ = read_split(lewidi, name, "train")
    q, y = read_split(lewidi, name, "test")
    always_the_mean = np.tile(train.mean(axis=0), (len(q), 1))
    constant = metrics.compute_metrics(always_the_mean, q, y)
    assert metrics.entropy(q) == pytest.approx(best_ce, abs=5e-4)
    assert metrics.ce(q, q) == pytest.approx(best_ce, abs=5e-4)
    assert constant["ce"] == pytest.approx(constant_ce, abs=5e-4)
    assert constant["f1"] == pytest.approx(constant_f1, abs=5e-4)
    assert constant["entropy_correlation"] is None
