"""Annotations from and to a long table with one row per annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa

from edokit._errors import (
    HAVE,
    Decision,
    InputError,
    NothingLeftError,
    OpenDecisionsError,
    Place,
    are,
    counted,
    data_row,
    examples,
    headings,
    listed,
    one_of,
    open_decision,
    option,
    warn,
    word,
)
from edokit._io.tables import PROBABILITY, class_columns, number_column, taken_place
from edokit._names import (
    Encoded,
    as_name,
    as_names,
    check_unique,
    column_of,
    encode,
    one_spelling,
    recode,
    renamed,
    spelling_key,
    text_array,
    warn_variants,
)
from edokit._types import Bools, Codes, Floats, Strings
from edokit.annotations.core import (
    Annotations,
    Duplicates,
    PublishedLabelWarning,
    contradiction_message,
    no_split,
    take_rows,
)
from edokit.annotations.labels import (
    EncodedLabels,
    LabelColumn,
    as_label_map,
    as_points,
    checked_shares,
    list_labels_as_text,
    ordered_classes,
    read_labels,
    single_label,
)
from edokit.annotations.people import UNKNOWN
from edokit.annotations.roles import guess_roles, propose_annotator_columns, propose_roles
from edokit.rows import Rows
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, split_points

ROLES = ("item", "annotator", "label", "text", "context", "split", "hard_label", "group")
"""What a column can hold, besides attributes of the annotators; a context needs a text."""
ITEM_GROUP = "item_group"
"""Default column of the role ``group``.

