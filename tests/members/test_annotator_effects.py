"""Members that know annotators: shrunken effects beside an anonymous answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import on_scale
from scipy.special import expit, logit, softmax

from commands import invoke
from edokit import Annotations, Scale, read_predictions
from edokit._names import as_names
from edokit._types import Floats
from edokit.annotations.core import take_rows
from edokit.annotator_effects import AnnotatorEffects, _covariance
from edokit.members import Group, MemberData, parse_groups, score_members, train_members
from edokit.members.registry import find_recipe, make_member
from edokit.members.supervision import soft_targets
from edokit.rows import Rows
from edokit.scales import NOMINAL
from tests.errors import raises_code

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tied"),
    pytest.mark.usefixtures("own_cache"),
]
SCALES = {
    "nominal": NOMINAL,
    "ordinal": Scale("ordinal", (1, 2, 3, 4)),
    "multi-label": Scale("multi-label"),
}


def simulated(
    kind: str, labels: int, seed: int = 0, annotators: int = 12, spread: float = 1.0
) -> tuple[Floats, Annotations, Floats]:
    """Anonymous answers [N, C], so many labels of each annotator, and their true offsets."""
    rng = np.random.default_rng(seed)
    scale = SCALES[kind]
    c = 3 if scale.is_multi_label else 4
    z = rng.normal(size=(labels, c))
    offsets = spread * rng.normal(size=(annotators, c))
    items = np.repeat(np.arange(labels), annotators).astype(np.int32)
    whose = np.tile(np.arange(annotators), labels).astype(np.int32)
    if scale.is_multi_label:
        anonymous = expit(z)
        chosen = (rng.random((len(items), c)) < expit(z[items] + offsets[whose])).astype(float)
        codes = None
    else:
        anonymous = softmax(z, axis=1)
        offsets -= offsets.mean(axis=1, keepdims=True)
        below = np.cumsum(softmax(z[items] + offsets[whose], axis=1), axis=1)
        codes = (rng.random((len(items), 1)) > below).sum(axis=1).astype(np.int32)
        chosen = None
    rows = Rows.from_names(f"item{i}" for i in range(labels))
    people = as_names(f"person{i}" for i in range(annotators))
    classes = tuple(map(str, range(1, c + 1)))
    found = Annotations(rows, people, classes, items, whose, codes, chosen, scale=scale)
    return anonymous, found, offsets


def estimated(kind: str, labels: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Offsets that were found, and the true ones."""
    anonymous, annotations, offsets = simulated(kind, labels, seed)
    found = AnnotatorEffects.fit(anonymous, annotations, SCALES[kind]).effects[:, :-1]
    if not SCALES[kind].is_multi_label:
        found = found - found.mean(axis=1, keepdims=True)
    return found, offsets


