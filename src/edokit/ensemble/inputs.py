"""Predictions and answers in the forms that people have them, brought together by item."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning

from edokit._errors import EDOWarning, InputError, are, examples
from edokit._names import as_name
from edokit.annotations import Annotations
from edokit.metrics import ce
from edokit.predictions import Predictions


def as_predictions(predictions: Any, members: tuple[str, ...] | None = None) -> Predictions:
    """Predictions as they are, or a bare array [N, K, C] with members named 0, 1, …."""
    if isinstance(predictions, Predictions):
        return predictions
    array = np.asarray(predictions)
    if array.ndim != 3:
        raise InputError(
            f"predictions must be Predictions or an array [N, K, C], but got shape {array.shape}",
            "bring another layout into shape with Predictions.from_arrays(…, layout=…)",
        )
    if members is not None and array.shape[1] != len(members):
        raise InputError(
            f"the ensemble was fitted on {len(members)} members, but got {array.shape[1]}",
            "give the same members in the same order, or named Predictions",
        )
    return Predictions.from_arrays(array, layout="NKC", members=members)


def as_annotations(answers: Any, n_items: int, n_classes: int | None = None) -> Annotations:
    """Annotations as they are, or an array of answers, one row per item.

    One dimension: one label per item. Two: a label per annotator with gaps, or, if the numbers
    are shares that sum to one in every row, soft labels.
    """
    if isinstance(answers, Annotations):
        return answers
    if hasattr(answers, "to_numpy"):
        answers = answers.to_numpy()
    values = np.asarray(answers)
    if len(values) != n_items or values.ndim not in (1, 2):
        raise InputError(
            f"answers must have one row for each of the {n_items} items, but got shape"
            f" {values.shape}",
            "give [N] labels, [N, A] labels per annotator, or [N, C] soft labels",
        )
    if values.ndim == 1:
        values = values[:, None]
    if is_soft(values, n_classes):
        return Annotations.from_soft_labels(values)
    classes = None if n_classes is None else range(n_classes)
    return Annotations.from_matrix(values, classes=classes)


def is_soft(values: npt.NDArray[Any], n_classes: int | None) -> bool:
    """Whether a matrix [N, ·] holds shares per class; where it could be labels, that is an error.

    Shares are fractions that sum to one in each row. Whole numbers are labels, except in a float
    matrix of zeros and ones with a single one per row, which could be either.
    """
    if values.dtype.kind != "f" or values.shape[1] < 2:
        return False
    if n_classes is not None and values.shape[1] != n_classes:
        return False
    if not np.isfinite(values).all() or not np.allclose(values.sum(axis=1), 1.0, atol=1e-3):
        return False
    if (values != np.round(values)).any():
        return True
    raise InputError(
        "a matrix of answers must be clear, but zeros and ones with a single one per row can be"
        " labels of annotators or soft labels",
        "give labels as integers, or use Annotations.from_soft_labels / from_matrix",
    )


def together(predictions: Predictions, answers: Any) -> tuple[Predictions, Annotations]:
    """Both in the order of the predictions' items and the annotations' classes."""
    people = as_annotations(answers, len(predictions), len(predictions.classes))
    if isinstance(answers, Annotations):
        people = people.align(predictions.items)
    else:
        # Rows without ids belong together by position; the ids are then the predictions'.
        people = replace(people, items=predictions.items)
    if len(predictions.classes) > len(people.classes):
        people = people.with_classes(predictions.classes)
    return predictions.order_classes(people.classes), people


def with_weight(predictions: Predictions, needed: Sequence[str]) -> Predictions:
    """Predictions of the members that carry weight, in this order; all of them must be there."""
    missing = [name for name in needed if name not in predictions.members]
    if missing:
        raise InputError(
            "predictions must hold the members that carry weight, but"
            f" {are(len(missing), len(needed))} missing: {examples(missing)}",
            "score the items with these members, too",
        )
    return predictions.select(needed)


def named_groups(members: tuple[str, ...], groups: tuple[str, ...] | None) -> tuple[str, ...]:
    """The group of each member; one without a group is a group of its own."""
    if groups is None:
        raise InputError(
            "groups=True needs the group of each member, but these predictions have none",
            "name them (Predictions.grouped, `edo predictions join --group`), or leave groups out",
        )
    return tuple(group or f"member {name}" for name, group in zip(members, groups, strict=True))


def soft_score(estimator: Any, X: Any, y: Any) -> float:
    """Minus the cross-entropy to people's answers, for ``GridSearchCV(scoring=soft_score)``."""
    p = estimator.predict_proba(X)
    people, _ = answers_of(y, len(p), getattr(estimator, "missing", None))
    return -ce(p, people.soft_labels)


def answers_of(y: Any, rows: int, missing: Any) -> tuple[Annotations, npt.NDArray[Any]]:
    """Annotations of rows 0, 1, …, and the class labels as they came."""
    if isinstance(y, Annotations):
        if len(y.items) != rows:
            raise InputError(
                f"X and y must hold the same items, but X has {rows} and y {len(y.items)}",
                "give one row of X per item, in the order of the annotations' items",
            )
        return y, np.array(y.classes, dtype=object)
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.ndim == 1 and values.dtype.kind in "fc" and len(values):
        _whole_labels(values)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as one label"
            " per item.",
            DataConversionWarning,
            stacklevel=3,
        )
    if missing is not None and values.ndim == 2:
        gaps = values == missing
        values = values.astype(object)
        values[gaps] = None
    people = as_annotations(values, rows)
    if people.label_codes is None:
        return people, np.arange(len(people.classes))
    labels = np.unique(values[~_is_gap(values)])
    by_name = {as_name(label): label for label in labels.tolist()}
    return people, np.array([by_name[name] for name in people.classes])


def _whole_labels(values: npt.NDArray[Any]) -> None:
    if not np.isfinite(values).all():
        raise ValueError("Input y contains NaN or infinity; give a label for every item")
    if (values != np.round(values)).any():
        raise ValueError("Unknown label type: y must hold classes, but holds fractions")


def _is_gap(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([v is None or v != v for v in values.ravel()]).reshape(values.shape)
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.zeros(values.shape, dtype=bool)


def warn_if_unanimous(
    classes: Sequence[str], counts: Any, source: object, split: object = None
) -> None:
    """Warn that there is no disagreement where all annotations, counts [C], are of one class."""
    chosen = [name for name, count in zip(classes, counts, strict=True) if count > 0]
    if len(chosen) == 1:
        where = f"{source}" if split is None else f"{source}, split {split}"
        warnings.warn(
            f"every annotation is {chosen[0]!r} ({where}): there is no disagreement to learn"
            " from or to evaluate on; check that these are the right column and the right split",
            EDOWarning,
            stacklevel=2,
        )
