"""Reading and writing tables in CSV, TSV, Parquet, JSONL and XLSX files, with clear errors."""

from __future__ import annotations

import csv
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from edokit._errors import (
    InputError,
    Place,
    check_number,
    counted,
    data_row,
    errors_in,
    headings,
    in_bytes,
    local_path,
    missing_extra,
    open_decision,
    option,
    warn,
    word,
)
from edokit._io.atomic import cannot_read, check_file, check_start, whole_file
from edokit._io.documents import check_utf8, json_text, read_json_lines
from edokit._io.markup import spreadsheet_text, without_quote
from edokit._io.memory import MemoryBudget, check_memory
from edokit._names import as_name, column_of, plain_type

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
READABLE_SUFFIXES = (*TABLE_SUFFIXES, ".xlsx")
SKIPPING_SUFFIXES = (".csv", ".tsv", ".xlsx")
"""Suffixes of files that may have rows above their header."""
PROBABILITY = "p_"
"""Prefix of the columns with probabilities, one per class."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
LONGEST_ROW = 1 << 26
_MOST_TITLE_ROWS = 10
_LEAST_COLUMNS = 3  # of a table of annotations: item, annotator and label
_LONGEST_TITLE = 1 << 16
_COLUMN_BYTES = 8 << 10  # memory that Arrow takes for a column of a CSV, without its cells
_CELL_BYTES = 100  # memory that a cell of a sheet takes, without its characters
_MOST_SHEET_ROWS = 1 << 20
_MOST_SHEET_CELLS = 30_000_000  # including empty cells before the last cell of a row
_EXPORT_AGAIN = "the file may be cut off; export or download it again"
_MAY_BE_FORMULA = r"^['\s\pZ\x00-\x1f\x{85}]*[=+\-@＝＋－＠\t\r]"
"""A regular expression for Arrow that matches all text that `spreadsheet_text` changes."""
_CONTENT = re.compile(r"((?:got \d+|invalid value|invalid UTF8 data))\b.*", re.DOTALL)
"""Where an error of Arrow begins to quote the file, which may contain somebody's text."""
_ARROW_ROW = re.compile(r"Row #(\d+)")
"""The number of a row in an error of Arrow; blank rows do not count."""


@dataclass(frozen=True)
class FileTable:
    """A table, and where each of its rows is in the file that it was read from.

    Attributes
    ----------
    table : pyarrow.Table
        The rows.
    place : Place
        Says where a row is in words of the file. In a CSV or XLSX file it is ``row 5``, as a
        spreadsheet numbers it: the header, a title above it and blank rows count. In a JSONL file
        it is ``line 5``. Rows of Parquet have no number that a person could look up; they are
        counted from 1, as in ``data row 5``.
    """

    table: pa.Table
    place: Place


def taken_place(place: Place, positions: Sequence[int] | npt.NDArray[np.integer]) -> Place:
    """Says where rows are that were taken from these positions of a table."""

    def place_taken(position: int) -> str:
        return place(int(positions[position]))

    return place_taken


def read_table(
    path: str | Path, *, skip_rows: int | None = None, sheet: str | None = None
) -> pa.Table:
    """Read one CSV, TSV, Parquet, JSONL or XLSX file as an Arrow table.

    All columns of a CSV are text ("007" stays "007", and "NA" is text, not a gap); `number_column`
    converts a column to numbers.

    Parameters
    ----------
    path : str or Path
    skip_rows : int, default=None
        Lines of a text file or rows of a sheet above its header. With None, nothing is skipped and
        messages don't suggest this option or ``sheet``: pass None where users can't set them.
    sheet : str, default=None
        The sheet of an XLSX file. None means the first one.
    """
    return read_file_table(path, skip_rows=skip_rows, sheet=sheet).table


