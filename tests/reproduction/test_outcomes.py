"""Differences are claimed only where they exceed both kinds of noise."""

from __future__ import annotations

import numpy as np
import pytest

from edokit import Annotations
from edokit.metrics import MAIN_METRICS, compute_metrics
from reproduction.outcomes import Labels, Outcome, Predicted, effect, item_scores, outcome


def labels(n: int = 60) -> Labels:
    rng = np.random.default_rng(0)
    return Labels.from_annotations(
        Annotations.from_matrix(rng.integers(0, 2, size=(n, 5)), classes=["0", "1"])
    )


def predicted(n: int, seed: int) -> Predicted:
    p = np.random.default_rng(seed).uniform(0.1, 0.9, n)
    return Predicted(np.column_stack([1 - p, p]))


def made(levels: list[float], items: int = 200, noise: float = 0.01, seed: int = 0) -> Outcome:
    """An outcome whose CE is about these levels, seed by seed."""
    rng = np.random.default_rng(seed)
    values = np.zeros((len(levels), 4, items))
    values += np.array(levels)[:, None, None] + noise * rng.normal(size=(1, 1, items))
    return Outcome(values.mean(axis=2), values)


def test_item_scores_average_to_the_metrics() -> None:
    known = labels()
    said = predicted(60, 1)
    expected = compute_metrics(said.probabilities, known.soft, known.hard)
    means = item_scores(said, known).mean(axis=1)
    assert list(means) == pytest.approx([expected[m] for m in MAIN_METRICS])


def test_a_vote_counts_instead_of_the_likeliest_class() -> None:
    known = labels()
    said = predicted(60, 1)
    assert item_scores(said._replace(hard=known.hard), known)[0].mean() == 1.0


def test_means_spreads_and_gaps_are_over_seeds() -> None:
    known = labels()
    found = outcome([(predicted(60, s), predicted(60, s + 9)) for s in range(3)], known, known)
    assert found.mean("ce") == pytest.approx(found.test[:, 1].mean())
    assert found.spread("ce") == pytest.approx(np.std(found.test[:, 1], ddof=1))
    assert found.gap("ce") == pytest.approx(found.test[:, 1].mean() - found.fit[:, 1].mean())


def test_a_difference_below_the_spread_between_seeds_is_not_claimed() -> None:
    one = effect(made([0.30, 0.34]), made([0.31, 0.35]), "ce")
    assert one.value == pytest.approx(-0.01)
    assert one.spread > 0.01
    assert one.high < 0
    assert not one.claimed


def test_a_difference_above_both_kinds_of_noise_is_claimed() -> None:
    assert effect(made([0.30, 0.301]), made([0.40, 0.401]), "ce").claimed


def test_a_difference_that_few_items_make_is_not_claimed() -> None:
    a = made([0.30, 0.301], noise=1.0)
    b = made([0.31, 0.311], noise=1.0, seed=1)
    one = effect(a, b, "ce")
    assert one.low < 0 < one.high
    assert not one.claimed


def test_without_a_spread_nothing_is_claimed() -> None:
    one = effect(made([0.30, 0.30]), made([0.40, 0.40]), "ce")
    assert one.high < 0
    assert not one.claimed


def test_some_items_can_be_left_out() -> None:
    found = made([0.3, 0.4], items=10)
    left_out = np.arange(10) < 4
    np.testing.assert_array_equal(found.without(left_out).items, found.items[:, :, 4:])
