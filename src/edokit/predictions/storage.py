"""Predictions on disk: .npz, Parquet with one row per (item, member), or a folder of shards."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit.errors import InputError, examples
from edokit.files import check_file, number_column, read_table, whole_file, write_table
from edokit.ids import Strings, as_names, class_order, encode
from edokit.predictions.core import Invalid, Predictions, checked
from edokit.predictions.model_file import PREFIX

SUFFIXES = (".npz", ".parquet")
_NEEDED = ("probabilities", "items", "members", "classes")


def read_predictions(path: str | Path, *, invalid: str = "error") -> Predictions:
    """The predictions in an .npz or Parquet file or in a folder of such shards."""
    shards = list(read_shards(path, invalid=invalid))
    if len(shards) == 1:
        return shards[0]
    first = shards[0]
    return Predictions(
        np.concatenate([shard.probabilities for shard in shards]),
        np.concatenate([shard.items for shard in shards]),
        first.members,
        first.classes,
        first.groups,
    ).named()


def read_shards(path: str | Path, *, invalid: str = "error") -> Iterator[Predictions]:
    """One shard after the other, so that no more than one needs to be in memory."""
    files = shard_files(path)
    first: Predictions | None = None
    for file in files:
        shard = _read_file(file, Invalid(invalid))
        if first is None:
            first = shard
        elif (shard.members, shard.classes, shard.groups) != (
            first.members,
            first.classes,
            first.groups,
        ):
            raise _disagree(first, files[0], shard, file)
        yield shard


def shard_files(path: str | Path) -> list[Path]:
    """The files that hold the predictions: the file itself, or a folder's shards by name."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise InputError(
            f"a folder of predictions must hold .npz or .parquet shards, but {path} holds none",
            "name a file, or a folder with shards",
        )
    return files


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write .npz or Parquet, by the file's ending."""
    path = Path(path)
    if path.suffix == ".npz":
        arrays: dict[str, npt.NDArray[Any]] = {
            "probabilities": predictions.probabilities,
            "items": predictions.items.astype(str),
            "members": np.array(predictions.members, dtype=str),
            "classes": np.array(predictions.classes, dtype=str),
        }
        if predictions.groups is not None:
            arrays["groups"] = np.array(predictions.groups, dtype=str)
        with whole_file(path) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    elif path.suffix == ".parquet":
        write_table(_long_table(predictions), path)
    else:
        raise InputError(
            f"predictions are written to a file ending in .npz or .parquet, but got {path}",
            "choose one of these endings",
        )


def _read_file(path: Path, policy: Invalid) -> Predictions:
    check_file(path)
    if path.suffix == ".npz":
        predictions = _from_npz(path)
    elif path.suffix == ".parquet":
        predictions = _from_long_table(read_table(path), path)
    else:
        raise InputError(
            f"predictions must be an .npz or .parquet file or a folder of them, but got {path}",
            "make one with `edo predictions join`",
        )
    array = checked(
        predictions.probabilities, predictions.items, predictions.members, policy, f" in {path}"
    )
    return Predictions(
        array, predictions.items, predictions.members, predictions.classes, predictions.groups
    ).named()