def read_file_table(
    path: str | Path, *, skip_rows: int | None = None, sheet: str | None = None
) -> FileTable:
    """Read a table as `read_table` does, with the places of its rows for messages."""
    path = check_file(path)
    suffix = path.suffix.lower()
    if sheet is not None and suffix != ".xlsx":
        raise InputError(
            f"{option('sheet')} is for XLSX files, which {path} is not",
            "leave it out",
            code="inapplicable-option",
        )
    if skip_rows is not None:
        check_number("skip_rows", skip_rows, 0, whole=True)
    if skip_rows and suffix not in SKIPPING_SUFFIXES:
        raise InputError(
            f"{option('skip_rows')} is for rows above the header of"
            f" {', '.join(SKIPPING_SUFFIXES)} files, which {path} is not",
            "leave it out",
            code="inapplicable-option",
        )
    if suffix not in READABLE_SUFFIXES:
        raise InputError(
            f"{path} is not a table: its name does not end in {', '.join(READABLE_SUFFIXES)}",
            "convert it: a sheet to CSV (UTF-8), JSON to .jsonl with one object per line",
            code="unknown-ending",
        )
    try:
        if suffix == ".parquet":
            from edokit._io.parquet import read_parquet

            file_table = FileTable(read_parquet(path), data_row)
        elif suffix in (".jsonl", ".ndjson"):
            file_table = _read_jsonl(path)
        elif suffix == ".xlsx":
            file_table = _read_xlsx(path, skip_rows, sheet)
        else:
            file_table = _read_csv(path, _DELIMITERS[suffix], skip_rows)
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeDecodeError as error:
        check_utf8(path)
        raise unreadable(path, suffix, error) from error
    if file_table.table.num_rows == 0:
        raise _no_rows(path)
    return file_table


def class_columns(column_names: Iterable[str]) -> dict[str, str]:
    """The name of each class's column, ``p_<class>``, by class."""
    names = [name for name in column_names if name.startswith(PROBABILITY)]
    return {name.removeprefix(PROBABILITY): name for name in names}


def number_column(
    table: pa.Table,
    name: str,
    source: str = "the table",
    place: Place = data_row,
) -> npt.NDArray[Any]:
    """A column of numbers [n], float32 if stored so; text is refused, gaps become NaN.

    ``source`` names the table in messages, ``place`` says where a row is.
    """
    column = table[name]
    if not pa.types.is_float32(column.type):
        kind = plain_type(column.type)
        if kind != column.type:  # casting others would corrupt lists of nulls, an error of Arrow
            column = column.cast(kind)
        if is_text(column.type):
            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        try:
            column = pc.cast(column, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            cells = pd.Series(column.to_pylist(), dtype=object)
            is_word = pd.to_numeric(cells, errors="coerce").isna() & cells.notna()
            row = int(is_word.argmax())
            raise InputError(
                f"column {name!r} of {source} has {word(cells[row])} in {place(row)},"
                " which is not a number",
                "write decimals with a point and percentages as shares, 0.25 for 25%",
                code="not-a-number",
            ) from error
    numbers: npt.NDArray[Any] = column.to_numpy()
    return numbers


def _read_csv(path: Path, delimiter: str, skip_rows: int | None) -> FileTable:
    header, delimiter = _csv_header(path, delimiter, skip_rows)
    # A row must fit into one block, so the size of blocks grows with the file, up to a limit.
    block = min(max(1 << 20, path.stat().st_size), LONGEST_ROW)
    types = dict.fromkeys(header, pa.dictionary(pa.int32(), pa.string()))

    def read(use_threads: bool) -> pa.Table:
        return pa_csv.read_csv(
            path,
            pa_csv.ReadOptions(block_size=block, use_threads=use_threads, skip_rows=skip_rows or 0),
            pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pa_csv.ConvertOptions(column_types=types, null_values=[""]),
        )

    try:
        table = read(use_threads=True)
    except pa.ArrowException as error:
        if "Empty CSV" in str(error):
            raise _no_rows(path) from error
        check_utf8(path)
        try:
            table = read(use_threads=False)  # one thread counts rows
        except pa.ArrowException as counted_error:
            numbers = _csv_row_numbers(path, delimiter, skip_rows or 0)
            message = _with_row_number(str(counted_error), numbers, skip_rows or 0)
            raise unreadable(path, "CSV", ValueError(message)) from error
    if table.column_names != header:
        raise unreadable(path, "CSV", ValueError(f"its header is {headings(header)}"))
    if table.num_rows:
        _refuse_open_quote(path, table.column(table.num_columns - 1)[-1].as_py())
    # Remove the quotes that keep a spreadsheet from running text as a formula.
    names = [without_quote(name) for name in header]
    check_distinct(names, path)
    columns = [_with_texts(column, without_quote) for column in table.columns]
    table = pa.table(columns, names)
    return FileTable(table, _csv_place(path, delimiter, skip_rows or 0, table.num_rows))


def _csv_place(path: Path, delimiter: str, skip_rows: int, n_rows: int) -> Place:
    """Says where a row of a CSV file is; the file is read again for the first message."""

    @cache
    def row_numbers() -> list[int]:
        return _csv_row_numbers(path, delimiter, skip_rows)

    def place(position: int) -> str:
        numbers = row_numbers()
        # The file may have changed since it was read.
        if len(numbers) != n_rows:
            return data_row(position)
        return f"row {numbers[position]}"

    return place


def _csv_row_numbers(path: Path, delimiter: str, skip_rows: int) -> list[int]:
    """The number that a spreadsheet shows for each row of data; empty if the file can't be read.

    Rows above the header, the header and blank rows count. A row with a line break in a cell is one
    row.
    """
    numbers = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, delimiter=delimiter)
            for number, cells in enumerate(rows, start=1):
                if cells and rows.line_num > skip_rows:
                    numbers.append(number)
    except (OSError, ValueError, csv.Error):
        return []
    return numbers[1:]  # the first is the header


