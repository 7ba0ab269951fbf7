"""Diagnosis of ratings and sets: alpha at the right level, structure on numbers, words."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edokit import Annotations, Scale, diagnose, read_annotations
from edokit.analysis.diagnose.careless import find_careless
from edokit.analysis.diagnose.overview import agreement, describe_annotators
from edokit.analysis.diagnose.result import Diagnosis
from edokit.analysis.diagnose.vectors import LabelVectors

POINTS = "ordinal:1,2,3,4,5,6,7"


def ratings(
    items: int = 200, *, strict: float = 0.0, camps: float = 0.0, seed: int = 0
) -> Annotations:
    """Six annotators rate from 1 to 7: some higher than others, or camps that see other things."""
    rng = np.random.default_rng(seed)
    rating = rng.normal(4, 1.5, (items, 1)) + strict * np.linspace(-1, 1, 6)
    rating = rating + camps * rng.choice([-1, 1], (items, 1)) * np.array([1, 1, 1, -1, -1, -1])
    rating = np.rint(rating + rng.normal(0, 1, rating.shape)).clip(1, 7)
    return Annotations.from_matrix(rating.astype(int), scale=POINTS)


def sets(items: int = 200, *, camps: float = 0.0, seed: int = 0) -> Annotations:
    """Six annotators choose any of three labels."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1.5, (items, 1, 3))
    camp = np.array([1, 1, 1, -1, -1, -1])[:, None]
    score = score + camps * rng.choice([-1, 1], (items, 1, 3)) * camp
    chosen = rng.random((items, 6, 3)) < 1 / (1 + np.exp(-score))
    return chosen_sets(chosen)


def chosen_sets(chosen: np.ndarray) -> Annotations:
    """Sets of these labels [N, A, 3]."""
    names = np.array(["mocking", "rude", "warm"])
    rows = [
        (f"item-{i}", f"ann-{a}", json.dumps(names[chosen[i, a]].tolist()))
        for i, a in np.ndindex(chosen.shape[:2])
    ]
    table = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    return Annotations.from_table(table, scale="multi-label:mocking,rude,warm")


def literal_alpha(units: list[list[float]], squared: bool) -> float:
    """Krippendorff's definition, pair by pair: 1 − observed / expected disagreement."""

    def apart(one: float, other: float) -> float:
        return (one - other) ** 2 if squared else float(one != other)

    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    n = len(values)
    observed = sum(
        sum(apart(*pair) for pair in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    )
    expected = sum(apart(*pair) for pair in permutations(values, 2)) / (n - 1)
    return 1 - observed / expected


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(3, 12))
def test_alpha_of_ratings_is_that_of_the_interval_level(seed: int, items: int) -> None:
    rng = np.random.default_rng(seed)
    places = np.array([0.0, 1.0, 3.0, 7.0])
    rating = rng.integers(4, size=(items, 4))
    rating[0] = [0, 3, 1, 0]
    there = rng.random(rating.shape) > 0.3
    there[0] = True
    units = [places[row[here]].tolist() for row, here in zip(rating, there, strict=True)]
    names = np.array(["never", "seldom", "often", "always"], dtype=object)
    annotations = Annotations.from_matrix(
        np.where(there, names[rating], None)[there.any(axis=1)],
        scale="ordinal:never=0,seldom=1,often=3,always=7",
    )
    coefficients = agreement(annotations)
    assert coefficients["level"] == "interval"
    assert coefficients["alpha"] == pytest.approx(literal_alpha(units, squared=True), abs=1e-9)
    several = [unit for unit in units if len(unit) > 1]
    distances = [abs(a - b) for unit in several for a, b in permutations(unit, 2)]
    assert coefficients["distance"]["pairwise"] == pytest.approx(np.mean(distances))


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_alpha_of_sets_is_that_of_each_label(seed: int) -> None:
    chosen = np.random.default_rng(seed).random((8, 3, 3)) < 0.5
    chosen[0, 0] = True
    chosen[0, 1] = False
    coefficients = agreement(chosen_sets(chosen))
    each = [literal_alpha(chosen[:, :, k].astype(float).tolist(), squared=False) for k in range(3)]
    assert list(coefficients["by_label"]) == ["mocking", "rude", "warm"]
    assert list(coefficients["by_label"].values()) == pytest.approx(each, abs=1e-9)
    assert coefficients["alpha"] == pytest.approx(np.mean(each), abs=1e-9)
    pairs = [(unit[a] == unit[b]).mean() for unit in chosen for a, b in permutations(range(3), 2)]
    assert coefficients["pairwise"] == pytest.approx(np.mean(pairs))


