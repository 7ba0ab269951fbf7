"""Conversion of bare arrays of probabilities and labels to `Predictions` and `Annotations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from edokit.item_array import classes_of, rows_of, with_index_ids
from edokit.predictions.core import Predictions
from edokit.scales import NOMINAL, DeclaredScale, ScaleLike, check_same_scale

Labels: TypeAlias = npt.NDArray[Any]
"""Labels in the type that the user gave: numbers, booleans, text, or objects with gaps."""
_ACCEPTED_LABELS = "[N] labels, [N, A] labels per annotator, [N, C] soft labels, or Annotations"
"""What users may give, for hints; for multi-label data `_ACCEPTED_LABEL_SETS`."""
_ACCEPTED_LABEL_SETS = (
    "[N, L] with 0 or 1, or a share of annotators, for each label; or Annotations"
)


def as_predictions(
    predictions: PredictionsLike,
    members: tuple[str, ...] | None = None,
    classes: Sequence[str] | None = None,
    scale: ScaleLike | None = None,
) -> Predictions:
    """Return `Predictions` unchanged; convert a bare array [N, K, C].

    Names that are not given are 0, 1, …. ``scale`` applies to an array, and to predictions that
    declare none.
    """
    if isinstance(predictions, Predictions):
        if scale is None:
            return predictions
        return predictions.on_scale(scale)
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
    """Return `Annotations` unchanged; convert an array of labels with one row per item.

    An array of one dimension has one label per item. Two dimensions are a label per annotator, with
    gaps, or soft labels if the numbers are shares that sum to one in every row; for multi-label
    data, a column per label. ``scale`` applies to an array, and to annotations that declare none.
    """
    if labels is None:
        raise InputError("labels are missing", f"give {_ACCEPTED_LABELS}", code="missing-labels")
    if isinstance(labels, Annotations):
        check_lengths(labels, n_items)
        if scale is None:
            return labels
        return with_scale(labels, DeclaredScale(scale))
    if not _is_numbered_table(labels):
        labels = with_index_ids(labels, classes or ())
    rows = rows_of(labels)
    if rows is not None:
        annotations = _from_item_array(labels, n_items, classes, scale)
        return replace(annotations, rows=rows)
    return _from_array(_array(labels), n_items, classes, scale)


def _is_numbered_table(labels: LabelsLike) -> bool:
    """Whether labels are a pandas table that only numbers its rows, as splits of others do.

    scikit-learn splits a table beside an array by position and leaves such numbers.
    """
    if not isinstance(labels, pd.DataFrame | pd.Series):
        return False
    return labels.index.name is None and pd.api.types.is_integer_dtype(labels.index)


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
    """Return annotations from an array with item ids, which may also name its classes."""
    values = _array(labels)
    named_classes = classes_of(labels)
    if named_classes is None:
        return _from_array(values, n_items, classes, scale)
    if values.ndim == 1:  # hard labels as class codes
        names = np.array(named_classes, dtype=object)[values]
        return _from_array(names, n_items, named_classes, scale)
    return Annotations.from_soft_labels(values, classes=named_classes, scale=scale)


def _from_array(
    values: Labels,
    n_items: int,
    classes: Sequence[str] | None,
    scale: ScaleLike | None,
) -> Annotations:
    """Return annotations from an array with one row per item."""
    if scale is not None and DeclaredScale(scale).kind == "multi-label":
        if values.ndim != 2 or len(values) != n_items:
            raise InputError(
                f"sets of labels need one row for each of the {n_items} items and a column per"
                f" label; these have shape {values.shape}",
                f"give {_ACCEPTED_LABEL_SETS}",
                code="wrong-shape",
            )
        return Annotations.from_soft_labels(values, classes=classes, scale=scale)
    if values.ndim not in (1, 2) or len(values) != n_items:
        raise InputError(
            f"labels need one row for each of the {n_items} items; these have shape {values.shape}",
            f"give {_ACCEPTED_LABELS}",
            code="wrong-shape",
        )
    columns = _label_columns(values)
    if _holds_shares(columns, classes, scale):
        return Annotations.from_soft_labels(columns, classes=classes, scale=scale)
    return Annotations.from_matrix(columns, classes=classes, scale=scale)


def _holds_shares(values: Labels, classes: Sequence[str] | None, scale: ScaleLike | None) -> bool:
    """Return whether a matrix has a share per class [N, C], and not a label per annotator [N, A].

    Shares are fractions that sum to one in each row; whole numbers are labels. A float matrix of
    zeros and ones with a single one per row could be either, and is refused.
    """
    if values.dtype.kind not in "iuf" or values.shape[1] < 2:
        return False
    if values.dtype.kind != "f" or not NOMINAL.are_all_distributions(values):
        _refuse_ambiguous_numbers(values, scale)
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


def _refuse_ambiguous_numbers(values: Labels, scale: ScaleLike | None) -> None:
    """Refuse −1 beside 0, which may be a missing label, and shares that do not sum to 1."""
    n_minus_ones = int((values == -1).sum())
    if scale in (None, NOMINAL) and n_minus_ones and (values == 0).any():
        raise InputError(
            f"y holds −1 beside 0 ({counted(n_minus_ones, 'such entry')}): it may be a"
            " class or a missing label",
            "put NaN or None where a label is missing; if it is a class, name the classes:"
            " Annotations.from_matrix(y, classes=[-1, 0, 1])",
            code="ambiguous-labels",
        )
    # These comparisons are False for NaN, which marks a missing label.
    are_shares = values.dtype.kind == "f" and values.min() >= 0 and values.max() <= 1
    if are_shares and (values != np.round(values)).any():
        sums = values.sum(axis=1)
        raise InputError(
            f"y holds shares whose rows sum to {sums.min():.3g} to {sums.max():.3g}, not to 1",
            "divide each row by its sum: y / y.sum(axis=1, keepdims=True)",
            code="invalid-probabilities",
        )


def _label_columns(values: Labels) -> Labels:
    """Return labels as a matrix [N, A]; one label per item [N] becomes a single column."""
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
                f"give {_ACCEPTED_LABELS}",
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
    """Return annotations on the declared scale, which those with another scale contradict.

    Nominal annotations do not declare a scale: they become ordinal if the declaration says so.
    """
    if annotations.scale == NOMINAL and declared.kind == "ordinal":
        ordered = annotations.with_classes(declared.classes or annotations.classes)
        return replace(ordered, scale=declared.resolve(ordered.classes))
    check_same_scale(
        annotations.scale, "annotations", declared.resolve(annotations.classes), "declaration"
    )
    return annotations


def class_labels(labels: LabelsLike, annotations: Annotations) -> ClassLabels | None:
    """Return the classes in the type of the user's labels, so that predicted labels have it, too.

    ``annotations`` are the labels after `as_annotations`. None if the user works with the names of
    the classes, which are text.
    """
    if labels is None or isinstance(labels, Annotations):
        return None
    classes = annotations.classes
    if annotations.label_probabilities is None:
        return _typed_classes(classes, _labels_by_name(_array(labels)))
    # Columns of soft labels and of label sets are named by their positions by default.
    positions = range(len(classes))
    if [str(position) for position in positions] == list(classes):
        return tuple(positions)
    return None


def _typed_classes(
    classes: Sequence[str], labels_by_name: Mapping[str, ClassLabel]
) -> ClassLabels | None:
    """Return the classes in the type of the labels; None if they are text, or types are unclear.

    A class that nobody chose gets the type of the chosen ones, if these have a single type.
    """
    types = {type(label) for label in labels_by_name.values()}
    if not types <= {int, float, bool, str} or types == {str}:
        return None
    typed: list[ClassLabel] = []
    for name in classes:
        if name in labels_by_name:
            typed.append(labels_by_name[name])
            continue
        if len(types) != 1 or bool in types:
            return None
        (label_type,) = types
        try:
            typed.append(label_type(name))
        except ValueError:
            return None
    return tuple(typed)


def _labels_by_name(values: Labels) -> dict[str, ClassLabel]:
    """Return the distinct labels by name."""
    labels = values[~pd.isna(values)]
    if labels.dtype.kind == "O":
        distinct = set(labels.tolist())
    else:
        distinct = np.unique(labels).tolist()
    return {as_name(label): label for label in distinct}


def label_array(classes: Sequence[str], labels: ClassLabels | None) -> ClassValues:
    """Return class labels as an array [C]: the typed labels if there are any, else the names.

    Numbers and booleans of one type get numpy's type for them; text and mixed types are objects.
    """
    if labels is None:
        return np.array(classes, dtype=object)
    types = {type(label) for label in labels}
    if len(types) == 1 and types != {str}:
        return np.array(labels)
    return np.array(labels, dtype=object)


def _array(labels: LabelsLike) -> Labels:
    """Return labels of any array-like type as an array; masked entries are None."""
    try:
        values = np.asarray(labels)
    except ValueError as error:
        raise InputError(
            "the rows of the labels have different lengths",
            f"give {_ACCEPTED_LABELS}; for multi-label data {_ACCEPTED_LABEL_SETS}"
            " (sklearn.preprocessing.MultiLabelBinarizer makes it)",
            code="ragged-array",
        ) from error
    if isinstance(labels, np.ma.MaskedArray):
        values = values.astype(object)
        values[np.ma.getmaskarray(labels)] = None
    return values