def _with_row_number(message: str, numbers: Sequence[int], skip_rows: int) -> str:
    """An error of Arrow with the row as a spreadsheet numbers it."""
    match = _ARROW_ROW.search(message)
    if match is None:
        return message
    # Arrow counts the skipped rows and the header, but no blank rows.
    position = int(match[1]) - skip_rows - 2
    if not 0 <= position < len(numbers):
        return message
    return message.replace(match[0], f"row {numbers[position]}")


def _with_texts(column: pa.ChunkedArray, change: Callable[[str], str]) -> pa.ChunkedArray:
    """A column of text in which ``change`` is applied to texts that may be formulas."""
    chunks = []
    for chunk in column.chunks:
        is_encoded = isinstance(chunk, pa.DictionaryArray)
        texts = chunk
        if is_encoded:
            texts = chunk.dictionary
        places = pc.match_substring_regex(texts, _MAY_BE_FORMULA).fill_null(False)
        changed = [change(text) for text in texts.filter(places).to_pylist()]
        if changed:
            texts = pc.replace_with_mask(texts, places, pa.array(changed, texts.type))
        if changed and is_encoded:
            # Two texts may have become equal.
            texts = pa.DictionaryArray.from_arrays(chunk.indices, texts)
            chunk = texts.cast(texts.type.value_type).dictionary_encode()
        elif changed:
            chunk = texts
        chunks.append(chunk)
    return pa.chunked_array(chunks, column.type)


def _csv_header(path: Path, delimiter: str, skip_rows: int | None) -> tuple[list[str], str]:
    """The column names and the delimiter of a file, which may differ from that of its suffix."""

    def read_header(delimiter: str) -> list[str]:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for _ in range(skip_rows or 0):
                stream.readline(LONGEST_ROW)
            lines = csv.reader(_limited_lines(path, stream), delimiter=delimiter)
            # Arrow, too, skips empty lines before the header.
            return next(filter(None, lines), [])

    try:
        names = read_header(delimiter)
        if len(names) == 1:
            # Spreadsheets write semicolons where a comma is the decimal mark.
            for mark in ";\t|,":
                if mark in names[0]:
                    delimiter = mark
                    names = read_header(delimiter)
                    break
    except csv.Error as error:
        raise unreadable(path, "CSV", error) from error
    if not names:
        raise _no_rows(path)
    if not skip_rows:
        _refuse_title(path, names, _first_lines(path), skip_rows)
    check_distinct(names, path)
    check_memory(path, _COLUMN_BYTES * len(names))
    return names, delimiter


