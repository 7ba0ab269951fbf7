"""Annotations from a table file: CSV, TSV, Parquet, JSONL or XLSX, one row per annotation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edokit._errors import InputError, errors_in
from edokit._io.tables import READABLE_SUFFIXES, read_table
from edokit.annotations import Annotations
from edokit.annotations.long_table import from_long_table, is_share
from edokit.datasets.read import Source


def read_annotation_table(
    path: str | Path, *, columns: Mapping[str, str] | None = None, **options: Any
) -> Annotations:
    """A long table with ``item, annotator, label`` (or crowd-kit's ``task, worker, label``).

    Columns ``p_<class>`` may replace ``label``, and without an annotator they are soft labels, one
    row per item; ``text``, ``split``, ``hard_label`` and attributes of annotators are read if they
    are there. ``columns`` maps our names to the file's, as in ``{"item": "id"}``; further options
    are those of `Annotations.from_table`. A folder of such files is read as one table.
    """
    parts = [read_table(file) for file in table_files(path)]
    with errors_in(path):
        try:
            table = pa.concat_tables(parts, promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"the tables in the folder have different columns: {error}",
                "write them with the same names and types of columns",
            ) from error
        table = with_annotator(table, columns or {})
        return from_long_table(table, columns=columns, **options)


def table_files(path: str | Path) -> list[Path]:
    """The file itself, or the tables in a folder by name."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    # Hidden files are leftover temporary files of an interrupted writer.
    return sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in READABLE_SUFFIXES and not file.name.startswith(".")
    )


def with_annotator(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """The table; soft labels (shares without an annotator) become those of one annotator."""
    names = {*columns, *table.column_names}
    if names & {"annotator", "worker", "label"} or not any(map(is_share, table.column_names)):
        return table
    codes = pa.array(np.zeros(table.num_rows, dtype=np.int32))
    return table.append_column("annotator", pa.DictionaryArray.from_arrays(codes, ["soft"]))


def _is_table(path: Path, content: object) -> bool:
    """Whether it is a file, or a folder with tables and no JSON in it."""
    return not path.is_dir() or (not any(path.glob("*.json")) and bool(table_files(path)))


SOURCE = Source(
    "table",
    f"a table ({', '.join(READABLE_SUFFIXES)})",
    read_annotation_table,
    _is_table,
    options=("columns", "attributes", "label_map", "multi_choice"),
)
