"""The role ``group``: the thread, author or template that an item belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edokit import Annotations, read_annotations, write_annotations
from tests.errors import raises_code

ROWS = {
    "item": ["a", "a", "b", "b", "c"],
    "annotator": ["x", "y", "x", "y", "x"],
    "label": ["no", "yes", "no", "no", "yes"],
    "text": ["one", "one", "two", "two", "three"],
    "thread": ["t1", "t1", "t1", None, "t2"],
}
THREAD = {"group": "thread"}


def groups(annotations: Annotations) -> list[str]:
    assert annotations.item_groups is not None
    return annotations.item_groups.tolist()


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "xlsx"])
def test_every_table_has_item_groups(ending: str, tmp_path: Path):
    path = tmp_path / f"labels.{ending}"
    frame = pd.DataFrame(ROWS)
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif ending == "xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    annotations = read_annotations(path, columns=THREAD)
    assert groups(annotations) == ["t1", "t1", "t2"]
    assert "thread" not in annotations.item_columns


def test_an_export_has_item_groups(tmp_path: Path):
    def task(number: int, thread: Any) -> dict[str, Any]:
        answer = {"type": "choices", "value": {"choices": ["no"]}, "from_name": "tone"}
        annotation = {"completed_by": 1, "result": [answer | {"to_name": "text"}]}
        data = {"text": f"Post {number}.", "thread": thread}
        return {"id": number, "annotations": [annotation], "data": data}

    path = tmp_path / "export.json"
    path.write_text(json.dumps([task(1, "t1"), task(2, 7), task(3, None)]))
    reading: dict[str, Any] = {"classes": ["no", "yes"]}
    assert groups(read_annotations(path, columns=THREAD, **reading)) == ["t1", "7", ""]
    with raises_code("missing-column", "'author'", "'group'"):
        read_annotations(path, columns={"group": "author"}, **reading)
    path.write_text(json.dumps([task(1, ["t1"])]))
    with raises_code("wrong-content", "'thread'"):
        read_annotations(path, columns=THREAD, **reading)


def test_replies_of_lewidi_are_grouped_by_their_post(lewidi2025: Path):
    path = lewidi2025 / "MP" / "MP_dev.json"
    annotations = read_annotations(path, columns={"group": "context"})
    assert annotations.contexts is not None
    assert groups(annotations) == annotations.contexts.tolist()
    with raises_code("unknown-role", "'item'"):
        read_annotations(path, columns={"item": "id"})


def test_an_item_in_two_groups_is_one_error():
    rows = ROWS | {"thread": ["t1", "t1", "t1", "t2", "t2"]}
    with raises_code("contradictory-rows", "item 'b'", "thread", "row 3", "row 4"):
        Annotations.from_table(rows, columns=THREAD)


def test_a_column_called_group_is_an_attribute_unless_its_role_is_named():
    rows = {name: values for name, values in ROWS.items() if name != "thread"}
    rows["group"] = ["one", "two", "one", "two", "one"]
    annotations = Annotations.from_table(rows)
    assert annotations.item_groups is None
    assert annotations.attributes["group"].tolist() == ["one", "two"]
    with raises_code("contradictory-rows", "item 'a'"):
        Annotations.from_table(rows, columns={"group": "group"})


def test_groups_stay_with_their_items(tmp_path: Path):
    annotations = Annotations.from_table(ROWS, columns=THREAD)
    assert groups(annotations.take([2, 0])) == ["t2", "t1"]
    assert groups(annotations.align(["c", "b", "a"])) == ["t2", "t1", "t1"]
    assert groups(annotations.pairs()) == ["t1", "t1", "t1", "t1", "t2"]
    assert annotations.item_column("item_group").tolist() == ["t1", "t1", "t2"]
    for ending in ("csv", "parquet", "jsonl"):
        path = tmp_path / f"written.{ending}"
        write_annotations(annotations, path)
        assert groups(read_annotations(path)) == ["t1", "t1", "t2"]
