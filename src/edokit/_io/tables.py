"""Tables in CSV, TSV, Parquet, JSONL and XLSX files, read with clear errors and written whole."""

from __future__ import annotations

import csv
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from edokit._errors import (
    InputError,
    errors_in,
    headings,
    in_bytes,
    local_path,
    missing_extra,
    option,
    warn,
    word,
)
from edokit._io.atomic import cannot_read, check_file, check_memory, check_start, whole_file
from edokit._io.documents import check_utf8, json_text, parse_json
from edokit._io.markup import spreadsheet_text
from edokit._names import as_name, column_of, plain_type, row_number

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
READABLE_SUFFIXES = (*TABLE_SUFFIXES, ".xlsx")
PROBABILITY = "p_"
"""Prefix of the columns with probabilities, one per class."""
_LONGEST_ROW = 1 << 26
_AGAIN = "the file may be cut off; export or download it again"
_CONTENT = re.compile(r"((?:got \d+|invalid value|invalid UTF8 data))\b.*", re.DOTALL)
"""Where Arrow begins to quote the file, which may hold somebody's text."""


def read_table(path: str | Path) -> pa.Table:
    """One CSV, TSV, Parquet, JSONL or XLSX file as an Arrow table.

    Text files have no types, so in a CSV every column is text ("007" stays "007", "NA" is no gap);
    `number_column` reads numbers.
    """
    path = check_file(path)
    suffix = path.suffix.lower()
    if suffix not in READABLE_SUFFIXES:
        raise InputError(
            f"{path} is not a table: its name does not end in {', '.join(READABLE_SUFFIXES)}",
            "convert it: a sheet to CSV (UTF-8), JSON to .jsonl with one object per line",
        )
    try:
        if suffix == ".parquet":
            table = _read_parquet(path)
        elif suffix in (".jsonl", ".ndjson"):
            table = _read_jsonl(path)
        elif suffix == ".xlsx":
            table = _read_xlsx(path)
        else:
            table = _read_csv(path, "\t" if suffix == ".tsv" else ",")
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeDecodeError as error:
        check_utf8(path)
        raise unreadable(path, suffix, error) from error
    if table.num_rows == 0:
        raise _no_rows(path)
    return table


def class_columns(column_names: Iterable[str]) -> dict[str, str]:
    """The column of each class, called ``p_<class>``."""
    names = [name for name in column_names if name.startswith(PROBABILITY)]
    return {name.removeprefix(PROBABILITY): name for name in names}


def number_column(
    table: pa.Table,
    name: str,
    source: str = "the table",
    row: Callable[[int], str] = row_number,
) -> npt.NDArray[Any]:
    """A column of numbers [n], float32 if stored so; text is refused, gaps become NaN.

    ``source`` and ``row`` describe the table and the place of a row for messages.
    """
    column = table[name]
    if not pa.types.is_float32(column.type):
        if (kind := plain_type(column.type)) != column.type:  # Arrow damages lists of nulls
            column = column.cast(kind)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        try:
            column = pc.cast(column, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            cells = pd.Series(column.to_pylist(), dtype=object)
            is_text = pd.to_numeric(cells, errors="coerce").isna() & cells.notna()
            place = int(is_text.argmax())
            raise InputError(
                f"column {name!r} of {source} has {word(cells[place])} in {row(place)},"
                " which is not a number",
                "write decimals with a point and percentages as shares, 0.25 for 25%",
            ) from error
    numbers: npt.NDArray[Any] = column.to_numpy()
    return numbers


def _read_csv(path: Path, delimiter: str) -> pa.Table:
    header, delimiter = _csv_header(path, delimiter)
    # One block must hold a whole row, so blocks grow with the file up to a bound.
    block = min(max(1 << 20, path.stat().st_size), _LONGEST_ROW)
    types = dict.fromkeys(header, pa.dictionary(pa.int32(), pa.string()))

    def read(use_threads: bool) -> pa.Table:
        return pa_csv.read_csv(
            path,
            pa_csv.ReadOptions(block_size=block, use_threads=use_threads),
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
            raise unreadable(path, "CSV", counted_error) from error
    if table.column_names != header:
        raise unreadable(path, "CSV", ValueError(f"its header is {headings(header)}"))
    if table.num_rows:
        _refuse_open_quote(path, table.column(table.num_columns - 1)[-1].as_py())
    return table


def _csv_header(path: Path, delimiter: str) -> tuple[list[str], str]:
    """The column names, and what separates them: in the file, whatever its ending says."""

    def header(mark: str) -> list[str]:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            # Empty lines before the header are passed over, as Arrow does.
            return next(filter(None, csv.reader(stream, delimiter=mark)), [])

    try:
        names = header(delimiter)
        # Spreadsheets write semicolons where a comma is the decimal mark.
        separator = next((mark for mark in ";\t|," if len(names) == 1 and mark in names[0]), None)
        if separator is not None:
            names, delimiter = header(separator), separator
    except csv.Error as error:
        raise unreadable(path, "CSV", error) from error
    if not names:
        raise _no_rows(path)
    _distinct(names, path)
    return names, delimiter


def _refuse_open_quote(path: Path, cell: str) -> None:
    """Refuse a file whose last cell (of the last row) is a quotation that never ends."""
    raw = b'"' + cell.replace('"', '""').encode()
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - len(raw) - 3))
        tail = stream.read()
    # A cell of quotation marks or a line break alone ends the file open and closed.
    is_closed = tail.endswith(tuple(raw + b'"' + end for end in (b"", b"\n", b"\r\n")))
    if tail.endswith(raw) and not is_closed:
        raise InputError(
            f"{path} has a quotation mark that is never closed, in its last {len(cell)} characters",
            "close it, or double it inside text; the file may also be cut off",
        )


