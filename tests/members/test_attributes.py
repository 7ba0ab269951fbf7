"""Attributes of annotators as inputs of members: off unless asked for, and shrunken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from member_cases import on_scale, small_people
from scipy.special import softmax
from test_judges import NEW

from commands import invoke
from edokit._errors import EDOWarning, InputError
from edokit._types import Floats
from edokit.annotations import Annotations
from edokit.annotator_effects import AnnotatorEffects, KnownAnnotators
from edokit.datasets import write_annotations
from edokit.members import Group, score_members, train_members
from edokit.members.recipe import MemberData, find_recipe, make_member
from edokit.members.supervision import soft
from edokit.members.training_data import TrainingData
from edokit.predictions import read_predictions
from edokit.rows import Rows
from edokit.scales import NOMINAL

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tied"),
    pytest.mark.usefixtures("own_cache"),
]


def with_attributes(people: Annotations, **attributes: list[str]) -> Annotations:
    return replace(
        people, attributes={name: np.array(v, dtype=object) for name, v in attributes.items()}
    )


def camps(seed: int = 0, annotators: int = 90, labels: int = 12) -> tuple[Floats, Annotations]:
    """Anonymous answers, and annotators of three towns who differ by town, and little besides."""
    rng = np.random.default_rng(seed)
    n = 400
    z, town = rng.normal(size=(n, 2)), np.arange(annotators) % 3
    effect = np.array([-1.5, 0.0, 1.5])[town] + 0.2 * rng.normal(size=annotators)
    whose = np.repeat(np.arange(annotators), labels).astype(np.int32)
    items = rng.integers(0, n, len(whose)).astype(np.int32)
    p = softmax(z[items] + np.stack([0 * effect, effect], axis=1)[whose], axis=1)[:, 1]
    found = Annotations(
        Rows.of(f"item{i}" for i in range(n)),
        np.array([f"person{a}" for a in range(annotators)], dtype=object),
        ("no", "yes"),
        items,
        whose,
        (rng.random(len(whose)) < p).astype(np.int32),
    )
    return softmax(z, axis=1), with_attributes(found, town=[("rye", "ash", "elm")[t] for t in town])


def test_effects_of_values_converge_to_the_true_ones() -> None:
    anonymous, people = camps(annotators=300, labels=40)
    found = AnnotatorEffects.fit(anonymous, people, NOMINAL, attributes=["town"])
    assert [value.value for value in found.known.values] == ["ash", "elm", "rye"]
    effects = found.effects[-3:, 1] - found.effects[-3:, 0]
    # Only differences matter: what they have in common is in the anonymous answer.
    np.testing.assert_allclose(effects - effects[0], [0, 1.5, -1.5], atol=0.2)
    own = found.effects[:-3, 1] - found.effects[:-3, 0]
    assert own.std() < 0.4


def test_few_labels_of_each_are_enough_where_an_attribute_explains_them() -> None:
    anonymous, people = camps()
    one = {"stranger": {"town": "elm"}}
    texts = [["stranger"]] * len(anonymous)
    moved = []
    for attributes in ((), ("town",)):
        found = AnnotatorEffects.fit(anonymous, people, NOMINAL, attributes=attributes)
        answers = found.predict(anonymous, texts, NOMINAL, one)
        moved.append(
            np.log(answers[:, 1] / answers[:, 0]) - np.log(anonymous[:, 1] / anonymous[:, 0])
        )
    np.testing.assert_array_equal(moved[0], 0.0)
    assert 1.0 < moved[1].mean() < 2.0


def test_an_attribute_that_explains_nothing_has_next_to_no_effect() -> None:
    anonymous, people = camps(annotators=300, labels=40)
    shuffled = np.random.default_rng(3).permutation(people.attributes["town"])
    people = with_attributes(people, shoe=shuffled.tolist())
    effects = AnnotatorEffects.fit(anonymous, people, NOMINAL, attributes=["shoe"]).effects
    assert np.abs(effects[-3:]).max() < 0.15


def test_ids_order_and_names_do_not_matter() -> None:
    anonymous, people = camps()
    order = np.random.default_rng(1).permutation(len(people.annotators))
    place = np.argsort(order).astype(np.int32)
    other = replace(
        people,
        annotators=people.annotators[order],
        annotator_codes=place[people.annotator_codes],
        attributes={"town": people.attributes["town"][order]},
    )
    one, two = (
        AnnotatorEffects.fit(anonymous, each, NOMINAL, attributes=["town"])
        for each in (people, other)
    )
    n = len(order)
    np.testing.assert_allclose(two.effects[:n], one.effects[:n][order], atol=1e-8)
    np.testing.assert_allclose(two.effects[n:], one.effects[n:], atol=1e-8)


def test_many_numbers_become_ranges_and_gaps_no_value() -> None:
    ages = [str(18 + a) for a in range(50)] + [""]
    people = with_attributes(small_people(4, annotators=51), age=ages)
    known = KnownAnnotators.of(people, ["age"])
    assert len(known.values) == 5
    assert np.bincount(known.codes[:-1, 1] - 51).tolist() == [10] * 5
    assert known.codes[-1].tolist() == [50, -1]
    asked = {"young": {"age": "3"}, "old": {"age": "103"}, "odd": {"age": "unknown"}}
    _, codes = known.asked([["young"], ["old"], ["odd"], ["nobody"]], 4, asked)
    assert codes.tolist() == [[-1, 51], [-1, 55], [-1, -1], [-1, -1]]


AGES = ["20", "20", "20", "60", "60", ""]
WHERE = ["rye", "ash", "rye", "ash", "rye", "ash"]


def fitted(recipe: str, model: str, kind: str = "nominal", **options: Any) -> tuple[Any, Any]:
    people = with_attributes(on_scale(kind, annotators=6), age=AGES, town=WHERE)
    data = TrainingData.from_annotations(people, attributes=["age", "town"]).annotations
    more = {} if recipe == "linear" else {"model": model}
    if recipe == "transformer":
        more |= {"epochs": 2, "learning_rate": 1e-2, "annotator_learning_rate": 1e-1}
    member = make_member(recipe, len(data.classes), {**more, **options}, "cpu")
    lesson = MemberData(
        data.texts,
        lambda epoch: soft(data),
        annotations=data,
        scale=data.scale,
        corpus=tuple(data.texts),
    )
    return member.fit(lesson, random_state=0), data


@pytest.mark.filterwarnings("ignore:.*no age")
@pytest.mark.parametrize("recipe", ["linear", "encoder", "transformer"])
def test_unseen_annotators_are_answered_by_their_attributes(
    recipe: str, model: str, tmp_path: Path
) -> None:
    member, data = fitted(recipe, model, annotators=True, attributes="age, town")
    assert tuple(member.known.attributes) == ("age", "town")
    texts = list(data.texts[:5])
    anonymous = member.predict_proba(texts)

    def answer(who: str, **attributes: str) -> Floats:
        found: Floats = member.predict_proba(
            texts, annotators=[[who]] * 5, attributes={who: attributes}
        )
        return found

    np.testing.assert_array_equal(answer("new"), anonymous)
    np.testing.assert_array_equal(answer("new", age="33", town="elm"), anonymous)
    np.testing.assert_array_equal(member.predict_proba(texts, annotators=[["new"]] * 5), anonymous)
    young, both = answer("new", age="20"), answer("new", age="20", town="rye")
    assert np.abs(young - anonymous).max() > 1e-6
    assert np.abs(both - young).max() > 1e-6
    np.testing.assert_array_equal(answer("other", age="20", shoe="red"), young)
    # What was learned of a known annotator stays, whatever attributes are given now.
    np.testing.assert_array_equal(answer("person-1", age="60"), answer("person-1"))
    assert np.abs(answer("person-1") - answer("person-3")).max() > 1e-6
    member.save(tmp_path)
    again: Any = find_recipe(recipe).load(tmp_path)
    assert tuple(again.known.attributes) == ("age", "town")
    for one in ({"age": "20", "town": "rye"}, {}):
        found = again.predict_proba(texts, annotators=[["new"]] * 5, attributes={"new": one})
        np.testing.assert_allclose(found, answer("new", **one), atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*no age")
@pytest.mark.parametrize("recipe", ["linear", "transformer"])
def test_attributes_alone_answer_alike_for_all_who_share_them(recipe: str, model: str) -> None:
    member, data = fitted(recipe, model, attributes="age,town")
    texts = list(data.texts[:5])
    each = [member.predict_proba(texts, annotators=[[f"person-{a}"]] * 5) for a in range(6)]
    np.testing.assert_array_equal(each[0], each[2])  # both 20 and of rye
    assert np.abs(each[0] - each[1]).max() > 1e-6
    new = member.predict_proba(
        texts, annotators=[["new"]] * 5, attributes={"new": {"age": "20", "town": "rye"}}
    )
    np.testing.assert_array_equal(new, each[0])


@pytest.mark.filterwarnings("ignore:.*no age")
@pytest.mark.parametrize("kind", ["ordinal", "multi-label"])
def test_attributes_go_with_every_scale(kind: str, model: str) -> None:
    member, data = fitted("linear", model, kind, attributes="age")
    found = member.predict_proba(
        data.texts[:3], annotators=[["new"]] * 3, attributes={"new": {"age": "60"}}
    )
    assert np.isfinite(found).all()
    assert np.abs(found - member.predict_proba(data.texts[:3])).max() > 1e-6


def test_attributes_are_off_unless_asked_for() -> None:
    plain = small_people(annotators=6)
    described = with_attributes(plain, town=WHERE)
    one, two = map(TrainingData.from_annotations, (plain, described))
    assert one.digest == two.digest
    assert not two.annotations.attributes
    asked = TrainingData.from_annotations(described, attributes=["town"])
    assert asked.digest != one.digest
    assert [*asked.annotations.attributes["town"]] == [*WHERE]
    trained = train_members(described, [Group("linear", 1, options={"annotators": True})], jobs=1)
    assert "attributes" not in trained.manifest["data"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members of annotators whose strictness goes with their town."""
    out = tmp_path_factory.mktemp("attributes")
    people = small_people(160, annotators=6)
    rng, strict = np.random.default_rng(2), np.array(WHERE)[people.annotator_codes] == "rye"
    share = np.clip(people.soft_labels[people.item_codes, 1] + np.where(strict, 0.4, -0.4), 0, 1)
    people = replace(people, label_codes=(rng.random(len(people)) < share).astype(np.int32))
    # One annotator labels dev and test alone, and is known by the town.
    assert people.splits is not None
    late = (people.annotator_codes == 5) & (people.splits[people.item_codes] == "train")
    people = replace(
        with_attributes(people, town=WHERE),
        item_codes=people.item_codes[~late],
        annotator_codes=people.annotator_codes[~late],
        label_codes=people.label_codes[~late],  # type: ignore[index]
    )
    write_annotations(people, out / "people.csv")
    options = {"annotators": True, "attributes": "town"}
    group = Group("linear", 1, supervision="soft", options=options)
    train_members(people, [group], out=out / "members", jobs=1)
    return out


