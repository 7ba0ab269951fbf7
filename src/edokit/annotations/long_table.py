"""Annotations from a long table: one row per annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from edokit.annotations.arrays import on_simplex, ordered_classes
from edokit.annotations.core import Annotations, Floats
from edokit.errors import InputError, examples
from edokit.files import number_column
from edokit.ids import Codes, Encoded, Strings, column_of, encode, recode

ROLES = ("item", "annotator", "label", "text", "split", "hard_label")
"""What a column of a long table can be."""
ALIASES = {"item": "task", "annotator": "worker"}
"""crowd-kit's names, understood where ours are absent."""
PROBABILITY = "p_"
"""How the columns start that hold an annotation's probabilities, one per class."""


def from_long_table(
    table: pa.Table | pd.DataFrame | Mapping[str, Any],
    columns: Mapping[str, str],
    classes: Sequence[object] | None,
    split: str | None,
    attributes: Sequence[str] | None,
) -> Annotations:
    """See ``Annotations.from_table``; an annotator may still stand twice on an item."""
    table = _arrow(table)
    names = _roles(table.column_names, columns)
    if split is not None:
        table = _only_split(table, names, split)
    if table.num_rows == 0:
        raise InputError("a table of annotations must hold at least one row, but it holds none")
    item = encode(table[names["item"]], names["item"])
    annotator = encode(table[names["annotator"]], names["annotator"])
    labels: Codes | None = None
    probabilities: Floats | None = None
    if "label" in names:
        label = encode(table[names["label"]], names["label"])
        _no_gaps(item, annotator, label, names)
        order = ordered_classes(classes, label.names)
        labels = recode(label, order, "label", "classes")
    else:
        _no_gaps(item, annotator, None, names)
        order, probabilities = _probability_columns(table, classes)
    published = None
    if "hard_label" in names:
        hard = _one_per_item(table, names["hard_label"], item)
        if classes is None and labels is not None:
            order, labels = _with_published(order, labels, hard)
        published = recode(hard, order, "hard label", "classes")
    per_item = {
        role: _names(_one_per_item(table, names[role], item))
        for role in ("text", "split")
        if role in names
    }
    return Annotations(
        items=item.names,
        annotators=annotator.names,
        classes=order,
        item_codes=item.codes,
        annotator_codes=annotator.codes,
        label_codes=labels,
        label_probabilities=probabilities,
        published=published,
        texts=per_item.get("text"),
        splits=per_item.get("split"),
        attributes=_attributes(table, attributes, set(names.values()), annotator),
    )


def _arrow(table: pa.Table | pd.DataFrame | Mapping[str, Any]) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    columns = {str(name): column_of(table[name]) for name in list(table)}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"all columns must have one length, but got {lengths}", "give each row every column"
        )
    return pa.table(columns)


def _roles(present: list[str], columns: Mapping[str, str]) -> dict[str, str]:
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
                f" its columns are {', '.join(map(repr, present))}",
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
            f" {', '.join(map(repr, present))}",
            f"map one with --column {missing[0]}=NAME",
        )
    return names


def _only_split(table: pa.Table, names: Mapping[str, str], split: str) -> pa.Table:
    if "split" not in names:
        raise InputError(
            f"to choose the split {split!r} the table must have a split column, but has"
            f" {', '.join(map(repr, table.column_names))}",
            "map one with --column split=NAME, or leave the split out",
        )
    encoded = encode(table[names["split"]], names["split"])
    if split not in encoded.names:
        raise InputError(
            f"the split must be one of {examples(encoded.names, 10)}, but got {split!r}",
            "choose one of these",
        )
    wanted = int(np.flatnonzero(encoded.names == split)[0])
    return table.filter(pa.array(encoded.codes == wanted))


