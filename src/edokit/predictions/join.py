"""Joins files of single models, or of several members, into one `Predictions`."""

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
    check_number,
    counted,
    errors_in,
    examples,
    headings,
    one_of,
    option,
    warn,
)
from edokit._io.tables import (
    PROBABILITY,
    FileTable,
    class_columns,
    number_column,
    read_file_table,
    taken_place,
)
from edokit._names import as_names, check_unique, class_order, encode, look_alike
from edokit._types import Bools, Strings
from edokit.annotations.labels import ordered_classes
from edokit.annotations.long_table import lists_as_text, scale_of_table
from edokit.predictions.core import IDENTITY, Invalid, Predictions
from edokit.predictions.files import Lines, is_stored, name_column, read_lines
from edokit.predictions.sampled import (
    ANSWER,
    ANSWER_ROLES,
    SMOOTHING,
    Unparsed,
    answer_info,
    answering_members,
    read_answers,
)
from edokit.predictions.shards import read_predictions
from edokit.rows import Rows
from edokit.scales import DeclaredScale, ScaleLike, check_same_scale

Missing: TypeAlias = Literal["error", "drop"]
"""What to do with items that are not in every file: refuse them, or leave them out."""
_ALL_ROLES = ("item", "member", "group", *ANSWER_ROLES)
"""The roles of columns in the files, besides ``p_<class>``."""
_NO_LOGITS = "mark only the files that contain logits: FILE:logits (in Python: logits=[…])"
_DROP_HINT = f"{option('missing', 'drop')} leaves out the items that not every member predicts"


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """Options for reading and joining files of models.

    Parameters
    ----------
    names : sequence of str or None, default=None
        A new name for the member of each file; for a file of several members, a prefix of their
        names: with ``a``, ``linear-1`` becomes ``a-linear-1``.
    groups : mapping of str to str, default=None
        The group of members, by name.
    logits : bool or sequence of bool, default=False
        Whether the files contain logits: a single value, or one per file. Probabilities are then
        refused.
    invalid : {"error", "normalize"}, default="error"
        What to do with probabilities that do not sum to 1: refuse them, or divide by their sum.
    columns : mapping of str to str, default=None
        The column names in the files for ``item``, ``member``, ``group`` and ``p_<class>``, as in
        ``{"item": "id", "p_yes": "score"}``; for sampled answers also for ``answer``,
        ``annotator``, ``model``, ``prompt`` and ``persona``. Each must be in one of the files.
    label_map : mapping of str to str, default=None
        Classes to rename, as in ``{"LABEL_1": "yes"}``.
    missing : {"error", "drop"}, default="error"
        What to do with items that lack a prediction in some file: refuse them, or leave them out
        with a warning that names them.
    scale : Scale or str, default=None
        The answer scale of files that do not note theirs: ``ordinal``, ``multi-label``, or with the
        classes as in ``ordinal:low=0,mid=1,high=3``. In multi-label data, each column is a separate
        probability (or logit). Files with different scales are refused.
    classes : sequence, default=None
        All classes in order. If None, those of the scale, else those of the files; for sampled
        answers, they must be declared.
    smoothing : float, default=0.5
        The constant that is added to the count of each class of sampled answers.
    unparsed : {"error", "drop"}, default="error"
        What to do with sampled answers that are not a class: refuse them, or leave them out, with a
        warning and the number of ``failures`` in ``member_info``.
    items : iterable, default=None
        Keep only these items, such as those of a split: ``annotations.split("dev").items``.
    """

    names: Sequence[str | None] | None = None
    groups: Mapping[str, str] | None = None
    logits: bool | Sequence[bool] = False
    invalid: Invalid = "error"
    columns: Mapping[str, str] | None = None
    label_map: Mapping[str, str] | None = None
    missing: Missing = "error"
    scale: ScaleLike | None = None
    classes: Sequence[object] | None = None
    smoothing: float = SMOOTHING
    unparsed: Unparsed = "error"
    items: Iterable[object] | None = None

    def __post_init__(self) -> None:
        one_of("missing", self.missing, get_args(Missing))
        one_of("unparsed", self.unparsed, get_args(Unparsed))
        check_number("smoothing", self.smoothing, 0, 1e6)
        for role, name in (self.columns or {}).items():
            if role not in _ALL_ROLES and not role.startswith(PROBABILITY):
                raise InputError(
                    f"columns maps {role!r}, which is none of {', '.join(_ALL_ROLES)}, p_<class>",
                    f"for the column of a class write for example"
                    f" {option('columns', {'p_yes': name})}",
                    code="unknown-role",
                )

    @cached_property
    def item_names(self) -> Strings | None:
        """The items to keep; cached, since ``items`` may be an iterator."""
        if self.items is None:
            return None
        return as_names(self.items)

    def file_names(self, n_files: int) -> Sequence[str | None]:
        """The value of ``names`` for each file."""
        if not self.names:
            return [None] * n_files
        _check_length("names", self.names, n_files)
        return self.names

    def file_logits(self, n_files: int) -> Sequence[bool]:
        """The value of ``logits`` for each file."""
        if not isinstance(self.logits, Sequence):
            return [self.logits] * n_files
        if not self.logits:
            return [False] * n_files
        _check_length("logits", self.logits, n_files)
        return self.logits


