"""Metrics of distributions as functions of arrays, which they check."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.item_array import match_rows
from edokit.metrics.checks import distributions, hard_labels, losses, of_items, pair
from edokit.metrics.formulas import (
    brier,
    cross_entropy,
    is_correct,
    jensen_shannon,
    manhattan,
    ranked_probability,
    shannon,
    wasserstein,
)
from edokit.scales import Scale


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
    matched_p, matched_y = match_rows({"p": p, "y": y})
    predicted = distributions("p", matched_p)
    return of_items(is_correct(predicted, hard_labels(matched_y, predicted)), p, y)


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
    return of_items(cross_entropy(*pair(p, q)), p, q)


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
    return of_items(manhattan(*pair(p, q)), p, q)


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
    return of_items(brier(*pair(p, q)), p, q)


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
    return float(jensen_shannon(*pair(p, q)).mean())


def w1(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Wasserstein-1 distance between answers on a scale, averaged over items.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels of the ordered classes.
    positions : array-like of shape [C], default=None
        Positions of the classes on the scale, ascending; 0, 1, 2, … if None.

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
    """Wasserstein-1 distance of each item; the parameters are those of `w1`.

    Returns
    -------
    numpy.ndarray of shape [N]

    Examples
    --------
    >>> w1_items([[0.5, 0.5, 0.0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]])
    array([1.5, 0. ])
    """
    return of_items(wasserstein(*_with_positions(p, q, positions)), p, q)


def rps(p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None = None) -> float:
    """Ranked probability score Σ_c (F_c − G_c)² of cumulative shares, averaged over items.

    This score is proper: the best answer is the annotators' distribution. The parameters are those
    of `w1`; squares are weighted by the distances between neighbouring positions.

    Returns
    -------
    float

    Examples
    --------
    >>> rps([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]])
    1.25
    """
    return float(ranked_probability(*_with_positions(p, q, positions)).mean())


def entropy(q: npt.ArrayLike) -> float:
    """Mean entropy; the entropy of the soft labels is the lowest possible CE.

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
    return of_items(shannon(distributions("q", q)), q)


def _with_positions(
    p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Checked distributions, and the positions of the classes on the scale [C]."""
    predicted, soft = pair(p, q)
    if positions is None:
        positions = np.arange(predicted.shape[1])
    scale = Scale("ordinal", tuple(losses("positions", positions).tolist()))
    predicted, soft = pair(predicted, soft, scale)
    return predicted, soft, np.array(scale.positions)
