"""The whole diagnosis: what it holds, what it advises, and what it does with poor data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from diagnose_cases import camps, noise

from edokit import Annotations, diagnose, read_annotations, write_annotations
from edokit.analysis.diagnose import advice, overview
from edokit.analysis.diagnose.result import Diagnosis
from tests.errors import raises_code

KEYS = {
    *("items", "annotators", "annotations", "classes", "scale", "coverage", "balance"),
    *(
        "agreement",
        "entropy",
        "people",
        "groups",
        "clusters",
        "attributes",
        "variance",
        "test",
        "careless",
        "advice",
        "limits",
        "commands",
        "splits",
    ),
}


def choices(found: Diagnosis) -> dict[str, str | None]:
    return {entry.topic: entry.choice for entry in found.advice}


def plain(found: Diagnosis) -> dict[str, object]:
    """What JSON makes of it: fails where something is not known and not None."""
    return json.loads(json.dumps(found.to_dict(), allow_nan=False))


def in_groups(annotations: Annotations, groups: list[str]) -> Annotations:
    """The annotations, with a group for each annotator."""
    return replace(annotations, attributes={"group": np.array(groups, dtype=object)})


def test_camps_are_named_counted_and_advised_on() -> None:
    diagnosis = diagnose(camps(items=400, sizes=(4, 4)), permutations=39)
    assert plain(diagnosis).keys() == KEYS
    assert diagnosis.clusters["kind"] == "found"
    assert [group["annotators"] for group in diagnosis.clusters["groups"]] == [4, 4]
    assert {person["group"] for person in diagnosis.per_annotator} == {"A", "B"}
    assert diagnosis.variance["group_item"]["share"] > 0.1
    assert choices(diagnosis)["structure"] == "views"
    assert choices(diagnosis)["supervision"] == "per-annotator"
    assert choices(diagnosis)["labels"] == "enough"
    assert "groups by items" in str(diagnosis)


def test_noise_is_called_noise() -> None:
    diagnosis = diagnose(noise(items=300, annotators=6, seed=1), permutations=39)
    assert diagnosis.test["structured"] is False
    assert diagnosis.clusters["kind"] == "none"
    assert "permuted" in diagnosis.clusters["reason"]
    assert choices(diagnosis)["structure"] == "noise"
    assert choices(diagnosis)["supervision"] == "soft"


def test_structure_without_enough_answers_per_person_is_left_to_random_select() -> None:
    diagnosis = diagnose(camps(items=1500, sizes=(60, 60), per_item=5, apart=0.45), permutations=39)
    assert diagnosis.test["structured"]
    assert choices(diagnosis)["supervision"] == "soft"
    assert choices(diagnosis)["labels"] == "few"


def test_declared_groups_are_an_attribute() -> None:
    annotations = camps(items=200, sizes=(3, 3))
    by_attribute = diagnose(annotations, groups="camp", permutations=0)
    assert by_attribute.clusters["attribute"] == "camp"
    assert [group["name"] for group in by_attribute.clusters["groups"]] == ["camp-0", "camp-1"]
    assert by_attribute.test is None


def test_groups_that_do_not_fit_are_refused() -> None:
    people = camps(items=20)
    with raises_code("unknown-attribute", "'camp'"):
        diagnose(people, groups="party", permutations=0)
    with raises_code("empty-option"):
        diagnose(in_groups(people, [""] * 8), groups="group", permutations=0)


@pytest.mark.parametrize("permutations", [-1, 5, 2.5, True])
def test_shuffles_too_few_to_say_anything_are_refused(permutations: object) -> None:
    with raises_code("invalid-number", "permutations"):
        diagnose(noise(items=20), permutations=permutations)  # type: ignore[arg-type]


def test_declared_groups_of_one_person_are_said_to_be_unknowable() -> None:
    annotations = noise(items=100, annotators=3)
    diagnosis = diagnose(in_groups(annotations, list("xyz")), groups="group", permutations=39)
    assert diagnosis.variance["group_item"] is None
    assert "two annotators" in diagnosis.variance["reason"]
    assert any("one annotator each" in limit for limit in diagnosis.limits)
    assert diagnosis.test["group_item"]["p"] is None
    plain(diagnosis)


def test_three_annotators_have_no_groups_by_items() -> None:
    diagnosis = diagnose(noise(items=200, annotators=3), permutations=39)
    assert diagnosis.variance["group_item"] is None
    assert any("With 3 annotators" in limit for limit in diagnosis.limits)
    plain(diagnosis)


def test_groups_that_were_looked_for_in_vain_are_no_lack_of_annotators() -> None:
    rng = np.random.default_rng(6)
    draws = rng.random((1000, 5))
    shares = rng.random((1000, 1)) * 0.6 + 0.2
    labels = draws < shares + np.array([-0.15, -0.1, 0, 0.1, 0.15])
    diagnosis = diagnose(Annotations.from_matrix(labels.astype(int)), permutations=0)
    assert "no two groups" in diagnosis.clusters["reason"]
    few = diagnose(noise(items=200, annotators=2), permutations=0)
    assert "too few annotators" in few.clusters["reason"]


def test_two_annotators_show_leanings_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random((200, 2)) < [0.2, 0.6]
    diagnosis = diagnose(Annotations.from_matrix(labels.astype(int)), permutations=39)
    assert diagnosis.test["annotator"]["p"] <= 0.05
    assert diagnosis.test["group_item"]["p"] is None
    assert diagnosis.variance["group_item"] is None
    assert choices(diagnosis)["structure"] == "strictness"
    plain(diagnosis)


def test_groups_that_never_meet_cannot_be_compared() -> None:
    rng = np.random.default_rng(0)
    labels = np.full((80, 6), None, dtype=object)
    labels[:40, :3] = rng.integers(2, size=(40, 3))
    labels[40:, 3:] = rng.integers(2, size=(40, 3))
    annotations = Annotations.from_matrix(labels)
    diagnosis = diagnose(in_groups(annotations, list("xxxyyy")), groups="group", permutations=39)
    assert diagnosis.variance["group_item"] is None
    assert diagnosis.test["group_item"]["p"] is None
    shares = [diagnosis.variance[part] for part in ("item", "annotator", "rest")]
    assert sum(part["share"] for part in shares) == pytest.approx(1)


def test_one_answer_per_item_leaves_disagreement_unknown() -> None:
    annotations = Annotations.from_table(
        {"item": [1, 2, 3], "annotator": ["x", "y", "x"], "label": ["a", "b", "b"]}
    )
    diagnosis = diagnose(annotations)
    assert "total" not in diagnosis.variance
    assert "two annotators" in diagnosis.variance["reason"]
    assert diagnosis.test is None
    assert diagnosis.agreement["pairwise"] is None
    assert choices(diagnosis)["structure"] is None
    assert choices(diagnosis)["coverage"] == "single"
    plain(diagnosis)
    assert diagnosis.lines()


def test_one_class_leaves_nothing_to_vary() -> None:
    annotations = Annotations.from_matrix([["a", "a"], ["a", "a"]])
    diagnosis = diagnose(annotations)
    assert "nothing varies" in diagnosis.variance["reason"]
    assert diagnosis.agreement["alpha"] is None
    assert diagnosis.balance["ratio"] is None
    assert choices(diagnosis) == {"structure": None, "coverage": "thin"}
    assert "There is no disagreement to learn from: all labels are 'a'" in diagnosis.advice[0].text
    plain(diagnosis)
    assert diagnosis.lines()


def test_where_nobody_disagrees_everything_belongs_to_the_items() -> None:
    annotations = Annotations.from_matrix([["a"] * 3, ["b"] * 3, ["a"] * 3, ["b"] * 3])
    diagnosis = diagnose(annotations)
    assert diagnosis.variance["item"]["share"] == pytest.approx(1)
    assert diagnosis.variance["structured"] == 0
    assert diagnosis.test is None
    assert diagnosis.agreement["alpha"] == pytest.approx(1)
    plain(diagnosis)
    assert diagnosis.lines()


def test_who_never_answered_is_listed() -> None:
    annotations = Annotations.from_matrix(
        [["a", "b", None], ["b", "b", None]], annotators=["x", "y", "nobody"]
    )
    diagnosis = diagnose(annotations)
    assert diagnosis.coverage["silent"] == ["nobody"]
    assert diagnosis.per_annotator[2]["shares"] is None
    plain(diagnosis)
    assert diagnosis.lines()


def test_probabilities_are_diagnosed_like_classes() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"item": i, "annotator": a, "p_no": 1 - p, "p_yes": p}
        for i in range(120)
        for a in range(6)
        for p in [float(np.clip(0.5 + (0.3 if (a < 3) == (i % 2) else -0.3), 0, 1))]
        for p in [float(np.clip(p + rng.normal(scale=0.1), 0, 1))]
    ]
    diagnosis = diagnose(Annotations.from_table(pd.DataFrame(rows)), permutations=39)
    assert diagnosis.agreement["alpha"] is None
    assert diagnosis.variance["group_item"]["share"] > 0.5
    assert [group["annotators"] for group in diagnosis.clusters["groups"]] == [3, 3]
    plain(diagnosis)


def test_only_the_first_answer_of_a_person_to_an_item_counts_for_structure() -> None:
    annotations = camps(items=60, sizes=(3, 3))
    table = pd.DataFrame(annotations.to_table().to_pylist())
    twice = pd.concat([table, table.iloc[:50].assign(label="no")])
    second_annotations = Annotations.from_table(twice, duplicates="all")
    diagnosis = diagnose(annotations, permutations=0)
    other_diagnosis = diagnose(second_annotations, permutations=0)
    assert diagnosis.variance == other_diagnosis.variance
    assert other_diagnosis.coverage["repeated"] == 50
    assert any("first one counts" in limit for limit in other_diagnosis.limits)


def test_uneven_and_empty_classes_are_warned_about() -> None:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((200, 4)) < 0.03, "rare", "usual")
    labels[:8] = "rare"
    diagnosis = diagnose(
        Annotations.from_matrix(labels, classes=["rare", "usual", "never"]), permutations=0
    )
    kinds = [entry.choice for entry in diagnosis.advice if entry.topic == "balance"]
    assert kinds == ["empty"]
    two = diagnose(Annotations.from_matrix(labels), permutations=0)
    assert [entry.choice for entry in two.advice if entry.topic == "balance"] == ["uneven"]


@pytest.mark.lewidi
@pytest.mark.parametrize(
    ("name", "kinds", "supervision"),
    [
        ("ArMIS", {"views"}, "per-annotator"),
        ("ConvAbuse", {"strictness"}, "soft"),
        ("HS-Brexit", {"views"}, "per-annotator"),
        # Its p for views beyond strictness lies near 5 %.
        pytest.param(*("MD-Agreement", {"views", "strictness"}, "soft"), marks=pytest.mark.slow),
    ],
)
def test_the_four_datasets_are_structured_each_in_its_way(
    lewidi: Path, name: str, kinds: set[str], supervision: str
) -> None:
    annotations = read_annotations(lewidi / name)
    diagnosis = diagnose(annotations, permutations=39)
    assert diagnosis.test["structured"]
    assert choices(diagnosis)["structure"] in kinds
    assert choices(diagnosis)["supervision"] == supervision
    if name == "HS-Brexit":
        # The groups that are found are the ones that the organisers declared.
        declared = annotations.attributes["group"]
        given = [person["group"] for person in diagnosis.per_annotator]
        assert len({*zip(declared, given, strict=True)}) == 2


def advised(people: Annotations, variance: dict, test: dict) -> advice.Advice:
    """What follows from these results on the structure."""
    findings = {"variance": variance, "test": test, "careless": None}
    findings["balance"] = overview.balance(people)
    findings |= {
        "clusters": {"kind": "none", "unassigned": 0},
        "coverage": overview.coverage(people),
    }
    return advice.advise(people, **findings)[0][0]


def test_one_test_alone_is_no_structure_and_is_not_said_to_be_nothing() -> None:
    variance = {"structured": 0.1, "group_item": {"share": 0.05}}
    test = {
        "p": 0.06,
        "structured": False,
        "verdict": "no",
        "permutations": 1999,
        "annotator": {"p": 0.03, "verdict": "yes"},
        "group_item": {"p": 0.4, "verdict": "no"},
        "views": {"p": None, "verdict": None},
    }
    people = noise(items=20)
    found = advised(people, variance, test)
    assert found.choice == "noise"
    assert found.text.startswith("Taken together, the tests don't distinguish")
    test["annotator"] = {"p": 0.3, "verdict": "no"}
    found = advised(people, variance, test)
    assert found.choice == "noise"
    assert found.text.startswith("The disagreement is compatible with noise. Tests: ")
    found = advised(people, variance, test | {"verdict": "can't tell"})
    assert found.choice == "undecided"
    assert "can't tell: p = 0.060" in found.text


@pytest.mark.parametrize("count", [2, 6, 11])
def test_lines_about_annotators_hold_for_any_number_of_classes(count: int) -> None:
    """Random labels, and one annotator who slightly prefers the first class."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, count, size=(300, 4))
    codes[:40, 0] = 0
    people = Annotations.from_matrix(codes.astype(str), classes=[str(c) for c in range(count)])
    diagnosis = diagnose(people, permutations=39)
    line = next(line for line in diagnosis.lines() if line.startswith("  0: 300 labels"))
    assert ("most often '0'" in line) is (count > 2)
    assert ("'1' " in line) is (count == 2)
    assert choices(diagnosis)["structure"] in ("slight", "noise")
    assert choices(diagnosis)["supervision"] == "soft"


