"""Annotations from a long table: one row per annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, counted, examples, headings, word
from edokit._io import number_column
from edokit._names import (
    Encoded,
    as_name,
    as_names,
    check_unique,
    column_of,
    encode,
    recode,
    row_number,
    text_array,
)
from edokit._types import Codes, Floats, Strings
from edokit.annotations.arrays import on_simplex, ordered_classes
from edokit.annotations.core import Annotations, Duplicates, tell_of_contradictions

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations

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


def settle_duplicates(
    annotations: Annotations, policy: Duplicates, where: Callable[[int], str]
) -> Annotations:
    """The annotations with each annotator once on an item, or all of them, by the policy."""
    if policy is Duplicates.ALL or not (again := annotations.repeated).any():
        return annotations
    if policy is Duplicates.ERROR:
        row = int(np.flatnonzero(again)[0])
        raise InputError(
            "an annotator labels an item once, but annotator"
            f" {annotations.annotators[annotations.annotator_codes[row]]!r} labels item"
            f" {annotations.items[annotations.item_codes[row]]!r} again in {where(row)}"
            f" ({counted(int(again.sum()), 'such row')})",
            "choose duplicates='first' to keep the first, 'all' to count each",
        )

    def kept(values: npt.NDArray[Any] | None) -> Any:
        return None if values is None else values[~again]

    return replace(
        annotations,
        item_codes=kept(annotations.item_codes),
        annotator_codes=kept(annotations.annotator_codes),
        label_codes=kept(annotations.label_codes),
        label_probabilities=kept(annotations.label_probabilities),
    )


def to_long_table(annotations: Annotations) -> pa.Table:
    """See ``Annotations.to_table``."""
    items, people = annotations.item_codes, annotations.annotator_codes
    data: dict[str, Any] = {
        "item": _column(items, annotations.items),
        "annotator": _column(people, annotations.annotators),
    }
    if annotations.label_codes is not None:
        data["label"] = _column(annotations.label_codes, annotations.classes)
    else:
        assert annotations.label_probabilities is not None
        for k, name in enumerate(annotations.classes):
            data[f"p_{name}"] = annotations.label_probabilities[:, k]
    if annotations.published is not None:
        data["hard_label"] = _column(annotations.published[items], annotations.classes)
    for name, values in (("split", annotations.splits), ("text", annotations.texts)):
        if values is not None:
            data[name] = _column(items, values)
    for name, values in annotations.attributes.items():
        data[name] = _column(people, values)
    return pa.table(data)


def _column(codes: Codes, names: Sequence[str] | Strings) -> pa.Array:
    # Texts and attributes may repeat; the entries of a dictionary may not.
    unique = text_array(names, "text in a table").dictionary_encode()
    indices = unique.indices.take(pa.array(codes, mask=codes < 0))
    return pa.DictionaryArray.from_arrays(indices, unique.dictionary)
