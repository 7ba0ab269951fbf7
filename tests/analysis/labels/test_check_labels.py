"""Labels to check: slips come first, and habits are not slips."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import edokit
from commands import status
from edokit import Annotations, check_labels
from edokit._io.tables import read_table
from tests.errors import raises_code


def table_with_slips(
    n_items: int = 120, n_slips: int = 8, seed: int = 0
) -> tuple[Annotations, set[tuple[str, str]]]:
    """Five people agree on most items; who slipped on which item."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, size=(n_items, 1))
    labels = np.where(rng.random((n_items, 5)) < 0.995, truth, 1 - truth)
    unanimous = np.flatnonzero((labels == labels[:, :1]).all(axis=1))
    slipped = rng.choice(unanimous, n_slips, replace=False)
    people = rng.integers(0, 5, n_slips)
    labels[slipped, people] = 1 - labels[slipped, people]
    slips = {(str(item), str(person)) for item, person in zip(slipped, people, strict=True)}
    return Annotations.from_matrix(np.array(["no", "yes"])[labels]), slips


def test_slips_come_before_labels_that_others_share() -> None:
    annotations, slips = table_with_slips()
    check = check_labels(annotations)
    first = {(label.item, label.annotator) for label in check.first(3 * len(slips))}
    assert slips <= first
    assert np.all(np.diff(check.probabilities[check.order]) >= 0)


def test_an_unusual_label_of_someone_who_always_differs_is_no_slip() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random((200, 1)) < 0.3
    labels = np.repeat(truth, 5, axis=1)
    strict = rng.random(200) < 0.5
    labels[:, 4] |= strict  # person 4 says yes where the others don't, half of the time
    slip = int(np.flatnonzero(~labels.any(axis=1))[0])
    labels[slip, 0] = True
    check = check_labels(Annotations.from_matrix(np.where(labels, "yes", "no")))
    label = check.first(1)[0]
    assert (label.item, label.annotator) == (str(slip), "0")
    said_yes = [label for label in check.first(400) if label.label == "yes"]
    strict_label = next(label for label in said_yes if label.annotator == "4")
    assert strict_label.probability > strict_label.by_anybody
    assert "more likely for 4" in strict_label.reason


def test_a_run_adds_the_text(small_run: Path) -> None:
    check = check_labels(small_run)
    assert check.has_text
    label = check.first(1)[0]
    assert label.by_text is not None
    assert "the ensemble gives it" in label.reason
    columns = check.to_table().column_names
    assert columns[:4] == ["item", "text", "annotator", "label"]


@pytest.mark.parametrize("regime", ["seven-points", "three-labels", "three-voices"])
def test_every_scale_has_probabilities(regime: str) -> None:
    annotations = edokit.simulate(regime, random_state=0, items=(80, 0, 1)).annotations
    check = check_labels(annotations)
    assert len(check) == len(annotations)
    assert ((check.probabilities > 0) & (check.probabilities <= 1)).all()
    assert check.to_table().num_rows == len(annotations)


def test_repeated_labels_are_counted() -> None:
    rows = [("a", "ann", "x"), ("a", "ann", "y"), ("a", "ben", "x"), ("b", "ann", "y")]
    columns = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    check = check_labels(Annotations.from_table(columns, duplicates="all"))
    assert (len(check), check.repeated) == (3, 1)


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        (Annotations.from_soft_labels([[0.3, 0.7], [0.5, 0.5]]), "missing-labels"),
        (Annotations.from_matrix([["a"], ["b"]]), "too-few-labels"),
        (Annotations.from_matrix([["a", "a"], ["a", "a"]]), "too-few-classes"),
    ],
)
def test_nothing_to_compare_is_said(annotations: Annotations, code: str) -> None:
    with raises_code(code):
        check_labels(annotations)


