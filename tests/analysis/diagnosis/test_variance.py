"""Shares of the variance: on the simulator, where the truth is known, they are recovered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from diagnose_cases import camps, noise
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student_t

from benchmarks.true_variance import true_variance
from edokit import Annotations, diagnose, simulate
from edokit.analysis.diagnose.clusters import Clusters, Design, cross_fitted, stability
from edokit.analysis.diagnose.variance import Part, _part, decompose
from edokit.analysis.diagnose.vectors import LabelVectors
from edokit.datasets.simulate.regimes import REGIMES
from edokit.datasets.simulate.simulation import Simulation

PANEL = replace(
    REGIMES["two-camps"], annotators=24, per_item={8: 1.0}, balance=(0.7, 0.3), items=(900, 1, 1)
)
CROWD = replace(REGIMES["crowd"], annotators=200, items=(4000, 1, 1), activity_spread=1.0)
PARTS = ("item", "annotator", "group_item", "rest")


def declared(annotations: Annotations) -> dict[str, Part]:
    vectors = LabelVectors.from_annotations(annotations)
    group = np.unique(annotations.attributes["group"], return_inverse=True)[1]
    count = int(group.max()) + 1
    shares = decompose(
        vectors,
        Design.from_vectors(vectors, group, count),
        [Clusters(group, count)],
    )
    assert shares is not None
    return shares[1]


def truth(simulation: Simulation) -> dict[str, float]:
    found = true_variance(simulation)
    known = {name: value / sum(found.values()) for name, value in found.items()}
    known["rest"] = known["annotator_item"] + known["noise"]
    return known


@pytest.mark.parametrize("regime", [PANEL, CROWD], ids=["panel", "crowd"])
def test_true_shares_are_recovered_without_bias(regime: object) -> None:
    gaps = {name: [] for name in PARTS}
    for seed in range(4):
        simulation = simulate(regime, random_state=seed)
        shares = declared(simulation.annotations)
        known = truth(simulation)
        for name in PARTS:
            gaps[name].append(shares[name].share - known[name])
    for name in PARTS:
        assert abs(np.mean(gaps[name])) < 0.02, (name, gaps[name])


def test_other_numbers_of_classes_are_recovered_too() -> None:
    simulation = simulate(replace(PANEL, balance=(0.5, 0.3, 0.13, 0.07)), random_state=1)
    shares = declared(simulation.annotations)
    known = truth(simulation)
    for name in PARTS:
        assert shares[name].share == pytest.approx(known[name], abs=0.03)


def test_the_shares_sum_to_one() -> None:
    shares = declared(simulate("two-camps", random_state=0, items=(200, 1, 1)).annotations)
    assert sum(shares[name].share for name in PARTS) == pytest.approx(1)


def test_groups_found_on_one_half_explain_the_other_as_well_as_the_true_ones() -> None:
    annotations = camps(items=500, sizes=(6, 6), apart=0.3)
    vectors = LabelVectors.from_annotations(annotations)
    groupings = cross_fitted(vectors, random_state=0)
    found = decompose(vectors, Design.from_vectors(vectors), groupings)
    assert found is not None
    # Each camp labels yes with 0.2 or 0.8, independently: half of that is shared by both.
    total = 0.25
    assert found[1]["group_item"].share == pytest.approx(0.5 * 0.3**2 / total, abs=0.03)
    assert stability(groupings) > 0.9


def test_groups_found_in_noise_explain_nothing() -> None:
    values = []
    for seed in range(6):
        vectors = LabelVectors.from_annotations(noise(items=300, annotators=10, seed=seed))
        shares = decompose(
            vectors, Design.from_vectors(vectors), cross_fitted(vectors, random_state=0, splits=2)
        )
        assert shares is not None
        values.append(shares[1]["group_item"].share)
    assert abs(np.mean(values)) < 0.01


def test_leanings_are_told_from_items_when_strict_people_get_the_worst_items() -> None:
    # Everyone of twenty leans alike; who is busy sees other items than who is not.
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(600), 5)
    chance = np.repeat(np.where(np.arange(600) < 300, 0.1, 0.8), 5)
    annotator = np.concatenate([rng.permutation(10)[:5] + 10 * (i >= 300) for i in range(600)])
    table = {
        "item": item,
        "annotator": annotator,
        "label": (rng.random(3000) < chance).astype(int),
    }
    vectors = LabelVectors.from_annotations(Annotations.from_table(table))
    shares = decompose(vectors, Design.from_vectors(vectors), [])
    assert shares is not None
    assert abs(shares[1]["annotator"].share) < 0.01
    assert np.isnan(shares[1]["group_item"].share)


@settings(max_examples=15)
@given(st.integers(0, 500))
def test_names_and_order_do_not_matter(seed: int) -> None:
    annotations = camps(items=40, sizes=(3, 2), seed=seed)
    order = np.random.default_rng(seed).permutation(len(annotations))
    table = annotations.to_table().take(order)
    second_annotations = Annotations.from_table(table)
    one, other = (
        decompose(vectors, Design.from_vectors(vectors), [])
        for vectors in (
            LabelVectors.from_annotations(annotations),
            LabelVectors.from_annotations(second_annotations),
        )
    )
    assert one is not None
    assert other is not None
    for name in ("annotator", "item"):
        assert one[1][name].share == pytest.approx(other[1][name].share, abs=1e-9)


@pytest.mark.parametrize("blocks", [4, 8, 20])
def test_the_interval_of_a_share_is_a_jackknife(blocks: int) -> None:
    numbers = np.random.default_rng(0).normal(size=blocks)
    left_out = (numbers.sum() - numbers) / (blocks - 1)
    part = _part(np.append(left_out, numbers.mean()))
    half = student_t.ppf(0.975, blocks - 1) * numbers.std(ddof=1) / np.sqrt(blocks)
    expected = (part.share - half, part.share + half)
    assert (part.low, part.high) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("answers", [(0, 1), (0, 1, 1), (0, 0, 1, 1)])
def test_people_who_always_answer_alike_differ_in_strictness_and_in_nothing_else(answers) -> None:
    vectors = LabelVectors.from_annotations(Annotations.from_matrix([answers] * 60))
    shares = decompose(vectors, Design.from_vectors(vectors), [])
    assert shares is not None
    parts = [shares[1][name].share for name in ("item", "annotator", "rest")]
    assert parts == pytest.approx([0, 1, 0], abs=1e-6)


def test_copies_of_items_tell_nothing_new_about_groups_and_shares() -> None:
    """Five copies of each item, kept together, have the intervals of one."""
    rng = np.random.default_rng(0)
    chance = rng.beta(0.7, 0.7, size=(60, 1))
    votes = (rng.random((60, 6)) < chance).astype(int)
    once = Annotations.from_matrix(votes)
    copies = Annotations.from_matrix(np.repeat(votes, 5, axis=0))
    grouped = replace(copies, item_groups=np.repeat(once.items, 5))
    plain_diagnosis = diagnose(once, permutations=0)
    diagnosis = diagnose(grouped, permutations=39)
    assert plain_diagnosis.variance is not None
    assert diagnosis.variance is not None
    for name in ("item", "rest"):
        part = diagnosis.variance[name]
        width = plain_diagnosis.variance[name]["high"] - plain_diagnosis.variance[name]["low"]
        assert part["high"] - part["low"] == pytest.approx(width, rel=0.3)
    assert diagnosis.variance["group_item"]["low"] == 0.0
    assert any("independent" in limit for limit in diagnosis.limits)
    assert not any("independent" in limit for limit in plain_diagnosis.limits)