def test_a_label_that_nobody_chose_has_no_alpha_and_does_not_count() -> None:
    chosen = np.random.default_rng(0).random((20, 4, 3)) < 0.5
    chosen[:, :, 1] = False
    coefficients = agreement(chosen_sets(chosen))
    assert coefficients["by_label"]["rude"] is None
    others = [coefficients["by_label"][name] for name in ("mocking", "warm")]
    assert coefficients["alpha"] == pytest.approx(np.mean(others))


def test_alpha_of_paraphrase_ratings(lewidi2025: Path) -> None:
    path = lewidi2025 / "Paraphrase" / "Paraphrase_train.json"
    ratings = read_annotations(path)
    table = ratings.to_table().to_pandas().drop(columns="answer_scale")
    interval = agreement(ratings)["alpha"]
    nominal = agreement(Annotations.from_table(table))["alpha"]
    content = json.loads(path.read_text(encoding="utf-8"))
    units = [
        [float(label) for label in value["annotations"].values()] for value in content.values()
    ]
    assert interval == pytest.approx(literal_alpha(units, squared=True))
    assert nominal == pytest.approx(literal_alpha(units, squared=False))
    assert (round(nominal, 2), round(interval, 2)) == (0.15, 0.48)


@pytest.mark.parametrize(
    ("scale", "one", "other", "squared", "absolute"),
    [
        (Scale("ordinal", (0, 1, 3, 4)), [0, 1, 0, 0], [0, 0, 0, 1], 9 / 16, 3 / 4),
        (Scale("multi-label"), [1, 1, 0, 0], [0, 1, 0, 1], 1 / 2, 1 / 2),
        (Scale(), [1, 0, 0, 0], [0, 0, 0, 1], 1, 1),
    ],
)
def test_vectors_are_as_far_apart_as_answers_disagree(scale, one, other, squared, absolute) -> None:
    apart = np.array(one) - np.array(other)
    assert np.sum((apart @ scale.vectors(4)) ** 2) == pytest.approx(squared)
    assert np.sum((apart @ scale.vectors(4, absolute=True)) ** 2) == pytest.approx(absolute)


def test_the_variance_of_ratings_is_that_of_their_positions() -> None:
    annotations = ratings(strict=1.0)
    place = np.array(annotations.scale.positions)[annotations.label_codes]
    vectors = LabelVectors.from_annotations(annotations)
    assert float(np.var(vectors.values)) * 36 == pytest.approx(np.var(place))
    diagnosis = diagnose(annotations, permutations=0)
    by_annotator = [place[annotations.annotator_codes == a].mean() for a in range(6)]
    share = np.var(by_annotator) / np.var(place)
    assert diagnosis.variance["annotator"]["share"] == pytest.approx(share, abs=0.02)
    assert diagnosis.variance["item"]["share"] > diagnosis.variance["rest"]["share"]


def choices(found: Diagnosis) -> dict[str, str | None]:
    return {entry.topic: entry.choice for entry in found.advice}


def test_camps_of_raters_are_found_on_numbers() -> None:
    diagnosis = diagnose(ratings(camps=0.8), permutations=39)
    assert choices(diagnosis)["structure"] == "views"
    assert [person["group"] for person in diagnosis.per_annotator] in (
        ["A"] * 3 + ["B"] * 3,
        ["B"] * 3 + ["A"] * 3,
    )
    json.dumps(diagnosis.to_dict(), allow_nan=False)
    assert diagnosis.scale == POINTS


