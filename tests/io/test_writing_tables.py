"""Tables to CSV, TSV, Parquet and JSONL files."""

from __future__ import annotations

import csv
import datetime
import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edokit._io.tables import number_column, read_table, write_table
from tests.errors import raises_code

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ROWS = st.lists(st.tuples(TEXT, TEXT, st.floats(allow_nan=False, allow_infinity=False)), min_size=1)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@given(rows=ROWS)
def test_any_text_and_any_number_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[tuple[str, str, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    names = ("item", 'some, "text"', "p_1")
    columns = list(zip(*rows, strict=True))
    table = pa.table([pa.array(column) for column in columns], names=names)
    coded = table.set_column(1, names[1], table[1].dictionary_encode())
    for written in (table, coded):
        write_table(written, path)
        again = read_table(path)
        again = again.set_column(2, "p_1", pa.array(number_column(again, "p_1")))
        assert tuple(again.column_names) == names
        assert [tuple(row.values()) for row in again.to_pylist()] == rows


def test_gaps_are_empty_in_csv_and_null_in_json_lines(tmp_path: Path) -> None:
    table = pa.table({"item": ["a", None], "p": [math.nan, math.inf], "n": [None, 2]})
    write_table(table, tmp_path / "t.csv")
    write_table(table, tmp_path / "t.jsonl")
    assert read_table(tmp_path / "t.csv")["item"].to_pylist() == ["a", ""]
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"item": "a", "p": None, "n": None},
        {"item": None, "p": None, "n": 2},
    ]


def test_dates_become_text_in_json_lines(tmp_path: Path) -> None:
    write_table(pa.table({"day": [datetime.date(2024, 1, 2)]}), tmp_path / "t.jsonl")
    assert read_table(tmp_path / "t.jsonl").to_pylist() == [{"day": "2024-01-02"}]


def test_json_lines_are_readable_in_every_script(tmp_path: Path) -> None:
    write_table(pa.table({"text": ["مرحبا"]}), tmp_path / "t.jsonl")
    assert "مرحبا" in (tmp_path / "t.jsonl").read_text(encoding="utf-8")


def test_tables_of_many_batches_are_written_in_order(tmp_path: Path) -> None:
    numbers = [str(k) for k in range(150_000)]
    table = pa.table({"item": pa.array(numbers).dictionary_encode()})
    write_table(table, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv")["item"].to_pylist() == numbers


def test_what_a_csv_cannot_hold_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with raises_code("unsupported-type", "t.csv"):
        write_table(pa.table({"item": [[1, 2]]}), tmp_path / "new" / "t.csv")
    with raises_code("unknown-ending"):
        write_table(pa.table({"item": [1]}), tmp_path / "t.xlsx")
    with raises_code("duplicate-column"):
        write_table(pa.table([pa.array([1])] * 2, names=["a", "a"]), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_dictionary_of_texts_is_written_once(tmp_path: Path) -> None:
    ids = pa.array([f"item {i}" for i in range(1000)])
    codes = np.repeat(np.arange(1000, dtype=np.int32), 1100)
    table = pa.table({"item": pa.DictionaryArray.from_arrays(codes, ids)})
    write_table(table, tmp_path / "long.parquet")
    assert pq.ParquetFile(tmp_path / "long.parquet").metadata.num_row_groups == 1
    assert read_table(tmp_path / "long.parquet").num_rows == len(codes)


SIGNS = "'=+-@ \t\r\n\x85\xa0\u2003＝a1."


# A line break in quotes, and cells after it that look like the header of another table.
@example(["\r=\t@\t1"])
@given(st.lists(st.text(SIGNS, min_size=1, max_size=6), min_size=1, max_size=20))
def test_no_cell_of_a_csv_is_a_formula_and_all_are_read_again(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("cells") / "cells.csv"
    write_table(pa.table({"@name": [*texts, "end"]}), path)
    table = read_table(path)
    assert table.column_names == ["@name"]
    assert table["@name"].to_pylist() == [*texts, "end"]
    with path.open(encoding="utf-8", newline="") as stream:
        cells = [row[0] for row in csv.reader(stream) if row]
    for cell in cells:
        start = cell.lstrip()[:1]
        assert start not in "=@＝" or not start
        # A signed number is a number in a spreadsheet, too.
        assert start not in "+-" or not start or re.fullmatch(r"[+-][\d.]+", cell)


def test_a_raw_csv_holds_text_as_it_is(tmp_path: Path) -> None:
    write_table(pa.table({"item": ["=1+1", "@ann", "'=x"]}), tmp_path / "raw.csv", raw=True)
    assert (tmp_path / "raw.csv").read_text() == '"item"\n"=1+1"\n"@ann"\n"\'=x"\n'
