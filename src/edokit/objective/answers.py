"""Which annotations belong to which shard."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pa_parquet

from edokit._errors import EDOWarning, InputError, examples
from edokit._names import class_order
from edokit.annotations import Annotations
from edokit.datasets import read_annotations
from edokit.datasets.shards import AnnotationFiles, Reading, SortedAnnotations
from edokit.datasets.table import table_files
from edokit.objective.working_copy import Part, Told, matched, tied_items
from edokit.predictions import Shards
from edokit.predictions.duplicate_items import hashes

# What a row of a long table takes in memory, item, annotator and label with their names.
_ROW_BYTES = 150
# And a byte of a text file: a row is some thirty.
_TEXT_FACTOR = 5


@dataclass(frozen=True, eq=False)
class People:
    """The annotations of all shards, in one of three forms."""

    classes: tuple[str, ...]
    """[C] in order."""
    whole: Annotations | None = None
    """All in memory, or …"""
    stream: SortedAnnotations | None = None
    """… one long table in the order of the shards, or …"""
    files: tuple[Path, ...] = ()
    """… a file for each shard."""


def find_people(
    source: Annotations | AnnotationFiles | SortedAnnotations | str | Path,
    shards: Shards,
    classes: Sequence[str] | None,
    reading: Reading,
    memory: int,
) -> People:
    """Annotations in the form that suits their size: in memory if they take little of it."""
    order = tuple(classes) if classes is not None else class_order(shards.classes)
    if isinstance(source, AnnotationFiles):
        return _ordered(People(order, files=source.files), shards)
    if isinstance(source, SortedAnnotations):
        return _ordered(People(order, stream=source), shards)
    if isinstance(source, Annotations):
        return _whole(source, shards)
    if not isinstance(source, str | Path):
        raise InputError(
            "the answers to shards must name their items, but got"
            f" {type(source).__name__} instead of annotations, a file or a folder",
            "give Annotations, or the path to a table",
        )
    path = Path(source)
    if path.is_dir() and table_files(path) and not any(path.glob("*.json")):
        named = AnnotationFiles.match(path, shards.files, reading)
        if named is not None:
            return _ordered(People(order, files=named.files), shards)
    large = _needs(path) > memory / 2
    if large and path.suffix.lower() != ".parquet":
        raise InputError(
            "annotations that take much memory must be in files named like the shards of"
            f" predictions ({examples(file.stem for file in shards.files)}) or in one Parquet table"
            f" in their order, but {path} is neither",
            "rename or convert the files, or allow more with --memory",
        )
    if large:
        return _ordered(People(order, stream=SortedAnnotations(path, reading)), shards)
    several = len(reading.splits) > 1
    split = reading.splits[0] if len(reading.splits) == 1 else None
    people = read_annotations(path, classes=classes, split=split, **reading.options)
    return _whole(people.of_splits(reading.splits) if several else people, shards)


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
        y = people.hard_labels(ties=parts[0].ties, seed=parts[0].seed)
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


def _whole(people: Annotations, shards: Shards) -> People:
    if len(shards.classes) > len(people.classes):
        people = people.with_classes(shards.classes)
    return _ordered(People(people.classes, whole=people), shards)


def _ordered(people: People, shards: Shards) -> People:
    """Itself, if the predictions are about its classes."""
    if sorted(people.classes) != sorted(shards.classes):
        raise InputError(
            f"predictions must be about the classes {examples(people.classes, 20)}, but are about"
            f" {examples(shards.classes, 20)}",
            "rename the classes, or declare them with --classes",
        )
    return people


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
