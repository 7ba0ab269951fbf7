"""Answers as scikit-learn's users have them: labels, a column per annotator, or annotations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning

from edokit._errors import InputError
from edokit._names import as_name
from edokit.annotations import Annotations
from edokit.ensemble.inputs import as_annotations
from edokit.metrics import ce


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