def test_the_command_writes_a_table_and_tasks(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "labels.csv"
    words = ["--labels", out, "--review", 5, "--permutations", 0, "--json"]
    assert status("diagnose", small_run, *words) == 0
    written = json.loads(capsys.readouterr().out)["labels"]
    assert written["ensemble"] is True
    with out.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == written["labels"]
    assert rows[0]["reason"] == written["first"][0]["reason"]
    tasks = json.loads((tmp_path / "labels-review.json").read_text(encoding="utf-8"))
    assert len(tasks) == written["review"]["items"] <= 5
    assert tasks[0]["data"]["item"] == rows[0]["item"]
    assert rows[0]["annotator"] in tasks[0]["data"]["reasons"][0]
    assert (tmp_path / "labels-review.xml").exists()


def test_a_run_says_how_its_table_is_read(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("diagnose", small_run, "--permutations", 0) == 0
    assert f"edo plan {small_run / 'labels.csv'}" in capsys.readouterr().out
    assert status("diagnose", small_run, "--permutations", 0, "--scale", "ordinal") == 2
    assert "--scale" in capsys.readouterr().err
    assert status("diagnose", small_run, "--review", 5) == 2
    assert "--labels" in capsys.readouterr().err


def test_labelled_items_compete_with_new_ones(
    small_run: Path, camps: Annotations, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = camps.split("test").take(np.arange(3))
    edokit.write_annotations(new, tmp_path / "new.csv")
    out = tmp_path / "answers.csv"
    words = ["--texts", tmp_path / "new.csv", "--out", out, "--review", 20, "--again", "--json"]
    assert status("predict", small_run, *words) == 0
    review = json.loads(capsys.readouterr().out)["review"]
    tasks = json.loads((tmp_path / "answers-review.json").read_text(encoding="utf-8"))
    counts = [task["data"]["labels"] for task in tasks]
    assert review["again"] == sum(count > 0 for count in counts) == 17
    assert counts.count(0) == 3
    urgencies = [task["data"]["urgency"] for task in tasks]
    assert urgencies == sorted(urgencies, reverse=True)
    again = next(task for task in tasks if task["data"]["labels"])
    assert f"has {again['data']['labels']} labels" in again["data"]["reasons"][0]


def test_items_of_the_fit_are_no_new_items(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--texts", small_run / "labels.csv", "--out", tmp_path / "p.csv", "--review", 5]
    assert status("predict", small_run, *words, "--again") == 2
    assert "those of the fit" in capsys.readouterr().err
    assert status("predict", small_run, *words[:-2], "--again") == 2
    assert "--review" in capsys.readouterr().err


def test_a_table_of_labels_is_a_table(tmp_path: Path) -> None:
    annotations, _ = table_with_slips(60, 2)
    result = check_labels(annotations).write(tmp_path / "labels.parquet", review=None)
    assert "review" not in result
    assert read_table(tmp_path / "labels.parquet").num_rows == len(annotations)


def test_evidence_is_about_the_choice_that_the_reason_names() -> None:
    """For multi-label data, all figures are about the label whose choice is least likely."""
    rng = np.random.default_rng(2)
    truth = rng.random((40, 1, 3)) < [0.2, 0.5, 0.8]
    flipped = rng.random((40, 4, 3)) < [0.15, 0.2, 0.2]
    flipped[:, 0, 0] |= rng.random(40) < 0.5  # person 0 chooses x at random
    rows = [
        (f"i{i}", f"a{a}", json.dumps([name for name, on in zip("xyz", labels, strict=True) if on]))
        for i, item in enumerate(truth ^ flipped)
        for a, labels in enumerate(item)
    ]
    columns = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    check = check_labels(Annotations.from_table(columns, scale="multi-label:x,y,z"))
    chosen = {(item, annotator): set(json.loads(label)) for item, annotator, label in rows}
    for label in check.first(len(check)):
        name = label.reason[1]  # 'x' was …
        is_chosen = name in label.label
        assert f"was {'chosen' if is_chosen else 'left out'}" in label.reason
        others = [f"a{a}" for a in range(4) if f"a{a}" != label.annotator]
        alike = [(name in chosen[label.item, other]) == is_chosen for other in others]
        assert label.by_others == pytest.approx(np.mean(alike))
