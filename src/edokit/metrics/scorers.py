"""The official scores of shared tasks, number for number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, one_of
from edokit._types import Codes, Floats
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.metrics import item_values, medians
from edokit.scales import Scale

SCORERS = ("lewidi2023", "lewidi2025-a", "lewidi2025-b")


def official_items(
    scorer: str,
    annotations: Annotations,
    p: Floats,
    hard_labels: Codes,
    by_annotator: Floats | None = None,
) -> dict[str, Floats]:
    """Return the official scores of a shared task, item by item; a score is their mean.

    Parameters
    ----------
    scorer : {"lewidi2023", "lewidi2025-a", "lewidi2025-b"}
    annotations : Annotations
    p : numpy.ndarray of shape [N, C], or [N, L] for sets
        Predicted probabilities of the annotated items.
    hard_labels : numpy.ndarray of shape [N]
        Hard labels, which LeWiDi 2023 compares with.
    by_annotator : numpy.ndarray of shape [P, C], or [P, L] for sets, default=None
        Predicted probabilities for each pair of an item and an annotator, in the order of
        ``annotations.pairs().rows``. Without them, LeWiDi 2025 B compares each annotator's answer
        with the decision for the item.

    Returns
    -------
    dict of str to numpy.ndarray of shape [N]
        ``f1`` and ``ce``; ``md`` or ``w1``; ``error_rate`` or ``absolute_distance``.

    Raises
    ------
    InputError
        If the scorer does not fit these annotations.

    Examples
    --------
    >>> import numpy as np
    >>> votes = Annotations.from_matrix([[1, 3], [2, 2]], classes=[1, 2, 3], scale="ordinal")
    >>> p = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    >>> official_items("lewidi2025-a", votes, p, votes.hard_labels(ties="random"))
    {'w1': array([0.5, 0. ])}
    """
    one_of("scorer", scorer, SCORERS)
    scale, q = annotations.scale, annotations.soft_labels
    metrics = item_values(scale)
    if scorer == "lewidi2023":
        if scale.kind != "nominal":
            raise InputError(
                f"lewidi2023 is about nominal classes, these annotations are {scale}",
                "choose lewidi2025-a or lewidi2025-b",
            )
        return {name: metrics[name](p, q, hard_labels) for name in ("f1", "ce")}
    if scale.steps is not None and not np.allclose(scale.steps, 1.0):
        raise InputError(
            f"{scorer} counts points of a scale, whose steps are 1, but the scale is {scale}",
            "score it with the metrics of edo evaluate (w1, mad)",
        )
    if scorer == "lewidi2025-a":
        name = "w1" if scale.kind == "ordinal" else "md"
        return {name: metrics[name](p, q, hard_labels)}
    labels = label_shares(annotations, len(annotations.classes))
    if not np.isin(labels, (0, 1)).all():
        raise InputError(
            "lewidi2025-b compares the answer of each annotator, but these annotations are shares",
            "give annotations with one label per item and annotator, or choose lewidi2025-a",
        )
    items, points = annotations.item_codes, len(annotations.classes)
    if by_annotator is None:
        answers = decisions(p, scale)[items]
    else:
        answers = decisions(by_annotator, scale)[annotations.pairs().item_codes]
    name = "absolute_distance" if scale.kind == "ordinal" else "error_rate"
    return {name: lewidi2025_b_items(items, answers, decisions(labels, scale), scale, points)}


def decisions(p: Floats, scale: Scale) -> Codes:
    """Return single answers: the median on a scale, else the most probable class or labels.

    Returns
    -------
    numpy.ndarray of shape [N], or [N, L] for sets
        Class codes, or 1 for each chosen label.

    Examples
    --------
    >>> import numpy as np
    >>> decisions(np.array([[0.4, 0.3, 0.3]]), Scale("ordinal", (1, 2, 3)))
    array([1], dtype=int32)
    """
    return medians(p).astype(np.int32) if scale.kind == "ordinal" else scale.hard(p)


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
        Predicted and given answers as codes; of sets, whether each label is chosen.
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
    answers, labels = np.asarray(predicted), np.asarray(given)
    if scale.kind == "ordinal":
        errors: Floats = np.abs(answers - labels) / points
    else:
        errors = (answers != labels).reshape(len(answers), -1).mean(axis=1)
    _, position, count = np.unique(np.asarray(items), return_inverse=True, return_counts=True)
    return np.bincount(position, weights=errors) / count
