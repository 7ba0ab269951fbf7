"""Tables written to CSV, TSV, Parquet and JSONL files, whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._io.read_tables import TABLE_SUFFIXES, distinct, plain_type


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write CSV, TSV, Parquet or JSONL, by the file's ending."""
    path = Path(path)
    suffix = _checked_suffix(path)
    distinct(table.column_names, path)
    with whole_file(path) as temporary:
        try:
            if suffix == ".parquet":
                # As it is: repeated text stays a dictionary, and metadata are kept.
                pa_parquet.write_table(table, temporary, compression="zstd")
            else:
                with _open_writer(temporary, suffix, table.schema) as writer:
                    _write_rows(table, writer)
        except pa.ArrowException as error:
            raise InputError(
                f"{path} can't hold a column that is neither text nor numbers: {error}",
                "leave the others out, or write Parquet",
            ) from error


def write_tables(parts: Iterable[pa.Table], path: str | Path) -> int:
    """Write parts with the same columns into one CSV, TSV, Parquet or JSONL file; how many rows.

    No more than one part need be in memory. If one fails, no file is written.
    """
    path = Path(path)
    suffix = _checked_suffix(path)
    remaining = iter(parts)
    first = next(remaining)
    distinct(first.column_names, path)
    with whole_file(path) as temporary, _open_writer(temporary, suffix, first.schema) as writer:
        rows = _write_rows(first, writer)
        del first
        for part in remaining:
            rows += _write_rows(part, writer)
    return rows


def _checked_suffix(path: Path) -> str:
    """The ending that says how a table is written."""
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
    return suffix


def _write_rows(table: pa.Table, writer: Any) -> int:
    # Some rows at a time, so that repeated text is written out for these alone.
    for start in range(0, table.num_rows, 65_536):
        rows = table.slice(start, 65_536)
        writer.write_table(
            pa.table(
                {name: rows[name].cast(plain_type(rows[name].type)) for name in rows.column_names}
            )
        )
    return int(table.num_rows)


def _open_writer(path: Path, suffix: str, schema: pa.Schema) -> Any:
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
            # JSON has neither NaN nor infinity.
            plain = {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            self._stream.write(json.dumps(plain, ensure_ascii=False, default=str) + "\n")

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
