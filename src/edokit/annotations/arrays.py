"""Annotations from arrays: a matrix of labels with gaps, or soft labels alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import HAVE, InputError, are, examples
from edokit._names import as_names, column_of, encode, recode
from edokit._types import Bools
from edokit.annotations.core import Annotations
from edokit.annotations.labels import read_labels
from edokit.annotations.long_table import checked_shares, ordered_classes, unique_ids
from edokit.rows import Rows
from edokit.scales import Declared, ScaleLike


def from_wide_matrix(
    matrix: Any,
    items: Iterable[object] | None,
    annotators: Iterable[object] | None,
    classes: Sequence[object] | None,
    missing: object,
    scale: ScaleLike | None,
) -> Annotations:
    """See ``Annotations.from_matrix``."""
    declared = Declared(scale or "nominal")
    if declared.kind == "multi-label":
        raise InputError(
            "a matrix has one label per cell, so it can't be multi-label",
            "give a table with one row per annotation, or per chosen label",
        )
    classes = declared.classes if classes is None else classes
    if isinstance(matrix, pd.DataFrame):
        items = matrix.index.tolist() if items is None else items
        annotators = matrix.columns.tolist() if annotators is None else annotators
    values, gaps = _labels_and_gaps(matrix, missing)
    n, a = values.shape
    item_names = unique_ids(items, n, "item ids", "row")
    annotator_names = unique_ids(annotators, a, "annotator ids", "column")
    empty = item_names[gaps.all(axis=1)]
    if len(empty):
        raise InputError(
            f"{are(len(empty), n, HAVE)} no annotation: {examples(empty)}", "drop these rows"
        )
    rows, columns = np.nonzero(~gaps)

    def place(entry: int) -> str:
        item, annotator = item_names[rows[entry]], annotator_names[columns[entry]]
        return f"item {item!r} of annotator {annotator!r}"

    encoded = encode(column_of(values[rows, columns], "label", place), "label")
    order = ordered_classes(classes, encoded.names)
    scaled = declared.on(order)
    read_labels(encoded, "label", place, classes=None if classes is None else order)
    return Annotations(
        rows=Rows.of(item_names),
        annotators=annotator_names,
        classes=order,
        item_codes=rows.astype(np.int32),
        annotator_codes=columns.astype(np.int32),
        label_codes=recode(encoded, order, "label", "classes", place),
        scale=scaled,
    )


def from_shares(
    soft_labels: Any,
    items: Iterable[object] | None,
    classes: Sequence[object] | None,
    annotator: str,
    scale: ScaleLike | None,
) -> Annotations:
    """See ``Annotations.from_soft_labels``."""
    if isinstance(soft_labels, pd.DataFrame):
        items = soft_labels.index.tolist() if items is None else items
        classes = soft_labels.columns.tolist() if classes is None else classes
    try:
        shares = np.asarray(soft_labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"soft labels are numbers of shape [items, classes]; these are not: {error}",
            "give one row of shares per item, all of one length",
        ) from error
    if shares.ndim != 2 or 0 in shares.shape:
        raise InputError(
            f"soft labels have the shape [items, classes]; these have {shares.shape}",
            "give one row of shares per item",
        )
    if isinstance(soft_labels, np.ma.MaskedArray):
        shares = np.where(np.ma.getmaskarray(soft_labels), np.nan, shares)
    n, c = shares.shape
    item_names = unique_ids(items, n, "item ids", "row")
    declared = Declared(scale or "nominal")
    order = tuple(unique_ids(declared.classes or classes, c, "class names", "column"))
    scaled = declared.on(order)
    return Annotations(
        rows=Rows.of(item_names),
        annotators=as_names([annotator]),
        classes=order,
        scale=scaled,
        item_codes=np.arange(n, dtype=np.int32),
        annotator_codes=np.zeros(n, dtype=np.int32),
        label_codes=None,
        label_probabilities=checked_shares(shares, scaled, lambda row: f"item {item_names[row]!r}"),
    )


def _labels_and_gaps(matrix: Any, missing: object) -> tuple[npt.NDArray[Any], Bools]:
    """The matrix [N, A] as an array, and a mask of its gaps."""
    try:
        values = matrix.to_numpy(object) if isinstance(matrix, pd.DataFrame) else np.asarray(matrix)
        if values.dtype.kind not in "biufO":
            # numpy turns [1, "a", None] into text; objects keep their types.
            values = np.asarray(matrix, dtype=object)
        problem = f"this one has {values.shape}" if values.ndim != 2 or 0 in values.shape else ""
    except ValueError:
        problem = "its rows differ in length"
    if problem:
        raise InputError(
            f"a matrix of labels has the shape [items, annotators]; {problem}",
            "give one row per item and one column per annotator, all rows of one length",
        )
    gaps: Bools = np.asarray(pd.isna(values))
    if isinstance(matrix, np.ma.MaskedArray):
        gaps = gaps | np.ma.getmaskarray(matrix)
    for gap in ("", missing):
        if gap is None or (isinstance(gap, str) and values.dtype.kind != "O"):
            continue
        # Compared only where there is a value: comparing pandas' NA gives NA.
        gaps[~gaps] = np.asarray(values[~gaps] == gap, dtype=bool)
    return values, gaps
