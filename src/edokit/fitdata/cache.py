"""The annotations of each shard, found and read, and its arrays, written for many passes."""

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
    """Read the annotations of one shard; a shard need not hold items of every split."""
    with errors_in(path), warnings.catch_warnings():
        # Whoever reads all shards warns of published labels once, with a sum.
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
    """A file of annotations for each shard of predictions, found by name (without ending).

    None at all where no name is alike.
    """
    files: dict[str, Path] = {}
    for file in table_files(folder):
        namesake = files.setdefault(file.stem, file)
        if namesake != file:
            raise InputError(
                f"{folder} has two files of annotations for one shard: {namesake.name} and"
                f" {file.name}",
                "keep one of them",
                code="duplicate-shard",
            )
    names = [file.stem for file in shards]
    if not files.keys() & set(names):
        return ()
    missing = [name for name in names if name not in files]
    lone = missing or sorted(files.keys() - set(names))
    if lone:
        without = "annotations" if missing else "predictions"
        raise InputError(
            f"{examples(lone)} {'has' if len(lone) == 1 else 'have'} no {without}: shards of"
            " predictions and annotations go together by name",
            f"restore the {without}, or remove the shard on the other side",
            code="missing-shard",
        )
    return tuple(files[name] for name in names)


# The annotations of all shards: in memory, or a file for each.
LabelSource: TypeAlias = Annotations | tuple[Path, ...]


def find_annotations(
    annotations: LabelsLike, shards: Shards, reading: ReadOptions
) -> tuple[LabelSource, tuple[str, ...]]:
    """The annotations, in memory or a file for each shard, and their classes in order."""
    if isinstance(annotations, str | Path):
        source = _in_files(Path(annotations), shards, reading)
    elif isinstance(annotations, Annotations):
        source = annotations
    else:
        raise InputError(
            "items in shards are matched with Annotations by id, but the labels are a"
            f" {type(annotations).__name__}",
            "give Annotations, or the path to a table",
            code="unsupported-type",
        )
    if shards.scale == NOMINAL:
        by_name = class_order(shards.classes)
    else:
        by_name = shards.classes
    names = reading.class_names
    order = by_name if names is None else tuple(names)
    if isinstance(source, Annotations):
        source = view_labels(source, reading.learn)
        check_same_scale(shards.scale, "predictions", source.scale, "annotations")
        if len(shards.classes) > len(source.classes):
            source = source.with_classes(shards.classes)
        order = source.classes
    return source, order


def _in_files(path: Path, shards: Shards, reading: ReadOptions) -> LabelSource:
    """A file for each shard where there are such, else all annotations in memory."""
    if path.is_dir() and table_files(path) and not any(path.glob("*.json")):
        files = match_files(path, shards.files)
        if files:
            return files
    return read_annotations(path, split=reading.split, **_arguments(reading, reading.class_names))


# --- The arrays of each shard, checked and matched once -------------------------------------------


class LabelCounts(NamedTuple):
    """What is known of the labels of a shard's items."""

    annotations: int
    annotators: Keys  # of their ids
    tied: int  # items whose annotators are evenly split
    contradicted: int = 0  # items whose published label is not what most of their annotators chose
    has_item_groups: bool = False

    @classmethod
    def from_annotations(cls, annotations: Annotations) -> LabelCounts:
        masks = annotations.tied, annotations.contradicted
        tied, against = map(int, map(np.count_nonzero, masks))
        annotators = Rows.from_names(annotations.annotators).keys
        has_item_groups = annotations.item_groups is not None
        return cls(len(annotations), annotators, tied, against, has_item_groups)