def _no_gaps(
    item: Encoded, annotator: Encoded, label: Encoded | None, names: Mapping[str, str]
) -> None:
    """Every row must name an item, an annotator and a label."""
    gone = np.zeros(len(item.codes), bool) if label is None else label.codes < 0
    silent = (item.codes >= 0) & (annotator.codes < 0) & (gone if label is not None else True)
    if label is not None and silent.any():
        ids = item.names[np.unique(item.codes[silent])]
        raise InputError(
            f"every item needs an annotation, but {len(ids)} have a row with no annotator and no"
            f" label: {examples(ids)}",
            "drop these rows",
        )
    for role, codes in (("item", item.codes), ("annotator", annotator.codes)):
        _refuse(codes < 0, role, names[role])
    if label is not None:
        _refuse(gone, "label", names["label"])


def _refuse(gaps: Any, role: str, name: str) -> None:
    if gaps.any():
        raise InputError(
            f"every annotation must name its {role}, but column {name!r} is empty in row"
            f" {int(np.flatnonzero(gaps)[0]) + 1} ({int(gaps.sum())} such rows)",
            "fill in or drop these rows",
        )


def _probability_columns(
    table: pa.Table, classes: Sequence[object] | None
) -> tuple[tuple[str, ...], Floats]:
    found = [name for name in table.column_names if name.startswith(PROBABILITY)]
    classes_found = np.array([name.removeprefix(PROBABILITY) for name in found], dtype=object)
    order = ordered_classes(classes, classes_found)
    wanted = [PROBABILITY + name for name in order]
    if set(wanted) != set(found):
        raise InputError(
            f"the probability columns must be {', '.join(map(repr, wanted))}, but are"
            f" {', '.join(map(repr, found))}",
            "give one p_<class> column per declared class",
        )
    values = np.column_stack([number_column(table, name) for name in wanted])
    return order, on_simplex(values.astype(np.float64))


def _one_per_item(table: pa.Table, name: str, item: Encoded) -> Encoded:
    """A column that belongs to the item: its code per item [N], the same in all rows."""
    encoded = encode(table[name], name)
    # Rows are written back to front, so that the first row of an item stays.
    first = np.full(len(item.names), -1, dtype=np.int32)
    first[item.codes[::-1]] = encoded.codes[::-1]
    differs = first[item.codes] != encoded.codes
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        raise InputError(
            f"an item must have one {name}, but item {str(item.names[item.codes[row]])!r} has"
            f" another in row {row + 1} ({int(differs.sum())} such rows)",
            "give each item its own id, or make its rows agree",
        )
    return Encoded(first, encoded.names)


def _names(encoded: Encoded) -> Strings:
    """Names [n] with empty text for gaps."""
    values: Strings = np.append(encoded.names, "").astype(object)[encoded.codes]
    return values


def _with_published(
    order: tuple[str, ...], labels: Codes, hard: Encoded
) -> tuple[tuple[str, ...], Codes]:
    """Classes that nobody chose but that were published belong to the classes, too."""
    both = ordered_classes(None, np.array(sorted({*order, *hard.names}), dtype=object))
    moved = np.array([both.index(name) for name in order], dtype=np.int32)
    return both, moved[labels]


def _attributes(
    table: pa.Table, wanted: Sequence[str] | None, used: set[str], annotator: Encoded
) -> dict[str, Strings]:
    """Columns with one value per annotator [A]."""
    attributes: dict[str, Strings] = {}
    for name in table.column_names if wanted is None else wanted:
        if name in used or name.startswith(PROBABILITY):
            continue
        if name not in table.column_names:
            raise InputError(
                f"an attribute must be a column of the table, but {name!r} is not",
                f"choose from {', '.join(map(repr, table.column_names))}",
            )
        kind = table[name].type
        if wanted is None and (pa.types.is_nested(kind) or pa.types.is_floating(kind)):
            continue
        encoded = encode(table[name], name)
        first = np.full(len(annotator.names), -1, dtype=np.int32)
        first[annotator.codes[::-1]] = encoded.codes[::-1]
        if (first[annotator.codes] == encoded.codes).all():
            attributes[name] = _names(Encoded(first, encoded.names))
        elif wanted is not None:
            raise InputError(
                f"an attribute must have one value per annotator, but {name!r} varies",
                "leave it out of the attributes",
            )
    return attributes
