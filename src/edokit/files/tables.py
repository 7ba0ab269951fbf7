"""Tables in CSV, TSV, Parquet and JSONL files."""

from __future__ import annotations

import codecs
import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pa_parquet

from edokit.errors import InputError, examples
from edokit.files.depth import bad_lines
from edokit.files.explain import bad_csv, bad_jsonl, no_rows, not_utf8, unreadable
from edokit.files.whole import cannot_read, check_file, whole_file

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
_STRINGS = pa.dictionary(pa.int32(), pa.string())
_LONGEST_ROW = 1 << 26


def read_table(path: str | Path, numbers: Callable[[str], bool] = lambda name: False) -> pa.Table:
    """One CSV, TSV, Parquet or JSONL file as an Arrow table.

    Text files know no types, so in a CSV every column is text ("007" stays "007", "NA" is no gap)
    except those whose name ``numbers`` accepts.
    """
    path = check_file(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"a table must be a file ending in {', '.join(TABLE_SUFFIXES)}, but got {path}",
            "rename or convert the file",
        )
    try:
        if suffix == ".parquet":
            table = _read_parquet(path)
        elif suffix in (".jsonl", ".ndjson"):
            table = _read_jsonl(path)
        else:
            table = _read_csv(path, "\t" if suffix == ".tsv" else ",", numbers)
    except OSError as error:
        raise cannot_read(path, error) from error
    if table.num_rows == 0:
        raise no_rows(path)
    return table


def number_column(
    table: pa.Table,
    name: str,
    where: str = "the table",
    row: Callable[[int], str] = lambda row: f"row {row + 1}",
) -> npt.NDArray[Any]:
    """A column of numbers [n], float32 if stored so; text is refused, gaps become NaN.

    ``where`` and ``row`` say in words whose column it is and where a row stands.
    """
    column = table[name]
    if not pa.types.is_float32(column.type):
        column = _decoded(column)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        try:
            column = pc.cast(column, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            bad = _first_without_number(column)
            raise InputError(
                f"column {name!r} of {where} must hold numbers, but {row(bad)} has"
                f" {examples([column[bad].as_py()])}",
                "correct the column",
            ) from error
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def parquet_columns(path: str | Path) -> list[str]:
    """The column names of a Parquet file, without reading it; none for any other file."""
    if Path(path).suffix.lower() != ".parquet":
        return []
    path = check_file(path)
    try:
        names: list[str] = pa_parquet.read_schema(path).names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "Parquet", error) from error
    return names


def ending_to_write(path: Path) -> str:
    """The ending that says how a table is written."""
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"a table is written to a file ending in {', '.join(TABLE_SUFFIXES)}, but got {path}",
            "choose one of these endings",
        )
    return suffix


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write CSV, TSV, Parquet or JSONL, by the file's ending."""
    path = Path(path)
    suffix = ending_to_write(path)
    _distinct(table.column_names, path)
    with whole_file(path) as temporary:
        try:
            if suffix == ".parquet":
                pa_parquet.write_table(table, temporary, compression="zstd")
            elif suffix in (".csv", ".tsv"):
                _write_csv(table, temporary, "\t" if suffix == ".tsv" else ",")
            else:
                _write_jsonl(table, temporary)
        except pa.ArrowException as error:
            raise InputError(
                f"the columns of {path} must hold text or numbers, but: {error}",
                "leave the others out, or write Parquet",
            ) from error


def _read_csv(path: Path, delimiter: str, numbers: Callable[[str], bool]) -> pa.Table:
    header = _csv_header(path, delimiter)
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def read(types: dict[str, pa.DataType], block: int) -> pa.Table:
        convert = pa_csv.ConvertOptions(
            column_types=types, strings_can_be_null=False, null_values=[""]
        )
        options = pa_csv.ReadOptions(block_size=block)
        return pa_csv.read_csv(path, options, parse, convert)

    types = {name: pa.float64() if numbers(name) else _STRINGS for name in header}
    block = 1 << 20
    try:
        try:
            table = read(types, block)
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise
            # A row is longer than the block that must hold it.
            block = _LONGEST_ROW
            table = read(types, block)
    except pa.ArrowException as error:
        if "Empty CSV" in str(error):
            raise no_rows(path) from error
        if "conversion error to double" in str(error):
            # Read as text, the column can say which row holds no number, unless more is wrong.
            with suppress(pa.ArrowException):
                text = read(dict.fromkeys(header, _STRINGS), block)
                for name in filter(numbers, header):
                    number_column(text, name, str(path))
        raise bad_csv(path, parse, error) from error
    if table.column_names != header:
        raise unreadable(path, "CSV", ValueError(f"its header is {examples(header)}"))
    if table.num_rows and pa.types.is_dictionary(table.schema.types[-1]):
        last = table.column(table.num_columns - 1)
        _refuse_open_quote(path, last[len(last) - 1].as_py())
    return table


