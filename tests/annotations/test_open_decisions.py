"""What a table leaves open is asked all at once, with the arguments that settle it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from edokit import Annotations, EDOWarning
from edokit._errors import OpenDecisionsError
from edokit.scales import split_points
from tests.errors import raises_code

MESSY: dict[str, list[Any]] = {
    "item": ["a", "a", "b", "b", "c", "c", "a", "b"],
    "annotator": ["ann", "ben", "ann", "ben", "ann", "ben", "ann", "ben"],
    "label": ["Rude", "fine", "rude", None, "fine", "fine", "Rude", "fine"],
}
RATINGS = ["1", "2", "3", "4", "5", "3", "2", "4", "1", "5", "44"]


def ratings(labels: list[str], **more: list[Any]) -> dict[str, list[Any]]:
    annotators = [f"ann-{k}" for k in range(len(labels))]
    return {"item": ["a"] * len(labels), "annotator": annotators, "label": labels, **more}


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_all_decisions_come_at_once_and_their_arguments_read_the_table() -> None:
    with pytest.raises(OpenDecisionsError) as refused:
        Annotations.from_table(MESSY)
    error = refused.value
    assert error.remedy == {"ignore_case": True, "empty": "drop", "duplicates": "first"}
    text = str(error)
    assert text.splitlines()[0] == "3 decisions are open:"
    for number, cause in enumerate(
        ["'Rude' (2 rows, first data row 1)", "data row 4", "data row 7"], start=1
    ):
        assert f"{number}. " in text.splitlines()[number]
        assert cause in text.splitlines()[number]
    assert text.endswith("ignore_case=True, empty='drop', duplicates='first'")
    annotations = Annotations.from_table(MESSY, **error.remedy)
    assert len(annotations) == 6


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_arguments_to_copy_keep_what_was_given() -> None:
    table = ratings([*RATINGS[:-2], "skip", "44"])
    table["annotator"][1] = "ann-0"  # a duplicate
    with raises_code("open-decisions", "drop_label=['skip', '44'], duplicates='first'"):
        Annotations.from_table(table, scale="ordinal", drop_label=["skip"])


def test_an_error_with_decisions_survives_a_worker_process() -> None:
    with pytest.raises(OpenDecisionsError) as refused:
        Annotations.from_table(MESSY)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_what_no_option_settles_is_listed_too() -> None:
    table = {**MESSY, "text": ["Tea?", "Tea?", "Rain", "Rain", "Sun", "Moon", "Tea?", "Rain"]}
    with raises_code("open-decisions", "item 'c'", "rest"):
        Annotations.from_table(table)


def test_identical_and_conflicting_duplicates_are_counted_apart() -> None:
    same = {"item": ["a", "a", "a"], "annotator": ["x", "x", "y"], "label": ["no", "no", "yes"]}
    with raises_code("duplicate-annotation", "row 2 (1 such row)"):
        Annotations.from_table(same)
    mixed = {name: [*values, values[0]] for name, values in same.items()}
    mixed["label"][-1] = "yes"
    with raises_code("duplicate-annotation", "row 4"):
        Annotations.from_table(mixed)
    with pytest.warns(EDOWarning, match=r"2 of 4 .*\(1 .*, 1 .*\)"):
        Annotations.from_table(mixed, duplicates="first")


def test_a_number_far_from_a_scale_is_a_suspect_with_its_row() -> None:
    with raises_code("outlying-label", "label '44'", "row 11", kind=OpenDecisionsError) as refused:
        Annotations.from_table(ratings(RATINGS), scale="ordinal")
    assert "ordinal:" not in str(refused.value)
    assert refused.value.remedy == {"drop_label": ["44"]}


@pytest.mark.parametrize(
    ("labels", "outliers"),
    [
        ("1 2 3 4 5 44", ["44"]),
        ("1 2 3 4 5 n/a", ["n/a"]),
        ("1 2 3 -1 -1", []),  # too many
        ("1 2 3 4 5 7", []),  # 6 may be a point that nobody chose
        ("0 1 44", []),
        ("no yes maybe", []),
    ],
)
def test_labels_beside_a_scale_are_suspects_if_they_are_few_and_far(
    labels: str, outliers: list[str]
) -> None:
    counts = {name: labels.split().count(name) for name in labels.split()}
    assert split_points(counts)[1] == outliers


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_labels_outside_the_classes_are_mapped_or_dropped() -> None:
    table = ratings(["polite", "rude", "rudee", "42"])
    with raises_code("open-decisions", "'rude'", kind=OpenDecisionsError) as refused:
        Annotations.from_table(table, classes=["polite", "rude"])
    assert refused.value.remedy == {"label_map": {"rudee": "rude"}, "drop_label": ["42"]}


def test_roles_are_proposed_by_content() -> None:
    table = {
        "Nr": ["1", "1", "2", "2", "3", "3"],
        "Wer": ["ann", "ben", "ann", "cem", "ben", "cem"],
        "Urteil": ["ja", "nein", "nein", "ja", "nein", "ja"],
    }
    with pytest.raises(OpenDecisionsError) as refused:
        Annotations.from_table(table)
    columns = {"item": "Nr", "annotator": "Wer", "label": "Urteil"}
    assert refused.value.remedy == {"columns": columns}
    assert len(Annotations.from_table(table, columns=columns)) == 6


def test_no_attribute_of_annotators_is_proposed_as_label() -> None:
    table = {
        "Msg No.": [str(n) for n in range(4) for _ in range(3)],
        "Moderator": ["ann", "ben", "cem"] * 4,
        "Gender": ["w", "m", "w", "w", "m", "", *["w", "m", "w"] * 2],  # a gap is no second value
        "Verdict": ["ok", "ok", "warn", "remove", "warn", "ok"] * 2,
    }
    columns = {"item": "Msg No.", "annotator": "Moderator", "label": "Verdict"}
    with pytest.raises(OpenDecisionsError) as refused:
        Annotations.from_table(table)
    assert refused.value.remedy == {"columns": columns}
    sure = ["1", "2", "3", "2", "1", "3"] * 2
    with pytest.raises(OpenDecisionsError, match=r"'Verdict'.*'Sure'") as refused:
        Annotations.from_table({**table, "Sure": sure})
    assert refused.value.remedy == {"columns": {**columns, "label": "NAME"}}


def test_dropping_what_is_empty_drops_items_without_text() -> None:
    texts = ["Tea is ready", "", "", "", "Rain again", "Rain again"]
    table = {
        "item": ["a", "a", "b", "b", "c", "c"],
        "annotator": ["x", "y"] * 3,
        "label": ["no", "yes", "no", "no", "yes", "no"],
        "text": texts,
    }
    with pytest.warns(EDOWarning, match=r"2 of 6 rows .*2 by .*text"):
        annotations = Annotations.from_table(table, empty="drop")
    assert annotations.items.tolist() == ["a", "c"]
    table["text"] = [""] * 6  # a column that nobody filled in says nothing of items
    assert len(Annotations.from_table(table, empty="drop")) == 6
