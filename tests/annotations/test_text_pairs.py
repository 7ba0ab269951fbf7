"""Text pairs: a column of contexts beside the texts, through tables, readers and members."""

import json
from pathlib import Path

import pytest

from edokit import Annotations, read_annotations, write_annotations
from edokit.datasets.split import split_items
from edokit.members.texts import read_texts
from edokit.members.training_data import TrainingData

ROWS = {
    "item": ["a", "a", "b", "b"],
    "annotator": ["x", "y", "x", "y"],
    "label": ["no", "no", "yes", "yes"],
    "text": ["Sure.", "Sure.", "No way!", "No way!"],
    "context": ["The bus is late.", "The bus is late.", "A song.", "A song."],
}
PAIRS = (("Sure.", "The bus is late."), ("No way!", "A song."))


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_contexts_are_kept_and_read_as_pairs(ending: str, tmp_path: Path):
    path = tmp_path / f"pairs.{ending}"
    write_annotations(Annotations.from_table(ROWS), path)
    second_annotations = read_annotations(path)
    assert second_annotations.contexts.tolist() == ["The bus is late.", "A song."]
    assert second_annotations.take([1]).contexts.tolist() == ["A song."]
    assert "context" not in second_annotations.item_columns
    assert TrainingData.from_annotations(second_annotations).texts == PAIRS
    assert read_texts(path).texts == PAIRS


def test_any_column_may_hold_the_contexts(tmp_path: Path):
    rows = {("post" if name == "context" else name): values for name, values in ROWS.items()}
    columns = {"context": "post"}
    assert Annotations.from_table(rows, columns=columns).contexts[1] == "A song."
    path = tmp_path / "rows.jsonl"
    lines = (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True))
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read_texts(path, columns=columns).texts == PAIRS


def test_a_context_without_a_text_is_an_item_column():
    rows = {name: values for name, values in ROWS.items() if name != "text"}
    annotations = Annotations.from_table(rows)
    assert annotations.contexts is None
    assert annotations.item_columns["context"].tolist() == ["The bus is late.", "A song."]


def test_one_reply_to_two_posts_is_no_duplicate():
    words = ["river", "mountain", "train", "piano", "garden", "window", "letter", "bread"]
    rows = {
        "item": words,
        "annotator": ["x"] * 8,
        "label": ["no", "yes"] * 4,
        "text": ["That is a nice thing to say about it."] * 8,
        "context": [f"{word} " * 9 for word in words],
    }
    parts = split_items(Annotations.from_table(rows), {"train": 0.5, "dev": 0.5})
    assert sorted(parts.splits) == ["dev"] * 4 + ["train"] * 4


def test_a_field_of_an_export_is_the_context(tmp_path: Path):
    tasks = [
        {
            "id": 1,
            "data": {"reply": "Sure.", "post": "The bus is late."},
            "annotations": [
                {"completed_by": 1, "result": [{"from_name": "t", "value": {"choices": ["no"]}}]}
            ],
        }
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    annotations = read_annotations(path, columns={"text": "reply", "context": "post"})
    assert (annotations.texts[0], annotations.contexts[0]) == PAIRS[0]
    assert not annotations.item_columns
