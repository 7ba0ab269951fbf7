"""Metrics of answers on a scale (ordered classes) and of sets of labels, and soft overlap.

On a scale p and q are distributions [N, C] over ordered classes, ``positions`` their places [C]
(steps of one where left out). Of sets p and q are [N, L]: the predicted probability of each label
and the share of annotators who chose it; rows need not sum to one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, option
from edokit._types import Floats
from edokit.metrics import _arrays
from edokit.metrics.compute import compute_metrics
from edokit.scales import Scale


def w1(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Wasserstein-1 distance between answers on a scale, averaged over items.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels of the ordered classes.
    positions : array-like of shape [C], default=None
        Where the classes are on the scale, ascending; 0, 1, 2, … if None.

    Returns
    -------
    float
        In units of the scale.

    Examples
    --------
    >>> w1([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]])
    1.5
    """
    return float(w1_items(p, q, positions).mean())


def w1_items(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> Floats:
    """Wasserstein-1 distance of each item; parameters as for `w1`.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> w1_items([[0.5, 0.5, 0.0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]])
    array([1.5, 0. ])
    """
    return _arrays.wasserstein(*_placed(p, q, positions))


def rps(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Ranked probability score Σ_c (F_c − G_c)² of cumulative shares, averaged over items.

    A proper score: the best answer is the annotators' distribution. Parameters as for `w1`; each
    square counts as much as its step is wide.

    Returns
    -------
    float

    Examples
    --------
    >>> rps([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]])
    1.25
    """
    return float(rps_items(p, q, positions).mean())


def rps_items(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> Floats:
    """Ranked probability score of each item; parameters as for `w1`.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> rps_items([[0.5, 0.5, 0.0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]])
    array([1.25, 0.  ])
    """
    return _arrays.ranked_probability(*_placed(p, q, positions))


def mad(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Mean absolute distance between the predicted median and each annotator's answer.

    Parameters as for `w1`. The median of p is the answer with the least expected distance.

    Returns
    -------
    float
        In units of the scale.

    Examples
    --------
    >>> mad([[0.1, 0.6, 0.3]], [[0.5, 0.0, 0.5]])
    1.0
    """
    return float(mad_items(p, q, positions).mean())


def mad_items(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> Floats:
    """Mean absolute distance of each item; parameters as for `w1`.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> mad_items([[0.1, 0.6, 0.3], [1, 0, 0]], [[0.5, 0, 0.5], [1, 0, 0]])
    array([1., 0.])
    """
    return _arrays.absolute_distance(*_placed(p, q, positions))


def soft_f1(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Soft micro-F1: 2 Σ min(p, q) / Σ (p + q) over all items and labels.

    As Kurniawan et al. (2025, arXiv 2502.01891) define it. For distributions it is 1 − MD / 2.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels: distributions, or the probability of each label
        of a set.

    Returns
    -------
    float
        From 0 to 1; 1 where both are 0 everywhere.

    Examples
    --------
    >>> round(soft_f1([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.85
    """
    return _of_sets("soft_f1", p, q)


def po_jsd(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Positively oriented Jensen–Shannon divergence: 1 − JSD in bits, averaged over items.

    As Kurniawan et al. (2025, arXiv 2502.01891) report it, for distributions. Of sets give the two
    sides of each label as a row, see `label_rows`.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.

    Returns
    -------
    float
        From 0 to 1, where 1 is best.

    Examples
    --------
    >>> round(po_jsd([[0.2, 0.8]], [[0.6, 0.4]]), 4)
    0.8755
    """
    predicted, soft = _arrays.pair(p, q)
    return 1 - float(_arrays.jensen_shannon(predicted, soft).mean() / np.log(2))


def label_rows(p: npt.ArrayLike) -> Floats:
    """Sets as rows: each label of an item becomes a distribution over "not chosen" and "chosen".

    Parameters
    ----------
    p : array-like of shape [N, L]
        Probability (or share of annotators) of each label.

    Returns
    -------
    numpy.ndarray of shape [N · L, 2]
        Item by item; every metric of distributions takes it.

    Examples
    --------
    >>> label_rows([[0.25, 1.0]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    return Scale("multi-label").rows(_arrays.shares("p", p))


def exact_match(p: npt.ArrayLike, sets: npt.ArrayLike) -> float:
    """Share of items whose predicted set (labels with a probability above one half) is right.

    Parameters
    ----------
    p : array-like of shape [N, L]
        Predicted probability of each label.
    sets : array-like of bool, shape [N, L]
        Whether each label is in the set of the item.

    Returns
    -------
    float

    Examples
    --------
    >>> exact_match([[0.9, 0.2], [0.9, 0.6]], [[True, False], [True, False]])
    0.5
    """
    return _of_sets("exact_match", p, sets)


def label_error(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Share of an annotator's labels that the predicted set gets wrong, averaged over items.

    With one set per item it is the Hamming loss.

    Parameters
    ----------
    p : array-like of shape [N, L]
        Predicted probability of each label.
    q : array-like of shape [N, L]
        Share of annotators who chose each label, or whether it is in the set of the item.

    Returns
    -------
    float

    Examples
    --------
    >>> label_error([[0.9, 0.2], [0.9, 0.6]], [[True, False], [True, False]])
    0.25
    >>> label_error([[0.9, 0.2]], [[0.75, 0.0]])
    0.125
    """
    return _of_sets("label_error", p, q)


def _placed(
    p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Checked distributions, and where the classes are on the scale [C]."""
    predicted, soft = _arrays.pair(p, q)
    classes = predicted.shape[1]
    places = _arrays.losses("positions", np.arange(classes) if positions is None else positions)
    if len(places) != classes or not (np.diff(places) > 0).all():
        raise InputError(
            f"{classes} classes need as many ascending positions, but {option('positions')} is"
            f" {places.tolist()}",
            "give one number per class, in the order of the classes",
        )
    return predicted, soft, places


def _of_sets(metric: str, p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    soft = _arrays.shares("q", q)
    sets = Scale("multi-label")
    metrics = compute_metrics(p, soft, sets.hard(soft), metrics=[metric], scale=sets)
    return float(metrics[metric] or 0.0)
