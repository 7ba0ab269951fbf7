"""Files of single models, or of pools of them, side by side as one `Predictions`."""

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
from edokit._io.tables import PROBABILITY, class_columns, number_column, read_table
from edokit._names import as_names, check_unique, class_order, encode, look_alike
from edokit._types import Bools, Strings
from edokit.annotations.labels import ordered_classes
from edokit.annotations.long_table import lists_as_text, scale_of_table
from edokit.predictions.core import SOURCES, Invalid, Predictions
from edokit.predictions.files import Lines, is_stored, name_column, read_lines
from edokit.predictions.sampled import (
    ANSWER,
    ROLES,
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
"""What to do with items that not every file has: refuse them, or leave them out by name."""
_ROLES = ("item", "member", "group", *ROLES)
_NO_LOGITS = "mark only the files that hold logits: FILE:logits (in Python: logits=[…])"
_DROP_HINT = f"{option('missing', 'drop')} leaves out the items that not every member predicts"


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """How files of models are read and joined.

    Parameters
    ----------
    names : sequence of str or None, default=None
        Another name for the member of each file; where a file holds several members, a prefix:
        ``a`` makes ``linear-1`` of it ``a-linear-1``.
    groups : mapping of str to str, default=None
        The group of members, by name.
    logits : bool or sequence of bool, default=False
        Whether the files hold logits: all of them, or one by one. Numbers that are probabilities
        already are refused then.
    invalid : {"error", "normalize"}, default="error"
        What to do with probabilities that do not sum to 1: refuse them, or divide by their sum.
    columns : mapping of str to str, default=None
        The files' own column names for ``item``, ``member``, ``group`` and ``p_<class>``, as in
        ``{"item": "id", "p_yes": "score"}``; of sampled answers also for ``answer``,
        ``annotator``, ``model``, ``prompt`` and ``persona``.
    label_map : mapping of str to str, default=None
        Classes to read as others, as in ``{"LABEL_1": "yes"}``.
    missing : {"error", "drop"}, default="error"
        What to do with items that a file has no prediction for: refuse them, or leave them out
        with a warning that names them.
    scale : Scale or str, default=None
        The answer scale of files that note none: ``ordinal``, ``multi-label``, or with the classes
        as in ``ordinal:low=0,mid=1,high=3``. Multi-label columns are probabilities (or logits) of
        each label on its own. Files of different scales are refused.
    classes : sequence, default=None
        All classes, in order. None: those of the scale, else of the files; of sampled answers they
        must be declared.
    smoothing : float, default=0.5
        What is added to the count of each class where answers were sampled.
    unparsed : {"error", "drop"}, default="error"
        What to do with sampled answers that are no class: refuse them, or leave them out, with a
        warning and the number of ``failures`` in ``member_info``.
    items : iterable, default=None
        Keep these items alone, such as those of a split: ``annotations.split("dev").items``.
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
            if role not in _ROLES and not role.startswith(PROBABILITY):
                raise InputError(
                    f"columns maps {role!r}, which is none of {', '.join(_ROLES)}, p_<class>",
                    f"for the column of a class write for example"
                    f" {option('columns', {'p_yes': name})}",
                    code="unknown-role",
                )

    @cached_property
    def item_names(self) -> Strings | None:
        """The items to keep; ``items`` may be an iterator, which can be read once."""
        return None if self.items is None else as_names(self.items)

    def of_files(self, name: str, files: int) -> Sequence[Any]:
        """The values of ``names`` or ``logits``, one for each file."""
        values = getattr(self, name)
        if not isinstance(values, Sequence) or not values:
            return [values or None] * files
        if len(values) != files:
            raise InputError(
                f"there are {len(values)} {name} for {counted(files, 'file')}",
                "give one for each file",
                code="lengths-differ",
            )
        return values


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
        raise InputError("there is no file to join", "name the files", code="empty-option")
    names, logits = (options.of_files(name, len(files)) for name in ("names", "logits"))
    sources = [
        _ModelFile(Path(file), name or Path(file).stem, options, bool(in_logits), bool(name))
        for file, name, in_logits in zip(files, names, logits, strict=True)
    ]
    parts = [source.part() for source in sources]
    _refuse_unused(options, sources)
    joined = _side_by_side(parts, sources, options.missing)
    return joined.grouped(options.groups) if options.groups else joined


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
    return _ModelFile(Path(path), name, options).from_table(table)


def _refuse_unused(options: JoinOptions, sources: Sequence[_ModelFile]) -> None:
    """Refuse options that no file has any use for."""
    column_names = set(chain.from_iterable(source.column_names for source in sources))
    unused = {*(options.columns or {}).values()} - column_names
    if unused:
        raise InputError(
            f"no file has a column {examples(sorted(unused))}",
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
    """A file to join, how it is read, and what was found in it.

    Attributes
    ----------
    is_renamed : bool
        Whether ``member`` replaces the names in the file.
    classes : tuple[str, ...]
        What it calls its classes.
    unpredicted : Rows or None
        Rows that it names but that not every member has numbers for.
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
        return str(self.path) if self.member == self.path.stem else f"{self.member} ({self.path})"

    def part(self) -> Predictions:
        """The predictions, with the classes and names that the options give them."""
        part = self._read()
        if self.options.classes is not None:
            with errors_in(self.path):
                part = part.order_classes(ordered_classes(self.options.classes, ()))
        if self.is_renamed:
            several = len(part.members) > 1
            part = part.renamed(
                [f"{self.member}-{name}" if several else self.member for name in part.members]
            )
        return part

    def _read(self) -> Predictions:
        path = self.path
        if path.suffix.lower() != ".npz" and not path.is_dir():
            table = read_table(path)
            self.column_names = table.column_names
            if not is_stored(table):
                return self.from_table(table)
        if self.logits:
            raise InputError(
                f"{path} holds stored predictions, which are probabilities and no logits",
                _NO_LOGITS,
                code="not-logits",
            )
        stored = read_predictions(path, invalid=self.options.invalid)
        stored = stored.take(self._is_listed(stored.items))
        self.classes = stored.classes
        with errors_in(path):
            part = replace(stored, classes=self._mapped(stored.classes))
            part.check_names()
            return part if self.options.scale is None else part.on_scale(self.options.scale)

    def from_table(self, table: pa.Table) -> Predictions:
        """The predictions in a table: probabilities, logits or sampled answers."""
        with errors_in(self.path):
            declared = scale_of_table(table, self.options.scale)
        mapped = self.options.columns or {}
        table = _by_role(table, mapped)
        if "item" not in table.column_names:
            raise InputError(
                f"{self.path} has no column {mapped.get('item', 'item')!r}; its columns are"
                f" {headings(table.column_names)}",
                f"name the column with the ids: {option('columns', {'item': 'NAME'})}",
                code="missing-column",
            )
        columns = class_columns(table.column_names)
        is_mapped = mapped.get(ANSWER) in self.column_names
        if is_mapped or (ANSWER in table.column_names and not columns):
            return self._of_answers(table, declared)
        return self._of_classes(table, columns, declared)

    def _of_classes(
        self, table: pa.Table, columns: Mapping[str, str], declared: DeclaredScale
    ) -> Predictions:
        """A table with a column per class, and a row per item or per item and member."""
        if len(columns) < (1 if declared.kind == "multi-label" else 2):
            raise InputError(
                f"{self.path} does not have one p_<class> column per class; its columns are"
                f" {headings(table.column_names)}",
                "name them item and p_<class>, or map them:"
                f" {option('columns', {'item': 'NAME', 'p_CLASS': 'NAME'})}; if one holds sampled"
                f" answers, {option('columns', {'answer': 'NAME'})}",
                code="missing-column",
            )
        table = self._listed_items(table)
        numbers = [number_column(table, name, str(self.path)) for name in columns.values()]
        lines = self._lines(table)
        self.classes = tuple(columns)
        values, _ = lines.stacked(np.column_stack(numbers), self.path)
        values, rows = self._complete(values, lines)
        with errors_in(self.path):
            part = Predictions.from_arrays(
                values,
                items=rows.item_names,
                annotators=rows.annotator_names,
                members=lines.member.names,
                classes=self._mapped(self.classes),
                groups=lines.groups,
                layout="NKC",
                logits=self.logits,
                invalid=self.options.invalid,
                scale="multi-label" if declared.kind == "multi-label" else None,
            )
            part = part.order_classes(declared.classes or class_order(part.classes))
            return replace(part, scale=declared.resolve(part.classes))

    def _of_answers(self, table: pa.Table, declared: DeclaredScale) -> Predictions:
        """A table with one row per sampled answer: the shares of each class, smoothed."""
        if self.logits:
            raise InputError(
                f"{self.path} holds sampled answers and no logits", _NO_LOGITS, code="not-logits"
            )
        options = self.options
        table = lists_as_text(table, ANSWER)
        texts = encode(table[ANSWER], ANSWER).names
        self.classes = tuple({*texts, *(name.strip() for name in texts)})
        table = self._listed_items(table)
        lines = self._lines(table, sampled=True)
        with errors_in(self.path):
            answers = read_answers(
                self.path,
                encode(table[ANSWER], ANSWER),
                declared,
                None if options.classes is None else ordered_classes(options.classes, ()),
                options.label_map or {},
                options.unparsed,
            )
            scale = declared.resolve(answers.classes)
        cells = lines.cells[answers.is_parsed]
        counts = np.zeros((math.prod(lines.shape), len(answers.classes)))
        np.add.at(counts, cells, answers.is_class[answers.is_parsed])
        total = np.bincount(cells, minlength=len(counts))[:, None]
        with np.errstate(invalid="ignore"):
            shares = np.where(total, scale.smoothed(counts, total, options.smoothing), np.nan)
        array, rows = self._complete(shares.reshape(*lines.shape, -1), lines)
        info = answer_info(table, self.path, lines.member, answers.is_parsed)
        fields = rows, tuple(lines.member.names), answers.classes, lines.groups, scale
        with errors_in(self.path):
            return Predictions(array, *fields).with_info(info)

    def _listed_items(self, table: pa.Table) -> pa.Table:
        """The lines of the items to keep."""
        item = name_column(table, "item", self.path)
        return table.filter(pa.array(self._is_listed(item.names)[item.codes]))

    def _is_listed(self, items: Strings) -> Bools:
        """Whether each item is to be kept; a file without any of them is refused."""
        if self.options.item_names is None:
            return np.ones(len(items), dtype=bool)
        is_listed = np.isin(items, self.options.item_names)
        if not is_listed.any():
            raise InputError(
                f"{self.path} holds none of these items, but {examples(items)}",
                "check the ids",
                code="unknown-item",
            )
        return is_listed

    def _lines(self, table: pa.Table, *, sampled: bool = False) -> Lines:
        """What each line is about; without a column of members, the file is one."""
        is_long = "member" in table.column_names
        if is_long:
            member = name_column(table, "member", self.path)
        else:
            member = answering_members(table, self.path, self.member, SOURCES if sampled else ())
        if not is_long and not sampled:
            table = table.select(["item"])
        return read_lines(table, self.path, member)

    def _complete(self, array: npt.NDArray[Any], lines: Lines) -> tuple[npt.NDArray[Any], Rows]:
        """The rows that every member has numbers for; others are refused, or noted."""
        absent = np.isnan(array).all(axis=2)
        if not absent.any():
            return array, lines.rows
        if self.options.missing == "error":
            k = int(absent.any(axis=0).argmax())
            rows = lines.rows.take(absent[:, k])
            raise InputError(
                f"{self.path}: member {lines.member.names[k]!r} has no prediction for"
                f" {counted(len(rows), rows.noun)}: {examples(rows.names)}",
                f"complete the file; {_DROP_HINT}",
                code="missing-predictions",
            )
        lacking = absent.any(axis=1)
        self.unpredicted = lines.rows.take(lacking)
        return array[~lacking], lines.rows.take(~lacking)

    def _mapped(self, classes: Sequence[str]) -> tuple[str, ...]:
        label_map = self.options.label_map or {}
        return tuple(label_map.get(name, name) for name in classes)


def _by_role(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """The table with its columns called by their roles; a mapped one replaces one so called."""
    role_of = {name: role for role, name in columns.items() if name in table.column_names}
    replaced = {*role_of.values()} - {*role_of}
    table = table.select([name for name in table.column_names if name not in replaced])
    return table.rename_columns([role_of.get(name, name) for name in table.column_names])


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
    groups = tuple(
        chain.from_iterable(part.groups or ("",) * len(part.members) for part in aligned)
    )
    values = np.concatenate([part.probabilities for part in aligned], axis=1)
    info = {name: facts for part in aligned for name, facts in part.member_info.items()}
    known_groups = groups if any(groups) else None
    joined = Predictions(values, base.rows, members, base.classes, known_groups, base.scale, info)
    joined.check_names()
    return joined


def _aligned(
    part: Predictions, source: _ModelFile, base: Predictions, base_source: _ModelFile
) -> Predictions:
    """A part with rows and classes in the order of the first one."""
    check_same_scale(part.scale, str(source), base.scale, str(base_source))
    try:
        rows = part.rows.match(base.rows, str(source), str(base_source))
    except InputError as error:
        raise InputError(error._message, f"check the ids; {_DROP_HINT}", code=error.code) from error
    try:
        return part.take(rows).order_classes(base.classes)
    except InputError as error:
        raise InputError(
            f"{source} is about the classes {examples(part.classes, 20)}, but {base_source}"
            f" about {examples(base.classes, 20)}",
            f"say which is which with {option('label_map', {'OTHER': 'CLASS'})}",
            code="classes-differ",
        ) from error


def _common_rows(parts: Sequence[Predictions], sources: Sequence[_ModelFile]) -> list[Predictions]:
    """The parts with the rows that all of them have; a warning names the others."""
    unpredicted = [rows for source in sources if (rows := source.unpredicted) is not None]
    items = Rows.concatenate([*(part.rows for part in parts), *unpredicted]).distinct()
    is_common = np.all([part.rows.positions(items) >= 0 for part in parts], axis=0)
    left_out = items.take(~is_common)
    if not is_common.any():
        files = ", ".join(map(str, sources))
        raise InputError(
            f"{files}: no item has predictions of every member{look_alike(items.names)}",
            "check the ids",
            code="items-differ",
        )
    if len(left_out):
        warn(
            f"{are(len(left_out), len(items), noun=items.noun)} left out for every member"
            f" ({option('missing', 'drop')}): {examples(left_out.names, 10)}"
            + look_alike(left_out.names)
        )
    return [part.take(left_out.positions(part.rows) < 0) for part in parts]
