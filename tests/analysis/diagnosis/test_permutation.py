"""The test: it keeps its level on noise, has power, and tells views from strictness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from diagnose_cases import camps, noise, strict
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations
from edokit.analysis.diagnose.clusters import Design, find_structure
from edokit.analysis.diagnose.permutation import permutation_test, strict_permutations
from edokit.analysis.diagnose.vectors import LabelVectors


def judged(annotations: Annotations, permutations: int = 19, seed: int = 0) -> dict[str, Any]:
    vectors = LabelVectors.from_annotations(annotations)
    design = Design.from_vectors(vectors)
    return permutation_test(vectors, design, find_structure(vectors, design), permutations, seed)


def test_noise_is_called_structured_about_once_in_twenty() -> None:
    # At 19 permutations p = 0.05 is the smallest there is, and exact.
    p = [
        (result["p"], result["annotator"]["p"], result["group_item"]["p"])
        for seed in range(50)
        for result in [judged(noise(items=60, annotators=5, seed=seed), seed=seed)]
    ]
    alarms = (np.array(p) <= 0.05).sum(axis=0)
    # Of 50 at 5 %, more than 8 have a chance of one in a thousand.
    assert (alarms <= 8).all(), alarms
    assert np.median(np.array(p)[:, 0]) > 0.25


def test_camps_are_told_from_noise() -> None:
    result = judged(camps(items=200, apart=0.3), permutations=39)
    assert result["structured"]
    assert result["group_item"]["p"] == pytest.approx(1 / 40)
    assert result["views"]["p"] == pytest.approx(1 / 40)
    assert result["group_item"]["statistic"] > max(result["group_item"]["null"])


def test_camps_in_a_sparse_crowd_are_told_from_noise() -> None:
    assert (
        judged(camps(items=1500, sizes=(30, 20), per_item=5, apart=0.3))["group_item"]["p"] <= 0.05
    )


def test_strictness_is_structure_but_not_other_views() -> None:
    results = [judged(strict(seed=seed), seed=seed) for seed in range(4)]
    assert all(result["annotator"]["p"] <= 0.05 for result in results)
    assert sum(result["views"]["p"] <= 0.05 for result in results) <= 1
    # With the line drawn in different places the groups look real, unless strictness is kept.
    assert np.mean([np.mean(r["group_item"]["null"]) for r in results]) < np.mean(
        [np.mean(r["views"]["null"]) for r in results]
    )


@given(st.integers(0, 1000))
def test_shuffling_keeps_the_answers_to_every_item(seed: int) -> None:
    vectors = LabelVectors.from_annotations(noise(items=30, per_item=4, seed=seed))
    rng = np.random.default_rng(seed)
    for permuted in (vectors.permuted(rng), next(strict_permutations(vectors, rng))):
        assert np.allclose(permuted.item_means, vectors.item_means)
        assert np.array_equal(permuted.annotator, vectors.annotator)


def test_strict_people_stay_strict_when_shuffled() -> None:
    vectors = LabelVectors.from_annotations(strict())
    rates = vectors.sums_by_annotator(vectors.values).ravel() / vectors.per_annotator
    tables = strict_permutations(vectors, np.random.default_rng(0))
    again = np.mean(
        [
            vectors.sums_by_annotator(next(tables).values).ravel() / vectors.per_annotator
            for _ in range(20)
        ],
        axis=0,
    )
    assert np.max(np.abs(again - rates)) < 0.04
    plain = vectors.permuted(np.random.default_rng(0))
    flat = vectors.sums_by_annotator(plain.values).ravel() / vectors.per_annotator
    assert np.ptp(flat) < 0.3 < np.ptp(rates)


def test_the_same_seed_gives_the_same_p() -> None:
    annotations = noise(items=60, seed=3)
    one, other = (judged(annotations, seed=5) for _ in range(2))
    assert one["group_item"]["null"] == other["group_item"]["null"]
    assert one["views"]["null"] == other["views"]["null"]


def test_nothing_is_tested_where_groups_cannot_be_looked_for() -> None:
    result = judged(noise(items=12, annotators=3, seed=0))
    assert result["group_item"]["p"] is None
    assert result["p"] is not None


def test_the_joint_p_value_counts_the_labels_as_they_are_and_is_never_below_either() -> None:
    for labels in (noise(items=40, annotators=5), camps(items=200, apart=0.4)):
        result = judged(labels)
        assert result["p"] >= 1 / 20 - 1e-12
        assert result["p"] >= min(result["annotator"]["p"], result["group_item"]["p"]) - 1e-12
    # Camps: hardly a permutation has a p-value as small in either test.
    assert result["p"] <= 2 / 20 + 1e-12
