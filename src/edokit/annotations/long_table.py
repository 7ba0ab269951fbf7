"""Annotations from and to a long table with one row per annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa

from edokit._errors import (
    HAVE,
    Decision,
    InputError,
    NothingLeftError,
    OpenDecisionsError,
    are,
    counted,
    examples,
    headings,
    listed,
    one_of,
    open_decision,
    option,
    warn,
    word,
)
from edokit._io.tables import PROBABILITY, class_columns, number_column
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
    row_number,
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
)
from edokit.annotations.labels import (
    LabelColumn,
    as_label_map,
    as_points,
    checked_shares,
    list_labels_as_text,
    ordered_classes,
    read_labels,
    single_label,
)
from edokit.annotations.roles import guess_roles, propose_roles
from edokit.rows import Rows
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, split_points

Place = Callable[[int], str]
ROLES = ("item", "annotator", "label", "text", "context", "split", "hard_label", "group")
"""What a column can hold, besides attributes of the annotators; a context needs a text."""
ITEM_GROUP = "item_group"
"""Column of the role ``group`` where no other is named.

A column called ``group`` is not taken for it: in many tables it is an attribute of annotators.
"""
COLUMNS = (*(role for role in ROLES if role != "group"), ITEM_GROUP)
"""The column of each role where no other is named."""
TEXTS = ("text", "context")
"""Roles whose values messages do not quote."""
SCALE = "answer_scale"
"""Column that notes the answer scale with its classes, the same in every row."""


@dataclass(frozen=True, kw_only=True)
class Policies:
    """What happens to rows that are no clean annotations, in whatever source.

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
        Labels, annotators and splits that differ only in case or blanks (labels also in how a
        number is written) are the same, called by the most frequent spelling.
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


def from_long_table(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[object] | None = None,
    policies: Policies = STRICT,
    split: str | None = None,
    attributes: Sequence[str] | None = None,
    label_map: Mapping[Any, object] | None = None,
    scale: ScaleLike | None = None,
    place: Place = row_number,
) -> Annotations:
    """See ``Annotations.from_table``; ``place`` names a row in messages.

    ``attributes`` are the columns that describe annotators; if None, all that do.
    """
    table = _arrow_table(table)
    declared = scale_of_table(table, scale)
    classes = declared.classes if classes is None else ordered_classes(classes, ())
    columns = guess_roles(table, columns or {}, dict(zip(ROLES, COLUMNS, strict=True)))
    names = _roles(table, columns)
    source = _LongTable(table, names, declared, classes, place, policies).without_dropped()
    labels, mapping = source.labels(label_map)
    if split is not None:
        source, labels = source.of_split(split, labels)
    if source.table.num_rows == 0:
        message = "the table of annotations has no rows"
        hint = "check that it is the right table"
        if table.num_rows:
            raise NothingLeftError(message, hint, code="no-rows")
        raise InputError(message, hint, code="no-rows")
    item, annotator = source.column("item"), source.column("annotator")
    source.refuse_gaps({"item": item, "annotator": annotator}, labels)
    warn_variants(item.names, "items", case=False)
    if not policies.ignore_case:
        warn_variants(annotator.names, "annotators")
    source.refuse_outliers(labels)
    order, answers = source.answers(labels, item)
    first_place = None
    if labels is not None:
        first_place = labels.first(source.place)
    answer_scale = declared.resolve(order, first_place)
    texts, contexts, splits = (source.per_item(role, item) for role in (*TEXTS, "split"))
    if splits is not None and not policies.ignore_case:
        warn_variants(as_names(dict.fromkeys(splits)), "splits")
    annotations = Annotations(
        rows=Rows.from_names(item.names),
        annotators=annotator.names,
        classes=order,
        item_codes=item.codes,
        annotator_codes=annotator.codes,
        **answers,
        published=source.published(item, order, mapping),
        texts=texts,
        contexts=contexts,
        splits=splits,
        item_groups=source.per_item("group", item),
        scale=answer_scale,
    )
    annotations, is_kept = _without_duplicates(
        annotations, policies.duplicates or "error", source.place
    )
    # Only kept rows count: a column that varies among dropped rows alone still describes items or
    # annotators.
    item = item._replace(codes=item.codes[is_kept])
    annotator = annotator._replace(codes=annotator.codes[is_kept])
    kept_rows = replace(source, table=source.table.filter(pa.array(is_kept)))
    annotations = replace(annotations, **kept_rows.other_columns(attributes, item, annotator))
    if annotations.published is not None:
        _warn_of_contradicted(annotations)
    return annotations


