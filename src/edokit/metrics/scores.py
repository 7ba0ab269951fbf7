"""Metrics of predicted probabilities p against soft labels q and hard labels y.

``*_items`` give one value per item. Logarithms are natural.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.metrics import _checks, _kernels


def f1(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Micro-F1 on hard labels: the share of items whose most probable class is y.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    y : array-like of int, shape [N]
        Hard labels as class codes.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If p holds no distributions, or y no class codes.

    Examples
    --------
    >>> f1([[0.8, 0.2], [0.4, 0.6]], [0, 0])
    0.5
    """
    return float(f1_items(p, y).mean())


def f1_items(p: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Whether the most probable class (the first on ties) is y, item by item.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    y : array-like of int, shape [N]
        Hard labels as class codes.

    Returns
    -------
    numpy.ndarray of shape [N]
        1 or 0.

    Raises
    ------
    InputError
        If p holds no distributions, or y no class codes.

    Examples
    --------
    >>> f1_items([[0.8, 0.2], [0.4, 0.6]], [0, 0])
    array([1., 0.])
    """
    return _kernels.right(*_with_codes(p, y))


def macro_f1(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Macro-F1: the unweighted mean of the F1 of each class.

    Classes that occur neither in y nor among the predictions are left out.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    y : array-like of int, shape [N]
        Hard labels as class codes.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If p holds no distributions, or y no class codes.

    Examples
    --------
    >>> round(macro_f1([[0.8, 0.2], [0.4, 0.6]], [0, 0]), 4)
    0.3333
    """
    predicted, labels = _with_codes(p, y)
    hits, members = _kernels.macro_parts(predicted, labels)
    return float(_kernels.macro_from_parts(hits.sum(axis=0), members.sum(axis=0)))


def ce(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Cross-entropy −mean Σ q ln p, with p clipped to [1e-12, 1 − 1e-12].

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> round(ce([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.4684
    """
    return float(ce_items(p, q).mean())


def ce_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Cross-entropy −Σ q ln p of each item.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> ce_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.2231, 0.7136])
    """
    return _kernels.cross_entropy(*_checks.pair(p, q))


def md(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Manhattan distance mean ‖p − q‖₁.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    float
        From 0 to 2.

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> round(md([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.3
    """
    return float(md_items(p, q).mean())


def md_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Manhattan distance ‖p − q‖₁ of each item.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> md_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.4, 0.2])
    """
    return _kernels.manhattan(*_checks.pair(p, q))


def bs(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Brier score mean ‖p − q‖₂².

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    float
        From 0 to 2.

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> round(bs([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.05
    """
    return float(bs_items(p, q).mean())


def bs_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Brier score ‖p − q‖₂² of each item.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> bs_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.08, 0.02])
    """
    return _kernels.brier(*_checks.pair(p, q))


def jsd(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Jensen–Shannon divergence (not its square root), averaged over items.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    float
        From 0 to ln 2.

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> round(jsd([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.04
    """
    return float(jsd_items(p, q).mean())


def jsd_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Jensen–Shannon divergence of each item.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> jsd_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.0749, 0.0051])
    """
    return _kernels.jensen_shannon(*_checks.pair(p, q))


def entropy(q: npt.ArrayLike) -> float:
    """Mean entropy; that of the soft labels is the lowest CE that predictions can have.

    Parameters
    ----------
    q : array-like of shape [N, C]
        Distributions, such as soft labels or predicted probabilities.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    InputError
        If q holds no distributions.

    Examples
    --------
    >>> round(entropy([[1, 0], [0.5, 0.5]]), 4)
    0.3466
    """
    return float(entropy_items(q).mean())


def entropy_items(q: npt.ArrayLike) -> Floats:
    """Entropy −Σ q ln q of each item.

    Parameters
    ----------
    q : array-like of shape [N, C]
        Distributions, such as soft labels or predicted probabilities.

    Returns
    -------
    numpy.ndarray of shape [N]

    Raises
    ------
    InputError
        If q holds no distributions.

    Examples
    --------
    >>> entropy_items([[1, 0], [0.5, 0.5]]).round(4)
    array([0.    , 0.6931])
    """
    return _kernels.shannon(_checks.probabilities("q", q))


def entropy_correlation(p: npt.ArrayLike, q: npt.ArrayLike) -> float | None:
    """Spearman correlation of H(p) and H(q): is p uncertain where annotators disagree?

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    q : array-like of shape [N, C]
        Soft labels.

    Returns
    -------
    float or None
        None where all items have the same H(p), or the same H(q).

    Raises
    ------
    InputError
        If p or q hold no distributions, or differ in shape.

    Examples
    --------
    >>> entropy_correlation([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]])
    1.0
    """
    predicted, soft = _checks.pair(p, q)
    return _kernels.spearman(_kernels.rounded_entropy(predicted), _kernels.rounded_entropy(soft))


@dataclass(frozen=True)
class AnnotatorErrors:
    """Errors by annotator, of those with at least one annotation; every array is [A]."""

    annotator: Ints
    """Codes of the annotators, ascending."""
    n: Ints
    """Number of annotations of each."""
    ce: Floats
    """Cross-entropy of the predictions on the annotator's own labels."""
    error: Floats
    """Share of the annotator's labels that differ from the most probable class."""


def annotator_errors(
    p: npt.ArrayLike, items: npt.ArrayLike, annotators: npt.ArrayLike, labels: npt.ArrayLike
) -> AnnotatorErrors:
    """Error of predictions on the labels of each annotator.

    Parameters
    ----------
    p : array-like of shape [N, C]
        Predicted probabilities.
    items : array-like of int, shape [M]
        Item of each annotation, as a position in p.
    annotators : array-like of int, shape [M]
        Annotator of each annotation.
    labels : array-like of int, shape [M], or of float, shape [M, C]
        Class of each annotation, or the probabilities that the annotator gave.

    Returns
    -------
    AnnotatorErrors
        Of probabilities, the error is 1 minus the annotator's probability of the predicted class.

    Raises
    ------
    InputError
        If the arrays do not fit together, or hold no probabilities or codes.

    Examples
    --------
    >>> errors = annotator_errors([[0.8, 0.2], [0.4, 0.6]], [0, 0, 1], [0, 1, 1], [0, 1, 1])
    >>> errors.error
    array([0. , 0.5])
    """
    predicted = _checks.probabilities("p", p)
    count, classes = predicted.shape
    item = _checks.codes("items", items, None, count, "item")
    if not len(item):
        raise InputError("items is empty", "give at least one annotation")
    annotator = _checks.codes("annotators", annotators, len(item), None, "annotator")

    logs = np.log(np.clip(predicted, _kernels.CLIP, 1 - _kernels.CLIP))
    top = predicted.argmax(axis=1)[item]
    array = _checks.as_array("labels", labels)
    if array.ndim == 2:
        given = _checks.probabilities("labels", array)
        if given.shape != (len(item), classes):
            raise InputError(
                f"labels has the shape [{given.shape[0]}, {given.shape[1]}]; codes have"
                f" [{len(item)}], probabilities [{len(item)}, {classes}]",
                "give one row per annotation and one column per class of p",
            )
        losses = -np.einsum("mc,mc->m", given, logs[item])
        wrong = 1 - given[np.arange(len(item)), top]
    else:
        label = _checks.codes("labels", array, len(item), classes, "class")
        losses = -logs[item, label]
        wrong = (top != label).astype(np.float64)

    known, position, n = np.unique(annotator, return_inverse=True, return_counts=True)
    return AnnotatorErrors(
        annotator=known,
        n=n.astype(np.int64),
        ce=np.bincount(position, weights=losses) / n,
        error=np.bincount(position, weights=wrong) / n,
    )


def _with_codes(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Ints]:
    predicted = _checks.probabilities("p", p)
    return predicted, _checks.codes("y", y, len(predicted), predicted.shape[1], "class")
