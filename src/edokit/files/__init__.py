"""Reading tables and JSON with clear errors, and writing files whole or not at all."""

from edokit.files.depth import check_depth
from edokit.files.documents import read_json, write_json
from edokit.files.explain import not_utf8
from edokit.files.left_behind import drop_folder, temporary_folder
from edokit.files.links import refuse_links
from edokit.files.streams import write_tables
from edokit.files.tables import (
    TABLE_SUFFIXES,
    number_column,
    parquet_columns,
    read_table,
)
from edokit.files.whole import cannot_read, cannot_write, check_file, whole_file
from edokit.files.writing import write_table

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
    "refuse_links",
    "temporary_folder",
    "whole_file",
    "write_json",
    "write_table",
    "write_tables",
]
