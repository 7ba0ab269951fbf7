"""Roles of columns are guessed from names and content, and a note says so."""

from __future__ import annotations

import warnings

import pytest

from edokit import Annotations, EDOWarning
from tests.errors import raises_code

TABLE = {
    "instance_id": ["a", "a", "b", "b"],
    "comment": ["what a very nice day it is"] * 2 + ["please be quiet over there"] * 2,
    "worker": ["ann", "ben", "ann", "ben"],
    "rating": ["1", "2", "2", "2"],
}


def renamed(**names: str) -> dict[str, list[str]]:
    return {names.get(name, name): values for name, values in TABLE.items()}


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"instance_id": "comment_id", "worker": "user_id", "rating": "toxicity"},
        {"instance_id": "Item ID", "worker": "rater", "comment": "tweet"},
    ],
)
def test_usual_names_with_fitting_content_are_understood(names: dict[str, str]) -> None:
    with pytest.warns(EDOWarning, match="item="):
        annotations = Annotations.from_table(renamed(**names))
    assert list(annotations.items) == ["a", "b"]
    assert list(annotations.annotators) == ["ann", "ben"]
    assert annotations.classes == ("1", "2")
    assert annotations.texts is not None


def test_columns_that_were_named_are_not_guessed() -> None:
    columns = {"item": "instance_id", "annotator": "worker", "label": "rating", "text": "comment"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", EDOWarning)
        Annotations.from_table(TABLE, columns=columns)


def test_the_author_of_a_text_is_not_its_annotator() -> None:
    table = renamed(worker="user_id")
    table["user_id"] = ["u1", "u1", "u2", "u2"]
    with (
        pytest.warns(EDOWarning, match="columns are read as"),
        raises_code("missing-column", "'annotator'"),
    ):
        Annotations.from_table(table)


def test_of_two_columns_that_may_be_the_label_none_is_chosen() -> None:
    table = {**TABLE, "toxicity": ["0", "1", "0", "1"]}
    with (
        pytest.warns(EDOWarning, match="columns are read as"),
        raises_code("missing-column", "'label'"),
    ):
        Annotations.from_table(table)


def test_ids_that_never_repeat_are_not_items() -> None:
    table = {**TABLE, "id": ["1", "2", "3", "4"]}
    with pytest.warns(EDOWarning, match="item=instance_id"):
        Annotations.from_table(table)


def test_a_text_that_one_row_leaves_out_is_that_of_its_item() -> None:
    table = {**TABLE, "comment": ["", *TABLE["comment"][1:]]}
    with pytest.warns(EDOWarning, match="text=comment"):
        annotations = Annotations.from_table(table)
    assert annotations.texts is not None
    assert annotations.texts[0] == "what a very nice day it is"


def test_objects_in_place_of_ids_leave_other_missing_columns_the_error() -> None:
    table = {**renamed(rating="verdict"), "instance_id": [{"a": []}] * 4}
    columns = {"item": "instance_id", "annotator": "worker", "text": "comment"}
    with raises_code("missing-column", "'label'"):
        Annotations.from_table(table, columns=columns)
