"""What is wrong with a file that can't be read, and in which row; looked up only then."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from edokit.errors import EDOError, InputError, headings

_AGAIN = "the file may be cut off; export or download it again"
_ROW = re.compile(r" in row \d+")
_CONTENT = re.compile(r"((?:got \d+|invalid value|invalid UTF8 data))\b.*", re.DOTALL)
"""Where Arrow begins to quote the file, which may hold somebody's text."""
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}


def not_utf8(path: Path, error: UnicodeDecodeError | None = None) -> InputError:
    """The sentence for a text file in another encoding."""
    where = _first_bad_byte(path)
    if where is None:
        place = "" if error is None else f" (first at byte {error.start})"
    else:
        line, byte = where
        place = f" (first in line {line}, at byte {byte})"
    with path.open("rb") as stream:
        likely = (
            "utf-16" if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin1"
        )
    return InputError(
        f"text files must be UTF-8, but {path} is not{place}",
        f"convert it, for example with: iconv -f {likely} -t utf-8",
    )


def bad_csv(path: Path, parse: pa_csv.ParseOptions, error: Exception) -> EDOError:
    """The sentence for a CSV that Arrow can't read."""
    if _first_bad_byte(path) is not None:
        return not_utf8(path)
    ragged: list[pa_csv.InvalidRow] = []

    def note(row: pa_csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    parse.invalid_row_handler = note
    try:
        # Only a single thread can count the rows.
        options = pa_csv.ReadOptions(use_threads=False, block_size=1 << 26)
        pa_csv.read_csv(path, options, parse)
    except pa.ArrowException:
        pass
    if ragged:
        row = ragged[0]
        return InputError(
            f"every row of {path} must have {row.expected_columns} columns like the header, but"
            f" row {row.number - 1} has {row.actual_columns}",
            "put quotation marks around text with commas; " + _AGAIN,
        )
    return unreadable(path, "CSV", error)


def bad_jsonl(path: Path, error: Exception) -> EDOError:
    """The sentence for JSON lines that Arrow can't read."""
    if _first_bad_byte(path) is not None:
        return not_utf8(path)
    first: dict[str, tuple[str, int]] = {}
    row = 0
    with path.open(encoding="utf-8-sig") as stream:
        for line in stream:
            if not line.strip():
                continue
            row += 1
            try:
                value = json.loads(line, object_pairs_hook=_distinct_keys)
                kinds = list(_walk(value, ""))
            except (ValueError, RecursionError) as found:
                deep = isinstance(found, RecursionError)
                trouble = "it is nested too deeply" if deep else found
                return InputError(
                    f"every row of {path} must be one JSON object, but row {row} is not: {trouble}",
                    _AGAIN,
                )
            if not isinstance(value, dict):
                return InputError(
                    f"every row of {path} must be one JSON object, but row {row} is {_kind(value)}",
                    "write one object per line",
                )
            for name, kind in kinds:
                known, before = first.setdefault(name, (kind, row))
                if known != kind:
                    return InputError(
                        f"each column must hold one type of value, but column {name!r} of {path}"
                        f" mixes types: {known} in row {before}, {kind} in row {row}",
                        "write the whole column as text or as numbers",
                    )
    return unreadable(path, "JSONL", error) if row else no_rows(path)


def no_rows(path: Path) -> InputError:
    """The sentence for a table with nothing but a header, if that."""
    return InputError(
        f"a table must hold at least one row, but {path} holds none",
        "check that it is the right file",
    )


def unreadable(path: Path, kind: str, error: Exception) -> InputError:
    """The sentence for a file that is not what its ending says."""
    # Arrow counts the rows of a block from 0, which would lead astray.
    lines = _ROW.sub("", _CONTENT.sub(r"\1", str(error))).strip().splitlines()
    return InputError(
        f"{path} must be a valid {kind} file, but can't be read:"
        f" {lines[0] if lines else type(error).__name__}",
        _AGAIN,
    )


def _first_bad_byte(path: Path) -> tuple[int, int] | None:
    """Line (from 1) and byte (from 0) where the file stops being UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, start = 1, 0
    with path.open("rb") as stream:
        while True:
            block = stream.read(1 << 20)
            held = len(decoder.getstate()[0])
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].count(b"\n"), start - held + error.start
            if not block:
                return None
            start += len(block)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        raise ValueError(f"it holds {headings(n for n in times if times[n] > 1)} twice")
    return found


def _walk(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The kind of each value, by column; gaps have none."""
    if value is None:
        return
    if isinstance(value, str):
        # Half a character, such as a lone surrogate, passes JSON but no encoding.
        value.encode()
    if name:
        yield name, _kind(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, f"{name}[]")


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null" if value is None else "an object")
