"""Annotations from a long table: one row per annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError, counted, examples, headings, word
from edokit._io import number_column
from edokit._names import Encoded, as_name, encode, recode, row_number
from edokit._types import Codes, Floats, Strings
from edokit.annotations.arrays import on_simplex, ordered_classes
from edokit.annotations.columns import PROBABILITY, ROLES, arrow_table, roles
from edokit.annotations.contradictions import tell_of_contradictions
from edokit.annotations.core import Annotations, Duplicates
from edokit.annotations.duplicates import settle_duplicates

Where = Callable[[int], str]
_MOST_COUNTS = 1 << 30


def from_long_table(
    table: Any,
    columns: Mapping[str, str],
    classes: Sequence[object] | None,
    duplicates: Duplicates,
    split: str | None,
    attributes: Sequence[str] | None,
) -> Annotations:
    """See ``Annotations.from_table``."""
    table = arrow_table(table)
    names = roles(table.column_names, columns)
    where: Where = row_number
    elsewhere: set[str] = set()
    if split is not None:
        # A class that only other splits have is a class of the data all the same.
        for name in (names[role] for role in ("label", "hard_label") if role in names):
            elsewhere.update(encode(table[name], name).names)
        table, rows = _only_split(table, names, split)

        def where(row: int) -> str:
            return row_number(int(rows[row]))

    if table.num_rows == 0:
        raise InputError(
            "a table of annotations must hold at least one row, but it holds none",
            "check that it is the right table",
        )
    item = encode(table[names["item"]], names["item"])
    annotator = encode(table[names["annotator"]], names["annotator"])
    label = encode(table[names["label"]], names["label"]) if "label" in names else None
    _no_gaps(item, annotator, label, names, where)
    hard: Encoded | None = None
    if "hard_label" in names:
        hard = _one_per_item(table, names["hard_label"], item, where)
    labels: Codes | None = None
    probabilities: Floats | None = None
    if label is not None:
        # Classes that nobody chose but that were published belong to the classes, too.
        published_names = () if hard is None else hard.names
        order = ordered_classes(classes, {*label.names, *published_names, *elsewhere})
        _refuse_too_many(len(order), len(item.names), names["label"])
        labels = recode(label, order, "label", "classes", where)
    else:
        order, probabilities = _probability_columns(table, classes, where)
    per_item = {
        role: _names(_one_per_item(table, names[role], item, where, is_text=role == "text"))
        for role in ("text", "split")
        if role in names
    }
    built = Annotations(
        items=item.names,
        annotators=annotator.names,
        classes=order,
        item_codes=item.codes,
        annotator_codes=annotator.codes,
        label_codes=labels,
        label_probabilities=probabilities,
        published=None if hard is None else _published(hard, order, item.names),
        texts=per_item.get("text"),
        splits=per_item.get("split"),
        attributes=_attributes(table, attributes, names, annotator),
    )
    settled = settle_duplicates(built, duplicates, where)
    tell_of_contradictions(settled)
    return settled


def _only_split(
    table: pa.Table, names: Mapping[str, str], split: object
) -> tuple[pa.Table, npt.NDArray[np.intp]]:
    """The rows of one split, and where they stand in the whole table."""
    if "split" not in names:
        raise InputError(
            f"to choose the split {split!r} the table must have a split column, but has"
            f" {headings(table.column_names)}",
            "map one with --column split=NAME, or leave the split out",
        )
    encoded = encode(table[names["split"]], names["split"])
    wanted = np.flatnonzero(encoded.names == as_name(split))
    if not len(wanted):
        raise InputError(
            f"the split must be one of {examples(encoded.names, 10)}, but got {split!r}",
            "choose one of these",
        )
    chosen = encoded.codes == wanted[0]
    return table.filter(pa.array(chosen)), np.flatnonzero(chosen)


def _no_gaps(
    item: Encoded,
    annotator: Encoded,
    label: Encoded | None,
    names: Mapping[str, str],
    where: Where,
) -> None:
    """Every row must name an item, an annotator and a label."""
    if label is not None:
        silent = (item.codes >= 0) & (annotator.codes < 0) & (label.codes < 0)
        if silent.any():
            ids = item.names[np.unique(item.codes[silent])]
            raise InputError(
                "every item needs an annotation, but a row with no annotator and no label stands"
                f" for {counted(len(ids), 'item')}: {examples(ids)}",
                "drop these rows",
            )
    for role, encoded in (("item", item), ("annotator", annotator), ("label", label)):
        if encoded is not None and (encoded.codes < 0).any():
            gaps = np.flatnonzero(encoded.codes < 0)
            raise InputError(
                f"every annotation must name its {role}, but column {names[role]!r} is empty in"
                f" {where(int(gaps[0]))} ({counted(len(gaps), 'such row')})",
                "fill in or drop these rows",
            )


def _refuse_too_many(classes: int, items: int, name: str) -> None:
    """Refuse a column of classes that holds texts or ids: counts [N, C] would fill the memory."""
    if classes * items > _MOST_COUNTS:
        raise InputError(
            f"an item belongs to one of a few classes, but column {name!r} holds {classes:,}"
            f" different values for {items:,} items",
            "map the right column with --column label=NAME",
        )


def _probability_columns(
    table: pa.Table, classes: Sequence[object] | None, where: Where
) -> tuple[tuple[str, ...], Floats]:
    found = [name for name in table.column_names if name.startswith(PROBABILITY)]
    order = ordered_classes(classes, [name.removeprefix(PROBABILITY) for name in found])
    wanted = [PROBABILITY + name for name in order]
    if set(wanted) != set(found) or len(found) < 2:
        raise InputError(
            "the probability columns must be one p_<class> for each class"
            + ("" if classes is None else f" ({examples(wanted, 20)})")
            + f", but are {examples(found, 20)}",
            "complete or rename the columns",
        )
    values = np.column_stack([number_column(table, name, row=where) for name in wanted])
    return order, on_simplex(values.astype(np.float64, copy=False), where)


def _one_per_item(
    table: pa.Table, name: str, item: Encoded, where: Where, *, is_text: bool = False
) -> Encoded:
    """A column that belongs to the item: its code per item [N], the same in all rows.

    Somebody's text is not shown in messages.
    """
    encoded = encode(table[name], name)
    first = _first_codes(item, encoded)
    differs = first[item.codes] != encoded.codes
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        before = int(np.flatnonzero(item.codes == item.codes[row])[0])
        given = [
            "none" if code < 0 else "one" if is_text else word(encoded.names[code])
            for code in (encoded.codes[before], encoded.codes[row])
        ]
        given[1] = "another" if is_text and given[1] == "one" else given[1]
        raise InputError(
            f"an item must have one {name}, but item {item.names[item.codes[row]]!r} has"
            f" {given[0]} in {where(before)} and {given[1]} in {where(row)}"
            f" ({counted(int(differs.sum()), 'such row')})",
            "give each item its own id, or make its rows agree",
        )
    return Encoded(first, encoded.names)


def _published(hard: Encoded, order: tuple[str, ...], items: Strings) -> Codes:
    return recode(hard, order, "hard label", "classes", lambda row: f"item {items[row]!r}")


def _first_codes(owner: Encoded, encoded: Encoded) -> Codes:
    """The code in the first row of each owner [n]."""
    first = np.full(len(owner.names), -1, dtype=np.int32)
    # Rows are written back to front, so that the first one stays.
    first[owner.codes[::-1]] = encoded.codes[::-1]
    return first


def _names(encoded: Encoded) -> Strings:
    """Names [n] with empty text for gaps."""
    values: Strings = np.append(encoded.names, "").astype(object)[encoded.codes]
    return values


def _attributes(
    table: pa.Table, wanted: Sequence[str] | None, names: Mapping[str, str], annotator: Encoded
) -> dict[str, Strings]:
    """Columns with one value per annotator [A]."""
    taken = {*names.values(), *ROLES}
    if wanted is not None:
        for name in wanted:
            _check_attribute(name, table.column_names, taken)
    attributes: dict[str, Strings] = {}
    for name in table.column_names if wanted is None else wanted:
        if name in taken or name.startswith(PROBABILITY):
            continue
        try:
            encoded = encode(table[name], name)
        except InputError:
            # Lists and the like describe nobody, unless someone says that they do.
            if wanted is None:
                continue
            raise
        first = _first_codes(annotator, encoded)
        if (first[annotator.codes] == encoded.codes).all():
            attributes[name] = _names(Encoded(first, encoded.names))
        elif wanted is not None:
            raise InputError(
                f"an attribute must have one value per annotator, but {name!r} varies",
                "leave it out of the attributes",
            )
    return attributes


def _check_attribute(name: str, present: Sequence[str], taken: set[str]) -> None:
    if name not in present:
        raise InputError(
            f"an attribute must be a column of the table, but {name!r} is not",
            f"choose from {headings(present)}",
        )
    if name in taken or name.startswith(PROBABILITY):
        raise InputError(
            f"an attribute must describe the annotator, but {name!r} says something else already",
            "leave it out of the attributes, or rename the column",
        )
