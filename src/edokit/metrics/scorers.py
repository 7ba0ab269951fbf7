"""The official scores of shared tasks, number for number."""

from __future__ import annotations

from typing import get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import HAVE, InputError, are, check_number, one_of, option
from edokit._types import Codes, Floats
from edokit.annotations import Annotations
from edokit.metrics import _arrays
from edokit.metrics.compute import item_values
from edokit.metrics.scales import label_rows, w1_items
from edokit.metrics.scores import ce, ce_items, f1, f1_items, md_items
from edokit.scales import Scale, ScaleKind

SCORERS = ("lewidi2023", "lewidi2025-a", "lewidi2025-b")


def official_items(
    scorer: str,
    annotations: Annotations,
    p: Floats,
    hard_labels: Codes,
    pairs: Floats | None = None,
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
    pairs : numpy.ndarray of shape [P, C], or [P, L] for sets, default=None
        Predicted probabilities for each pair of an item and an annotator, in the order of
        ``annotations.pairs().items``. Without them, LeWiDi 2025 B compares each annotator's answer
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
    if scorer == "lewidi2023":
        if scale.kind != "nominal":
            raise InputError(
                f"lewidi2023 is about nominal classes, these annotations are {scale}",
                "choose lewidi2025-a or lewidi2025-b",
            )
        return {"f1": f1_items(p, hard_labels), "ce": ce_items(p, q)}
    if scale.steps is not None and not np.allclose(scale.steps, 1.0):
        raise InputError(
            f"{scorer} counts points of a scale, whose steps are 1, but the scale is {scale}",
            "score it with the metrics of edo evaluate (w1, mad)",
        )
    if scorer == "lewidi2025-a":
        name = "w1" if scale.kind == "ordinal" else "md"
        return {name: item_values(scale)[name](p, q, hard_labels)}
    shares = annotations.label_probabilities
    if shares is not None and (not scale.is_multi_label or not np.isin(shares, (0, 1)).all()):
        raise InputError(
            "lewidi2025-b compares the answer of each annotator, but these annotations are shares",
            "give annotations with one label per item and annotator, or choose lewidi2025-a",
        )
    items, points = annotations.item_codes, len(annotations.classes)
    if pairs is None:
        answers = decisions(p, scale)[items]
    else:
        answers = decisions(pairs, scale)[annotations.pairs().item_codes]
    name = "absolute_distance" if scale.kind == "ordinal" else "error_rate"
    return {name: lewidi2025_b_items(items, answers, annotations.labels, scale.kind, points)}


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
    return _arrays.medians(p).astype(np.int32) if scale.kind == "ordinal" else scale.hard(p)


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
    return float(lewidi2025_b_items(items, predicted, given, scale, points).mean())


def lewidi2025_b_items(
    items: npt.ArrayLike,
    predicted: npt.ArrayLike,
    given: npt.ArrayLike,
    scale: ScaleKind,
    points: int | None = None,
) -> Floats:
    """Score of each item; parameters as for `lewidi2025_b`.

    Returns
    -------
    numpy.ndarray of shape [N]
        In the order of the items' codes.

    Examples
    --------
    >>> lewidi2025_b_items([0, 0, 1], [1, 0, 1], [1, 1, 1], "nominal")
    array([0.5, 0. ])
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
        hint = f"give {option('points', 6)} for a scale from 1 to 6"
        check_number("points", points, 1, whole=True, hint=hint)
        errors: Floats = np.abs(ours.astype(np.float64) - theirs) / (points or 1)
    else:
        errors = (ours != theirs).reshape(len(item), -1).mean(axis=1)
    _, position, count = np.unique(item, return_inverse=True, return_counts=True)
    return np.bincount(position, weights=errors) / count
