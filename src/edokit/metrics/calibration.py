"""Do the predicted probabilities mean what they say? Measured against soft labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import one_of
from edokit._types import Floats, Ints
from edokit.metrics import _checks

BINNINGS = ("width", "mass")

# A share such as 0.3 belongs to the bin that starts there, even if rounding left it just below.
NUDGE = 1e-6


@dataclass(frozen=True)
class Reliability:
    """A reliability curve; every array [B] is over the bins that hold points."""

    low: Floats
    """Where each bin starts."""
    high: Floats
    """Where each bin ends."""
    predicted: Floats
    """Mean predicted probability in the bin."""
    observed: Floats
    """Mean share of annotators in the bin."""
    count: Ints
    """How many points lie in the bin."""

    @property
    def ece(self) -> float:
        """Mean |predicted − observed|, each bin weighted by its points."""
        gaps = np.abs(self.predicted - self.observed)
        return float(gaps @ self.count / self.count.sum())


def reliability_curve(
    p: npt.ArrayLike, q: npt.ArrayLike, bins: int = 10, binning: str = "width"
) -> Reliability:
    """Predicted probabilities p [N, C] against soft labels q [N, C], in bins of p.

    Each (item, class) is one point (p_ic, q_ic), all classes pooled. With two classes only the
    second one counts: the first would repeat it in a mirror. ``binning`` is "width" (bins of
    equal width, an edge belongs to the bin above) or "mass" (bins of about equally many points;
    equal probabilities share a bin, so there can be fewer bins).
    """
    return curve(*_checks.pair(p, q), *checked_bins(bins, binning))


def ece(p: npt.ArrayLike, q: npt.ArrayLike, bins: int = 10, binning: str = "width") -> float:
    """Expected calibration error against soft labels, from the bins of `reliability_curve`."""
    return reliability_curve(p, q, bins, binning).ece


# What follows takes checked arguments.


def checked_bins(bins: int, binning: str) -> tuple[int, str]:
    one_of("binning", binning, BINNINGS)
    return _checks.whole("bins", bins), binning


def curve(p: Floats, q: Floats, bins: int, binning: str) -> Reliability:
    points, shares = _points(p, q)
    index, edges = _place(points, bins, binning)
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


def gap_parts(p: Floats, q: Floats, bins: int, binning: str) -> Floats:
    """Each item's part in each bin's gap [N, B]: ECE = Σ_b |Σ_i parts[i, b]| / N."""
    points, shares = _points(p, q)
    index, edges = _place(points, bins, binning)
    items, width = len(p), len(edges) - 1
    cell = index + width * np.arange(items)[:, None]
    gaps = (points - shares) / points.shape[1]
    parts = np.bincount(cell.ravel(), weights=gaps.ravel(), minlength=items * width)
    return parts.astype(np.float64, copy=False).reshape(items, width)


def _points(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    return (p[:, 1:], q[:, 1:]) if p.shape[1] == 2 else (p, q)


def _place(points: Floats, bins: int, binning: str) -> tuple[npt.NDArray[np.intp], Floats]:
    """The bin of each point, and the edges of the bins."""
    if binning == "width":
        index = np.minimum((points * bins + NUDGE).astype(np.intp), bins - 1)
        return index, np.linspace(0, 1, bins + 1)
    inner = np.unique(np.quantile(points, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.searchsorted(inner, points, side="left"), np.r_[0.0, inner, 1.0]
