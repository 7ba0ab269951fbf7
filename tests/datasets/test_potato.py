"""Output of Potato: that of version 1 after its documented format, and version 2 in odd shapes.

Files that version 2 wrote are read in `test_real_exports`.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_cases import anything, damaged
from hypothesis import given

from edokit import EDOError, EDOWarning, read_annotations
from tests.errors import raises_code

REAL = Path(__file__).parent / "files" / "potato-2.12.1" / "tone"


def write(folder: Path, annotator: str, *instances: dict[str, Any]) -> None:
    """What Potato keeps of one annotator."""
    file = folder / annotator / "annotated_instances.jsonl"
    file.parent.mkdir(parents=True)
    lines = [json.dumps(instance, ensure_ascii=False) for instance in instances]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (file.parent / "annotation_order.txt").write_text("1\n", encoding="utf-8")


def instance(item: str, text: str, **schemes: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": item,
        "displayed_text": text,
        "label_annotations": schemes,
        "span_annotations": {},
        "behavioral_data": {"time_string": "Time spent: 0d 0h 0m 3s"},
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "annotation_output"
    write(
        folder,
        "ann",
        instance("1", "what a day", tone={"polite": "1"}, strength={"scale_2": "2"}),
        instance("2", "the bus is late", tone={"rude": "2"}, strength={"scale_5": "5"}),
    )
    write(folder, "ben", instance("1", "what a day", tone={"rude": True, "polite": False}))
    (folder / "user_config.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_project_is_recognised(project: Path) -> None:
    annotations = read_annotations(project, question="tone")
    assert annotations.to_table().select(["item", "annotator", "label", "text"]).to_pylist() == [
        {"item": "1", "annotator": "ann", "label": "polite", "text": "what a day"},
        {"item": "2", "annotator": "ann", "label": "rude", "text": "the bus is late"},
        {"item": "1", "annotator": "ben", "label": "rude", "text": "what a day"},
    ]


def test_points_of_a_scale_are_numbers(project: Path) -> None:
    annotations = read_annotations(project, question="strength", scale="ordinal:1,2,3,4,5")
    assert annotations.counts.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]]


def test_the_scheme_is_named_where_there_are_several(project: Path) -> None:
    with raises_code("ambiguous-question", "2 questions", "'strength'"):
        read_annotations(project)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    with raises_code("wrong-folder", "annotated_instances.jsonl"):
        read_annotations(tmp_path, format="potato")


def test_a_damaged_line_is_named(project: Path) -> None:
    (project / "ben" / "annotated_instances.jsonl").write_text('{"id": 1}\n{', encoding="utf-8")
    with raises_code("invalid-json", "ben"):
        read_annotations(project, question="tone")


# --- Version 2 ------------------------------------------------------------------------------------


def state(person: str, **answers: list[Any]) -> dict[str, Any]:
    """What version 2 keeps of one annotator."""
    return {
        "user_id": person,
        "instance_id_ordering": [*answers],
        "instance_id_to_label_to_value": answers,
        "instance_id_to_span_to_value": {},
        "origin": {},
    }


def entry(scheme: str, name: str, value: Any) -> list[Any]:
    return [{"schema": scheme, "name": name}, value]


def write_states(folder: Path, *states: dict[str, Any]) -> Path:
    for content in states:
        file = folder / content["user_id"] / "user_state.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of a project that version 2 wrote."""
    return Path(shutil.copytree(REAL, tmp_path / "tone"))


@pytest.mark.parametrize("value", ["calm", True, "true"])
def test_a_ticked_option_is_the_label_whatever_its_value(value: Any, tmp_path: Path) -> None:
    write_states(tmp_path, state("ann", a=[entry("tone", "calm", value)]))
    with pytest.warns(EDOWarning, match="no texts were found"):
        annotations = read_annotations(tmp_path)
    assert annotations.classes == ("calm",)
    assert annotations.texts is None


def test_another_answer_than_the_options_is_no_label(tmp_path: Path) -> None:
    other = [entry("tone", "free_response", "sleepy")]
    write_states(tmp_path, state("ann", a=[entry("tone", "calm", "calm")], b=other))
    with pytest.warns(EDOWarning) as notes:
        assert read_annotations(tmp_path).items.tolist() == ["a"]
    assert any("1 annotation without a label for 'tone'" in str(note.message) for note in notes)


