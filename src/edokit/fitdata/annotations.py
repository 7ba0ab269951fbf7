"""Annotations of items in shards: in memory, or a file per shard."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pa_parquet

from edokit._errors import InputError, errors_in, examples, option
from edokit._names import class_order
from edokit.annotations import Annotations, PublishedLabelWarning
from edokit.datasets.read import read_annotations
from edokit.datasets.table import table_files
from edokit.predictions import Shards
from edokit.scales import NOMINAL, check_same_scale


@dataclass(frozen=True)
class ReadOptions:
    """How annotations are read."""

    splits: tuple[str, ...] = ()  # only these, where given
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``read_annotations``: ``columns``, ``duplicates`` and the like."""
    pairs: bool = False
    """Whether each pair of an item and an annotator is an item."""

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
        return self.view(annotations)

    def view(self, annotations: Annotations) -> Annotations:
        """The annotations as they are, or of pairs."""
        return annotations.pairs() if self.pairs else annotations


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


# What a row of a long table takes in memory, item, annotator and label with their names.
_ROW_BYTES = 150
# And a byte of a text file: a row is some thirty.
_TEXT_FACTOR = 5


# The annotations of all shards: in memory, or a file for each.
Source: TypeAlias = Annotations | tuple[Path, ...]


def find_annotations(
    annotations: Annotations | str | Path,
    shards: Shards,
    classes: Sequence[str] | None,
    reading: ReadOptions,
    memory: int,
) -> tuple[Source, tuple[str, ...]]:
    """Annotations in the form that suits their size, and their classes in order."""
    if isinstance(annotations, str | Path):
        source = _in_files(Path(annotations), shards, classes, reading, memory)
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
    path: Path, shards: Shards, classes: Sequence[str] | None, reading: ReadOptions, memory: int
) -> Source:
    """In memory if they take little of it."""
    if path.is_dir() and table_files(path) and not any(path.glob("*.json")):
        files = match_files(path, shards.files)
        if files:
            return files
    if _needs(path) > memory / 2:
        raise InputError(
            f"{path} takes more than half of the memory, and is not in files named like the shards"
            f" of predictions ({examples(file.stem for file in shards.files)})",
            f"split or rename the files, or allow more {option('memory')}",
        )
    split = reading.splits[0] if len(reading.splits) == 1 else None
    annotations = read_annotations(path, classes=classes, split=split, **reading.options)
    if len(reading.splits) > 1:
        annotations = annotations.split(*reading.splits)
    return reading.view(annotations)


def _needs(path: Path) -> int:
    """About the bytes that annotations take in memory."""
    try:
        return sum(
            int(pa_parquet.read_metadata(file).num_rows) * _ROW_BYTES
            if file.suffix.lower() == ".parquet"
            else file.stat().st_size * _TEXT_FACTOR
            for file in table_files(path)
        )
    except Exception:  # whatever is wrong with a file, its reader names it
        return 0
