"""Annotations from arrays: a wide matrix with gaps, or shares alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit.annotations.core import Annotations, Floats
from edokit.errors import InputError, examples
from edokit.ids import (
    Strings,
    as_names,
    check_unique,
    class_order,
    column_of,
    encode,
    recode,
)

TOLERANCE = 1e-3
"""How far the probabilities of one annotation may be from summing to one."""


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
        matrix = matrix.to_numpy(dtype=object)
    if isinstance(matrix, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(matrix)
        matrix = np.asarray(matrix, dtype=object)
        matrix[masked] = None
    values = _two_dimensions(matrix)
    gaps = np.asarray(pd.isna(values))
    if missing is not None:
        gaps |= np.asarray(values == missing)
    rows, people = np.nonzero(~gaps)
    n, a = values.shape
    item_names = _ids(items, n, "item ids", "row")
    person_names = _ids(annotators, a, "annotator ids", "column")
    silent = item_names[gaps.all(axis=1)]
    if len(silent):
        raise InputError(
            f"every item needs an annotation, but {len(silent)} of {n} have none:"
            f" {examples(silent)}",
            "drop these rows",
        )
    encoded = encode(column_of(values[rows, people]), "label")
    order = ordered_classes(classes, encoded.names)
    return Annotations(
        items=item_names,
        annotators=person_names,
        classes=order,
        item_codes=rows.astype(np.int32),
        annotator_codes=people.astype(np.int32),
        label_codes=recode(encoded, order, "label", "classes"),
    )


def from_shares(
    soft_labels: npt.ArrayLike,
    items: Iterable[object] | None,
    classes: Sequence[object] | None,
    annotator: str,
) -> Annotations:
    """See ``Annotations.from_soft_labels``."""
    shares = np.asarray(soft_labels, dtype=np.float64)
    if shares.ndim != 2 or 0 in shares.shape:
        raise InputError(
            f"soft labels must have shape [items, classes], but got {shares.shape}",
            "give one row of shares per item",
        )
    n, c = shares.shape
    return Annotations(
        items=_ids(items, n, "item ids", "row"),
        annotators=as_names([annotator]),
        classes=tuple(_ids(classes, c, "class names", "column")),
        item_codes=np.arange(n, dtype=np.int32),
        annotator_codes=np.zeros(n, dtype=np.int32),
        label_codes=None,
        label_probabilities=on_simplex(shares),
    )


def ordered_classes(declared: Sequence[object] | None, found: Strings) -> tuple[str, ...]:
    """The declared classes as they stand, else the found ones in class order."""
    if declared is None:
        return class_order(found.tolist())
    names = as_names(declared)
    check_unique(names, "classes", "name each class once")
    return tuple(names)


def on_simplex(probabilities: Floats) -> Floats:
    """Rows [M, C] that sum to one exactly; rows that are no distribution are refused."""
    bad = ~np.isfinite(probabilities).all(axis=1) | (probabilities < 0).any(axis=1)
    total = probabilities.sum(axis=1)
    bad |= np.abs(total - 1) > TOLERANCE
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        shown = ", ".join(f"{value:g}" for value in probabilities[row])
        raise InputError(
            "the probabilities of an annotation must be finite, not negative and sum to 1,"
            f" but row {row + 1} has ({shown}) ({int(bad.sum())} such rows)",
            "correct or drop these rows",
        )
    simplex: Floats = probabilities / total[:, None]
    return simplex


def _two_dimensions(matrix: Any) -> npt.NDArray[Any]:
    try:
        values = np.asarray(matrix)
    except ValueError:
        values = np.empty(0)
    if values.dtype.kind not in "biufO":
        # numpy turns [1, "a", None] into text; as objects the types stay apart.
        values = np.asarray(matrix, dtype=object)
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
    return ids
