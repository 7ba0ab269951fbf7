"""Which columns describe people, and what their levels are."""

from __future__ import annotations

import numpy as np
import pytest

from edokit import Annotations, EDOWarning
from edokit.annotations.people import People
from tests.errors import raises_code


def annotations_with(**columns: list[str]) -> Annotations:
    count = len(next(iter(columns.values())))
    people = [f"p{k}" for k in range(count)]
    table = {
        "item": ["a"] * count + ["b"] * count,
        "annotator": people * 2,
        "label": ["no", "yes"] * count,
    }
    for name, values in columns.items():
        table[name] = values * 2
    return Annotations.from_table(table)


def test_a_column_that_people_share_is_an_attribute_with_an_unknown_level_for_gaps():
    people = annotations_with(gender=["f", "m", "", "f", "N/A"]).people
    gender = people.attribute("gender")
    assert gender.levels == ("f", "m")
    assert gender.people == (2, 1)
    assert gender.unknown == 2
    assert "unknown for 2 annotators" in people.describe()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["w1", "w2", "w3", "w4"], "a different value"),
        (["en"] * 4, "same for everybody"),
    ],
)
def test_ids_and_constants_are_no_attributes_and_say_why(values: list[str], reason: str):
    people = annotations_with(column=values, gender=["f", "f", "m", "m"]).people
    assert people.names == ("gender",)
    assert reason in people.left_out["column"]
    with raises_code("unusable-attribute", "'column'", "'gender'"):
        people.attribute("column")


def test_ages_are_put_into_bands_in_their_order():
    ages = [str(age) for age in range(18, 80)] + ["18"]
    age = annotations_with(age=ages).people.attribute("age")
    assert age.levels[0] == "10-19"
    assert age.levels[-1] == "70-79"
    assert len(age.levels) <= 8
    assert age.note == "bands of 10"
    assert annotations_with(age=["3", "10", "3", "10"]).people.attribute("age").levels == (
        "3",
        "10",
    )


def test_bands_that_are_open_below_come_first():
    bands = ["18-24", "under 18", "25 and older", "18-24", "under 18", "25 and older"]
    age = annotations_with(age=bands).people.attribute("age")
    assert age.levels == ("under 18", "18-24", "25 and older")


def test_too_many_values_are_no_levels():
    codes = [f"zip {k // 2}" for k in range(104)]
    assert "52" in annotations_with(zip=codes).people.left_out["zip"]


def test_spellings_that_differ_in_case_are_one_level_and_it_is_said():
    gender = annotations_with(gender=["F", "F", "f", "m"]).people.attribute("gender")
    assert gender.levels == ("F", "m")
    assert "'f'" in gender.note


def test_a_column_that_describes_items_too_is_used_only_if_it_is_named():
    table = {
        "item": ["a", "a", "b", "b"],
        "annotator": ["w", "x", "y", "z"],
        "label": [0, 1, 1, 0],
        "batch": ["one", "one", "two", "two"],
    }
    annotations = Annotations.from_table(table)
    assert annotations.people.names == ()
    assert annotations.with_attributes(["batch"]).people.names == ("batch",)
    assert annotations.with_attributes(["batch"]).to_table().column_names.count("batch") == 1


def test_attributes_can_be_chosen_and_none_is_lost():
    annotations = annotations_with(gender=["f", "f", "m", "m"], shift=["am", "pm", "am", "pm"])
    chosen = annotations.with_attributes(["gender"])
    assert chosen.people.names == ("gender",)
    assert sorted(chosen.to_table().column_names) == sorted(annotations.to_table().column_names)
    assert annotations.with_attributes([]).people.names == ()
    with raises_code("unknown-attribute", "'shoe'"):
        annotations.with_attributes(["shoe"])


def test_people_are_found_by_name_and_what_does_not_exist_is_named_with_what_does():
    people = annotations_with(gender=["f", "f", "m", "m"], age=["old", "new", "old", "new"]).people
    assert people.attribute("gender").has(["f"]).tolist() == [True, True, False, False]
    assert people.codes(["p2"]).tolist() == [2]
    with raises_code("unknown-attribute", "gender=x") as refused:
        people.attribute("gender").has(["x"])
    assert "f, m" in str(refused.value.hint)
    with raises_code("unknown-annotator", "'zoe'") as refused:
        people.codes(["zoe"])
    assert "'p0'" in str(refused.value.hint)


def test_people_survive_a_file_and_a_selection():
    people = annotations_with(gender=["f", "f", "m", ""]).people
    again = People.from_dict(people.to_dict())
    assert again.to_dict() == people.to_dict()
    some = people.take(np.array([1, 3]))
    assert some.attribute("gender").people == (1, 0)


def rows_of_three() -> dict[str, list[str]]:
    people = ["ann", "ben", "cem"] * 20
    return {
        "item": [str(n // 3) for n in range(60)],
        "annotator": people,
        "label": ["ok", "warn"] * 30,
        "age": [{"ann": "18-29", "ben": "30-49", "cem": "18-29"}[name] for name in people],
    }


@pytest.mark.parametrize("gap", ["", "NA", "unknown"])
def test_a_gap_of_an_attribute_takes_the_value_of_the_other_rows(gap: str) -> None:
    rows = rows_of_three()
    rows["age"][4] = gap
    with pytest.warns(EDOWarning, match=r"'age' .* 1 row of 'ben'"):
        annotations = Annotations.from_table(rows)
    assert annotations.people.attribute("age").people == (2, 1)
    assert annotations.people.attribute("age").unknown == 0


def test_a_column_that_a_few_rows_contradict_is_no_attribute_and_says_why() -> None:
    rows = rows_of_three()
    rows["age"][4] = "50+"
    people = Annotations.from_table(rows).people
    assert people.names == ()
    assert people.left_out["age"] == "annotator 'ben' has '30-49' in 19 rows and '50+' in 1"
    with raises_code("unusable-attribute", "'age'", "19 rows"):
        people.attribute("age")
    # Labels of something else vary in most rows of a person.
    rows["age"] = ["low", "high", "low", "high"] * 15
    assert Annotations.from_table(rows).people.left_out == {}


def test_attributes_are_no_parts_of_items() -> None:
    with raises_code("inapplicable-column", "'age'"):
        Annotations.from_table(rows_of_three()).item_column("age", parameter="by")
