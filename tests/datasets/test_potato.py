"""The output folder of Potato, written after its documented format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edokit import InputError, read_annotations


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
    with pytest.raises(InputError, match=r"2 questions have labels.*'strength'"):
        read_annotations(project)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    with pytest.raises(InputError, match=r"annotated_instances\.jsonl"):
        read_annotations(tmp_path, format="potato")


def test_a_damaged_line_is_named(project: Path) -> None:
    (project / "ben" / "annotated_instances.jsonl").write_text('{"id": 1}\n{', encoding="utf-8")
    with pytest.raises(InputError, match="ben"):
        read_annotations(project, question="tone")