It is not called ``group``, which is an attribute of annotators in many tables.
"""
COLUMNS = ("item", "annotator", "label", "text", "context", "split", "hard_label", ITEM_GROUP)
"""The default column of each role."""
TEXTS = ("text", "context")
"""Roles whose values messages do not quote."""
_MOST_GAPS = 0.1
"""Largest share of rows without a value of an attribute that other rows may fill."""
SCALE = "answer_scale"
"""Column with the answer scale and its classes, the same in every row."""


@dataclass(frozen=True, kw_only=True)
class Policies:
    """How rows that are not clean annotations are handled, in every source.

    Parameters
    ----------
    duplicates : {"error", "first", "all"}, default=None
        What to do when an annotator labels an item twice: raise, keep the first label, or count
        every label. None means "all" for LeWiDi, else "error". On a multi-label scale, "error" and
        "first" unite the rows of an annotator on an item, without a warning.
    empty : {"error", "drop"}, default="error"
        What to do with a row without an item, an annotator or a label: raise, or drop it. Where a
        table has texts, "drop" also drops items without one.
    ignore_case : bool, default=False
        Merge labels, annotators and splits that differ only in case or blanks, and labels that
        differ only in the notation of a number. The most frequent spelling is used.
    drop_label : sequence of str, default=()
        Drop annotations with these labels, such as ``skip``.
    drop_annotator : sequence of str, default=()
        Drop the annotations of these annotators.
    """

    duplicates: Duplicates | None = None
    empty: Literal["error", "drop"] = "error"
    ignore_case: bool = False
    drop_label: Sequence[object] = ()
    drop_annotator: Sequence[object] = ()

    def __post_init__(self) -> None:
        one_of("duplicates", self.duplicates or "error", get_args(Duplicates))
        one_of("empty", self.empty, ("error", "drop"))


STRICT = Policies()
"""Every row must be a clean annotation."""


@dataclass(frozen=True)
class _OtherColumns:
    """Values of the columns without a role, by what they describe."""

    attributes: dict[str, Strings]
    item_columns: dict[str, Strings]
    annotation_columns: dict[str, Strings]


def from_long_table(
    table: object,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[object] | None = None,
    policies: Policies = STRICT,
    split: str | None = None,
    attributes: Sequence[str] | None = None,
    label_map: Mapping[object, object] | None = None,
    scale: ScaleLike | None = None,
    annotator_columns: Sequence[str] | None = None,
    place: Place = data_row,
) -> Annotations:
    """See ``Annotations.from_table``; ``place`` says where a row is, for messages.

    ``attributes`` are the columns that describe annotators; by default, all columns with one value
    per annotator.
    """
    arrow_table = _arrow_table(table)
    if annotator_columns is not None:
        from edokit.annotations.wide_table import unpivot

        arrow_table, wide_rows = unpivot(arrow_table, annotator_columns)
        place = taken_place(place, wide_rows)
    declared = scale_of_table(arrow_table, scale)
    declared_classes = declared.classes
    if classes is not None:
        declared_classes = ordered_classes(classes, ())
    default_columns = dict(zip(ROLES, COLUMNS, strict=True))
    columns = guess_roles(arrow_table, columns or {}, default_columns)
    column_by_role = _roles(arrow_table, columns)
    source = _LongTable(arrow_table, column_by_role, declared, declared_classes, place, policies)
    source = source.without_dropped()
    labels, mapping = source.labels(label_map)
    if split is not None:
        source, labels = source.from_split(split, labels)
    if source.table.num_rows == 0:
        message = "the table of annotations is empty"
        hint = "check that it is the right table"
        if arrow_table.num_rows:
            raise NothingLeftError(message, hint, code="no-rows")
        raise InputError(message, hint, code="no-rows")
    item = source.column("item")
    annotator = source.column("annotator")
    source.refuse_gaps({"item": item, "annotator": annotator}, labels)
    warn_variants(item.names, "items", case=False)
    if not policies.ignore_case:
        warn_variants(annotator.names, "annotators")
    source.refuse_outliers(labels)
    encoded_labels = source.encoded_labels(labels, item)
    first_place = None
    if labels is not None:
        first_place = labels.first(source.place)
    answer_scale = declared.resolve(encoded_labels.classes, first_place)
    texts = source.per_item("text", item)
    contexts = source.per_item("context", item)
    splits = source.per_item("split", item)
    if splits is not None and not policies.ignore_case:
        warn_variants(as_names(dict.fromkeys(splits)), "splits")
    annotations = Annotations(
        rows=Rows.from_names(item.names),
        annotators=annotator.names,
        classes=encoded_labels.classes,
        item_codes=item.codes,
        annotator_codes=annotator.codes,
        label_codes=encoded_labels.codes,
        label_probabilities=encoded_labels.probabilities,
        published=source.published(item, encoded_labels.classes, mapping),
        texts=texts,
        contexts=contexts,
        splits=splits,
        item_groups=source.per_item("group", item),
        scale=answer_scale,
    )
    annotations, is_kept = _without_duplicates(
        annotations, policies.duplicates or "error", source.place
    )
    # Dropped rows don't count: a column that varies only among them still describes items or
    # annotators.
    item = item._replace(codes=item.codes[is_kept])
    annotator = annotator._replace(codes=annotator.codes[is_kept])
    kept_rows = replace(source, table=source.table.filter(pa.array(is_kept)))
    other_columns = kept_rows.other_columns(attributes, item, annotator)
    annotations = replace(
        annotations,
        attributes=other_columns.attributes,
        item_columns=other_columns.item_columns,
        annotation_columns=other_columns.annotation_columns,
    )
    if annotations.published is not None and annotations.contradicted.any():
        contradicted = annotations.contradicted
        note = contradiction_message(int(contradicted.sum()), len(contradicted))
        warn(f"{note}: {examples(annotations.items[contradicted])}", PublishedLabelWarning)
    return annotations


@dataclass(frozen=True)
class _LongTable:
    """A long table, the roles of its columns, and the options for reading its labels.

    Attributes
    ----------
    column_by_role : Mapping[str, str]
        The column of each role that the table has.
    declared : DeclaredScale
        The declared scale.
    classes : tuple[str, ...] or None
        The declared classes.
    place : Place
        Says where a row is, for messages.
    """

    table: pa.Table
    column_by_role: Mapping[str, str]
    declared: DeclaredScale
    classes: tuple[str, ...] | None
    place: Place
    policies: Policies

    @property
    def is_multi_label(self) -> bool:
        return self.declared.kind == "multi-label"

    def column(self, role: str) -> Encoded:
        name = self.column_by_role[role]
        values = self.table[name]
        if role == "label":
            values = list_labels_as_text(values)
        encoded = encode(values, name)
        if self.policies.ignore_case and role in ("annotator", "split"):
            return one_spelling(encoded, f"{role}s")
        return encoded

    def where(self, mask: Bools) -> _LongTable:
        """The rows of a mask; messages still name rows by their place in the whole table."""
        table = self.table.filter(pa.array(mask))
        return replace(self, table=table, place=taken_place(self.place, np.flatnonzero(mask)))

    def without_dropped(self) -> _LongTable:
        """The rows that no policy drops; a warning counts the dropped rows."""
        policies = self.policies
        is_dropped = np.zeros(self.table.num_rows, dtype=bool)
        reasons = []

        def drop(rows: Bools, reason: str) -> None:
            count = int((rows & ~is_dropped).sum())
            if count:
                reasons.append(f"{count} by {reason}")
                is_dropped[rows] = True

        if policies.empty == "drop":
            for role in self._required:
                column = self.column(role)
                is_blank = [not name.strip() for name in column.names]
                is_empty = column.rows_with(is_blank, gaps=True)
                drop(is_empty, f"{option('empty', 'drop')} ({self.column_by_role[role]})")
            if "text" in self.column_by_role:
                no_text = f"{option('empty', 'drop')} (items without {self.column_by_role['text']})"
                drop(self._without_text(), no_text)
        dropped_names = {"label": policies.drop_label, "annotator": policies.drop_annotator}
        for role, values in dropped_names.items():
            if values:
                names = list(map(as_name, values))
                drop(self._rows_with(role, names), option(f"drop_{role}", names))
        if not reasons:
            return self
        total = are(int(is_dropped.sum()), len(is_dropped), noun="row")
        warn(f"{total} dropped: {', '.join(reasons)}")
        return self._with_filled_texts().where(~is_dropped)

    def _with_filled_texts(self) -> _LongTable:
        """The table with the text of each item in all of its rows, before some are dropped."""
        table = self.table
        item = self.column("item")
        for role in TEXTS:
            if role not in self.column_by_role:
                continue
            name = self.column_by_role[role]
            texts = pd.Series(encode(table[name], name).row_names, dtype=object).replace("", None)
            first_texts = texts.groupby(item.codes).transform("first")
            # Rows without an item have nothing to do with one another.
            first_texts[item.codes < 0] = None
            filled = texts.fillna(first_texts)
            position = table.column_names.index(name)
            table = table.set_column(position, name, pa.array(filled, pa.string()))
        return replace(self, table=table)

    def _without_text(self) -> Bools:
        """Whether each row belongs to an item without a text; all False if no item has a text."""
        item = self.column("item")
        text = self.column("text")
        is_written = text.rows_with([bool(name.strip()) for name in text.names])
        has_item = item.codes >= 0
        item_has_text = np.zeros(len(item.names), dtype=bool)
        item_has_text[item.codes[is_written & has_item]] = True
        if not item_has_text.any():
            return np.zeros(len(item.codes), dtype=bool)
        return has_item & ~item.rows_with(item_has_text.tolist())

    @property
    def _required(self) -> list[str]:
        return [role for role in ("item", "annotator", "label") if role in self.column_by_role]

    def _rows_with(self, role: str, names: Sequence[str]) -> Bools:
        """Whether each row has one of these labels or annotators; each of them must occur."""
        key: Callable[[str], str] = as_name
        if self.policies.ignore_case:
            key = spelling_key
        column = Encoded(np.zeros(0, np.int32), as_names([]))
        if role in self.column_by_role:
            column = self.column(role)
        cells = list(column.names)
        if role == "label":
            cells = list(map(single_label, cells))
        cell_keys = list(map(key, cells))
        for name in names:
            if key(name) not in cell_keys:
                raise InputError(
                    f"{option(f'drop_{role}')} names {word(name)}, but the {role}s are"
                    f" {examples(column.names, 20) or 'none'}",
                    "check the spelling, blanks included",
                    code=f"unknown-{role}",
                )
        name_keys = set(map(key, names))
        return column.rows_with([cell_key in name_keys for cell_key in cell_keys])

    def labels(
        self, label_map: Mapping[object, object] | None
    ) -> tuple[LabelColumn | None, Mapping[str, str]]:
        """The labels of all splits (None without a label column), and the names to replace.

        Labels of all splits are read, since classes that occur in a single split are classes of
        the data, too.
        """
        if "label" not in self.column_by_role or not self.table.num_rows:
            return None, as_label_map(label_map, None)
        column = self.column("label")
        hard_names: Sequence[str] | Strings = ()
        if "hard_label" in self.column_by_role:
            hard_names = self.column("hard_label").names
        all_names = {*column.names, *hard_names}
        if self.classes is None:
            mapping = as_label_map(label_map, all_names)
        else:
            mapping = as_label_map(label_map, None)
        if self.declared.kind == "ordinal":
            mapping = as_points(all_names, self.classes) | mapping
        labels = read_labels(
            column,
            self.column_by_role["label"],
            self.place,
            classes=self.classes,
            label_map=mapping,
            sets=self.is_multi_label,
            ignore_case=self.policies.ignore_case,
        )
        if self.policies.ignore_case:
            # Hard labels get the spelling of the labels.
            label_by_key = {spelling_key(label): label for label in labels.names}
            for label in self.classes or ():
                label_by_key[spelling_key(label)] = label
            hard_mapping = {}
            for label in hard_names:
                key = spelling_key(mapping.get(label, label))
                hard_mapping[label] = label_by_key.get(key, label)
            mapping = mapping | hard_mapping
        return labels, mapping

    def from_split(
        self, split: object, labels: LabelColumn | None
    ) -> tuple[_LongTable, LabelColumn | None]:
        """The rows of one split, and their labels."""
        if "split" not in self.column_by_role:
            raise no_split(split, ())
        encoded = self.column("split")
        if as_name(split) not in encoded.names:
            raise no_split(as_name(split), encoded.names)
        is_inside = encoded.rows_with([name == as_name(split) for name in encoded.names])
        if labels is not None:
            codes = labels.encoded.codes[is_inside]
            labels = labels._replace(encoded=labels.encoded._replace(codes=codes))
        return self.where(is_inside), labels

    def refuse_gaps(self, ids: Mapping[str, Encoded], labels: LabelColumn | None) -> None:
        """Refuse rows without an item, an annotator or a label."""
        columns = dict(ids)
        if labels is not None:
            columns["label"] = labels.encoded
        gaps = []
        for role, column in columns.items():
            rows = np.flatnonzero(column.codes < 0)
            if len(rows):
                name = self.column_by_role[role]
                gaps.append(
                    f"column {name!r} ({role}) is empty in {self.place(int(rows[0]))}"
                    f" ({counted(len(rows), 'such row')})"
                )
        if not gaps:
            return
        if "text" in self.column_by_role:
            items = np.unique(self.column("item").codes[self._without_text()])
            if len(items):
                gaps.append(f"{are(len(items), verb=HAVE, noun='item')} no text")
        note = ""
        if self.is_multi_label and labels is not None and (labels.encoded.codes < 0).any():
            note = " (an empty set is written [])"
        raise open_decision(
            listed(gaps),
            f"choose {option('empty', 'drop')}, or fill them in{note}",
            empty="drop",
            code="missing-value",
        )

    def refuse_outliers(self, labels: LabelColumn | None) -> None:
        """Refuse numbers far from all others, and words among numbers, as points of a scale."""
        if labels is None or self.declared.kind != "ordinal":
            return
        if self.classes is not None or self.declared.has_positions:
            return
        counts = labels.counts()
        points, outliers = split_points(counts)
        if not outliers:
            return
        described = []
        for name in outliers:
            place = self.place(int(labels.rows(name)[0]))
            if counts[name] > 1:
                place = f"{counted(counts[name], 'row')}, first {place}"
            described.append(f"{word(name)} ({place})")
        if len(outliers) == 1:
            subject = f"label {described[0]} stands"
            pronoun = "it"
        else:
            subject = f"labels {listed(described)} stand"
            pronoun = "them"
        label_map = dict.fromkeys(outliers, "LABEL")
        raise open_decision(
            f"{subject} apart from the others, {points[0]} to {points[-1]}, and may be a mistake",
            f"drop {pronoun} by {option('drop_label', outliers)}, or read {pronoun} as another by"
            f" {option('label_map', label_map)}",
            drop_label=outliers,
            code="outlying-label",
        )

    def encoded_labels(self, labels: LabelColumn | None, item: Encoded) -> EncodedLabels:
        """The classes, and the label of each row: from the label column or from ``p_<class>``."""
        if labels is None:
            classes, shares = self._shares()
            return EncodedLabels(classes, None, shares)
        return labels.encode(self.classes, len(item.names), self.place, sets=self.is_multi_label)

    def _shares(self) -> tuple[tuple[str, ...], Floats]:
        """The classes, and the probabilities of each row in columns ``p_<class>``."""
        column_by_class = class_columns(self.table.column_names)
        if "" in column_by_class:
            raise InputError(
                f"the column {PROBABILITY!r} names no class",
                f"name it {PROBABILITY}<class>, or remove it",
                code="missing-value",
            )
        classes = ordered_classes(self.classes, column_by_class)
        expected = [PROBABILITY + name for name in classes]
        scale = NOMINAL
        fewest_columns = 2
        fewest_classes = "two classes"
        if self.is_multi_label:
            scale = Scale("multi-label")
            fewest_columns = 1
            fewest_classes = "one label"
        if set(classes) != set(column_by_class) or len(column_by_class) < fewest_columns:
            declared = ""
            if self.classes is not None:
                declared = f" ({examples(expected, 20)})"
            raise InputError(
                f"the probability columns are {examples(column_by_class.values(), 20)}, but there"
                f" must be a column p_<class> for each of at least {fewest_classes}{declared}",
                "complete or rename the columns",
                code="missing-column",
            )
        columns = [number_column(self.table, name, place=self.place) for name in expected]
        shares = np.column_stack(columns).astype(float)
        return classes, checked_shares(shares, scale, self.place)

    def published(
        self, item: Encoded, order: tuple[str, ...], mapping: Mapping[str, str]
    ) -> Codes | None:
        """The published hard label of each item [N]; None without such a column."""
        if "hard_label" not in self.column_by_role:
            return None
        if self.is_multi_label:
            raise InputError(
                f"column {self.column_by_role['hard_label']!r} holds one hard label per item, which"
                " multi-label data do not have",
                "drop or rename the column",
                code="inapplicable-column",
            )
        hard = renamed(self._one_per_item("hard_label", item), mapping)

        def place(number: int) -> str:
            return f"item {item.names[number]!r}"

        return recode(hard, order, "hard label", place, can_map=True)

    def per_item(self, role: str, item: Encoded) -> Strings | None:
        """The value of each item [N] in a column that describes it; None without the column."""
        if role not in self.column_by_role:
            return None
        return self._one_per_item(role, item).row_names

    def _one_per_item(self, role: str, item: Encoded) -> Encoded:
        encoded = self.column(role)
        first_codes = _first_codes(item, encoded)
        differs = (first_codes[item.codes] != encoded.codes) & (encoded.codes >= 0)
        if differs.any():
            row = int(differs.argmax())
            before = int(((item.codes == item.codes[row]) & (encoded.codes >= 0)).argmax())
            raise InputError(
                f"item {item.names[item.codes[row]]!r} has more than one"
                f" {self.column_by_role[role]}: {self.place(before)} and {self.place(row)} differ"
                f" ({counted(int(differs.sum()), 'such row')})",
                "give each item its own id, or make its rows agree",
                code="contradictory-rows",
            )
        return Encoded(first_codes, encoded.names)

    def other_columns(
        self, attributes: Sequence[str] | None, item: Encoded, annotator: Encoded
    ) -> _OtherColumns:
        """The columns without a role, by what they describe."""
        columns = _OtherColumns({}, {}, {})
        for name, column in self._columns_without_role().items():
            annotator_values = _single_values(annotator, column)
            if annotator_values is None:
                annotator_values = _filled_attribute(annotator, column, name)
            item_values = _single_values(item, column, fill=True)
            if annotator_values is not None and (attributes is None or name in attributes):
                columns.attributes[name] = annotator_values
            if item_values is not None and name not in (attributes or ()):
                columns.item_columns[name] = item_values
            if name not in columns.attributes and name not in columns.item_columns:
                columns.annotation_columns[name] = column.row_names
        return columns

    def _columns_without_role(self) -> dict[str, Encoded]:
        """The columns without a role; a column of lists or bytes is left out with a warning."""
        has_role = {*self.column_by_role.values(), *COLUMNS, SCALE}
        if "label" not in self.column_by_role:
            has_role.update(class_columns(self.table.column_names).values())
        if "text" not in self.column_by_role and "context" not in self.column_by_role.values():
            has_role.discard("context")
        columns = {}
        for name in self.table.column_names:
            if name in has_role:
                continue
            try:
                columns[name] = encode(self.table[name], name)
            except InputError as error:
                warn(f"{error.message}; it is left out")
        return columns


def scale_of_table(table: pa.Table, declaration: ScaleLike | None) -> DeclaredScale:
    """The declared scale, else that of the table's column ``answer_scale``, else nominal."""
    scale = DeclaredScale(NOMINAL)
    if SCALE in table.column_names:
        noted_scales = encode(table[SCALE], SCALE).names
        if len(noted_scales) > 1:
            raise InputError(
                f"column {SCALE!r} has several scales: {examples(noted_scales)}",
                "keep data of different scales in different tables",
                code="scales-differ",
            )
        if len(noted_scales):
            scale = DeclaredScale(noted_scales[0])
    if declaration is None or declaration == scale.kind:
        # A declaration of the kind alone keeps the classes that the table notes.
        return scale
    return DeclaredScale(declaration)