def _warn_of_contradicted(annotations: Annotations) -> None:
    """Warn of published labels that are not what most annotators of an item chose."""
    contradicted = annotations.contradicted
    if contradicted.any():
        note = contradiction_message(int(contradicted.sum()), len(contradicted))
        warn(f"{note}: {examples(annotations.items[contradicted])}", PublishedLabelWarning)


@dataclass(frozen=True)
class _LongTable:
    """A long table, the roles of its columns, and how its labels are to be read.

    Attributes
    ----------
    names : Mapping[str, str]
        The table's column for each role that it has.
    classes : tuple[str, ...] or None
        The declared classes.
    place : Place
        The place of a row, for messages.
    """

    table: pa.Table
    names: Mapping[str, str]
    declared: DeclaredScale
    classes: tuple[str, ...] | None
    place: Place
    policies: Policies

    @property
    def is_set(self) -> bool:
        return self.declared.kind == "multi-label"

    def column(self, role: str) -> Encoded:
        name = self.names[role]
        values = self.table[name]
        if role == "label":
            values = list_labels_as_text(values)
        encoded = encode(values, name)
        if self.policies.ignore_case and role in ("annotator", "split"):
            return one_spelling(encoded, f"{role}s")
        return encoded

    def where(self, mask: Bools) -> _LongTable:
        """Some of the rows, which messages name by their place among all."""
        rows, place = np.flatnonzero(mask), self.place
        table = self.table.filter(pa.array(mask))
        return replace(self, table=table, place=lambda row: place(int(rows[row])))

    def without_dropped(self) -> _LongTable:
        """The rows that no policy drops; a warning counts the others."""
        policies, is_dropped = self.policies, np.zeros(self.table.num_rows, dtype=bool)
        reasons = []

        def drop(rows: Bools, reason: str) -> None:
            if count := int((rows & ~is_dropped).sum()):
                reasons.append(f"{count} by {reason}")
                is_dropped[rows] = True

        if policies.empty == "drop":
            for role in self._required:
                column = self.column(role)
                is_gap = np.array([*(not name.strip() for name in column.names), True])
                drop(is_gap[column.codes], f"{option('empty', 'drop')} ({self.names[role]})")
            if "text" in self.names:
                no_text = f"{option('empty', 'drop')} (items without {self.names['text']})"
                drop(self._without_text(), no_text)
        for role in ("label", "annotator"):
            if names := list(map(as_name, getattr(policies, f"drop_{role}"))):
                drop(self._rows_with(role, names), option(f"drop_{role}", names))
        if not reasons:
            return self
        total = are(int(is_dropped.sum()), len(is_dropped), noun="row")
        warn(f"{total} dropped: {', '.join(reasons)}")
        return self._with_filled_texts().where(~is_dropped)

    def _with_filled_texts(self) -> _LongTable:
        """The table with the text of an item in all of its rows, of which some will be dropped."""
        table, item = self.table, self.column("item")
        for name in (self.names[role] for role in TEXTS if role in self.names):
            texts = pd.Series(_names(encode(table[name], name)), dtype=object).replace("", None)
            filled = texts.fillna(texts.groupby(item.codes).transform("first"))
            filled = texts.where(item.codes < 0, filled)
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array(filled, pa.string()))
        return replace(self, table=table)

    def _without_text(self) -> Bools:
        """Whether the item of each row has a text in none of its rows; false if no item has one."""
        item = self.column("item")
        text = self.column("text")
        is_written = np.array([*(bool(name.strip()) for name in text.names), False])
        filled = is_written[text.codes]
        has_text = np.zeros(len(item.names) + 1, dtype=bool)
        has_text[item.codes[filled & (item.codes >= 0)]] = True
        if not has_text.any():
            return np.zeros(len(item.codes), dtype=bool)
        return np.asarray(~has_text[item.codes] & (item.codes >= 0))

    @property
    def _required(self) -> list[str]:
        return [role for role in ("item", "annotator", "label") if role in self.names]

    def _rows_with(self, role: str, names: Sequence[str]) -> Bools:
        """Whether each row has one of these labels or annotators; each of them must occur."""
        key = spelling_key if self.policies.ignore_case else as_name
        nothing = Encoded(np.zeros(0, np.int32), as_names([]))
        column = self.column(role) if role in self.names else nothing
        cells = [key(single_label(name) if role == "label" else name) for name in column.names]
        for name in names:
            if key(name) not in cells:
                raise InputError(
                    f"{option(f'drop_{role}')} names {word(name)}, but the {role}s are"
                    f" {examples(column.names, 20) or 'none'}",
                    "check the spelling, blanks included",
                    code=f"unknown-{role}",
                )
        matches = np.append([cell in set(map(key, names)) for cell in cells], False)
        return np.asarray(matches[column.codes], dtype=bool)

    def labels(
        self, label_map: Mapping[Any, object] | None
    ) -> tuple[LabelColumn | None, Mapping[str, str]]:
        """The labels of all splits, if there is such a column, and the names that replace others.

        Classes that occur in other splits only belong to the data, too.
        """
        if "label" not in self.names or not self.table.num_rows:
            return None, as_label_map(label_map, None)
        name = self.names["label"]
        column = self.column("label")
        hard_names = self.column("hard_label").names if "hard_label" in self.names else ()
        occurring = {*column.names, *hard_names}
        is_set = self.is_set
        mapping = as_label_map(label_map, occurring if self.classes is None else None)
        if self.declared.kind == "ordinal":
            mapping = as_points(occurring, self.classes) | mapping
        labels = read_labels(
            column,
            name,
            self.place,
            classes=self.classes,
            label_map=mapping,
            sets=is_set,
            ignore_case=self.policies.ignore_case,
        )
        if self.policies.ignore_case:
            by_key = {
                spelling_key(label): label for label in (*labels.names, *(self.classes or ()))
            }
            mapping = mapping | {
                label: by_key.get(spelling_key(mapping.get(label, label)), label)
                for label in hard_names
            }
        return labels, mapping

    def of_split(
        self, split: object, labels: LabelColumn | None
    ) -> tuple[_LongTable, LabelColumn | None]:
        """The rows of one split, and their labels."""
        if "split" not in self.names:
            raise no_split(split, ())
        encoded = self.column("split")
        if as_name(split) not in encoded.names:
            raise no_split(as_name(split), encoded.names)
        is_inside = np.append(encoded.names, "")[encoded.codes] == as_name(split)
        if labels is not None:
            codes = labels.encoded.codes[is_inside]
            labels = labels._replace(encoded=labels.encoded._replace(codes=codes))
        return self.where(is_inside), labels

    def refuse_gaps(self, ids: Mapping[str, Encoded], labels: LabelColumn | None) -> None:
        """Every row must name an item, an annotator and a label."""
        columns = {**ids, **({} if labels is None else {"label": labels.encoded})}
        gaps = []
        for role, column in columns.items():
            rows = np.flatnonzero(column.codes < 0)
            if len(rows):
                gaps.append(
                    f"column {self.names[role]!r} ({role}) is empty in {self.place(int(rows[0]))}"
                    f" ({counted(len(rows), 'such row')})"
                )
        if gaps:
            if "text" in self.names and (no_text := self._without_text()).any():
                items = np.unique(self.column("item").codes[no_text])
                gaps.append(f"{are(len(items), verb=HAVE, noun='item')} no text")
            note = ""
            if self.is_set and labels is not None and (labels.encoded.codes < 0).any():
                note = " (an empty set is written [])"
            raise open_decision(
                listed(gaps),
                f"choose {option('empty', 'drop')}, or fill them in{note}",
                empty="drop",
                code="missing-value",
            )

    def refuse_outliers(self, labels: LabelColumn | None) -> None:
        """Numbers far from all others, and words among numbers, are hardly points of a scale."""
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
        is_one = len(outliers) == 1
        raise open_decision(
            f"label{'' if is_one else 's'} {listed(described)}"
            f" {'stands' if is_one else 'stand'} apart from the others, {points[0]} to"
            f" {points[-1]}, and may be a mistake",
            f"drop {'it' if is_one else 'them'} by {option('drop_label', outliers)}, or read"
            f" {'it' if is_one else 'them'} as another by"
            f" {option('label_map', dict.fromkeys(outliers, 'LABEL'))}",
            drop_label=outliers,
            code="outlying-label",
        )

    def answers(
        self, labels: LabelColumn | None, item: Encoded
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The classes, and the answers as fields of `Annotations`: codes, or probabilities."""
        if labels is None:
            order, shares = self._shares()
            return order, {"label_codes": None, "label_probabilities": shares}
        answers = labels.encode(self.classes, len(item.names), self.place, sets=self.is_set)
        fields = {"label_codes": answers.codes, "label_probabilities": answers.probabilities}
        return answers.classes, fields

    def _shares(self) -> tuple[tuple[str, ...], Floats]:
        """The classes, and the probabilities of each row in columns ``p_<class>``."""
        columns_of = class_columns(self.table.column_names)
        order = ordered_classes(self.classes, columns_of)
        expected = [PROBABILITY + name for name in order]
        if set(order) != set(columns_of) or len(columns_of) < (1 if self.is_set else 2):
            declared = "" if self.classes is None else f" ({examples(expected, 20)})"
            raise InputError(
                f"the probability columns are {examples(columns_of.values(), 20)}, not one"
                f" p_<class> for each of two or more classes{declared}",
                "complete or rename the columns",
                code="missing-column",
            )
        columns = [number_column(self.table, name, row=self.place) for name in expected]
        scale = Scale("multi-label") if self.is_set else NOMINAL
        return order, checked_shares(np.column_stack(columns).astype(float), scale, self.place)

    def published(
        self, item: Encoded, order: tuple[str, ...], mapping: Mapping[str, str]
    ) -> Codes | None:
        """The published hard label of each item [N]; None without such a column."""
        if "hard_label" not in self.names:
            return None
        if self.is_set:
            raise InputError(
                f"column {self.names['hard_label']!r} holds one hard label per item, which a"
                " multi-label scale does not have",
                "drop or rename the column",
                code="inapplicable-column",
            )
        hard = renamed(self._one_per_item("hard_label", item), mapping)

        def place(number: int) -> str:
            return f"item {item.names[number]!r}"

        return recode(hard, order, "hard label", "classes", place, can_map=True)

    def per_item(self, role: str, item: Encoded) -> Strings | None:
        """The value of each item [N] in a column that describes it; None without the column."""
        return _names(self._one_per_item(role, item)) if role in self.names else None

    def _one_per_item(self, role: str, item: Encoded) -> Encoded:
        encoded = self.column(role)
        first_codes = _first_codes(item, encoded)
        differs = (first_codes[item.codes] != encoded.codes) & (encoded.codes >= 0)
        if differs.any():
            row = int(differs.argmax())
            before = int(((item.codes == item.codes[row]) & (encoded.codes >= 0)).argmax())
            raise InputError(
                f"item {item.names[item.codes[row]]!r} has more than one {self.names[role]}:"
                f" {self.place(before)} and {self.place(row)} differ"
                f" ({counted(int(differs.sum()), 'such row')})",
                "give each item its own id, or make its rows agree",
                code="contradictory-rows",
            )
        return Encoded(first_codes, encoded.names)

    def other_columns(
        self, attributes: Sequence[str] | None, item: Encoded, annotator: Encoded
    ) -> dict[str, Any]:
        """The columns without a role as fields of `Annotations`, by what they describe."""
        fields: dict[str, Any] = {"attributes": {}, "item_columns": {}, "annotation_columns": {}}
        for name, column in self._free_columns().items():
            of_annotator = _described(annotator, column)
            of_item = _described(item, column, fill=True)
            if of_annotator is not None and (attributes is None or name in attributes):
                fields["attributes"][name] = of_annotator
            if of_item is not None and name not in (attributes or ()):
                fields["item_columns"][name] = of_item
            if not any(name in columns for columns in fields.values()):
                fields["annotation_columns"][name] = _names(column)
        return fields

    def _free_columns(self) -> dict[str, Encoded]:
        """The columns without a role; one that is no plain column is left out with a warning."""
        shares = {} if "label" in self.names else class_columns(self.table.column_names)
        has_role = {*self.names.values(), *COLUMNS, *shares.values(), SCALE}
        if "text" not in self.names and "context" not in self.names.values():
            has_role.discard("context")
        columns = {}
        for name in (name for name in self.table.column_names if name not in has_role):
            try:
                columns[name] = encode(self.table[name], name)
            except InputError as error:
                warn(f"{error.message}; it is left out")
        return columns


def scale_of_table(table: pa.Table, declaration: ScaleLike | None) -> DeclaredScale:
    """The scale that is declared, else the one that the table notes, else nominal."""
    noted = encode(table[SCALE], SCALE).names if SCALE in table.column_names else ()
    if len(noted) > 1:
        raise InputError(
            f"column {SCALE!r} has several scales: {examples(noted)}",
            "keep data of different scales in different tables",
            code="scales-differ",
        )
    scale = DeclaredScale(noted[0] if noted else NOMINAL)
    # The kind alone says no more than the note does.
    return scale if declaration in (None, scale.kind) else DeclaredScale(declaration or NOMINAL)


def lists_as_text(table: pa.Table, name: str) -> pa.Table:
    """The table with lists of labels in this column, as Parquet and JSON have them, as text."""
    column = list_labels_as_text(table[name])
    return table.set_column(table.column_names.index(name), name, column)


def _first_codes(owner: Encoded, encoded: Encoded) -> Codes:
    """The code in the first row of each item or annotator [n] that is no gap; -1 without one."""
    codes = np.full(len(owner.names), -1, dtype=np.int32)
    filled = np.flatnonzero(encoded.codes >= 0)[::-1]
    # Assigned back to front, so that the first row wins.
    codes[owner.codes[filled]] = encoded.codes[filled]
    return codes


def _names(encoded: Encoded) -> Strings:
    """Names [n], empty text where there is none."""
    values: Strings = np.append(encoded.names, "").astype(object)[encoded.codes]
    return values


def _described(owner: Encoded, encoded: Encoded, *, fill: bool = False) -> Strings | None:
    """The value of each item or annotator [n]; None where its rows have several.

    ``fill`` takes gaps for no value, unless the column is mostly empty: there, as in a column of
    remarks, a value is that of its row alone.
    """
    codes, is_filled = _first_codes(owner, encoded), encoded.codes >= 0
    differs = codes[owner.codes] != encoded.codes
    if (differs & is_filled if fill and is_filled.mean() > 0.5 else differs).any():
        return None
    return _names(Encoded(codes, encoded.names))


def _arrow_table(table: Any) -> pa.Table:
    """An Arrow table from anything that holds one, a DataFrame or a mapping of columns."""
    if isinstance(table, pd.DataFrame | Mapping):
        # As pairs, since names of a DataFrame may be repeated.
        columns = [column_of(values, str(name)) for name, values in table.items()]
        try:
            table = pa.table(columns, names=list(map(str, table)))
        except pa.ArrowInvalid as error:
            raise InputError(
                f"the columns differ in length: {error}",
                "give each row every column",
                code="lengths-differ",
            ) from error
    elif hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        table = table if isinstance(table, pa.Table) else pa.table(table)
    else:
        raise InputError(
            "annotations come as an Arrow table, a DataFrame or a mapping of columns, not as"
            f" {type(table).__name__}",
            "read a file with edokit.read_annotations",
            code="unsupported-type",
        )
    check_unique(as_names(table.column_names), "column names", "rename one of them")
    return table


def _roles(table: pa.Table, columns: Mapping[str, str]) -> dict[str, str]:
    """The table's column for each role that it has."""
    present = table.column_names
    for role, name in columns.items():
        if role not in ROLES:
            raise InputError(
                f"columns maps {role!r}, which is none of {', '.join(ROLES)}",
                f"columns without a role are kept as they are and need no {option('columns')}",
                code="unknown-role",
            )
        if name not in present:
            raise InputError(
                f"there is no column {name!r} for {role!r}; the columns are {headings(present)}",
                "check the spelling",
                code="missing-column",
            )
    names = {}
    for role, default in zip(ROLES, COLUMNS, strict=True):
        names[role] = columns.get(role, default)
    names = {role: name for role, name in names.items() if name in present}
    if "text" not in names and "context" not in columns:
        names.pop("context", None)
    required = ["item", "annotator"]
    if not class_columns(present):
        required.append("label")
    missing = [role for role in required if role not in names]
    if missing:
        raise OpenDecisionsError([_missing_roles(table, names, missing, required)])
    return names


def _missing_roles(
    table: pa.Table, names: Mapping[str, str], missing: Sequence[str], required: Sequence[str]
) -> Decision:
    """The question which columns have the roles that are missing, with those that may be."""
    proposed = propose_roles(table, names, missing)
    asked = {role: proposed.get(role, "NAME") for role in missing}
    note = ""
    if proposed:
        pairs = ", ".join(f"{role}={headings([name])}" for role, name in proposed.items())
        note = f"; by their content they may be {pairs}"
    return Decision(
        f"a table of annotations has the columns {', '.join(required)}; here"
        f" {examples(missing)} {'is' if len(missing) == 1 else 'are'} missing, the columns are"
        f" {headings(table.column_names)}{note}",
        f"say which columns they are: {option('columns', asked)}; if"
        " there is a column per annotator, make it one row per annotation first, without the"
        " gaps (pandas: DataFrame.melt, dropna)",
        {"columns": asked},
        can_be_tried="NAME" not in asked.values(),
        code="missing-column",
    )


def _without_duplicates(
    annotations: Annotations, policy: Duplicates, place: Place
) -> tuple[Annotations, Bools]:
    """The annotations with each annotator once on an item, unless all labels count.

    Also return the mask of the rows kept. Several rows of a set are its labels, one by one.
    """
    is_repeated = annotations.repeated
    if policy == "all" or not is_repeated.any():
        return annotations, np.ones(len(annotations), dtype=bool)
    if annotations.scale.is_multi_label:
        # All labels that an annotator chose for an item are in each row about it.
        pairs = annotations.pairs()
        chosen_labels = np.zeros((len(pairs.rows), len(annotations.classes)))
        np.maximum.at(chosen_labels, pairs.item_codes, annotations.labels)
        chosen_labels = chosen_labels[pairs.item_codes]
        annotations = replace(annotations, label_probabilities=chosen_labels)
    elif policy == "error":
        raise _duplicates_error(annotations, place)
    else:
        repeats = are(int(is_repeated.sum()), len(is_repeated), noun="annotation")
        conflicts = int(_conflicting(annotations).sum())
        warn(
            f"{repeats} dropped by {option('duplicates', 'first')}: repeated labels of an annotator"
            f" for an item ({int(is_repeated.sum()) - conflicts} the same, {conflicts} different)"
        )
    fields = ("item_codes", "annotator_codes", "label_codes", "label_probabilities")
    fields_kept = annotations.rows_of(~is_repeated, *fields)
    return replace(annotations, **fields_kept), ~is_repeated


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
    """Repeated annotations; those that agree and those that conflict are counted apart."""
    repeated = np.flatnonzero(annotations.repeated)
    conflicts = np.flatnonzero(_conflicting(annotations))
    row = int(repeated[0])
    message = (
        f"annotator {annotations.annotators[annotations.annotator_codes[row]]!r} labels item"
        f" {annotations.items[annotations.item_codes[row]]!r} again in {place(row)}"
        f" ({counted(len(repeated), 'such row')})"
    )
    first = option("duplicates", "first")
    every = option("duplicates", "all")
    if not len(conflicts):
        return open_decision(
            f"{message}, always with the same label as before",
            f"choose {first}, which loses no label here ({every} counts each)",
            duplicates="first",
            code="duplicate-annotation",
        )
    same = len(repeated) - len(conflicts)
    detail = (
        f"{same} with the same label as before, {len(conflicts)} with another, as in"
        f" {place(int(conflicts[0]))}"
    )
    if not same:
        detail = "always with another label than before"
    return open_decision(
        f"{message}, {detail}",
        f"choose {first} to keep the first, {every} to count each",
        duplicates="first",
        code="duplicate-annotation",
    )


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
        texts = annotations.scale.names(sets.astype(np.int32), classes)
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
        ITEM_GROUP: annotations.item_groups,
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
