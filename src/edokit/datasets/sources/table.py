"""Tables: CSV, TSV, Parquet or JSONL, one row per annotation, or a folder of such files."""

from __future__ import annotations

from edokit._io import TABLE_SUFFIXES
from edokit.datasets.registry import Candidate, Source
from edokit.datasets.table import read_annotation_table, table_files


def is_table(candidate: Candidate) -> bool:
    """Whether the name ends like a table's, or a folder holds tables and no JSON."""
    if candidate.path.is_dir():
        return not any(candidate.path.glob("*.json")) and bool(table_files(candidate.path))
    return candidate.suffix in TABLE_SUFFIXES


SOURCE = Source(
    "table",
    f"a table ({', '.join(TABLE_SUFFIXES)})",
    is_table,
    read_annotation_table,
    options=("columns", "attributes"),
    # Exports can be tables, too, and know themselves better: they are asked before.
    place=10,
)