def lists_as_text(table: pa.Table, name: str) -> pa.Table:
    """The table with lists of labels in this column, as Parquet and JSON have them, as text."""
    column = list_labels_as_text(table[name])
    return table.set_column(table.column_names.index(name), name, column)


def _first_codes(owner: Encoded, encoded: Encoded) -> Codes:
    """The first code of each item or annotator [n] that is not a gap; -1 if all are gaps."""
    codes = np.full(len(owner.names), -1, dtype=np.int32)
    filled = np.flatnonzero(encoded.codes >= 0)[::-1]
    # Assigned back to front, so that the first row wins.
    codes[owner.codes[filled]] = encoded.codes[filled]
    return codes


def _single_values(owner: Encoded, encoded: Encoded, *, fill: bool = False) -> Strings | None:
    """The value of each item or annotator [n]; None if one of them has several values.

    With ``fill``, a gap does not count as a value, unless most of the column is empty: then a
    value, such as a remark, only describes its row.
    """
    codes = _first_codes(owner, encoded)
    is_filled = encoded.codes >= 0
    differs = codes[owner.codes] != encoded.codes
    if fill and is_filled.mean() > 0.5:
        differs = differs & is_filled
    if differs.any():
        return None
    return Encoded(codes, encoded.names).row_names


def _filled_attribute(annotator: Encoded, column: Encoded, name: str) -> Strings | None:
    """Fill a few gaps of an attribute from the annotator's other rows; None if it is not one.

    A warning counts the rows. A column with a single value is not an attribute, since a gap may
    be its other value.
    """
    is_known = column.rows_with([name.strip().lower() not in UNKNOWN for name in column.names])
    codes = _first_codes(annotator, Encoded(np.where(is_known, column.codes, -1), column.names))
    levels = codes[codes >= 0]
    is_gap = ~is_known & (codes[annotator.codes] >= 0)
    differs = is_known & (codes[annotator.codes] != column.codes)
    if differs.any() or is_gap.mean() > _MOST_GAPS or len(np.unique(levels)) < 2:
        return None
    owners = annotator.names[np.unique(annotator.codes[is_gap])]
    warn(
        f"column {name!r} is empty or unknown in {counted(int(is_gap.sum()), 'row')} of"
        f" {examples(owners)}; the value of the annotator's other rows is used"
    )
    first_codes = _first_codes(annotator, column)
    return Encoded(np.where(codes >= 0, codes, first_codes), column.names).row_names


