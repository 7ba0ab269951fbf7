"""Tables written to CSV, TSV, Parquet and JSONL files, whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._io.read_tables import TABLE_SUFFIXES, distinct, plain_type


def ending_to_write(path: Path) -> str:
    """The ending that says how a table is written."""
    suffix = path.suffix.lower()
    try:
        os.path.realpath(path).encode()
    except UnicodeError as error:
        raise InputError(
            f"the name of a file must be valid Unicode, but {path} is not", "choose another name"
        ) from error
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
    distinct(table.column_names, path)
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


def _write_csv(table: pa.Table, path: Path, delimiter: str) -> None:
    schema = pa.schema([(field.name, plain_type(field.type)) for field in table.schema])
    options = pa_csv.WriteOptions(delimiter=delimiter)
    with pa_csv.CSVWriter(path, schema, write_options=options) as writer:
        for rows in some_rows(table):
            writer.write_table(rows)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for rows in some_rows(table):
            for row in rows.to_pylist():
                # JSON knows neither NaN nor infinity.
                plain = {name: None if no_number(value) else value for name, value in row.items()}
                stream.write(json.dumps(plain, ensure_ascii=False, default=str) + "\n")


def some_rows(table: pa.Table) -> Iterator[pa.Table]:
    """Some rows at a time, so that repeated text is written out for these alone."""
    for start in range(0, table.num_rows, 65_536):
        rows = table.slice(start, 65_536)
        yield pa.table(
            {name: rows[name].cast(plain_type(rows[name].type)) for name in rows.column_names}
        )


def no_number(value: object) -> bool:
    """Whether it is NaN or infinite, which JSON can't hold."""
    return isinstance(value, float) and not math.isfinite(value)


def write_tables(parts: Iterable[pa.Table], path: str | Path) -> int:
    """Write parts with the same columns into one CSV, TSV, Parquet or JSONL file; how many rows.

    No more than one part need be in memory. If one fails, no file is written.
    """
    path = Path(path)
    suffix = ending_to_write(path)
    remaining = iter(parts)
    first = next(remaining)
    distinct(first.column_names, path)
    rows = 0
    with whole_file(path) as temporary, _writer(temporary, suffix, first.schema) as writer:
        part: pa.Table | None = first
        while part is not None:
            for some in some_rows(part):
                writer.write_table(some)
            rows += part.num_rows
            part = next(remaining, None)
    return rows


def _writer(path: Path, suffix: str, schema: pa.Schema) -> Any:
    plain = pa.schema([(field.name, plain_type(field.type)) for field in schema])
    if suffix == ".parquet":
        return pa_parquet.ParquetWriter(path, plain, compression="zstd")
    if suffix in (".csv", ".tsv"):
        options = pa_csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
        return pa_csv.CSVWriter(path, plain, write_options=options)
    return _JsonLines(path)


class _JsonLines:
    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8")

    def write_table(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            # JSON knows neither NaN nor infinity.
            plain = {name: None if no_number(value) else value for name, value in row.items()}
            self._stream.write(json.dumps(plain, ensure_ascii=False, default=str) + "\n")

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
