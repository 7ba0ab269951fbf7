"""Annotations from and to a long table with one row per annotation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, counted, examples, headings, one_of, option, warn
from edokit._io.tables import number_column
from edokit._names import (
    Encoded,
    as_name,
    as_names,
    check_unique,
    class_order,
    column_of,
    encode,
    recode,
    renamed,
    row_number,
    text_array,
    warn_variants,
)
from edokit._types import Bools, Codes, Floats, Strings
from edokit.annotations.core import (
    Annotations,
    Duplicates,
    PublishedLabelWarning,
    contradiction_message,
)
from edokit.annotations.labels import (
    Labels,
    MultiChoice,
    as_label_map,
    as_points,
    read_labels,
)
from edokit.rows import Rows
from edokit.scales import NOMINAL, Declared, Scale, ScaleKind, ScaleLike, number_list

Place = Callable[[int], str]
ROLES = ("item", "annotator", "label", "text", "context", "split", "hard_label")
"""What a column can hold, besides attributes of the annotators; a context needs a text."""
TEXTS = ("text", "context")
"""Roles whose values messages do not quote."""
ALIASES = {"item": "task", "annotator": "worker"}
"""crowd-kit's names, used where ours are absent."""
SCALE = "answer_scale"
"""Column that notes the answer scale with its classes, the same in every row."""
PROBABILITY = "p_"
"""Prefix of the columns with an annotation's probabilities, one per class."""
EXACT = 1e-12
"""Sums this close to 1 are not rescaled."""
_MOST_COUNTS = 1 << 30
"""A label column with texts or ids would fill the memory with counts [N, C]."""


def from_long_table(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[object] | None = None,
    duplicates: Duplicates = "error",
    split: str | None = None,
    attributes: Sequence[str] | None = None,
    label_map: Mapping[Any, object] | None = None,
    multi_choice: MultiChoice | Literal["sets"] = "error",
    scale: ScaleLike | None = None,
    place: Place = row_number,
) -> Annotations:
    """See ``Annotations.from_table``; ``place`` names a row in messages."""
    one_of("duplicates", duplicates, get_args(Duplicates))
    table = _arrow_table(table)
    names = _roles(table.column_names, columns or {})
    scaled = scale_of_table(table, scale)
    classes = scaled.classes if classes is None else classes
    declared = None if classes is None else ordered_classes(classes, ())
    is_set = scaled.kind == "multi-label"
    labels, mapping = _labels(
        table, names, scaled.kind, declared, label_map, "sets" if is_set else multi_choice, place
    )
    if split is not None:
        table, rows = _only_split(table, names, split)
        if labels is not None:
            codes = labels.encoded.codes[rows]
            labels = labels._replace(encoded=labels.encoded._replace(codes=codes))
        place_in_table = place

        def place(row: int) -> str:
            return place_in_table(int(rows[row]))

    if table.num_rows == 0:
        raise InputError("the table of annotations has no rows", "check that it is the right table")
    item = encode(table[names["item"]], names["item"])
    annotator = encode(table[names["annotator"]], names["annotator"])
    _refuse_gaps(item, annotator, labels, names, place, is_set)
    warn_variants(item.names, "items", case=False)
    warn_variants(annotator.names, "annotators")
    order, answers = _answers(table, labels, classes, item, place, scaled.kind)
    per_item = {
        role: _names(_one_per_item(table, names[role], item, place))
        for role in (*TEXTS, "split")
        if role in names
    }
    if "split" in per_item:
        warn_variants(as_names(dict.fromkeys(per_item["split"])), "splits")
    annotations = Annotations(
        rows=Rows.of(item.names),
        annotators=annotator.names,
        classes=order,
        item_codes=item.codes,
        annotator_codes=annotator.codes,
        **answers,
        published=_published(table, names, item, order, mapping, place, is_set),
        texts=per_item.get("text"),
        contexts=per_item.get("context"),
        splits=per_item.get("split"),
        scale=scaled.on(order, None if labels is None else labels.first(place)),
    )
    annotations, is_kept = _without_duplicates(annotations, duplicates, place)
    # Of the rows that are kept: a column that varies in others only describes items or annotators.
    if not is_kept.all():
        item, annotator = (c._replace(codes=c.codes[is_kept]) for c in (item, annotator))
        table = table.filter(pa.array(is_kept))
    fields: dict[str, Any] = _other_columns(table, attributes, names, item, annotator)
    annotations = replace(annotations, **fields)
    _warn_contradicted(annotations)
    return annotations


