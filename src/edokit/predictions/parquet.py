"""Predictions as a long table: one row per (item, member)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError, counted, headings
from edokit._io import number_column
from edokit._names import Encoded, class_order, encode, row_number, text_array
from edokit._types import Strings
from edokit.predictions.core import Predictions
from edokit.predictions.model_file import PREFIX

_CLASSES = b"edokit.classes"
"""Where a table notes the order of its classes."""


def from_long_table(table: pa.Table, path: Path) -> Predictions:
    """The predictions in a table of any row order, each pair once; named but not yet checked."""
    for name in ("item", "member"):
        if name not in table.column_names:
            raise InputError(
                f"predictions in {path} must have the columns item, member and p_<class>, but"
                f" {name!r} is missing; its columns are {headings(table.column_names)}",
                "one file per model becomes predictions with `edo predictions join`",
            )
    classes = _classes(table)
    if len(classes) < 2:
        raise InputError(
            f"predictions in {path} must have one p_<class> column per class, but have"
            f" {len(classes)}",
            "name them p_0, p_1, …",
        )
    item, member = (_no_gaps(table, name, path) for name in ("item", "member"))
    n, k = len(item.names), len(member.names)
    cells = item.codes.astype(np.int64) * k + member.codes
    _each_pair_once(cells, item, member, path)
    columns = [number_column(table, PREFIX + name, str(path)) for name in classes]
    array = np.empty((n * k, len(classes)), dtype=np.result_type(*columns))
    array[cells] = np.column_stack(columns)
    return Predictions(
        array.reshape(n, k, len(classes)),
        item.names,
        tuple(member.names),
        classes,
        _groups(table, member, path),
    ).named()


def long_table(predictions: Predictions) -> pa.Table:
    """One row per (item, member) with ``item, member, group`` and ``p_<class>`` columns."""
    n, k, _ = predictions.shape

    def repeated(names: Sequence[str] | Strings, codes: npt.NDArray[Any]) -> pa.Array:
        values = text_array(names, "names in predictions")
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)

    columns: dict[str, Any] = {
        "item": repeated(predictions.items, np.repeat(np.arange(n), k)),
        "member": repeated(predictions.members, np.tile(np.arange(k), n)),
    }
    if predictions.groups is not None:
        columns["group"] = repeated(predictions.groups, np.tile(np.arange(k), n))
    flat = predictions.probabilities.reshape(n * k, -1)
    for c, name in enumerate(predictions.classes):
        columns[PREFIX + name] = flat[:, c]
    noted = json.dumps(predictions.classes).encode()
    return pa.table(columns).replace_schema_metadata({_CLASSES: noted})


def _classes(table: pa.Table) -> tuple[str, ...]:
    """The classes in the order that the table notes, else in class order."""
    found = class_order(
        name.removeprefix(PREFIX) for name in table.column_names if name.startswith(PREFIX)
    )
    try:
        noted = json.loads((table.schema.metadata or {}).get(_CLASSES, b"null"))
        declared = tuple(noted or ())
        return declared if sorted(declared) == sorted(found) else found
    except (TypeError, ValueError, RecursionError):
        return found


def _no_gaps(table: pa.Table, name: str, path: Path) -> Encoded:
    encoded = encode(table[name], name)
    gaps = np.flatnonzero(encoded.codes < 0)
    if len(gaps):
        raise InputError(
            f"every row of {path} must name its {name}, but {row_number(int(gaps[0]))} does not"
            f" ({counted(len(gaps), 'such row')})",
            "fill in or drop these rows",
        )
    return encoded


def _each_pair_once(
    cells: npt.NDArray[np.int64], item: Encoded, member: Encoded, path: Path
) -> None:
    k = len(member.names)
    if len(cells) == len(item.names) * k and np.bincount(cells).max(initial=0) <= 1:
        return
    distinct, times = np.unique(cells, return_counts=True)
    wrong = np.flatnonzero(times > 1)
    cell, given = -1, 0
    if len(wrong):
        cell, given = int(distinct[wrong[0]]), int(times[wrong[0]])
        hint = "drop the repeated rows"
    elif len(distinct) < len(item.names) * k:
        # The first number that is not in the list.
        gap = np.flatnonzero(distinct != np.arange(len(distinct)))
        cell = int(gap[0]) if len(gap) else len(distinct)
        hint = "complete the file, or join it from one file per model"
    if cell >= 0:
        raise InputError(
            f"{path} must have one row for each of {len(item.names)} items and {k} members, but"
            f" has {given or 'none'} for item {item.names[cell // k]!r} and member"
            f" {member.names[cell % k]!r}",
            hint,
        )


def _groups(table: pa.Table, member: Encoded, path: Path) -> tuple[str, ...] | None:
    """The group of each member [K], if the table has groups."""
    if "group" not in table.column_names:
        return None
    group = encode(table["group"], "group")
    of_member = np.full(len(member.names), -1)
    of_member[member.codes[::-1]] = group.codes[::-1]
    differs = np.flatnonzero(of_member[member.codes] != group.codes)
    if len(differs):
        row = int(differs[0])
        raise InputError(
            f"a member must belong to one group, but {member.names[member.codes[row]]!r} in {path}"
            f" has another in {row_number(row)}",
            "make its rows agree",
        )
    return tuple("" if code < 0 else str(group.names[code]) for code in of_member)
