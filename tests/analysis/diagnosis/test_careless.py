"""Careless annotators: found, named, and no reason to call noise structured."""

from __future__ import annotations

import json

import numpy as np
import pytest
from diagnose_cases import answered, camps, noise, strict, with_careless

from edokit import Annotations, diagnose
from edokit.analysis.diagnose.advice import advise
from edokit.analysis.diagnose.careless import RATES, chance_of_gain, find_careless
from edokit.analysis.diagnose.overview import describe_annotators
from edokit.analysis.diagnose.result import Diagnosis

WHO = ["ann-1", "ann-4"]


def named(annotations: Annotations) -> dict[str, float]:
    careless, rate = find_careless(annotations)
    names = map(str, annotations.annotators[careless])
    return dict(zip(names, rate[careless].tolist(), strict=True))


def choices(found: Diagnosis) -> dict[str, str | None]:
    return {entry.topic: entry.choice for entry in found.advice}


def clear(items: int = 600, annotators: int = 6, seed: int = 0) -> Annotations:
    """Noise on items most of which are clear."""
    rng = np.random.default_rng(seed)
    chance = np.repeat(rng.beta(0.3, 0.4, size=(items, 1)), annotators, axis=1)
    return answered(chance, None, rng)


def test_noise_with_two_careless_annotators_is_seldom_called_structured() -> None:
    alone = []
    diagnosed = []
    for seed in range(8):
        annotations = with_careless(clear(items=200, seed=seed), WHO, 0.4, seed)
        diagnosis = diagnose(annotations, permutations=39, random_state=seed)
        alone.append(diagnosis.test["p"] <= 0.05)
        diagnosed.append(diagnosis.test["structured"])
    assert sum(alone) >= 4
    assert sum(diagnosed) <= 1


def test_careless_annotators_are_named_with_their_share_of_random_labels() -> None:
    annotations = with_careless(clear(), WHO, 0.4, 0)
    diagnosis = diagnose(annotations, permutations=39)
    assert diagnosis.careless is not None
    assert {annotator["annotator"] for annotator in diagnosis.careless["annotators"]} == set(WHO)
    for one in diagnosis.careless["annotators"]:
        assert one["random"] == pytest.approx(0.4, abs=0.15)
    assert diagnosis.careless["explains"]
    assert choices(diagnosis)["structure"] == "careless"
    assert choices(diagnosis)["careless"] == "check"
    assert choices(diagnosis)["supervision"] == "soft"
    assert diagnosis.clusters["kind"] == "none"
    assert "'ann-4' (about" in str(diagnosis)
    json.dumps(diagnosis.to_dict(), allow_nan=False)


def test_strict_annotators_and_minorities_are_not_careless() -> None:
    for seed in range(3):
        assert not named(strict(seed=seed))
        assert not named(camps(items=400, sizes=(6, 2), apart=0.3, seed=seed))


def test_who_agrees_more_than_two_others_do_is_not_careless() -> None:
    rng = np.random.default_rng(29)
    yes = (rng.random((450, 4)) < rng.beta(0.3, 0.3, size=(450, 1))).astype(int)
    # One nearly always says yes, one often no; three are now and then unsure.
    yes[rng.random(450) < 0.7, 2] = 1
    yes[rng.random(450) < 0.3, 1] = 0
    for annotator in (0, 2, 3):
        yes[rng.random(450) < 0.05, annotator] = 2
    annotations = Annotations.from_matrix(yes.astype(str))
    first = describe_annotators(annotations)[0]
    assert first["agreement"] > first["expected"]
    assert not find_careless(annotations, false_alarms=1.0)[0].any()


def test_a_constant_annotator_does_not_hide_a_careless_one() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(0, 3, size=(400, 1)), 4, axis=1)
    labels[:, 2] = 1
    labels[:, 3] = np.where(rng.random(400) < 0.5, rng.integers(0, 3, size=400), labels[:, 3])
    annotations = Annotations.from_matrix(labels.astype(str))
    assert list(named(annotations)) == [str(annotations.annotators[3])]


def test_the_most_random_annotators_are_named_first() -> None:
    annotations = with_careless(clear(), ["ann-1"], 0.25, 0)
    annotations = with_careless(annotations, ["ann-4"], 0.8, 1)
    diagnosis = diagnose(annotations, permutations=0)
    assert [annotator["annotator"] for annotator in diagnosis.careless["annotators"]] == [
        "ann-4",
        "ann-1",
    ]


