"""The cache of shards: annotations are matched with predictions once, and written as arrays."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edokit._errors import EDOWarning, InputError, errors_in, examples, option
from edokit._io.atomic import cannot_write, temporary_folder
from edokit._names import as_name, class_order
from edokit._types import Floats, HardLabels, Ints
from edokit.annotations.core import Annotations, PublishedLabelWarning, Ties, no_split
from edokit.datasets.item_groups import group_keys
from edokit.datasets.read import read_annotations, table_files
from edokit.fitdata.data import Arrays
from edokit.fitdata.layout import Layout
from edokit.fitdata.reading import LabelsLike, ReadOptions
from edokit.predictions.core import view_labels
from edokit.predictions.shards import Shards
from edokit.rows import Keys, Rows, different_rows
from edokit.scales import NOMINAL, Scale, check_same_scale

# --- Annotations: in memory, or a file for each shard ---------------------------------------------


def read_shard_annotations(path: Path, classes: Sequence[str], reading: ReadOptions) -> Annotations:
    """Read the annotations of one shard, which need not have items of every split."""
    with errors_in(path), warnings.catch_warnings():
        # `ShardedData` warns of published labels once, for all shards together.
        warnings.simplefilter("ignore", PublishedLabelWarning)
        annotations = read_annotations(path, **_arguments(reading, classes))
        if reading.split:
            names = np.atleast_1d(np.asarray(reading.split))
            if annotations.splits is None:
                raise no_split(as_name(names[0]), ())
            annotations = annotations.take(np.isin(annotations.splits, names))
    return view_labels(annotations, reading.learn)


def _arguments(reading: ReadOptions, classes: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of `read_annotations`, with these classes."""
    arguments: dict[str, Any] = reading.file_options()
    arguments.pop("learn", None)
    return {**arguments, "classes": classes}


def match_files(folder: Path, shards: Sequence[Path]) -> tuple[Path, ...]:
    """Return the file of annotations for each shard of predictions: that with the same stem.

    Return an empty tuple if no file has the stem of a shard.
    """
    file_by_stem: dict[str, Path] = {}
    for file in table_files(folder):
        if file.stem in file_by_stem:
            raise InputError(
                f"{folder} has two files of annotations for one shard:"
                f" {file_by_stem[file.stem].name} and {file.name}",
                "keep one of them",
                code="duplicate-shard",
            )
        file_by_stem[file.stem] = file
    stems = [shard.stem for shard in shards]
    if not file_by_stem.keys() & set(stems):
        return ()
    unmatched = [stem for stem in stems if stem not in file_by_stem]
    lacking = "annotations"
    if not unmatched:
        unmatched = sorted(file_by_stem.keys() - set(stems))
        lacking = "predictions"
    if unmatched:
        verb = "have"
        if len(unmatched) == 1:
            verb = "has"
        raise InputError(
            f"{examples(unmatched)} {verb} no {lacking}: shards of predictions and annotations go"
            " together by name",
            f"restore the {lacking}, or remove the shard on the other side",
            code="missing-shard",
        )
    return tuple(file_by_stem[stem] for stem in stems)


LabelSource: TypeAlias = Annotations | tuple[Path, ...]
"""The annotations of all shards: in memory, or a file for each shard."""


def find_annotations(
    annotations: LabelsLike, shards: Shards, reading: ReadOptions
) -> tuple[LabelSource, tuple[str, ...]]:
    """Return the annotations, in memory or as a file for each shard, and the classes in order."""
    if isinstance(annotations, str | Path):
        source = _read_or_match(Path(annotations), shards, reading)
    elif isinstance(annotations, Annotations):
        source = annotations
    else:
        raise InputError(
            "items in shards are matched with Annotations by id, but the labels are a"
            f" {type(annotations).__name__}",
            "give Annotations, or the path to a table",
            code="unsupported-type",
        )
    if reading.class_names is not None:
        order = tuple(reading.class_names)
    elif shards.scale == NOMINAL:
        order = class_order(shards.classes)
    else:
        order = shards.classes
    if isinstance(source, Annotations):
        source = view_labels(source, reading.learn)
        check_same_scale(shards.scale, "predictions", source.scale, "annotations")
        if len(shards.classes) > len(source.classes):
            source = source.with_classes(shards.classes)
        order = source.classes
    return source, order