def _arrow_table(table: object) -> pa.Table:
    """An Arrow table from a DataFrame, a mapping of columns or an object with Arrow data."""
    if isinstance(table, pd.DataFrame | Mapping):
        # A list of columns, not a mapping, since names of a DataFrame may be repeated.
        columns = [column_of(values, str(name)) for name, values in table.items()]
        try:
            arrow_table = pa.table(columns, names=list(map(str, table)))
        except pa.ArrowInvalid as error:
            raise InputError(
                f"the columns differ in length: {error}",
                "give each row every column",
                code="lengths-differ",
            ) from error
    elif isinstance(table, pa.Table):
        arrow_table = table
    elif hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        arrow_table = pa.table(table)
    else:
        raise InputError(
            "annotations come as an Arrow table, a DataFrame or a mapping of columns, not as"
            f" {type(table).__name__}",
            "read a file with edokit.read_annotations",
            code="unsupported-type",
        )
    check_unique(as_names(arrow_table.column_names), "column names", "rename one of them")
    return arrow_table


def _roles(table: pa.Table, columns: Mapping[str, str]) -> dict[str, str]:
    """The column of each role that the table has."""
    column_names = table.column_names
    for role, name in columns.items():
        if role not in ROLES:
            raise InputError(
                f"{option('columns')} maps {role!r}, which is not one of {', '.join(ROLES)}",
                f"leave it out of {option('columns')}: columns without a role are kept unchanged",
                code="unknown-role",
            )
        if name not in column_names:
            message = (
                f"column {name!r} for {role!r} does not exist; the columns are"
                f" {headings(column_names)}"
            )
            close = get_close_matches(name, column_names, 1)
            if close:
                remedy = {role: close[0]}
                raise open_decision(
                    message,
                    f"did you mean {close[0]!r} ({option('columns', remedy)})?",
                    code="missing-column",
                    columns=remedy,
                )
            raise InputError(message, "check the spelling", code="missing-column")
    names = {}
    for role, default in zip(ROLES, COLUMNS, strict=True):
        name = columns.get(role, default)
        if name in column_names:
            names[role] = name
    if "text" not in names and "context" not in columns:
        names.pop("context", None)
    required = ["item", "annotator"]
    if not class_columns(column_names):
        required.append("label")
    missing = [role for role in required if role not in names]
    if missing:
        raise OpenDecisionsError([_missing_roles(table, names, missing, required)])
    return names