def test_training_and_scoring_take_the_attributes_of_new_annotators(trained: Path) -> None:
    manifest = json.loads((trained / "members/manifest.json").read_text())
    assert manifest["data"]["attributes"] == ["town"]
    pairs = read_predictions(trained / "members/predictions/dev-pairs.npz")
    assert pairs.annotators is not None
    nobody = pairs.anonymous()
    late = pairs.take(pairs.annotators == "person-5")
    apart = late.probabilities[:, 0, 1] - nobody.align(late.items).probabilities[:, 0, 1]
    assert (apart < -0.01).all()  # of ash, who are mild
    with pytest.warns(EDOWarning) as noted:
        scored = score_members(
            trained / "members",
            NEW,
            annotators=dict.fromkeys(NEW.items, ("person-0", "strict", "mild", "unknown")),
            by_annotator=True,
            attributes={
                "strict": {"town": "rye"},
                "mild": {"town": "ash"},
                "unknown": {"town": "a town without annotators"},
            },
        )
    found = " / ".join(str(one.message) for one in noted)
    assert (
        "2 of 4 annotators are unknown to members, and answered by town: 'mild', 'strict'" in found
    )
    assert "1 of 4 annotators is unknown to all members, and answered anonymously" in found
    p = {
        name: scored.probabilities[scored.annotators == name][:, 0, 1]
        for name in ("mild", "strict", "unknown", "")
    }
    assert (p["mild"] < p[""]).all()
    assert (p[""] < p["strict"]).all()
    np.testing.assert_array_equal(p["unknown"], p[""])


