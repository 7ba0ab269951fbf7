"""Which metrics an answer scale has, and their values against scipy, scikit-learn and loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from metric_cases import simplices
from scipy.integrate import quad_vec
from scipy.stats import energy_distance, wasserstein_distance
from sklearn.metrics import accuracy_score, f1_score, hamming_loss

from edokit import Scale
from edokit import metrics as m
from edokit.scales import NOMINAL
from tests.errors import raises_code

SETS = Scale("multi-label")
POINTS = Scale("ordinal", (-5, -1, 0, 2.5))
SCALES = [NOMINAL, POINTS, SETS]


@st.composite
def on_a_scale(draw: st.DrawFn) -> tuple[Any, Any, Scale]:
    """Distributions over classes with uneven positions."""
    items = draw(st.integers(1, 6))
    classes = draw(st.integers(2, 7))
    steps = draw(st.lists(st.floats(0.01, 10), min_size=classes - 1, max_size=classes - 1))
    places = draw(st.floats(-100, 100)) + np.cumsum([0, *steps])
    p, q = (draw(simplices(items, classes)) for _ in range(2))
    return p, q, Scale("ordinal", tuple(places.tolist()))


@given(on_a_scale())
def test_w1_and_rps_are_those_of_scipy(case: tuple[Any, Any, Scale]) -> None:
    p, q, scale = case
    places = scale.positions
    assert places is not None
    found = m.compute_metrics(p, q, q.argmax(axis=1), scale=scale)
    pairs = list(zip(p, q, strict=True))
    w1 = [wasserstein_distance(places, places, *pair) for pair in pairs]
    # Székely: the squared energy distance on the line is twice ∫ (F − G)².
    rps = [energy_distance(places, places, *pair) ** 2 / 2 for pair in pairs]
    assert found["w1"] == pytest.approx(np.mean(w1), abs=1e-9)
    assert found["rps"] == pytest.approx(np.mean(rps), abs=1e-9)


def test_rps_of_a_single_answer_is_the_crps_on_the_line() -> None:
    places = np.array([0.0, 1.0, 4.0])
    p = np.array([[0.2, 0.5, 0.3]])
    answer = 1.0

    def gap(x: float) -> float:
        return float((p[0][places <= x].sum() - (x >= answer)) ** 2)

    crps, _ = quad_vec(gap, -1, 5, points=places)
    assert m.rps(p, [[0, 1, 0]], places) == pytest.approx(crps, abs=1e-6)


@given(st.integers(1, 8), st.integers(1, 4), st.data())
def test_sets_are_compared_as_scikit_learn_compares_them(
    items: int, labels: int, data: st.DataObject
) -> None:
    shares = hnp.arrays(np.float64, (items, labels), elements=st.floats(0, 1))
    p = data.draw(shares)
    q = np.round(data.draw(shares))
    y = SETS.hard(q)
    found = m.compute_metrics(p, q, y, scale=SETS)
    guess = SETS.hard(p)
    assert found["exact_match"] == pytest.approx(accuracy_score(y, guess))
    assert found["label_error"] == pytest.approx(hamming_loss(y, guess))
    assert found["f1"] == pytest.approx(1 - hamming_loss(y, guess))
    each = [f1_score(y[:, k], guess[:, k]) for k in range(labels) if (y[:, k] | guess[:, k]).any()]
    assert found["macro_f1"] == pytest.approx(np.mean(each) if each else 1.0)


@given(st.integers(1, 6), st.integers(1, 4), st.data())
def test_metrics_of_sets_are_means_over_two_class_rows(
    items: int, labels: int, data: st.DataObject
) -> None:
    shares = hnp.arrays(np.float64, (items, labels), elements=st.floats(0, 1))
    p = data.draw(shares)
    q = data.draw(shares)
    found = m.compute_metrics(p, q, SETS.hard(q), scale=SETS)
    rows = SETS.rows(p), SETS.rows(q)
    for name in ("ce", "md", "bs", "jsd", "ece"):
        assert found[name] == pytest.approx(getattr(m, name)(*rows), abs=1e-12), name


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_no_answer_is_better_than_the_best_possible_one(scale: Scale) -> None:
    rng = np.random.default_rng(0)
    shape = (7, 4)
    votes = rng.multinomial(3, np.full(4, 0.25), 7) / 3
    q = votes if not scale.is_multi_label else rng.integers(0, 4, shape) / 3
    y = scale.hard(q)
    best = m.best_possible(q, y, scale=scale)
    assert list(best) == list(m.metrics_of(scale))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.random(shape) if scale.is_multi_label else rng.dirichlet(np.full(4, 0.3), 7)
        for name, value in m.compute_metrics(p, q, y, scale=scale).items():
            if value is None:
                continue
            sign = -1 if m.METRIC[name].higher else 1
            assert sign * value >= sign * best[name] - 1e-12, name  # type: ignore[operator]


def test_the_best_single_answers_make_the_floors_of_mad_and_label_error() -> None:
    q = np.array([[0.5, 0.0, 0.0, 0.5], [0.2, 0.2, 0.2, 0.4]])
    places = np.array(POINTS.positions)
    least = [min(float(row @ np.abs(places - x)) for x in places) for row in q]
    assert m.best_possible(q, [0, 3], scale=POINTS)["mad"] == pytest.approx(np.mean(least))
    errors = [
        min(float(np.abs(np.array(answer) - row).mean()) for answer in product([0, 1], repeat=4))
        for row in q
    ]
    best = m.best_possible(q, SETS.hard(q), scale=SETS)
    assert best["label_error"] == pytest.approx(np.mean(errors))
    assert best["exact_match"] == 1


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_intervals_contain_the_estimate_and_keep_the_labels_of_an_item_together(
    scale: Scale,
) -> None:
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(4), 60)
    p = q * 0.5 + 0.5 * rng.dirichlet(np.ones(4), 60)
    y = scale.hard(q)
    found = m.bootstrap(p, q, y, scale=scale, samples=200)
    assert list(found) == list(m.metrics_of(scale))
    for name, one in found.items():
        assert one.estimate == pytest.approx(m.compute_metrics(p, q, y, scale=scale)[name]), name
        if name != "macro_f1":  # a label may be too rare
            assert one.low <= one.estimate <= one.high, name  # type: ignore[operator]
    # An item is resampled with all of its labels: as wide as the interval of its mean.
    item = m.item_values(scale)["ce"](p, q, y)
    assert item.shape == (60,)
    wide = found["ce"].high - found["ce"].low  # type: ignore[operator]
    assert wide == pytest.approx(2 * 1.96 * item.std() / np.sqrt(60), rel=0.25)


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_names_by_scale_belong_together(scale: Scale) -> None:
    assert m.headline_metric(scale) in m.search_metrics(scale)
    assert set(m.search_metrics(scale)) < set(m.main_metrics(scale)) < set(m.metrics_of(scale))
    assert set(m.main_metrics(scale)) <= set(m.item_values(scale))
    assert not m.METRIC[m.headline_metric(scale)].higher


def test_a_metric_of_another_scale_is_refused() -> None:
    with raises_code("unknown-choice", "'f1'", "'w1'"):
        m.compute_metrics([[1, 0]], [[1, 0]], [0], metrics=["w1"])
    with raises_code("wrong-shape", "positions") as refused:
        m.w1([[0.5, 0.5]], [[1, 0]], positions=[[0, 1]])
    assert "one position per class" in refused.value.hint
    with raises_code("shapes-differ", "3 classes", "4 positions"):
        m.compute_metrics([[1, 0, 0]], [[1, 0, 0]], [0], scale=POINTS)
    with raises_code("shapes-differ", "[1]", "[1, 2]"):
        m.compute_metrics([[1, 0.5]], [[1, 0]], [0], scale=SETS)
    with raises_code("invalid-probabilities", "p[0]"):
        m.compute_metrics([[1, 1.5]], [[1, 0]], [[1, 0]], scale=SETS)
