"""Calibration of predicted probabilities against soft labels: reliability curve and ECE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import check_number
from edokit._types import Floats, HardLabels, Ints
from edokit.metrics.checks import checked_p_q
from edokit.scales import NOMINAL, Scale

# Bins of equal width.
BINS = 10
# A share such as 0.3 belongs to the bin that starts at 0.3, even if it was rounded down.
NUDGE = 1e-6


@dataclass(frozen=True)
class Reliability:
    """A reliability curve; every array [B] has an entry per bin that is not empty.

    Attributes
    ----------
    low, high : ndarray
        Edges of each bin.
    predicted : ndarray
        Mean predicted probability in the bin.
    observed : ndarray
        Mean share of annotators in the bin.
    count : ndarray
        Number of points in the bin: pairs of an item and a class.
    """

    low: Floats
    high: Floats
    predicted: Floats
    observed: Floats
    count: Ints

    @property
    def ece(self) -> float:
        """Mean |predicted − observed|, each bin weighted by its points."""
        gaps = np.abs(self.predicted - self.observed)
        return float(gaps @ self.count / self.count.sum())


def reliability_curve(
    p: npt.ArrayLike, q: npt.ArrayLike, bins: int = BINS, *, scale: Scale = NOMINAL
) -> Reliability:
    """Reliability curve of predicted probabilities against soft labels.

    Each (item, class) is a point (p_ic, q_ic). With two classes, only the points of the second are
    used, since those of the first mirror them.

    Parameters
    ----------
    p, q : array-like of shape [N, C], or [N, L] for multi-label data
        Predicted probabilities and soft labels.
    bins : int, default=10
        Number of bins of equal width. An edge belongs to the bin above it.
    scale : Scale, default=NOMINAL
        The answer scale.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> curve = reliability_curve([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]], bins=2)
    >>> curve.predicted, curve.observed
    (array([0.2, 0.6]), array([0. , 0.5]))
    """
    check_number("bins", bins, 1, whole=True)
    predicted, soft = checked_p_q(p, q, scale)
    probabilities, shares = _points(predicted, soft, scale)
    index = _bin_of(probabilities, bins).ravel()
    edges = np.linspace(0, 1, bins + 1)
    count = np.bincount(index, minlength=bins)
    filled = count > 0

    def bin_means(values: Floats) -> Floats:
        sums = np.bincount(index, weights=values.ravel(), minlength=bins)
        return np.asarray(sums[filled] / count[filled])

    return Reliability(
        low=edges[:-1][filled],
        high=edges[1:][filled],
        predicted=bin_means(probabilities),
        observed=bin_means(shares),
        count=count[filled].astype(np.int64),
    )


def ece(p: npt.ArrayLike, q: npt.ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error against soft labels.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    bins : int, default=10
        Number of calibration bins, as for `reliability_curve`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(ece([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.15
    """
    return reliability_curve(p, q, bins).ece


def gap_parts(p: Floats, q: Floats, y: HardLabels, scale: Scale) -> Floats:
    """Each item's part in each bin's gap [N, B]: ECE = Σ_b |Σ_i parts[i, b]| / N."""
    probabilities, shares = _points(p, q, scale)
    # Item i sums its gaps in cells i · BINS to (i + 1) · BINS.
    cells = _bin_of(probabilities, BINS) + BINS * np.arange(len(p))[:, None]
    gaps = (probabilities - shares) / probabilities.shape[1]
    parts = np.bincount(cells.ravel(), weights=gaps.ravel(), minlength=len(p) * BINS)
    return parts.astype(np.float64, copy=False).reshape(len(p), BINS)


def _points(p: Floats, q: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """The probabilities and the shares of the points of a curve; with two classes, the second's."""
    if scale.is_binary(p.shape[1]):
        return p[:, 1:], q[:, 1:]
    return p, q


def _bin_of(probabilities: Floats, bins: int) -> npt.NDArray[np.intp]:
    """The bin of each probability."""
    return np.minimum((probabilities * bins + NUDGE).astype(np.intp), bins - 1)