def test_attributes_are_by_annotator_and_may_be_numbers(trained: Path) -> None:
    how: Any = {"annotators": dict.fromkeys(NEW.items, ("new",)), "by_annotator": True}
    for wrong in ({"new": "rye"}, ["new"]):
        with pytest.raises(InputError, match=r"attributes must map .*; write \{'ann'"):
            score_members(trained / "members", NEW, attributes=wrong, **how)
    known = KnownAnnotators.of(with_attributes(small_people(), age=["3", "4", "3"]), ["age"])
    assert known.seen({"age": "4"}) == ["age"]
    assert known.seen({"age": "5"}) == known.seen({}) == []
    with pytest.warns(EDOWarning, match="answered anonymously"):
        score_members(trained / "members", NEW, attributes={"new": {"town": 3}}, **how)


def test_cards_name_the_attributes_and_how_to_use_them(trained: Path, tmp_path: Path) -> None:
    from edokit.ensemble import fit

    card = json.loads((trained / "members/members/linear-01/member.json").read_text())
    assert card["details"]["attributes"] == "town"
    assert "consent" in card["attributes_note"]
    pairs = trained / "members/predictions/dev-pairs.npz"
    how: Any = {"split": "dev", "read_options": {"learn": "pairs"}}
    fit(pairs, trained / "people.csv", out=tmp_path / "ensemble", **how)
    text = (tmp_path / "ensemble/README.md").read_text()
    assert (
        "1 member used attributes of the annotators, beside or instead of their ids: town." in text
    )
    assert "never infer them" in text
    plain = train_members(small_people(), [Group("linear", 2)], out=tmp_path / "plain", jobs=1)
    write_annotations(small_people(), tmp_path / "people.csv")
    dev = plain.predictions["dev"]
    fit(dev, tmp_path / "people.csv", split="dev", out=tmp_path / "other")
    assert "attributes" not in (tmp_path / "other/README.md").read_text().lower()


