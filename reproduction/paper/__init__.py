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
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")


@cache
def sources() -> dict[str, dict[str, str]]:
    """For each file the label of its table in the paper and what it is about."""
    text = files(__package__).joinpath("tables.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = json.loads(text)
    return tables


@cache
def rows(name: str) -> tuple[Row, ...]:
    """The rows of one file, numbers as numbers, empty cells as None."""
    one_of("the paper's table", name, sources())
    text = files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(
        {key: _value(cell) for key, cell in row.items()} for row in csv.DictReader(text.split("\n"))
    )


def row(name: str, **wanted: Any) -> Row | None:
    """The one row with these values, if there is one."""
    return next(matching(name, **wanted), None)


def matching(name: str, **wanted: Any) -> Iterator[Row]:
    """All rows with these values."""
    for row in rows(name):
        if all(row[key] == value for key, value in wanted.items()):
            yield row


def _value(cell: str) -> Any:
    if cell == "":
        return None
    return float(cell) if _NUMBER.fullmatch(cell) else cell
