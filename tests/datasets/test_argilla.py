"""Argilla exports, written after what version 2 of its client writes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from export_cases import anything, damaged
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations, EDOError, EDOWarning
from edokit.annotations.long_table import Policies
from edokit.datasets.argilla import is_argilla, read_argilla
from tests.errors import raises_code

ANN = "0b6b6d1c-8a4b-4f0b-9d55-000000000001"
BEA = "0b6b6d1c-8a4b-4f0b-9d55-000000000002"
CEM = "0b6b6d1c-8a4b-4f0b-9d55-000000000003"

# (user, value, status) of each record
GIVEN = {
    "a": [(ANN, "calm", "submitted"), (BEA, "heated", "submitted"), (CEM, "heated", "draft")],
    "b": [(ANN, "calm", "submitted"), (BEA, "calm", "discarded"), (CEM, "calm", "submitted")],
}

# --- The shapes that exports come in --------------------------------------------------------------


def flat(given: dict[str, list[Any]] = GIVEN, **more: Any) -> list[dict[str, Any]]:
    """``dataset.records.to_list(flatten=True)``, and the rows of ``to_datasets()``."""
    return [
        {
            "id": name,
            "status": "completed",
            "_server_id": f"server-{name}",
            "text": f"Post {name}.",
            "tone.responses": [value for _, value, _ in answers],
            "tone.responses.users": [user for user, _, _ in answers],
            "tone.responses.status": [status for _, _, status in answers],
            "tone.suggestion": "heated",
            "tone.suggestion.score": 0.5,
            "tone.suggestion.agent": "model",
        }
        | more
        for name, answers in given.items()
    ]


def test_only_submitted_responses_count() -> None:
    assert is_argilla(flat())
    read = read_argilla(flat())
    assert read.items.tolist() == ["a", "b"]
    assert read.annotators.tolist() == [ANN, BEA, CEM]
    assert read.classes == ("calm", "heated")
    np.testing.assert_allclose(read.soft_labels, [[0.5, 0.5], [1.0, 0.0]])
    assert len(read) == 4
    assert read.texts is not None
    assert read.texts.tolist() == ["Post a.", "Post b."]


def test_files_read_like_their_content(tmp_path: Path) -> None:
    expected = read_argilla(flat()).to_table()
    document = tmp_path / "records.json"
    document.write_text(json.dumps(flat()), encoding="utf-8")
    lines = tmp_path / "records.jsonl"
    lines.write_text("\n".join(map(json.dumps, flat())), encoding="utf-8")
    parquet = tmp_path / "train-00000-of-00001.parquet"
    stamps = pa.array([0, 2**62], pa.timestamp("ms"))
    table = pa.Table.from_pylist(flat()).append_column("inserted_at", stamps)
    pa_parquet.write_table(table, parquet)
    for path in (document, str(document), lines, parquet):
        assert read_argilla(path).to_table().equals(expected)


def test_exports_are_recognised_and_other_json_is_not() -> None:
    assert is_argilla(flat()[0])
    assert is_argilla([dict.fromkeys(flat()[0])])
    for other in (
        None,
        [],
        {},
        "text",
        [1],
        {"items": 3},
        {"1": {"text": "a", "annotations": "0,1", "annotators": "A1,A2"}},
        [{"id": 1, "data": {"text": "b"}, "annotations": []}],
        [{"item": 1, "annotator": 2, "label": 3}],
    ):
        assert not is_argilla(other)


# --- Questions ------------------------------------------------------------------------------------


def with_question(name: str, values: list[Any]) -> list[dict[str, Any]]:
    records = flat()
    for record in records:
        record[f"{name}.responses"] = values
        record[f"{name}.responses.users"] = [ANN] * len(values)
        record[f"{name}.responses.status"] = ["submitted"] * len(values)
    return records


def test_of_several_questions_one_must_be_named() -> None:
    records = with_question("topic", ["news"])
    with raises_code(
        "ambiguous-question", "'tone' (4 annotations), 'topic' (2 annotations)", "question='tone'"
    ):
        read_argilla(records)
    assert read_argilla(records, question="topic").classes == ("news",)
    with raises_code("ambiguous-question", "'mood'", "'topic' (2 annotations)"):
        read_argilla(records, question="mood")


@pytest.mark.parametrize(
    "value", [[{"start": 0, "end": 4, "label": "rude"}], [{"rank": 1, "value": "x"}], {"rank": [1]}]
)
def test_spans_and_ranks_are_no_labels(value: Any) -> None:
    records = with_question("parts", [value])
    assert read_argilla(records).to_table().equals(read_argilla(flat()).to_table())
    with raises_code("ambiguous-question", "'parts'", "'tone'"):
        read_argilla(records, question="parts")


def test_ratings_are_labels_in_numeric_order() -> None:
    read = read_argilla(flat({"a": [(ANN, 10, "submitted"), (BEA, 2, "submitted")]}))
    assert read.classes == ("2", "10")


def test_a_submitted_response_without_an_answer_is_left_out_and_counted() -> None:
    given = {"a": [(ANN, "calm", "submitted"), (BEA, None, "submitted"), (CEM, None, "discarded")]}
    with pytest.warns(EDOWarning, match="1 annotation .*'tone'"):
        assert len(read_argilla(flat(given))) == 1


# --- Several labels -------------------------------------------------------------------------------

SEVERAL = {
    "a": [(ANN, ["heated", "calm"], "submitted"), (BEA, ["calm"], "submitted")],
    "b": [(ANN, ["calm", "heated"], "submitted")],
}


def test_several_labels_are_refused_unless_they_are_sets() -> None:
    with raises_code("undeclared-sets", "item 'a'", "heated", "calm"):
        read_argilla(flat(SEVERAL))
    read = read_argilla(flat(SEVERAL), scale="multi-label")
    np.testing.assert_allclose(read.soft_labels, [[1.0, 0.5], [1.0, 1.0]])


# --- Records --------------------------------------------------------------------------------------


def test_records_without_a_submitted_response_are_left_out() -> None:
    given = GIVEN | {"c": [], "d": [(ANN, "calm", "draft")]}
    with pytest.warns(EDOWarning, match="2 of 4 items .*'c', 'd'"):
        assert read_argilla(flat(given)).items.tolist() == ["a", "b"]


def test_a_column_that_is_null_holds_no_responses() -> None:
    records = flat()
    records[1] |= {
        "tone.responses": None,
        "tone.responses.users": None,
        "tone.responses.status": None,
    }
    with pytest.warns(EDOWarning, match="1 of 2 items"):
        assert read_argilla(records).items.tolist() == ["a"]


def test_metadata_or_a_field_may_hold_the_id() -> None:
    records = [{**record, "metadata.key": key} for key, record in enumerate(flat())]
    assert read_argilla(records, columns={"item": "key"}).items.tolist() == ["0", "1"]
    assert read_argilla(records, columns={"item": "text"}).items.tolist() == ["Post a.", "Post b."]
    with raises_code("missing-value", "'kee'", "'text', 'key'"):
        read_argilla(records, columns={"item": "kee"})


@pytest.mark.parametrize(
    "export",
    [
        lambda: flat(split="dev", hard_label="heated"),
        lambda: flat(**{"metadata.split": ["dev"], "metadata.hard_label": "heated"}),
    ],
)
@pytest.mark.filterwarnings("ignore:hard_label of:edokit.EDOWarning")
def test_split_and_hard_label_come_from_the_metadata(export: Any) -> None:
    read = read_argilla(export())
    assert read.split_names == ("dev",)
    assert read.hard_labels().tolist() == [1, 1]
    assert len(read_argilla(export(), split="dev")) == len(read)
    assert read.texts is not None


def test_of_several_fields_of_text_one_must_be_named() -> None:
    records = flat(prompt="Say it.", reply="It.", chat=[{"role": "user"}])
    for record in records:
        del record["text"]
    with pytest.warns(EDOWarning, match=r"'text': 'prompt'"):
        assert read_argilla(records).texts is None
    read = read_argilla(records, columns={"text": "reply"})
    assert read.texts is not None
    assert read.texts.tolist() == ["It.", "It."]
    with raises_code("wrong-content", "item 'a'", "'chat'"):
        read_argilla(records, columns={"text": "chat"})


@pytest.mark.parametrize("nobody", [None, "", "None"])
def test_responses_by_nobody_are_separate_people(nobody: Any) -> None:
    given = {"a": [(nobody, "calm", "submitted"), (nobody, "heated", "submitted")]}
    with pytest.warns(EDOWarning, match="2 annotations"):
        assert len(read_argilla(flat(given)).annotators) == 2


def test_classes_can_be_declared() -> None:
    assert read_argilla(flat(), classes=["heated", "calm"]).classes == ("heated", "calm")
    with raises_code("unknown-class", "item 'a'", "label 'heated'", "'calm'"):
        read_argilla(flat(), classes=["calm"])


def test_the_same_user_twice_follows_the_policy() -> None:
    given = {"a": [(ANN, "calm", "submitted"), (ANN, "heated", "submitted")]}
    with raises_code("duplicate-annotation", "item 'a'"):
        read_argilla(flat(given))
    assert len(read_argilla(flat(given), policies=Policies(duplicates="all"))) == 2


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("export", "said"),
    [
        ([], ("ambiguous-question", "0 items")),
        ([{"text": "a"}], ("missing-value",)),
        ([*flat(), 7], ("wrong-content", "[2]", "should")),
        (
            [{"id": 1, "fields": {}, "metadata": {}, "responses": {"tone": []}}],
            ("wrong-content", "tone", "flatten=True"),
        ),
        (flat(id=["x"]), ("wrong-content", "[0].id should")),
        (flat(**{"tone.responses": "x"}), ("wrong-content", "[0].responses.tone.values", "'x'")),
        (flat(**{"tone.responses.users": [ANN]}), ("wrong-content", "[0]")),
        (
            flat({"a": [(ANN, "calm", "maybe")]}),
            ("wrong-content", "[0].responses.tone.status[0]", "'maybe'"),
        ),
        (flat({"a": [(ANN, "", "submitted")]}), ("missing-value", "item 'a'")),
        (flat({"a": [(ANN, [True], "submitted")]}), ("ambiguous-question", "1 item")),
        (
            flat({"a": [([], "calm", "submitted")]}),
            ("wrong-content", "[0].responses.tone.users[0] should"),
        ),
        (flat({"a": [(ANN, "calm", "draft")]}), ("ambiguous-question", "1 item")),
    ],
)
def test_a_malformed_export_is_refused_in_one_line_that_names_the_record(
    export: Any, said: tuple[str, ...]
) -> None:
    with raises_code(*said) as caught:
        read_argilla(export)
    assert "\n" not in str(caught.value)


# --- Hostile input --------------------------------------------------------------------------------

ANYTHING = anything(
    {*flat()[0], "value"},
    ["\ud800", "calm", "submitted", "draft", "[1", "[" * 3],
)
SHAPES: list[Any] = [flat(split="dev"), flat()]


OPTIONS = st.fixed_dictionaries(
    {
        "question": st.sampled_from([None, "tone", "topic"]),
        "columns": st.sampled_from([None, {"text": "text"}, {"item": "text"}]),
        "classes": st.sampled_from([None, ["calm", "heated"]]),
        "policies": st.builds(Policies, duplicates=st.sampled_from(["error", "first", "all"])),
        "split": st.sampled_from([None, None, "dev"]),
    }
)


@given(data=ANYTHING | damaged(SHAPES, ANYTHING), options=OPTIONS)
def test_whatever_comes_in_the_outcome_is_annotations_or_a_clear_error(
    data: Any, options: dict[str, Any]
) -> None:
    assert is_argilla(data) in (True, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        try:
            read: Annotations = read_argilla(data, **options)
        except EDOError:
            return
    np.testing.assert_allclose(read.soft_labels.sum(axis=1), 1)


def test_fields_and_metadata_are_columns_of_the_items() -> None:
    records = flat(**{"metadata.lang": ["en"], "metadata.tags": ["x", "y"], "source": "web"})
    read = read_argilla(records, columns={"text": "text"})
    assert {name: [*values] for name, values in read.item_columns.items()} == {
        "lang": ["en", "en"],
        "source": ["web", "web"],
    }
