"""Reading tables and JSON with clear errors, and writing files whole or not at all."""

from edokit._io.atomic import (
    cannot_read,
    cannot_write,
    check_file,
    drop_folder,
    temporary_folder,
    whole_file,
)
from edokit._io.documents import json_text, parse_json, read_json, read_text, write_json

__all__ = [
    "cannot_read",
    "cannot_write",
    "check_file",
    "drop_folder",
    "json_text",
    "parse_json",
    "read_json",
    "read_text",
    "temporary_folder",
    "whole_file",
    "write_json",
]
