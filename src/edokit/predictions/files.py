"""One file of predictions: .npz, or Parquet with one row per (item, member)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import EDOError, InputError, counted, examples, headings
from edokit._io import check_file, number_column, read_table, whole_file, write_table
from edokit._io.npz import array_names, read_arrays, write_arrays
from edokit._names import Encoded, as_names, class_order, encode, row_number, text_array
from edokit._types import Strings
from edokit.predictions.arrays import PREFIX, Invalid, as_floats, checked
from edokit.predictions.core import Predictions


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write .npz or Parquet, by the file's ending."""
    path = Path(path)
    if path.suffix.lower() == ".npz":
        write_npz(predictions, path)
    elif path.suffix.lower() == ".parquet":
        write_table(long_table(predictions), path)
    else:
        raise InputError(
            f"predictions are written to a file ending in .npz or .parquet, but got {path}",
            "choose one of these endings",
        )


def read_file(path: Path, policy: Invalid) -> Predictions:
    """The predictions in one .npz or Parquet file."""
    check_file(path)
    if path.suffix.lower() == ".npz":
        predictions = read_npz(path)
    elif path.suffix.lower() == ".parquet":
        predictions = from_long_table(read_table(path), path)
    else:
        raise InputError(
            f"predictions must be an .npz or .parquet file or a folder of them, but got {path}",
            "make one with `edo predictions join`",
        )
    array = checked(
        predictions.probabilities,
        predictions.items,
        predictions.members,
        policy,
        f" in {path}",
        "; stored predictions are no logits: Predictions.from_arrays(…, logits=True) turns these"
        " into probabilities",
    )
    return replace(predictions, probabilities=array)


_NEEDED = ("probabilities", "items", "members", "classes")


def read_npz(path: Path) -> Predictions:
    """The predictions in an .npz file, named but not yet checked."""
    try:
        arrays = _arrays(path)
    except EDOError:
        raise
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} must be a whole .npz file of plain arrays, but can't be read: {error}",
            "write it again; object arrays are never loaded",
        ) from error
    array = arrays["probabilities"]
    if array.ndim != 3 or 0 in array.shape or array.dtype.kind not in "fiu":
        raise InputError(
            f"probabilities in {path} must be numbers of shape [N, K, C], but are {array.dtype}"
            f" of shape {array.shape}",
            "bring them into shape with Predictions.from_arrays",
        )
    names = {name: _flat(arrays[name], name, path) for name in arrays if name != "probabilities"}
    return Predictions(
        as_floats(array),
        names["items"],
        tuple(names["members"]),
        tuple(names["classes"]),
        tuple(names["groups"]) if "groups" in names else None,
    ).named()


def write_npz(predictions: Predictions, path: Path) -> None:
    """Write an .npz file."""
    arrays: dict[str, npt.NDArray[Any]] = {"probabilities": predictions.probabilities}
    for name in ("items", "members", "classes", "groups"):
        names = getattr(predictions, name)
        if names is None:
            continue
        arrays[name] = np.array(list(names), dtype=str)
        # numpy pads text with NUL characters and can't tell its own from others.
        if arrays[name].tolist() != list(names):
            raise InputError(
                f"names of {name} must not end in a NUL character, but one does", "rename it"
            )
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        write_arrays(stream, arrays)


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    held = array_names(path)
    missing = [name for name in _NEEDED if name not in held]
    if missing:
        raise InputError(
            f"{path} must hold the arrays {', '.join(_NEEDED)}, but lacks {examples(missing)}",
            "write it with edokit.predictions.write_predictions or `edo predictions join`",
        )
    return read_arrays(path, [name for name in (*_NEEDED, "groups") if name in held])


def _flat(values: npt.NDArray[Any], name: str, path: Path) -> Strings:
    if values.ndim != 1 or values.dtype.kind not in "USiufb":
        raise InputError(
            f"{name} in {path} must be a list of names, but are {values.dtype} of shape"
            f" {values.shape}",
            "give one name per entry",
        )
    return as_names(values)


_CLASSES = b"edokit.classes"
"""Where a table notes the order of its classes."""