def _check_length(name: str, values: Sequence[object], n_files: int) -> None:
    if len(values) != n_files:
        raise InputError(
            f"there are {len(values)} {name} for {counted(n_files, 'file')}",
            "give one for each file",
            code="lengths-differ",
        )


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
        contains sampled answers, one per row, whose shares become the probabilities. The column
        ``member`` names the member, else the columns ``model``, ``prompt`` and ``persona``, else
        the file is one member; with ``annotator``, rows are pairs of an item and an annotator.
    options : JoinOptions, default=None
        Options for reading and joining the files.
    **changes
        Fields of `JoinOptions` that differ from ``options``.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        If items or classes of the files differ, or names of members are repeated.

    Examples
    --------
    >>> from pathlib import Path
    >>> from edokit.predictions.join import join_models
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
        raise InputError("there are no files to join", "name the files", code="empty-option")
    names = options.file_names(len(files))
    logits = options.file_logits(len(files))
    sources = []
    for file, name, is_logits in zip(files, names, logits, strict=True):
        source = _ModelFile(
            path=Path(file),
            member=name or Path(file).stem,
            options=options,
            logits=bool(is_logits),
            is_renamed=bool(name),
        )
        sources.append(source)
    # Reading a file also fills in its column names and classes, which `_refuse_unused` needs.
    parts = [source.part() for source in sources]
    _refuse_unused(options, sources)
    joined = _side_by_side(parts, sources, options.missing)
    if options.groups:
        joined = joined.grouped(options.groups)
    return joined


def model_from_table(
    table: FileTable,
    path: str | Path,
    name: str,
    *,
    invalid: Invalid = "error",
    scale: ScaleLike | None = None,
) -> Predictions:
    """The predictions of one member, from a table with ``item`` and one ``p_<class>`` column per
    class; ``path`` names the table in messages."""
    options = JoinOptions(invalid=invalid, scale=scale)
    return _ModelFile(Path(path), name, options).from_table(table)


def _refuse_unused(options: JoinOptions, sources: Sequence[_ModelFile]) -> None:
    """Refuse options that apply to none of the files."""
    column_names = set(chain.from_iterable(source.column_names for source in sources))
    unused = {*(options.columns or {}).values()} - column_names
    if unused:
        raise InputError(
            f"none of the files has a column {examples(sorted(unused))}",
            "check the spelling",
            code="missing-column",
        )
    classes = dict.fromkeys(chain.from_iterable(source.classes for source in sources))
    unknown = [label for label in options.label_map or {} if label not in classes]
    if unknown:
        raise InputError(
            f"{option('label_map')} has {examples(unknown)}, but the classes of the files are"
            f" {headings(classes)}",
            "check the spelling",
            code="unknown-label",
        )


