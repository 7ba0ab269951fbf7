"""Records that other tools wrote: read, and looked into with clear errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from edokit._errors import InputError, word
from edokit._io import check_depth, check_file, not_utf8, read_json, read_table
from edokit._names import as_name


def load(source: Any) -> Any:
    """The records of a JSON, JSONL or Parquet file; anything but a path is returned as it is."""
    if not isinstance(source, str | Path):
        return source
    path = check_file(source)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = read_table(path)
        # Times are of no use here, and some have no Python equivalent.
        kept = [part.name for part in table.schema if not pa.types.is_temporal(part.type)]
        return table.select(kept).to_pylist()
    if suffix not in (".jsonl", ".ndjson"):
        return read_json(path)
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    lines = enumerate(content.split("\n"), 1)
    records = [_line(path, k, text) for k, text in lines if text.strip()]
    check_depth(content.encode(), path)
    return records


def _line(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"every line of {path} must be valid JSON, but line {number} is not: {error}",
            "the file may be cut off; export it again",
        ) from error


def shown(value: object) -> str:
    """A value from an export, short enough for a message."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        return word(value) if isinstance(value, str) else repr(value)[:40]
    except ValueError:  # Python refuses to write out integers of thousands of digits.
        return "a huge number"


def plain(value: object, what: str, where: str) -> str:
    """The name that text or a number stands for; anything else is refused."""
    name = ""
    try:
        if isinstance(value, str):
            name = value
        elif isinstance(value, float):
            name = as_name(value) if math.isfinite(value) else ""
        elif isinstance(value, int | np.integer | UUID) and not isinstance(value, bool):
            name = str(value)
        name.encode()
    except ValueError:  # half a surrogate pair, or thousands of digits
        name = ""
    if name:
        return name
    raise InputError(
        f"{what} must be text or a number, but {where} has {shown(value)}",
        "correct the export",
    )


def object_at(value: object, what: str, where: str) -> Mapping[str, Any]:
    """The value, if it is a JSON object."""
    if isinstance(value, Mapping):
        return value
    raise InputError(f"{what} must be an object, but {where} has {shown(value)}", "export it again")


def list_at(value: object, what: str, where: str) -> Sequence[Any]:
    """The value, if it is a JSON list; null is an empty one."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise InputError(f"{what} must be a list, but {where} has {shown(value)}", "export it again")
