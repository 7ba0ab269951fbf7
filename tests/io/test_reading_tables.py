"""Tables from CSV, TSV, Parquet and JSONL files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edokit._errors import InputError
from edokit._io.tables import number_column, read_table


def rows_of(path: Path, content: str | bytes) -> list[object]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    listed: list[object] = read_table(path).to_pylist()
    return listed


# --- CSV --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["None", "NA", "NaN", "nan", "null", "NULL", "N/A", "007", "true"])
def test_every_cell_of_a_csv_is_text(word: str, tmp_path: Path) -> None:
    assert rows_of(tmp_path / "t.csv", f"item,label\n1,{word}\n") == [{"item": "1", "label": word}]


def test_an_empty_cell_is_empty(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "t.csv", 'item,label,text\n1,,""\n')
    assert rows == [{"item": "1", "label": "", "text": ""}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system_are_understood(end: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "t.csv", end.join(["item,label", "1,a", "2,b", ""]))
    assert rows == [{"item": "1", "label": "a"}, {"item": "2", "label": "b"}]


@pytest.mark.parametrize("header", ["item,text", '"item","text"'])
def test_a_byte_order_mark_is_no_part_of_the_first_column(header: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "t.csv", f"\ufeff{header}\n1,a\n")
    assert rows == [{"item": "1", "text": "a"}]


def test_quoted_text_may_hold_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    content = 'item,text\n1,"one, two"\n2,"a ""b"" c"\n3,"up\nand\r\ndown"\n4,"""" \n'
    texts = [row["text"] for row in rows_of(tmp_path / "t.csv", content)]  # type: ignore[index]
    assert texts == ["one, two", 'a "b" c', "up\nand\r\ndown", '" ']


def test_arabic_text_and_emoji_come_through(tmp_path: Path) -> None:
    text = "مرحبا، كيف الحال؟ 🙂"
    rows = rows_of(tmp_path / "t.csv", f'item,text\n١,"{text}"\n')
    assert rows == [{"item": "١", "text": text}]


def test_a_tsv_stands_between_tabs(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "t.tsv", "item\ttext\n1\ta, b\n") == [{"item": "1", "text": "a, b"}]


def test_empty_lines_are_passed_over(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "t.csv", "\n\nitem,label\n\n007,a\n\n")
    assert rows == [{"item": "007", "label": "a"}]


def test_a_row_longer_than_a_block_is_read(tmp_path: Path) -> None:
    text = "long " * 500_000
    rows = rows_of(tmp_path / "t.csv", f"item,text\n1,{text}\n2,b\n")
    assert [len(row["text"]) for row in rows] == [len(text), 1]  # type: ignore[index]


