"""Rows that are no clean annotations: refused by default, dropped or merged where one says so."""

from __future__ import annotations

from typing import Any

import pytest

from edokit import Annotations, EDOWarning
from tests.errors import raises_code

MESSY: dict[str, list[Any]] = {
    "item": ["a", "a", "b", "b", "c", "c", None],
    "annotator": ["Ann", "ben", "ann ", "ben", "Ann", "test", "ben"],
    "label": ["Rude", "fine", "rude", "skip", "fine ", "fine", "fine"],
    "language": ["en", None, "it", "it", "fr", "fr", "en"],
}


def read(**options: Any) -> Annotations:
    return Annotations.from_table(MESSY, **options)


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_empty_rows_are_refused_with_the_option_that_drops_them() -> None:
    with raises_code("missing-value", "'item'", "row 7", "empty='drop'"):
        read(ignore_case=True, drop_label=["skip"])


def test_every_dropped_row_is_counted_by_the_policy_that_drops_it() -> None:
    policies = {"empty": "drop", "drop_label": ["SKIP"], "drop_annotator": ["test"]}
    with pytest.warns(EDOWarning) as notes:
        annotations = read(ignore_case=True, **policies)
    (dropped,) = [str(note.message) for note in notes if "dropped" in str(note.message)]
    assert dropped.startswith("3 of 7 rows are dropped: 1 by empty='drop' (item)")
    assert "1 by drop_label=['SKIP']" in dropped
    assert "1 by drop_annotator=['test']" in dropped
    assert annotations.classes == ("fine", "rude")
    assert annotations.annotators.tolist() == ["Ann", "ben"]


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_without_ignore_case_spellings_are_refused_and_the_option_is_named() -> None:
    with raises_code("doubtful-spelling", "'Rude'", "'rude'", "ignore_case=True"):
        read(empty="drop")


def test_declared_classes_name_the_labels_that_are_spelled_otherwise() -> None:
    with pytest.warns(EDOWarning) as notes:
        annotations = read(
            ignore_case=True, empty="drop", classes=["FINE", "RUDE"], drop_label=["skip"]
        )
    assert any("are merged: 'Rude'" in str(note.message) for note in notes)
    assert annotations.counts.sum(axis=0).tolist() == [3, 2]


def test_hard_labels_follow_the_spelling_of_the_labels() -> None:
    table = {"item": [1, 2], "annotator": ["x", "x"], "label": ["no", "yes"]}
    table["hard_label"] = ["NO", " Yes"]
    annotations = Annotations.from_table(table, ignore_case=True)
    assert annotations.published is not None
    assert annotations.published.tolist() == [0, 1]


@pytest.mark.parametrize("role", ["label", "annotator"])
def test_a_dropped_name_must_occur(role: str) -> None:
    with raises_code(f"unknown-{role}", f"drop_{role}", "'nobody'"):
        read(**{f"drop_{role}": ["nobody"]})


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_a_gap_is_no_value_of_an_item() -> None:
    annotations = read(ignore_case=True, empty="drop")
    assert annotations.item_column("language").tolist() == ["en", "it", "fr"]


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_a_remark_in_a_sparse_column_stays_with_its_row() -> None:
    remarks = [None, "unclear", None, None, None, None, None]
    annotations = Annotations.from_table(
        {**MESSY, "remark": remarks}, ignore_case=True, empty="drop"
    )
    assert "remark" in annotations.annotation_columns


def test_a_text_in_the_first_row_of_an_item_is_the_text_of_all_its_rows() -> None:
    table = {"item": [1, 1], "annotator": ["x", "y"], "label": [0, 1], "text": ["Tea?", ""]}
    annotations = Annotations.from_table(table)
    assert annotations.texts is not None
    assert annotations.texts.tolist() == ["Tea?"]


@pytest.mark.filterwarnings("ignore:.*dropped:edokit._errors.EDOWarning")
def test_a_text_outlives_the_row_that_is_dropped() -> None:
    table = {"item": [1, 1], "annotator": ["x", "y"], "label": ["skip", "no"], "text": ["Tea?", ""]}
    annotations = Annotations.from_table(table, drop_label=["skip"])
    assert annotations.texts is not None
    assert annotations.texts.tolist() == ["Tea?"]