def _missing_roles(
    table: pa.Table, names: Mapping[str, str], missing: Sequence[str], required: Sequence[str]
) -> Decision:
    """The open decision which columns have the missing roles, with proposals."""
    if "annotator" in missing and "label" in missing:
        annotator_columns = propose_annotator_columns(table, names)
        if annotator_columns:
            return Decision(
                f"the columns {headings(annotator_columns, len(annotator_columns))} share their"
                " values and seem to have the labels of one annotator each, and no column is"
                " called 'annotator' or 'label'",
                f"to read them so: {option('annotator_columns', annotator_columns)}; or name the"
                f" columns of annotators and labels:"
                f" {option('columns', {'annotator': 'NAME', 'label': 'NAME'})}",
                {"annotator_columns": annotator_columns},
                code="missing-column",
            )
    proposal = propose_roles(table, names, missing)
    proposed = {role: proposal.columns[role] for role in missing if role in proposal.columns}
    columns = {role: proposed.get(role, "NAME") for role in missing}
    note = ""
    if proposed:
        pairs = ", ".join(f"{role}={headings([name])}" for role, name in proposed.items())
        note = f"; by their content they may be {pairs}"
    if proposal.label_candidates:
        candidates = listed([headings([name]) for name in proposal.label_candidates], "or")
        note += f"; the labels may be in {candidates}"
    verb = "are"
    if len(missing) == 1:
        verb = "is"
    wide = ""
    if "annotator" in missing and "annotator" not in proposed:
        several = option("annotator_columns", ["NAME", "NAME"])
        wide = f"; if the table has a column per annotator, name all of these: {several}"
    return Decision(
        f"a table of annotations has the columns {', '.join(required)}; here"
        f" {examples(missing)} {verb} missing, the columns are"
        f" {headings(table.column_names)}{note}",
        f"name these columns: {option('columns', columns)}{wide}",
        {"columns": columns},
        can_be_tried="NAME" not in columns.values(),
        code="missing-column",
    )


