"""Predictions in a file or in a folder of shards, read at once or shard by shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, counted, examples
from edokit._io.npz import read_arrays
from edokit._io.parquet import read_parquet
from edokit._names import as_names, encode
from edokit.predictions.core import (
    Invalid,
    MemberInfo,
    Predictions,
    common_info,
    declared_scale,
    view_pairs,
)
from edokit.predictions.files import SUFFIXES, read_file
from edokit.rows import Keys, Rows
from edokit.scales import NOMINAL, Scale, ScaleLike, check_same_scale


def read_predictions(path: str | Path, *, invalid: Invalid = "error") -> Predictions:
    """Read predictions from a file or from a folder of shards.

    Parameters
    ----------
    path : str or Path
        An .npz file with ``probabilities`` [N, K, C], ``items``, ``members``, ``classes`` and
        optionally ``groups`` and ``annotators``; a Parquet file with one row per item (or pair of
        an item and an annotator) and member; or a folder of such files.
    invalid : {"error", "normalize"}, default="error"
        What to do with probabilities that do not sum to 1: refuse them, or divide by their sum.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        If a file is damaged or does not contain probabilities, or if shards differ in members or
        classes, or repeat an item.

    Examples
    --------
    >>> import edokit
    >>> predictions = edokit.Predictions.from_arrays([[0.9, 0.1], [0.2, 0.8]], layout="NC")
    >>> edokit.write_predictions(predictions, "dev.parquet")
    >>> edokit.read_predictions("dev.parquet").shape
    (2, 1, 2)
    """
    files = shard_files(path)
    if len(files) == 1:
        return read_file(files[0], invalid)
    shards = list(read_shards(path, invalid=invalid))
    base = shards[0]
    joined = Predictions(
        np.concatenate([shard.probabilities for shard in shards]),
        Rows.concatenate([shard.rows for shard in shards]),
        base.members,
        base.classes,
        base.groups,
        base.scale,
        common_info([shard.member_info for shard in shards], base.members),
    )
    joined.check_names()
    return joined


def read_shards(path: str | Path, *, invalid: Invalid = "error") -> Iterator[Predictions]:
    """One shard after another, so that only one is in memory.

    After the last shard, rows that are in two shards are refused.
    """
    files = shard_files(path)
    if len(files) == 1:
        yield read_file(files[0], invalid)
        return
    base: Predictions | None = None
    keys: list[Keys] = []
    for file in files:
        shard = read_file(file, invalid)
        if base is None:
            base = shard.take([])  # names without rows, so that the first shard is not kept
        check_alike(shard, file, base, files[0])
        keys.append(shard.rows.keys)
        yield shard
    names = [file.name for file in files]
    check_not_repeated(keys, names, lambda number: read_file(files[number], invalid).rows)


def shard_files(path: str | Path) -> list[Path]:
    """The files of predictions: the file itself, or a folder's shards sorted by name."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    # Hidden files are temporary files of an interrupted writer.
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise InputError(
            f"the folder {path} does not contain .npz or .parquet shards",
            "name a file, or a folder with shards",
            code="missing-shard",
        )
    return files


def check_alike(
    shard: Predictions, file: Path, base: Predictions | Shards, base_file: Path
) -> None:
    """Refuse a shard whose members, scale, classes or groups differ from those of the first."""
    check_same_scale(shard.scale, f"shard {file.name}", base.scale, f"shard {base_file.name}")
    for kind in ("members", "classes", "groups"):
        if getattr(shard, kind) != getattr(base, kind):
            names = list(getattr(shard, kind) or ())
            base_names = list(getattr(base, kind) or ())
            # Show the first difference of long lists instead of their start.
            n_same = 0
            for name, base_name in zip(names, base_names, strict=False):
                if name != base_name:
                    break
                n_same += 1
            names = names[n_same:]
            base_names = base_names[n_same:]
            raise InputError(
                f"the shards differ in {kind}: {base_file.name} has"
                f" {examples(base_names) or 'none'} where {file.name} has"
                f" {examples(names) or 'none'}",
                "write the shards with the same members and classes, in one order",
                code="shards-differ",
            )


