"""Tables in CSV, TSV, Parquet and JSONL files, read with clear errors and written whole."""

from __future__ import annotations

import codecs
import csv
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOError, InputError, headings, in_bytes, option, word
from edokit._io.atomic import cannot_read, check_file, check_memory, check_start, whole_file
from edokit._io.json import bad_lines, first_bad_byte, json_text, not_utf8, parse_json
from edokit._io.markup import spreadsheet_text
from edokit._lazy import pa, pa_csv, pa_json, pa_parquet, pc
from edokit._parallel import free_memory, may_use_threads

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
_LONGEST_ROW = 1 << 26
_AGAIN = "the file may be cut off; export or download it again"
_ROW = re.compile(r" in row \d+")
_CONTENT = re.compile(r"((?:got \d+|invalid value|invalid UTF8 data))\b.*", re.DOTALL)
"""Where Arrow begins to quote the file, which may hold somebody's text."""
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}


OTHER_FILES = {
    **dict.fromkeys(
        (".xlsx", ".xls", ".ods", ".numbers"), "save the sheet as CSV (UTF-8) and give that"
    ),
    ".npz": "an .npz holds predictions; give labels or texts as a table, such as a CSV file",
}
"""What to do about files that are taken for tables."""


def read_table(path: str | Path, numbers: Callable[[str], bool] = lambda name: False) -> pa.Table:
    """One CSV, TSV, Parquet or JSONL file as an Arrow table.

    Text files have no types, so in a CSV every column is text ("007" stays "007", "NA" is no gap)
    except those whose name ``numbers`` accepts.
    """
    path = check_file(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        lines = ": one object per line, as .jsonl" if suffix == ".json" else ""
        raise InputError(
            f"{path} is not a table: its name does not end in {', '.join(TABLE_SUFFIXES)}",
            OTHER_FILES.get(suffix, f"rename or convert the file{lines}"),
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
        raise _no_rows(path)
    return table


def number_column(
    table: pa.Table,
    name: str,
    source: str = "the table",
    row: Callable[[int], str] = lambda row: f"row {row + 1}",
) -> npt.NDArray[Any]:
    """A column of numbers [n], float32 if stored so; text is refused, gaps become NaN.

    ``source`` and ``row`` describe the table and the place of a row for messages.
    """
    column = table[name]
    if not pa.types.is_float32(column.type):
        column = column.cast(_plain_type(column.type))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        try:
            column = pc.cast(column, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            # The first row that is no number is in column[start:stop].
            start, stop = 0, len(column)
            while stop - start > 1:
                middle = (start + stop) // 2
                try:
                    pc.cast(column.slice(start, middle - start), pa.float64())
                    start = middle
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    stop = middle
            value = str(column[start].as_py())
            hint = "write decimals with a point, 0.25" if "," in value else "correct the column"
            raise InputError(
                f"column {name!r} of {source} has {word(column[start].as_py())} in {row(start)},"
                " which is not a number",
                "write percentages as shares, 0.25 for 25%" if "%" in value else hint,
            ) from error
    dtype = np.float32 if pa.types.is_float32(column.type) else np.float64
    return stored_numbers(column, dtype, np.nan)


def stored_numbers(column: pa.ChunkedArray, dtype: type, gap: float) -> npt.NDArray[Any]:
    """Numbers [n] of a column that holds them in this type; Arrow's own way imports pandas.

    Those of a column in one piece are not copied, and can't be written to.
    """
    parts: list[npt.NDArray[Any]] = []
    for chunk in column.chunks:
        validity, data = chunk.buffers()
        rows = slice(chunk.offset, chunk.offset + len(chunk))
        numbers: npt.NDArray[Any] = np.frombuffer(data or b"", dtype=dtype)[rows]
        if chunk.null_count:
            bits = np.frombuffer(validity, dtype=np.uint8)
            valid = np.unpackbits(bits, bitorder="little")[rows].astype(bool)
            numbers = np.where(valid, numbers, np.array(gap, dtype))
        parts.append(numbers)
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def as_column(values: npt.NDArray[Any] | Sequence[str]) -> pa.Array:
    """Numbers without gaps, or text [n], as a column; Arrow's own way imports pandas."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        kind = pa.from_numpy_dtype(values.dtype)
        data = pa.py_buffer(np.ascontiguousarray(values, values.dtype.newbyteorder("=")))
        return pa.Array.from_buffers(kind, len(values), [None, data])
    texts = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    # Beyond 2 GiB Arrow cuts text into chunks; a dictionary must be whole.
    kind, offset = (pa.string(), np.int32) if ends[-1] < 2**31 else (pa.large_string(), np.int64)
    buffers = [None, pa.py_buffer(ends.astype(offset)), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(kind, len(texts), buffers)


def parquet_parts(
    path: str | Path, columns: Callable[[list[str]], list[str]], rows: int
) -> Iterator[pa.Table]:
    """Some of the columns of a Parquet file, so many rows at a time."""
    path = check_file(path)
    try:
        with pa_parquet.ParquetFile(path) as file:
            names: list[str] = file.schema_arrow.names
            _distinct(names, path)
            _refuse_bomb(file.metadata, path, at_once=False)
            for batch in file.iter_batches(rows, columns=columns(names)):
                table = pa.Table.from_batches([batch])
                table.validate(full=True)
                yield table
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "Parquet", error) from error


def _read_csv(path: Path, delimiter: str, numbers: Callable[[str], bool]) -> pa.Table:
    header, delimiter = _csv_header(path, delimiter)
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def read(types: dict[str, pa.DataType], block: int) -> pa.Table:
        convert = pa_csv.ConvertOptions(
            column_types=types, strings_can_be_null=False, null_values=[""]
        )
        options = pa_csv.ReadOptions(block_size=block)
        return pa_csv.read_csv(path, options, parse, convert)

    text_type = pa.dictionary(pa.int32(), pa.string())
    types = {name: pa.float64() if numbers(name) else text_type for name in header}
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
            raise _no_rows(path) from error
        if "conversion error to double" in str(error):
            # Read as text, the column can say which row holds no number, unless more is wrong.
            with suppress(pa.ArrowException):
                text = read(dict.fromkeys(header, text_type), block)
                for name in filter(numbers, header):
                    number_column(text, name, str(path))
        raise _bad_csv(path, parse, error) from error
    if table.column_names != header:
        raise unreadable(path, "CSV", ValueError(f"its header is {headings(header)}"))
    if table.num_rows and pa.types.is_dictionary(table.schema.types[-1]):
        column = table.column(table.num_columns - 1)
        _refuse_open_quote(path, column[len(column) - 1].as_py())
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
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
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
        stream.seek(max(0, path.stat().st_size - len(raw) - 2))
        tail = stream.read()
    # Nothing but quotation marks looks the same open and closed, up to one of them.
    only_quotes = not raw.strip(b'"')
    odd = (len(tail) - len(tail.rstrip(b'"'))) % 2 == 1
    if tail.endswith(raw) and (odd or not only_quotes):
        raise InputError(
            f"{path} has a quotation mark that is never closed, in its last {len(cell)} characters",
            "close it, or double it inside text; the file may also be cut off",
        )


def _read_parquet(path: Path) -> pa.Table:
    try:
        with pa_parquet.ParquetFile(path) as file:
            schema, about = file.schema_arrow, file.metadata
            _distinct(schema.names, path)
            _refuse_bomb(about, path)
            texts = [field.name for field in schema if pa.types.is_string(field.type)]
            table = None if texts else file.read(use_threads=may_use_threads())
        if table is None:
            # As in a CSV, text that repeats is kept once.
            with pa_parquet.ParquetFile(path, read_dictionary=texts, metadata=about) as file:
                table = file.read(use_threads=may_use_threads())
        if table.num_rows != about.num_rows:
            raise ValueError(f"it claims {about.num_rows} rows")
        _validate(table)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise unreadable(path, "Parquet", error) from error
    return table


def _validate(table: pa.Table) -> None:
    """Refuse what is no text, or has no entry in its dictionary: Arrow is slow to look for it."""
    table.validate()
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if chunk.null_count or chunk.type != pa.dictionary(pa.int32(), pa.string()):
            chunk.validate(full=True)
            continue
        chunk.dictionary.validate(full=True)
        codes = stored_numbers(pa.chunked_array([chunk.indices]), np.uint32, 0)
        if len(codes) and codes.max() >= len(chunk.dictionary):
            raise ValueError(f"a row has number {codes.max()} of {len(chunk.dictionary)} texts")


def _refuse_bomb(about: pa_parquet.FileMetaData, path: Path, at_once: bool = True) -> None:
    """Refuse what would take far more memory than its size on the disk lets expect.

    It is read ``at_once``, or one group of rows at a time.
    """
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    total = sum if at_once else max
    rows = total([group.num_rows for group in groups] or [0])
    rows = max(about.num_rows, rows) if at_once else rows
    unpacked = total([group.total_byte_size for group in groups] or [0])
    # A row of nothing but repetitions takes no bytes in the file, and an entry per column here.
    cost = max(rows * 4 * max(1, about.num_columns), unpacked)
    if rows < 0 or unpacked < 0:
        raise ValueError(f"it claims {rows:,} rows and {unpacked:,} bytes, more than it can hold")
    check_memory(path, 2 * cost)


def _read_jsonl(path: Path) -> pa.Table:
    with path.open("rb") as stream:
        start = stream.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip()
    # Arrow does not survive a file that starts with null, nor thousands of nested brackets.
    not_object = start and not start.startswith(b"{")
    if reason := "it does not start with an object" if not_object else bad_lines(path):
        raise _bad_jsonl(path, ValueError(reason))
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
        raise _bad_jsonl(path, error) from error
    return table


def _distinct(names: Sequence[str], path: Path) -> None:
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InputError(
            f"{path} has several columns of the name {headings(repeated, 3)}", "rename one of them"
        )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values themselves, where a column holds codes of them."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _bad_csv(path: Path, parse: pa_csv.ParseOptions, error: Exception) -> EDOError:
    """The error for a CSV that Arrow can't read."""
    if first_bad_byte(path) is not None:
        return not_utf8(path)
    ragged: list[pa_csv.InvalidRow] = []

    def note(row: pa_csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    parse.invalid_row_handler = note
    with suppress(pa.ArrowException):
        # Only a single thread can count the rows.
        options = pa_csv.ReadOptions(use_threads=False, block_size=_LONGEST_ROW)
        pa_csv.read_csv(path, options, parse)
    if ragged:
        row = ragged[0]
        return InputError(
            f"row {row.number - 1} of {path} has {row.actual_columns} columns, but the header has"
            f" {row.expected_columns}",
            f"put quotation marks around text with {parse.delimiter!r}; " + _AGAIN,
        )
    return unreadable(path, "CSV", error)


def _bad_jsonl(path: Path, error: Exception) -> EDOError:
    """The error for JSON lines that Arrow can't read."""
    if first_bad_byte(path) is not None:
        return not_utf8(path)
    first_kinds: dict[str, tuple[str, int]] = {}
    row = 0
    with path.open(encoding="utf-8-sig") as stream:
        for line in stream:
            if not line.strip():
                continue
            row += 1
            try:
                value = parse_json(line, f"row {row} of {path}")
                kinds = list(_walk(value, ""))
            except InputError as problem:
                return problem
            except UnicodeError:
                return InputError(f"row {row} of {path} holds half a character", _AGAIN)
            if not isinstance(value, dict):
                return InputError(
                    f"row {row} of {path} is {_kind(value)}, not a JSON object",
                    "write one object per line",
                )
            for name, kind in kinds:
                first_kind, before = first_kinds.setdefault(name, (kind, row))
                if first_kind != kind:
                    return InputError(
                        f"column {name!r} of {path} mixes types: {first_kind} in row {before},"
                        f" {kind} in row {row}",
                        "write the whole column as text or as numbers",
                    )
    return unreadable(path, "JSONL", error) if row else _no_rows(path)


def _no_rows(path: Path) -> InputError:
    return InputError(f"{path} has no rows", "check that it is the right file")


def unreadable(path: Path, kind: str, error: Exception) -> InputError:
    """The error for a file that is not what its ending says."""
    if isinstance(error, MemoryError) or "worker thread" in str(error):
        return InputError(
            f"there is not enough memory to read {path}: {in_bytes(free_memory())} are free",
            "free memory, or split the file",
        )
    # Arrow counts the rows of a block from 0, which would lead astray.
    lines = _ROW.sub("", _CONTENT.sub(r"\1", str(error))).strip().splitlines()
    return InputError(
        f"{path} can't be read as a {kind} file: {lines[0] if lines else type(error).__name__}",
        _AGAIN,
    )


def _walk(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The kind of each value, by column; gaps have none."""
    if value is None:
        return
    if isinstance(value, str):
        # Half a character, such as a lone surrogate, passes JSON but no encoding.
        value.encode()
    if name:
        yield name, _kind(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, f"{name}[]")


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null" if value is None else "an object")


def write_table(table: pa.Table, path: str | Path, *, quote_formulas: bool = False) -> None:
    """Write CSV, TSV, Parquet or JSONL, by the file's ending.

    ``quote_formulas`` puts a quote before text of a CSV that a spreadsheet would run as a formula.
    """
    if quote_formulas:
        table = _for_spreadsheet(table, path)
    path, suffix = _checked_target(path)
    _distinct(table.column_names, path)
    with whole_file(path) as temporary:
        try:
            if suffix == ".parquet":
                # As it is: repeated text stays a dictionary, and metadata are kept. Every group of
                # rows would hold the whole dictionary again.
                rows = max(1, table.num_rows)
                packing = _packing(table.schema)
                pa_parquet.write_table(table, temporary, row_group_size=rows, **packing)
            else:
                with _open_writer(temporary, suffix, table.schema) as writer:
                    _write_rows(table, writer)
        except pa.ArrowException as error:
            raise InputError(
                f"{path} can't hold a column that is neither text nor numbers: {error}",
                "leave the others out, or write Parquet",
            ) from error


def write_tables(
    parts: Iterable[pa.Table], path: str | Path, *, quote_formulas: bool = False
) -> int:
    """Write parts with the same columns into one CSV, TSV, Parquet or JSONL file; how many rows.

    No more than one part need be in memory. If one fails, no file is written.
    """
    if quote_formulas:
        parts = (_for_spreadsheet(part, path) for part in parts)
    path, suffix = _checked_target(path)
    remaining = iter(parts)
    # A place that can't be written to is refused before the first part is made.
    with whole_file(path) as temporary:
        part = next(remaining)
        _distinct(part.column_names, path)
        with _open_writer(temporary, suffix, part.schema) as writer:
            rows = _write_rows(part, writer)
            del part
            check_start(temporary, path)  # before the other parts are made
            for part in remaining:
                rows += _write_rows(part, writer)
    return rows


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


def _checked_target(path: str | Path) -> tuple[Path, str]:
    """The path, and its ending, which says how the table is written."""
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        os.path.realpath(path).encode()
    except UnicodeError as error:
        raise InputError(
            f"the name of the file {path} is not valid Unicode", "choose another name"
        ) from error
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"tables are written to files ending in {', '.join(TABLE_SUFFIXES)}, not to {path}",
            "choose one of these endings",
        )
    return path, suffix


def _write_rows(table: pa.Table, writer: Any) -> int:
    # Some rows at a time, so that repeated text is written out for these alone.
    for start in range(0, table.num_rows, 65_536):
        writer.write_table(table.slice(start, 65_536).cast(_plain_schema(table.schema)))
    return int(table.num_rows)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, _plain_type(field.type)) for field in schema])


def _packing(schema: pa.Schema) -> dict[str, Any]:
    """How Parquet packs columns: fractions hardly repeat, so that looking for it only costs."""
    fractions = [field.name for field in schema if pa.types.is_floating(field.type)]
    repetitive = [name for name in schema.names if name not in fractions]
    kinds = dict.fromkeys(repetitive, "zstd") | dict.fromkeys(fractions, "snappy")
    return {"compression": kinds, "use_dictionary": repetitive}


def _open_writer(path: Path, suffix: str, schema: pa.Schema) -> Any:
    plain_schema = _plain_schema(schema)
    if suffix == ".parquet":
        return pa_parquet.ParquetWriter(path, plain_schema, **_packing(plain_schema))
    if suffix in (".csv", ".tsv"):
        options = pa_csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
        return pa_csv.CSVWriter(path, plain_schema, write_options=options)
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
