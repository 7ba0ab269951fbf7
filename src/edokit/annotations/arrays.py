"""Annotations from arrays: a wide matrix with gaps, or shares alone."""

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
"""How far the probabilities of one annotation may be from summing to one."""
EXACT = 1e-12
"""How far they may be and stay as they are."""


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
    person_names = _ids(annotators, a, "annotator ids", "column")
    silent = item_names[gaps.all(axis=1)]
    if len(silent):
        raise InputError(
            f"every item needs an annotation, but {are(len(silent), n, HAVE)} none:"
            f" {examples(silent)}",
            "drop these rows",
        )
    rows, people = np.nonzero(~gaps)

    def where(entry: int) -> str:
        item, person = item_names[rows[entry]], person_names[people[entry]]
        return f"item {item!r} of annotator {person!r}"

    encoded = encode(column_of(values[rows, people], "label", where), "label")
    order = ordered_classes(classes, encoded.names)
    return Annotations(
        items=item_names,
        annotators=person_names,
        classes=order,
        item_codes=rows.astype(np.int32),
        annotator_codes=people.astype(np.int32),
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
            f"soft labels must be numbers of shape [items, classes], but: {error}",
            "give one row of shares per item, all of one length",
        ) from error
    if shares.ndim != 2 or 0 in shares.shape:
        raise InputError(
            f"soft labels must have shape [items, classes], but got {shares.shape}",
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
    """The declared classes as they stand, else the found ones in class order."""
    if declared is None:
        return class_order(found)
    names = tuple(as_names(declared))
    if not names:
        raise InputError("at least one class must be declared, but got none", "name the classes")
    return tuple(_ids(names, len(names), "classes", "class"))


def on_simplex(probabilities: Floats, where: Callable[[int], str]) -> Floats:
    """Rows [M, C] that sum to one, rounded ones set right; rows that are none are refused.

    ``where`` says in words where a row stands.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total = probabilities.sum(axis=1)
        bad = ~(np.abs(total - 1) <= TOLERANCE)
    bad |= (probabilities < 0).any(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        shown = examples((f"{value:g}" for value in probabilities[row]), 10).replace("'", "")
        raise InputError(
            "the probabilities of an annotation must be finite, not negative and sum to 1,"
            f" but {where(row)} has ({shown}) ({counted(int(bad.sum()), 'such row')})",
            "correct or drop these rows",
        )
    # Rows that are right stay as they are, so that a table can be read twice.
    total[np.abs(total - 1) <= EXACT] = 1
    simplex: Floats = probabilities / total[:, None]
    return simplex


def _labels_and_gaps(
    matrix: Any, missing: object
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The matrix [N, A] as an array, and where it is empty."""
    values = _two_dimensions(matrix)
    gaps: npt.NDArray[np.bool_] = np.asarray(pd.isna(values))
    if isinstance(matrix, np.ma.MaskedArray):
        gaps = gaps | np.ma.getmaskarray(matrix)
    for gap in ("", missing):
        if gap is None or (isinstance(gap, str) and values.dtype.kind != "O"):
            continue
        # Compared only where there is something: whether pandas' NA equals anything is NA.
        gaps[~gaps] = np.asarray(values[~gaps] == gap, dtype=bool)
    return values, gaps


def _two_dimensions(matrix: Any) -> npt.NDArray[Any]:
    try:
        values = matrix.to_numpy(object) if isinstance(matrix, pd.DataFrame) else np.asarray(matrix)
        if values.dtype.kind not in "biufO":
            # numpy turns [1, "a", None] into text; as objects the types stay apart.
            values = np.asarray(matrix, dtype=object)
    except ValueError as error:
        raise InputError(
            "a matrix of labels must have shape [items, annotators], but its rows differ in length",
            "give one row per item and one column per annotator, all rows of one length",
        ) from error
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(
            f"a matrix of labels must have shape [items, annotators], but got {values.shape}",
            "give one row per item and one column per annotator, all rows of one length",
        )
    return values


def _ids(names: Iterable[object] | None, length: int, what: str, per: str) -> Strings:
    ids = as_names(range(length) if names is None else names)
    if len(ids) != length:
        raise InputError(
            f"{what} must be one per {per} ({length}), but got {len(ids)}", f"give {length} {what}"
        )
    check_unique(ids, what, f"give each {per} its own")
    if "" in ids:
        raise InputError(f"{what} must not be empty text, but one is", f"name every {per}")
    return ids
