"""Exports of doccano in odd shapes; those that it wrote are read in `test_real_exports`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_cases import anything, damaged
from hypothesis import given

from edokit import EDOError, EDOWarning, read_annotations
from tests.errors import raises_code


def example(number: int, *labels: str) -> dict[str, Any]:
    return {"id": number, "text": f"Post {number}.", "label": [*labels], "Comments": []}


def old_example(number: int, **labels: int) -> dict[str, Any]:
    """An item of an export of version 1.0, after its documentation."""
    annotations = [
        {"label": label, "user": int(user.removeprefix("user"))} for user, label in labels.items()
    ]
    return {
        "id": number,
        "text": f"Post {number}.",
        "annotations": annotations,
        "meta": {"lang": "en"},
        "annotation_approver": None,
    }


def write_lines(file: Path, *records: Any) -> None:
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")


def test_each_file_is_an_annotator(tmp_path: Path) -> None:
    write_lines(tmp_path / "ann.jsonl", example(1, "calm"), example(2))
    write_lines(tmp_path / "ben.jsonl", example(1, "heated"), example(2, "calm"))
    annotations = read_annotations(tmp_path)
    assert annotations.annotators.tolist() == ["ann", "ben"]
    np.testing.assert_allclose(annotations.soft_labels, [[0.5, 0.5], [1, 0]])


def test_several_classes_need_a_scale(tmp_path: Path) -> None:
    write_lines(tmp_path / "ann.jsonl", example(1, "calm", "kind"))
    with raises_code("undeclared-sets", "multi-label"):
        read_annotations(tmp_path)
    assert read_annotations(tmp_path, scale="multi-label").classes == ("calm", "kind")


def test_old_exports_name_users_by_numbers(tmp_path: Path) -> None:
    write_lines(tmp_path / "file.jsonl", old_example(1, user7=1, user8=2), old_example(2, user7=1))
    annotations = read_annotations(tmp_path / "file.jsonl", label_map={"1": "calm", "2": "heated"})
    assert annotations.annotators.tolist() == ["7", "8"]
    assert annotations.classes == ("calm", "heated")
    assert [*annotations.item_columns["lang"]] == ["en", "en"]


def test_a_folder_with_other_files_is_not_an_export(tmp_path: Path) -> None:
    write_lines(tmp_path / "ann.jsonl", example(1, "calm"))
    write_lines(tmp_path / "ben.jsonl", {"item": "1", "annotator": "ben", "label": "calm"})
    with raises_code("columns-differ"):
        read_annotations(tmp_path)
    with raises_code("wrong-folder"):
        read_annotations(tmp_path, format="doccano")


ANYTHING = anything({*example(1), "annotations", "user", "meta"}, ["calm", "\ud800", "1"])
SHAPES = [[example(1, "calm"), example(2)], [old_example(1, user1=1)]]


@given(data=ANYTHING | damaged(SHAPES, ANYTHING))
def test_whatever_comes_in_the_outcome_is_annotations_or_a_clear_error(
    data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("export") / "ann.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        try:
            annotations = read_annotations(file, format="doccano")
        except EDOError:
            return
    np.testing.assert_allclose(annotations.soft_labels.sum(axis=1), 1)
