"""Annotations from CSV, TSV, Parquet and JSONL."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from edokit import Annotations, read_annotations
from edokit._io.tables import write_table
from edokit.annotations.long_table import Policies
from edokit.datasets.read import read_annotation_table
from tests.errors import raises_code

ROWS = {
    "item": ["a", "a", "b", "b"],
    "annotator": ["01", "2", "01", "2"],
    "label": ["no", "yes", "yes", "yes"],
    "text": ["one", "one", "two", "two"],
    "split": ["train", "train", "dev", "dev"],
    "team": ["red", "blue", "red", "blue"],
}


def test_every_kind_of_table_tells_the_same(tmp_path: Path) -> None:
    for suffix in ("csv", "tsv", "parquet", "jsonl"):
        path = tmp_path / f"a.{suffix}"
        write_table(pa.table(ROWS), path)
        read = read_annotation_table(path)
        assert read.items.tolist() == ["a", "b"]
        assert read.annotators.tolist() == ["01", "2"]
        assert read.classes == ("no", "yes")
        assert read.soft_labels.tolist() == [[0.5, 0.5], [0, 1]]
        assert read.texts.tolist() == ["one", "two"]
        assert read.splits.tolist() == ["train", "dev"]
        assert read.attributes["team"].tolist() == ["red", "blue"]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    first_annotations = Annotations.from_table(ROWS)
    write_table(first_annotations.to_table(), tmp_path / "a.csv")
    assert read_annotation_table(tmp_path / "a.csv").to_table().equals(first_annotations.to_table())


def test_other_column_names_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,who,said\nt1,w1,0\nt1,w2,1\n")
    columns = {"item": "id", "annotator": "who", "label": "said"}
    assert read_annotation_table(path, columns=columns).classes == ("0", "1")


def test_probabilities_of_a_csv_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,annotator,p_0,p_1\nt1,w1,0.25,0.75\nt1,w2,0.75,0.25\n")
    assert read_annotation_table(path).soft_labels.tolist() == [[0.5, 0.5]]


@pytest.mark.filterwarnings("ignore:.*dropped by duplicates:edokit._errors.EDOWarning")
def test_split_classes_and_duplicates_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    path.write_text("\n".join(json.dumps(row) for row in [*rows, rows[-1]]))
    read = read_annotation_table(
        path,
        split="dev",
        classes=["yes", "no", "never"],
        policies=Policies(duplicates="first"),
    )
    assert (read.items.tolist(), read.classes) == (["b"], ("yes", "no", "never"))
    assert len(read) == 2


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("id,annotator,label\na,b,c\n", {}, ("missing-column", "'item'")),
        (
            "item,annotator,label\na,b,c\n",
            {"columns": {"item": "key"}},
            ("missing-column", "column 'key'"),
        ),
        (
            "item,annotator,label\na,b,c\n",
            {"classes": ["x"]},
            ("unknown-class", "row 2", "label 'c'"),
        ),
        ("item,annotator,label\na,b,c\na,b,c\n", {}, ("duplicate-annotation", "row 3")),
        ("item,annotator,label\na,,\n", {}, ("missing-value", "'annotator'", "row 2")),
    ],
)
def test_what_is_wrong_is_said_of_the_file(
    tmp_path: Path, content: str, options: dict[str, object], says: tuple[str, ...]
) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(content)
    with raises_code(*says) as caught:
        read_annotation_table(path, **options)  # type: ignore[arg-type]
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_row_of_a_folder_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,no\nb,x,no\n")
    (tmp_path / "b.csv").write_text("item,annotator,label\nc,x,yes\n")
    with raises_code("unknown-class", "row 2 of a.csv has label 'no'"):
        read_annotation_table(tmp_path, classes=["yes"])
    with raises_code("unknown-class", "row 2 of b.csv has label 'yes'"):
        read_annotation_table(tmp_path, classes=["no"])


def test_a_cell_of_a_table_with_a_column_per_annotator_is_named_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("Study\nitem,ann,ben\na,no,no\nb,,maybe\n")
    with raises_code("unknown-class", "row 4 has label 'maybe'"):
        read_annotations(path, skip_rows=1, annotator_columns=["ann", "ben"], classes=["no", "yes"])


def test_a_folder_may_have_tables_of_several_formats(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,no\nb,x,yes\n")
    (tmp_path / "b.jsonl").write_text('{"item":"c","annotator":"x","label":"yes"}\n')
    write_table(
        pa.table({"item": ["d"], "annotator": ["x"], "label": ["no"]}), tmp_path / "c.parquet"
    )
    annotations = read_annotations(tmp_path)
    assert annotations.items.tolist() == ["a", "b", "c", "d"]
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,no\n")
    with raises_code("unknown-class", "line 1 of b.jsonl has label 'yes'"):
        read_annotations(tmp_path, classes=["no"])