def test_several_options_of_one_question_are_a_set(copy: Path) -> None:
    path = copy / "annotation_output" / "ben" / "user_state.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["instance_id_to_label_to_value"]["post-1"].append(entry("tone", "calm", "calm"))
    path.write_text(json.dumps(content), encoding="utf-8")
    with raises_code("undeclared-sets", "'post-1'"):
        read_annotations(copy, question="tone")


def test_without_a_configuration_there_are_no_texts(copy: Path) -> None:
    (copy / "config.yaml").unlink()
    with pytest.warns(EDOWarning, match="no texts were found"):
        annotations = read_annotations(copy / "annotation_output", question="tone")
    assert annotations.texts is None
    assert len(annotations) == 7


@pytest.mark.parametrize("content", ["- [", "a: &a 1\nb: *a\n", "[]", "\ud800", "services: {}"])
def test_other_yaml_files_beside_the_project_are_passed_over(content: str, copy: Path) -> None:
    (copy / "compose.yaml").write_bytes(content.encode("utf-8", "surrogatepass"))
    annotations = read_annotations(copy, question="tone")
    assert annotations.texts is not None


def test_a_data_file_outside_the_project_is_not_read(copy: Path) -> None:
    shutil.move(copy / "data" / "posts.json", copy.parent / "posts.json")
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("data/posts.json", "../posts.json"))
    with pytest.warns(EDOWarning) as notes:
        assert read_annotations(copy, question="tone").texts is None
    assert any("not a file within the project" in str(note.message) for note in notes)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json"])
def test_data_files_of_every_kind_give_texts_and_columns(ending: str, copy: Path) -> None:
    rows = [{"key": f"post-{n}", "post": f"Post {n}.", "lang": "en"} for n in (1, 2, 3)]
    (copy / "data" / "posts.json").unlink()
    lines = [json.dumps(row) for row in rows]
    if ending == "json":
        lines = [json.dumps(rows, indent=1)]
    if ending in ("csv", "tsv"):
        separator = {"csv": ",", "tsv": "\t"}[ending]
        lines = [separator.join(values) for values in [rows[0].keys(), *(r.values() for r in rows)]]
    (copy / "data" / f"posts.{ending}").write_text("\n".join(lines), encoding="utf-8")
    config = copy / "config.yaml"
    text = config.read_text(encoding="utf-8").replace("data/posts.json", f"data/posts.{ending}")
    text = text.replace("id_key: id", "id_key: key").replace("text_key: text", "text_key: post")
    config.write_text(text, encoding="utf-8")
    annotations = read_annotations(copy, question="tone")
    assert annotations.texts is not None
    assert annotations.texts.tolist() == ["Post 1.", "Post 2.", "Post 3."]
    assert list(annotations.item_columns) == ["lang"]


ANYTHING = anything(
    {"schema", "name", "user_id", "origin", "kind"}, ["calm", "slider", "true", "\ud800"]
)
SHAPES = [
    state("ann", a=[entry("tone", "calm", "calm"), entry("remark", "text_box", "Fine.")]),
    state("ben", a=[entry("tone", "heated", True)], b=[]) | {"origin": {"kind": "llm"}},
]


@given(data=ANYTHING | damaged(SHAPES, ANYTHING))
def test_whatever_comes_in_the_outcome_is_annotations_or_a_clear_error(
    data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("output") / "ann" / "user_state.json"
    file.parent.mkdir()
    file.write_text(json.dumps(data), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        try:
            annotations = read_annotations(file, format="potato", question="tone")
        except EDOError:
            return
    np.testing.assert_allclose(annotations.soft_labels.sum(axis=1), 1)


def test_an_answer_that_lacks_its_value_is_named_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "ann" / "user_state.json"
    file.parent.mkdir()
    answers = {"a": [[{"schema": "tone", "name": "calm"}]]}
    file.write_text(json.dumps({"user_id": "ann", "instance_id_to_label_to_value": answers}))
    with raises_code("wrong-content", "[0]", "[1]"):
        read_annotations(file, format="potato")