def _from_npz(path: Path) -> Predictions:
    try:
        with np.load(path, allow_pickle=False) as stored:
            missing = [name for name in _NEEDED if name not in stored.files]
            if missing:
                raise InputError(
                    f"{path} must hold the arrays {', '.join(_NEEDED)}, but lacks"
                    f" {examples(missing)}",
                    "write it with edokit.predictions.write_predictions or `edo predictions join`",
                )
            array = stored["probabilities"]
            names = {name: _flat(stored[name], name, path) for name in _NEEDED[1:]}
            groups = _flat(stored["groups"], "groups", path) if "groups" in stored.files else None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} must be a whole .npz file of plain arrays, but can't be read: {error}",
            "write it again; object arrays are never loaded",
        ) from error
    if array.ndim != 3 or 0 in array.shape or array.dtype.kind not in "fiu":
        raise InputError(
            f"probabilities in {path} must be numbers of shape [N, K, C], but are {array.dtype}"
            f" of shape {array.shape}",
            "bring them into shape with Predictions.from_arrays",
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return Predictions(
        array,
        names["items"],
        tuple(names["members"]),
        tuple(names["classes"]),
        None if groups is None else tuple(groups),
    ).named()


def _flat(values: npt.NDArray[Any], name: str, path: Path) -> Strings:
    if values.ndim != 1:
        raise InputError(
            f"{name} in {path} must be a list of names, but has shape {values.shape}",
            "give one name per entry",
        )
    return as_names(values)


def _from_long_table(table: pa.Table, path: Path) -> Predictions:
    """One row per (item, member), in any order, each pair once."""
    for name in ("item", "member"):
        if name not in table.column_names:
            raise InputError(
                f"predictions in {path} must have the columns item, member and p_<class>, but"
                f" {name!r} is missing; its columns are"
                f" {', '.join(map(repr, table.column_names))}",
                "one file per model becomes predictions with `edo predictions join`",
            )
    item, member = encode(table["item"], "item"), encode(table["member"], "member")
    classes = class_order(
        name.removeprefix(PREFIX) for name in table.column_names if name.startswith(PREFIX)
    )
    if len(classes) < 2:
        raise InputError(
            f"predictions in {path} must have one p_<class> column per class, but have"
            f" {len(classes)}",
            "name them p_0, p_1, …",
        )
    if (item.codes < 0).any() or (member.codes < 0).any():
        raise InputError(f"every row of {path} must name its item and member, but some do not")
    n, k = len(item.names), len(member.names)
    cells = item.codes.astype(np.int64) * k + member.codes
    filled = np.bincount(cells, minlength=n * k)
    if (filled != 1).any():
        cell = int(np.flatnonzero(filled != 1)[0])
        raise InputError(
            f"{path} must have one row for each item and member, but has {int(filled[cell])} for"
            f" item {str(item.names[cell // k])!r} and member {str(member.names[cell % k])!r}"
            f" ({int((filled != 1).sum())} such pairs)",
            "complete the file, or drop the repeated rows",
        )
    columns = [number_column(table, PREFIX + name, str(path)) for name in classes]
    array = np.empty((n * k, len(classes)), dtype=np.result_type(*columns))
    array[cells] = np.column_stack(columns)
    groups = None
    if "group" in table.column_names:
        group = encode(table["group"], "group")
        of_member = np.full(k, -1)
        of_member[member.codes] = group.codes
        if (of_member[member.codes] != group.codes).any():
            raise InputError(f"a member must belong to one group, but one in {path} has several")
        groups = tuple("" if code < 0 else str(group.names[code]) for code in of_member)
    return Predictions(
        array.reshape(n, k, len(classes)), item.names, tuple(member.names), classes, groups
    )


def _long_table(predictions: Predictions) -> pa.Table:
    n, k, _ = predictions.shape

    def repeated(names: Sequence[str] | Strings, codes: npt.NDArray[Any]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32)), pa.array(list(names), pa.string())
        )

    columns: dict[str, Any] = {
        "item": repeated(predictions.items, np.repeat(np.arange(n), k)),
        "member": repeated(predictions.members, np.tile(np.arange(k), n)),
    }
    if predictions.groups is not None:
        columns["group"] = repeated(predictions.groups, np.tile(np.arange(k), n))
    flat = predictions.probabilities.reshape(n * k, -1)
    for c, name in enumerate(predictions.classes):
        columns[PREFIX + name] = flat[:, c]
    return pa.table(columns)


def _disagree(first: Predictions, path: Path, shard: Predictions, file: Path) -> InputError:
    for what in ("members", "classes", "groups"):
        wanted, given = getattr(first, what), getattr(shard, what)
        if wanted != given:
            break
    return InputError(
        f"all shards must have the same {what}, but {path.name} has {examples(wanted or ())} and"
        f" {file.name} has {examples(given or ())}",
        "write the shards with the same members and classes, in one order",
    )