def test_columns_of_numbers_are_read_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,p_0,p_1\n007, 0.25,7.5e-1\n8,,1\n")
    table = read_table(path)
    np.testing.assert_array_equal(number_column(table, "p_0"), [0.25, np.nan])
    np.testing.assert_array_equal(number_column(table, "p_1"), [0.75, 1])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("item,item\n1,2\n", "has several columns named 'item'"),
        ("item,label\n", "has no rows"),
        ("item,label", "has no rows"),
        ("\n", "has no rows"),
        ("\ufeff", "has no rows"),
        ("item,label\n1,a\n2\n", "Row #3: Expected 2 columns, got 1"),
        ("item,label\n1,a\n\n2,b,c\n", "Row #3: Expected 2 columns, got 3"),
        ('item,label\n1,"a\nb"\n2,b,c\n', "Row #3: Expected 2 columns, got 3"),
        ('item,text\n1,"never closed\n2,b\n', "quotation mark .* never closed.* last .. char"),
        ('item,text\n1,"cut', "quotation mark .* never closed"),
        ('item,text\n1,"', "quotation mark .* never closed"),
        ('item,text\n1,"""', "quotation mark .* never closed"),
        ('item,text\n1,"\n', "quotation mark .* never closed"),
        ("x" * 200_000 + ",b\n1,2\n", "can't be read as a CSV file"),
    ],
)
def test_a_damaged_csv_is_told_in_one_line(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        rows_of(tmp_path / "t.csv", content)


@pytest.mark.parametrize("mark", [";", "\t", "|", ","])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_columns_are_separated_by_what_the_header_has(
    mark: str, ending: str, tmp_path: Path
) -> None:
    content = f'\ufeff"item"{mark}text\n007{mark}"a{mark} b, c"\n'
    assert rows_of(tmp_path / f"t.{ending}", content) == [{"item": "007", "text": f"a{mark} b, c"}]


@pytest.mark.parametrize(
    "last", ['"a"', '""', '""""', '"a ""b"""', 'a"b', "", "a", '"\n"', '"\r\n"']
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_closed_quotation_at_the_end_is_no_damage(last: str, end: str, tmp_path: Path) -> None:
    assert len(rows_of(tmp_path / "t.csv", f"item,text\n1,{last}{end}")) == 1


@pytest.mark.parametrize("before", [0, 40_000])
def test_the_place_of_the_first_byte_that_is_not_utf8_is_named(before: int, tmp_path: Path) -> None:
    content = b"item,text\n" + b"1,plain\n" * before + "2,café\n".encode("latin1")
    byte = 10 + 8 * before + 5
    with pytest.raises(InputError, match=rf"line {before + 2}, at byte {byte}\).*-f latin1"):
        rows_of(tmp_path / "t.csv", content)


def test_utf16_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not UTF-8.*iconv -f utf-16"):
        rows_of(tmp_path / "t.csv", "item,text\n1,a\n".encode("utf-16"))


def test_the_row_that_holds_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,p_0\n1,0.5\n2,\n3,50%\n4,x\n")
    with pytest.raises(InputError, match=r"'p_0' of .* has '50%' in row 3.* 0.25 for 25%"):
        number_column(read_table(path), "p_0")


# --- JSONL ------------------------------------------------------------------------------------


def test_text_in_json_lines_stays_text_even_if_it_looks_like_a_date(tmp_path: Path) -> None:
    content = '{"item":"2024-01-01","label":"12:30:00"}\n{"item":"2024-01-02 10:00:00"}\n'
    assert rows_of(tmp_path / "t.jsonl", content) == [
        {"item": "2024-01-01", "label": "12:30:00"},
        {"item": "2024-01-02 10:00:00", "label": None},
    ]


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson"])
def test_json_lines_may_start_with_a_mark_and_skip_lines(suffix: str, tmp_path: Path) -> None:
    content = '\ufeff{"item":"007"}\r\n\r\n{"item":"مرحبا"}'
    assert rows_of(tmp_path / f"t.{suffix}", content) == [{"item": "007"}, {"item": "مرحبا"}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"item":1}\n{"item":"a"}\n', "'item' mixes types: row 1 holds int, row 2 holds str"),
        ('{"a":[1]}\n\n{"a":["x"]}\n', "'a' is not a column"),
        ('{"item":"a"}\n{"item":true}\n', "row 1 holds str, row 2 holds bool"),
        (
            '{"item":1}\n{"item":',
            "row 2 .* in column 9: Expecting value.*may be cut off",
        ),
        ('[{"item":1}]\n', "row 1 .* is not a JSON object.*write one object per line"),
        ('{"item":1}\n3\n', "row 2 .* is not a JSON object"),
        ("null\n", "row 1 .* is not a JSON object"),
        ('\ufeff \nnull\n{"item":1}\n', "row 1 .* is not a JSON object"),
        ('{"item":1,"item":2}\n', "row 1 .* holds the key 'item' twice"),
        ('{"item":"\\ud800"}\n', "row 1 .* contains half a character"),
        ("\n\n", "has no rows"),
        ('{"item":"café"}\n'.encode("latin1"), r"is not UTF-8.*line 1, at byte 12"),
    ],
)
def test_damaged_json_lines_are_told_with_their_row(
    content: str | bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        rows_of(tmp_path / "t.jsonl", content)


# --- Parquet ----------------------------------------------------------------------------------


def test_a_cut_parquet_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"item": [str(k) for k in range(100)]}), path)
    whole = path.read_bytes()
    for length in (3, 10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(InputError, match=r"can't be read as a Parquet file.*may be cut off"):
            rows_of(path, whole[:length])


def test_text_in_parquet_must_be_utf8(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xe9")])
    pq.write_table(pa.table({"item": bad}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="UTF8"):
        read_table(tmp_path / "t.parquet")


def test_a_parquet_with_a_name_twice_or_no_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["item", "item"]), path)
    with pytest.raises(InputError, match="several columns named"):
        read_table(path)
    pq.write_table(pa.table({"item": pa.array([], pa.string())}), path)
    with pytest.raises(InputError, match="has no rows"):
        read_table(path)


# --- any file ---------------------------------------------------------------------------------


def test_only_known_endings_are_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.docx is not a table.* end in \.csv"):
        rows_of(tmp_path / "t.docx", "x")


def test_the_ending_may_be_in_capitals(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "T.CSV", "item\n007\n") == [{"item": "007"}]


def test_number_columns_keep_float32_and_make_gaps_nan() -> None:
    table = pa.table(
        {
            "small": pa.array([0.1, None], pa.float32()),
            "half": pa.array(np.array([0.5, 0.25], np.float16)),
            "whole": pa.array([1, 0]),
            "text": pa.array([" 0.5 ", None]),
            "coded": pa.array(["1", "1"]).dictionary_encode(),
            "gap": pa.nulls(2),
        }
    )
    assert number_column(table, "small").dtype == np.float32
    np.testing.assert_array_equal(number_column(table, "half"), [0.5, 0.25])
    np.testing.assert_array_equal(number_column(table, "whole"), [1.0, 0.0])
    np.testing.assert_array_equal(number_column(table, "text"), [0.5, np.nan])
    np.testing.assert_array_equal(number_column(table, "coded"), [1.0, 1.0])
    assert np.isnan(number_column(table, "gap")).all()


def test_a_column_that_no_number_fits_is_refused_at_its_first_row() -> None:
    table = pa.table({"p": [[0.5], [0.5]], "q": ["1", "two"]})
    with pytest.raises(
        InputError, match=r"'p' of the table has .* in row 1, which is not a number"
    ):
        number_column(table, "p")
    with pytest.raises(InputError, match=r"'q' of m.csv has 'two' in line two"):
        number_column(table, "q", "m.csv", lambda row: ["line one", "line two"][row])