def _read_or_match(path: Path, shards: Shards, reading: ReadOptions) -> LabelSource:
    """Return a file for each shard if the path is a folder of such, else read all annotations."""
    if path.is_dir() and table_files(path) and not any(path.glob("*.json")):
        files = match_files(path, shards.files)
        if files:
            return files
    return read_annotations(path, split=reading.split, **_arguments(reading, reading.class_names))


# --- The arrays of each shard, checked and matched once -------------------------------------------


class LabelCounts(NamedTuple):
    """Counts of the labels of a shard's items, to add up over shards."""

    annotations: int
    annotators: Keys
    """Hashes of the annotators' ids: shards may share annotators."""
    tied: int
    """Items whose annotators are evenly split."""
    contradicted: int = 0
    """Items whose published label is not what most of their annotators chose."""
    has_item_groups: bool = False

    @classmethod
    def from_annotations(cls, annotations: Annotations) -> LabelCounts:
        """Count the labels of annotations."""
        return cls(
            annotations=len(annotations),
            annotators=Rows.from_names(annotations.annotators).keys,
            tied=int(np.count_nonzero(annotations.tied)),
            contradicted=int(np.count_nonzero(annotations.contradicted)),
            has_item_groups=annotations.item_groups is not None,
        )


@dataclass(frozen=True, eq=False)
class CachedShard:
    """One shard of predictions with its labels, written as arrays into the cache."""

    number: int
    """The position of the shard among all of them."""
    predictions: Shards
    """All shards of predictions."""
    classes: tuple[str, ...]
    """Class names [C] in the order of the arrays; for multi-label data, the labels."""
    folder: Path
    """The folder of the cache."""
    annotations: Path | None
    """The file with annotations of this shard's items; None if its labels are written already."""
    reading: ReadOptions

    @property
    def name(self) -> str:
        """The name of the file of predictions."""
        return self.predictions.files[self.number].name

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.predictions.scale

    def write(self) -> tuple[int, LabelCounts | None, Arrays]:
        """Read and check the shard, match its items with the annotations, and write the arrays.

        Return the number of items, the counts of their labels, and the arrays. The counts are None
        if labels were written before.
        """
        counts = None
        predictions = self.predictions.read(self.number)
        if self.annotations is not None:
            annotations = read_shard_annotations(self.annotations, self.classes, self.reading)
            with errors_in(f"in shard {self.name}"):
                check_same_scale(self.scale, "predictions", annotations.scale, "annotations")
                annotations = annotations.align(predictions.rows)
            # Ties are drawn independently in each shard.
            seed = self.reading.seed * 1_000_003 + self.number
            y = hard_labels(annotations, self.reading.ties, seed)
            self.write_labels(annotations.soft_labels, y)
            self.write_group_keys(group_keys(annotations))
            counts = LabelCounts.from_annotations(annotations)
        P = self.scale.rows(predictions.order_classes(self.classes).probabilities)
        self._save("P", P)
        self._save("keys", predictions.rows.keys)
        clusters = predictions.rows.clusters
        if clusters is not None:
            # The number of the shard in the high bits makes the numbers distinct across shards.
            self._save("owners", clusters.astype(np.int64) + (self.number << 32))
        return len(predictions), counts, Arrays(P, self._load("q"), self._load("y"))

    def write_labels(self, q: Floats, y: HardLabels) -> None:
        """Write soft and hard labels, given with one entry per item, as rows."""
        self._save("q", self.scale.rows(q))
        self._save("y", self.scale.row_codes(y).astype(np.int32))

    def write_group_keys(self, keys: Keys) -> None:
        """Write the hash of each item's group [n], which is the same in all shards."""
        self._save("group-keys", keys)

    def group_keys(self) -> Keys:
        """Return the hash of each item's group [n]."""
        return self._load("group-keys")

    def write_groups(self, groups: Ints) -> None:
        """Write the number of each item's group [n], which is the same in all shards."""
        self._save("groups", groups)

    def write_folds(self, n_folds: int, random_state: int, folds: Ints) -> None:
        """Write the fold of each item [n]; needed if item groups extend over several shards."""
        self._save(f"folds-{n_folds}-{random_state}", folds)

    def has_folds(self, n_folds: int, random_state: int) -> bool:
        """Whether these folds were written."""
        return self._file(f"folds-{n_folds}-{random_state}").exists()

    def folds(self, n_folds: int, random_state: int) -> Ints:
        """Return the fold of each item [n]."""
        if self.groups() is not None:
            return self._load(f"folds-{n_folds}-{random_state}")
        layout = self.layout()
        return layout.folds(self.arrays().y, n_folds, random_state, self.number)

    def arrays(self) -> Arrays:
        """Return the arrays; their files are mapped into memory, not read."""
        try:
            return Arrays(self._load("P"), self._load("q"), self._load("y"))
        except FileNotFoundError as error:
            raise InputError(
                f"this worker does not see the cache of the shards, {self.folder}",
                f"choose a folder on a shared disk with {option('scratch')}",
                code="unreachable-cache",
            ) from error

    def keys(self) -> Keys:
        """Return a hash of the ids of each item [n], by which items are drawn."""
        return self._load("keys")

    def layout(self) -> Layout:
        """Return which rows of the arrays belong together."""
        owners = self.owners()
        groups = self.groups()
        if groups is None:
            groups = owners
        return Layout.from_scale(self.scale, self.classes, groups, are_pairs=owners is not None)

    def groups(self) -> Ints | None:
        """Return the number of each item's group [n]; None if the annotations name no groups."""
        if self._file("groups").exists():
            return self._load("groups")
        return None

    def owners(self) -> Ints | None:
        """Return a number for the item of each pair [n]; None if the rows are items."""
        if self._file("owners").exists():
            return self._load("owners")
        return None

    def _save(self, name: str, values: NDArray[Any]) -> None:
        """Write an array of this shard under a name."""
        try:
            np.save(self._file(name), np.ascontiguousarray(values))
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def _load(self, name: str) -> NDArray[Any]:
        """Map an array of this shard into memory."""
        return np.asanyarray(np.load(self._file(name), mmap_mode="r", allow_pickle=False))

    def _file(self, name: str) -> Path:
        """The file of an array of this shard."""
        return self.folder / f"{self.number:06d}.{name}.npy"


