"""Calibration of predicted probabilities, measured against soft labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import one_of
from edokit._types import Floats, Ints
from edokit.metrics import _arrays

Binning = Literal["width", "mass"]
"""Bins of equal width, or of about equally many points."""
NUDGE = 1e-6
"""A share such as 0.3 belongs to the bin that starts there, even if rounding left it just below."""


@dataclass(frozen=True)
class Reliability:
    """A reliability curve; every array [B] is over the bins that are not empty."""

    low: Floats
    """Lower edge of each bin."""
    high: Floats
    """Upper edge of each bin."""
    predicted: Floats
    """Mean predicted probability in the bin."""
    observed: Floats
    """Mean share of annotators in the bin."""
    count: Ints
    """Number of points in the bin."""

    @property
    def ece(self) -> float:
        """Mean |predicted − observed|, each bin weighted by its points."""
        gaps = np.abs(self.predicted - self.observed)
        return float(gaps @ self.count / self.count.sum())


def reliability_curve(
    p: npt.ArrayLike, q: npt.ArrayLike, bins: int = 10, binning: Binning = "width"
) -> Reliability:
    """Reliability curve of predicted probabilities against soft labels.

    Each (item, class) is one point (p_ic, q_ic); of two classes only the second counts, since the
    first mirrors it.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    bins : int, default=10
        Number of bins of p.
    binning : {"width", "mass"}, default="width"
        Bins of equal width (an edge belongs to the bin above), or of about equally many points
        (equal probabilities share a bin, so there may be fewer bins).

    Returns
    -------
    Reliability

    Examples
    --------
    >>> curve = reliability_curve([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]], bins=2)
    >>> curve.predicted, curve.observed
    (array([0.2, 0.6]), array([0. , 0.5]))
    """
    return curve(*_arrays.pair(p, q), *checked_bins(bins, binning))


def ece(p: npt.ArrayLike, q: npt.ArrayLike, bins: int = 10, binning: Binning = "width") -> float:
    """Expected calibration error against soft labels.

    Parameters
    ----------
    p, q : array-like of shape [N, C]
        Predicted probabilities and soft labels.
    bins, binning : int, default=10, and {"width", "mass"}, default="width"
        Calibration bins, as for `reliability_curve`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(ece([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]]), 4)
    0.15
    """
    return reliability_curve(p, q, bins, binning).ece


def checked_bins(bins: int, binning: Binning) -> tuple[int, Binning]:
    """The bins, refused where they make no sense."""
    one_of("binning", binning, get_args(Binning))
    return _arrays.whole("bins", bins), binning


def curve(p: Floats, q: Floats, bins: int, binning: Binning) -> Reliability:
    """`reliability_curve` on checked arguments."""
    points, shares = _points(p, q)
    index, edges = _assign(points, bins, binning)
    flat = index.ravel()
    count = np.bincount(flat, minlength=len(edges) - 1)
    held = count > 0
    predicted = np.bincount(flat, weights=points.ravel(), minlength=len(count))
    observed = np.bincount(flat, weights=shares.ravel(), minlength=len(count))
    return Reliability(
        low=edges[:-1][held],
        high=edges[1:][held],
        predicted=predicted[held] / count[held],
        observed=observed[held] / count[held],
        count=count[held].astype(np.int64),
    )


def gap_parts(p: Floats, q: Floats, bins: int, binning: Binning) -> Floats:
    """Each item's part in each bin's gap [N, B]: ECE = Σ_b |Σ_i parts[i, b]| / N."""
    points, shares = _points(p, q)
    index, edges = _assign(points, bins, binning)
    items, width = len(p), len(edges) - 1
    cell = index + width * np.arange(items)[:, None]
    gaps = (points - shares) / points.shape[1]
    parts = np.bincount(cell.ravel(), weights=gaps.ravel(), minlength=items * width)
    return parts.astype(np.float64, copy=False).reshape(items, width)


def _points(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    return (p[:, 1:], q[:, 1:]) if p.shape[1] == 2 else (p, q)


def _assign(points: Floats, bins: int, binning: Binning) -> tuple[npt.NDArray[np.intp], Floats]:
    """The bin of each point, and the edges of the bins."""
    if binning == "width":
        index = np.minimum((points * bins + NUDGE).astype(np.intp), bins - 1)
        return index, np.linspace(0, 1, bins + 1)
    inner = np.unique(np.quantile(points, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.searchsorted(inner, points, side="left"), np.r_[0.0, inner, 1.0]
