"""Sampled answers of members as predictions: a table with one row per answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from edokit._errors import (
    HAVE,
    InputError,
    are,
    counted,
    examples,
    headings,
    option,
    warn,
    word,
)
from edokit._io.tables import number_column
from edokit._names import (
    Encoded,
    as_names,
    class_order,
    encode,
    factorized,
    renamed,
    row_number,
)
from edokit._types import Bools, Strings
from edokit.annotations.labels import as_points, read_labels, set_parts
from edokit.annotations.long_table import lists_as_text
from edokit.predictions.core import COST, SOURCES, Predictions
from edokit.predictions.files import annotator_column, name_column, pair_rows, per_member
from edokit.rows import Rows
from edokit.scales import Declared

Unparsed: TypeAlias = Literal["error", "drop"]
"""What to do with answers that are no class: refuse them, or leave them out and count them."""
SMOOTHING = 0.5
"""What is added to the count of each class."""
ANSWER = "answer"
ROLES = (ANSWER, "annotator", *SOURCES, COST)
_MOST_CLASSES = 20
"""Different answers that are taken for classes if none are declared."""
_SHOWN = 5
_BEFORE = " \t\r\n\"'`*()[]{}<>“”‘’"
_DIFFER = ("differs", "differ")


@dataclass(frozen=True)
class Sampled:
    """How sampled answers become probabilities."""

    classes: tuple[str, ...] | None = None
    label_map: Mapping[str, str] | None = None
    smoothing: float = SMOOTHING
    unparsed: Unparsed = "error"
    columns: tuple[str, ...] = ()
    """Columns with the answers of a member each, where a sheet has several."""
    items: Strings | None = None
    """The items that are kept, with what is known of their answers; None: all."""

    def long(self, table: pa.Table, path: Path) -> pa.Table:
        """One row per answer, of a sheet with a column per member."""
        replaced = {*self.columns, ANSWER, "member"}
        described = [name for name in table.column_names if name not in replaced]
        answer_names = [name for name in self.columns if name in table.column_names]
        if not answer_names:
            raise InputError(
                f"{path} has no column {examples(self.columns)}; its columns are"
                f" {headings(table.column_names)}",
                "check the spelling",
            )
        parts = []
        for name in answer_names:
            part = table.select(described).append_column(ANSWER, table[name].cast(pa.string()))
            members = pa.array([name] * len(table), pa.string())
            parts.append(part.append_column("member", members))
        return pa.concat_tables(parts)

    def predictions(
        self,
        table: pa.Table,
        path: Path,
        member: str,
        column_name: Callable[[str], str],
        declared: Declared,
    ) -> tuple[Predictions, Bools, tuple[str, ...]]:
        """Counts of each class, smoothed; items without an answer of every member; all answers.

        ``own`` is the table's name for a role, ``member`` who answered if no column names it.
        Where a member has no answer for an item, its probabilities are NaN.
        """
        answer = column_name(ANSWER)
        column = encode(lists_as_text(table, answer)[answer], answer)
        classes, is_class, is_named, loose = self._classes(column, path, answer, declared)
        item = name_column(table, column_name("item"), path)
        if self.items is not None:
            is_listed = np.isin(item.names, self.items)[item.codes]
            if is_listed.any():
                table = table.filter(pa.array(is_listed))
                column = column._replace(codes=column.codes[is_listed])
                item = name_column(table, column_name("item"), path)
        members = _members(table, path, member, column_name)
        rows = Rows.of(item.names)
        if column_name("annotator") in table.column_names:
            annotator = annotator_column(table, column_name("annotator"))
            item, rows = pair_rows(item, annotator)
        n, k = len(item.names), len(members.names)
        codes = column.codes  # a gap has the code -1, the last row
        parsed = is_named[codes]
        if loose[codes].any():
            answers = _listed(Counter(str(column.names[c]) for c in codes[loose[codes]]))
            number = are(int(loose[codes].sum()), len(codes), _DIFFER, "answer")
            warn(
                f"{path}: {number} from a class in case or punctuation alone, so that class is"
                f" counted: {answers}"
            )
        self._note_unparsed(column, members, parsed, classes, path)
        cells = (item.codes.astype(np.int64) * k + members.codes)[parsed]
        total = np.bincount(cells, minlength=n * k).reshape(n, k, 1).astype(np.float64)
        counts = np.stack(
            [
                np.bincount(cells, is_class[codes[parsed], c], minlength=n * k).reshape(n, k)
                for c in range(len(classes))
            ],
            axis=2,
        )
        scale, silent = declared.on(classes), total[:, :, 0] == 0
        with np.errstate(invalid="ignore"):
            p = scale.smoothed(counts, total, self.smoothing)
        p[silent] = np.nan
        group = column_name("group")
        groups = per_member(table, group, members, path) if group in table.column_names else None
        fields = rows, tuple(members.names), classes, groups, scale
        info = _info(table, path, column_name, members, item, parsed)
        predictions = Predictions(p, *fields).with_info(info)
        spellings = {*column.names, *(name.strip() for name in column.names)}
        return predictions, silent.any(axis=1), tuple(spellings)

    def _classes(
        self, column: Encoded, path: Path, name: str, declared: Declared
    ) -> tuple[tuple[str, ...], Bools, Bools, Bools]:
        """The classes, which of them each distinct answer names [n + 1, C], and if it names any.

        The last row is that of no answer. An empty set of labels is an answer, too. Last, whether
        an answer is written otherwise than its class.
        """
        sets, classes = declared.kind == "multi-label", self.classes or declared.classes
        label_map, mapping = self.label_map or {}, {}
        for answer in column.names:
            bare = answer.strip()
            mapping[answer] = label_map.get(answer, label_map.get(bare, bare))
        if declared.kind == "ordinal":
            points = as_points(mapping.values(), classes)
            mapping = {old: points.get(new, new) for old, new in mapping.items()}
        if classes is None:
            classes = self._classes_of_answers(renamed(column, mapping), path, name, sets)
        parts = set_parts(list(mapping.values()), set(classes)) if sets else {}
        place = {label: c for c, label in enumerate(classes)}
        class_of = self._class_finder(classes)
        is_class = np.zeros((len(column.names) + 1, len(classes)), dtype=bool)
        is_named, loose = np.zeros((2, len(is_class)), dtype=bool)
        for row, answer in enumerate(mapping.values()):
            labels = parts.get(answer, [answer])
            read = [class_of(label) for label in labels]
            is_named[row] = all(label in place for label in read)
            loose[row] = is_named[row] and read != list(labels)
            is_class[row, [place[label] for label in read if is_named[row]]] = True
        return tuple(classes), is_class, is_named, loose

    @staticmethod
    def _class_finder(classes: Sequence[str]) -> Callable[[str], str]:
        """The class that an answer names, if need be but for case and punctuation."""
        bare_names = Counter(map(_bare, classes))
        forms = {_bare(name): name for name in classes if bare_names[_bare(name)] == 1}
        return lambda answer: answer if answer in classes else forms.get(_bare(answer), answer)

    def _classes_of_answers(
        self, column: Encoded, path: Path, name: str, sets: bool
    ) -> tuple[str, ...]:
        """The different answers as classes, if they look like classes."""

        def place(row: int) -> str:
            return f"{path}: {row_number(row)}"

        # What is long, or the same but for a full stop, is hardly a class.
        order = class_order(column.names)
        clear = len(set(map(_letters, order))) == len(order)
        if clear:
            choice: Any = "sets" if sets else "error"
            labels = read_labels(column, name, place, classes=None, multi_choice=choice)
            order = class_order(labels.names)
            clear = all(repr(label) == word(label) for label in order)
        if not clear or not (1 if sets else 2) <= len(order) <= _MOST_CLASSES:
            answers = _listed(Counter(column.names[c] for c in column.codes if c >= 0))
            raise InputError(
                f"{path}: column {name!r} has {counted(len(order), 'different answer')}, so the"
                f" classes have to be declared: {answers}",
                f"write for example {option('classes', ['no', 'yes'])}",
            )
        warn(
            f"{path}: the different answers are taken for the classes, as with"
            f" {option('classes', list(order))}"
        )
        return order

    def _note_unparsed(
        self,
        column: Encoded,
        members: Encoded,
        parsed: Bools,
        classes: Sequence[str],
        path: Path,
    ) -> None:
        """Refuse answers that are no class, or warn that they are left out."""
        if parsed.all():
            return
        unparsed = Counter("" if c < 0 else str(column.names[c]) for c in column.codes[~parsed])
        by_member = Counter(str(members.names[code]) for code in members.codes[~parsed])
        message = (
            f"{path}: {are(int((~parsed).sum()), len(parsed), noun='answer')} none of the classes"
            f" {examples(classes, 20)}: {_listed(unparsed)}; by member: "
            + ", ".join(f"{name} {number}" for name, number in by_member.most_common(_SHOWN))
        )
        if self.unparsed == "error":
            short = [name for name in unparsed if 0 < len(name) <= 24]
            pairs = option("label_map", dict.fromkeys(short[:1], "CLASS"))
            remedy = f"read them as classes with {pairs}, or " if short else ""
            raise InputError(message, f"{remedy}leave them out with {option('unparsed', 'drop')}")
        warn(f"{message}. They are left out")


def _bare(answer: str) -> str:
    """An answer without case, and without the punctuation that models put around it."""
    return answer.casefold().lstrip(_BEFORE).rstrip(_BEFORE + ".,:;!")


def _letters(name: str) -> str:
    """The same for answers that differ in case, blanks or punctuation."""
    return re.sub(r"\W", "", name.casefold()) or name


def _listed(counts: Counter[str]) -> str:
    """Answers with their counts, the most frequent first; long ones may be somebody's text."""
    texts = [
        f"{'no answer' if not name else word(name)} ({number})"
        for name, number in counts.most_common(_SHOWN)
    ]
    hidden = len(counts) - _SHOWN
    return ", ".join(texts) + (f" and {hidden} more" if hidden > 0 else "")


