"""One model's probabilities in one file: what `predict` writes and other tools export."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import (
    InputError,
    are,
    counted,
    errors_in,
    examples,
    headings,
    one_of,
    option,
    warn,
    word,
)
from edokit._io.tables import number_column, read_table
from edokit._names import as_names, check_unique, class_order, look_alike
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
from edokit.rows import Rows
from edokit.scales import NOMINAL, Declared, ScaleLike, check_same_scale

Missing: TypeAlias = Literal["error", "drop"]
"""What to do with items that not every file has: refuse them, or leave them out by name."""
_NO_LOGITS = "mark only the files that hold logits: FILE:logits (in Python: logits=[…])"
_DROP_HINT = f"{option('missing', 'drop')} leaves out the items that not every file has"


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
    options = JoinOptions(invalid=invalid, scale=scale)
    return _ModelFile(Path(path), name, False, options, LOGITS_HINT).model(table)


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """How files of models are read and joined.

    Parameters
    ----------
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
    """

    names: Sequence[str | None] | None = None
    groups: Sequence[str | None] | Mapping[str, str] | None = None
    logits: bool | Sequence[bool] = False
    invalid: Invalid = "error"
    positive: str | None = None
    negative: str | None = None
    columns: Mapping[str, str] | None = None
    label_map: Mapping[str, str] | None = None
    missing: Missing = "error"
    scale: ScaleLike | None = None
    member_info: MemberInfo | str | Path | None = None
    classes: Sequence[object] | None = None
    smoothing: float | None = None
    unparsed: Unparsed = "error"
    answer_columns: Sequence[str] = ()
    items: Iterable[object] | None = None

    def __post_init__(self) -> None:
        one_of("missing", self.missing, get_args(Missing))
        one_of("unparsed", self.unparsed, get_args(Unparsed))
        if self.smoothing is not None and not 0 <= self.smoothing < math.inf:
            raise InputError(
                f"{option('smoothing')} is {self.smoothing}, not a number from 0", "0.5 is usual"
            )
        if self.negative is not None and self.positive is None:
            raise InputError(
                f"{option('negative', self.negative)} names the other class, but no positive class"
                " is given",
                f"name the positive class, too: {option('positive', 'CLASS')}",
            )
        for role, name in (self.columns or {}).items():
            is_role = role in ("item", "member", "group", *ROLES) or role.startswith(PREFIX)
            if not is_role and self.positive is None:
                raise InputError(
                    f"columns maps {role!r}, which is none of item, member, group, p_<class>,"
                    f" {', '.join(ROLES)}",
                    f"for the column of a class write for example"
                    f" {option('columns', {'p_yes': name})}",
                )

    @cached_property
    def sampled(self) -> Sampled:
        """How sampled answers are read."""
        return Sampled(
            None if self.classes is None else ordered_classes(self.classes, ()),
            self.label_map,
            SMOOTHING if self.smoothing is None else self.smoothing,
            self.unparsed,
            tuple(self.answer_columns),
            None if self.items is None else as_names(self.items),
        )

    def of_file(self, name: str, file: int, files: int) -> Any:
        """The value of ``names``, ``groups`` or ``logits`` for one of the files."""
        values = getattr(self, name)
        if values is None or isinstance(values, bool | Mapping):
            return None if isinstance(values, Mapping) else values
        if values and len(values) != files:
            raise InputError(
                f"there are {len(values)} {name} for {counted(files, 'file')}",
                "give one for each file",
            )
        return values[file] if values else None


def join_models(
    files: Sequence[str | Path], options: JoinOptions | None = None, **changes: Any
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
    options : JoinOptions, default=None
        How the files are read and joined.
    **changes
        Fields of `JoinOptions` that differ from ``options``.

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
    options = replace(options or JoinOptions(), **changes)
    if not files:
        raise InputError("there is no file to join", "name the files")
    sources = [_source(options, Path(path), k, len(files)) for k, path in enumerate(files)]
    parts = [
        _part(source, options.of_file("groups", k, len(files))) for k, source in enumerate(sources)
    ]
    _refuse_unused(options, sources)
    _check_same_rows(parts, sources)
    joined = _side_by_side(parts, sources, options.missing)
    if options.groups and isinstance(options.groups, Mapping):
        joined = joined.grouped(options.groups)
    if options.sampled.items is not None:
        is_listed = np.isin(joined.items, options.sampled.items)
        if not is_listed.any():
            raise InputError(
                f"the files hold none of these items, but {examples(joined.items)}",
                "check the ids",
            )
        joined = joined.take(is_listed)
    if isinstance(options.member_info, str | Path):
        path = Path(options.member_info)
        with errors_in(path):
            return joined.with_info(read_member_info(path))
    return joined.with_info(options.member_info or {})


def _source(options: JoinOptions, path: Path, file: int, files: int) -> _ModelFile:
    """One of the files to join."""
    return _ModelFile(
        path,
        options.of_file("names", file, files) or path.stem,
        bool(options.of_file("logits", file, files)),
        options,
        f", or say that they are logits: {path}:logits (in Python: logits=[…])",
        is_renamed=bool(options.of_file("names", file, files)),
    )


def _part(source: _ModelFile, group: str | None) -> Predictions:
    """The predictions of a file, with the names and the group that the options give it."""
    part = source.read()
    classes = source.options.sampled.classes
    if classes is not None:
        with errors_in(source.path):
            part = part.order_classes(classes)
    if source.is_renamed:
        prefix = f"{source.member}-"
        several = len(part.members) > 1
        part = part.renamed([f"{prefix}{m}" if several else source.member for m in part.members])
    return part if group is None else replace(part, groups=(group,) * len(part.members))


def _refuse_unused(options: JoinOptions, sources: Sequence[_ModelFile]) -> None:
    """Refuse options that no file has any use for."""
    column_names = set(chain.from_iterable(source.column_names for source in sources))
    unused = {*(options.columns or {}).values(), *options.answer_columns} - column_names
    if unused:
        raise InputError(f"no file has a column {examples(sorted(unused))}", "check the spelling")
    classes = dict.fromkeys(chain.from_iterable(source.classes for source in sources))
    unknown = [label for label in options.label_map or {} if label not in classes]
    if unknown:
        # What is long may be somebody's text.
        short = [name for name in classes if word(name) == repr(name)]
        raise InputError(
            f"{option('label_map')} has {examples(unknown)}, but the classes of the files are"
            f" {examples(short, 20)}",
            "check the spelling",
        )


def read_member_info(path: Path) -> dict[str, dict[str, Any]]:
    """What a table says about members: a row per member, with values such as ``cost``."""
    table = read_table(path, numbers=lambda name: name in (COST, *ADDED))
    if "member" not in table.column_names:
        raise InputError(
            f"there is no column 'member' but {headings(table.column_names)}",
            "name each member in a column 'member'",
        )
    members = name_column(table, "member", path)
    names = members.names[members.codes]
    check_unique(names, f"members in {path}", "keep one row per member")
    return {
        str(name): {
            key: int(value) if key in COUNTED and value == value // 1 else value
            for key, value in row.items()
            if key != "member" and value not in (None, "") and value == value  # no NaN
        }
        for name, row in zip(names, table.to_pylist(), strict=True)
    }


def _check_same_rows(parts: Sequence[Predictions], sources: Sequence[_ModelFile]) -> None:
    """Refuse to join answers for items with answers for their annotators."""
    are_pairs = [part.annotators is not None for part in parts]
    if any(are_pairs) and not all(are_pairs):
        raise InputError(
            f"{sources[are_pairs.index(True)]} is about pairs of an item and an annotator,"
            f" {sources[are_pairs.index(False)]} about items",
            "join them separately, or give both an annotator for each row",
        )


@dataclass
class _ModelFile:
    """A file to join, how it is read, and what was found in it."""

    path: Path
    member: str
    logits: bool
    options: JoinOptions
    logits_hint: str
    is_renamed: bool = False
    """Whether ``member`` replaces the names in the file."""
    column_names: list[str] = field(default_factory=list)
    classes: tuple[str, ...] = ()
    """What it calls its classes."""
    unpredicted: list[Rows] = field(default_factory=list)
    """Rows that it names but has no numbers for."""

    @property
    def columns(self) -> Mapping[str, str]:
        return self.options.columns or {}

    def __str__(self) -> str:
        return str(self.path) if self.member == self.path.stem else f"{self.member} ({self.path})"

    def read(self) -> Predictions:
        """The predictions of its members, classes as ``label_map`` calls them."""
        path = self.path
        archives = sorted(map(str, (path / "predictions").glob("*.npz")))
        if archives:
            raise InputError(
                f"{path} is a folder of trained members, with predictions for several splits",
                f"name those of one: {' or '.join(archives)}",
            )
        if path.suffix.lower() == ".npz" or path.is_dir():
            return self._stored(read_predictions(path, invalid=self.options.invalid))
        if self.options.positive is not None:
            return self._wide(self.options.positive)
        class_names = {name for role, name in self.columns.items() if role.startswith(PREFIX)}
        table = read_table(path, numbers=lambda n: n in class_names or n.startswith(PREFIX))
        self.column_names = table.column_names
        shares = class_columns(table, self.columns)
        if self.options.answer_columns and not shares:
            return self._sampled(self.options.sampled.long(table, path))
        is_mapped = self.columns.get(ANSWER) in table.column_names
        if is_mapped or (ANSWER in table.column_names and not shares):
            return self._sampled(table)
        if self.column(table, "member") in table.column_names:
            return self._stored(self._long(table))
        return self.model(table)

    def _sampled(self, table: pa.Table) -> Predictions:
        """A table of sampled answers as the predictions of its members."""
        if self.logits:
            raise InputError(
                f"{self.path} holds sampled answers and no logits",
                _NO_LOGITS,
            )
        self._need_items(table)
        declared = self._declared(table)
        with errors_in(self.path):
            part, lacking, self.classes = self.options.sampled.predictions(
                table, self.path, self.member, lambda role: self.column(table, role), declared
            )
        if lacking.any() and self.options.missing == "error":
            k = int(np.isnan(part.probabilities[lacking]).any(axis=(0, 2)).argmax())
            unanswered = part.items[np.isnan(part.probabilities[:, k, 0])]
            raise InputError(
                f"{self.path}: member {part.members[k]!r} has no answer for"
                f" {counted(len(unanswered), 'item')}: {examples(unanswered)}",
                f"complete the file; {option('missing', 'drop')} leaves out the items that not"
                " every member answered",
            )
        self.unpredicted.append(part.rows.take(lacking))
        complete = part.take(~lacking)
        if not len(complete):
            raise InputError(f"{self.path} has no item that every member answered", "check the ids")
        return complete.named()

    def column(self, table: pa.Table, role: str) -> str:
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
                "name them item and p_<class>, or map them: --column item=NAME --column"
                " p_CLASS=NAME; if each is a model's probability of one class, --positive CLASS; if"
                " they hold sampled answers, --column answer=NAME",
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
            )
        items = self._items(table)
        values = np.column_stack(
            [number_column(table, columns[name], str(self.path)) for name in classes]
        )
        values, items = self._present(values, items, np.isnan(values).all(axis=1))
        array = self._checked(values, "NC", items, [self.member], sets)
        with errors_in(self.path):
            scale = declared.on(classes)
        return Predictions(array, Rows.of(items), (self.member,), classes, scale=scale)

    def _declared(self, table: pa.Table) -> Declared:
        with errors_in(self.path):
            return scale_of_table(table, self.options.scale)

    def _on_scale(self, part: Predictions) -> Predictions:
        with errors_in(self.path):
            scale = self.options.scale
            return part if scale is None else part.on_scale(scale)

    def _long(self, table: pa.Table) -> Predictions:
        names = {role: self.column(table, role) for role in ("item", "member", "group")}
        item, member = (name_column(table, names[role], self.path) for role in ("item", "member"))
        is_partial = np.bincount(item.codes, minlength=len(item.names)) < len(member.names)
        if self.options.missing == "drop" and is_partial.any():
            self.unpredicted.append(Rows.of(item.names[is_partial]))
            table = table.filter(pa.array(~is_partial[item.codes]))
        part = from_long_table(table, self.path, {**self.columns, **names})
        declared = self._declared(table)
        if part.scale == NOMINAL:
            with errors_in(self.path):
                part = part.order_classes(declared.classes or part.classes)
                part = replace(part, scale=declared.on(part.classes))
        sets = part.scale.is_multi_label
        array = self._checked(part.probabilities, "NKC", part.items, part.members, sets)
        return replace(part, probabilities=array)

    def _stored(self, part: Predictions) -> Predictions:
        if self.logits and not self.column_names:
            raise InputError(
                f"{self.path} holds stored predictions, which are probabilities and no logits",
                _NO_LOGITS,
            )
        self.classes = part.classes
        return self._on_scale(replace(part, classes=self._mapped(part.classes)).named())

    def _wide(self, positive: str) -> Predictions:
        """A table with the positive class's probabilities, a column per member."""
        mapped = {role: name for role, name in self.columns.items() if role != "item"}
        item = ("item", self.columns.get("item"))
        table = read_table(
            self.path, numbers=lambda n: n in mapped.values() if mapped else n not in item
        )
        self.column_names = table.column_names
        if mapped:
            members = {role: name for role, name in mapped.items() if name in table.column_names}
        else:
            members = {name: name for name in table.column_names if name not in item}
        items = self._items(table)
        if not members:
            raise InputError(
                f"{self.path} has no column of a member beside {self.column(table, 'item')!r}",
                f"name the columns of the members: {option('columns', {'MEMBER': 'COLUMN'})}",
            )
        path = str(self.path)
        values = np.column_stack([number_column(table, name, path) for name in members.values()])
        values, items = self._present(values, items, np.isnan(values).any(axis=1))
        array = self._checked(values, "NK", items, list(members))
        opposite = {"1": "0", "0": "1"}.get(positive, f"not {positive}")
        self.classes = (self.options.negative or opposite, positive)
        rows, classes = Rows.of(items), self._mapped(self.classes)
        part = Predictions(array, rows, tuple(members), classes).named()
        return self._on_scale(part.order_classes(class_order(part.classes)))

    def _mapped(self, classes: Sequence[str]) -> tuple[str, ...]:
        label_map = self.options.label_map or {}
        names = tuple(label_map.get(name, name) for name in classes)
        if len(set(names)) < len(set(classes)):
            raise InputError(
                f"{option('label_map')} gives two classes of {self.path} one name:"
                f" {examples(classes, 20)} become {examples(names, 20)}",
                "predictions of classes can't be merged; give each class a name of its own",
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
        item = self.column(table, "item")
        if item not in table.column_names:
            raise InputError(
                f"{self.path} has no column {self.columns.get('item', 'item')!r}; its columns are"
                f" {headings(table.column_names)}",
                f"name the column with the ids: {option('columns', {'item': 'NAME'})}",
            )
        return item

    def _present(self, values: Any, items: Strings, absent: Bools) -> tuple[Any, Strings]:
        """The rows that have numbers; others are refused, or noted to be left out."""
        if not absent.any():
            return values, items
        self.unpredicted.append(Rows.of(items[absent]))
        if self.options.missing == "error":
            raise InputError(
                f"{self} has no prediction for {counted(int(absent.sum()), 'item')}:"
                f" {examples(items[absent])}",
                f"complete the file; {_DROP_HINT}",
            )
        return values[~absent], items[~absent]

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
        place = f" in {self.path}"
        array = canonical(
            values,
            layout,
            logits=self.logits,
            member_names=members,
            place=place,
            logits_hint=_NO_LOGITS,
            sets=sets,
        )
        return checked(
            array, items, members, self.options.invalid, place, self.logits_hint, sets=sets
        )


def _side_by_side(
    parts: Sequence[Predictions], sources: Sequence[_ModelFile], missing: Missing
) -> Predictions:
    """The members of all parts on the items of the first one."""
    if missing == "drop":
        parts = _common_items(parts, sources)
    base = parts[0]
    aligned = [base]
    for part, source in zip(parts[1:], sources[1:], strict=True):
        aligned.append(_aligned(part, source, base, sources[0]))
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
    info = {name: values for part in aligned for name, values in part.member_info.items()}
    joined = Predictions(values, base.rows, members, base.classes, groups, scale=base.scale)
    return replace(joined, member_info=info).named()


def _aligned(
    part: Predictions, source: _ModelFile, base: Predictions, base_source: _ModelFile
) -> Predictions:
    """A part with items and classes in the order of the first one."""
    check_same_scale(part.scale, str(source), base.scale, str(base_source))
    try:
        rows = part.rows.match(base.rows, str(source), str(base_source))
    except InputError as error:
        raise InputError(error._message, f"check the ids; {_DROP_HINT}") from error
    try:
        return part.take(rows).order_classes(base.classes)
    except InputError as error:
        raise InputError(
            f"{source} is about the classes {examples(part.classes, 20)}, but {base_source}"
            f" about {examples(base.classes, 20)}",
            f"say which is which with {option('label_map', {'OTHER': 'CLASS'})}",
        ) from error


def _common_items(parts: Sequence[Predictions], sources: Sequence[_ModelFile]) -> list[Predictions]:
    """The parts with the items that all of them have; a warning names the others."""
    predicted = [part.rows for part in parts]
    unpredicted = [rows for source in sources for rows in source.unpredicted]
    items = Rows.concatenate([*predicted, *unpredicted]).distinct()
    missing = [items.take(rows.positions(items) < 0) for rows in predicted]
    left_out = Rows.concatenate(missing).distinct()
    if len(left_out) == len(items):
        raise InputError(f"no item is in every file{look_alike(items.names)}", "check the ids")
    if len(left_out):
        by_file = "; ".join(
            f"{source} has no prediction for {len(absent)}: {examples(absent.names, 10)}"
            for source, absent in zip(sources, missing, strict=True)
            if len(absent)
        )
        warn(
            f"{are(len(left_out), len(items), noun='item')} left out for every member"
            f" ({option('missing', 'drop')}): {by_file}"
            + look_alike(items.take(left_out.positions(items) >= 0).names)
        )
    return [part.take(left_out.positions(part.rows) < 0) for part in parts]