def _read_parquet(path: Path) -> pa.Table:
    from edokit._parallel import may_use_threads

    try:
        about = pa_parquet.read_metadata(path)
        schema = about.schema.to_arrow_schema()
        _distinct(schema.names, path)
        _refuse_bomb(about, path)
        # As in a CSV, text that repeats is kept once.
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        with pa_parquet.ParquetFile(path, read_dictionary=texts, metadata=about) as file:
            table = file.read(use_threads=may_use_threads())
        if table.num_rows != about.num_rows:
            raise ValueError(f"it claims {about.num_rows} rows")
        table.validate(full=True)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise unreadable(path, "Parquet", error) from error
    return table


def _refuse_bomb(about: pa_parquet.FileMetaData, path: Path) -> None:
    """Refuse what would take far more memory than its size on the disk lets expect."""
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(group.num_rows for group in groups))
    unpacked = sum(group.total_byte_size for group in groups)
    # A row of nothing but repetitions takes no bytes in the file, and an entry per column here.
    cost = max(rows * 4 * max(1, about.num_columns), unpacked)
    if rows < 0 or unpacked < 0:
        raise ValueError(f"it claims {rows:,} rows and {unpacked:,} bytes, more than it can hold")
    check_memory(path, 2 * cost)


def _read_jsonl(path: Path) -> pa.Table:
    rows: list[dict[str, Any]] = []
    with path.open(encoding="utf-8-sig") as stream:
        for line in filter(str.strip, stream):
            place = f"row {len(rows) + 1} of {path}"
            row = parse_json(line, place)
            if not isinstance(row, dict):
                raise InputError(f"{place} is not a JSON object", "write one object per line")
            rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    with errors_in(path):
        return pa.table({name: column_of([row.get(name) for row in rows], name) for name in names})


