"""Annotations from arrays: a matrix of labels with gaps, or soft labels alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import HAVE, InputError, are, examples
from edokit._io.tables import PROBABILITY
from edokit._names import as_names, column_of, encode, warn_variants
from edokit._types import Bools, Floats
from edokit.annotations.core import Annotations
from edokit.annotations.labels import (
    as_points,
    checked_shares,
    list_labels_as_text,
    ordered_classes,
    read_labels,
    unique_ids,
)
from edokit.item_array import classes_of, rows_of
from edokit.rows import Rows, check_same_ids, is_default_index
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike


def from_wide_matrix(
    matrix: npt.ArrayLike,
    items: Iterable[object] | None,
    annotators: Iterable[object] | None,
    classes: Sequence[object] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """See ``Annotations.from_matrix``."""
    if isinstance(matrix, pd.DataFrame):
        if items is None and not is_default_index(matrix.index):
            items = matrix.index.tolist()
        if annotators is None:
            annotators = matrix.columns.tolist()
    values, gaps = _labels_and_gaps(matrix)
    n_items, n_annotators = values.shape
    rows = _item_rows(items, n_items, matrix)
    declared = DeclaredScale(scale or NOMINAL)
    annotator_names = unique_ids(annotators, n_annotators, "annotator ids", "column")
    is_empty = gaps.all(axis=1)
    if is_empty.any():
        raise InputError(
            f"{are(int(is_empty.sum()), n_items, HAVE)} no annotation:"
            f" {examples(rows.take(is_empty).names)}",
            "drop these rows",
            code="missing-value",
        )
    item_codes, annotator_codes = np.nonzero(~gaps)

    def place(entry: int) -> str:
        item = rows.items[item_codes[entry]]
        annotator = annotator_names[annotator_codes[entry]]
        return f"item {item!r} of annotator {annotator!r}"

    declared_classes = declared.classes
    if classes is not None:
        declared_classes = ordered_classes(classes, ())
    is_set = declared.kind == "multi-label"
    column = column_of(values[item_codes, annotator_codes], "label", place)
    encoded = encode(list_labels_as_text(column), "label")
    points = {}
    if declared.kind == "ordinal":
        points = as_points(encoded.names, declared_classes)
    labels = read_labels(
        encoded, "label", place, classes=declared_classes, label_map=points, sets=is_set
    )
    if annotators is not None:
        column_of(annotator_names, "annotator")  # refuses names that are not valid Unicode
        warn_variants(annotator_names, "annotators")
    answers = labels.encode(declared_classes, n_items, place, sets=is_set)
    return Annotations(
        rows=rows,
        annotators=annotator_names,
        classes=answers.classes,
        item_codes=item_codes.astype(np.int32),
        annotator_codes=annotator_codes.astype(np.int32),
        label_codes=answers.codes,
        label_probabilities=answers.probabilities,
        scale=declared.resolve(answers.classes, labels.first(place)),
    )


def from_shares(
    soft_labels: npt.ArrayLike,
    items: Iterable[object] | None,
    classes: Sequence[object] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """See ``Annotations.from_soft_labels``."""
    if isinstance(soft_labels, pd.DataFrame):
        if items is None and not is_default_index(soft_labels.index):
            items = soft_labels.index.tolist()
        if classes is None:
            classes = soft_labels.columns.tolist()
    shares = _shares(soft_labels)
    n_items, n_classes = shares.shape
    rows = _item_rows(items, n_items, soft_labels)
    if classes is None:
        classes = classes_of(soft_labels)
    declared = DeclaredScale(scale or NOMINAL)
    order = tuple(unique_ids(declared.classes or classes, n_classes, "class names", "column"))
    is_set = declared.kind == "multi-label"
    if n_classes < 2 and not is_set:
        columns = examples([PROBABILITY + name for name in order])
        raise InputError(
            f"the probability columns are {columns}, but there must be a column p_<class> for each"
            " of at least two classes",
            "complete or rename the columns",
            code="missing-column",
        )
    row_scale = NOMINAL
    if is_set:
        row_scale = Scale("multi-label")
    return Annotations(
        rows=rows,
        annotators=as_names(["soft"]),
        classes=order,
        item_codes=np.arange(n_items, dtype=np.int32),
        annotator_codes=np.zeros(n_items, dtype=np.int32),
        label_codes=None,
        label_probabilities=checked_shares(
            shares, row_scale, lambda row: f"item {rows.items[row]!r}"
        ),
        scale=declared.resolve(order),
    )


def _item_rows(items: Iterable[object] | None, n_items: int, source: npt.ArrayLike) -> Rows:
    """The index of items with these ids, with those of the array, or of items without ids."""
    array_rows = rows_of(source)
    if array_rows is not None:
        if items is not None:
            check_same_ids(array_rows, as_names(items))
        return array_rows
    if items is None:
        return Rows.numbered(n_items)
    names = unique_ids(items, n_items, "item ids", "row")
    column_of(names, "item")  # refuses names that are not valid Unicode
    warn_variants(names, "items", case=False)
    return Rows.from_names(names)


def _shares(soft_labels: npt.ArrayLike) -> Floats:
    """Soft labels as numbers [N, C], with NaN where they are masked."""
    try:
        shares = np.asarray(soft_labels, dtype=np.float64)
        if shares.ndim != 2 or 0 in shares.shape:
            raise ValueError(f"they have the shape {shares.shape}")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"soft labels are numbers of shape [items, classes]; these are not: {error}",
            "give one row of shares per item, all of one length",
            code="wrong-shape",
        ) from error
    if isinstance(soft_labels, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(soft_labels), np.nan, shares)
    return shares


def _labels_and_gaps(matrix: npt.ArrayLike) -> tuple[npt.NDArray[np.generic], Bools]:
    """The matrix [N, A] as an array, and a mask of its gaps."""
    problem = ""
    try:
        if isinstance(matrix, pd.DataFrame):
            values = matrix.to_numpy(object)
        else:
            values = np.asarray(matrix)
        if values.dtype.kind not in "biufO":
            # numpy turns [1, "a", None] into text; objects keep their types.
            values = np.asarray(matrix, dtype=object)
        if values.ndim != 2 or 0 in values.shape:
            problem = f"this one has {values.shape}"
    except ValueError:
        problem = "its rows differ in length"
    if problem:
        raise InputError(
            f"a matrix of labels has the shape [items, annotators]; {problem}",
            "give one row per item and one column per annotator, all rows of one length",
            code="wrong-shape",
        )
    gaps: Bools = np.asarray(pd.isna(values))
    if isinstance(matrix, np.ma.MaskedArray):
        gaps |= np.ma.getmaskarray(matrix)
    if values.dtype.kind == "O":
        # Gaps are not compared, since comparing pandas' NA gives NA.
        gaps[~gaps] = np.asarray(values[~gaps] == "", dtype=bool)
    return values, gaps