@pytest.mark.parametrize("kind", SCALES)
def test_with_many_labels_offsets_converge_to_the_true_ones(kind: str) -> None:
    errors = [np.abs(np.subtract(*estimated(kind, n))).mean() for n in (20, 200, 4000)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.06


@pytest.mark.parametrize("kind", SCALES)
def test_the_fewer_labels_the_nearer_to_the_anonymous_answer(kind: str) -> None:
    anonymous, annotations, offsets = simulated(kind, 300)
    # The last annotator labelled two items.
    mine = np.flatnonzero(annotations.annotator_codes == 11)
    kept = np.setdiff1d(np.arange(len(annotations)), mine[2:])
    few = replace(
        annotations,
        item_codes=annotations.item_codes[kept],
        annotator_codes=annotations.annotator_codes[kept],
        label_codes=take_rows(annotations.label_codes, kept),
        label_probabilities=take_rows(annotations.label_probabilities, kept),
    )
    scale = SCALES[kind]
    much, little = (
        np.abs(AnnotatorEffects.fit(anonymous, one, scale).effects[11, :-1]).max()
        for one in (annotations, few)
    )
    assert little < much
    assert np.abs(offsets[11]).max() > 0.5


@pytest.mark.parametrize("kind", SCALES)
def test_annotators_who_agree_have_next_to_no_effect(kind: str) -> None:
    apart, alike = (
        np.abs(AnnotatorEffects.fit(anonymous, annotations, SCALES[kind]).effects).mean()
        for anonymous, annotations, _ in (simulated(kind, 300), simulated(kind, 300, spread=0.0))
    )
    assert alike < 0.05 < 0.3 < apart


def test_who_answers_at_random_has_a_slope_of_minus_one() -> None:
    anonymous, annotations, _ = simulated("nominal", 2000)
    careless = annotations.annotator_codes == 0
    assert annotations.label_codes is not None
    labels = annotations.label_codes.copy()
    labels[careless] = np.random.default_rng(5).integers(0, 4, careless.sum())
    effects = AnnotatorEffects.fit(
        anonymous, replace(annotations, label_codes=labels), NOMINAL
    ).effects
    assert effects[0, -1] == pytest.approx(-1, abs=0.15)
    assert np.abs(effects[1:, -1]).max() < 0.2


def test_ids_and_order_do_not_matter() -> None:
    anonymous, annotations, _ = simulated("nominal", 100)
    rng = np.random.default_rng(1)
    rows = rng.permutation(len(annotations))
    people = rng.permutation(12)
    place = np.argsort(people).astype(np.int32)
    assert annotations.label_codes is not None
    other = replace(
        annotations,
        annotators=annotations.annotators[people],
        annotator_codes=place[annotations.annotator_codes[rows]],
        item_codes=annotations.item_codes[rows],
        label_codes=annotations.label_codes[rows],
    )
    one = AnnotatorEffects.fit(anonymous, annotations, NOMINAL)
    two = AnnotatorEffects.fit(anonymous, other, NOMINAL)
    np.testing.assert_allclose(two.effects, one.effects[people], atol=1e-9)


@pytest.mark.parametrize("kind", SCALES)
def test_an_offset_is_what_is_added_to_logits(kind: str) -> None:
    effects = AnnotatorEffects(("x",), np.array([[1.0, 0.0, 0.0, 0.0]]))
    p = np.array([[0.2, 0.3, 0.5]])
    found = effects.predict(p, [["x"]], SCALES[kind])
    moved = expit(logit(0.2) + 1) if kind == "multi-label" else 0.2 * np.e / (0.2 * np.e + 0.8)
    np.testing.assert_allclose(found[0, 0], moved)


def fitted(kind: str, **options: Any) -> tuple[Any, Annotations]:
    data = on_scale(kind, annotators=6)
    member = make_member("nearest", len(data.classes), options)
    lesson = MemberData(
        data.texts,
        lambda epoch: soft_targets(data),
        annotations=data,
        scale=data.scale,
        corpus=tuple(data.texts),
    )
    return member.fit(lesson, random_state=0), data


@pytest.mark.parametrize("kind", SCALES)
def test_an_annotator_without_labels_gets_exactly_the_anonymous_answer(
    kind: str, tmp_path: Path
) -> None:
    member, data = fitted(kind, annotators=True)
    plain, _ = fitted(kind)
    texts = data.texts[:5]
    anonymous = member.predict_proba(texts)
    np.testing.assert_array_equal(anonymous, plain.predict_proba(texts))
    for nobody in (["a stranger"], []):
        probabilities = member.predict_proba(texts, annotators=[nobody] * 5)
        np.testing.assert_array_equal(probabilities, anonymous)
    known = member.predict_proba(texts, annotators=[["person-1"]] * 5)
    assert np.abs(known - anonymous).max() > 1e-6
    both = member.predict_proba(texts, annotators=[["person-1", "a stranger"]] * 5)
    np.testing.assert_allclose(both, (known + anonymous) / 2)
    assert member.known_annotators == tuple(f"person-{i}" for i in range(6))
    assert plain.known_annotators == ()
    member.save(tmp_path)
    again: Any = find_recipe("nearest").load(tmp_path)
    assert again.known_annotators == member.known_annotators
    np.testing.assert_allclose(
        again.predict_proba(texts, annotators=[["person-1"]] * 5), known, atol=1e-6
    )


def strict_and_mild() -> Annotations:
    """Half of the people find twice as much rude as the others."""
    people = on_scale("nominal", 160, annotators=8)
    rng = np.random.default_rng(2)
    soft_labels = people.soft_labels[people.item_codes, 1]
    strict = people.annotator_codes % 2 == 0
    share = np.clip(soft_labels + np.where(strict, 0.35, -0.35), 0, 1)
    return replace(people, label_codes=(rng.random(len(people)) < share).astype(np.int32))


def test_known_annotators_are_predicted_better_than_anonymous_ones(tmp_path: Path) -> None:
    people = strict_and_mild()
    group = Group("nearest", 1, supervision="soft", options={"annotators": True})
    trained = train_members(people, [group], out=tmp_path, jobs=1)
    dev = people.split("dev")
    assert dev.texts is not None
    assert dev.label_codes is not None
    known = {
        str(item): [str(dev.annotators[a]) for a in dev.annotator_codes[dev.item_codes == i]]
        for i, item in enumerate(dev.items)
    }
    from edokit.members.texts import Texts

    texts = Texts(tuple(map(str, dev.items)), tuple(map(str, dev.texts)))
    pairs = score_members(tmp_path, texts, annotators=known, by_annotator=True)
    anonymous = score_members(tmp_path, texts)
    np.testing.assert_array_equal(pairs.anonymous().probabilities, anonymous.probabilities)
    assert pairs.annotators is not None
    pairs = pairs.take(pairs.annotators != "")
    np.testing.assert_allclose(
        anonymous.probabilities, trained.predictions["dev"].probabilities, atol=1e-6
    )
    label = {
        (str(dev.items[i]), str(dev.annotators[a])): code
        for i, a, code in zip(dev.item_codes, dev.annotator_codes, dev.label_codes, strict=True)
    }
    assert pairs.annotators is not None
    pairs = pairs.take(pairs.annotators != "")  # without the anonymous answers
    assert pairs.annotators is not None
    keys = list(zip(map(str, pairs.items), map(str, pairs.annotators), strict=True))
    codes = [label[key] for key in keys]
    row = {str(item): i for i, item in enumerate(anonymous.items)}
    mine = pairs.probabilities[np.arange(len(keys)), 0, codes]
    others = anonymous.probabilities[[row[item] for item, _ in keys], 0, codes]
    assert np.log(mine).mean() > np.log(others).mean() + 0.03


@pytest.mark.filterwarnings("ignore:.*(no annotator|know none|unknown to all)")
def test_the_command_line_predicts_pairs(tmp_path: Path) -> None:
    from edokit import write_annotations

    write_annotations(on_scale("ordinal"), tmp_path / "people.parquet")
    (tmp_path / "asked.csv").write_text("item,annotator\nitem-2,person-0\nitem-2,new\n")
    out = tmp_path / "members"
    data = str(tmp_path / "people.parquet")
    train = ["train", data, "--recipe", "nearest:1", "--option", "annotators=true", "--out", out]
    done = invoke(*train, "--jobs", "1")
    assert done.exit_code == 0, done.output
    assert "dev RPS" in done.output
    assert "Not looked at here: test (" in done.output
    texts = ["--texts", data, "--split", "dev"]
    pairs = str(tmp_path / "pairs.npz")
    items = str(tmp_path / "items.npz")
    asked = ["--annotators", str(tmp_path / "asked.csv"), "--out", pairs]
    assert invoke("score", "--members", out, *texts, *asked).exit_code == 0
    assert invoke("score", "--members", out, *texts, "--out", items).exit_code == 0
    predictions = read_predictions(pairs)
    anonymous = read_predictions(items)
    assert predictions.annotators is not None
    assert predictions.annotators[:2].tolist() == ["person-0", "new"]
    assert set(predictions.annotators[2:]) == {""}  # the anonymous answer of each item
    own = anonymous.probabilities[anonymous.items == "item-2"][0]
    np.testing.assert_array_equal(predictions.probabilities[1], own)
    assert not np.allclose(predictions.probabilities[0], own)


# Bad input


def test_annotators_are_not_learned_from_targets_alone() -> None:
    member = make_member("nearest", 2, {"annotators": True})
    with raises_code("missing-labels"):
        member.fit(MemberData(["a", "b"], lambda epoch: np.eye(2)), random_state=0)


def test_there_is_one_list_of_annotators_per_text() -> None:
    member, data = fitted("nominal", annotators=True)
    with raises_code("lengths-differ", "2", "1"):
        member.predict_proba(data.texts[:2], annotators=[["person-1"]])


def test_a_member_of_one_annotator_knows_no_others() -> None:
    group = Group("nearest", 1, supervision="per-annotator", options={"annotators": True})
    with raises_code("conflicting-options"):
        train_members(on_scale("nominal"), [group], jobs=1)


@pytest.mark.parametrize("recipe", ["linear", "encoder"])
def test_recipes_that_no_longer_learn_annotators_say_what_does(recipe: str) -> None:
    with raises_code("retired-option") as raised:
        Group(recipe, 1, options={"annotators": True}).checked()
    assert f"the recipe '{recipe}'" in str(raised.value)
    assert "ensembles learn how people differ" in raised.value.hint
    with raises_code("retired-option"):
        parse_groups(recipe, options={"annotators": "true"})
    mixed = parse_groups(f"{recipe}:2,nearest:1", options={"annotators": "true"})
    assert [group.options.get("annotators") for group in mixed] == [None, True]


def test_the_spread_of_effects_is_that_of_people_whose_effects_are_known():
    rng = np.random.default_rng(0)
    true = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, -0.2], [0.0, -0.2, 2.0]])
    effects = rng.multivariate_normal(np.zeros(3), true, size=20_000)
    learned = _covariance(effects, np.zeros((len(effects), 3, 3)))
    np.testing.assert_allclose(learned, true, atol=0.06)
    # What labels leave open counts as spread: twice the variance, half of it seen.
    unsure = _covariance(effects, np.tile(true, (len(effects), 1, 1)))
    np.testing.assert_allclose(unsure, 2 * true, atol=0.06)


def test_few_people_shrink_the_spread_of_effects_towards_one_that_is_alike_in_all_classes():
    effects = np.array([[2.0, 0.0, 1.0], [-2.0, 0.0, -1.0]])
    learned = _covariance(effects, np.zeros((2, 3, 3)))
    # As many more people as there are effects, with the mean spread of the first two of them.
    np.testing.assert_allclose(np.diag(learned), [(8 + 3 * 2) / 5, (0 + 3 * 2) / 5, 1.0])
    assert learned[0, 2] == pytest.approx(4 / 5)


@pytest.mark.parametrize("kind", SCALES)
def test_effects_are_shrunk_as_far_as_their_labels_cannot_tell(kind: str) -> None:
    anonymous, annotations, offsets = simulated(kind, 30, annotators=80)
    effects = AnnotatorEffects.fit(anonymous, annotations, SCALES[kind]).effects[:, :-1]
    if not SCALES[kind].is_multi_label:
        effects = effects - effects.mean(axis=1, keepdims=True)
    # The slope of the true offsets on the estimated ones: above 1 they are shrunk too far.
    slope = (effects * offsets).sum() / np.square(effects).sum()
    assert 0.9 < slope < 1.2