def _first_lines(path: Path) -> list[list[str]]:
    """The cells of the first lines of a text file, by the delimiter that gives most cells."""
    rows = []
    with path.open(encoding="utf-8-sig", newline="") as stream:
        for _ in range(_MOST_TITLE_ROWS + 1):
            line = stream.readline(_LONGEST_TITLE)
            if not line or len(line) == _LONGEST_TITLE:
                break
            if line.count('"') % 2:
                break  # a cell in quotes goes on in the next line
            try:
                cells = [next(csv.reader([line], delimiter=mark), []) for mark in ",;\t|"]
            except csv.Error:
                break
            rows.append(max(cells, key=_filled))
    return rows


def _filled(cells: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in cells)


def _refuse_title(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], skip_rows: int | None
) -> None:
    """Refuse a title in place of the header if a row below it looks like a header.

    Such a row has at least three names, and at least twice as many as the title has cells; its
    names are distinct and not numbers.
    """
    title_row = next((number for number, cells in enumerate(rows) if _filled(cells)), len(rows))
    for number, cells in enumerate(rows[title_row + 1 :], start=title_row + 1):
        names = [cell.strip() for cell in cells if cell.strip()]
        has_numbers = any(name.lstrip("+-").replace(".", "").isdecimal() for name in names)
        is_header = len(names) >= 3 and len(set(names)) == len(names) and not has_numbers
        if not is_header or len(names) < 2 * _filled(header):
            continue
        message = (
            f"{path} begins with {counted(number, 'row')} above the header: the first row is"
            f" {headings(header[:1])}, and row {number + 1} has the columns {headings(names)}"
        )
        if skip_rows is None:
            raise InputError(message, "remove the rows above the header", code="rows-above-header")
        raise open_decision(
            message,
            f"choose {option('skip_rows', number)}, or remove them from the file",
            skip_rows=number,
            code="rows-above-header",
        )


def _limited_lines(path: Path, stream: Iterable[str]) -> Iterator[str]:
    """Lines of a header; a line with too many columns for the memory is refused."""
    for line in stream:
        marks = max(line.count(mark) for mark in ";\t|,")
        check_memory(path, _COLUMN_BYTES * marks)
        yield line


def _refuse_open_quote(path: Path, cell: str) -> None:
    """Refuse a file whose last cell begins with a quotation mark that is never closed."""
    raw = b'"' + cell.replace('"', '""').encode()
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - len(raw) - 3))
        tail = stream.read()
    # A cell of quotation marks or line breaks alone may look both open and closed.
    is_closed = tail.endswith(tuple(raw + b'"' + end for end in (b"", b"\n", b"\r\n")))
    if tail.endswith(raw) and not is_closed:
        raise InputError(
            f"{path} has a quotation mark that is never closed, in its last {len(cell)} characters",
            "close it, or double it inside text; the file may also be cut off",
            code="unclosed-quote",
        )


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def read_records(path: Path, columns: Callable[[pa.Schema], list[str]] | None = None) -> list[Any]:
    """Read a table as a list of dictionaries, one for each row.

    Parameters
    ----------
    path : Path
        The file.
    columns : callable, optional
        Chooses the names of columns from the schema; all of them by default.
    """
    table = read_table(path)
    if columns is not None:
        table = table.select(columns(table.schema))
    # Every row gets a copy of a text that the table holds once.
    size = sum(written_out(column) for column in table.columns)
    check_memory(path, 2 * size + _CELL_BYTES * table.num_rows * table.num_columns)
    records: list[Any] = table.to_pylist()
    return records


def written_out(column: pa.ChunkedArray) -> float:
    """Bytes that the values of a column take if repeated values are counted each time."""
    size = 0.0
    for chunk in column.chunks:
        while isinstance(chunk, pa.ListArray | pa.LargeListArray | pa.MapArray):
            chunk = chunk.values
        if isinstance(chunk, pa.StructArray):
            size += sum(written_out(pa.chunked_array([part])) for part in chunk.flatten())
        elif isinstance(chunk, pa.DictionaryArray):
            lengths = pc.binary_length(chunk.dictionary).fill_null(0).to_numpy()
            places = chunk.indices.drop_null().to_numpy()
            size += float(np.bincount(places, minlength=len(lengths)) @ lengths)
        else:
            size += chunk.nbytes
    return size