def _warn_contradicted(annotations: Annotations) -> None:
    if (contradicted := annotations.contradicted).any():
        note = contradiction_message(int(contradicted.sum()), len(contradicted))
        warn(f"{note}: {examples(annotations.items[contradicted])}", PublishedLabelWarning)


def _labels(
    table: pa.Table,
    names: Mapping[str, str],
    kind: ScaleKind,
    declared: tuple[str, ...] | None,
    label_map: Mapping[Any, object] | None,
    multi_choice: MultiChoice | Literal["sets"],
    place: Place,
) -> tuple[Labels | None, Mapping[str, str]]:
    """The labels of all splits, if there is such a column, and the names that replace others.

    Classes that occur in other splits only belong to the data, too.
    """
    if "label" not in names or not table.num_rows:
        return None, as_label_map(label_map, None)
    name = names["label"]
    column = encode(lists_as_text(table, name)[name], name)
    occurring = {*column.names}
    if "hard_label" in names and (label_map or kind == "ordinal"):
        occurring.update(encode(table[names["hard_label"]], names["hard_label"]).names)
    mapping = as_label_map(label_map, occurring if declared is None else None)
    if kind == "ordinal":
        mapping = as_points(occurring, declared) | mapping
    options: dict[str, Any] = {"label_map": mapping, "multi_choice": multi_choice}
    return read_labels(column, name, place, classes=declared, **options), mapping


def _refuse_gaps(
    item: Encoded,
    annotator: Encoded,
    labels: Labels | None,
    names: Mapping[str, str],
    place: Place,
    is_set: bool,
) -> None:
    """Every row must name an item, an annotator and a label."""
    codes_by_role = {"item": item.codes, "annotator": annotator.codes}
    if labels is not None:
        codes_by_role["label"] = labels.encoded.codes
    for role, codes in codes_by_role.items():
        gaps = np.flatnonzero(codes < 0)
        if len(gaps):
            note = " (an empty set is written [])" if role == "label" and is_set else ""
            raise InputError(
                f"column {names[role]!r} ({role}) is empty in {place(int(gaps[0]))}"
                f" ({counted(len(gaps), 'such row')})",
                f"fill in or drop these rows{note}",
            )


