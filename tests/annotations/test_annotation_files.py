"""Annotations through files: every format says the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from annotation_cases import assert_same, long_tables, said
from hypothesis import given, settings

from edokit import Annotations
from edokit._io.tables import TABLE_SUFFIXES, read_table, write_table
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@settings(max_examples=40)
@given(table=long_tables())
def test_annotations_come_back_from_every_format(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, table: pa.Table
) -> None:
    path = tmp_path_factory.getbasetemp() / f"annotations{suffix}"
    made = Annotations.from_table(table)
    write_table(made.to_table(), path)
    assert_same(Annotations.from_table(read_table(path)), made)


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_probabilities_come_back_bit_for_bit(suffix: str, tmp_path: Path) -> None:
    shares = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    made = Annotations.from_soft_labels(shares)
    write_table(made.to_table(), tmp_path / f"shares{suffix}")
    second_annotations = Annotations.from_table(read_table(tmp_path / f"shares{suffix}"))
    assert_same(second_annotations, made)


def test_numbers_in_json_lines_and_text_in_csv_are_the_same_names(tmp_path: Path) -> None:
    rows = [("7", "x", "0"), ("7", "y", "1"), ("10", "x", "1")]
    csv = tmp_path / "a.csv"
    lines = tmp_path / "a.jsonl"
    csv.write_text(
        "item,annotator,label\n" + "".join(f"{','.join(row)}\n" for row in rows), encoding="utf-8"
    )
    lines.write_text(
        "".join(
            json.dumps({"item": int(i), "annotator": a, "label": float(c)}) + "\n"
            for i, a, c in rows
        ),
        encoding="utf-8",
    )
    assert_same(Annotations.from_table(read_table(csv)), Annotations.from_table(read_table(lines)))


def test_the_traps_of_a_csv_from_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    content = (
        "\ufeffitem,annotator,label,text\r\n"
        '007,NA,None,"one, ""two""\r\nthree"\r\n'
        "7,null,nan,مرحبا\r\n"
        "2024-01-01,1.0,NA,\r\n"
    )
    path.write_bytes(content.encode())
    made = Annotations.from_table(read_table(path))
    assert said(made) == [
        ("007", "NA", "None"),
        ("2024-01-01", "1.0", "NA"),
        ("7", "null", "nan"),
    ]
    assert made.classes == ("NA", "None", "nan")
    assert made.texts is not None
    assert made.texts.tolist() == ['one, "two"\r\nthree', "مرحبا", ""]


def test_ids_that_look_like_dates_stay_as_they_are_in_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"item":"2024-01-01","annotator":"10:30:00","label":"1999-12-31 00:00:00"}\n',
        encoding="utf-8",
    )
    assert said(Annotations.from_table(read_table(path))) == [
        ("2024-01-01", "10:30:00", "1999-12-31 00:00:00")
    ]


def test_ids_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"item":12345678901234567890,"annotator":"x","label":0}\n', encoding="utf-8")
    with raises_code("mixed-types", "column 'item'"):
        Annotations.from_table(read_table(path))
    path.write_text('{"item":1234567890123456789,"annotator":"x","label":0}\n', encoding="utf-8")
    made = Annotations.from_table(read_table(path))
    assert made.items.tolist() == ["1234567890123456789"]


def test_the_row_of_a_bad_label_is_counted_from_one_without_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,annotator,label\na,x,0\n\na,y,2\nb,x,1\n", encoding="utf-8")
    with raises_code("unknown-class", "row 2", "label '2'"):
        Annotations.from_table(read_table(path), classes=[0, 1])


def test_texts_and_attributes_that_repeat_reach_pandas() -> None:
    rows = pa.table(
        {
            "item": ["1", "1", "2"],
            "annotator": ["a", "b", "a"],
            "label": ["no", "yes", "no"],
            "text": ["twice", "twice", "twice"],
            "age": ["30", "30", "30"],
        }
    )
    table = Annotations.from_table(rows).to_table().to_pandas()
    assert list(table["text"]) == ["twice"] * 3
    assert list(table["age"]) == ["30"] * 3