def _members(
    table: pa.Table, path: Path, member: str, column_name: Callable[[str], str]
) -> Encoded:
    """Who gave each answer: a column of names, else model, prompt and persona, else the file."""
    if column_name("member") in table.column_names:
        return name_column(table, column_name("member"), path)
    parts = [column_name(role) for role in SOURCES if column_name(role) in table.column_names]
    if not parts:
        return Encoded(np.zeros(len(table), dtype=np.int32), np.array([member], dtype=object))
    columns = [encode(table[name], name) for name in parts]
    # A gap has the code -1, the last name.
    texts = [np.append(column.names, "")[column.codes].tolist() for column in columns]
    sources = list(zip(*texts, strict=True))
    codes, names = factorized(as_names(["+".join(filter(None, source)) for source in sources]))
    if len(set(sources)) > len(names) or "" in names:
        raise InputError(
            f"{path}: {examples(parts)} do not name the members apart, or not in every row",
            f"name each member in a column: {option('columns', {'member': 'NAME'})}",
        )
    return Encoded(codes.astype(np.int32), names)


def _info(
    table: pa.Table,
    path: Path,
    column_name: Callable[[str], str],
    members: Encoded,
    item: Encoded,
    parsed: Bools,
) -> dict[str, dict[str, Any]]:
    """What the table tells about each member, and how many of its answers count."""
    k = len(members.names)
    answers, failures = (
        np.bincount(members.codes[rows], minlength=k) for rows in (parsed, ~parsed)
    )
    info: dict[str, dict[str, Any]] = {
        str(name): {"answers": int(a), **({"failures": int(f)} if f else {})}
        for name, a, f in zip(members.names, answers, failures, strict=True)
    }
    for role in SOURCES:
        if column_name(role) in table.column_names:
            values = per_member(table, column_name(role), members, path)
            for name, value in zip(members.names, values, strict=True):
                if value:
                    info[name][role] = value
    if column_name(COST) in table.column_names:
        costs = number_column(table, column_name(COST), str(path)).astype(np.float64)
        sums = np.bincount(members.codes, costs, minlength=k)
        pairs = np.unique(item.codes.astype(np.int64) * k + members.codes) % k
        items = np.bincount(pairs, minlength=k)
        unknown: Strings = members.names[np.isnan(sums)]
        if len(unknown):
            warn(
                f"{path}: {are(len(unknown), k, HAVE, 'member')} no {column_name(COST)} in some"
                f" rows, so their cost per item is unknown: {examples(unknown)}"
            )
        for name, cost in zip(members.names, (sums / items).tolist(), strict=True):
            if cost == cost:
                info[name][COST] = cost
    return info
