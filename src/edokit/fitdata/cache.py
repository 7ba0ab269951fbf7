"""The arrays of each shard, checked and matched once, written for many passes."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edokit._errors import EDOWarning, InputError, option
from edokit._io import cannot_write, check_file, temporary_folder
from edokit._lazy import pd
from edokit._names import different_items, owners
from edokit._types import Floats, Ints, Strings
from edokit.annotations import Annotations, Ties
from edokit.fitdata.annotations import ReadOptions, SortedAnnotations
from edokit.fitdata.data import Arrays, owner_codes
from edokit.predictions import Predictions, Shards
from edokit.predictions.shards import Keys, item_keys
from edokit.scales import NOMINAL, Scale, check_same_scale


class LabelCounts(NamedTuple):
    """What is known of the labels of a shard's items."""

    annotations: int
    annotators: Keys  # of their ids
    tied: int  # items whose annotators are evenly split
    contradicted: int = 0  # items whose published label is not what most of their annotators chose

    @classmethod
    def of(cls, annotations: Annotations) -> LabelCounts:
        masks = annotations.tied, annotations.contradicted
        tied, against = map(int, map(np.count_nonzero, masks))
        return cls(len(annotations), item_keys(annotations.annotators), tied, against)


class FileState(NamedTuple):
    """The file of a shard as it was in the first pass."""

    size: int
    changed: int
    """When, in nanoseconds."""
    place: int | None
    """Where its probabilities begin, if they are read from there instead of the cache."""
    number_bytes: int