def _read_jsonl(path: Path) -> FileTable:
    rows: list[dict[str, Any]] = []
    line_numbers: list[int] = []
    names: dict[str, None] = {}
    for number, row in read_json_lines(path):
        if not isinstance(row, dict):
            raise InputError(
                f"line {number} of {path} is not a JSON object",
                "write one object per line",
                code="wrong-content",
            )
        rows.append(row)
        line_numbers.append(number)
        names |= dict.fromkeys(row)

    def place(position: int) -> str:
        return f"line {line_numbers[position]}"

    check_memory(path, _cells_size(len(rows), len(names)))
    with errors_in(path):
        columns = {}
        for name in names:
            columns[name] = column_of([row.get(name) for row in rows], name, place)
        return FileTable(pa.table(columns), place)


def _cells_size(rows: int, columns: int) -> float:
    """Bytes of a table with a cell for every row and column, empty or not."""
    return 9.0 * rows * columns


def _read_xlsx(path: Path, skip_rows: int | None, sheet: str | None) -> FileTable:
    """The cells of a sheet, by default the first, as text, without empty rows and columns."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise missing_extra(f"{path} needs openpyxl, but it can't be imported", "xlsx") from error
    try:
        with zipfile.ZipFile(path) as archive:
            check_memory(path, 10 * sum(entry.file_size for entry in archive.infolist()))
        # openpyxl does not close a damaged file, so it gets an open stream.
        with path.open("rb") as stream:
            book = load_workbook(stream, read_only=True, data_only=True)
            for worksheet in book.worksheets:
                worksheet.reset_dimensions()  # those that the file states may be wrong
            table_sheet = _choose_sheet(
                path, book.worksheets, sheet, can_be_named=skip_rows is not None
            )
            row_by_number = dict(_sheet_rows(table_sheet, path, skip_rows or 0))
    except (InputError, MemoryError, OSError):
        raise
    except Exception as error:  # a damaged workbook can fail in any way
        reason = error.__cause__ or error.__context__ or error
        if type(reason).__name__ in ("EntitiesForbidden", "DTDForbidden"):
            reason = ValueError("it declares XML entities, which no workbook needs")
        raise unreadable(path, "XLSX", reason) from error
    filled_rows = {number: row for number, row in row_by_number.items() if row}
    if not filled_rows:
        raise _no_rows(path)
    header, *rows = filled_rows.values()
    if not skip_rows:
        top_rows = list(row_by_number.values())[: _MOST_TITLE_ROWS + 1]
        top_cells = [list(row.values()) for row in top_rows]
        _refuse_title(path, list(header.values()), top_cells, skip_rows)
    _, *numbers = filled_rows

    def place(position: int) -> str:
        return f"row {numbers[position]}"

    return FileTable(_sheet_table(header, rows, path), place)


def _choose_sheet(path: Path, sheets: Sequence[Any], name: str | None, can_be_named: bool) -> Any:
    """The sheet of this name, else the first one.

    If only another sheet has enough columns for a table of annotations, it is asked which one is
    meant; a warning names the others that are not read. Both need that users can name a sheet.
    """
    titles = [sheet.title for sheet in sheets]
    if name is not None:
        if name in titles:
            return sheets[titles.index(name)]
        close = get_close_matches(name, titles, 1)
        hint = f"the sheets are {headings(titles)}"
        if close:
            hint = f"did you mean {close[0]!r}? {hint}"
        raise InputError(f"{path} has no sheet {name!r}", hint, code="missing-sheet")
    if len(sheets) == 1:
        return sheets[0]
    message = f"{path}: of its {len(sheets)} sheets, only the first is read, {word(titles[0])}"
    if not can_be_named:
        warn(f"{message}; if the data are in another sheet, move it to the front")
        return sheets[0]
    if not _has_table(sheets[0]):
        other_titles = [sheet.title for sheet in sheets[1:] if _has_table(sheet)]
        if other_titles:
            raise open_decision(
                f"the first sheet of {path}, {word(titles[0])}, has fewer than"
                f" {_LEAST_COLUMNS} columns, too few for annotations; sheets with more are"
                f" {headings(other_titles)}",
                f"choose one: {option('sheet', other_titles[0])}",
                sheet=other_titles[0],
                code="missing-sheet",
            )
    warn(f"{message}; others are read by {option('sheet', titles[1])}")
    return sheets[0]


def _has_table(sheet: Any) -> bool:
    """Whether a row at the top of a sheet has enough cells for a table of annotations."""
    rows = sheet.iter_rows(max_row=_MOST_TITLE_ROWS + 1, values_only=True)
    return any(sum(cell is not None for cell in row) >= _LEAST_COLUMNS for row in rows)


def _sheet_rows(sheet: Any, path: Path, skip_rows: int) -> Iterator[tuple[int, dict[int, str]]]:
    """The number of each row in the sheet, and its non-empty cells by the number of their column.

    The first ``skip_rows`` rows of the sheet are skipped, empty or not. Empty rows are left out,
    except near the top, where the number of the header's row matters.

    Only non-empty cells are kept: a sheet with a single cell in its last row and column has 17
    billion cells.
    """
    from openpyxl.cell.read_only import EMPTY_CELL

    budget = MemoryBudget(path)
    cells = 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells += len(row)
        if number > _MOST_SHEET_ROWS or cells > _MOST_SHEET_CELLS:
            raise InputError(
                f"{path}: the first sheet has more than {_MOST_SHEET_ROWS:,} rows or"
                f" {_MOST_SHEET_CELLS:,} cells",
                "remove cells far to the right or below the data, or save it as CSV",
                code="too-large-file",
            )
        if number <= skip_rows:
            continue
        texts: dict[int, str] = {}
        for column, cell in enumerate(row):
            if cell is EMPTY_CELL:
                continue
            text = _cell_text(cell)
            if text:
                budget.take(_CELL_BYTES + 2 * len(text))
                texts[column] = text
        if texts or number <= skip_rows + _MOST_TITLE_ROWS + 1:
            yield number, texts


def _cell_text(cell: Any) -> str:
    """The value of a cell as text; empty for an empty cell or an error such as #N/A."""
    value = cell.value
    if value is None or cell.data_type == "e":
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return as_name(value)


