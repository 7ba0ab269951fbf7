"""Members that are one annotator each predict for that annotator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people
from test_judges import NEW

from commands import printed
from edokit import EDOWarning, read_predictions
from edokit._io.tables import write_table
from edokit.members import Group, parse_groups, score_members, train_members
from edokit.members.plan import member_name
from edokit.members.texts import Texts
from edokit.predictions.shards import describe_predictions
from tests.errors import raises_code

PEOPLE = small_people()
NAMES = ["person-0", "person-1", "person-2"]
ASKED = {"a": ["person-1"], "b": ["person-0", "person-2"], "c": ["person-2"]}


def options_of(recipe: str, folder: Path) -> dict[str, Any]:
    if recipe == "sklearn":
        return {"estimator": "sklearn.naive_bayes.ComplementNB()"}
    if recipe == "linear":
        return {}
    from tiny_transformer import tiny_model

    model = {"model": tiny_model(folder / "tiny")}
    return model if recipe == "encoder" else {**model, "epochs": 1, "learning_rate": 1e-2}


@pytest.mark.parametrize("recipe", ["linear", "sklearn", "encoder", "transformer"])
def test_the_member_of_an_annotator_predicts_for_that_annotator(
    recipe: str, tmp_path: Path
) -> None:
    how = {"supervision": "per-annotator", "options": options_of(recipe, tmp_path)}
    groups = parse_groups(f"{recipe}:3", **how)
    trained = train_members(PEOPLE, groups, out=tmp_path / "m", jobs=1)
    members = trained.predictions["dev"].members
    assert members == tuple(f"{recipe}-0{k + 1}-{name}" for k, name in enumerate(NAMES))
    listed = [member["targets"]["annotator"] for member in trained.manifest["members"]]
    assert listed == NAMES
    each = score_members(tmp_path / "m", NEW)
    scored = score_members(tmp_path / "m", NEW, annotators=ASKED, by_annotator=True)
    assert scored.members == (recipe,)
    assert list(zip(scored.items, scored.annotators, strict=True)) == [
        *((item, name) for item, names in ASKED.items() for name in names),
        *((item, "") for item in NEW.items),
    ]
    mean = each.probabilities.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scored.anonymous().probabilities, mean, atol=1e-7)
    for row, (item, name) in enumerate(zip(scored.items, scored.annotators, strict=True)):
        if not name:
            break
        own = each.probabilities[list(NEW.items).index(item), NAMES.index(name)]
        np.testing.assert_array_equal(scored.probabilities[row, 0], own)


def test_others_predict_as_always_and_strangers_get_the_mean(tmp_path: Path) -> None:
    groups = [
        Group("linear", 2, "people", supervision="per-annotator"),
        Group("linear", 2, "crowd"),
    ]
    train_members(PEOPLE, groups, out=tmp_path, jobs=1)
    asked = {"a": ["person-0", "a stranger"], "b": ["person-2"]}
    with pytest.warns(EDOWarning) as noted:
        scored = score_members(tmp_path, NEW, annotators=asked, by_annotator=True)
    told = " / ".join(str(one.message) for one in noted)
    assert "1 of 3 texts has no annotator and only an anonymous" in told
    assert "2 of 3 annotators are unknown to all members" in told
    assert "'a stranger', 'person-2'" in told
    assert len(noted) == 2
    assert scored.members == ("people", "crowd-01", "crowd-02")
    assert scored.groups == ("people", "crowd", "crowd")
    each = score_members(tmp_path, NEW).probabilities
    texts = [0, 0, 1, 0, 1, 2]
    np.testing.assert_array_equal(scored.probabilities[:, 1:], each[texts][:, 2:])
    np.testing.assert_array_equal(scored.probabilities[0, 0], each[0, 0])
    mean = each[:, :2].mean(axis=1)
    np.testing.assert_allclose(scored.probabilities[1:, 0], mean[[0, 1, 0, 1, 2]], atol=1e-7)


def test_heads_of_annotators_predict_for_theirs(tmp_path: Path) -> None:
    groups = parse_groups("member_cases:PeopleMember:1")
    train_members(PEOPLE, groups, out=tmp_path, jobs=1)
    trust = ["member_cases"]
    scored = score_members(tmp_path, NEW, trust=trust, annotators=ASKED, by_annotator=True)
    for name in NAMES:
        single_predictions = score_members(
            tmp_path, NEW, trust=trust, annotators={item: [name] for item in NEW.items}
        )
        for row in np.flatnonzero(scored.annotators == name):
            item = list(NEW.items).index(scored.items[row])
            np.testing.assert_array_equal(
                scored.probabilities[row], single_predictions.probabilities[item]
            )


def test_one_training_predicts_items_and_pairs_as_scoring_does(tmp_path: Path) -> None:
    options = {**options_of("transformer", tmp_path), "annotators": True}
    groups = parse_groups("transformer:1", supervision="soft", options=options)
    trained = train_members(PEOPLE, groups, out=tmp_path / "m", jobs=1)
    dev = PEOPLE.split("dev")
    pairs = trained.predictions["dev-pairs"]
    texts = Texts(tuple(dev.items), tuple(dev.texts))
    asked = {item: [*NAMES, "stranger"] for item in dev.items}
    with pytest.warns(EDOWarning, match="1 of 4 annotators"):
        scored = score_members(tmp_path / "m", texts, annotators=asked, by_annotator=True)
    rows = {pair: row for row, pair in enumerate(zip(scored.items, scored.annotators, strict=True))}
    same = [rows[pair] for pair in zip(pairs.items, pairs.annotators, strict=True)]
    np.testing.assert_allclose(scored.probabilities[same], pairs.probabilities, atol=1e-6)
    strangers = [rows[item, "stranger"] for item in dev.items]
    anonymous = score_members(tmp_path / "m", texts).probabilities
    np.testing.assert_array_equal(scored.probabilities[strangers], anonymous)
    np.testing.assert_array_equal(scored.anonymous().probabilities, anonymous)


@pytest.mark.parametrize("name", ["panel.txt", "panel.csv"])
def test_annotators_alone_are_asked_about_every_item(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(
        "person-1\nnobody\n" if name.endswith("txt") else "annotator,weight\nperson-1,2\nnobody,1\n"
    )
    rows = map(",".join, zip(NEW.items, NEW.texts, strict=True))
    (tmp_path / "texts.csv").write_text("\n".join(["item,text", *rows]))
    train_members(PEOPLE, parse_groups("linear:3", supervision="per-annotator"), out=tmp_path / "m")
    given = ("--members", tmp_path / "m", "--texts", tmp_path / "texts.csv", "--annotators")
    with pytest.warns(EDOWarning, match="1 of 2 annotators"):
        printed("score", *given, tmp_path / name, "--out", tmp_path / "p.npz")
    asked = {item: ["person-1", "nobody"] for item in NEW.items}
    scored = read_predictions(tmp_path / "p.npz")
    with pytest.warns(EDOWarning):
        wanted = score_members(tmp_path / "m", NEW, annotators=asked, by_annotator=True)
    assert scored.annotators.tolist() == wanted.annotators.tolist()
    np.testing.assert_array_equal(scored.probabilities, wanted.probabilities)
    (tmp_path / "empty.txt").write_text("\n")
    with raises_code("empty-panel"):
        printed("score", *given, tmp_path / "empty.txt", "--out", tmp_path / "q.npz")


def test_the_command_writes_a_row_per_item_and_annotator(tmp_path: Path) -> None:
    write_table(PEOPLE.to_table(), tmp_path / "people.parquet")
    groups = parse_groups("linear:3", supervision="per-annotator")
    train_members(PEOPLE, groups, out=tmp_path / "m", jobs=1)
    dev = PEOPLE.split("dev")
    given = ("--members", tmp_path / "m", "--texts", tmp_path / "people.parquet", "--split", "dev")
    for ending in ("npz", "parquet"):
        out = tmp_path / f"pairs.{ending}"
        done = json.loads(
            printed(
                "score", *given, "--annotators", tmp_path / "people.parquet", "--out", out, "--json"
            )
        )
        assert (done["items"], done["rows"]) == (len(dev.items), len(dev) + len(dev.items))
        assert done["annotators"] == 3
        pairs = read_predictions(out)
        assert (pairs.annotators == "").sum() == len(dev.items)
        pairs = pairs.take(pairs.annotators != "")
        assert set(zip(pairs.items, pairs.annotators, strict=True)) == {
            (dev.items[i], dev.annotators[a])
            for i, a in zip(dev.item_codes, dev.annotator_codes, strict=True)
        }
        assert describe_predictions(out)["annotators"] == 3
    asked = ("--annotators", tmp_path / "j.csv", "--out", tmp_path / "p.npz")
    with raises_code("inapplicable-option", "annotators"):
        printed("score", "--model", "x", "--texts", tmp_path / "t.csv", *asked)
    with raises_code("conflicting-options", "--judges"):
        printed("score", *given, "--judges", "x.csv", *asked)


def test_names_of_annotators_become_parts_of_folder_names() -> None:
    names = ["Ann B.", "../../x", "Ωμέγα", "7", "a@b.org", "x" * 99]
    assert [member_name("g", number, name) for number, name in enumerate(names)] == [
        *("g-01-Ann-B", "g-02-x", "g-03", "g-04-7", "g-05-a-b.org", f"g-06-{'x' * 40}")
    ]
