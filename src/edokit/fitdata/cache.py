"""The arrays of each shard, checked and matched once, laid down for many passes."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from edokit._errors import EDOWarning, InputError, examples
from edokit._io import cannot_write, temporary_folder
from edokit._types import Floats
from edokit.annotations import Annotations, Ties
from edokit.fitdata.annotations import People, Reading
from edokit.objective.arrays import slices
from edokit.predictions import Shards
from edokit.predictions.shards import hashes
from edokit.predictions.shards import write_hashes as write

# Numbers of P that are looked at in one go.
_BLOCK = 2**21
_GIB = 2**30


def _write_array(values: NDArray[Any], path: Path) -> None:
    np.save(path, values)


Write = Callable[[NDArray[Any], Path], None]


class Arrays(NamedTuple):
    """Predictions P [n, K, C], soft labels q [n, C] and hard labels y [n] of some items."""

    P: NDArray[Any]
    q: Floats
    y: NDArray[Any]

    def take(self, items: NDArray[Any]) -> Arrays:
        """These items (positions, or a mask)."""
        return Arrays(self.P[items], self.q[items], self.y[items])

    def blocks(self) -> Iterator[Arrays]:
        """Some items after the other, in float64."""
        size = max(1, _BLOCK // max(1, self.P.shape[1] * self.P.shape[2]))
        for s in slices(len(self.y), size):
            yield Arrays(np.asarray(self.P[s], dtype=np.float64), self.q[s], self.y[s])


class Told(NamedTuple):
    """What is known of the people who answered about a shard's items."""

    annotations: int
    annotators: NDArray[np.uint64]
    """Hashes of their ids."""
    tied: int
    """Items whose annotators are evenly split."""
    contradicted: int = 0
    """Items whose published label is not what their annotators said most often."""


@dataclass(frozen=True, eq=False)
class Part:
    """One shard: where it comes from, and where its arrays lie."""

    number: int
    shard: Shards
    """The shard alone."""
    classes: tuple[str, ...]
    """[C] in the order of the arrays."""
    folder: Path
    """Of the working copy."""
    keep: bool = True
    """Whether predictions are laid down too; else they are read from the shard at every pass."""
    people: Path | None = None
    """The file with the annotations of this shard's items; None where they are laid down."""
    reading: Reading = field(default_factory=Reading)
    ties: Ties = "first"
    seed: int = 0

    @property
    def name(self) -> str:
        """Of the shard's file."""
        return self.shard.files[0].name

    def lay_down(self) -> Told | None:
        """Read and check the shard, match its items with the annotations, and keep the arrays."""
        read = self.shard.read(0)
        told = None
        if self.people is not None:
            people = self.reading.read(self.people, self.classes)
            told = self.lay_labels(matched(people, read.items, self.name))
        self._save(write, hashes(read.items), self.ids)
        if self.keep:
            probabilities = read.order_classes(self.classes).probabilities
            self._save(_write_array, probabilities, self._file("P"))
        return told

    def lay_labels(self, people: Annotations) -> Told:
        """Keep soft and hard labels of annotations that stand in the order of the shard's items."""
        with warnings.catch_warnings():
            # Ties are counted over all shards and told once.
            warnings.simplefilter("ignore", EDOWarning)
            # Shards must not share their draws.
            seed = self.seed * 1_000_003 + self.number
            y = people.hard_labels(ties=self.ties, random_state=seed)
        self.lay_arrays(people.soft_labels, y)
        against = int(people.contradicted.sum())
        return Told(len(people), hashes(people.annotators), tied_items(people), against)

    def lay_arrays(self, q: Floats, y: NDArray[Any]) -> None:
        """Keep soft labels q [n, C] and hard labels y [n]."""
        self._save(_write_array, q, self._file("q"))
        self._save(_write_array, y.astype(np.int32), self._file("y"))

    def arrays(self) -> Arrays:
        """What was laid down; files are mapped into memory, not read."""
        try:
            q, y = (
                np.load(self._file(name), mmap_mode="r", allow_pickle=False) for name in ("q", "y")
            )
            P = (
                np.load(self._file("P"), mmap_mode="r", allow_pickle=False)
                if self.keep
                else self.shard.read(0).order_classes(self.classes).probabilities
            )
        except FileNotFoundError as error:
            raise InputError(
                f"every worker must see the working copy, but {self.folder} is not where this one"
                " looks",
                "choose a folder on a shared disk with scratch (--scratch)",
            ) from error
        return Arrays(P, q, y)

    @property
    def ids(self) -> Path:
        """The file with the hashes of the item ids."""
        return self.folder / f"{self.number:06d}.ids"

    def _save(self, write: Write, values: NDArray[Any], path: Path) -> None:
        try:
            write(np.ascontiguousarray(values), path)
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def _file(self, name: str) -> Path:
        return self.folder / f"{self.number:06d}.{name}.npy"


