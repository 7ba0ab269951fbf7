"""Where it is known who labels a text, members that know annotators answer for these."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people
from tiny_transformer import tiny_model

from commands import printed
from edokit import EDOWarning, read_predictions
from edokit._io.tables import write_table
from edokit.members import parse_groups, score_members, train_members
from edokit.members.recipes.transformer import TransformerMember
from edokit.members.texts import Texts, read_annotators
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:all members of a group:edokit._errors.EDOWarning")
PEOPLE = small_people()
TRUST = ["member_cases"]
POOL = "member_cases:PeopleMember:2"
NEW = Texts(("a", "b", "c"), ("warm tea", "awful nonsense", "dull music"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool")
    train_members(PEOPLE, parse_groups(POOL), out=folder, jobs=1)
    return folder


def mean_answers() -> dict[str, float]:
    """How often each annotator said 1 in train."""
    train = PEOPLE.split("train")
    return {
        str(name): float(train.label_codes[train.annotator_codes == code].mean())
        for code, name in enumerate(train.annotators)
    }


def test_members_answer_for_those_who_judge(pool: Path) -> None:
    judges = {"a": ["person-0"], "b": ["person-1", "person-2"], "c": ["person-2"]}
    scored = score_members(pool, NEW, trust=TRUST, annotators=judges)
    own = mean_answers()
    wanted = [own["person-0"], (own["person-1"] + own["person-2"]) / 2, own["person-2"]]
    np.testing.assert_allclose(scored.probabilities[:, 0, 1], wanted, atol=1e-6)
    np.testing.assert_array_equal(scored.probabilities[:, 0], scored.probabilities[:, 1])


def test_a_text_without_known_judges_gets_the_average_over_all(pool: Path) -> None:
    judges = {"a": ["person-0"], "b": ["somebody else"]}
    with (
        pytest.warns(EDOWarning, match="1 of 3 texts"),
        pytest.warns(EDOWarning, match="1 of 2 annotators .*'somebody else'"),
    ):
        scored = score_members(pool, NEW, trust=TRUST, annotators=judges)
    everyone = score_members(pool, NEW, trust=TRUST)
    np.testing.assert_array_equal(scored.probabilities[1:], everyone.probabilities[1:])
    assert abs(scored.probabilities[0, 0, 1] - everyone.probabilities[0, 0, 1]) > 1e-3


def test_members_that_cannot_tell_people_apart_answer_as_always(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups(f"linear:1,{POOL}"), out=tmp_path, jobs=1)
    judges = {item: ["person-0"] for item in NEW.items}
    scored = score_members(tmp_path, NEW, trust=TRUST, annotators=judges)
    as_always = score_members(tmp_path, NEW, trust=TRUST)
    changed = np.abs(scored.probabilities - as_always.probabilities).max(axis=(0, 2)) > 1e-3
    assert changed.tolist() == [False, True, True]


def test_judges_of_other_items_are_refused(pool: Path) -> None:
    with raises_code("unknown-item"):
        score_members(pool, NEW, trust=TRUST, annotators={"z": ["person-0"]})


def test_judges_come_from_a_table_without_answers(tmp_path: Path) -> None:
    table = "item,annotator\n1,ann\n1,bob\n2,ann\n1,ann\n"
    (tmp_path / "judges.csv").write_text(table)
    assert read_annotators(tmp_path / "judges.csv") == {"1": ("ann", "bob"), "2": ("ann",)}
    (tmp_path / "other.csv").write_text(table.replace("annotator", "who"))
    assert read_annotators(tmp_path / "other.csv", columns={"annotator": "who", "item": "id"}) == {
        "1": ("ann", "bob"),
        "2": ("ann",),
    }


def test_judges_come_from_any_source_of_annotations(tmp_path: Path) -> None:
    items = {"1": {"text": "tea", "annotators": "Ann1,Ann2", "annotations": "0,1"}}
    for entry in items.values():
        entry |= {"number of annotations": 2, "hard_label": "0", "lang": "en", "split": "dev"}
        entry["soft_label"] = {"0": 0.5, "1": 0.5}
    (tmp_path / "HS-Brexit_dev.json").write_text(json.dumps(items))
    assert read_annotators(tmp_path / "HS-Brexit_dev.json") == {"dev-1": ("Ann1", "Ann2")}


@pytest.mark.parametrize(
    ("table", "code", "fact"),
    [
        ("item,label\n1,0\n", "missing-column", "'annotator'"),
        ("item,annotator\n1,ann\n2,\n", "missing-value", "row 3"),
        ("item,annotator\n,ann\n", "missing-value", "row 2"),
    ],
)
def test_bad_tables_of_judges_are_refused(tmp_path: Path, table: str, code: str, fact: str) -> None:
    (tmp_path / "judges.csv").write_text(table)
    with raises_code(code, fact):
        read_annotators(tmp_path / "judges.csv")


def test_the_command_scores_with_judges(tmp_path: Path) -> None:
    write_table(PEOPLE.to_table(), tmp_path / "people.parquet")
    options = {"model": tiny_model(tmp_path / "tiny"), "annotators": True, "epochs": 1}
    pool = parse_groups("transformer:1", options={**options, "learning_rate": 1e-2})
    train_members(PEOPLE, pool, out=tmp_path / "m", device="cpu", jobs=1)
    done = printed(
        *("score", "--members", tmp_path / "m", "--texts", tmp_path / "people.parquet"),
        *("--split", "dev"),
        *("--judges", tmp_path / "people.parquet", "--out", tmp_path / "p.npz", "--json"),
    )
    assert json.loads(done)["judges"] == str(tmp_path / "people.parquet")
    scored = read_predictions(tmp_path / "p.npz")
    member = TransformerMember.load(tmp_path / "m" / "members" / "transformer-01", device="cpu")
    dev = PEOPLE.split("dev")
    assert dev.texts is not None
    # Here everybody labelled everything.
    each = [
        member.predict_proba(dev.texts, annotators=[[name]] * len(dev.texts))
        for name in dev.annotators
    ]
    wanted = np.mean(each, axis=0)
    np.testing.assert_allclose(scored.probabilities[:, 0], wanted, atol=1e-6)


def test_judges_are_for_trained_members(tmp_path: Path) -> None:
    with raises_code("inapplicable-option", "judges"):
        printed(
            *("score", "--model", "x", "--texts", tmp_path / "t.csv", "--out", tmp_path / "p.npz"),
            *("--judges", tmp_path / "j.csv"),
        )
