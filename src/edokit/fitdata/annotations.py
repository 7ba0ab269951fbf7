"""Annotations of items in shards: in memory, a file per shard, or one long sorted table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from edokit._errors import InputError, errors_in, examples, option
from edokit._io import check_file
from edokit._io.tables import unreadable
from edokit._lazy import pa, pa_parquet, pd
from edokit._names import class_order, encode, owners
from edokit._types import Strings
from edokit.annotations import Annotations, PublishedLabelWarning
from edokit.datasets.read import read_annotations
from edokit.datasets.table import table_files, with_annotator
from edokit.predictions import Shards
from edokit.scales import NOMINAL, check_same_scale

# Rows of a long table that are looked at in one go.
_BATCH = 2**18


@contextmanager
def _without_conflicts() -> Iterator[None]:
    """Mute warnings about published labels: whoever reads all shards warns once, with a sum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublishedLabelWarning)
        yield


@dataclass(frozen=True)
class ReadOptions:
    """How annotations are read."""

    splits: tuple[str, ...] = ()  # only these, where given
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of ``read_annotations``: ``columns``, ``duplicates`` and the like."""
    pairs: bool = False
    """Whether each pair of an item and an annotator is an item."""

    def read(self, path: Path, classes: Sequence[str]) -> Annotations:
        with errors_in(path), _without_conflicts():
            return self._chosen(read_annotations(path, classes=classes, **self.options))

    def build(self, table: pa.Table, classes: Sequence[str]) -> Annotations:
        table = with_annotator(table, self.options.get("columns") or {})
        with _without_conflicts():
            return self._chosen(Annotations.from_table(table, classes=classes, **self.options))

    def _chosen(self, annotations: Annotations) -> Annotations:
        annotations = self._of_splits(annotations)
        return annotations.pairs() if self.pairs else annotations

    def _of_splits(self, annotations: Annotations) -> Annotations:
        if not self.splits:
            return annotations
        if annotations.splits is None:
            return annotations.split(*self.splits)
        # A shard need not hold items of every split.
        return annotations.take(np.flatnonzero(np.isin(annotations.splits, self.splits)))


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


class SortedAnnotations:
    """One long Parquet table whose items are in the order of the shards, read as needed."""

    def __init__(self, path: Path, reading: ReadOptions | None = None) -> None:
        self.path = path
        self._reading = reading or ReadOptions()
        columns = self._reading.options.get("columns") or {}
        self._item, self._split = (columns.get(name, name) for name in ("item", "split"))
        self._batches = self._read()
        self._waiting: pa.Table | None = None

    def of(self, items: Strings, shard: Path, classes: Sequence[str]) -> Annotations:
        """The annotations of a shard's items, in no particular order.

        Rows are read until one belongs to none of them: it is of a later shard.
        """
        index = pd.Index(owners(items), dtype=object).unique()
        parts: list[pa.Table] = []
        while (table := self._next()) is not None:
            encoded = encode(table[self._item], self._item)
            is_item = np.append(
                index.get_indexer(pd.Index(encoded.names, dtype=object)) >= 0, False
            )
            inside = is_item[encoded.codes]
            if inside.any():
                parts.append(table.filter(pa.array(inside)))
            if not inside.all():
                self._waiting = table.filter(pa.array(~inside))
                break
        if not parts:
            ahead = [] if self._waiting is None else self._items(self._waiting)
            raise InputError(
                f"{self.path} does not follow the order of the shards: at {shard.name} "
                + (f"come {examples(ahead)}" if ahead else "its annotations end"),
                "sort them like the shards, split them into files named like the shards, or check"
                " that no shard is missing",
            )
        with errors_in(self.path):
            return self._reading.build(pa.concat_tables(parts), classes)

    def finish(self) -> None:
        """Refuse annotations of items that no shard holds."""
        table = self._next()
        if table is not None:
            raise InputError(
                f"{self.path}: items from {examples(self._items(table)[:1])} on have no"
                " predictions",
                "check that no shard is missing, and that both are in the same order",
            )

    def _next(self) -> pa.Table | None:
        table, self._waiting = self._waiting, None
        return next(self._batches, None) if table is None else table

    def _items(self, table: pa.Table) -> list[str]:
        return list(encode(table[self._item], self._item).names[:3])

    def _read(self) -> Iterator[pa.Table]:
        """Some rows at a time, of the chosen splits alone."""
        split = self._split
        check_file(self.path)
        try:
            with pa_parquet.ParquetFile(self.path) as file:
                # Texts are the bulk of many tables, and nobody needs them here.
                names = [name for name in file.schema_arrow.names if name != "text"]
                if self._item not in names and "task" in names:
                    self._item = "task"
                for name in (self._item, *([split] if self._reading.splits else [])):
                    if name not in names:
                        raise InputError(
                            f"{self.path} has no column {name!r}; its columns are"
                            f" {examples(names, 20)}",
                            f"say which column it is with {option('columns', {'ROLE': 'NAME'})}",
                        )
                for batch in file.iter_batches(_BATCH, columns=names):
                    table = pa.Table.from_batches([batch])
                    if self._reading.splits:
                        encoded = encode(table[split], split)
                        is_listed = np.append(np.isin(encoded.names, self._reading.splits), False)
                        table = table.filter(pa.array(is_listed[encoded.codes]))
                    if table.num_rows:
                        yield table
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self.path, "Parquet", error) from error


# What a row of a long table takes in memory, item, annotator and label with their names.
_ROW_BYTES = 150
# And a byte of a text file: a row is some thirty.
_TEXT_FACTOR = 5


# The annotations of all shards: in memory, one long table in their order, or a file for each.
Source: TypeAlias = Annotations | SortedAnnotations | tuple[Path, ...]


def find_annotations(
    annotations: Annotations | SortedAnnotations | str | Path,
    shards: Shards,
    classes: Sequence[str] | None,
    reading: ReadOptions,
    memory: int,
) -> tuple[Source, tuple[str, ...]]:
    """Annotations in the form that suits their size, and their classes in order."""
    if isinstance(annotations, str | Path):
        source = _in_files(Path(annotations), shards, classes, reading, memory)
    elif isinstance(annotations, Annotations | SortedAnnotations):
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
        if path.suffix.lower() == ".parquet":
            return SortedAnnotations(path, reading)
        raise InputError(
            f"{path} takes more than half of the memory, and is neither in files named like the"
            f" shards of predictions ({examples(file.stem for file in shards.files)}) nor one"
            " Parquet table in their order",
            f"rename or convert the files, or allow more {option('memory')}",
        )
    split = reading.splits[0] if len(reading.splits) == 1 else None
    annotations = read_annotations(path, classes=classes, split=split, **reading.options)
    if len(reading.splits) > 1:
        annotations = annotations.split(*reading.splits)
    return annotations.pairs() if reading.pairs else annotations


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