def test_strict_raters_differ_in_their_mean() -> None:
    diagnosis = diagnose(ratings(strict=1.0), permutations=39)
    assert choices(diagnosis)["structure"] == "strictness"
    means = [person["mean"] for person in diagnosis.per_annotator]
    assert means == sorted(means)
    text = str(diagnosis)
    assert "how high they rate" in text
    assert "(interval)" in text
    assert f"mean {means[0]:.2f}, is" in text
    assert "class" not in text.partition("Advice")[2]


def test_camps_of_set_choosers_are_found_and_labels_named() -> None:
    diagnosis = diagnose(sets(camps=1.0), permutations=39)
    assert choices(diagnosis)["structure"] == "views"
    assert [person["group"] for person in diagnosis.per_annotator] in (
        ["A"] * 3 + ["B"] * 3,
        ["B"] * 3 + ["A"] * 3,
    )
    text = str(diagnosis)
    assert "mean of the labels: mocking" in text
    assert "how often they choose each label" in text
    json.dumps(diagnosis.to_dict(), allow_nan=False)


def test_noise_on_scales_and_sets_is_seldom_called_structured() -> None:
    called = [
        diagnose(make(100, seed=seed), permutations=39, random_state=seed).test["structured"]
        for make in (ratings, sets)
        for seed in range(6)
    ]
    assert sum(called) <= 2


def test_a_careless_rater_is_found_by_distance() -> None:
    rng = np.random.default_rng(0)
    rating = (rng.integers(2, 10, (400, 1)) + rng.integers(-1, 2, (400, 5))).clip(1, 11)
    rating[:, 3] = np.where(rng.random(400) < 0.5, rng.integers(1, 12, 400), rating[:, 3])
    scale = "ordinal:" + ",".join(map(str, range(1, 12)))
    careless, rate = find_careless(Annotations.from_matrix(rating, scale=scale))
    assert careless.tolist() == [False, False, False, True, False]
    assert rate[3] == pytest.approx(0.5, abs=0.15)


def test_a_careless_chooser_of_sets_is_found() -> None:
    rng = np.random.default_rng(0)
    chosen = np.repeat(rng.random((400, 1, 3)) < 0.4, 5, axis=1)
    chosen ^= rng.random(chosen.shape) < 0.05
    chosen[:, 1] = np.where(rng.random((400, 1)) < 0.5, rng.random((400, 3)) < 0.5, chosen[:, 1])
    careless, _ = find_careless(chosen_sets(chosen))
    assert careless.tolist() == [False, True, False, False, False]


def test_raters_are_compared_by_distance() -> None:
    annotations = Annotations.from_matrix([[1, 2, 5], [1, 1, 5]], scale="ordinal:1,2,3,4,5")
    x, _, z = describe_annotators(annotations)
    # 1 and 4 of at most 4 apart, then 0 and 4; the two others 3, then 4.
    assert x["agreement"] == pytest.approx(1 - np.mean([5 / 2, 4 / 2]) / 4)
    assert x["expected"] == pytest.approx(1 - np.mean([3, 4]) / 4)
    assert z["mean"] == 5


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (Annotations.from_matrix([[3, 3], [3, 3]], scale=POINTS), "'3'"),
        (chosen_sets(np.zeros((3, 2, 3), dtype=bool)), "the empty set"),
        (chosen_sets(np.ones((3, 2, 3), dtype=bool)), "'mocking', 'rude', 'warm'"),
    ],
)
def test_labels_that_are_all_the_same_are_named(annotations, words) -> None:
    diagnosis = diagnose(annotations)
    assert words in diagnosis.agreement["reason"]
    assert words in diagnosis.advice[0].text
    assert words in str(diagnosis)


def test_ties_and_hard_labels_of_sets_are_counted_by_label() -> None:
    chosen = np.array([[[1, 0, 1], [1, 1, 1]], [[1, 0, 0], [1, 0, 0]]], dtype=bool)
    diagnosis = diagnose(chosen_sets(chosen), permutations=0)
    assert diagnosis.balance["ties"] == 1
    assert diagnosis.balance["hard"] == {"mocking": 2, "rude": 0, "warm": 1}
    assert diagnosis.balance["shares"] == {"mocking": 1.0, "rude": 0.25, "warm": 0.5}
    assert diagnosis.entropy["largest"] == pytest.approx(np.log(2))
