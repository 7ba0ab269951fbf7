"""Annotations from arrays: a matrix of labels with gaps, or soft labels alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import HAVE, InputError, are, counted, examples
from edokit._names import as_names, check_unique, class_order, column_of, encode, recode
from edokit._types import Floats, Strings
from edokit.annotations.core import Annotations

TOLERANCE = 1e-3
"""Largest distance from 1 of the sum of an annotation's probabilities."""
EXACT = 1e-12
"""Sums this close to 1 are not rescaled."""


def from_wide_matrix(
    matrix: Any,
    items: Iterable[object] | None,
    annotators: Iterable[object] | None,
    classes: Sequence[object] | None,
    missing: object,
) -> Annotations:
    """See ``Annotations.from_matrix``."""
    if isinstance(matrix, pd.DataFrame):
        items = matrix.index.tolist() if items is None else items
        annotators = matrix.columns.tolist() if annotators is None else annotators
    values, gaps = _labels_and_gaps(matrix, missing)
    n, a = values.shape
    item_names = _ids(items, n, "item ids", "row")
    annotator_names = _ids(annotators, a, "annotator ids", "column")
    empty = item_names[gaps.all(axis=1)]
    if len(empty):
        raise InputError(
            f"{are(len(empty), n, HAVE)} no annotation: {examples(empty)}", "drop these rows"
        )
    rows, columns = np.nonzero(~gaps)

    def where(entry: int) -> str:
        item, annotator = item_names[rows[entry]], annotator_names[columns[entry]]
        return f"item {item!r} of annotator {annotator!r}"

    encoded = encode(column_of(values[rows, columns], "label", where), "label")
    order = ordered_classes(classes, encoded.names)
    return Annotations(
        items=item_names,
        annotators=annotator_names,
        classes=order,
        item_codes=rows.astype(np.int32),
        annotator_codes=columns.astype(np.int32),
        label_codes=recode(encoded, order, "label", "classes", where),
    )


def from_shares(
    soft_labels: Any,
    items: Iterable[object] | None,
    classes: Sequence[object] | None,
    annotator: str,
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
    item_names = _ids(items, n, "item ids", "row")
    return Annotations(
        items=item_names,
        annotators=as_names([annotator]),
        classes=tuple(_ids(classes, c, "class names", "column")),
        item_codes=np.arange(n, dtype=np.int32),
        annotator_codes=np.zeros(n, dtype=np.int32),
        label_codes=None,
        label_probabilities=on_simplex(shares, lambda row: f"item {item_names[row]!r}"),
    )


def ordered_classes(declared: Sequence[object] | None, found: Iterable[str]) -> tuple[str, ...]:
    """The declared classes in their order, else those found in class order."""
    if declared is None:
        return class_order(found)
    names = tuple(as_names(declared))
    if not names:
        raise InputError(
            "classes is empty", "name the classes, or leave it out", parameters=("classes",)
        )
    return tuple(_ids(names, len(names), "classes", "class"))


def on_simplex(probabilities: Floats, where: Callable[[int], str]) -> Floats:
    """Distributions [M, C], rescaled where rounding left their sum off 1; others are refused.

    ``where`` names a row in the message.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total = probabilities.sum(axis=1)
        bad = ~(np.abs(total - 1) <= TOLERANCE)
    bad |= (probabilities < 0).any(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        shown = examples((f"{value:g}" for value in probabilities[row]), 10).replace("'", "")
        raise InputError(
            f"{where(row)} has ({shown}), which are not probabilities that sum to 1"
            f" ({counted(int(bad.sum()), 'such row')})",
            "correct or drop these rows",
        )
    # Rows that sum to 1 are not touched, so that writing and reading a table changes nothing.
    total[np.abs(total - 1) <= EXACT] = 1
    simplex: Floats = probabilities / total[:, None]
    return simplex


def _labels_and_gaps(
    matrix: Any, missing: object
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The matrix [N, A] as an array, and a mask of its gaps."""
    values = _two_dimensions(matrix)
    gaps: npt.NDArray[np.bool_] = np.asarray(pd.isna(values))
    if isinstance(matrix, np.ma.MaskedArray):
        gaps = gaps | np.ma.getmaskarray(matrix)
    for gap in ("", missing):
        if gap is None or (isinstance(gap, str) and values.dtype.kind != "O"):
            continue
        # Compared only where there is a value: comparing pandas' NA gives NA.
        gaps[~gaps] = np.asarray(values[~gaps] == gap, dtype=bool)
    return values, gaps


def _two_dimensions(matrix: Any) -> npt.NDArray[Any]:
    try:
        values = matrix.to_numpy(object) if isinstance(matrix, pd.DataFrame) else np.asarray(matrix)
        if values.dtype.kind not in "biufO":
            # numpy turns [1, "a", None] into text; objects keep their types.
            values = np.asarray(matrix, dtype=object)
    except ValueError as error:
        raise _wrong_shape("its rows differ in length") from error
    if values.ndim != 2 or 0 in values.shape:
        raise _wrong_shape(f"this one has {values.shape}")
    return values


def _wrong_shape(what: str) -> InputError:
    return InputError(
        f"a matrix of labels has the shape [items, annotators]; {what}",
        "give one row per item and one column per annotator, all rows of one length",
    )


def _ids(names: Iterable[object] | None, length: int, what: str, per: str) -> Strings:
    ids = as_names(range(length) if names is None else names)
    if len(ids) != length:
        raise InputError(
            f"there are {len(ids)} {what}, but {length} {per}s", f"give {length} {what}"
        )
    check_unique(ids, what, f"give each {per} its own")
    if "" in ids:
        raise InputError(f"one of the {what} is empty text", f"name every {per}")
    return ids
