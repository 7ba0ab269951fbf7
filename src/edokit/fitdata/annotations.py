"""Annotations of items in shards: in memory, or a file per shard."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from edokit._errors import InputError, errors_in, examples, option
from edokit._names import class_order
from edokit.annotations import Annotations, PublishedLabelWarning
from edokit.datasets.read import read_annotations
from edokit.datasets.table import table_files
from edokit.predictions import Shards
from edokit.predictions.core import view_labels
from edokit.scales import NOMINAL, check_same_scale


@dataclass(frozen=True)
class ReadOptions:
    """How annotations are read."""

    splits: tuple[str, ...] = ()  # only these, where given
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``read_annotations``: ``columns``, ``duplicates`` and the like."""
    learn: str | None = None
    """What is learned from pairs of an item and an annotator, see `LEARN`."""

    def read(self, path: Path, classes: Sequence[str]) -> Annotations:
        with errors_in(path), warnings.catch_warnings():
            # Whoever reads all shards warns of published labels once, with a sum.
            warnings.simplefilter("ignore", PublishedLabelWarning)
            annotations = read_annotations(path, classes=classes, **self.options)
            if annotations.splits is not None and self.splits:
                # A shard need not hold items of every split.
                annotations = annotations.take(np.isin(annotations.splits, self.splits))
            elif self.splits:
                annotations = annotations.split(*self.splits)
        return view_labels(annotations, self.learn)


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
        )
    return tuple(files[name] for name in names)


# The annotations of all shards: in memory, or a file for each.
Source: TypeAlias = Annotations | tuple[Path, ...]


def find_annotations(
    annotations: Annotations | str | Path,
    shards: Shards,
    classes: Sequence[str] | None,
    reading: ReadOptions,
) -> tuple[Source, tuple[str, ...]]:
    """The annotations, in memory or a file for each shard, and their classes in order."""
    if isinstance(annotations, str | Path):
        source = _in_files(Path(annotations), shards, classes, reading)
    elif isinstance(annotations, Annotations):
        source = annotations
    else:
        raise InputError(
            "items in shards are matched with their annotations by id, and a"
            f" {type(annotations).__name__} names no items",
            "give Annotations, or the path to a table",
        )
    by_name = class_order(shards.classes) if shards.scale == NOMINAL else shards.classes
    order = by_name if classes is None else tuple(classes)
    if isinstance(source, Annotations):
        source = view_labels(source, reading.learn)
        check_same_scale(shards.scale, "predictions", source.scale, "annotations")
        if len(shards.classes) > len(source.classes):
            source = source.with_classes(shards.classes)
        order = source.classes
    if sorted(order) != sorted(shards.classes):
        raise InputError(
            f"the predictions are about the classes {examples(shards.classes, 20)}, not about"
            f" {examples(order, 20)}",
            f"rename the classes, or declare all of them: {option('classes')}",
        )
    return source, order


def _in_files(
    path: Path, shards: Shards, classes: Sequence[str] | None, reading: ReadOptions
) -> Source:
    """A file for each shard where there are such, else all annotations in memory."""
    if path.is_dir() and table_files(path) and not any(path.glob("*.json")):
        files = match_files(path, shards.files)
        if files:
            return files
    split = reading.splits[0] if len(reading.splits) == 1 else None
    annotations = read_annotations(path, classes=classes, split=split, **reading.options)
    if len(reading.splits) > 1:
        annotations = annotations.split(*reading.splits)
    return annotations
