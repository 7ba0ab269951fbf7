"""A table that is written part by part, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from edokit.files.tables import distinct, plain_type
from edokit.files.whole import whole_file
from edokit.files.writing import ending_to_write, no_number, some_rows


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