def hard_labels(annotations: Annotations, ties: Ties, seed: int) -> HardLabels:
    """Return hard labels without warnings: ties are counted over all shards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        return annotations.hard_labels(ties=ties, random_state=seed)


def write_labels(source: Annotations, cached: Sequence[CachedShard]) -> list[LabelCounts]:
    """Write the labels of every shard, from annotations in memory."""
    reading = cached[0].reading
    y = hard_labels(source, reading.ties, reading.seed)
    q = source.soft_labels
    keys = None
    if source.item_groups is not None:
        keys = group_keys(source)
    is_predicted = np.zeros(len(source.rows), dtype=bool)
    predicted_rows = 0
    for shard in cached:
        rows = shard.predictions.read_rows(shard.number)
        places = source.rows.positions(rows)
        if (places < 0).any():
            missing = rows.take(places < 0)
            raise different_rows("annotations", f"shard {shard.name}", len(rows), missing=missing)
        is_predicted[places] = True
        predicted_rows += len(rows)
        shard.write_labels(q[places], y[places])
        if keys is not None:
            shard.write_group_keys(keys[places])
    if not is_predicted.all():
        extra = source.rows.take(~is_predicted)
        raise different_rows("annotations", "predictions", predicted_rows, extra=extra)
    # A warning about published labels was shown when these annotations were read.
    return [LabelCounts.from_annotations(source)._replace(contradicted=0)]


def make_folder(scratch: str | Path | None) -> Path:
    """Create a folder for the cache.

    Without ``scratch`` it is in TMPDIR, if that is set, else in /var/tmp if that exists: on many
    machines /tmp is in memory.
    """
    if scratch:
        parent = Path(scratch)
    elif not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK):
        parent = Path("/var/tmp")
    else:
        parent = Path(tempfile.gettempdir())
    try:
        parent.mkdir(parents=True, exist_ok=True)
        # A killed run leaves its cache, which the next one removes.
        return temporary_folder(parent, "edo-shards-")
    except OSError as error:
        raise cannot_write(parent, error) from error