def _without_duplicates(
    annotations: Annotations, policy: Duplicates, place: Place
) -> tuple[Annotations, Bools]:
    """The annotations with each annotator at most once per item, unless all labels count.

    Also return the mask of the kept rows. For multi-label data, the rows of an annotator about an
    item are united into one set.
    """
    is_repeated = annotations.repeated
    if policy == "all" or not is_repeated.any():
        return annotations, np.ones(len(annotations), dtype=bool)
    if annotations.scale.is_multi_label:
        # Each row gets all labels that its annotator chose for its item.
        pairs = annotations.pairs()
        sets = np.zeros((len(pairs.rows), len(annotations.classes)))
        np.maximum.at(sets, pairs.item_codes, annotations.labels)
        annotations = replace(annotations, label_probabilities=sets[pairs.item_codes])
    elif policy == "error":
        raise _duplicates_error(annotations, place)
    else:
        repeats = are(int(is_repeated.sum()), len(is_repeated), noun="annotation")
        conflicts = int(_conflicting(annotations).sum())
        warn(
            f"{repeats} dropped by {option('duplicates', 'first')}: repeated labels of an annotator"
            f" for an item ({int(is_repeated.sum()) - conflicts} the same, {conflicts} different)"
        )
    is_kept = ~is_repeated
    annotations = replace(
        annotations,
        item_codes=annotations.item_codes[is_kept],
        annotator_codes=annotations.annotator_codes[is_kept],
        label_codes=take_rows(annotations.label_codes, is_kept),
        label_probabilities=take_rows(annotations.label_probabilities, is_kept),
    )
    return annotations, is_kept