@dataclass
class _ModelFile:
    """A file to join, with the options for reading it.

    Reading it fills in the last three attributes.

    Attributes
    ----------
    member : str
        The name of its member, unless the file names its members.
    logits : bool
        Whether the file contains logits.
    is_renamed : bool
        Whether ``member`` was given: it then replaces the name of a single member in the file, and
        is the prefix of several.
    column_names : list[str]
        The names of the columns of a table.
    classes : tuple[str, ...]
        The names of its classes before `label_map` renames them.
    unpredicted : Rows or None
        Rows that lack the prediction of some member.
    """

    path: Path
    member: str
    options: JoinOptions
    logits: bool = False
    is_renamed: bool = False
    column_names: list[str] = field(default_factory=list)
    classes: tuple[str, ...] = ()
    unpredicted: Rows | None = None

    def __str__(self) -> str:
        if self.member == self.path.stem:
            return str(self.path)
        return f"{self.member} ({self.path})"

    def part(self) -> Predictions:
        """The predictions, with the classes and names that the options declare."""
        part = self._read()
        if self.options.classes is not None:
            with errors_in(self.path):
                part = part.order_classes(ordered_classes(self.options.classes, ()))
        if self.is_renamed:
            names = [self.member]
            if len(part.members) > 1:
                names = [f"{self.member}-{name}" for name in part.members]
            part = part.renamed(names)
        return part

    def _read(self) -> Predictions:
        """The predictions of the members as the file names them."""
        path = self.path
        if path.suffix.lower() != ".npz" and not path.is_dir():
            source = read_file_table(path)
            self.column_names = source.table.column_names
            if not is_stored(source.table):
                return self.from_table(source)
        if self.logits:
            raise InputError(
                f"{path} contains stored predictions, which are probabilities, not logits",
                _NO_LOGITS,
                code="not-logits",
            )
        stored = read_predictions(path, invalid=self.options.invalid)
        stored = stored.take(self._is_kept(stored.items))
        self.classes = stored.classes
        with errors_in(path):
            part = replace(stored, classes=self._relabelled(stored.classes))
            part.check_names()
            if self.options.scale is not None:
                part = part.on_scale(self.options.scale)
            return part

    def from_table(self, source: FileTable) -> Predictions:
        """The predictions in a table: probabilities, logits or sampled answers."""
        with errors_in(self.path):
            declared = scale_of_table(source.table, self.options.scale)
        column_by_role = self.options.columns or {}
        table = _by_role(source.table, column_by_role)
        if "item" not in table.column_names:
            item_column = column_by_role.get("item", "item")
            raise InputError(
                f"{self.path} lacks the column {item_column!r} with the ids of the items; its"
                f" columns are {headings(self.column_names or table.column_names)}",
                f"name that column: {option('columns', {'item': 'NAME'})}",
                code="missing-column",
            )
        column_by_class = class_columns(table.column_names)
        # Beside columns of classes, a column named "answer" counts only if the options name it.
        is_declared = column_by_role.get(ANSWER) in self.column_names
        if is_declared or (ANSWER in table.column_names and not column_by_class):
            return self._from_answers(replace(source, table=table), declared)
        return self._from_class_columns(replace(source, table=table), column_by_class, declared)

    def _from_class_columns(
        self, source: FileTable, column_by_class: Mapping[str, str], declared: DeclaredScale
    ) -> Predictions:
        """Read a table with a column per class, and a row per item or per item and member."""
        # The order of the classes may still change, so that here only the kind of scale counts.
        row_scale = None
        fewest_columns = 2
        if declared.kind == "multi-label":
            row_scale = "multi-label"
            fewest_columns = 1
        if len(column_by_class) < fewest_columns:
            raise InputError(
                f"{self.path} does not have one p_<class> column per class; its columns are"
                f" {headings(source.table.column_names)}",
                "name them item and p_<class>, or map them:"
                f" {option('columns', {'item': 'NAME', 'p_CLASS': 'NAME'})}; for a column of"
                f" sampled answers, {option('columns', {'answer': 'NAME'})}",
                code="missing-column",
            )
        kept_source = self._kept_items(source)
        numbers = []
        for name in column_by_class.values():
            numbers.append(
                number_column(kept_source.table, name, str(self.path), kept_source.place)
            )
        lines = self._lines(kept_source)
        self.classes = tuple(column_by_class)
        # Missing predictions are NaN, as are empty cells; `_complete` deals with both.
        values, _ = lines.stacked(np.column_stack(numbers), self.path)
        values, rows = self._complete(values, lines)
        with errors_in(self.path):
            part = Predictions.from_arrays(
                values,
                items=rows.item_names,
                annotators=rows.annotator_names,
                members=lines.member.names,
                classes=self._relabelled(self.classes),
                groups=lines.groups,
                layout="NKC",
                logits=self.logits,
                invalid=self.options.invalid,
                scale=row_scale,
            )
            part = part.order_classes(declared.classes or class_order(part.classes))
            return replace(part, scale=declared.resolve(part.classes))

    def _from_answers(self, source: FileTable, declared: DeclaredScale) -> Predictions:
        """Read a table with one row per sampled answer: the smoothed shares of each class."""
        if self.logits:
            raise InputError(
                f"{self.path} contains sampled answers, not logits", _NO_LOGITS, code="not-logits"
            )
        options = self.options
        # Sets of labels may be stored as lists.
        table = lists_as_text(source.table, ANSWER)
        texts = encode(table[ANSWER], ANSWER).names
        # `label_map` may name any answer of the file, with or without spaces around it.
        self.classes = tuple({*texts, *(name.strip() for name in texts)})
        kept_source = self._kept_items(replace(source, table=table))
        lines = self._lines(kept_source, sampled=True)
        with errors_in(self.path):
            classes = None
            if options.classes is not None:
                classes = ordered_classes(options.classes, ())
            answers = read_answers(
                self.path,
                encode(kept_source.table[ANSWER], ANSWER),
                declared,
                classes,
                options.label_map or {},
                options.unparsed,
            )
            scale = declared.resolve(answers.classes)
        cells = lines.cells[answers.is_parsed]
        counts = np.zeros((math.prod(lines.shape), len(answers.classes)))
        np.add.at(counts, cells, answers.is_class[answers.is_parsed])
        total = np.bincount(cells, minlength=len(counts))[:, None]
        # Without answers, 0 / 0 is NaN, which marks a missing prediction.
        with np.errstate(invalid="ignore"):
            shares = np.where(total, scale.smoothed(counts, total, options.smoothing), np.nan)
        array, rows = self._complete(shares.reshape(*lines.shape, -1), lines)
        info = answer_info(kept_source, self.path, lines.member, answers.is_parsed)
        predictions = Predictions(
            array,
            rows,
            members=tuple(lines.member.names),
            classes=answers.classes,
            groups=lines.groups,
            scale=scale,
        )
        with errors_in(self.path):
            return predictions.with_info(info)

    def _kept_items(self, source: FileTable) -> FileTable:
        """The lines of the items to keep; messages still say where they are in the file."""
        item = name_column(source.table, "item", self.path, source.place)
        is_kept = self._is_kept(item.names)[item.codes]
        return FileTable(
            source.table.filter(pa.array(is_kept)),
            taken_place(source.place, np.flatnonzero(is_kept)),
        )

    def _is_kept(self, items: Strings) -> Bools:
        """Whether to keep each item; a file that contains none of the items to keep is refused."""
        if self.options.item_names is None:
            return np.ones(len(items), dtype=bool)
        is_kept = np.isin(items, self.options.item_names)
        if not is_kept.any():
            raise InputError(
                f"{self.path} contains none of the items to keep"
                f" ({examples(self.options.item_names)}); its items are {examples(items)}",
                "check the ids",
                code="unknown-item",
            )
        return is_kept

    def _lines(self, source: FileTable, *, sampled: bool = False) -> Lines:
        """The row and the member of each line.

        Without a column of members, the columns of sampled answers that identify a model name them,
        and any other file is one member.
        """
        table = source.table
        with errors_in(self.path):
            if "member" in table.column_names:
                member = name_column(table, "member", self.path, source.place)
            elif sampled:
                member = answering_members(table, self.path, self.member, IDENTITY)
            else:
                member = answering_members(table, self.path, self.member, ())
                # Other columns, such as annotators, only count in tables that name their members.
                table = table.select(["item"])
            return read_lines(table, self.path, member, source.place)

    def _complete(self, array: npt.NDArray[Any], lines: Lines) -> tuple[npt.NDArray[Any], Rows]:
        """The rows with predictions of all members; others are refused or kept in `unpredicted`."""
        absent = np.isnan(array).all(axis=2)
        if not absent.any():
            return array, lines.rows
        if self.options.missing == "error":
            k = int(absent.any(axis=0).argmax())
            rows = lines.rows.take(absent[:, k])
            raise InputError(
                f"{self.path}: member {lines.member.names[k]!r} lacks a prediction for"
                f" {counted(len(rows), rows.noun)}: {examples(rows.names)}",
                f"complete the file; {_DROP_HINT}",
                code="missing-predictions",
            )
        is_incomplete = absent.any(axis=1)
        self.unpredicted = lines.rows.take(is_incomplete)
        return array[~is_incomplete], lines.rows.take(~is_incomplete)

    def _relabelled(self, classes: Sequence[str]) -> tuple[str, ...]:
        """The names of the classes after `label_map`."""
        label_map = self.options.label_map or {}
        return tuple(label_map.get(name, name) for name in classes)


