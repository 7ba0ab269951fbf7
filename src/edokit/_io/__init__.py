"""Reading tables and JSON with clear errors, and writing files whole or not at all."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edokit._io.atomic import (
    cannot_read,
    cannot_write,
    check_file,
    drop_folder,
    temporary_folder,
    whole_file,
)
from edokit._io.json import check_depth, not_utf8, read_json, write_json

if TYPE_CHECKING:
    from edokit._io.tables import (
        TABLE_SUFFIXES,
        number_column,
        parquet_columns,
        read_table,
        write_table,
        write_tables,
    )

__all__ = [
    "TABLE_SUFFIXES",
    "cannot_read",
    "cannot_write",
    "check_depth",
    "check_file",
    "drop_folder",
    "not_utf8",
    "number_column",
    "parquet_columns",
    "read_json",
    "read_table",
    "temporary_folder",
    "whole_file",
    "write_json",
    "write_table",
    "write_tables",
]


def __getattr__(name: str) -> Any:
    """Tables need pyarrow, which is slow to import and missing on machines that only train."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module("edokit._io.tables"), name)