def _conflicting(annotations: Annotations) -> Bools:
    """Whether each annotation differs from the first one of its annotator on its item."""
    pairs = pd.MultiIndex.from_arrays([annotations.item_codes, annotations.annotator_codes])
    codes, _ = pairs.factorize()
    _, first_rows = np.unique(codes, return_index=True)
    labels = annotations.labels
    differs = labels != labels[first_rows[codes]]
    if differs.ndim > 1:
        differs = differs.any(axis=1)
    return np.asarray(differs)


def _duplicates_error(annotations: Annotations, place: Place) -> OpenDecisionsError:
    """The error for repeated annotations, which counts those that agree and that conflict."""
    repeated = np.flatnonzero(annotations.repeated)
    conflicts = np.flatnonzero(_conflicting(annotations))
    row = int(repeated[0])
    message = (
        f"annotator {annotations.annotators[annotations.annotator_codes[row]]!r} labels item"
        f" {annotations.items[annotations.item_codes[row]]!r} again in {place(row)}"
        f" ({counted(len(repeated), 'such row')})"
    )
    keep_first = option("duplicates", "first")
    count_all = option("duplicates", "all")
    if not len(conflicts):
        return open_decision(
            f"{message}, always with the same label as before",
            f"choose {keep_first}, which loses no label here ({count_all} counts each)",
            duplicates="first",
            code="duplicate-annotation",
        )
    n_agreeing = len(repeated) - len(conflicts)
    detail = (
        f"{n_agreeing} with the same label as before, {len(conflicts)} with another, as in"
        f" {place(int(conflicts[0]))}"
    )
    if not n_agreeing:
        detail = "always with another label than before"
    return open_decision(
        f"{message}, {detail}",
        f"choose {keep_first} to keep the first, {count_all} to count each",
        duplicates="first",
        code="duplicate-annotation",
    )


