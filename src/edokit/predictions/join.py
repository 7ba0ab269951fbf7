"""One model's probabilities in one file: what `predict` writes and other tools export."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import (
    InputError,
    are,
    counted,
    errors_in,
    examples,
    headings,
    one_of,
    warn,
    word,
)
from edokit._io.tables import number_column, read_table
from edokit._lazy import pa
from edokit._names import PAIR, as_names, check_unique, class_order, look_alike, match, pair_names
from edokit._types import Bools, Strings
from edokit.annotations.long_table import ordered_classes, scale_of_table
from edokit.predictions.core import (
    ADDED,
    COST,
    COUNTED,
    LOGITS_HINT,
    PREFIX,
    Invalid,
    Layout,
    MemberInfo,
    Predictions,
    canonical,
    checked,
)
from edokit.predictions.files import class_columns, from_long_table, name_column
from edokit.predictions.sampled import ANSWER, ROLES, SMOOTHING, Sampled, Unparsed
from edokit.predictions.shards import read_predictions
from edokit.scales import NOMINAL, Declared, ScaleLike, check_same_scale

Missing: TypeAlias = Literal["error", "drop"]
"""What to do with items that not every file has: refuse them, or leave them out by name."""


def model_from_table(
    table: pa.Table,
    path: str | Path,
    name: str,
    *,
    invalid: Invalid = "error",
    scale: ScaleLike | None = None,
) -> Predictions:
    """The predictions of one member, from a table with ``item`` and a ``p_<class>`` column per
    class; ``path`` names it in messages."""
    return _Joined(Path(path), name, False, invalid, scale=scale).model(table)


def join_models(
    files: Sequence[str | Path],
    *,
    names: Sequence[str | None] | None = None,
    groups: Sequence[str | None] | Mapping[str, str] | None = None,
    logits: bool | Sequence[bool] = False,
    invalid: Invalid = "error",
    positive: str | None = None,
    negative: str | None = None,
    columns: Mapping[str, str] | None = None,
    label_map: Mapping[str, str] | None = None,
    missing: Missing = "error",
    scale: ScaleLike | None = None,
    member_info: MemberInfo | str | Path | None = None,
    classes: Sequence[object] | None = None,
    smoothing: float | None = None,
    unparsed: Unparsed = "error",
    answer_columns: Sequence[str] = (),
    items: Iterable[object] | None = None,
) -> Predictions:
    """Join one file per model into predictions, with items matched by id to the first file.

    Parameters
    ----------
    files : sequence of str or Path
        A table (CSV, TSV, Parquet, JSONL) with the columns ``item`` and ``p_<class>`` is one
        member, named like the file; an .npz, a folder of shards, or a table with a ``member``
        column brings all its members. A table with the column ``answer`` and no ``p_<class>``
        holds sampled answers, one per row: their shares become the probabilities. Who answered is
        in ``member``, else in ``model``, ``prompt`` and ``persona``, else the file is one member;
        with ``annotator``, rows are pairs of an item and an annotator.
    names : sequence of str or None, default=None
        Another name for the member of each file; where a file holds several members, a prefix:
        ``a`` makes ``linear-1`` of it ``a-linear-1``.
    groups : sequence of str or None, or mapping of str to str, default=None
        The group of each file's members, or a mapping of members to groups.
    logits : bool or sequence of bool, default=False
        Whether the files hold logits: all of them, or one by one. Numbers that are probabilities
        already are refused then.
    invalid : {"error", "normalize"}, default="error"
        What to do with probabilities that do not sum to 1: refuse them, or divide by their sum.
    positive : str, default=None
        Each column of a table but ``item`` is a member, with probabilities of this class of two.
    negative : str, default=None
        The name of the other class.
    columns : mapping of str to str, default=None
        The files' own column names for ``item``, ``member``, ``group`` and ``p_<class>``, as in
        ``{"item": "id", "p_yes": "score"}``; of sampled answers also for ``answer``,
        ``annotator``, ``model``, ``prompt``, ``persona`` and ``cost`` (of one answer). With
        ``positive`` for ``item`` and for members; these are then the only ones.
    label_map : mapping of str to str, default=None
        Classes to read as others, as in ``{"LABEL_1": "yes"}``.
    missing : {"error", "drop"}, default="error"
        What to do with items that a file has no prediction for: refuse them, or leave them out
        with a warning that names them.
    scale : Scale or str, default=None
        The answer scale of files that note none: ``ordinal``, ``multi-label``, or with the classes
        as in ``ordinal:low=0,mid=1,high=3``. Multi-label columns are probabilities (or logits) of
        each label on its own. Files of different scales are refused.
    member_info : mapping of str to mapping, str or Path, default=None
        What is known about members, such as ``{"bert": {"model": "bert-base", "cost": 0.002}}``;
        or a table with the column ``member`` and one for each such value.
    classes : sequence, default=None
        All classes, in order. None: those of the scale, else of the files.
    smoothing : float, default=0.5
        What is added to the count of each class where answers were sampled.
    unparsed : {"error", "drop"}, default="error"
        What to do with sampled answers that are no class: refuse them, or leave them out, with a
        warning and the number of ``failures`` in ``member_info``.
    answer_columns : sequence of str, default=()
        Columns with sampled answers, one member each, of a sheet that has a column per model.
    items : iterable, default=None
        Keep these items alone, such as those of a split: ``annotations.split("dev").items``.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        If the files are not about the same items and classes, or names of members repeat.

    Examples
    --------
    >>> from pathlib import Path
    >>> from edokit.predictions import join_models
    >>> _ = Path("bert.csv").write_text("item,p_no,p_yes\\na,0.9,0.1\\nb,0.2,0.8\\n")
    >>> _ = Path("tfidf.csv").write_text("id,no,yes\\nb,-0.2,0.2\\na,0.4,-0.4\\n")
    >>> join_models(
    ...     ["bert.csv", "tfidf.csv"],
    ...     logits=[False, True],
    ...     columns={"item": "id", "p_no": "no", "p_yes": "yes"},
    ... )
    Predictions(2 items, 2 members, classes no, yes)
    """
    one_of("missing", missing, get_args(Missing))
    one_of("unparsed", unparsed, get_args(Unparsed))
    if smoothing is not None and not 0 <= smoothing < math.inf:
        raise InputError(
            f"smoothing is {smoothing}, not a number from 0",
            "0.5 is usual",
            parameters=("smoothing",),
        )
    if negative is not None and positive is None:
        raise InputError(
            f"negative={negative!r} names the other class, but no positive class is given",
            "name the positive class, too",
            parameters=("negative", "positive"),
        )
    if not files:
        raise InputError("there is no file to join", "name the files")
    by_member = groups if isinstance(groups, Mapping) else {}
    by_file = None if isinstance(groups, Mapping) else groups
    in_logits = [logits] * len(files) if isinstance(logits, bool) else list(logits)
    for what, given in (("names", names), ("groups", by_file), ("logits", in_logits)):
        if given and len(given) != len(files):
            raise InputError(
                f"there are {len(given)} {what} for {counted(len(files), 'file')}",
                "give None for a file that needs none"
                if what != "logits"
                else "give True or False for each",
                parameters=(what,),
            )
    _check_roles(columns or {}, positive)
    order = None if classes is None else ordered_classes(classes, ())
    usual = SMOOTHING if smoothing is None else smoothing
    wanted = None if items is None else as_names(items)
    sampled = Sampled(order, label_map, usual, unparsed, tuple(answer_columns), wanted)
    sources: list[_Joined] = []
    parts: list[Predictions] = []
    for position, path in enumerate(map(Path, files)):
        name = names[position] if names else None
        group = by_file[position] if by_file else None
        source = _Joined(
            path,
            name or path.stem,
            in_logits[position],
            invalid,
            columns or {},
            label_map or {},
            missing,
            "mark only the files that hold logits: FILE:logits (in Python: logits=[…])",
            f", or say that they are logits: {path}:logits (in Python: logits=[…])",
            scale,
            sampled,
        )
        part = source.read(positive, negative)
        if order is not None:
            with errors_in(path):
                part = part.order_classes(order)
        if name:
            several = len(part.members) > 1
            named = tuple(f"{name}-{member}" if several else name for member in part.members)
            part = part.renamed(named)
        if group is not None:
            part = replace(part, groups=(group,) * len(part.members))
        sources.append(source)
        parts.append(part)
    unused = [
        name
        for name in [*(columns or {}).values(), *answer_columns]
        if not any(name in s.seen for s in sources)
    ]
    if unused:
        raise InputError(
            f"no file has a column {examples(unused)}",
            "check the spelling",
            parameters=("columns", "answer_columns"),
        )
    unknown = [old for old in label_map or {} if not any(old in s.classes for s in sources)]
    if unknown:
        # What is long may be somebody's text.
        held = dict.fromkeys(c for s in sources for c in s.classes if word(c) == repr(c))
        raise InputError(
            f"label_map has {examples(unknown)}, but the classes of the files are"
            f" {examples(held, 20)}",
            "check the spelling",
            parameters=("label_map",),
        )
    if (smoothing is not None or unparsed != "error") and not any(s.sampled for s in sources):
        raise InputError(
            "no file holds sampled answers, in a column 'answer'",
            "leave smoothing and unparsed out, or name the column: columns={'answer': 'NAME'}",
            parameters=("smoothing", "unparsed", "columns"),
        )
    joined = _as_pairs(_side_by_side(_as_items(parts, sources), sources, missing), parts)
    joined = joined.grouped(by_member) if by_member else joined
    if wanted is not None:
        kept = np.isin(joined.items, wanted)
        if not kept.any():
            raise InputError(
                f"the files hold none of these items, but {examples(joined.items)}",
                "check the ids",
                parameters=("items",),
            )
        joined = joined.take(kept)
    if isinstance(member_info, str | Path):
        path = Path(member_info)
        with errors_in(path):
            return joined.with_info(read_member_info(path))
    return joined.with_info(member_info or {})


def read_member_info(path: Path) -> dict[str, dict[str, Any]]:
    """What a table says about members: a row per member, with values such as ``cost``."""
    table = read_table(path, numbers=lambda name: name in (COST, *ADDED))
    if "member" not in table.column_names:
        raise InputError(
            f"there is no column 'member' but {headings(table.column_names)}",
            "name each member in a column 'member'",
            parameters=("member_info",),
        )
    named = name_column(table, "member", path)
    names = named.names[named.codes]
    check_unique(names, f"members in {path}", "keep one row per member")
    return {
        str(name): {
            key: int(value) if key in COUNTED and value == value // 1 else value
            for key, value in row.items()
            if key != "member" and value not in (None, "") and value == value  # no NaN
        }
        for name, row in zip(names, table.to_pylist(), strict=True)
    }


def _as_items(parts: Sequence[Predictions], sources: Sequence[_Joined]) -> list[Predictions]:
    """The parts, with pairs of an item and an annotator as items, so that they can be matched."""
    paired = [part.annotators is not None for part in parts]
    if any(paired) and not all(paired):
        raise InputError(
            f"{sources[paired.index(True)]} is about pairs of an item and an annotator,"
            f" {sources[paired.index(False)]} about items",
            "join them separately, or give both an annotator for each row",
        )
    return [
        part
        if part.annotators is None
        else replace(part, items=pair_names(part.items, part.annotators), annotators=None)
        for part in parts
    ]


def _as_pairs(joined: Predictions, parts: Sequence[Predictions]) -> Predictions:
    """The joined predictions, with items and annotators of the parts where these are of pairs."""
    if parts[0].annotators is None:
        return joined
    pairs = [name.rpartition(PAIR) for name in joined.items]
    items, whose = (as_names([pair[end] for pair in pairs]) for end in (0, 2))
    return replace(joined, items=items, annotators=whose).named()


def _check_roles(columns: Mapping[str, str], positive: str | None) -> None:
    for role, name in columns.items():
        known = role in ("item", "member", "group", *ROLES) or role.startswith(PREFIX)
        if not known and positive is None:
            raise InputError(
                f"columns maps {role!r}, which is none of item, member, group, p_<class>,"
                f" {', '.join(ROLES)}",
                f"for the column of a class write for example columns={{'p_yes': {name!r}}}",
                parameters=("columns",),
            )


@dataclass
class _Joined:
    """A file to join, and how it is read."""

    path: Path
    member: str
    logits: bool
    invalid: Invalid
    columns: Mapping[str, str] = field(default_factory=dict)
    label_map: Mapping[str, str] = field(default_factory=dict)
    missing: Missing = "error"
    no_logits_hint: str = "leave out logits=True"
    logits_hint: str = LOGITS_HINT
    scale: ScaleLike | None = None
    answers: Sampled = field(default_factory=Sampled)
    """How sampled answers are read."""
    sampled: bool = False
    """Whether it holds some."""
    seen: list[str] = field(default_factory=list)
    """Its columns."""
    classes: tuple[str, ...] = ()
    """What it calls its classes."""
    without: list[str] = field(default_factory=list)
    """Items that it names but has no numbers for."""
    of_members: dict[str, int] = field(default_factory=dict)
    """How many of them each of its members lacks, if it has several."""

    @property
    def whose(self) -> str:
        """Which of its members lack items, and how many."""
        each = sorted(self.of_members.items(), key=lambda one: -one[1])
        shown = [f"{name!r} lacks {count}" for name, count in each[:10]]
        more = [f"and {counted(len(each) - 10, 'other member')}"] if len(each) > 10 else []
        return f" ({', '.join(shown + more)})" if shown else ""

    def __str__(self) -> str:
        return str(self.path) if self.member == self.path.stem else f"{self.member} ({self.path})"

    def read(self, positive: str | None, negative: str | None) -> Predictions:
        """The predictions of its members, classes as ``label_map`` calls them."""
        path, wide = self.path, positive is not None
        found = sorted(map(str, (path / "predictions").glob("*.npz")))
        if found:
            raise InputError(
                f"{path} is a folder of trained members, with predictions for several splits",
                f"name those of one: {' or '.join(found)}",
            )
        if path.suffix.lower() == ".npz" or path.is_dir():
            return self._stored(read_predictions(path, invalid=self.invalid))
        item = ("item", self.columns.get("item"))
        numbers = {
            name
            for role, name in self.columns.items()
            if role.startswith(PREFIX) or (wide and role != "item")
        }

        def is_number(name: str) -> bool:
            if wide and not numbers:
                return name not in item
            return name in numbers or (not wide and name.startswith(PREFIX))

        try:
            table = read_table(path, numbers=is_number)
            self.seen = table.column_names
            if positive is not None:
                return self._positive_columns(table, negative, positive)
        except InputError as error:
            if not wide or numbers or "not a number" not in error.message:
                raise
            raise InputError(
                error.message,
                "name the columns of the members: columns={'MEMBER': 'COLUMN'}",
                parameters=("columns",),
            ) from error
        asked = self.columns.get(ANSWER) in table.column_names
        shares = class_columns(table, self.columns)
        if self.answers.columns and not shares:
            return self._sampled(self.answers.long(table, path))
        if asked or (ANSWER in table.column_names and not shares):
            return self._sampled(table)
        if self.own(table, "member") in table.column_names:
            return self._stored(self._long(table))
        return self.model(table)

    def _sampled(self, table: pa.Table) -> Predictions:
        """A table of sampled answers as the predictions of its members."""
        self.sampled = True
        if self.logits:
            raise InputError(
                f"{self.path} holds sampled answers and no logits",
                self.no_logits_hint,
                parameters=("logits",),
            )
        self._need_items(table)
        declared = self._declared(table)
        with errors_in(self.path):
            part, lacking, self.classes = self.answers.predictions(
                table, self.path, self.member, lambda role: self.own(table, role), declared
            )
        if lacking.any() and self.missing == "error":
            k = int(np.isnan(part.probabilities[lacking]).any(axis=(0, 2)).argmax())
            none = part.items[np.isnan(part.probabilities[:, k, 0])]
            raise InputError(
                f"{self.path}: member {part.members[k]!r} has no answer for"
                f" {counted(len(none), 'item')}: {examples(none)}"
                f" ({are(int(lacking.sum()), len(part), noun='row')} incomplete in all)",
                "complete the file; missing='drop' leaves out the items that not every member"
                " answered",
                parameters=("missing",),
            )
        (rows,) = _as_items([part], [self])
        self.without += rows.items[lacking].tolist()
        self._note(part.members, np.isnan(part.probabilities[:, :, 0]).sum(axis=0))
        kept = part.take(~lacking)
        if not len(kept):
            raise InputError(f"{self.path} has no item that every member answered", "check the ids")
        return kept.named()

    def own(self, table: pa.Table, role: str) -> str:
        """The table's name for a role: the mapped one where it has that, else ours."""
        name = self.columns.get(role, role)
        return name if name in table.column_names else role

    def model(self, table: pa.Table) -> Predictions:
        """A table with one row per item as the predictions of one member."""
        columns, declared = class_columns(table, self.columns), self._declared(table)
        sets = declared.kind == "multi-label"
        if len(columns) < (1 if sets else 2):
            raise InputError(
                f"{self.path} does not have one p_<class> column per class; its columns are"
                f" {headings(table.column_names)}",
                self._class_hint(table),
            )
        if "" in columns:
            raise InputError(
                f"{self.path} has a column {PREFIX!r} that does not name its class",
                "name them p_0, p_1, …",
            )
        self.classes = tuple(columns)
        columns = dict(zip(self._mapped(self.classes), columns.values(), strict=True))
        classes = declared.classes or class_order(columns)
        if sorted(classes) != sorted(columns):
            raise InputError(
                f"{self.path} is about the classes {examples(columns, 20)}, but the scale declares"
                f" {examples(classes, 20)}",
                "name the columns p_<class> like the classes of the scale",
                parameters=("scale", "columns"),
            )
        items = self._items(table)
        values = np.column_stack(
            [number_column(table, columns[name], str(self.path)) for name in classes]
        )
        values, items = self._present(values, items, np.isnan(values).all(axis=1))
        array = self._checked(values, "NC", items, [self.member], sets)
        with errors_in(self.path):
            scale = declared.on(classes)
        return Predictions(array, items, (self.member,), classes, scale=scale)

    def _class_hint(self, table: pa.Table) -> str:
        """The command that maps columns which are not called ``p_<class>``."""
        item = self.own(table, "item")
        item = item if item in table.column_names else table.column_names[0]
        # Where a header is missing it may be somebody's text.
        roles = [] if item == "item" else [f"item={item if word(item) == repr(item) else 'NAME'}"]
        classes = []
        for name in table.column_names:
            with suppress(InputError):
                number_column(table, name)
                own = re.sub(r"(?i)^p(rob|roba|robability)?[_ ](?=.)", "", name)
                classes += [f"{PREFIX}{own}={name}"] * (name != item)
        if 1 < len(classes) <= 20:
            mapped = [f"--column {shlex.quote(role)}" for role in roles + classes]
            known = " ".join([shlex.quote(str(self.path)), *mapped])
        else:
            known = "FILE --column item=NAME --column p_CLASS=NAME"
        return (
            f"name them item and p_<class>, or, if they are classes, `edo predictions join {known}"
            " --out FILE.npz`; if each is a model's probability of one class, --positive CLASS; if"
            " they hold sampled answers, --column answer=NAME"
        )

    def _declared(self, table: pa.Table) -> Declared:
        with errors_in(self.path):
            return scale_of_table(table, self.scale)

    def _on_scale(self, part: Predictions) -> Predictions:
        with errors_in(self.path):
            return part if self.scale is None else part.on_scale(self.scale)

    def _long(self, table: pa.Table) -> Predictions:
        own = {role: self.own(table, role) for role in ("item", "member", "group")}
        item, member = (name_column(table, own[role], self.path) for role in ("item", "member"))
        few = np.bincount(item.codes, minlength=len(item.names)) < len(member.names)
        if self.missing == "drop" and few.any():
            self.without += item.names[few].tolist()
            held = np.unique(np.stack([member.codes, item.codes]), axis=1)[0]
            self._note(member.names, len(item.names) - np.bincount(held))
            table = table.filter(pa.array(~few[item.codes]))
        part = from_long_table(table, self.path, {**self.columns, **own})
        declared = self._declared(table)
        if part.scale == NOMINAL:
            with errors_in(self.path):
                part = part.order_classes(declared.classes or part.classes)
                part = replace(part, scale=declared.on(part.classes))
        sets = part.scale.is_multi_label
        array = self._checked(part.probabilities, "NKC", part.items, part.members, sets)
        return replace(part, probabilities=array)

    def _stored(self, part: Predictions) -> Predictions:
        if self.logits and self.seen == []:
            raise InputError(
                f"{self.path} holds stored predictions, which are probabilities and no logits",
                self.no_logits_hint,
                parameters=("logits",),
            )
        self.classes = part.classes
        return self._on_scale(replace(part, classes=self._mapped(part.classes)).named())

    def _positive_columns(
        self, table: pa.Table, negative: str | None, positive: str
    ) -> Predictions:
        own = self.own(table, "item")
        given = {
            role: name
            for role, name in self.columns.items()
            if role != "item" and name in table.column_names
        }
        members = given or {name: name for name in table.column_names if name != own}
        items = self._items(table)
        if not members:
            raise InputError(
                f"{self.path} has no column of a member beside {own!r}",
                "name each column like its member",
            )
        path = str(self.path)
        values: Any = np.column_stack([number_column(table, one, path) for one in members.values()])
        values, items = self._present(values, items, np.isnan(values).any(axis=1))
        array = self._checked(values, "NK", items, list(members))
        other = negative or {"1": "0", "0": "1"}.get(positive, f"not {positive}")
        self.classes = (other, positive)
        both = Predictions(array, items, tuple(members), self._mapped(self.classes)).named()
        return self._on_scale(both.order_classes(class_order(both.classes)))

    def _mapped(self, classes: Sequence[str]) -> tuple[str, ...]:
        names = tuple(self.label_map.get(name, name) for name in classes)
        if len(set(names)) < len(set(classes)):
            raise InputError(
                f"label_map gives two classes of {self.path} one name: {examples(classes, 20)}"
                f" become {examples(names, 20)}",
                "predictions of classes can't be merged; give each class a name of its own",
                parameters=("label_map",),
            )
        return names

    def _items(self, table: pa.Table) -> Strings:
        """The ids of a table with one row per item [N]."""
        encoded = name_column(table, self._need_items(table), self.path)
        items = encoded.names[encoded.codes]
        check_unique(items, f"items in {self.path}", "keep one row per item")
        return items

    def _need_items(self, table: pa.Table) -> str:
        """The table's name for the column with the ids, which it must have."""
        own = self.own(table, "item")
        if own not in table.column_names:
            raise InputError(
                f"{self.path} has no column {self.columns.get('item', 'item')!r}; its columns are"
                f" {headings(table.column_names)}",
                "name the column with the ids: columns={'item': 'NAME'}",
                parameters=("columns",),
            )
        return own

    def _present(self, values: Any, items: Strings, absent: Bools) -> tuple[Any, Strings]:
        """The rows that have numbers; others are refused, or noted to be left out."""
        if not absent.any():
            return values, items
        self.without += items[absent].tolist()
        if self.missing == "error":
            raise InputError(
                f"{self} has no prediction for {counted(len(self.without), 'item')}:"
                f" {examples(self.without)}",
                "complete the file; missing='drop' leaves out the items that not every file has",
                parameters=("missing",),
            )
        return values[~absent], items[~absent]

    def _note(self, members: Iterable[str], lacking: npt.NDArray[Any]) -> None:
        """Note how many items each member lacks."""
        if len(lacking) > 1:
            each = zip(members, lacking.tolist(), strict=True)
            self.of_members |= {str(name): count for name, count in each if count}

    def _checked(
        self,
        values: Any,
        layout: Layout,
        items: Strings,
        members: Sequence[str],
        sets: bool = False,
    ) -> npt.NDArray[Any]:
        if not len(items):
            raise InputError(f"{self.path} has no predictions", "check that it is the right file")
        where = f" in {self.path}"
        array = canonical(
            values,
            layout,
            logits=self.logits,
            member_names=members,
            where=where,
            logits_hint=self.no_logits_hint,
            sets=sets,
        )
        return checked(array, items, members, self.invalid, where, self.logits_hint, sets=sets)