def check_not_repeated(
    keys: Sequence[Keys], names: Sequence[str], rows_of: Callable[[int], Rows]
) -> None:
    """Refuse an item that is in two shards.

    ``keys`` are the keys of each shard's rows (`Rows.keys`: a hash of the names of each row),
    ``names`` the names of the shards, and ``rows_of`` returns the rows of a shard.
    """
    if len(names) < 2:
        return
    merged = np.concatenate(keys)
    merged.sort()
    is_repeated = merged[1:] == merged[:-1]
    for key in np.unique(merged[1:][is_repeated]):
        holders = [shard for shard, shard_keys in enumerate(keys) if key in shard_keys]
        rows = rows_of(holders[0])
        for shard in holders[1:]:
            # Different rows may have the same key, so the rows are compared.
            shard_rows = rows_of(shard)
            repeated = shard_rows.take(rows.positions(shard_rows) >= 0)
            if len(repeated):
                raise InputError(
                    f"{names[shard]} repeats {counted(len(repeated), rows.noun)} of"
                    f" {names[holders[0]]}: {examples(sorted(repeated.names))}",
                    "keep each item in one shard",
                    code="duplicate-name",
                )


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """Predictions of K members for N items in C classes, in files that need not fit into memory.

    Attributes
    ----------
    files : tuple[Path, ...]
        The shards, in order of their names.
    members : tuple[str, ...]
        Member names [K] of the first shard; every other shard must have the same.
    classes : tuple[str, ...]
        Class names [C], also of the first shard.
    groups : tuple[str, ...] or None
        The recipe of each member [K], also of the first shard.
    number_bytes : int
        Bytes per probability: 4 or 8.
    scale : Scale
        The answer scale: declared, or that of the first shard.
    declared : bool
        Whether the scale was declared for files without a scale.
    learn : str or None
        What to learn from pairs of an item and an annotator, see `LEARN`.
    """

    files: tuple[Path, ...]
    members: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...] | None
    number_bytes: int
    scale: Scale = NOMINAL
    declared: bool = False
    learn: str | None = None

    @classmethod
    def open(cls, path: str | Path, *, learn: str | None = None) -> Shards:
        """Open a folder of .npz or Parquet shards (or a single file); only the first shard is read.

        ``learn`` says what to learn from pairs of an item and an annotator, see `LEARN`. All pairs
        of an item must be in the same shard.
        """
        files = shard_files(path)
        base = view_pairs(read_file(files[0]), learn)
        if not learn:
            base.rows.check_items("predictions")
        return cls(
            tuple(files),
            base.members,
            base.classes,
            base.groups,
            base.probabilities.itemsize,
            base.scale,
            learn=learn,
        )

    def on_scale(self, scale: ScaleLike) -> Shards:
        """The same shards on this scale; see `Predictions.on_scale`."""
        target = declared_scale(self.scale, self.classes, scale)
        return replace(self, scale=target, declared=target != self.scale)

    def __repr__(self) -> str:
        return (
            f"Shards({counted(len(self.files), 'file')}, {counted(len(self.members), 'member')},"
            f" classes {', '.join(self.classes)})"
        )

    @property
    def sizes(self) -> list[int]:
        """Estimated bytes of each shard's probabilities in float64."""
        return [file.stat().st_size * 8 // self.number_bytes for file in self.files]

    @property
    def numbers_per_item(self) -> int:
        """Number of probabilities in an item's rows, per member."""
        return int(self.scale.rows(np.zeros((1, len(self.classes)))).size)

    @property
    def needs(self) -> int:
        """Estimated bytes that fitting an ensemble takes if all shards are in memory."""
        # The numbers in the type of the file, and three copies in float64: the probabilities, the
        # solver's layout of them, and its intermediate results.
        return sum(self.sizes) * (self.number_bytes + 3 * 8) // 8

    def read(self, number: int) -> Predictions:
        """One shard, checked to have the members, scale, classes and groups of the first."""
        shard = view_pairs(read_file(self.files[number]), self.learn)
        if self.declared:
            shard = shard.on_scale(self.scale)
        check_alike(shard, self.files[number], self, self.files[0])
        return shard

    def read_rows(self, number: int) -> Rows:
        """The distinct rows of one shard, in the order of ``read``, without its probabilities."""
        file = self.files[number]
        if self.learn:  # the rows depend on what is learned from them
            return self.read(number).rows
        try:
            if file.suffix.lower() == ".npz":
                names = as_names(read_arrays(file, ["items"])["items"])
            else:
                column = read_parquet(file, ["item"])["item"]
                names = encode(column, "item").names
        except Exception:  # ``read`` reports the problem
            return self.read(number).rows
        return Rows.from_names(names)

    def __iter__(self) -> Iterator[Predictions]:
        """Iterate over the shards."""
        for number in range(len(self.files)):
            yield self.read(number)


def describe_predictions(path: str | Path) -> dict[str, Any]:
    """Describe predictions, read shard by shard.

    Parameters
    ----------
    path : str or Path
        A file or a folder of shards; see `read_predictions`.

    Returns
    -------
    dict
        ``items``, the number of items (or of pairs of an item and an annotator); ``annotators``,
        their number, for pairs; ``shards``, the number of files; ``classes``; ``scale``, unless
        nominal; ``type`` of the numbers; and ``members``: for each its ``name``, ``group``,
        ``info`` (model, prompt, persona, … if known), ``mean`` prediction, mean ``entropy`` (nats)
        and mean L1 ``distance`` to the uniform mean of all members. For multi-label data, entropy
        and distance are means over labels.
    """
    items = 0
    shards = 0
    infos: list[MemberInfo] = []
    sums: dict[str, Any] = {"mean": 0.0, "entropy": 0.0, "distance": 0.0}
    annotators: set[str] = set()
    # The last shard also gives the names, which are the same in all of them.
    for shard in read_shards(path):
        annotators.update(shard.rows.people)
        shards += 1
        items += len(shard)
        infos.append(shard.member_info)
        probabilities = shard.probabilities.astype(np.float64, copy=False)
        rows = shard.scale.rows(probabilities)
        logs = np.log(np.where(rows > 0, rows, 1.0))  # 0 · log 0 is 0
        rows_per_item = shard.scale.rows_per_item(shard.classes)
        distances = np.abs(rows - rows.mean(axis=1, keepdims=True))
        sums["mean"] = sums["mean"] + probabilities.sum(axis=0)
        sums["entropy"] = sums["entropy"] - (rows * logs).sum(axis=(0, 2)) / rows_per_item
        sums["distance"] = sums["distance"] + distances.sum(axis=(0, 2)) / rows_per_item
    groups = shard.groups or (None,) * len(shard.members)
    info = common_info(infos, shard.members)
    members = []
    for k, name in enumerate(shard.members):
        member: dict[str, Any] = {"name": name, "group": groups[k]}
        if name in info:
            member["info"] = info[name]
        means = (sums["mean"][k] / items).tolist()
        member["mean"] = dict(zip(shard.classes, means, strict=True))
        member["entropy"] = float(sums["entropy"][k] / items)
        member["distance"] = float(sums["distance"][k] / items)
        members.append(member)
    description: dict[str, Any] = {"items": items}
    if annotators:
        description["annotators"] = len(annotators)
    description["shards"] = shards
    description["classes"] = list(shard.classes)
    if shard.scale != NOMINAL:
        description["scale"] = shard.scale.to_text(shard.classes)
    description["type"] = str(shard.probabilities.dtype)
    description["members"] = members
    return description
