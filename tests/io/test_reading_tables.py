"""Tables from CSV, TSV, Parquet and JSONL files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edokit._io.tables import number_column, read_file_table, read_table
from tests.errors import raises_code


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
        ("item,item\n1,2\n", ("duplicate-column", "'item'")),
        ("item,label\n", ("no-rows",)),
        ("item,label", ("no-rows",)),
        ("\n", ("no-rows",)),
        ("\ufeff", ("no-rows",)),
        ("item,label\n1,a\n2\n", ("unreadable-file", "row 3: Expected 2 columns")),
        ("item,label\n1,a\n\n2,b,c\n", ("unreadable-file", "row 4: Expected 2 columns")),
        ('item,label\n1,"a\nb"\n2,b,c\n', ("unreadable-file", "row 3: Expected 2 columns")),
        ('item,text\n1,"never closed\n2,b\n', ("unclosed-quote", "17 char")),
        ('item,text\n1,"cut', ("unclosed-quote",)),
        ('item,text\n1,"', ("unclosed-quote",)),
        ('item,text\n1,"""', ("unclosed-quote",)),
        ('item,text\n1,"\n', ("unclosed-quote",)),
        ("x" * 200_000 + ",b\n1,2\n", ("unreadable-file",)),
    ],
)
def test_a_damaged_csv_is_told_in_one_line(
    content: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    with raises_code(*words):
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
    with raises_code("invalid-unicode", f"line {before + 2},", f"byte {byte})", "-f latin1"):
        rows_of(tmp_path / "t.csv", content)


def test_utf16_is_recognised(tmp_path: Path) -> None:
    with raises_code("invalid-unicode", "UTF-8", "utf-16"):
        rows_of(tmp_path / "t.csv", "item,text\n1,a\n".encode("utf-16"))


def test_the_row_that_holds_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,p_0\n1,0.5\n2,\n3,50%\n4,x\n")
    source = read_file_table(path)
    with raises_code("not-a-number", "'p_0'", "'50%'", "in row 4", "0.25", "25%"):
        number_column(source.table, "p_0", place=source.place)
    with raises_code("not-a-number", "in data row 3"):
        number_column(source.table, "p_0")


VOTES = [["item", "note"], ["1", "two\nlines"], [], ["2", "b"], ["3", "c"]]


def test_rows_of_a_csv_have_the_numbers_that_a_spreadsheet_shows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for above in ([], [["Study"]], [["Study"], [], ["2024", "spring"]]):
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([*above, *VOTES, []])
        source = read_file_table(path, skip_rows=len(above))
        places = [source.place(position) for position in range(source.table.num_rows)]
        assert places == [f"row {len(above) + number}" for number in (2, 4, 5)]


def test_rows_of_a_sheet_have_the_numbers_of_the_sheet(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    for skipped in (0, 2):
        book = openpyxl.Workbook()
        for row in [[]] * skipped + VOTES:
            book.active.append(row)
        book.active.cell(40 + skipped, 1, "4")
        book.save(path)
        source = read_file_table(path, skip_rows=skipped)
        places = [source.place(position) for position in range(source.table.num_rows)]
        assert places == [f"row {skipped + number}" for number in (2, 4, 5, 40)]


def test_rows_of_json_lines_have_the_numbers_of_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('\n{"item":"1"}\n\n{"item":"2"}\n')
    source = read_file_table(path)
    assert [source.place(position) for position in range(2)] == ["line 2", "line 4"]


def test_a_row_is_only_counted_where_the_file_does_not_show_its_number(tmp_path: Path) -> None:
    pq.write_table(pa.table({"item": ["1", "2"]}), tmp_path / "t.parquet")
    assert read_file_table(tmp_path / "t.parquet").place(1) == "data row 2"
    changed = tmp_path / "t.csv"
    changed.write_text("item\n1\n2\n")
    source = read_file_table(changed)
    changed.write_text("item\n1\n")
    assert source.place(1) == "data row 2"


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
        (
            '{"item":1}\n{"item":"a"}\n',
            ("mixed-types", "'item' mixes", "line 1", "int", "line 2", "str"),
        ),
        ('{"a":[1]}\n\n{"a":["x"]}\n', ("mixed-types", "'a'")),
        ('{"item":"a"}\n{"item":true}\n', ("mixed-types", "line 1", "str", "line 2", "bool")),
        (
            '{"item":1}\n{"item":',
            ("invalid-json", "line 2", "column 9: Expecting"),
        ),
        ('[{"item":1}]\n', ("wrong-content", "line 1")),
        ('{"item":1}\n3\n', ("wrong-content", "line 2")),
        ("null\n", ("wrong-content", "line 1")),
        ('\ufeff \nnull\n{"item":1}\n', ("wrong-content", "line 2")),
        ('{"item":1,"item":2}\n', ("duplicate-key", "line 1", "'item'")),
        ('{"item":"\\ud800"}\n', ("invalid-unicode", "line 1")),
        ("\n\n", ("no-rows",)),
        ('{"item":"café"}\n'.encode("latin1"), ("invalid-unicode", "UTF-8", "line 1", "byte 12")),
    ],
)
def test_damaged_json_lines_are_told_with_their_line(
    content: str | bytes, words: tuple[str, ...], tmp_path: Path
) -> None:
    with raises_code(*words):
        rows_of(tmp_path / "t.jsonl", content)


# --- Parquet ----------------------------------------------------------------------------------


def test_a_cut_parquet_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"item": [str(k) for k in range(100)]}), path)
    full_content = path.read_bytes()
    for length in (3, 10, len(full_content) // 2, len(full_content) - 1):
        with raises_code("unreadable-file"):
            rows_of(path, full_content[:length])


def test_text_in_parquet_must_be_utf8(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xe9")])
    pq.write_table(pa.table({"item": bad}), tmp_path / "t.parquet")
    with raises_code("unreadable-file", "UTF8"):
        read_table(tmp_path / "t.parquet")


def test_a_parquet_with_a_name_twice_or_no_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["item", "item"]), path)
    with raises_code("duplicate-column"):
        read_table(path)
    pq.write_table(pa.table({"item": pa.array([], pa.string())}), path)
    with raises_code("no-rows"):
        read_table(path)


# --- any file ---------------------------------------------------------------------------------


def test_only_known_endings_are_tables(tmp_path: Path) -> None:
    with raises_code("unknown-ending", "t.docx", ".csv"):
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
    with raises_code("not-a-number", "'p'", "row 1"):
        number_column(table, "p")
    with raises_code("not-a-number", "'q'", "m.csv", "'two'"):
        number_column(table, "q", "m.csv", lambda row: ["line one", "line two"][row])
