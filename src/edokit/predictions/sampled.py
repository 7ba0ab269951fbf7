"""Sampled answers of members as predictions: a table with one row per answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from edokit._errors import (
    HAVE,
    InputError,
    are,
    counted,
    examples,
    headings,
    warn,
    word,
)
from edokit._io.tables import number_column
from edokit._lazy import pa
from edokit._names import Encoded, class_order, encode, renamed, row_number
from edokit._types import Bools, Strings
from edokit.annotations.labels import as_points, read_labels, set_parts
from edokit.annotations.long_table import lists_as_text
from edokit.predictions.core import COST, SOURCES, Predictions
from edokit.predictions.files import annotator_column, name_column, pair_rows, per_member
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
        taken = {*self.columns, ANSWER, "member"}
        others = [name for name in table.column_names if name not in taken]
        held = [name for name in self.columns if name in table.column_names]
        if not held:
            raise InputError(
                f"{path} has no column {examples(self.columns)}; its columns are"
                f" {headings(table.column_names)}",
                "check the spelling",
                parameters=("answer_columns",),
            )
        parts = []
        for name in held:
            part = table.select(others).append_column(ANSWER, table[name].cast(pa.string()))
            who = pa.array([name] * len(table), pa.string())
            parts.append(part.append_column("member", who))
        return pa.concat_tables(parts)

    def predictions(
        self,
        table: pa.Table,
        path: Path,
        member: str,
        own: Callable[[str], str],
        declared: Declared,
    ) -> tuple[Predictions, Bools, tuple[str, ...]]:
        """Counts of each class, smoothed; items without an answer of every member; all answers.

        ``own`` is the table's name for a role, ``member`` who answered if no column names it.
        Where a member has no answer for an item, its probabilities are NaN.
        """
        column = encode(lists_as_text(table, own(ANSWER))[own(ANSWER)], own(ANSWER))
        classes, is_class, named, loose = self._classes(column, path, own(ANSWER), declared)
        item = name_column(table, own("item"), path)
        if self.items is not None and (kept := np.isin(item.names, self.items)[item.codes]).any():
            table, column = table.filter(pa.array(kept)), column._replace(codes=column.codes[kept])
            item = name_column(table, own("item"), path)
        members = _members(table, path, member, own)
        items, whose = item.names, None
        if own("annotator") in table.column_names:
            item, items, whose = pair_rows(item, annotator_column(table, own("annotator")))
        n, k = len(item.names), len(members.names)
        codes = column.codes  # a gap has the code -1, the last row
        parsed = named[codes]
        if loose[codes].any():
            shown = _listed(Counter(str(column.names[c]) for c in codes[loose[codes]]))
            number = are(int(loose[codes].sum()), len(codes), _DIFFER, "answer")
            warn(
                f"{path}: {number} from a class in case or punctuation alone, so that class is"
                f" counted: {shown}"
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
        group = own("group")
        groups = per_member(table, group, members, path) if group in table.column_names else None
        made = Predictions(p, items, tuple(members.names), classes, groups, whose, scale)
        made = made.with_info(_info(table, path, own, members, item, parsed))
        lacking = silent.any(axis=1)
        return made, lacking, tuple({*column.names, *(name.strip() for name in column.names)})

    def _classes(
        self, column: Encoded, path: Path, name: str, declared: Declared
    ) -> tuple[tuple[str, ...], Bools, Bools, Bools]:
        """The classes, which of them each distinct answer names [n + 1, C], and if it names any.

        The last row is that of no answer. An empty set of labels is an answer, too. Last, whether
        an answer is written otherwise than its class.
        """
        sets, wanted = declared.kind == "multi-label", self.classes or declared.classes
        given, mapping = self.label_map or {}, {}
        for answer in column.names:
            bare = answer.strip()
            mapping[answer] = given.get(answer, given.get(bare, bare))
        if declared.kind == "ordinal":
            points = as_points(mapping.values(), wanted)
            mapping = {old: points.get(new, new) for old, new in mapping.items()}
        if wanted is None:
            wanted = self._found(renamed(column, mapping), path, name, sets)
        parts = set_parts(list(mapping.values()), set(wanted)) if sets else {}
        place = {one: c for c, one in enumerate(wanted)}
        alike = Counter(map(_bare, wanted))
        forms = {_bare(one): one for one in wanted if alike[_bare(one)] == 1}
        is_class = np.zeros((len(column.names) + 1, len(wanted)), dtype=bool)
        named, loose = np.zeros((2, len(is_class)), dtype=bool)
        for row, answer in enumerate(mapping.values()):
            these = parts.get(answer, [answer])
            read = [str(one if one in place else forms.get(_bare(one), one)) for one in these]
            named[row] = all(one in place for one in read)
            loose[row] = named[row] and read != list(these)
            is_class[row, [place[one] for one in read if named[row]]] = True
        return tuple(wanted), is_class, named, loose

    def _found(self, column: Encoded, path: Path, name: str, sets: bool) -> tuple[str, ...]:
        """The different answers as classes, if they look like classes."""

        def where(row: int) -> str:
            return f"{path}: {row_number(row)}"

        # What is long, or the same but for a full stop, is hardly a class.
        order = class_order(column.names)
        clear = len(set(map(_letters, order))) == len(order)
        if clear:
            how: Any = "sets" if sets else "error"
            found = read_labels(column, name, where, classes=None, multi_choice=how)
            order = class_order(found.names)
            clear = all(repr(one) == word(one) for one in order)
        if not clear or not (1 if sets else 2) <= len(order) <= _MOST_CLASSES:
            shown = _listed(Counter(column.names[c] for c in column.codes if c >= 0))
            raise InputError(
                f"{path}: column {name!r} has {counted(len(order), 'different answer')}, so the"
                f" classes have to be declared: {shown}",
                "write for example classes=['no', 'yes']",
                parameters=("classes",),
            )
        warn(
            f"{path}: the different answers are taken for the classes, as with"
            f" classes={list(order)}",
            parameters=("classes",),
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
        if parsed.all():
            return
        wrong = np.flatnonzero(~parsed)
        some = [column.names[c] for c in column.codes[wrong] if c >= 0]
        shown = _listed(
            Counter("" if code < 0 else str(column.names[code]) for code in column.codes[wrong])
        )
        by_member = Counter(str(members.names[code]) for code in members.codes[wrong])
        message = (
            f"{path}: {are(len(wrong), len(parsed), noun='answer')} none of the classes"
            f" {examples(classes, 20)}: {shown}; by member: "
            + ", ".join(f"{name} {number}" for name, number in by_member.most_common(_SHOWN))
            + (f" and {len(by_member) - _SHOWN} more" if len(by_member) > _SHOWN else "")
        )
        if self.unparsed == "error":
            short = [name for name in some if len(name) <= 24]
            known = {_letters(name): name for name in classes}
            pairs = {name: known.get(_letters(name), "CLASS") for name in short[:1]}
            read = f"read them as classes with label_map={pairs}, or "
            raise InputError(
                message,
                f"{read if short else ''}leave them out with unparsed='drop'",
                parameters=("label_map", "unparsed"),
            )
        warn(f"{message}. They are left out", parameters=("unparsed",))


def _bare(answer: str) -> str:
    """An answer without case, and without the punctuation that models put around it."""
    return answer.casefold().lstrip(_BEFORE).rstrip(_BEFORE + ".,:;!")


def _letters(name: str) -> str:
    """The same for answers that differ in case, blanks or punctuation."""
    return re.sub(r"\W", "", name.casefold()) or name


def _listed(counts: Counter[str]) -> str:
    """Answers with their counts, the most frequent first; long ones may be somebody's text."""
    shown = [
        f"{'no answer' if not name else word(name)} ({number})"
        for name, number in counts.most_common(_SHOWN)
    ]
    rest = len(counts) - _SHOWN
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def _members(table: pa.Table, path: Path, member: str, own: Callable[[str], str]) -> Encoded:
    """Who gave each answer: a column of names, else model, prompt and persona, else the file."""
    if own("member") in table.column_names:
        return name_column(table, own("member"), path)
    parts = [own(role) for role in SOURCES if own(role) in table.column_names]
    if not parts:
        return Encoded(np.zeros(len(table), dtype=np.int32), np.array([member], dtype=object))
    columns = [encode(table[name], name) for name in parts]
    rows = np.stack([column.codes for column in columns], axis=1)
    kinds, first, codes = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    names = np.array(
        [
            "+".join(
                str(column.names[c]) for column, c in zip(columns, kind, strict=True) if c >= 0
            )
            for kind in kinds[order]
        ],
        dtype=object,
    )
    if len(set(names)) < len(names) or "" in names:
        raise InputError(
            f"{path}: {examples(parts)} do not name the members apart, or not in every row",
            "name each member in a column: columns={'member': 'NAME'}",
            parameters=("columns",),
        )
    return Encoded(np.argsort(order, kind="stable")[codes.reshape(-1)].astype(np.int32), names)