def test_the_command_line_reads_attributes_of_new_annotators(trained: Path, tmp_path: Path) -> None:
    rows = map(",".join, zip(NEW.items, NEW.texts, strict=True))
    (tmp_path / "texts.csv").write_text("\n".join(["item,text", *rows]))
    (tmp_path / "odd.csv").write_text("item,annotator,town\na,x,rye\nb,x,ash\n")
    given = ("score", "--members", trained / "members", "--texts", tmp_path / "texts.csv")
    out = ("--out", tmp_path / "p.npz")
    done = invoke(*given, "--annotators", tmp_path / "odd.csv", *out)
    assert "annotator 'x' has several values of 'town'" in str(done.exception)
    (tmp_path / "panel.csv").write_text("annotator,town\nstrict,rye\nmild,ash\n")
    with pytest.warns(EDOWarning, match="answered by town"):
        done = invoke(*given, "--annotators", tmp_path / "panel.csv", *out)
    assert done.exit_code == 0, done.output
    found = read_predictions(tmp_path / "p.npz")
    p = {
        name: found.probabilities[found.annotators == name][:, 0, 1] for name in ("mild", "strict")
    }
    assert (p["mild"] < p["strict"]).all()


def test_a_table_of_people_is_enough_to_predict_pairs_and_panels(
    trained: Path, tmp_path: Path
) -> None:
    from edokit.ensemble import fit

    how: Any = {"split": "dev", "read_options": {"learn": "pairs"}}
    pairs = trained / "members/predictions/dev-pairs.npz"
    fit(pairs, trained / "people.csv", out=tmp_path / "ensemble", **how)
    (tmp_path / "new.csv").write_text("annotator,town\nstrict,rye\nmild,ash\nperson-0,rye\n")
    (tmp_path / "panel.csv").write_text("attribute,value,share\ntown,ash,1\n")
    rows = map(",".join, zip(NEW.items, NEW.texts, strict=True))
    (tmp_path / "texts.csv").write_text("\n".join(["item,text", *rows]))
    given = ("predict", tmp_path / "ensemble", "--members", trained / "members")
    given = (*given, "--texts", tmp_path / "texts.csv", "--annotators", tmp_path / "new.csv")
    with pytest.warns(EDOWarning, match="2 of 3 annotators are unknown to members"):
        done = invoke(*given, "--out", tmp_path / "pairs.csv", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["items"], found["pairs"]) == (3, 9)
    table = pd.read_csv(tmp_path / "pairs.csv", keep_default_na=False)
    assert table["annotator"].tolist() == [*["strict", "mild", "person-0"] * 3, *[""] * 3]
    with pytest.warns(EDOWarning, match="1 of 1 annotator is unknown to members"):
        done = invoke(*given, "--panel", tmp_path / "panel.csv", "--out", tmp_path / "ash.csv")
    assert done.exit_code == 0, done.output
    ash = pd.read_csv(tmp_path / "ash.csv")
    mild = table[table["annotator"] == "mild"]
    np.testing.assert_allclose(ash["p_1"], mild["p_1"])
    done = invoke(
        *("predict", tmp_path / "ensemble", "--predictions", pairs),
        *("--annotators", tmp_path / "new.csv", "--out", tmp_path / "more.csv"),
    )
    assert "annotators and predictions are given, but no panel" in str(done.exception)


