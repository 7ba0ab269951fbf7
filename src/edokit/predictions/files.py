"""One file of predictions: .npz, or Parquet with one row per (item, member)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import (
    EDOError,
    InputError,
    Place,
    counted,
    data_row,
    errors_in,
    examples,
    headings,
)
from edokit._io.atomic import check_file, whole_file
from edokit._io.documents import parse_json
from edokit._io.npz import read_arrays, write_arrays
from edokit._io.tables import (
    PROBABILITY,
    TABLE_SUFFIXES,
    class_columns,
    number_column,
    read_table,
    write_table,
)
from edokit._names import Encoded, as_names, class_order, encode, text_array
from edokit._types import Bools, Strings
from edokit.predictions.core import Invalid, MemberInfo, Predictions
from edokit.rows import Rows, in_order
from edokit.scales import NOMINAL, DeclaredScale, Scale

SUFFIXES = (".npz", ".parquet")
_NEEDED = ("probabilities", "items", "members", "classes")
_OPTIONAL = ("groups", "annotators")
_CLASSES = b"edokit.classes"
"""Metadata key of a table for the order of its classes."""
_MOST_CELLS = 100
"""Largest number of pairs of an item and a member per line of a table; above it, at least 99 % of
the predictions are missing."""
_SCALE = b"edokit.scale"
"""Metadata key for the answer scale, unless it is nominal."""
_INFO = b"edokit.member_info"
"""Metadata key for the facts about members, as JSON."""


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write predictions to one file.

    Parameters
    ----------
    predictions : Predictions
    path : str or Path
        A file ending in .npz (arrays) or .parquet (one row per item and member). It is written
        completely or not at all.

    Raises
    ------
    InputError
        If the file has another suffix or can't be written.

    Examples
    --------
    >>> import edokit
    >>> predictions = edokit.Predictions.from_arrays(
    ...     {"a": [[0.9, 0.1], [0.2, 0.8]], "b": [[0.7, 0.3], [0.4, 0.6]]}, items=["x", "y"]
    ... )
    >>> edokit.write_predictions(predictions, "dev.npz")
    >>> edokit.read_predictions("dev.npz").members
    ('a', 'b')
    """
    path = Path(path)
    check_ending(path)
    if path.suffix.lower() == ".npz":
        arrays: dict[str, npt.NDArray[Any]] = {"probabilities": predictions.probabilities}
        for name in ("items", "members", "classes", "groups", "annotators"):
            names = getattr(predictions, name)
            if names is None:
                continue
            arrays[name] = np.array(list(names), dtype=str)
            # numpy pads text with NUL characters, and removes them when it reads.
            if arrays[name].tolist() != list(names):
                raise InputError(
                    f"the name of one of the {name} ends in a NUL character, which .npz can't keep",
                    "rename it, or write a .parquet file",
                    code="invalid-name",
                )
        if predictions.scale != NOMINAL:
            arrays["scale"] = np.array([predictions.scale.to_text(predictions.classes)])
        if predictions.member_info:
            arrays["member_info"] = np.array([json.dumps(predictions.member_info)])
        with whole_file(path) as temporary, temporary.open("wb") as stream:
            write_arrays(stream, arrays)
    else:
        write_table(long_table(predictions), path)


