"""Annotations from arrays: a matrix of labels with gaps, or soft labels alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import HAVE, InputError, are, examples
from edokit._io.tables import PROBABILITY
from edokit._names import column_of, positions
from edokit._types import Bools
from edokit.annotations.core import Annotations
from edokit.annotations.long_table import from_long_table, unique_ids
from edokit.scales import DeclaredScale, ScaleLike


def from_wide_matrix(
    matrix: Any,
    items: Iterable[object] | None,
    annotators: Iterable[object] | None,
    classes: Sequence[object] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """See ``Annotations.from_matrix``."""
    if isinstance(matrix, pd.DataFrame):
        items = matrix.index.tolist() if items is None else items
        annotators = matrix.columns.tolist() if annotators is None else annotators
    values, gaps = _labels_and_gaps(matrix)
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

    table = {
        "item": item_names[rows],
        "annotator": annotator_names[columns],
        "label": column_of(values[rows, columns], "label", place),
    }
    annotations = from_long_table(table, classes=classes, scale=scale, place=place)
    # Annotators in the order of the columns, also those without an answer.
    codes = positions(annotations.annotators, annotator_names)[annotations.annotator_codes]
    return replace(annotations, annotators=annotator_names, annotator_codes=codes.astype(np.int32))


def from_shares(
    soft_labels: Any,
    items: Iterable[object] | None,
    classes: Sequence[object] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """See ``Annotations.from_soft_labels``."""
    if isinstance(soft_labels, pd.DataFrame):
        items = soft_labels.index.tolist() if items is None else items
        classes = soft_labels.columns.tolist() if classes is None else classes
    try:
        shares = np.asarray(soft_labels, dtype=np.float64)
        if shares.ndim != 2 or 0 in shares.shape:
            raise ValueError(f"they have the shape {shares.shape}")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"soft labels are numbers of shape [items, classes]; these are not: {error}",
            "give one row of shares per item, all of one length",
        ) from error
    shares = np.ma.filled(np.ma.masked_array(shares, np.ma.getmask(soft_labels)), np.nan)
    n, c = shares.shape
    item_names = unique_ids(items, n, "item ids", "row")
    declared = DeclaredScale(scale or "nominal").classes or classes
    order = tuple(unique_ids(declared, c, "class names", "column"))
    table = {"item": item_names, "annotator": ["soft"] * n}
    table |= {PROBABILITY + name: column for name, column in zip(order, shares.T, strict=True)}
    return from_long_table(
        table, classes=order, scale=scale, place=lambda row: f"item {item_names[row]!r}"
    )


def _labels_and_gaps(matrix: Any) -> tuple[npt.NDArray[Any], Bools]:
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
    gaps: Bools = np.asarray(pd.isna(values)) | np.ma.getmaskarray(matrix)
    if values.dtype.kind == "O":
        # Compared only where there is a value: comparing pandas' NA gives NA.
        gaps[~gaps] = np.asarray(values[~gaps] == "", dtype=bool)
    return values, gaps
