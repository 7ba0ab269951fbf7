"""Predictions on disk: .npz, Parquet with one row per (item, member), or a folder of shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edokit.errors import InputError, examples
from edokit.files import check_file, read_table, write_table
from edokit.predictions.check import Invalid, checked, policy_for
from edokit.predictions.core import Predictions
from edokit.predictions.npz import read_npz, write_npz
from edokit.predictions.parquet import from_long_table, long_table

SUFFIXES = (".npz", ".parquet")


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
    return _shards(files, policy_for(invalid))


def _shards(files: Sequence[Path], policy: Invalid) -> Iterator[Predictions]:
    first: Predictions | None = None
    seen: set[str] = set()
    for file in files:
        shard = _read_file(file, policy)
        if first is None:
            first = shard
        for what in ("members", "classes", "groups"):
            if getattr(shard, what) != getattr(first, what):
                raise _disagree(what, first, files[0], shard, file)
        again = seen.intersection(shard.items) if seen else ()
        if again:
            raise InputError(
                f"an item must stand in one shard, but {file.name} repeats {len(again)} of the"
                f" shards before it: {examples(sorted(again))}",
                "keep each item in one shard",
            )
        if len(files) > 1:
            seen.update(shard.items)
        yield shard


def shard_files(path: str | Path) -> list[Path]:
    """The files that hold the predictions: the file itself, or a folder's shards by name."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    # Hidden files are what an interrupted writer left behind.
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise InputError(
            f"a folder of predictions must hold .npz or .parquet shards, but {path} holds none",
            "name a file, or a folder with shards",
        )
    return files


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


def _read_file(path: Path, policy: Invalid) -> Predictions:
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


def _disagree(
    what: str, first: Predictions, path: Path, shard: Predictions, file: Path
) -> InputError:
    wanted, given = getattr(first, what), getattr(shard, what)
    # Of long lists the part that differs says more than the start.
    for start in range(max(len(wanted or ()), len(given or ()))):
        if (wanted or ())[start : start + 1] != (given or ())[start : start + 1]:
            wanted, given = (wanted or ())[start:], (given or ())[start:]
            break
    return InputError(
        f"all shards must have the same {what} in one order, but where {path.name} has"
        f" {examples(wanted or ()) or 'none'} {file.name} has {examples(given or ()) or 'none'}",
        "write the shards with the same members and classes, in one order",
    )
