"""Predictions on disk: .npz, Parquet with one row per (item, member), or a folder of shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edokit._errors import InputError, examples
from edokit._io import check_file, read_table, write_table
from edokit.predictions.check import Invalid, checked, policy_for
from edokit.predictions.core import Predictions
from edokit.predictions.npz import read_npz, write_npz
from edokit.predictions.numbering import check_numbering
from edokit.predictions.parquet import from_long_table, long_table
from edokit.predictions.seen import Hashes, check_once, hashes

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
    """One shard after the other, so that no more than one needs to be in memory.

    Eight bytes per item are kept, to refuse an item that stands in two shards; that is known at the
    end.
    """
    files = shard_files(path)
    return _shards(files, policy_for(invalid))


Names = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...] | None]
"""Members, classes and groups."""


def _shards(files: Sequence[Path], policy: Invalid) -> Iterator[Predictions]:
    known: Names | None = None
    seen: list[Hashes] = []
    for file in files:
        shard = read_file(file, policy)
        if known is None:
            known = (shard.members, shard.classes, shard.groups)
        check_alike(shard, file, known, files[0])
        if len(files) > 1:
            seen.append(hashes(shard.items))
        yield shard
    names = [file.name for file in files]
    check_once(seen, names, lambda number: read_file(files[number], policy).items)


def check_alike(shard: Predictions, file: Path, known: Names, first: Path) -> None:
    """Refuse a shard whose members, classes or groups are not those of the first."""
    for what, wanted in zip(("members", "classes", "groups"), known, strict=True):
        if getattr(shard, what) != wanted:
            raise _disagree(what, wanted or (), first, getattr(shard, what) or (), file)


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
    check_numbering(files)
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


def _disagree(
    what: str, wanted: tuple[str, ...], first: Path, given: tuple[str, ...], file: Path
) -> InputError:
    # Of long lists the part that differs says more than the start.
    for start in range(max(len(wanted), len(given))):
        if wanted[start : start + 1] != given[start : start + 1]:
            wanted, given = wanted[start:], given[start:]
            break
    return InputError(
        f"all shards must have the same {what} in one order, but where {first.name} has"
        f" {examples(wanted) or 'none'} {file.name} has {examples(given) or 'none'}",
        "write the shards with the same members and classes, in one order",
    )
