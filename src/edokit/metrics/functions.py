"""Metrics on a nominal or ordinal scale, as functions of arrays, which are checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.item_array import match_rows
from edokit.metrics.checks import (
    checked_p_q,
    distributions,
    hard_labels,
    vector,
    with_item_ids,
)
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
    """Whether the most probable class (the first on ties) of each item is y.

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
    hard = hard_labels(matched_y, predicted)
    return with_item_ids(is_correct(predicted, hard), p, y)


def ce(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Cross-entropy −Σ q ln p, averaged over items, with p clipped to [1e-12, 1 − 1e-12].

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
    return with_item_ids(cross_entropy(*checked_p_q(p, q)), p, q)


def md(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Manhattan distance ‖p − q‖₁, averaged over items.

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
    return with_item_ids(manhattan(*checked_p_q(p, q)), p, q)


def bs(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Brier score ‖p − q‖₂², averaged over items.

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
    return with_item_ids(brier(*checked_p_q(p, q)), p, q)


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
    return float(jensen_shannon(*checked_p_q(p, q)).mean())


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
    return with_item_ids(wasserstein(*_with_positions(p, q, positions)), p, q)


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
    """Entropy −Σ q ln q, averaged over items; that of the soft labels is the lowest possible CE.

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
    return with_item_ids(shannon(distributions("q", q)), q)


def _with_positions(
    p: npt.ArrayLike, q: npt.ArrayLike, positions: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Checked distributions, and the positions of the classes on the scale [C]."""
    predicted, soft = checked_p_q(p, q)
    if positions is None:
        positions = np.arange(predicted.shape[1])
    checked_positions = vector("positions", positions, "give one position per class")
    scale = Scale("ordinal", tuple(checked_positions.tolist()))
    # Once more, now that the scale is known: its positions must be as many as the classes.
    predicted, soft = checked_p_q(predicted, soft, scale)
    return predicted, soft, np.array(scale.positions)
