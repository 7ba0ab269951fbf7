"""Tables written to CSV, TSV, Parquet and JSONL files, whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from edokit.errors import InputError
from edokit.files.tables import TABLE_SUFFIXES, distinct, plain_type
from edokit.files.whole import whole_file


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
