"""The official score of task B; those of task A are MD and W1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.scales import Scale


def lewidi2025_b_items(
    items: npt.ArrayLike,
    predicted: npt.ArrayLike,
    given: npt.ArrayLike,
    scale: Scale,
    points: int = 1,
) -> Floats:
    """Score of each item in LeWiDi 2025, task B (the answer of each annotator); lower is better.

    Parameters
    ----------
    items : array-like of int, shape [M]
        Item of each annotation.
    predicted, given : array-like of shape [M], or [M, L] for sets
        Predicted and given answers as codes; for sets, whether each label is chosen.
    scale : Scale
        Nominal: error rate. Ordinal: absolute distance divided by ``points``. Sets: error rate
        averaged over labels.
    points : int, default=1
        Number of points of an ordinal scale: 6 for CSC, 11 for Paraphrase.

    Returns
    -------
    numpy.ndarray of shape [N]
        The mean over an item's annotators, in the order of the items' codes.

    Examples
    --------
    >>> lewidi2025_b_items([0, 0, 1], [1, 0, 1], [1, 1, 1], Scale())
    array([0.5, 0. ])
    """
    answers = np.asarray(predicted)
    labels = np.asarray(given)
    if scale.kind == "ordinal":
        errors: Floats = np.abs(answers - labels) / points
    else:
        errors = (answers != labels).reshape(len(answers), -1).mean(axis=1)
    _, position, count = np.unique(np.asarray(items), return_inverse=True, return_counts=True)
    return np.bincount(position, weights=errors) / count