def _sheet_table(header: dict[int, str], rows: Sequence[dict[int, str]], path: Path) -> pa.Table:
    """The rows below a header as a table; a column without a name is named by its letter."""
    from openpyxl.utils import get_column_letter

    numbers = sorted(set().union(*rows))
    names = [header.get(number, f"column {get_column_letter(number + 1)}") for number in numbers]
    check_distinct(names, path)
    check_memory(path, _cells_size(len(rows), len(numbers)))
    columns = {}
    for name, number in zip(names, numbers, strict=True):
        texts = pa.array([row.get(number) for row in rows], pa.string())
        columns[name] = texts.dictionary_encode()
    return pa.table(columns)


def check_distinct(names: Sequence[str], path: Path) -> None:
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InputError(
            f"{path} has several columns named {headings(repeated, 3)}",
            "rename one of them",
            code="duplicate-column",
        )


def _no_rows(path: Path) -> InputError:
    return InputError(f"{path} is empty", "check that it is the right file", code="no-rows")


def unreadable(path: Path, kind: str, error: BaseException) -> InputError:
    """The error for a file that is not of the kind that its suffix says."""
    from edokit._parallel import free_memory

    if isinstance(error, MemoryError) or "worker thread" in str(error):
        return InputError(
            f"there is not enough memory to read {path}: {in_bytes(free_memory())} are free",
            "free memory, or split the file",
            code="too-little-memory",
        )
    lines = _CONTENT.sub(r"\1", str(error)).strip().splitlines()
    reason = type(error).__name__
    if lines:
        reason = lines[0]
    return InputError(
        f"{path} can't be read as a {kind} file: {reason}", _EXPORT_AGAIN, code="unreadable-file"
    )


