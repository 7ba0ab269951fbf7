"""Metrics on scales and of sets, against scipy and definitions written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from edokit import Scale
from edokit import metrics as m
from edokit.metrics.formulas import medians
from tests.errors import raises_code


def distributions(seed: int, items: int = 40, classes: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(classes, 0.5), size=items)
    drawn[0] = np.eye(classes)[0]
    return drawn


@pytest.mark.parametrize("positions", [None, [1, 2, 4, 8, 16], [-2.5, -1, 0, 0.25, 3]])
def test_w1_is_scipys(positions: list[float] | None) -> None:
    p = distributions(0)
    q = distributions(1)
    places = np.arange(5) if positions is None else positions
    expected = [wasserstein_distance(places, places, *pair) for pair in zip(p, q, strict=True)]
    assert m.w1_items(p, q, positions) == pytest.approx(expected, abs=1e-12)
    assert m.w1(p, q, positions) == pytest.approx(np.mean(expected))
    assert m.w1(p, p, positions) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("positions", [None, [1, 2, 4, 8, 16]])
def test_rps_is_the_squared_distance_of_cumulative_shares(positions: list[float] | None) -> None:
    p = distributions(2)
    q = distributions(3)
    steps = np.ones(4) if positions is None else np.diff(positions)
    expected = [
        sum(step * (row[: c + 1].sum() - soft[: c + 1].sum()) ** 2 for c, step in enumerate(steps))
        for row, soft in zip(p, q, strict=True)
    ]
    assert m.rps(p, q, positions) == pytest.approx(np.mean(expected))


def test_rps_is_proper_and_w1_is_not() -> None:
    # People answer 0, 1 and 2 with shares .4, .2 and .4: W1 prefers the middle to the truth's
    # expectation over single answers, RPS does not.
    truth = np.array([[0.4, 0.2, 0.4]])
    middle = np.array([[0.0, 1.0, 0.0]])
    singles = np.eye(3)
    expected = {
        name: [
            sum(truth[0, c] * score(answer, singles[c : c + 1]) for c in range(3))
            for answer in (truth, middle)
        ]
        for name, score in (("rps", m.rps), ("w1", m.w1))
    }
    assert expected["rps"][0] < expected["rps"][1]
    assert expected["w1"][0] > expected["w1"][1]


def test_mad_is_the_distance_of_the_best_single_answer() -> None:
    p = distributions(4)
    places = np.array([1.0, 2, 4, 8, 16])
    best = [min(float(row @ np.abs(places - x)) for x in places) for row in p]
    mad_items = m.item_values(Scale("ordinal", tuple(places)))["mad"]
    assert mad_items(p, p, np.zeros(len(p))) == pytest.approx(best)
    assert medians(np.array([[0.5, 0.5], [0.2, 0.8]])).tolist() == [0, 1]


def test_positions_that_do_not_fit_are_refused() -> None:
    p = distributions(0)
    with raises_code("shapes-differ", "2 positions"):
        m.w1(p, p, [1, 2])
    for positions in ([1, 1, 2, 3, 4], [5, 4, 3, 2, 1]):
        with raises_code("invalid-scale", ", ".join(map(str, positions))):
            m.w1(p, p, positions)


def of_sets(metric: str, p: Any, q: Any) -> Any:
    sets = Scale("multi-label")
    y = sets.hard(np.asarray(q))
    return m.compute_metrics(p, q, y, metrics=[metric], scale=sets)[metric]


def test_sets_have_the_distances_of_their_labels() -> None:
    p = [[0.2, 0.9, 0.5]]
    q = [[0.0, 1.0, 1.0]]
    assert of_sets("md", p, q) == pytest.approx(2 * (0.2 + 0.1 + 0.5) / 3)


def test_sets_are_right_as_a_whole_or_label_by_label() -> None:
    p = [[0.9, 0.2, 0.6], [0.1, 0.2, 0.3]]
    sets = [[1, 0, 1], [1, 0, 0]]
    assert of_sets("exact_match", p, sets) == 0.5
    assert of_sets("label_error", p, sets) == pytest.approx(1 / 6)
    with raises_code("shapes-differ"):
        of_sets("exact_match", p, [[1, 0, 1]])