@dataclass(frozen=True, eq=False)
class CachedShard:
    """One shard: where it comes from, and where its arrays are."""

    number: int
    shard: Shards  # the shard alone
    classes: tuple[str, ...]  # [C] in the order of the arrays; of sets, the labels
    folder: Path  # the cache
    with_predictions: bool
    """Whether predictions are cached too, unless the shard has them as plain arrays; else they are
    read from the shard and checked at every pass."""
    annotations: Path | None
    """The file with the annotations of this shard's items; None where labels are there already."""
    reading: ReadOptions
    ties: Ties
    random_state: int
    scale: Scale = NOMINAL
    state: FileState | None = None
    """None before the first pass."""

    @property
    def name(self) -> str:
        return self.shard.files[0].name

    def write(self) -> tuple[FileState, LabelCounts | None, Arrays]:
        """Read and check the shard, match its items with the annotations, and write the arrays."""
        counts, about = None, self.shard.files[0].stat()
        predictions = self.shard.read(0)
        if self.annotations is not None:
            annotations = self.reading.read(self.annotations, self.classes)
            counts, q, y = self.write_labels(annotations, predictions.items)
        else:
            q, y = self._load("q"), self._load("y")
        arrays = Arrays(self._rows(predictions), q, y)
        # A shard that has the array itself, and is on the disk of the cache, need not be copied.
        near = about.st_dev == self.folder.stat().st_dev
        is_stored = near and arrays.P is predictions.probabilities
        place = predictions.place if is_stored else None
        if self.with_predictions and place is None:
            self._save("P", arrays.P)
        self._save("keys", item_keys(predictions.items))
        if (codes := owner_codes(predictions.items)) is not None:
            self._save("owners", codes)
            self._save("items", item_keys(np.unique(owners(predictions.items).astype(str))))
        state = FileState(about.st_size, about.st_mtime_ns, place, arrays.P.itemsize)
        return state, counts, arrays

    def write_labels(
        self, annotations: Annotations, items: NDArray[Any]
    ) -> tuple[LabelCounts, NDArray[Any], NDArray[Any]]:
        """Write the labels of the annotations of the shard's items; what was written."""
        try:
            check_same_scale(self.scale, "predictions", annotations.scale, "annotations")
            annotations = annotations.align(items)
        except InputError as error:
            message = f"in shard {self.name}: {error.message}"
            raise InputError(message, error.hint) from error
        # Shards must not share their draws.
        seed = self.random_state * 1_000_003 + self.number
        y = hard_labels(annotations, self.ties, seed)
        return LabelCounts.of(annotations), *self.write_arrays(annotations.soft_labels, y)

    def write_arrays(self, q: Floats, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Write the rows of soft and hard labels with one entry per item; what was written."""
        q, y = self.scale.rows(q), self.scale.row_codes(y).astype(np.int32)
        self._save("q", q)
        self._save("y", y)
        return q, y

    def arrays(self) -> Arrays:
        """What was written; files are mapped into memory, not read."""
        place = None if self.state is None else self.state.place
        try:
            q, y = self._load("q"), self._load("y")
            if self.with_predictions and place is None:
                return Arrays(self._load("P"), q, y)
        except FileNotFoundError as error:
            raise InputError(
                f"this worker does not see the cache of the shards, {self.folder}",
                f"choose a folder on a shared disk with {option('scratch')}",
            ) from error
        P = self._stored() if self.with_predictions else self._rows(self.shard.read(0))
        return Arrays(P, q, y)

    def _stored(self) -> NDArray[Any]:
        """The array as the shard itself has it."""
        file, shape = self._unchanged(), (len(self.shard), len(self.shard.members), -1)
        count = len(self.shard) * len(self.shard.members) * len(self.shard.classes)
        assert self.state is not None
        kind = f"f{self.state.number_bytes}"
        return np.fromfile(file, kind, count, offset=self.state.place or 0).reshape(shape)

    def _unchanged(self) -> Path:
        """The file of the shard, which must be as it was in the first pass."""
        file = check_file(self.shard.files[0])
        about = file.stat()
        if self.state is not None and (about.st_size, about.st_mtime_ns) != self.state[:2]:
            raise InputError(
                f"{file} changed while it was read", "start again when the files are complete"
            )
        return file

    def read_items(self) -> Strings:
        """The item ids, in the order of the arrays."""
        self._unchanged()
        return self.shard.read_items(0)

    def _rows(self, predictions: Predictions) -> NDArray[Any]:
        return self.scale.rows(predictions.order_classes(self.classes).probabilities)

    def keys(self) -> Keys:
        """A number per item id [n], in the order of the items, by which they are drawn."""
        return self._load("keys")

    def owners(self) -> Ints | None:
        """The item of each pair of an item and an annotator [n], as a number; None of items."""
        return self._load("owners") if self._file("owners").exists() else None

    def item_keys(self) -> NDArray[Any] | None:
        """A number per item, where rows are pairs of an item and an annotator."""
        return self._load("items") if self._file("items").exists() else None

    def _save(self, name: str, values: NDArray[Any]) -> None:
        try:
            np.save(self._file(name), np.ascontiguousarray(values))
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def _load(self, name: str) -> NDArray[Any]:
        return np.asanyarray(np.load(self._file(name), mmap_mode="r", allow_pickle=False))

    def _file(self, name: str) -> Path:
        return self.folder / f"{self.number:06d}.{name}.npy"


def hard_labels(annotations: Annotations, ties: Ties, seed: int) -> NDArray[Any]:
    """Hard labels of items, without a word on ties, which are counted over all shards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        return annotations.hard_labels(ties=ties, random_state=seed)


def write_labels(
    source: Annotations | SortedAnnotations, cached: Sequence[CachedShard], shards: Shards
) -> list[LabelCounts]:
    """Write the labels of every shard, from annotations that are not in a file per shard."""
    if isinstance(source, SortedAnnotations):
        counts = []
        for number, part in enumerate(cached):
            items = shards.read_items(number)
            annotations = source.of(items, shards.files[number], part.classes)
            counts.append(part.write_labels(annotations, items)[0])
        source.finish()
        return counts
    y = hard_labels(source, cached[0].ties, cached[0].random_state)
    q = source.soft_labels
    is_predicted = np.zeros(len(source.items), dtype=bool)
    index = pd.Index(source.items, dtype=object)
    for number, part in enumerate(cached):
        items = shards.read_items(number)
        rows = index.get_indexer(pd.Index(items, dtype=object))
        if (rows < 0).any():
            shard = f"shard {part.name}"
            raise different_items("annotations", shard, len(items), missing=items[rows < 0])
        is_predicted[rows] = True
        part.write_arrays(q[rows], y[rows])
    if not is_predicted.all():
        extra = source.items[~is_predicted]
        raise different_items("annotations", "predictions", len(shards), extra=extra)
    # Whoever read these annotations as one has warned of published labels.
    return [LabelCounts.of(source)._replace(contradicted=0)]


def make_folder(scratch: str | Path | None, shards: Shards) -> tuple[Path, bool]:
    """A new folder for the cache, and whether the predictions fit into it, too.

    Without ``scratch`` it is where TMPDIR says, else in /var/tmp where there is one: /tmp is kept
    in memory on many machines.
    """
    large = "/var/tmp" if not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK) else None
    parent = Path(scratch or large or tempfile.gettempdir())
    rows = shards.scale.rows_per_item(shards.classes)
    labels = len(shards) * (8 * shards.numbers_per_item + 4 * rows + 8 + 8)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(parent).free
        if labels > 0.9 * free_bytes:
            raise InputError(
                f"the cache of the shards needs {labels / 2**30:.1f} GiB, and {parent} has"
                f" {free_bytes / 2**30:.1f} GiB free",
                f"choose another folder with {option('scratch')}",
            )
        # A killed run leaves its cache, which the next one removes.
        folder = temporary_folder(parent, "edo-shards-")
    except OSError as error:
        raise cannot_write(parent, error) from error
    return folder, labels + shards.nbytes < 0.8 * free_bytes