def _info(
    table: pa.Table,
    path: Path,
    own: Callable[[str], str],
    members: Encoded,
    item: Encoded,
    parsed: Bools,
) -> dict[str, dict[str, Any]]:
    """What the table tells about each member, and how many of its answers count."""
    k = len(members.names)
    answers, failures = (
        np.bincount(members.codes[which], minlength=k) for which in (parsed, ~parsed)
    )
    info: dict[str, dict[str, Any]] = {
        str(name): {"answers": int(a), **({"failures": int(f)} if f else {})}
        for name, a, f in zip(members.names, answers, failures, strict=True)
    }
    for role in SOURCES:
        if own(role) in table.column_names:
            values = per_member(table, own(role), members, path)
            for name, value in zip(members.names, values, strict=True):
                if value:
                    info[name][role] = value
    if own(COST) in table.column_names:
        costs = number_column(table, own(COST), str(path)).astype(np.float64)
        sums = np.bincount(members.codes, costs, minlength=k)
        pairs = np.unique(item.codes.astype(np.int64) * k + members.codes) % k
        items = np.bincount(pairs, minlength=k)
        unknown: Strings = members.names[np.isnan(sums)]
        if len(unknown):
            warn(
                f"{path}: {are(len(unknown), k, HAVE, 'member')} no {own(COST)} in some rows, so"
                f" their cost per item is unknown: {examples(unknown)}"
            )
        for name, cost in zip(members.names, (sums / items).tolist(), strict=True):
            if cost == cost:
                info[name][COST] = cost
    return info