def _csv_header(path: Path, delimiter: str) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            # Empty lines before the header are passed over, as Arrow does.
            header = next(filter(None, csv.reader(stream, delimiter=delimiter)), [])
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except csv.Error as error:
        raise unreadable(path, "CSV", error) from error
    if not header:
        raise no_rows(path)
    if len(header) == 1 and any(other in header[0] for other in ";\t|,"):
        mark = "commas" if delimiter == "," else "tabs"
        raise InputError(
            f"columns must stand between {mark}, but the header of {path} is {examples(header)}",
            "save the table with commas as .csv or with tabs as .tsv",
        )
    _distinct(header, path)
    return header


def _refuse_open_quote(path: Path, last: str) -> None:
    """Refuse a file whose last cell (of the last row) is a quotation that never ends."""
    raw = b'"' + last.replace('"', '""').encode()
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - len(raw) - 2))
        tail = stream.read()
    # Nothing but quotation marks looks the same open and closed, up to one of them.
    only_quotes = not raw.strip(b'"')
    odd = (len(tail) - len(tail.rstrip(b'"'))) % 2 == 1
    if tail.endswith(raw) and (odd or not only_quotes):
        raise InputError(
            f"every quotation mark in {path} must be closed, but one is open from"
            f" {examples([last])} to the end",
            "close it, or double it inside text; the file may also be cut off",
        )


def _read_parquet(path: Path) -> pa.Table:
    try:
        with pa_parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            texts = [field.name for field in schema if pa.types.is_string(field.type)]
        _distinct(schema.names, path)
        # As in a CSV, text that repeats is kept once.
        with pa_parquet.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise unreadable(path, "Parquet", error) from error
    return table


def _read_jsonl(path: Path) -> pa.Table:
    with path.open("rb") as stream:
        start = stream.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip()
    if start and not start.startswith(b"{"):
        # Arrow does not survive a file that starts with null.
        raise bad_jsonl(path, ValueError("it does not start with an object"))
    # Nor does it survive tens of thousands of brackets inside each other.
    if reason := bad_lines(path):
        raise bad_jsonl(path, ValueError(reason))
    # One block must hold a whole row, so blocks grow with the file up to a bound.
    block = min(max(1 << 20, path.stat().st_size), _LONGEST_ROW)
    options = pa_json.ReadOptions(block_size=block)
    try:
        table: pa.Table = pa_json.read_json(path, read_options=options)
        # Arrow reads text that looks like a date as a date; an id such as "2024-01-01" stays text.
        dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
        if dates:
            schema = pa.schema([(name, pa.string()) for name in dates])
            parse = pa_json.ParseOptions(explicit_schema=schema)
            table = pa_json.read_json(path, read_options=options, parse_options=parse)
        # Arrow does not look whether JSON is UTF-8.
        table.validate(full=True)
        _distinct(table.column_names, path)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise bad_jsonl(path, error) from error
    return table


def _write_csv(table: pa.Table, path: Path, delimiter: str) -> None:
    schema = pa.schema([(field.name, _plain(field.type)) for field in table.schema])
    options = pa_csv.WriteOptions(delimiter=delimiter)
    with pa_csv.CSVWriter(path, schema, write_options=options) as writer:
        for rows in _slices(table):
            writer.write_table(rows)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for rows in _slices(table):
            for row in rows.to_pylist():
                # JSON knows neither NaN nor infinity.
                plain = {name: None if _no_number(value) else value for name, value in row.items()}
                stream.write(json.dumps(plain, ensure_ascii=False, default=str) + "\n")


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    """Some rows at a time, so that repeated text is written out for these alone."""
    for start in range(0, table.num_rows, 65_536):
        rows = table.slice(start, 65_536)
        yield pa.table({name: _decoded(rows[name]) for name in rows.column_names})


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(_plain(column.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _first_without_number(column: pa.ChunkedArray) -> int:
    """The first row that is no number, where there is one."""
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            pc.cast(column.slice(start, middle - start), pa.float64())
            start = middle
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            stop = middle
    return start


def _distinct(names: Sequence[str], path: Path) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"column names must differ, but {path} has {examples(repeated)} twice",
            "rename one of them",
        )