def matched(people: Annotations, items: NDArray[Any], shard: str) -> Annotations:
    """The annotations in the order of a shard's items, which must be the same."""
    try:
        return people.align(items)
    except InputError as error:
        raise InputError(f"in shard {shard}: {error.message}", error.hint) from error


def tied_items(people: Annotations) -> int:
    """Items without a published label whose most frequent classes are several."""
    counts = people.counts
    best = counts >= counts.max(axis=1, keepdims=True) * (1 - 1e-12)
    tied = best.sum(axis=1) > 1
    if people.published is not None:
        tied &= people.published < 0
    return int(tied.sum())


def labels_of(people: People, parts: Sequence[Part], shards: Shards) -> list[Told]:
    """Lay down the labels of every shard, from annotations that are not in a file per shard."""
    if people.stream is not None:
        told = []
        for number, part in enumerate(parts):
            items = shards.read_items(number)
            found = people.stream.of(items, shards.files[number], people.classes)
            told.append(part.lay_labels(matched(found, items, part.name)))
        people.stream.finish()
        return told
    assert people.whole is not None
    return [_labels_in_memory(people.whole, parts, shards)]


def _labels_in_memory(people: Annotations, parts: Sequence[Part], shards: Shards) -> Told:
    with warnings.catch_warnings():
        # Ties are told once, with those of other shards.
        warnings.simplefilter("ignore", EDOWarning)
        y = people.hard_labels(ties=parts[0].ties, random_state=parts[0].seed)
    q = people.soft_labels
    index = pd.Index(people.items, dtype=object)
    taken = np.zeros(len(index), dtype=bool)
    for number, part in enumerate(parts):
        items = shards.read_items(number)
        where = index.get_indexer(pd.Index(items, dtype=object))
        missing = items[where < 0]
        if len(missing):
            raise InputError(
                f"every item must have annotations, but in shard {part.name} {len(missing)} of"
                f" {len(items)} have none: {examples(missing)}",
                "check the ids, or choose one split",
            )
        taken[where] = True
        part.lay_arrays(q[where], y[where])
    if not taken.all():
        extra = people.items[~taken]
        raise InputError(
            f"every annotated item must have predictions, but {len(extra)} of {len(taken)} have"
            f" none: {examples(extra)}",
            "check that no shard is missing, or choose one split",
        )
    return Told(len(people), hashes(people.annotators), tied_items(people))


def make_folder(scratch: str | Path | None, shards: Shards) -> tuple[Path, bool]:
    """A new folder for the working copy, and whether the predictions fit into it, too.

    Without ``scratch`` it is where TMPDIR says, else in /var/tmp where there is one: /tmp is kept
    in memory on many machines.
    """
    usual = Path("/var/tmp")
    if scratch is not None:
        parent = Path(scratch)
    elif not os.environ.get("TMPDIR") and os.access(usual, os.W_OK):
        parent = usual
    else:
        parent = Path(tempfile.gettempdir())
    labels = len(shards) * (8 * len(shards.classes) + 4 + 8)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(parent).free
        if labels > 0.9 * free:
            raise InputError(
                f"the working copy needs {labels / _GIB:.1f} GiB, but {parent} has"
                f" {free / _GIB:.1f} GiB free",
                "choose another place with scratch (--scratch)",
            )
        # A killed run leaves its copy behind, for the next one to remove.
        folder = temporary_folder(parent, "edo-shards-")
    except OSError as error:
        raise cannot_write(parent, error) from error
    return folder, labels + shards.nbytes < 0.8 * free
