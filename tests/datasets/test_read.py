"""One door for every source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edokit import InputError, read_annotations
from edokit._io.tables import write_table
from edokit.datasets.read import recognise
from tests.errors import raises_code

LEWIDI = {
    "1": {
        "text": "tea at <b>four</b>",
        "annotators": "Ann1,Ann2",
        "annotations": "0,1",
        "hard_label": "1",
        "split": "dev",
    }
}
TURNS = {"prev_agent": "Hello", "prev_user": "Hi", "agent": "Tea?", "user": "No tea"}
TABLE = {
    "item": ["a", "a"],
    "annotator": ["x", "y"],
    "label": ["no", "yes"],
    "text": ["tea at <b>four</b>"] * 2,
}
LABEL_STUDIO = [
    {
        "id": 5,
        "data": {"post": "tea at <b>four</b>", "key": 55},
        "annotations": [
            {
                "id": person,
                "completed_by": person,
                "was_cancelled": False,
                "result": [
                    {
                        "from_name": control,
                        "to_name": "post",
                        "type": "choices",
                        "value": {"choices": choices},
                    }
                    for control, choices in (("polite", ["yes"]), ("mood", ["calm", "glad"]))
                ],
            }
            for person in (1, 2)
        ],
        "predictions": [],
    }
]
_BOTH = {"responses.users": ["u1", "u2"], "responses.status": ["submitted", "submitted"]}
ARGILLA = [
    {
        "id": "r1",
        "post": "tea at <b>four</b>",
        "polite.responses": ["yes", "no"],
        **{f"polite.{name}": values for name, values in _BOTH.items()},
        "glad.responses": ["no", "no"],
        **{f"glad.{name}": values for name, values in _BOTH.items()},
    }
]


def dump(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def lines(path: Path, rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_lewidi_file_is_recognised_and_keeps_its_split(tmp_path: Path) -> None:
    read = read_annotations(dump(tmp_path / "Tea_dev.json", LEWIDI))
    assert (read.items.tolist(), read.split_names) == (["dev-1"], ("dev",))


def test_a_folder_of_lewidi_splits_is_recognised(tmp_path: Path) -> None:
    dump(tmp_path / "Tea_dev.json", LEWIDI)
    assert read_annotations(str(tmp_path)).items.tolist() == ["dev-1"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "ndjson"])
def test_tables_are_recognised(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write_table(pa.table(TABLE), path)
    assert recognise(path).name == "table"
    assert read_annotations(path).classes == ("no", "yes")


def test_a_label_studio_export_is_recognised(tmp_path: Path) -> None:
    path = dump(tmp_path / "export.json", LABEL_STUDIO)
    read = read_annotations(path, question="polite")
    assert (read.items.tolist(), read.classes) == (["5"], ("yes",))


def test_an_argilla_export_is_recognised(tmp_path: Path) -> None:
    for path in (
        dump(tmp_path / "records.json", ARGILLA),
        lines(tmp_path / "records.jsonl", ARGILLA),
    ):
        read = read_annotations(path, question="polite")
        assert read.annotators.tolist() == ["u1", "u2"]
        assert read.soft_labels.tolist() == [[0.5, 0.5]]


def test_a_flat_argilla_table_is_recognised_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    flat = {
        "id": ["r1"],
        "post": ["tea"],
        "polite.responses": [["yes", "no"]],
        "polite.responses.users": [["u1", "u2"]],
        "polite.responses.status": [["submitted", "submitted"]],
    }
    write_table(pa.table(flat), path)
    assert recognise(path).name == "argilla"
    assert read_annotations(path).soft_labels.tolist() == [[0.5, 0.5]]


def test_options_of_an_export_are_passed_through(tmp_path: Path) -> None:
    path = dump(tmp_path / "export.json", LABEL_STUDIO)
    read = read_annotations(
        path,
        question="mood",
        label_map={'["calm", "glad"]': "calm"},
        columns={"item": "key", "text": "post"},
        classes=["glad", "calm"],
    )
    assert (read.items.tolist(), read.texts.tolist()) == (["55"], ["tea at <b>four</b>"])
    assert read.soft_labels.tolist() == [[0, 1]]
    with raises_code("unknown-role", "'label'"):
        read_annotations(path, question="mood", columns={"label": "x"})


def test_the_format_given_wins_over_what_is_seen(tmp_path: Path) -> None:
    path = dump(tmp_path / "Tea_dev.json", LEWIDI)
    with raises_code("wrong-content"):
        read_annotations(path, format="label-studio")
    renamed = lines(tmp_path / "a.jsonl", [LABEL_STUDIO[0]])
    with raises_code("missing-column"):
        read_annotations(renamed, format="table")


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.json", LEWIDI)
    with raises_code("unknown-choice", "'lewidi', 'table', 'label-studio', 'argilla'", "'excel'"):
        read_annotations(path, format="excel")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"a": 1}'),
        ("a.json", '[{"item": "a", "annotator": "x", "label": 1}]'),
        ("a.json", "[]"),
        ("a.json", "3"),
        ("a", "x"),
    ],
)
def test_what_is_not_understood_is_said_with_what_is(
    tmp_path: Path, name: str, content: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with raises_code("unknown-format", ".csv", "Argilla") as caught:
        read_annotations(path)
    assert str(path) in caught.value.message
    assert "lewidi, table, label-studio, argilla" in caught.value.hint


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    dump(tmp_path / "export.json", LABEL_STUDIO)
    with raises_code("ambiguous-folder", "0 LeWiDi"):
        read_annotations(tmp_path)


@pytest.mark.parametrize("name", ["gone.json", "gone.csv", "gone"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    with raises_code("missing-file", "gone"):
        read_annotations(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", ("empty-file",)),
        ("a.json", b"", ("empty-file",)),
        ("a.json", b'{"1": {"te', ("invalid-json",)),
        ("a.json", b'{"1": "caf\xe9"}', ("invalid-unicode", "UTF-8")),
        ("a.jsonl", b'{"item": "caf\xe9"}\n', ("invalid-unicode", "UTF-8")),
        ("a.jsonl", b'{"item": "a", \n', ("invalid-json",)),
        ("a.parquet", b"PAR1 cut off", ("unreadable-file",)),
        ("a.csv", b"item,annotator,label\ncaf\xe9,b,c\n", ("invalid-unicode", "UTF-8")),
    ],
)
def test_a_broken_file_gets_the_reason_of_its_reader(
    tmp_path: Path, name: str, content: bytes, says: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with raises_code(*says) as caught:
        read_annotations(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("data", "option"),
    [
        (LEWIDI, {"label_map": {"0": "no"}}),
        (LEWIDI, {"question": "x"}),
        (ARGILLA, {"user_first": True}),
    ],
)
def test_an_option_of_another_format_is_refused(
    tmp_path: Path, data: Any, option: dict[str, Any]
) -> None:
    path = dump(tmp_path / "a.json", data)
    with raises_code("inapplicable-option", next(iter(option))):
        read_annotations(path, **option)


def test_an_option_of_no_format_is_refused(tmp_path: Path) -> None:
    with raises_code("inapplicable-option", "colour", "'user_first'"):
        read_annotations(dump(tmp_path / "a.json", LEWIDI), colour="red")


def test_options_left_at_none_are_not_given(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.json", LEWIDI)
    read = read_annotations(path, columns=None, question=None, anonymous=None)
    assert len(read) == 2


def test_conversations_are_flattened_as_asked(tmp_path: Path) -> None:
    talk = {"1": {**LEWIDI["1"], "text": json.dumps(TURNS), "annotations": "-1,1"}}
    path = dump(tmp_path / "a.json", talk)
    assert read_annotations(path, user_first=True).texts[0].startswith("No tea")
    assert read_annotations(path).texts[0].endswith("No tea")


@pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")
@pytest.mark.filterwarnings("ignore:.*dropped by duplicates:edokit._errors.EDOWarning")
def test_duplicates_are_counted_in_lewidi_and_refused_elsewhere(tmp_path: Path) -> None:
    twice = {"1": {**LEWIDI["1"], "annotators": "Ann1,Ann1"}}
    path = dump(tmp_path / "a.json", twice)
    assert len(read_annotations(path)) == 2
    assert len(read_annotations(path, duplicates="first")) == 1
    table = lines(tmp_path / "a.jsonl", [{"item": "a", "annotator": "x", "label": "0"}] * 2)
    with raises_code("duplicate-annotation", "'x'", "item 'a'", "in line 2"):
        read_annotations(table)
    assert len(read_annotations(table, duplicates="all")) == 2


def test_one_split_is_kept_of_any_source(tmp_path: Path) -> None:
    rows = [{"item": s, "annotator": "x", "label": "0", "split": s} for s in ("train", "dev")]
    table = lines(tmp_path / "a.jsonl", rows)
    assert read_annotations(table, split="dev").items.tolist() == ["dev"]


def test_errors_about_an_export_name_the_file(tmp_path: Path) -> None:
    path = dump(tmp_path / "export.json", LABEL_STUDIO)
    with pytest.raises(InputError) as caught:
        read_annotations(path, question="colour")
    assert str(path) in caught.value.message


def test_the_real_files_are_recognised(lewidi: Path) -> None:
    for name in ("ArMIS", "HS-Brexit"):
        full_annotations = read_annotations(lewidi / name)
        dev = read_annotations(lewidi / name / f"{name}_dev.json")
        assert full_annotations.split_names == ("train", "dev", "test")
        assert dev.items.tolist() == full_annotations.split("dev").items.tolist()
