"""The annotations of a run, and the file that they are in."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from edokit._errors import InputError, examples, local_path, option, warn
from edokit._io.digests import digest_input
from edokit.annotations.core import Annotations
from edokit.datasets.people import with_people
from edokit.datasets.read import ScaleWarning, read_annotations, write_annotations
from edokit.members.training_data import DEV, TRAIN
from edokit.runs.inputs import Input
from edokit.scales import NOMINAL, looks_ordinal

ANNOTATIONS = "annotations.parquet"
_RARE = 2
"""Annotations of a label that may be a mistake."""


@dataclass(frozen=True, eq=False)
class AnnotationsFile:
    """Annotations, the file that they are in, and how it is read."""

    annotations: Annotations
    path: Path
    sha256: str | None
    reading: Mapping[str, Any]
    """Arguments of `read_annotations`."""
    splits: list[str]
    """The splits to learn from; empty where items have no split."""

    @property
    def to_learn_from(self) -> Annotations:
        """The annotations of the splits to learn from."""
        if not self.splits:
            return self.annotations
        return self.annotations.split(*self.splits)

    def recorded(self) -> Input:
        """What the record of the run says of the file."""
        return Input(str(self.path), self.sha256, dict(self.reading))

    def recorded_splits(self) -> Input:
        """The same where only the splits to learn from are read."""
        options = {name: value for name, value in self.reading.items() if value is not None}
        if self.splits:
            options["split"] = self.splits
        return Input(str(self.path), self.sha256, options)


def read_source(
    annotations: str | Path | Annotations | pd.DataFrame, folder: Path, reading: Mapping[str, Any]
) -> AnnotationsFile:
    """The annotations of a run.

    Those that are not in a file are written into the folder, so that commands can read them.
    """
    if isinstance(annotations, str | Path):
        path = local_path(annotations)
        sha256 = digest_input(path)  # before it is read: it may be modified meanwhile
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScaleWarning)  # asked below
            labels = read_annotations(path, **reading)
        _check_labels(labels, reading)
        return AnnotationsFile(labels, path, sha256, reading, _training_splits(labels))
    if isinstance(annotations, Annotations):
        labels = annotations
    else:
        of_table = dict(reading)
        attributes = of_table.pop("attributes", None)
        people = of_table.pop("people", None)
        labels = Annotations.from_table(annotations, **of_table)
        if people is not None:
            labels = with_people(labels, people, reading.get("columns"))
        if attributes is not None:
            labels = labels.with_attributes(attributes)
    _check_labels(labels, reading)
    path = folder / ANNOTATIONS
    write_annotations(labels, path)
    written = {
        "classes": list(labels.classes),
        "scale": labels.scale.to_text(labels.classes),
        "duplicates": "all",
    }
    return AnnotationsFile(labels, path, digest_input(path), written, _training_splits(labels))


def _training_splits(annotations: Annotations) -> list[str]:
    return [name for name in annotations.split_names if name in (TRAIN, *DEV)]


def _check_labels(annotations: Annotations, reading: Mapping[str, Any]) -> None:
    """Ask about numbers that may be a scale, and name labels that may be mistakes."""
    classes = annotations.classes
    if "scale" not in reading and annotations.scale == NOMINAL and looks_ordinal(classes):
        raise InputError(
            f"the labels {', '.join(classes)} may be points of a scale or classes without an order",
            f"say which: {option('scale', 'ordinal')} or {option('scale', 'nominal')}",
        )
    _warn_of_rare_labels(annotations)


def _warn_of_rare_labels(annotations: Annotations) -> None:
    """Name classes that next to nobody chose, which may be spelling mistakes."""
    if len(annotations) < 100 * _RARE:
        return
    counts = annotations.counts.sum(axis=0)
    rare = [
        name for name, count in zip(annotations.classes, counts, strict=True) if 0 < count <= _RARE
    ]
    if rare:
        warn(
            f"of {len(annotations)} annotations at most {_RARE} each chose {examples(rare)}; if"
            f" that is a mistake: {option('label_map', {rare[0]: 'LABEL'})}, or"
            f" {option('drop_label', [rare[0]])}"
        )
