"""The test: it keeps its level on noise, has power, and tells views from strictness."""

from __future__ import annotations

import numpy as np
import pytest
from diagnose_cases import answered, camps, noise
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations
from edokit.diagnosis.clusters import Design, look
from edokit.diagnosis.permutation import StructureTest, permutation_test, strict_shuffles
from edokit.diagnosis.vectors import Answers


def judged(annotations: Annotations, permutations: int = 19, seed: int = 0) -> StructureTest:
    answers = Answers.of(annotations)
    design = Design.of(answers)
    return permutation_test(answers, design, look(answers, design), permutations, seed)


def strict(items: int = 400, people: int = 8, seed: int = 0) -> Annotations:
    """People who draw the line in different places, and differ in nothing else."""
    rng = np.random.default_rng(seed)
    score = rng.normal(scale=1.5, size=(items, 1)) + np.linspace(-1.5, 1.5, people)
    return answered(1 / (1 + np.exp(-score)), None, rng)


def test_noise_is_called_structured_about_once_in_twenty() -> None:
    # At 19 shuffles p = 0.05 is the smallest there is, and exact.
    p = [
        (result.p, result.p_annotator, result.p_group_item)
        for seed in range(50)
        for result in [judged(noise(items=60, people=5, seed=seed), seed=seed)]
    ]
    alarms = (np.array(p) <= 0.05).sum(axis=0)
    # Of 50 at 5 %, more than 8 have a chance of one in a thousand.
    assert (alarms <= 8).all(), alarms
    assert np.median(np.array(p)[:, 0]) > 0.25


def test_camps_are_told_from_noise() -> None:
    result = judged(camps(items=200, apart=0.3), permutations=39)
    assert result.structured
    assert result.p_group_item == pytest.approx(1 / 40)
    assert result.p_views == pytest.approx(1 / 40)
    assert result.score > result.scores.max()


def test_camps_in_a_sparse_crowd_are_told_from_noise() -> None:
    assert judged(camps(items=1500, sizes=(30, 20), per_item=5, apart=0.3)).p_group_item <= 0.05


def test_strictness_is_structure_but_not_other_views() -> None:
    results = [judged(strict(seed=seed), seed=seed) for seed in range(4)]
    assert all(result.p_annotator <= 0.05 for result in results)
    assert sum(result.p_views <= 0.05 for result in results) <= 1
    # With the line drawn in different places the groups look real, unless strictness is kept.
    assert np.mean([r.scores.mean() for r in results]) < np.mean(
        [r.strict_scores.mean() for r in results]
    )


@given(st.integers(0, 1000))
def test_shuffling_keeps_the_answers_to_every_item(seed: int) -> None:
    answers = Answers.of(noise(items=30, per_item=4, seed=seed))
    rng = np.random.default_rng(seed)
    for shuffled in (answers.shuffled(rng), next(strict_shuffles(answers, rng))):
        assert np.allclose(shuffled.item_means, answers.item_means)
        assert np.array_equal(shuffled.person, answers.person)


def test_strict_people_stay_strict_when_shuffled() -> None:
    answers = Answers.of(strict())
    rates = answers.sums_by_person(answers.values).ravel() / answers.per_person
    shuffles = strict_shuffles(answers, np.random.default_rng(0))
    again = np.mean(
        [
            answers.sums_by_person(next(shuffles).values).ravel() / answers.per_person
            for _ in range(20)
        ],
        axis=0,
    )
    assert np.max(np.abs(again - rates)) < 0.04
    plain = answers.shuffled(np.random.default_rng(0))
    flat = answers.sums_by_person(plain.values).ravel() / answers.per_person
    assert np.ptp(flat) < 0.3 < np.ptp(rates)


def test_the_same_seed_gives_the_same_p() -> None:
    annotations = noise(items=60, seed=3)
    one, other = (judged(annotations, seed=5) for _ in range(2))
    assert np.array_equal(one.scores, other.scores)
    assert np.array_equal(one.strict_scores, other.strict_scores)


def test_nothing_is_tested_where_groups_cannot_be_looked_for() -> None:
    result = judged(noise(items=12, people=3, seed=0))
    assert np.isnan(result.p_group_item)
    assert not np.isnan(result.p)
