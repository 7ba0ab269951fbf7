"""Files that the current versions of annotation tools wrote (see ``files/README.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edokit import Annotations, EDOWarning, read_annotations
from tests.errors import raises_code

FILES = Path(__file__).parent / "files"
POTATO = FILES / "potato-2.12.1"
DOCCANO = FILES / "doccano-1.8.4"
LABEL_STUDIO = FILES / "label-studio-1.23.2"
ARGILLA = FILES / "argilla-2.8.0"
TEXTS = ["The bus is late again.", "What a lovely song.", "Who moved my cup?"]
TONES = ["calm heated heated", "calm calm", "heated calm"]
"""What the annotators said about each post, in order."""
STRENGTHS = ["2 4 5", "1 1", "4 3"]
EXPORTS = [
    (POTATO / "tone", {"question": "tone"}, TONES),
    (POTATO / "tone" / "annotation_output", {"question": "tone"}, TONES),
    (LABEL_STUDIO / "tone.json", {"question": "tone"}, TONES),
    (
        LABEL_STUDIO / "tone.csv",
        {"columns": {"item": "id", "label": "tone"}},
        ["heated heated calm", "calm calm", "calm heated"],
    ),
    (DOCCANO / "tone", {}, TONES),
    (DOCCANO / "tone-json", {}, TONES),
    (ARGILLA / "records.json", {"question": "tone"}, ["calm heated", *TONES[1:]]),
    (ARGILLA / "records.jsonl", {"question": "tone"}, ["calm heated", *TONES[1:]]),
    (ARGILLA / "records.parquet", {"question": "tone"}, ["calm heated", *TONES[1:]]),
]
RATINGS = [
    (POTATO / "tone", STRENGTHS),
    (LABEL_STUDIO / "tone.json", STRENGTHS),
    (ARGILLA / "records.json", ["2 4", "1 1", "4 3"]),
]
SETS = [
    (POTATO / "tone", {"question": "topics"}),
    (LABEL_STUDIO / "tone.json", {"question": "topics"}),
    (ARGILLA / "records.json", {"question": "topics"}),
    (DOCCANO / "topics", {}),
]


def name(path: Path) -> str:
    return path.relative_to(FILES).as_posix()


def answers(annotations: Annotations) -> list[str]:
    """The labels of each item, joined by blanks."""
    labels: dict[str, list[str]] = {}
    for row in annotations.to_table().to_pylist():
        labels.setdefault(row["item"], []).append(row["label"])
    return [" ".join(values) for values in labels.values()]


@pytest.mark.parametrize(
    ("path", "options", "expected"), EXPORTS, ids=[name(path) for path, _, _ in EXPORTS]
)
def test_one_choice_of_each_annotator_is_read_with_texts(
    path: Path, options: dict[str, Any], expected: list[str]
) -> None:
    annotations = read_annotations(path, **options)
    assert answers(annotations) == expected
    assert annotations.texts is not None
    assert annotations.texts.tolist() == TEXTS
    assert len(annotations.annotators) == len(expected[0].split())


@pytest.mark.parametrize(("path", "expected"), RATINGS, ids=[name(path) for path, _ in RATINGS])
def test_ratings_are_points_of_a_scale(path: Path, expected: list[str]) -> None:
    annotations = read_annotations(path, question="strength", scale="ordinal:1,2,3,4,5")
    assert answers(annotations) == expected


@pytest.mark.filterwarnings("ignore:1 annotation without a choice:edokit.EDOWarning")
@pytest.mark.parametrize(("path", "options"), SETS, ids=[name(path) for path, _ in SETS])
def test_several_choices_are_a_set(path: Path, options: dict[str, Any]) -> None:
    annotations = read_annotations(path, scale="multi-label", **options)
    labels = answers(annotations)
    assert annotations.classes == ("home", "music", "travel")
    assert labels[0].startswith('["travel"] ["home", "travel"]')
    assert labels[1] == '["home", "music"] ["music"]'
    assert labels[2].endswith('["home"]')


@pytest.mark.parametrize("path", [POTATO / "tone", LABEL_STUDIO / "tone.json"], ids=name)
def test_a_choice_that_was_left_open_is_the_empty_set(path: Path) -> None:
    with pytest.warns(EDOWarning, match="1 annotation .*empty set"):
        annotations = read_annotations(path, question="topics", scale="multi-label")
    assert answers(annotations)[2].startswith("[] ")


@pytest.mark.parametrize(
    "path", [POTATO / "tone", LABEL_STUDIO / "tone.json", ARGILLA / "records.json"], ids=name
)
def test_several_questions_are_one_decision_that_names_them(path: Path) -> None:
    with raises_code("ambiguous-question", "3") as caught:
        read_annotations(path)
    message = str(caught.value)
    assert all(f"'{question}' (" in message for question in ("tone", "strength", "topics"))
    assert "remark" not in message
    assert "decisions are open" not in message


def test_the_other_inputs_of_potato() -> None:
    folder = POTATO / "more" / "answers"
    expected = {"tone": "a: b", "place": "home", "warmth": "7", "count": "12", "strength": "2"}
    for question, label in expected.items():
        with pytest.warns(EDOWarning, match="1 annotator .*'robot'"):
            annotations = read_annotations(folder, question=question)
        assert answers(annotations) == [label]
        assert annotations.annotators.tolist() == ["ann"]


def test_the_file_of_one_annotator_of_potato_is_read() -> None:
    file = POTATO / "tone" / "annotation_output" / "ben" / "user_state.json"
    for path in (file, file.parent):
        annotations = read_annotations(path, question="tone")
        assert answers(annotations) == ["heated", "calm", "calm"]
        assert annotations.annotators.tolist() == ["ben"]


def test_the_file_of_one_annotator_of_doccano_is_read() -> None:
    annotations = read_annotations(DOCCANO / "tone" / "ben.jsonl")
    assert annotations.annotators.tolist() == ["ben"]
    assert list(annotations.item_columns) == ["lang"]
    assert answers(annotations) == ["heated", "calm", "calm"]


def test_an_item_that_one_annotator_of_doccano_has_not_answered_is_left_out() -> None:
    with pytest.warns(EDOWarning, match="2 of 3 items"):
        annotations = read_annotations(DOCCANO / "tone" / "cleo.jsonl")
    assert answers(annotations) == ["heated"]


def test_a_doccano_project_that_everybody_shares_does_not_say_who_answered() -> None:
    with raises_code("missing-people"):
        read_annotations(DOCCANO / "together")


def test_a_nested_export_of_argilla_is_refused_with_the_flat_one() -> None:
    with raises_code("wrong-content", "flatten=True"):
        read_annotations(ARGILLA / "nested.json")
