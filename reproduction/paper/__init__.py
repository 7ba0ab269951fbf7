"""The paper's own numbers, one file a table, as printed there.

``tables.json`` says which table of the paper each file holds. Signs are named: ``preserve`` is
s = −1, ``suppress`` is s = +1.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from edokit._errors import one_of

Row = dict[str, Any]
"""The cells of a row by column: text, a number or None."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")


@cache
def sources() -> dict[str, dict[str, str]]:
    """The label and the subject of the paper's table in each file."""
    text = files(__package__).joinpath("tables.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = json.loads(text)
    return tables


@cache
def rows(name: str) -> tuple[Row, ...]:
    """The rows of one file, with numbers as floats and empty cells as None."""
    one_of("the paper's table", name, sources())
    text = files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(map(_typed_row, csv.DictReader(text.split("\n"))))


def row(name: str, **cells: str | float) -> Row | None:
    """The first row with these cells, or None."""
    return next(matching(name, **cells), None)


def matching(name: str, **cells: str | float) -> Iterator[Row]:
    """All rows with these cells."""
    for row in rows(name):
        if all(row[column] == cell for column, cell in cells.items()):
            yield row


def _typed_row(text_row: dict[str, str]) -> Row:
    return {column: _value(cell) for column, cell in text_row.items()}


def _value(cell: str) -> str | float | None:
    if cell == "":
        return None
    if _NUMBER.fullmatch(cell):
        return float(cell)
    return cell