def write_table(table: pa.Table, path: str | Path, *, raw: bool = False) -> None:
    """Write a CSV, TSV, Parquet or JSONL file, depending on the suffix.

    In a CSV or TSV, text that a spreadsheet would run as a formula gets a quote before it, which
    `read_table` removes again; with ``raw``, text is written unchanged.
    """
    write_tables([table], path, raw=raw)


def write_tables(parts: Iterable[pa.Table], path: str | Path, *, raw: bool = False) -> int:
    """Write parts with the same columns to one CSV, TSV, Parquet or JSONL file.

    Returns the number of rows. Only one part at a time is held in memory. If a part fails, no file
    is written.
    """
    path = local_path(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"tables are written to files ending in {', '.join(TABLE_SUFFIXES)}, not to {path}",
            "choose one of these endings",
            code="unknown-ending",
        )
    remaining = iter(parts)
    # A path that can't be written is refused before the first part is computed.
    with whole_file(path) as temporary:
        part = next(remaining)
        check_distinct(part.column_names, path)
        # Parquet keeps dictionaries of repeated text, and metadata.
        schema = part.schema
        if suffix != ".parquet":
            schema = plain_schema(schema)
        try:
            with _open_writer(temporary, suffix, schema, raw) as writer:
                rows = _write_rows(part, schema, writer)
                del part
                check_start(temporary, path)  # before the other parts are computed
                for part in remaining:
                    rows += _write_rows(part, schema, writer)
        except pa.ArrowException as error:
            raise InputError(
                f"{path} can't hold a column that is neither text nor numbers: {error}",
                "leave the others out, or write Parquet",
                code="unsupported-type",
            ) from error
    return rows


def _write_rows(table: pa.Table, schema: pa.Schema, writer: Any) -> int:
    if isinstance(writer, pa_parquet.ParquetWriter):
        # A second row group would repeat the whole dictionary.
        writer.write_table(table.cast(schema), row_group_size=max(1, table.num_rows))
        return int(table.num_rows)
    # In batches of rows, because the cast writes repeated text out.
    for start in range(0, table.num_rows, 65_536):
        writer.write_table(table.slice(start, 65_536).cast(schema))
    return int(table.num_rows)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without dictionaries of repeated values."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def _packing(schema: pa.Schema) -> dict[str, Any]:
    """Options of the Parquet writer: floats rarely repeat, so they get no dictionary."""
    fractions = [field.name for field in schema if pa.types.is_floating(field.type)]
    repetitive = [name for name in schema.names if name not in fractions]
    kinds = dict.fromkeys(repetitive, "zstd") | dict.fromkeys(fractions, "snappy")
    return {"compression": kinds, "use_dictionary": repetitive}


def _open_writer(path: Path, suffix: str, schema: pa.Schema, raw: bool) -> Any:
    if suffix == ".parquet":
        return pa_parquet.ParquetWriter(path, schema, **_packing(schema))
    if suffix in (".csv", ".tsv"):
        return _CsvWriter(path, schema, delimiter=_DELIMITERS[suffix], raw=raw)
    return _JsonLines(path)


class _CsvWriter:
    """Writes a CSV file; unless ``raw`` is set, a spreadsheet takes no cell for a formula."""

    def __init__(self, path: Path, schema: pa.Schema, *, delimiter: str, raw: bool) -> None:
        names = schema.names
        if not raw:
            names = [spreadsheet_text(name) for name in names]
        self._raw = raw
        self._schema = pa.schema([*zip(names, schema.types, strict=True)])
        options = pa_csv.WriteOptions(delimiter=delimiter)
        self._writer = pa_csv.CSVWriter(path, self._schema, write_options=options)

    def write_table(self, table: pa.Table) -> None:
        columns = table.columns
        if not self._raw:
            for number, column in enumerate(columns):
                if is_text(column.type):
                    columns[number] = _with_texts(column, spreadsheet_text)
        self._writer.write_table(pa.table(columns, schema=self._schema))

    def __enter__(self) -> _CsvWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()


class _JsonLines:
    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8")

    def write_table(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            for name, value in row.items():
                # JSON has neither NaN nor infinity.
                if isinstance(value, float) and not math.isfinite(value):
                    row[name] = None
            self._stream.write(json_text(row, default=str) + "\n")
        self._stream.flush()

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