def _side_by_side(
    parts: Sequence[Predictions], sources: Sequence[_Joined], missing: Missing
) -> Predictions:
    if missing == "drop":
        parts = _common_items(parts, sources)
    first = parts[0]
    aligned = [first]
    for part, source in zip(parts[1:], sources[1:], strict=True):
        check_same_scale(part.scale, str(source), first.scale, str(sources[0]))
        try:
            where = match(first.items, part.items, str(source), str(sources[0]))
        except InputError as error:
            raise InputError(
                error.message,
                "check the ids; missing='drop' leaves out the items that not every file has",
                parameters=("missing",),
            ) from error
        try:
            aligned.append(part.take(where).order_classes(first.classes))
        except InputError as error:
            raise InputError(
                f"{source} is about the classes {examples(part.classes, 20)}, but {sources[0]}"
                f" about {examples(first.classes, 20)}",
                f"say which is which: {_class_map(part.classes, first.classes)}",
                parameters=("label_map",),
            ) from error
    members = tuple(name for part in aligned for name in part.members)
    check_unique(
        as_names(members),
        "names of members",
        "write a=FILE b=FILE (in Python: names=['a', 'b']): the name of a model, or the prefix of"
        " the members of a pool",
    )
    groups: tuple[str, ...] | None = None
    if any(part.groups is not None for part in aligned):
        groups = tuple(
            group for part in aligned for group in (part.groups or ("",) * len(part.members))
        )
    dtype = np.result_type(*(part.probabilities.dtype for part in aligned))
    values = np.concatenate([part.probabilities.astype(dtype) for part in aligned], axis=1)
    named = Predictions(values, first.items, members, first.classes, groups, scale=first.scale)
    info = {name: own for part in aligned for name, own in part.member_info.items()}
    return replace(named, member_info=info).named()