def to_long_table(annotations: Annotations) -> pa.Table:
    """See ``Annotations.to_table``."""
    items = annotations.item_codes
    annotators = annotations.annotator_codes
    classes = annotations.classes
    scale = annotations.scale
    columns: dict[str, pa.Array] = {
        "item": _column(items, annotations.items),
        "annotator": _column(annotators, annotations.annotators),
    }
    labels = annotations.labels
    if annotations.label_codes is not None:
        columns["label"] = _column(annotations.label_codes, classes)
    elif scale.is_multi_label and ((labels == 0) | (labels == 1)).all():
        sets, codes = np.unique(labels, axis=0, return_inverse=True)
        texts = scale.names(sets.astype(np.int32), classes)
        columns["label"] = _column(codes.reshape(-1).astype(np.int32), texts)
    else:
        for name, values in zip(classes, labels.T, strict=True):
            columns[PROBABILITY + name] = pa.array(values)
    if annotations.published is not None:
        columns["hard_label"] = _column(annotations.published[items], classes)
    per_item = {
        "split": annotations.splits,
        "text": annotations.texts,
        "context": annotations.contexts,
        ITEM_GROUP: annotations.item_groups,
        **annotations.item_columns,
    }
    for name, item_values in per_item.items():
        if item_values is not None:
            columns[name] = _column(items, item_values)
    for name, values in annotations.attributes.items():
        columns[name] = _column(annotators, values)
    rows = np.arange(len(annotations), dtype=np.int32)
    if scale != NOMINAL:
        columns[SCALE] = _column(np.zeros_like(rows), [scale.to_text(classes)])
    for name, values in annotations.annotation_columns.items():
        columns[name] = _column(rows, values)
    return pa.table(columns)


def _column(codes: Codes, names: Sequence[str] | Strings) -> pa.Array:
    """A dictionary-encoded column; the code -1 is a gap."""
    # Texts and attributes may be repeated; the entries of a dictionary may not.
    unique = text_array(names, "text in a table").dictionary_encode()
    indices = unique.indices.take(pa.array(codes, mask=codes < 0))
    return pa.DictionaryArray.from_arrays(indices, unique.dictionary)
