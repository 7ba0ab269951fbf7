"""The annotations of a run, and the file that they are in."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edokit._errors import (
    Decision,
    OpenDecisionsError,
    are,
    counted,
    errors_in,
    examples,
    headings,
    local_path,
    option,
    warn,
)
from edokit._io.atomic import check_file
from edokit._io.digests import digest_input
from edokit.annotations.core import Annotations
from edokit.annotations.decisions import read_or_ask_all
from edokit.annotations.people import contradictions
from edokit.annotations.roles import SHORTEST_TEXT
from edokit.datasets.people import with_people
from edokit.datasets.read import (
    ScaleWarning,
    possible_points,
    read_annotations,
    write_annotations,
)
from edokit.members.training_data import DEV, TRAIN
from edokit.runs.inputs import Input

ANNOTATIONS = "annotations.parquet"
_RARE_COUNT = 2
"""A label with at most this many annotations may be a mistake."""
_NO_JUDGEMENT = {"unsure", "not sure", "don't know", "skip", "skipped", "n/a", "na", "?"}
"""Labels, in lower case, that seldom are classes."""
_FREQUENT = 20
"""A label with at least this many annotations may be what a misspelt label should be."""
_RESEMBLANCE = 0.7
"""The least similarity of a misspelt label, from 0 to 1, as of `difflib`."""
_MOST_MISSPELT = 10
"""Misspelt labels that a message names."""


@dataclass(frozen=True, eq=False)
class AnnotationsFile:
    """Annotations, the file that they are in, and how it is read."""

    annotations: Annotations
    path: Path
    sha256: str | None
    reading: Mapping[str, Any]
    """Arguments of `read_annotations`."""
    splits: list[str]
    """The splits to learn from; empty if items are not split."""

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
        if not path.exists():
            check_file(path)
        sha256 = digest_input(path)  # before it is read: it may be modified meanwhile

        def read_file(arguments: Mapping[str, Any]) -> Annotations:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ScaleWarning)  # a decision below
                labels = read_annotations(path, **arguments)
            with errors_in(path):
                _check_open_decisions(labels, arguments)
            return labels

        labels = read_or_ask_all(read_file, reading)
        _warn_of_doubtful_values(labels)
        return AnnotationsFile(labels, path, sha256, reading, _training_splits(labels))

    def read_table(arguments: Mapping[str, Any]) -> Annotations:
        labels = annotations
        if not isinstance(labels, Annotations):
            table_arguments = dict(arguments)
            attributes = table_arguments.pop("attributes", None)
            people = table_arguments.pop("people", None)
            labels = Annotations.from_table(labels, **table_arguments)
            if people is not None:
                labels = with_people(labels, people, arguments.get("columns"))
            if attributes is not None:
                labels = labels.with_attributes(attributes)
        _check_open_decisions(labels, arguments)
        return labels

    labels = read_or_ask_all(read_table, reading)
    _warn_of_doubtful_values(labels)
    path = folder / ANNOTATIONS
    write_annotations(labels, path)
    reading_of_copy: dict[str, Any] = {
        "classes": list(labels.classes),
        "scale": labels.scale.to_text(labels.classes),
        "duplicates": "all",
    }
    if _has_columns_like_attributes(labels):
        reading_of_copy["attributes"] = list(labels.people.names)
    return AnnotationsFile(
        labels, path, digest_input(path), reading_of_copy, _training_splits(labels)
    )


def _has_columns_like_attributes(annotations: Annotations) -> bool:
    """Whether a column that is not an attribute would be read as one: it has a value per person."""
    for values in annotations.annotation_columns.values():
        values_per_annotator = pd.Series(values).groupby(annotations.annotator_codes).nunique()
        if (values_per_annotator <= 1).all():
            return True
    return False


def _training_splits(annotations: Annotations) -> list[str]:
    """The splits that members may learn from, of those in the table."""
    return [name for name in annotations.split_names if name in (TRAIN, *DEV)]


def _check_open_decisions(annotations: Annotations, reading: Mapping[str, Any]) -> None:
    """Raise an error that lists what the user has to decide.

    It is about numbers that may be a scale, labels that may be misspelt, and missing texts.
    """
    decisions = []
    points, outliers = possible_points(annotations)
    if reading.get("scale") is None and points:
        outlier_note = ""
        if outliers:
            outlier_note = f" ({examples(outliers)} beside them may be a mistake)"
        decisions.append(
            Decision(
                f"the labels {', '.join(points)}{outlier_note} may be points of a scale or classes"
                " without an order",
                f"say which: {option('scale', 'ordinal')} or {option('scale', 'nominal')}",
                {"scale": "ordinal"},
                code="undeclared-order",
            )
        )
    misspelt = _misspelt_labels(annotations)
    if misspelt and reading.get("classes") is None:
        verb = "occurs"
        if len(misspelt) > 1:
            verb = "occur"
        decisions.append(
            Decision(
                f"{counted(len(misspelt), 'label')} {verb} once and may be misspelt:"
                f" {examples(misspelt, _MOST_MISSPELT)}",
                f"read them as others, {option('label_map', misspelt)}, or declare all classes by"
                f" {option('classes', list(annotations.classes))}",
                {"label_map": misspelt},
                code="doubtful-spelling",
            )
        )
    texts = annotations.texts
    if texts is None:
        decisions.append(_missing_text(annotations, reading.get("columns") or {}))
    else:
        is_empty = np.array([not text.strip() for text in texts])
        if is_empty.any():
            decisions.append(
                Decision(
                    f"{are(int(is_empty.sum()), len(texts), noun='item')} without a text:"
                    f" {examples(annotations.items[is_empty])}",
                    f"choose {option('empty', 'drop')}, or fill them in",
                    {"empty": "drop"},
                    code="missing-value",
                )
            )
    if decisions:
        raise OpenDecisionsError(decisions)


def _misspelt_labels(annotations: Annotations) -> dict[str, str]:
    """The frequent label that each label of a single annotation resembles, whatever its case."""
    if annotations.scale.kind == "ordinal":
        return {}
    counts = annotations.counts.sum(axis=0)
    totals = dict(zip(annotations.classes, counts.tolist(), strict=True))
    frequent = {name.lower(): name for name, count in totals.items() if count >= _FREQUENT}
    misspelt: dict[str, str] = {}
    for name, count in totals.items():
        if count != 1 or name.isdecimal():
            continue
        close = get_close_matches(name.lower(), frequent, 1, _RESEMBLANCE)
        if close:
            misspelt[name] = frequent[close[0]]
    return misspelt


def _missing_text(annotations: Annotations, columns: Mapping[str, str]) -> Decision:
    """The question which column has the texts, with a proposal: that with the longest values."""
    lengths = {}
    if "item" in columns:
        lengths[columns["item"]] = float(np.mean([len(name) for name in annotations.items]))
    for name, values in annotations.item_columns.items():
        lengths[name] = float(np.mean([len(value) for value in values]))
    proposed = "NAME"
    if lengths:
        longest = max(lengths, key=lengths.__getitem__)
        if lengths[longest] >= SHORTEST_TEXT:
            proposed = longest
    return Decision(
        f"members train on texts, and no column is called 'text'; the columns of items are"
        f" {headings(annotations.item_columns) or 'none'}",
        f"say which one it is: {option('columns', {'text': proposed})}",
        {"columns": {"text": proposed}},
        can_be_tried=proposed != "NAME",
        code="missing-texts",
    )


def _warn_of_doubtful_values(annotations: Annotations) -> None:
    """Warn of classes and columns that may have been misread."""
    _warn_of_rare_labels(annotations)
    for name in annotations.classes:
        if name.strip().lower() in _NO_JUDGEMENT:
            warn(
                f"the label {name!r} is read as a class; to leave out such labels:"
                f" {option('drop_label', [name])}"
            )
    columns = contradictions(
        annotations.annotators, annotations.annotator_codes, annotations.annotation_columns
    )
    for name, reason in columns.items():
        warn(f"column {name!r} is not used as an attribute of annotators: {reason}")


def _warn_of_rare_labels(annotations: Annotations) -> None:
    """Warn of very rare classes, which may be spelling mistakes."""
    if len(annotations) < 100 * _RARE_COUNT:
        return
    counts = annotations.counts.sum(axis=0)
    rare = [
        name
        for name, count in zip(annotations.classes, counts, strict=True)
        if 0 < count <= _RARE_COUNT
    ]
    if rare:
        warn(
            f"of {len(annotations)} annotations at most {_RARE_COUNT} each chose {examples(rare)};"
            f" if that is a mistake: {option('label_map', {rare[0]: 'LABEL'})}, or"
            f" {option('drop_label', [rare[0]])}"
        )