def check_ending(path: Path) -> None:
    """Refuse files other than .npz and .parquet."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"predictions are written to .npz or .parquet files, not to {path}",
            "end the name of the file in .npz or .parquet",
            code="unknown-ending",
        )


def read_file(path: Path, invalid: Invalid = "error") -> Predictions:
    """The predictions in one .npz or Parquet file."""
    check_file(path)
    with errors_in(path):
        if path.suffix.lower() == ".npz":
            return _read_npz(path, invalid)
        if path.suffix.lower() == ".parquet":
            return from_long_table(read_table(path), path).checked(invalid)
    hint = "make one with `edo predictions join`, or `edo score` for a Hugging Face model"
    if path.suffix.lower() in TABLE_SUFFIXES:
        hint = f"make one with `edo predictions join {path} --out NAME.npz`"
    raise InputError(
        f"{path} is neither an .npz or .parquet file of predictions nor a folder of them",
        hint,
        code="unknown-ending",
    )


def _read_npz(path: Path, invalid: Invalid) -> Predictions:
    """The predictions in an .npz file."""
    try:
        arrays = read_arrays(path, [*_NEEDED, *_OPTIONAL, "scale", "member_info"])
    except (EDOError, MemoryError):
        raise
    # A damaged archive may raise any exception of zipfile, zlib and numpy.
    except Exception as error:
        raise InputError(
            f"{path} can't be read as an .npz file of plain arrays: {error}",
            "write it again; object arrays are never loaded",
            code="unreadable-file",
        ) from error
    missing = [name for name in _NEEDED if name not in arrays]
    if missing:
        raise InputError(
            f"{path} lacks {counted(len(missing), 'array')}: {examples(missing)}; predictions need"
            f" {', '.join(_NEEDED)}",
            "write it with edokit.write_predictions or `edo predictions join`",
            code="missing-array",
        )
    # Each of these is an array of one text, or absent.
    notes = {name: "".join(as_names(arrays.get(name, ()))) for name in ("scale", "member_info")}
    names: Any = {name: arrays.get(name) for name in (*_NEEDED[1:], *_OPTIONAL)}
    return Predictions.from_arrays(
        arrays["probabilities"],
        **names,
        layout="NKC",
        invalid=invalid,
        scale=notes["scale"] or NOMINAL,
        member_info=_noted_info(notes["member_info"]),
    )


def _noted_scale(text: str, classes: Sequence[str]) -> Scale:
    """The scale noted in a file; nominal without a note."""
    if not text:
        return NOMINAL
    return DeclaredScale(text).resolve(classes)


def _noted_info(text: str) -> MemberInfo:
    """The facts about members noted in a file, if any."""
    if not text:
        return {}
    info = parse_json(text, "member_info")
    if not isinstance(info, dict):
        raise InputError(
            "member_info is not a JSON object with an entry per member",
            "write the file again",
            code="wrong-content",
        )
    return info


def _noted(schema: pa.Schema, key: bytes) -> str:
    """The text noted in the metadata of a table; empty without a note."""
    return bytes((schema.metadata or {}).get(key, b"")).decode("utf-8", "replace")


def from_long_table(table: pa.Table, path: Path) -> Predictions:
    """The predictions in a table with rows in any order; probabilities are not yet checked."""
    for name in ("item", "member"):
        if name not in table.column_names:
            raise InputError(
                f"{path} lacks the column {name!r} among {headings(table.column_names)};"
                " predictions need item, member and p_<class>",
                "one file per model becomes predictions with `edo predictions join`",
                code="missing-column",
            )
    column_by_class = class_columns(table.column_names)
    classes = _class_order(table, column_by_class)
    noted_scale = _noted(table.schema, _SCALE)
    fewest_classes = 2
    if noted_scale:
        # Multi-label data may have a single label.
        fewest_classes = 1
    if len(classes) < fewest_classes:
        raise InputError(
            f"{path} has {counted(len(classes), 'p_<class> column')}; predictions need one per"
            f" class, at least {fewest_classes}",
            "name them p_0, p_1, …",
            code="missing-column",
        )
    lines = read_lines(table, path, name_column(table, "member", path))
    numbers = [number_column(table, column_by_class[name], str(path)) for name in classes]
    array, is_absent = lines.stacked(np.column_stack(numbers), path)
    if is_absent.any():
        n, k = np.argwhere(is_absent)[0]
        raise InputError(
            f"{path} lacks the row of {lines.rows.noun} {lines.rows.names[n]!r} and member"
            f" {lines.member.names[k]!r}",
            "complete the file, or join it from one file per model",
            code="missing-predictions",
        )
    with errors_in(path):
        predictions = Predictions(
            array,
            lines.rows,
            members=tuple(lines.member.names),
            classes=classes,
            groups=lines.groups,
            scale=_noted_scale(noted_scale, classes),
        )
        return predictions.with_info(_noted_info(_noted(table.schema, _INFO)))


class Lines(NamedTuple):
    """The row and the member of each line of a table.

    Attributes
    ----------
    rows : Rows
        The distinct rows [N].
    row_codes : ndarray of int32
        The row of each line [n], as a position in ``rows``.
    member : Encoded
        The member of each line [n], and the distinct members [K].
    groups : tuple[str, ...] or None
        The group of each member [K].
    """

    rows: Rows
    row_codes: npt.NDArray[np.int32]
    member: Encoded
    groups: tuple[str, ...] | None

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        return len(self.rows), len(self.member.names)

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """The index of each line in the flattened array of rows and members [N · K]."""
        return self.row_codes.astype(np.int64) * len(self.member.names) + self.member.codes

    def stacked(self, values: npt.NDArray[Any], path: Path) -> tuple[npt.NDArray[Any], Bools]:
        """The values [n, V] of lines as [N, K, V], and whether a prediction is missing [N, K]."""
        cells = self.cells
        shape = (*self.shape, values.shape[1])
        size = math.prod(self.shape)
        if len(cells) == size and in_order(cells):  # the order of `write_predictions`
            return values.reshape(shape), np.zeros(self.shape, dtype=bool)
        is_absent = np.ones(size, dtype=bool)
        is_absent[cells] = False
        n_filled = size - is_absent.sum()
        if n_filled < len(cells):  # some lines fill the same cell
            line = int(pd.Index(cells).duplicated().argmax())
            raise InputError(
                f"{path} has several rows for {self.rows.noun}"
                f" {self.rows.names[self.row_codes[line]]!r} and member"
                f" {self.member.names[self.member.codes[line]]!r}",
                f"keep one row per {self.rows.noun} and member",
                code="duplicate-prediction",
            )
        array = np.full((size, values.shape[1]), np.nan, dtype=values.dtype)
        array[cells] = values
        return array.reshape(shape), is_absent.reshape(self.shape)


def read_lines(table: pa.Table, path: Path, member: Encoded, place: Place = data_row) -> Lines:
    """The rows and members of a table's lines; columns of annotators and groups are optional."""
    items = name_column(table, "item", path, place)
    rows = Rows.from_names(items.names)
    row_codes = items.codes
    groups = None
    if "annotator" in table.column_names:
        annotators = annotator_column(table)
        line_rows = Rows(items.names, items.codes, annotators.names, annotators.codes)
        rows = line_rows.distinct()
        row_codes = rows.positions(line_rows).astype(np.int32)
    if "group" in table.column_names:
        groups = per_member(table, "group", member, path, place)
    if len(rows) * len(member.names) > _MOST_CELLS * len(table):
        raise InputError(
            f"{path} has {counted(len(member.names), 'member')} and"
            f" {counted(len(rows), rows.noun)} in {counted(len(table), 'row')}, so that nearly all"
            " predictions are missing",
            "check the column that names the members",
            code="sparse-predictions",
        )
    return Lines(rows, row_codes, member, groups)