def test_few_are_called_careless_by_chance() -> None:
    alarms = [len(named(noise(items=400, annotators=8, seed=seed))) for seed in range(20)]
    # 0.8 of 160 are expected; 5 or more have a chance of one in five hundred.
    assert sum(alarms) <= 4


def test_many_annotators_have_no_more_false_alarms_in_all() -> None:
    people = (noise(items=150, annotators=100, per_item=10, seed=seed) for seed in range(20))
    # One of each is expected at most; 34 or more have a chance of one in three hundred.
    assert sum(find_careless(crowd, false_alarms=1.0)[0].sum() for crowd in people) <= 33


def test_nobody_is_named_where_most_labels_look_random() -> None:
    most = with_careless(clear(items=300, annotators=5), ["ann-0", "ann-1", "ann-2"], 0.9, 0)
    assert not named(most)
    assert find_careless(most)[1].tolist()[3:] == [0.0, 0.0]
    assert named(with_careless(clear(items=300, annotators=5), ["ann-0", "ann-1"], 0.9, 0))


def test_a_random_share_is_found_by_chance_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(0)
    expected = rng.beta(3, 3, 400)
    yes = rng.random((4000, 400)) < expected
    likelihoods = np.where(yes, expected, 1 - expected)
    fits = [np.log((1 - rate) * likelihoods + rate / 2).sum(axis=1) for rate in RATES]
    gain = np.max(fits, axis=0) - fits[0]
    for level in (0.05, 0.1):
        assert np.mean(chance_of_gain(gain, 1) <= level) == pytest.approx(level, rel=0.2)
    # Labels that are always chosen together say the same as one of them.
    np.testing.assert_allclose(chance_of_gain(3 * gain, 3), chance_of_gain(gain, 1))


def test_careless_annotators_do_not_hide_structure() -> None:
    # Two camps of four, of opposite opinion about every third item.
    rng = np.random.default_rng(0)
    chance = np.repeat(rng.choice([0.05, 0.95], size=(600, 1)), 8, axis=1)
    chance[::3, 4:] = 1 - chance[::3, 4:]
    annotations = with_careless(answered(chance, None, rng), ["ann-0"], 0.8, 0)
    diagnosis = diagnose(annotations, permutations=39)
    assert [annotator["annotator"] for annotator in diagnosis.careless["annotators"]] == ["ann-0"]
    assert diagnosis.test["structured"]
    assert choices(diagnosis)["structure"] == "views"
    text = {entry.topic: entry.text for entry in diagnosis.advice}["careless"]
    assert "still structured" in text


def test_careless_annotators_are_found_among_many_classes() -> None:
    rng = np.random.default_rng(0)
    share = rng.dirichlet([0.3] * 5, size=400)
    labels = np.array([rng.choice(5, size=6, p=p) for p in share])
    labels[:, 2] = np.where(rng.random(400) < 0.5, rng.integers(5, size=400), labels[:, 2])
    # A sixth class that nobody chose.
    annotations = Annotations.from_matrix(labels.astype(str), classes=list("012345"))
    assert list(named(annotations)) == [str(annotations.annotators[2])]


def test_a_slight_effect_is_called_slight_and_leads_to_no_advice() -> None:
    rng = np.random.default_rng(0)
    chance = rng.beta(0.8, 1.2, size=(4000, 1)) + np.array([0.03, -0.03, 0.03, -0.03, 0, 0])
    data = answered(np.clip(chance, 0, 1), None, rng)
    diagnosis = diagnose(data, permutations=39)
    assert diagnosis.test["structured"]
    assert diagnosis.variance["structured"] < 0.1
    assert choices(diagnosis)["structure"] == "slight"
    assert choices(diagnosis)["supervision"] == "soft"
    assert diagnosis.advice[0].text.startswith("The disagreement has only a slight structure")
    assert "of the variance of the labels" in diagnosis.advice[0].text
    names = ("coverage", "balance", "clusters", "variance", "test", "careless")
    results = {name: getattr(diagnosis, name) for name in names}
    results["variance"] = {**diagnosis.variance, "structured": 0.003}
    text = advise(data, **results)[0][0].text
    assert "seems too small to matter" in text
    assert "0%" not in text


def test_the_words_grow_with_the_effect() -> None:
    partly = diagnose(camps(items=400, apart=0.25), permutations=39)
    assert partly.advice[0].text.startswith("The disagreement is partly structured")
    strong = diagnose(camps(items=400, apart=0.4), permutations=39)
    assert strong.advice[0].text.startswith("The disagreement is structured")