def _answers(
    table: pa.Table,
    labels: Labels | None,
    classes: Sequence[object] | None,
    item: Encoded,
    place: Place,
    kind: ScaleKind,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The classes, and the answers as fields of `Annotations`: codes, or probabilities."""
    if labels is None:
        order, shares = _probability_columns(table, classes, place, kind)
        return order, {"label_codes": None, "label_probabilities": shares}
    order = ordered_classes(classes, labels.names)
    _check_label_count(order, item)
    if kind == "multi-label" or labels.parts:
        shares = labels.shares(order, place, sets=kind == "multi-label")
        return order, {"label_codes": None, "label_probabilities": shares}
    codes = recode(labels.encoded, order, "label", "classes", place, can_map=True)
    return order, {"label_codes": codes}


def _check_label_count(order: Sequence[str], item: Encoded) -> None:
    """Refuse a column of empty sets, and one that holds texts or ids instead of labels."""
    if not order:
        raise InputError(
            "no row has a label: all sets are empty",
            f"declare the labels, as in {option('scale', 'multi-label:rude,mocking')}",
        )
    if len(order) * len(item.names) > _MOST_COUNTS:
        raise InputError(
            f"there are {len(order):,} different labels for {len(item.names):,} items; the column"
            " seems to hold something else",
            f"map the right column with {option('columns', {'label': 'NAME'})}",
        )


def _published(
    table: pa.Table,
    names: Mapping[str, str],
    item: Encoded,
    order: tuple[str, ...],
    mapping: Mapping[str, str],
    place: Place,
    is_set: bool,
) -> Codes | None:
    """The published hard label of each item [N]; None without such a column."""
    if "hard_label" not in names:
        return None
    if is_set:
        raise InputError(
            f"column {names['hard_label']!r} holds one hard label per item, which a multi-label"
            " scale does not have",
            "drop or rename the column",
        )
    hard = renamed(_one_per_item(table, names["hard_label"], item, place), mapping)

    def place_of_item(number: int) -> str:
        return f"item {item.names[number]!r}"

    return recode(hard, order, "hard label", "classes", place_of_item, can_map=True)


def _only_split(
    table: pa.Table, names: Mapping[str, str], split: object
) -> tuple[pa.Table, npt.NDArray[np.intp]]:
    """The rows of one split, and their numbers in the whole table."""
    if "split" not in names:
        raise InputError(
            f"there is no split column to choose the split {split!r} by; the columns are"
            f" {headings(table.column_names)}",
            f"map one with {option('columns', {'split': 'NAME'})}, or leave {option('split')} out",
        )
    encoded = encode(table[names["split"]], names["split"])
    codes = np.flatnonzero(encoded.names == as_name(split))
    if not len(codes):
        raise InputError(
            f"there is no split {as_name(split)!r}; the table has {examples(encoded.names, 10)}",
            "choose one of these",
        )
    is_listed = encoded.codes == codes[0]
    return table.filter(pa.array(is_listed)), np.flatnonzero(is_listed)


def _probability_columns(
    table: pa.Table, classes: Sequence[object] | None, place: Place, kind: ScaleKind
) -> tuple[tuple[str, ...], Floats]:
    column_names = list(filter(is_share, table.column_names))
    order = ordered_classes(classes, [name.removeprefix(PROBABILITY) for name in column_names])
    expected = [PROBABILITY + name for name in order]
    if set(expected) != set(column_names) or len(column_names) < 2:
        raise InputError(
            f"the probability columns are {examples(column_names, 20)}, not one p_<class> for each"
            " of two or more classes" + ("" if classes is None else f" ({examples(expected, 20)})"),
            "complete or rename the columns",
        )
    values = np.column_stack([number_column(table, name, row=place) for name in expected])
    scale = Scale("multi-label") if kind == "multi-label" else NOMINAL
    return order, checked_shares(values.astype(np.float64, copy=False), scale, place)


def ordered_classes(
    declared: Sequence[object] | None, names_found: Iterable[str]
) -> tuple[str, ...]:
    """The declared classes in their order, else those found in class order."""
    if declared is None:
        return class_order(names_found)
    names = as_names(declared)
    if not len(names):
        raise InputError(f"{option('classes')} is empty", "name the classes, or leave it out")
    return tuple(unique_ids(names, len(names), "classes", "class"))


def is_share(name: str) -> bool:
    """Whether a column of this name holds the probabilities of a class."""
    return name.startswith(PROBABILITY)


def checked_shares(values: Floats, scale: Scale, place: Callable[[int], str]) -> Floats:
    """Distributions [M, C], rescaled where rounding left their sum off 1; others are refused.

    ``place`` names a row in the message.
    """

    def refuse(fault: str, row: tuple[int, ...]) -> InputError:
        count = counted(int((~scale.are_distributions(values)).sum()), "such row")
        return InputError(
            f"{place(row[0])} has ({number_list(values[row])}), which are not probabilities: they"
            f" {fault} ({count})",
            "correct or drop these rows",
        )

    return scale.distributions(values, EXACT, refuse)


def scale_of_table(table: pa.Table, declaration: ScaleLike | None) -> Declared:
    """The scale that was given or that the table notes, which must not differ."""
    noted = []
    if SCALE in table.column_names:
        noted = [name for name in encode(table[SCALE], SCALE).names if name]
    if len(noted) > 1:
        raise InputError(
            f"column {SCALE!r} has several scales: {examples(noted)}",
            "keep data of different scales in different tables",
        )
    if not noted:
        return Declared(declaration or NOMINAL)
    noted_scale, declared = Declared(noted[0]), Declared(declaration or noted[0])
    differs = declared.kind != noted_scale.kind
    if (
        noted_scale.classes is not None
        and declaration not in (None, noted_scale.kind)
        and not differs
    ):
        differs = declared.on(noted_scale.classes) != noted_scale.on(noted_scale.classes)
    if differs:
        raise InputError(
            f"the table has the scale {noted[0]} (column {SCALE!r}), but"
            f" {option('scale', str(declaration))}",
            "leave it out, or correct the column",
        )
    return noted_scale


def lists_as_text(table: pa.Table, name: str) -> pa.Table:
    """The table with lists of labels in this column, as Parquet and JSON have them, as text."""
    column = table[name]
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return table
    cells = [None if cell is None else json.dumps(cell) for cell in column.to_pylist()]
    return table.set_column(table.column_names.index(name), name, pa.array(cells, pa.string()))


def unique_ids(names: Iterable[object] | None, length: int, kind: str, per: str) -> Strings:
    ids = as_names(range(length) if names is None else names)
    if len(ids) != length:
        raise InputError(
            f"there are {len(ids)} {kind}, but {length} {per}s", f"give {length} {kind}"
        )
    check_unique(ids, kind, f"give each {per} its own")
    if "" in ids:
        raise InputError(f"one of the {kind} is empty text", f"name every {per}")
    return ids


def _one_per_item(table: pa.Table, name: str, item: Encoded, place: Place) -> Encoded:
    """A column that describes the item, as one code per item [N]."""
    encoded = encode(table[name], name)
    first_codes = _first_codes(item, encoded)
    differs = first_codes[item.codes] != encoded.codes
    if differs.any():
        row = int(differs.argmax())
        before = int((item.codes == item.codes[row]).argmax())
        raise InputError(
            f"item {item.names[item.codes[row]]!r} has more than one {name}: {place(before)} and"
            f" {place(row)} differ ({counted(int(differs.sum()), 'such row')})",
            "give each item its own id, or make its rows agree",
        )
    return Encoded(first_codes, encoded.names)


def _first_codes(owner: Encoded, encoded: Encoded) -> Codes:
    """The code in the first row of each item or annotator [n]."""
    codes = np.full(len(owner.names), -1, dtype=np.int32)
    # Assigned back to front, so that the first row wins.
    codes[owner.codes[::-1]] = encoded.codes[::-1]
    return codes


def _names(encoded: Encoded) -> Strings:
    """Names [n], empty text where there is none."""
    values: Strings = np.append(encoded.names, "").astype(object)[encoded.codes]
    return values


def _other_columns(
    table: pa.Table,
    attributes: Sequence[str] | None,
    names: Mapping[str, str],
    item: Encoded,
    annotator: Encoded,
) -> dict[str, dict[str, Strings]]:
    """The columns without a role as fields of `Annotations`, by what they describe."""
    has_role = _names_with_role(table, names)
    free_names = [name for name in table.column_names if name not in has_role]
    declared = set(attributes or ())
    for name in declared.difference(free_names):
        raise _no_attribute(name, f"not among the columns without a role {headings(free_names)}")
    fields: dict[str, dict[str, Strings]] = {
        "item_columns": {},
        "attributes": {},
        "annotation_columns": {},
    }
    for name in free_names:
        is_declared = name in declared
        try:
            encoded = encode(table[name], name)
        except InputError as error:
            if is_declared:
                raise
            warn(f"{error.message}; it is left out")
            continue
        of_annotators = _describes(annotator, encoded)
        of_items = _describes(item, encoded)
        if is_declared and of_annotators is None:
            raise _no_attribute(name, "not the same in all rows of an annotator")
        if of_annotators is not None and (is_declared or attributes is None):
            fields["attributes"][name] = of_annotators
        elif of_items is None:
            fields["annotation_columns"][name] = _names(encoded)
        if of_items is not None and not is_declared:
            fields["item_columns"][name] = of_items
    return fields


def _names_with_role(table: pa.Table, names: Mapping[str, str]) -> set[str]:
    """The columns that are read as something else than attributes."""
    shares = [] if "label" in names else filter(is_share, table.column_names)
    roles = ROLES if "text" in names else (role for role in ROLES if role != "context")
    return {*names.values(), *roles, *shares, SCALE}


def _describes(owner: Encoded, encoded: Encoded) -> Strings | None:
    """The value of each item or annotator [n]; None where its rows have several."""
    codes = _first_codes(owner, encoded)
    if (codes[owner.codes] != encoded.codes).any():
        return None
    return _names(Encoded(codes, encoded.names))


def _no_attribute(name: str, why: str) -> InputError:
    return InputError(
        f"{name!r} is no attribute of the annotators: it is {why}",
        f"leave it out of {option('attributes')}, or rename the column",
    )


def _arrow_table(table: Any) -> pa.Table:
    """An Arrow table from anything that holds one, a DataFrame or a mapping of columns."""
    if isinstance(table, pd.DataFrame | Mapping):
        names = [str(name) for name in table]
        values: Iterable[Any] = (
            # By position, since names may be repeated.
            (table.iloc[:, k] for k in range(len(names)))
            if isinstance(table, pd.DataFrame)
            else table.values()
        )
        columns = [column_of(column, name) for name, column in zip(names, values, strict=True)]
        lengths = dict(zip(names, map(len, columns), strict=True))
        if len({*lengths.values()}) > 1:
            raise InputError(
                f"the columns differ in length: {lengths}", "give each row every column"
            )
        table = pa.table(columns, names=names)
    elif hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        table = table if isinstance(table, pa.Table) else pa.table(table)
    else:
        raise InputError(
            "annotations come as an Arrow table, a DataFrame or a mapping of columns, not as"
            f" {type(table).__name__}",
            "read a file with edokit.read_annotations",
        )
    check_unique(as_names(table.column_names), "column names", "rename one of them")
    return table


def _roles(present: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The table's column for each role that it has."""
    for role, name in columns.items():
        if role not in ROLES:
            raise InputError(
                f"columns maps {role!r}, which is none of {', '.join(ROLES)}",
                f"write for example {option('columns', {'item': name})}",
            )
        if name not in present:
            raise InputError(
                f"there is no column {name!r} for {role!r}; the columns are {headings(present)}",
                "check the spelling",
            )
    names = {role: columns.get(role, role) for role in ROLES}
    for role, alias in ALIASES.items():
        if names[role] not in present and alias in present:
            names[role] = alias
    names = {role: name for role, name in names.items() if name in present}
    if "text" not in names and "context" not in columns:
        names.pop("context", None)
    required = ["item", "annotator"]
    if not any(map(is_share, present)):
        required.append("label")
    missing = [role for role in required if role not in names]
    if missing:
        raise InputError(
            f"a table of annotations has the columns {', '.join(required)}; here"
            f" {examples(missing)} {'is' if len(missing) == 1 else 'are'} missing, the columns are"
            f" {headings(present)}",
            f"say which columns they are: {option('columns', dict.fromkeys(missing, 'NAME'))}; if"
            " there is a column per annotator, make it one row per annotation first, without the"
            " gaps (pandas: DataFrame.melt, dropna)",
        )
    return names


def _without_duplicates(
    annotations: Annotations, policy: Duplicates, place: Place
) -> tuple[Annotations, Bools]:
    """The annotations with each annotator once on an item, unless all labels count.

    And which rows these are. Several rows of a set are its labels, one by one.
    """
    is_repeated = annotations.repeated
    if policy == "all" or not is_repeated.any():
        return annotations, np.ones(len(annotations), dtype=bool)
    if annotations.scale.is_multi_label:
        # All labels that an annotator chose for an item are in each row about it.
        pairs = np.stack([annotations.item_codes, annotations.annotator_codes])
        codes = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        chosen_labels = np.zeros((codes.max() + 1, len(annotations.classes)))
        np.maximum.at(chosen_labels, codes, annotations.labels)
        annotations = replace(annotations, label_probabilities=chosen_labels[codes])
    elif policy == "error":
        row = int(np.flatnonzero(is_repeated)[0])
        raise InputError(
            f"annotator {annotations.annotators[annotations.annotator_codes[row]]!r} labels item"
            f" {annotations.items[annotations.item_codes[row]]!r} again in {place(row)}"
            f" ({counted(int(is_repeated.sum()), 'such row')})",
            f"choose {option('duplicates', 'first')} to keep the first, 'all' to count each",
        )

    fields = ("item_codes", "annotator_codes", "label_codes", "label_probabilities")
    fields_kept = annotations.rows_of(~is_repeated, *fields)
    return replace(annotations, **fields_kept), ~is_repeated


def to_long_table(annotations: Annotations) -> pa.Table:
    """See ``Annotations.to_table``."""
    items, annotators = annotations.item_codes, annotations.annotator_codes
    data: dict[str, Any] = {
        "item": _column(items, annotations.items),
        "annotator": _column(annotators, annotations.annotators),
    }
    labels, classes = annotations.labels, annotations.classes
    if annotations.label_codes is not None:
        data["label"] = _column(annotations.label_codes, classes)
    elif annotations.scale.is_multi_label and ((labels == 0) | (labels == 1)).all():
        sets, codes = np.unique(labels, axis=0, return_inverse=True)
        texts = annotations.scale.names(sets, classes)
        data["label"] = _column(codes.reshape(-1).astype(np.int32), texts)
    else:
        for name, values in zip(annotations.classes, annotations.labels.T, strict=True):
            data[PROBABILITY + name] = values
    published = annotations.published
    if published is not None:
        data["hard_label"] = _column(published[items], annotations.classes)
    of_items = {
        "split": annotations.splits,
        "text": annotations.texts,
        "context": annotations.contexts,
        **annotations.item_columns,
    }
    columns = [(name, items, values) for name, values in of_items.items() if values is not None]
    columns += [(name, annotators, values) for name, values in annotations.attributes.items()]
    rows = np.arange(len(annotations), dtype=np.int32)
    if annotations.scale != NOMINAL:
        columns.append((SCALE, 0 * rows, as_names([annotations.scale.to_text(classes)])))
    columns += [(name, rows, values) for name, values in annotations.annotation_columns.items()]
    return pa.table(data | {name: _column(codes, values) for name, codes, values in columns})


def _column(codes: Codes, names: Sequence[str] | Strings) -> pa.Array:
    # Texts and attributes may be repeated; the entries of a dictionary may not.
    unique = text_array(names, "text in a table").dictionary_encode()
    indices = unique.indices.take(pa.array(codes, mask=codes < 0))
    return pa.DictionaryArray.from_arrays(indices, unique.dictionary)