@pytest.mark.parametrize(
    ("attributes", "options", "words"),
    [
        ({"town": WHERE}, {"attributes": "twon"}, "have no attribute 'twon'"),
        ({}, {"attributes": "town"}, "have no attribute 'town'"),
        ({"town": [""] * 6}, {"attributes": "town"}, "no annotator has a value of 'town'"),
    ],
)
def test_attributes_that_annotators_do_not_have_are_refused(
    attributes: Any, options: Any, words: str
) -> None:
    people = with_attributes(small_people(annotators=6), **attributes)
    with pytest.raises(InputError, match=words):
        train_members(people, [Group("linear", 1, options=options)], jobs=1)


def test_what_varies_within_an_annotator_is_no_attribute() -> None:
    table = small_people(8).to_table().to_pydict()
    table["mood"] = ["good", "bad"] * (len(table["item"]) // 2)
    people = Annotations.from_table(table)
    with pytest.raises(InputError, match="'mood' is not the same in all rows of an annotator"):
        train_members(people, [Group("linear", 1, options={"attributes": "mood"})], jobs=1)


def test_gaps_and_attributes_that_can_teach_nothing_are_noted() -> None:
    people = with_attributes(small_people(annotators=6), age=AGES, planet=["earth"] * 6)
    with pytest.warns(EDOWarning) as noted:
        TrainingData.from_annotations(people, attributes=["age", "planet"])
    found = " / ".join(str(one.message) for one in noted)
    assert "1 of 6 annotators has no age" in found
    assert "all annotators have planet 'earth'" in found


def test_members_of_one_annotator_have_no_attributes() -> None:
    group = Group("linear", 1, supervision="per-annotator", options={"attributes": "town"})
    with pytest.raises(InputError, match="attributes='town', but with supervision='per-annotator'"):
        group.checked()


@pytest.mark.filterwarnings("ignore:.*no age")
@pytest.mark.parametrize("damage", ["rows_of_annotators", "is_range", "attribute"])
def test_damaged_attributes_are_refused(damage: str, model: str, tmp_path: Path) -> None:
    member, _ = fitted("linear", model, annotators=True, attributes="age,town")
    member.save(tmp_path)
    file = tmp_path / "linear.npz"
    with np.load(file) as kept:
        arrays = dict(kept)
    broken = {
        "rows_of_annotators": arrays["rows_of_annotators"] + 40,
        "is_range": np.ones_like(arrays["is_range"]),
        "attribute": arrays["attribute"][1:],
    }
    np.savez(file, **{**arrays, damage: broken[damage]})
    with pytest.raises(InputError, match="damaged"):
        find_recipe("linear").load(tmp_path)
