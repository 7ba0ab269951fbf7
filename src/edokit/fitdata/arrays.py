"""Arrays of probabilities and of labels as `Predictions` and `Annotations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, counted, warn
from edokit._names import as_name
from edokit._types import ClassValues
from edokit.annotations.core import Annotations
from edokit.fitdata.reading import ClassLabel, ClassLabels, LabelsLike, PredictionsLike
from edokit.item_array import classes_of, rows_of
from edokit.predictions.core import Predictions
from edokit.scales import NOMINAL, DeclaredScale, ScaleLike, check_same_scale

Labels: TypeAlias = npt.NDArray[Any]
"""Labels in the type that the user gave: numbers, booleans, text, or objects with gaps."""
_FORMS = "[N] labels, [N, A] labels per annotator, [N, C] soft labels, or Annotations"
_SETS = "[N, L] with 0 or 1, or a share of annotators, for each label; or Annotations"


def as_predictions(
    predictions: PredictionsLike,
    members: tuple[str, ...] | None = None,
    classes: Sequence[str] | None = None,
    scale: ScaleLike | None = None,
) -> Predictions:
    """Return predictions, made of a bare array [N, K, C] if need be; default names are 0, 1, ….

    ``scale`` applies to an array and to predictions that declare none.
    """
    if isinstance(predictions, Predictions):
        return predictions if scale is None else predictions.on_scale(scale)
    if hasattr(predictions, "shape"):
        array = predictions
    else:
        array = np.asarray(predictions)
    return Predictions.from_arrays(
        array, layout="NKC", members=members, classes=classes, scale=scale
    )


def as_annotations(
    labels: LabelsLike,
    n_items: int,
    classes: Sequence[str] | None = None,
    *,
    scale: ScaleLike | None = None,
) -> Annotations:
    """Return annotations, made of an array of labels with one row per item if need be.

    One dimension: one label per item. Two: a label per annotator with gaps, or, if the numbers
    are shares that sum to one in every row, soft labels. For multi-label data: a column per label.
    ``scale`` applies to an array and to annotations that declare none.
    """
    if labels is None:
        raise InputError("labels are missing", f"give {_FORMS}", code="missing-labels")
    if isinstance(labels, Annotations):
        check_lengths(labels, n_items)
        if scale is None:
            return labels
        return with_scale(labels, DeclaredScale(scale))
    rows = rows_of(labels)
    if rows is not None:
        annotations = _from_item_array(labels, n_items, classes, scale)
        return replace(annotations, rows=rows)
    return _from_array(_array(labels), n_items, classes, scale)


def check_lengths(annotations: Annotations, n_items: int) -> None:
    """Refuse annotations of another number of items."""
    if len(annotations.rows) != n_items:
        raise InputError(
            f"predictions and annotations must hold the same items, but there are {n_items}"
            f" rows and {len(annotations.rows)} annotated items",
            "give one row per item, in the order of the annotations' items",
            code="lengths-differ",
        )


def _from_item_array(
    labels: LabelsLike,
    n_items: int,
    classes: Sequence[str] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """Annotations of soft or hard labels with ids; these may also know the classes."""
    values = _array(labels)
    known_classes = classes_of(labels)
    if known_classes is None:
        return _from_array(values, n_items, classes, scale)
    if values.ndim == 1:  # hard labels as class codes
        names = np.array(known_classes, dtype=object)[values]
        return _from_array(names, n_items, known_classes, scale)
    return Annotations.from_soft_labels(values, classes=known_classes, scale=scale)


def _from_array(
    values: Labels,
    n_items: int,
    classes: Sequence[str] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """Annotations of an array with one row per item."""
    if scale is not None and DeclaredScale(scale).kind == "multi-label":
        if values.ndim != 2 or len(values) != n_items:
            raise InputError(
                f"sets of labels need one row for each of the {n_items} items and a column per"
                f" label; these have shape {values.shape}",
                f"give {_SETS}",
                code="wrong-shape",
            )
        return Annotations.from_soft_labels(values, classes=classes, scale=scale)
    if values.ndim not in (1, 2) or len(values) != n_items:
        raise InputError(
            f"labels need one row for each of the {n_items} items; these have shape {values.shape}",
            f"give {_FORMS}",
            code="wrong-shape",
        )
    columns = _label_columns(values)
    if _holds_shares(columns, classes, scale):
        return Annotations.from_soft_labels(columns, classes=classes, scale=scale)
    return Annotations.from_matrix(columns, classes=classes, scale=scale)


def _holds_shares(values: Labels, classes: Sequence[str] | None, scale: ScaleLike | None) -> bool:
    """Return whether a matrix [N, ·] holds shares per class; what could be either is refused.

    Shares are fractions that sum to one in each row. Whole numbers are labels, except in a float
    matrix of zeros and ones with a single one per row, which could be either.
    """
    if values.dtype.kind not in "iuf" or values.shape[1] < 2:
        return False
    if values.dtype.kind != "f" or not NOMINAL.are_all_distributions(values):
        _refuse_doubtful(values, scale)
        return False
    if classes is not None and values.shape[1] != len(classes):
        return False
    if (values != np.round(values)).any():
        return True
    raise InputError(
        "this matrix of zeros and ones with a single one per row can be labels of annotators or"
        " soft labels",
        "give labels as integers, or use Annotations.from_soft_labels / from_matrix",
        code="ambiguous-labels",
    )


def _refuse_doubtful(values: Labels, scale: ScaleLike | None) -> None:
    """Refuse numbers [N, A] that may be gaps (−1 beside 0), or shares that do not sum to 1."""
    lowest = values.min()
    may_be_gaps = scale in (None, NOMINAL) and not lowest >= 0  # NaN is not
    if may_be_gaps and (values == -1).any() and (values == 0).any():
        raise InputError(
            f"y holds −1 beside 0 ({counted(int((values == -1).sum()), 'such entry')}): it may be a"
            " class or a missing label",
            "put NaN or None where a label is missing; if it is a class, name the classes:"
            " Annotations.from_matrix(y, classes=[-1, 0, 1])",
            code="ambiguous-labels",
        )
    if values.dtype.kind != "f" or not lowest >= 0 or not values.max() <= 1:
        return
    if (values != np.round(values)).any():
        sums = values.sum(axis=1)
        raise InputError(
            f"y holds shares whose rows sum to {sums.min():.3g} to {sums.max():.3g}, not to 1",
            "divide each row by its sum: y / y.sum(axis=1, keepdims=True)",
            code="invalid-probabilities",
        )


def _label_columns(values: Labels) -> Labels:
    """Labels as a matrix [N, A]; one label per item is a single column."""
    if values.ndim == 1:
        numeric = values.dtype.kind in "fc"
        if numeric and not np.isfinite(values).all():
            raise InputError(
                "Input y contains NaN or infinity",
                "give a label for every item",
                code="missing-value",
            )
        if numeric and (values != np.round(values)).any():
            raise InputError(
                "Unknown label type: y holds fractions, not classes",
                f"give {_FORMS}",
                code="not-class-codes",
            )
        return values[:, None]
    if values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn(
            "A column-vector y was passed when a 1d array was expected; it is read as one label"
            " per item.",
            DataConversionWarning,
        )
    return values


def with_scale(annotations: Annotations, declared: DeclaredScale) -> Annotations:
    """Annotations on this scale: theirs, or one that is declared for those without."""
    if annotations.scale == NOMINAL and declared.kind == "ordinal":
        ordered = annotations.with_classes(declared.classes or annotations.classes)
        return replace(ordered, scale=declared.resolve(ordered.classes))
    check_same_scale(
        annotations.scale, "annotations", declared.resolve(annotations.classes), "declaration"
    )
    return annotations


def class_labels(labels: LabelsLike, annotations: Annotations) -> ClassLabels | None:
    """Return the classes in the type of the labels, so that predictions equal what was given.

    ``annotations`` are what `as_annotations` made of the labels. None where the names themselves,
    which are text, are what the user works with.
    """
    if labels is None or isinstance(labels, Annotations):
        return None
    classes = annotations.classes
    if annotations.label_probabilities is None:
        return _typed(classes, _labels_by_name(_array(labels)))
    # Soft labels and sets of labels have columns, which are named by their positions.
    positions = tuple(range(len(classes)))
    if tuple(map(str, positions)) == tuple(classes):
        return positions
    return None


def _typed(classes: Sequence[str], by_name: dict[str, ClassLabel]) -> ClassLabels | None:
    """The classes as labels, those that nobody chose of the type of the others; None for names."""
    kinds = set(map(type, by_name.values()))
    if not kinds <= {int, float, bool, str} or kinds == {str}:
        return None
    unchosen = [name for name in classes if name not in by_name]
    if unchosen and (len(kinds) != 1 or bool in kinds):
        return None
    try:
        by_name |= {name: next(iter(kinds))(name) for name in unchosen}
    except ValueError:
        return None
    return tuple(by_name[name] for name in classes)


def _labels_by_name(values: Labels) -> dict[str, ClassLabel]:
    """The different labels, by name."""
    labels = values[~pd.isna(values)]
    if labels.dtype.kind == "O":
        distinct = set(labels.tolist())
    else:
        distinct = np.unique(labels).tolist()
    return {as_name(label): label for label in distinct}


def label_array(classes: Sequence[str], labels: ClassLabels | None) -> ClassValues:
    """Class labels [C]: of one type where they have one, else objects; names are objects."""
    listed = tuple(classes) if labels is None else labels
    kinds = set(map(type, listed))
    return np.array(listed, dtype=None if len(kinds) == 1 and kinds != {str} else object)


def _array(labels: LabelsLike) -> Labels:
    """Return labels of any array-like type as an array; masked entries are None."""
    try:
        values = np.asarray(labels)
    except ValueError as error:
        raise InputError(
            "the rows of the labels have different lengths",
            f"give {_FORMS}; for multi-label data {_SETS}"
            " (sklearn.preprocessing.MultiLabelBinarizer makes it)",
            code="ragged-array",
        ) from error
    if isinstance(labels, np.ma.MaskedArray):
        values = values.astype(object)
        values[np.ma.getmaskarray(labels)] = None
    return values
