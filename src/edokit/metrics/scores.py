"""Metrics of predicted probabilities p against soft labels q and hard labels y.

``*_items`` give one value per item. Logarithms are natural. All raise `InputError` where p or q
hold no distributions, y no class codes, or their shapes differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.metrics import _arrays
from edokit.metrics.compute import compute_metrics
from edokit.scales import NOMINAL, Scale


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

    Examples
    --------
    >>> f1_items([[0.8, 0.2], [0.4, 0.6]], [0, 0])
    array([1., 0.])
    """
    predicted = _arrays.probabilities("p", p)
    return _arrays.right(predicted, _arrays.hard_labels(y, predicted))


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

    Examples
    --------
    >>> round(macro_f1([[0.8, 0.2], [0.4, 0.6]], [0, 0]), 4)
    0.3333
    """
    predicted = _arrays.probabilities("p", p)
    return float(compute_metrics(predicted, predicted, y, metrics=["macro_f1"])["macro_f1"] or 0.0)


def ce(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Cross-entropy −mean Σ q ln p, with p clipped to [1e-12, 1 − 1e-12].

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        In nats.

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
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> ce_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.2231, 0.7136])
    """
    return _arrays.cross_entropy(*_arrays.pair(p, q))


def md(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Manhattan distance mean ‖p − q‖₁.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to 2.

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
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> md_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.4, 0.2])
    """
    return _arrays.manhattan(*_arrays.pair(p, q))


def bs(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Brier score mean ‖p − q‖₂².

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to 2.

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
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> bs_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.08, 0.02])
    """
    return _arrays.brier(*_arrays.pair(p, q))


def jsd(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Jensen–Shannon divergence (not its square root), averaged over items.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to ln 2.

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
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> jsd_items([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]).round(4)
    array([0.0749, 0.0051])
    """
    return _arrays.jensen_shannon(*_arrays.pair(p, q))


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

    Examples
    --------
    >>> entropy_items([[1, 0], [0.5, 0.5]]).round(4)
    array([0.    , 0.6931])
    """
    return _arrays.shannon(_arrays.probabilities("q", q))


def entropy_correlation(p: npt.ArrayLike, q: npt.ArrayLike) -> float | None:
    """Spearman correlation of H(p) and H(q): is p uncertain where annotators disagree?

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float or None
        None where all items have the same H(p), or the same H(q).

    Examples
    --------
    >>> entropy_correlation([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]])
    1.0
    """
    return _arrays.entropy_correlation(*map(_arrays.shannon, _arrays.pair(p, q)))


@dataclass(frozen=True)
class AnnotatorErrors:
    """Errors by annotator, of those with at least one annotation; every array is [A].

    Attributes
    ----------
    annotator : ndarray
        Codes of the annotators, ascending.
    n : ndarray
        Number of annotations of each.
    ce : ndarray
        Cross-entropy of the predictions on the annotator's own labels.
    error : ndarray
        Share of the annotator's labels that differ from the most probable class.
    """

    annotator: Ints
    n: Ints
    ce: Floats
    error: Floats


def annotator_errors(
    p: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    scale: Scale = NOMINAL,
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
    scale : Scale, default=NOMINAL
        Of sets p is [N, L], labels [M, L] with 1 for each chosen label; both errors are means over
        labels.

    Returns
    -------
    AnnotatorErrors
        Of probabilities, the error is 1 minus the annotator's probability of the predicted class.

    Examples
    --------
    >>> errors = annotator_errors([[0.8, 0.2], [0.4, 0.6]], [0, 0, 1], [0, 1, 1], [0, 1, 1])
    >>> errors.error
    array([0. , 0.5])
    """
    losses, wrong = annotation_errors(p, items, labels, scale=scale)
    annotator = _arrays.codes("annotators", annotators, len(losses), None, "annotator")
    present, position, n = np.unique(annotator, return_inverse=True, return_counts=True)
    return AnnotatorErrors(
        annotator=present,
        n=n.astype(np.int64),
        ce=np.bincount(position, weights=losses) / n,
        error=np.bincount(position, weights=wrong) / n,
    )


def annotation_errors(
    p: npt.ArrayLike, items: npt.ArrayLike, labels: npt.ArrayLike, *, scale: Scale = NOMINAL
) -> tuple[Floats, Floats]:
    """Cross-entropy and error of each annotation [M]; see `annotator_errors`."""
    if scale.is_multi_label:
        sets, indicators = _arrays.shares("p", p), _arrays.shares("labels", labels)
        rows = np.arange(sets.shape[1])
        row_errors = annotation_errors(
            scale.rows(sets),
            (np.asarray(items)[:, None] * len(rows) + rows).reshape(-1),
            scale.rows(indicators),
        )
        ce, error = (scale.per_item(values, len(indicators)) for values in row_errors)
        return ce, error
    predicted = _arrays.probabilities("p", p)
    count, classes = predicted.shape
    item = _arrays.codes("items", items, None, count, "item")
    if not len(item):
        raise InputError("items is empty", "give at least one annotation")
    logs = np.log(np.clip(predicted, _arrays.CLIP, 1 - _arrays.CLIP))
    top = predicted.argmax(axis=1)[item]
    array = _arrays.as_array("labels", labels)
    if array.ndim == 2:
        shares = _arrays.probabilities("labels", array)
        if shares.shape != (len(item), classes):
            raise InputError(
                f"labels has the shape [{shares.shape[0]}, {shares.shape[1]}]; codes have"
                f" [{len(item)}], probabilities [{len(item)}, {classes}]",
                "give one row per annotation and one column per class of p",
            )
        return (
            -np.einsum("mc,mc->m", shares, logs[item]),
            1 - shares[np.arange(len(item)), top],
        )
    label = _arrays.codes("labels", array, len(item), classes, "class")
    return -logs[item, label], (top != label).astype(np.float64)
