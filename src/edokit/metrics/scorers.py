"""The official scores of shared tasks, number for number, on arrays."""

from __future__ import annotations

from typing import get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import HAVE, InputError, are, one_of
from edokit._types import Floats
from edokit.metrics import _arrays
from edokit.metrics.scales import label_rows, w1_items
from edokit.metrics.scores import ce, f1, md_items
from edokit.scales import ScaleKind


def lewidi2023(p: npt.ArrayLike, q: npt.ArrayLike, y: npt.ArrayLike) -> dict[str, float]:
    """Scores of LeWiDi 2023: micro-F1 on hard labels, cross-entropy to soft labels.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    y : array-like of int, shape [N]
        Hard labels as class codes.

    Returns
    -------
    dict of str to float
        ``f1`` (higher is better) and ``ce`` (lower is better).

    Examples
    --------
    >>> lewidi2023([[0.8, 0.2], [0.5, 0.5]], [[1, 0], [0.5, 0.5]], [0, 1])["f1"]
    0.5
    """
    return {"f1": f1(p, y), "ce": ce(p, q)}


def lewidi2025_a(p: npt.ArrayLike, q: npt.ArrayLike, scale: ScaleKind) -> float:
    """Score of LeWiDi 2025, task A (soft labels); lower is better.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels; of sets, those of each label.
    scale : {"nominal", "ordinal", "multi-label"}
        Manhattan distance; Wasserstein-1 distance in steps of the scale; Manhattan distance of
        the two sides of each label, averaged over labels.

    Returns
    -------
    float

    Examples
    --------
    >>> lewidi2025_a([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], "ordinal")
    1.5
    >>> lewidi2025_a([[0.5, 1.0]], [[0.0, 1.0]], "multi-label")
    0.5
    """
    one_of("scale", scale, get_args(ScaleKind))
    if scale == "ordinal":
        return float(w1_items(p, q).mean())
    if scale == "multi-label":
        return float(md_items(label_rows(p), label_rows(q)).mean())
    return float(md_items(p, q).mean())


def lewidi2025_b(
    items: npt.ArrayLike,
    predicted: npt.ArrayLike,
    given: npt.ArrayLike,
    scale: ScaleKind,
    points: int | None = None,
) -> float:
    """Score of LeWiDi 2025, task B (the answer of each annotator); lower is better.

    The mean over items of the mean over an item's annotators.

    Parameters
    ----------
    items : array-like of int, shape [M]
        Item of each annotation.
    predicted, given : array-like of shape [M], or [M, L] for sets
        Predicted and given answers: any codes for nominal classes, numbers on a scale, whether
        each label is chosen for sets.
    scale : {"nominal", "ordinal", "multi-label"}
        Error rate; absolute distance divided by ``points``; error rate averaged over labels.
    points : int, default=None
        Number of points of an ordinal scale: 6 for CSC, 11 for Paraphrase.

    Returns
    -------
    float

    Examples
    --------
    >>> lewidi2025_b([0, 0, 1], [1, 0, 1], [1, 1, 1], "nominal")
    0.25
    >>> lewidi2025_b([0, 1], [3, 1], [6, 1], "ordinal", points=6)
    0.25
    """
    one_of("scale", scale, get_args(ScaleKind))
    item = _arrays.codes("items", items, None, None, "item")
    ours, theirs = np.asarray(predicted), np.asarray(given)
    if ours.shape != theirs.shape or len(ours) != len(item) or not len(item):
        raise InputError(
            f"{are(len(item), None, HAVE, 'annotation')} predicted answers of shape"
            f" {list(ours.shape)} and given ones of shape {list(theirs.shape)}",
            "give one of each per annotation",
        )
    if scale == "ordinal":
        if points is None:
            raise InputError(
                "an ordinal score is divided by the number of points of the scale, but points is"
                " missing",
                "give points=6 for a scale from 1 to 6",
                parameters=("points",),
            )
        errors: Floats = np.abs(ours.astype(np.float64) - theirs) / _arrays.whole("points", points)
    else:
        errors = (ours != theirs).reshape(len(item), -1).mean(axis=1)
    _, position, count = np.unique(item, return_inverse=True, return_counts=True)
    return float((np.bincount(position, weights=errors) / count).mean())