def is_stored(table: pa.Table) -> bool:
    """Whether `write_predictions` wrote the table."""
    return _CLASSES in (table.schema.metadata or {})


def annotator_column(table: pa.Table) -> Encoded:
    """The annotator of each row; a gap becomes "", the annotator of anonymous answers."""
    encoded = encode(table["annotator"], "annotator")
    if (encoded.codes >= 0).all():
        return encoded
    codes = np.where(encoded.codes < 0, len(encoded.names), encoded.codes).astype(np.int32)
    return Encoded(codes, np.append(encoded.names, ""))


def long_table(predictions: Predictions) -> pa.Table:
    """One line per row and member.

    The columns are ``item``, ``member``, for pairs ``annotator``, ``group`` if members have groups,
    and a ``p_<class>`` for each class.
    """
    n, k, _ = predictions.shape

    def repeated(names: Sequence[str] | Strings, codes: npt.NDArray[Any]) -> pa.Array:
        values = text_array(names, "names in predictions")
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)

    row_codes = np.repeat(np.arange(n), k)
    member_codes = np.tile(np.arange(k), n)
    columns: dict[str, Any] = {
        "item": repeated(predictions.items, row_codes),
        "member": repeated(predictions.members, member_codes),
    }
    if predictions.annotators is not None:
        columns["annotator"] = repeated(predictions.annotators, row_codes)
    if predictions.groups is not None:
        columns["group"] = repeated(predictions.groups, member_codes)
    flat = predictions.probabilities.reshape(n * k, -1)
    for c, name in enumerate(predictions.classes):
        columns[PROBABILITY + name] = flat[:, c]
    metadata = {_CLASSES: json.dumps(predictions.classes).encode()}
    if predictions.scale != NOMINAL:
        metadata[_SCALE] = predictions.scale.to_text(predictions.classes).encode()
    if predictions.member_info:
        metadata[_INFO] = json.dumps(predictions.member_info).encode()
    table = pa.table(columns)
    # Columns without gaps are read a quarter faster.
    fields = [field.with_nullable(False) for field in table.schema]
    return table.cast(pa.schema(fields, metadata))


def _class_order(table: pa.Table, classes: Iterable[str]) -> tuple[str, ...]:
    """The classes in the order noted in the table's metadata, else in class order."""
    order = class_order(classes)
    try:
        noted = json.loads((table.schema.metadata or {}).get(_CLASSES, b"null"))
        noted_order = tuple(noted or ())
        if sorted(noted_order) == sorted(order):
            return noted_order
    except (TypeError, ValueError, RecursionError):
        # If another program damaged the metadata, the columns name the classes.
        pass
    return order


def name_column(table: pa.Table, name: str, path: str | Path, place: Place = data_row) -> Encoded:
    """A column of names; a gap is refused."""
    with errors_in(path):
        encoded = encode(table[name], name)
    if encoded.codes.min(initial=0) < 0:
        gaps = np.flatnonzero(encoded.codes < 0)
        raise InputError(
            f"{path}: {place(int(gaps[0]))} lacks the {name} ({counted(len(gaps), 'such row')})",
            "fill in or drop these rows",
            code="missing-value",
        )
    return encoded


def per_member(
    table: pa.Table, name: str, member: Encoded, path: Path, place: Place = data_row
) -> tuple[str, ...]:
    """The value of each member [K] in a column, such as its group; empty for a gap.

    Lines of one member with different values are refused.
    """
    values = encode(table[name], name)
    value_codes = np.full(len(member.names), -1)
    # Of several values for one position, numpy keeps the last one. Back to front, that is the
    # value of the member's first line.
    value_codes[member.codes[::-1]] = values.codes[::-1]
    differs = np.flatnonzero(value_codes[member.codes] != values.codes)
    if len(differs):
        row = int(differs[0])
        raise InputError(
            f"{path}: member {member.names[member.codes[row]]!r} has a different {name} in"
            f" {place(row)} than before",
            "make its rows agree",
            code="contradictory-rows",
        )
    names = np.append(values.names, "")  # the last name is that of a gap, whose code is −1
    return tuple(str(names[code]) for code in value_codes)
