"""What the columns of a long table are: the table's names for our roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, examples, headings
from edokit._names import as_names, check_unique, column_of

ROLES = ("item", "annotator", "label", "text", "split", "hard_label")
"""What a column of a long table can be."""
ALIASES = {"item": "task", "annotator": "worker"}
"""crowd-kit's names, understood where ours are absent."""
PROBABILITY = "p_"
"""How the columns start that hold an annotation's probabilities, one per class."""


def arrow_table(table: Any) -> pa.Table:
    """An Arrow table from one, from a DataFrame or from a mapping of columns."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif isinstance(table, pd.DataFrame):
        # By position, since a name can stand twice.
        names = [str(name) for name in table.columns]
        table = _columns(names, [table.iloc[:, place] for place in range(len(names))])
    elif isinstance(table, Mapping):
        table = _columns([str(name) for name in table], list(table.values()))
    elif not isinstance(table, pa.Table) and hasattr(table, "__arrow_c_stream__"):
        table = pa.table(table)
    if not isinstance(table, pa.Table):
        raise InputError(
            "annotations come as an Arrow table, a DataFrame or a mapping of columns, but got"
            f" {type(table).__name__}",
            "read a file with edokit._io.read_table, for example",
        )
    check_unique(as_names(table.column_names), "column names", "rename one of them")
    return table


def roles(present: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The table's column for each role that it has."""
    for role, name in columns.items():
        if role not in ROLES:
            raise InputError(
                f"a column is mapped to one of {', '.join(ROLES)}, but got {role!r}",
                f"write for example item={name}",
            )
        if name not in present:
            raise InputError(
                f"the column mapped to {role!r} must be in the table, but {name!r} is not;"
                f" its columns are {headings(present)}",
                "check the spelling",
            )
    names = {role: columns.get(role, role) for role in ROLES}
    for role, alias in ALIASES.items():
        if names[role] not in present and alias in present:
            names[role] = alias
    names = {role: name for role, name in names.items() if name in present}
    needed = ["item", "annotator"]
    if not any(name.startswith(PROBABILITY) for name in present):
        needed.append("label")
    missing = [role for role in needed if role not in names]
    if missing:
        raise InputError(
            f"a table of annotations must have the columns {', '.join(needed)}, but"
            f" {examples(missing)} {'is' if len(missing) == 1 else 'are'} missing; its columns are"
            f" {headings(present)}",
            f"map one with --column {missing[0]}=NAME",
        )
    return names


def _columns(names: Sequence[str], values: Sequence[Any]) -> pa.Table:
    columns = [column_of(column, name) for name, column in zip(names, values, strict=True)]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        longest = {name: len(column) for name, column in zip(names, columns, strict=True)}
        raise InputError(
            f"all columns must have one length, but got {longest}", "give each row every column"
        )
    return pa.table(columns, names=names)