def _common_items(parts: Sequence[Predictions], sources: Sequence[_Joined]) -> list[Predictions]:
    """The parts with the items that all of them have; a warning names the others."""
    everything = dict.fromkeys(item for part in parts for item in part.items)
    everything |= dict.fromkeys(item for source in sources for item in source.without)
    lacking = [
        [item for item in everything if item not in held] for held in (set(p.items) for p in parts)
    ]
    left_out = set(chain.from_iterable(lacking))
    if len(left_out) == len(everything):
        raise InputError(f"no item is in every file{look_alike(everything)}", "check the ids")
    if left_out:
        each = "; ".join(
            f"{source} has no prediction for {len(items)}: {examples(items, 10)}{source.whose}"
            for source, items in zip(sources, lacking, strict=True)
            if items
        )
        count = are(len(left_out), len(everything), noun="item")
        alike = look_alike(item for item in everything if item in left_out)
        warn(
            f"{count} left out for every member (missing='drop'): {each}{alike}",
            parameters=("missing",),
        )
    kept = [np.array([item not in left_out for item in part.items]) for part in parts]
    return [part.take(mask) for part, mask in zip(parts, kept, strict=True)]


def _class_map(classes: Sequence[str], wanted: Sequence[str]) -> str:
    """An example of ``label_map`` for the classes that are called otherwise."""
    open_ = {name.casefold().strip(): name for name in wanted if name not in classes}
    pairs = {}
    for name in (name for name in classes if name not in wanted):
        close = get_close_matches(name.casefold().strip(), open_, 1)
        pairs[name] = open_[close[0]] if close else "CLASS"
    return f"label_map={pairs}" if pairs else "give every file the same classes"