def _by_role(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """The table with columns renamed to their roles.

    A column whose name is a role is left out if ``columns`` gives that role to another one.
    """
    role_by_column = {name: role for role, name in columns.items() if name in table.column_names}
    replaced = {*role_by_column.values()} - {*role_by_column}
    table = table.select([name for name in table.column_names if name not in replaced])
    return table.rename_columns([role_by_column.get(name, name) for name in table.column_names])


def _side_by_side(
    parts: Sequence[Predictions], sources: Sequence[_ModelFile], missing: Missing
) -> Predictions:
    """The members of all parts on the rows of the first one."""
    if missing == "drop":
        parts = _common_rows(parts, sources)
    base = parts[0]
    aligned = [base]
    for part, source in zip(parts[1:], sources[1:], strict=True):
        aligned.append(_aligned(part, source, base, sources[0]))
    members = tuple(chain.from_iterable(part.members for part in aligned))
    check_unique(
        as_names(members),
        "names of members",
        "write a=FILE b=FILE (in Python: names=['a', 'b']): the name of a model, or the prefix of"
        " the members of a pool",
    )
    groups: list[str] = []
    info: dict[str, Mapping[str, object]] = {}
    for part in aligned:
        if part.groups is None:
            groups += [""] * len(part.members)  # an empty name means no group
        else:
            groups += part.groups
        info |= part.member_info
    joined = Predictions(
        np.concatenate([part.probabilities for part in aligned], axis=1),
        base.rows,
        members,
        base.classes,
        scale=base.scale,
        member_info=info,
    )
    if any(groups):
        joined = replace(joined, groups=tuple(groups))
    joined.check_names()
    return joined


def _aligned(
    part: Predictions, source: _ModelFile, base: Predictions, base_source: _ModelFile
) -> Predictions:
    """A part with rows and classes in the order of the first one."""
    check_same_scale(part.scale, f"file {source}", base.scale, f"file {base_source}")
    try:
        rows = part.rows.match(base.rows, str(source), str(base_source))
    except InputError as error:
        raise InputError(error._message, f"check the ids; {_DROP_HINT}", code=error.code) from error
    try:
        return part.take(rows).order_classes(base.classes)
    except InputError as error:
        raise InputError(
            f"the classes of {source} are {examples(part.classes, 20)}, but those of {base_source}"
            f" are {examples(base.classes, 20)}",
            f"rename them with {option('label_map', {'OTHER': 'CLASS'})}",
            code="classes-differ",
        ) from error


def _common_rows(parts: Sequence[Predictions], sources: Sequence[_ModelFile]) -> list[Predictions]:
    """The parts with the rows that all of them contain; a warning names the others."""
    unpredicted = [source.unpredicted for source in sources if source.unpredicted is not None]
    rows = Rows.concatenate([*(part.rows for part in parts), *unpredicted]).distinct()
    is_common = np.all([part.rows.positions(rows) >= 0 for part in parts], axis=0)
    left_out = rows.take(~is_common)
    if not is_common.any():
        files = ", ".join(map(str, sources))
        raise InputError(
            f"{files}: no item has predictions of every member{look_alike(rows.names)}",
            "check the ids",
            code="items-differ",
        )
    if len(left_out):
        warn(
            f"{are(len(left_out), len(rows), noun=rows.noun)} left out for every member"
            f" ({option('missing', 'drop')}): {examples(left_out.names, 10)}"
            + look_alike(left_out.names)
        )
    # A position of −1 means that a row is not among those left out.
    return [part.take(left_out.positions(part.rows) < 0) for part in parts]