@dataclass(frozen=True, eq=False)
class CachedShard:
    """One shard: where it comes from, and where its arrays are."""

    number: int
    shards: Shards
    classes: tuple[str, ...]  # [C] in the order of the arrays; for multi-label data, the labels
    folder: Path  # the cache
    annotations: Path | None
    """The file with the annotations of this shard's items; None where labels are there already."""
    reading: ReadOptions

    @property
    def name(self) -> str:
        return self.shards.files[self.number].name

    @property
    def scale(self) -> Scale:
        return self.shards.scale

    def write(self) -> tuple[int, LabelCounts | None, Arrays]:
        """Read and check the shard, match its items with the annotations, and write the arrays.

        How many items there are, their labels' counts (None if written already), and the arrays.
        """
        counts = None
        predictions = self.shards.read(self.number)
        if self.annotations is not None:
            annotations = read_shard_annotations(self.annotations, self.classes, self.reading)
            with errors_in(f"in shard {self.name}"):
                check_same_scale(self.scale, "predictions", annotations.scale, "annotations")
                annotations = annotations.align(predictions.rows)
            # Shards must not share their draws.
            seed = self.reading.seed * 1_000_003 + self.number
            y = hard_labels(annotations, self.reading.ties, seed)
            self.write_labels(annotations.soft_labels, y)
            self.write_group_keys(group_keys(annotations))
            counts = LabelCounts.from_annotations(annotations)
        P = self.scale.rows(predictions.order_classes(self.classes).probabilities)
        self._save("P", P)
        self._save("keys", predictions.rows.keys)
        if (clusters := predictions.rows.clusters) is not None:
            # No other shard has these numbers.
            self._save("owners", clusters.astype(np.int64) + (self.number << 32))
        return len(predictions), counts, Arrays(P, self._load("q"), self._load("y"))

    def write_labels(self, q: Floats, y: HardLabels) -> None:
        """Write the rows of soft and hard labels with one entry per item."""
        self._save("q", self.scale.rows(q))
        self._save("y", self.scale.row_codes(y).astype(np.int32))

    def write_group_keys(self, keys: Keys) -> None:
        """Write what tells the item groups of all shards apart [n]."""
        self._save("group-keys", keys)

    def group_keys(self) -> Keys:
        """What was written of the item groups [n]."""
        return self._load("group-keys")

    def write_groups(self, groups: Ints) -> None:
        """Write the number of each item's group [n], which is the same in all shards."""
        self._save("groups", groups)

    def write_folds(self, n_folds: int, random_state: int, folds: Ints) -> None:
        """Write the fold of each item [n], where folds are dealt over all shards."""
        self._save(f"folds-{n_folds}-{random_state}", folds)

    def has_folds(self, n_folds: int, random_state: int) -> bool:
        """Whether the fold of each item was written."""
        return self._file(f"folds-{n_folds}-{random_state}").exists()

    def folds(self, n_folds: int, random_state: int) -> Ints:
        """Return the fold of each item [n]."""
        if self.groups() is not None:
            return self._load(f"folds-{n_folds}-{random_state}")
        layout = self.layout()
        return layout.folds(self.arrays().y, n_folds, random_state, self.number)

    def arrays(self) -> Arrays:
        """What was written; files are mapped into memory, not read."""
        try:
            return Arrays(self._load("P"), self._load("q"), self._load("y"))
        except FileNotFoundError as error:
            raise InputError(
                f"this worker does not see the cache of the shards, {self.folder}",
                f"choose a folder on a shared disk with {option('scratch')}",
                code="unreachable-cache",
            ) from error

    def keys(self) -> Keys:
        """A number per item id [n], in the order of the items, by which they are drawn."""
        return self._load("keys")

    def layout(self) -> Layout:
        """Which rows of the arrays belong together."""
        owners = self.owners()
        groups = self.groups()
        if groups is None:
            groups = owners
        return Layout.from_scale(self.scale, self.classes, groups, are_pairs=owners is not None)

    def groups(self) -> Ints | None:
        """The number of each item's group [n]; None where the annotations name no groups."""
        if self._file("groups").exists():
            return self._load("groups")
        return None

    def owners(self) -> Ints | None:
        """The item of each pair of an item and an annotator [n], as a number; None of items."""
        if self._file("owners").exists():
            return self._load("owners")
        return None

    def _save(self, name: str, values: NDArray[Any]) -> None:
        try:
            np.save(self._file(name), np.ascontiguousarray(values))
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def _load(self, name: str) -> NDArray[Any]:
        return np.asanyarray(np.load(self._file(name), mmap_mode="r", allow_pickle=False))

    def _file(self, name: str) -> Path:
        return self.folder / f"{self.number:06d}.{name}.npy"


def hard_labels(annotations: Annotations, ties: Ties, seed: int) -> HardLabels:
    """Hard labels of items, without a word on ties, which are counted over all shards."""
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
    for part in cached:
        rows = part.shards.read_rows(part.number)
        places = source.rows.positions(rows)
        if (places < 0).any():
            missing = rows.take(places < 0)
            raise different_rows("annotations", f"shard {part.name}", len(rows), missing=missing)
        is_predicted[places] = True
        predicted_rows += len(rows)
        part.write_labels(q[places], y[places])
        if keys is not None:
            part.write_group_keys(keys[places])
    if not is_predicted.all():
        extra = source.rows.take(~is_predicted)
        raise different_rows("annotations", "predictions", predicted_rows, extra=extra)
    # Whoever read these annotations as one has warned of published labels.
    return [LabelCounts.from_annotations(source)._replace(contradicted=0)]


def make_folder(scratch: str | Path | None) -> Path:
    """A new folder for the cache.

    Without ``scratch`` it is where TMPDIR says, else in /var/tmp where there is one: /tmp is kept
    in memory on many machines.
    """
    if not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK):
        large = "/var/tmp"
    else:
        large = None
    parent = Path(scratch or large or tempfile.gettempdir())
    try:
        parent.mkdir(parents=True, exist_ok=True)
        # A killed run leaves its cache, which the next one removes.
        return temporary_folder(parent, "edo-shards-")
    except OSError as error:
        raise cannot_write(parent, error) from error