def test_annotators_with_few_labels_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    rows = [(f"i{i}", f"a{3 * i + k}") for i in range(10) for k in range(3)]
    table = {
        "item": [item for item, _ in rows],
        "annotator": [annotator for _, annotator in rows],
        "label": rng.integers(0, 3, len(rows)).astype(str),
    }
    said = diagnose(Annotations.from_table(table), permutations=0).lines()
    at = said.index("Annotators who agree least with the others")
    assert "all 30 gave fewer than 10 labels" in said[at + 1]


def test_groups_are_shown_with_their_base_rates() -> None:
    labels = [["yes", "yes", "no", None], ["yes", "no", "no", None]] * 20
    people = Annotations.from_matrix(labels, annotators=["a", "b", "c", "d"])
    camps = ["strict", "strict", "mild", "mild"]
    diagnosis = diagnose(in_groups(people, camps), groups="group", permutations=0)
    mild, strict = diagnosis.clusters["groups"]
    assert (mild["shares"]["yes"], strict["shares"]["yes"]) == (0.0, 0.75)
    assert "strict: 2 annotators, 80 labels, 'yes' 75%" in str(diagnosis)
    assert diagnosis.clusters["single"] == ["mild"]


def test_two_labels_an_item_leave_no_two_others_to_compare_with() -> None:
    diagnosis = diagnose(Annotations.from_matrix([["a", "b"], ["a", "a"]] * 20), permutations=0)
    assert [person["expected"] for person in diagnosis.to_dict()["people"]] == [None, None]
    assert "two others" not in str(diagnosis)
    many = np.full((60 * 13, 14), None, dtype=object)
    for row in range(len(many)):
        many[row, row % 13 : row % 13 + 2] = ["a", "b"[: row % 2] or "a"]
    assert "agree least" in str(diagnose(Annotations.from_matrix(many), permutations=0))


def test_a_path_is_read_and_anything_else_is_refused(tmp_path: Path) -> None:
    annotations = Annotations.from_matrix([["a", "b", None], ["a", None, None], ["b", "b", "a"]])
    path = tmp_path / "annotations.csv"
    write_annotations(annotations, path)
    diagnosis = diagnose(path, permutations=0)
    assert str(diagnosis) == str(diagnose(annotations, permutations=0))
    assert "\n  1 item with a single label\n" in str(diagnosis)
    with raises_code("no-annotations"):
        diagnose([["a", "b"]])  # type: ignore[arg-type]