def _read_xlsx(path: Path) -> pa.Table:
    """The first sheet, its cells as text; rows and columns without any value are left out."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_memory(path, 10 * sum(entry.file_size for entry in archive.infolist()))
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheet, *other_sheets = book.sheet_names
            frame = pd.read_excel(book, sheet, dtype=object, keep_default_na=False)
    except ImportError as error:
        raise missing_extra(f"{path} needs openpyxl, but it can't be imported", "xlsx") from error
    except (zipfile.BadZipFile, ValueError, LookupError, TypeError, SyntaxError) as error:
        if isinstance(error, InputError):
            raise
        raise unreadable(path, "XLSX", error) from error
    if other_sheets:
        warn(
            f"{path}: of {len(other_sheets) + 1} sheets the first one is read, {word(sheet)}; if"
            " the data are in another one, move it to the front or save it as CSV"
        )
    frame = frame.replace("", None).dropna(how="all").dropna(axis=1, how="all")
    cells = {str(name): frame[name].map(as_name, na_action="ignore") for name in frame}
    return pa.table(
        {name: pa.array(texts, pa.string()).dictionary_encode() for name, texts in cells.items()}
    )


def _distinct(names: Sequence[str], path: Path) -> None:
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InputError(
            f"{path} has several columns of the name {headings(repeated, 3)}", "rename one of them"
        )


def _no_rows(path: Path) -> InputError:
    return InputError(f"{path} has no rows", "check that it is the right file")


def unreadable(path: Path, kind: str, error: Exception) -> InputError:
    """The error for a file that is not what its ending says."""
    from edokit._parallel import free_memory

    if isinstance(error, MemoryError) or "worker thread" in str(error):
        return InputError(
            f"there is not enough memory to read {path}: {in_bytes(free_memory())} are free",
            "free memory, or split the file",
        )
    lines = _CONTENT.sub(r"\1", str(error)).strip().splitlines()
    return InputError(
        f"{path} can't be read as a {kind} file: {lines[0] if lines else type(error).__name__}",
        _AGAIN,
    )


def write_table(table: pa.Table, path: str | Path, *, quote_formulas: bool = False) -> None:
    """Write CSV, TSV, Parquet or JSONL, by the file's ending.

    ``quote_formulas`` puts a quote before text of a CSV that a spreadsheet would run as a formula.
    """
    write_tables([table], path, quote_formulas=quote_formulas)


def write_tables(
    parts: Iterable[pa.Table], path: str | Path, *, quote_formulas: bool = False
) -> int:
    """Write parts with the same columns into one CSV, TSV, Parquet or JSONL file; how many rows.

    No more than one part need be in memory. If one fails, no file is written.
    """
    path = local_path(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"tables are written to files ending in {', '.join(TABLE_SUFFIXES)}, not to {path}",
            "choose one of these endings",
        )
    if quote_formulas:
        parts = (_for_spreadsheet(part, path) for part in parts)
    remaining = iter(parts)
    # A place that can't be written to is refused before the first part is made.
    with whole_file(path) as temporary:
        part = next(remaining)
        _distinct(part.column_names, path)
        # In Parquet, repeated text stays a dictionary, and metadata are kept.
        schema = part.schema if suffix == ".parquet" else _plain_schema(part.schema)
        try:
            with _open_writer(temporary, suffix, schema) as writer:
                rows = _write_rows(part, schema, writer)
                del part
                check_start(temporary, path)  # before the other parts are made
                for part in remaining:
                    rows += _write_rows(part, schema, writer)
        except pa.ArrowException as error:
            raise InputError(
                f"{path} can't hold a column that is neither text nor numbers: {error}",
                "leave the others out, or write Parquet",
            ) from error
    return rows


def _write_rows(table: pa.Table, schema: pa.Schema, writer: Any) -> int:
    if isinstance(writer, pa_parquet.ParquetWriter):
        # Every further group of rows would hold the whole dictionary again.
        writer.write_table(table.cast(schema), row_group_size=max(1, table.num_rows))
        return int(table.num_rows)
    # Some rows at a time, so that repeated text is written out for these alone.
    for start in range(0, table.num_rows, 65_536):
        writer.write_table(table.slice(start, 65_536).cast(schema))
    return int(table.num_rows)


def _for_spreadsheet(table: pa.Table, path: str | Path) -> pa.Table:
    """The table with `spreadsheet_text` for text."""
    if Path(path).suffix.lower() not in (".csv", ".tsv"):
        raise InputError(
            f"{option('quote_formulas', True)} is for .csv and .tsv, which spreadsheets open, not"
            f" for {path}",
            "leave it out, or choose one of these endings",
        )
    columns: list[Any] = []
    for column in table.cast(_plain_schema(table.schema)).columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = [text and spreadsheet_text(text) for text in column.to_pylist()]
            column = pa.array(texts, column.type)
        columns.append(column)
    return pa.table(columns, [spreadsheet_text(name) for name in table.column_names])


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def _packing(schema: pa.Schema) -> dict[str, Any]:
    """How Parquet packs columns: fractions hardly repeat, so that looking for it only costs."""
    fractions = [field.name for field in schema if pa.types.is_floating(field.type)]
    repetitive = [name for name in schema.names if name not in fractions]
    kinds = dict.fromkeys(repetitive, "zstd") | dict.fromkeys(fractions, "snappy")
    return {"compression": kinds, "use_dictionary": repetitive}


def _open_writer(path: Path, suffix: str, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        return pa_parquet.ParquetWriter(path, schema, **_packing(schema))
    if suffix in (".csv", ".tsv"):
        options = pa_csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
        return pa_csv.CSVWriter(path, schema, write_options=options)
    return _JsonLines(path)


class _JsonLines:
    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8")

    def write_table(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            # JSON has neither NaN nor infinity.
            finite = {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            self._stream.write(json_text(finite, default=str) + "\n")
        self._stream.flush()

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