def from_long_table(table: pa.Table, path: Path) -> Predictions:
    """The predictions in a table of any row order, each pair once; named but not yet checked."""
    for name in ("item", "member"):
        if name not in table.column_names:
            raise InputError(
                f"predictions in {path} must have the columns item, member and p_<class>, but"
                f" {name!r} is missing; its columns are {headings(table.column_names)}",
                "one file per model becomes predictions with `edo predictions join`",
            )
    classes = _classes(table)
    if len(classes) < 2:
        raise InputError(
            f"predictions in {path} must have one p_<class> column per class, but have"
            f" {len(classes)}",
            "name them p_0, p_1, …",
        )
    item, member = (_no_gaps(table, name, path) for name in ("item", "member"))
    n, k = len(item.names), len(member.names)
    cells = item.codes.astype(np.int64) * k + member.codes
    _each_pair_once(cells, item, member, path)
    columns = [number_column(table, PREFIX + name, str(path)) for name in classes]
    array = np.empty((n * k, len(classes)), dtype=np.result_type(*columns))
    array[cells] = np.column_stack(columns)
    return Predictions(
        array.reshape(n, k, len(classes)),
        item.names,
        tuple(member.names),
        classes,
        _groups(table, member, path),
    ).named()


def long_table(predictions: Predictions) -> pa.Table:
    """One row per (item, member) with ``item, member, group`` and ``p_<class>`` columns."""
    n, k, _ = predictions.shape

    def repeated(names: Sequence[str] | Strings, codes: npt.NDArray[Any]) -> pa.Array:
        values = text_array(names, "names in predictions")
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)

    columns: dict[str, Any] = {
        "item": repeated(predictions.items, np.repeat(np.arange(n), k)),
        "member": repeated(predictions.members, np.tile(np.arange(k), n)),
    }
    if predictions.groups is not None:
        columns["group"] = repeated(predictions.groups, np.tile(np.arange(k), n))
    flat = predictions.probabilities.reshape(n * k, -1)
    for c, name in enumerate(predictions.classes):
        columns[PREFIX + name] = flat[:, c]
    noted = json.dumps(predictions.classes).encode()
    return pa.table(columns).replace_schema_metadata({_CLASSES: noted})


def _classes(table: pa.Table) -> tuple[str, ...]:
    """The classes in the order that the table notes, else in class order."""
    found = class_order(
        name.removeprefix(PREFIX) for name in table.column_names if name.startswith(PREFIX)
    )
    try:
        noted = json.loads((table.schema.metadata or {}).get(_CLASSES, b"null"))
        declared = tuple(noted or ())
        return declared if sorted(declared) == sorted(found) else found
    except (TypeError, ValueError, RecursionError):
        return found


def _no_gaps(table: pa.Table, name: str, path: Path) -> Encoded:
    encoded = encode(table[name], name)
    gaps = np.flatnonzero(encoded.codes < 0)
    if len(gaps):
        raise InputError(
            f"every row of {path} must name its {name}, but {row_number(int(gaps[0]))} does not"
            f" ({counted(len(gaps), 'such row')})",
            "fill in or drop these rows",
        )
    return encoded


def _each_pair_once(
    cells: npt.NDArray[np.int64], item: Encoded, member: Encoded, path: Path
) -> None:
    k = len(member.names)
    if len(cells) == len(item.names) * k and np.bincount(cells).max(initial=0) <= 1:
        return
    distinct, times = np.unique(cells, return_counts=True)
    wrong = np.flatnonzero(times > 1)
    cell, given = -1, 0
    if len(wrong):
        cell, given = int(distinct[wrong[0]]), int(times[wrong[0]])
        hint = "drop the repeated rows"
    elif len(distinct) < len(item.names) * k:
        # The first number that is not in the list.
        gap = np.flatnonzero(distinct != np.arange(len(distinct)))
        cell = int(gap[0]) if len(gap) else len(distinct)
        hint = "complete the file, or join it from one file per model"
    if cell >= 0:
        raise InputError(
            f"{path} must have one row for each of {len(item.names)} items and {k} members, but"
            f" has {given or 'none'} for item {item.names[cell // k]!r} and member"
            f" {member.names[cell % k]!r}",
            hint,
        )


def _groups(table: pa.Table, member: Encoded, path: Path) -> tuple[str, ...] | None:
    """The group of each member [K], if the table has groups."""
    if "group" not in table.column_names:
        return None
    group = encode(table["group"], "group")
    of_member = np.full(len(member.names), -1)
    of_member[member.codes[::-1]] = group.codes[::-1]
    differs = np.flatnonzero(of_member[member.codes] != group.codes)
    if len(differs):
        row = int(differs[0])
        raise InputError(
            f"a member must belong to one group, but {member.names[member.codes[row]]!r} in {path}"
            f" has another in {row_number(row)}",
            "make its rows agree",
        )
    return tuple("" if code < 0 else str(group.names[code]) for code in of_member)
