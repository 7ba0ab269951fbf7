"""Intervals of means, and of the ratio of two means, over items or groups of items.

A percentile bootstrap is too short with few items, and Student's t with skewed values such as
losses. Hall (1992) corrects t for the skewness, which has to be estimated; for symmetric values,
this estimate costs coverage. Here, each end is the farther end of the two intervals. It does not
depend on a seed. `benchmarks/coverage.py` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edokit._types import Floats, Ints
from edokit.metrics.score_interval import score_interval

FEWEST_UNITS = 10
"""The least number of independent items, or groups of items, for an interval."""
LARGEST_RATIO = 11.0
"""The largest end of intervals of ratios; a denominator near 0 would give unbounded ends."""
_BISECTIONS = 50


@dataclass(frozen=True, eq=False)
class UnitDeviations:
    """A mean over items, and the deviations of independent units from it.

    Attributes
    ----------
    mean : float
    deviations : ndarray of shape [G]
        One per unit; their sum is 0, and their variance over G is the variance of the mean.
    is_share : bool
        Whether the value of every item is 0 or 1.
    is_positive : bool
        Whether no value is negative.
    """

    mean: float
    deviations: Floats
    is_share: bool
    is_positive: bool

    @classmethod
    def from_values(cls, values: Floats, clusters: Ints | None) -> UnitDeviations:
        """From values per item [N]; ``clusters`` [N] are the units of items, or None."""
        mean = float(values.mean())
        deviations = values - mean
        if clusters is not None:
            sums = np.bincount(clusters, weights=deviations)
            # Scaled to units of equal size.
            deviations = np.asarray(sums * (len(sums) / len(values)), dtype=np.float64)
        is_share = bool(((values == 0) | (values == 1)).all())
        return cls(mean, deviations, is_share, bool((values >= 0).all()))

    @property
    def units(self) -> int:
        """Number of independent units, G."""
        return len(self.deviations)

    def ends(self, level: float) -> tuple[float, float]:
        """Low and high ends of the interval of the mean; not below 0 if no value is."""
        moments = _Moments.from_deviations(self.deviations)
        if self.is_share:
            # A score interval does not collapse if all values are equal.
            ends = score_interval(self.mean, moments.error**2, self.units, level=level)
            return float(ends[0]), float(ends[1])
        lowest, highest = moments.reach(level)
        low = self.mean - highest
        if self.is_positive:
            low = max(low, 0.0)
        return low, self.mean - lowest


def difference_ends(a: UnitDeviations, b: UnitDeviations, level: float) -> tuple[float, float]:
    """Low and high ends of the interval of mean(a) − mean(b) over the same units."""
    difference = a.mean - b.mean
    moments = _difference_moments(a, b)(1.0)
    lowest, highest = moments.reach(level)
    low = difference - highest
    high = difference - lowest
    if a.is_share and b.is_share:
        low = max(low, -1.0)
        high = min(high, 1.0)
    return low, high


def ratio_ends(
    a: UnitDeviations,
    b: UnitDeviations,
    level: float,
    lowest: float = 0.0,
    largest: float = LARGEST_RATIO,
) -> tuple[float, float]:
    """Low and high ends of the interval of mean(a) / mean(b), a ratio that is at least ``lowest``.

    The interval contains the ratios r for which the interval of mean(a − r b) contains 0 (Fieller,
    1954): it excludes 1 if and only if the interval of the difference excludes 0. The mean of b
    must be positive. The high end is at most ``largest``.
    """
    moments = _difference_moments(a, b)

    def contains(ratio: float) -> bool:
        """Whether 0 is in the interval of mean(a − r b)."""
        lowest, highest = moments(ratio).reach(level)
        return lowest <= a.mean - ratio * b.mean <= highest

    ratio = max(a.mean / b.mean, lowest)
    low = _boundary(ratio, lowest, contains)
    high = _boundary(ratio, max(ratio, largest), contains)
    return low, high


def _boundary(inside: float, limit: float, contains: Callable[[float], bool]) -> float:
    """The end of an interval between a point inside and a limit; the limit if it is inside."""
    if contains(limit):
        return limit
    outside = limit
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        if contains(middle):
            inside = middle
        else:
            outside = middle
    return inside


@dataclass(frozen=True)
class _Moments:
    """Standard error and skewness of a mean over independent units."""

    error: float
    skewness: float
    units: int

    @classmethod
    def from_deviations(cls, deviations: Floats) -> _Moments:
        units = len(deviations)
        return cls.from_sums(float((deviations**2).sum()), float((deviations**3).sum()), units)

    @classmethod
    def from_sums(cls, squares: float, cubes: float, units: int) -> _Moments:
        """From the sums of squares and of cubes of the deviations."""
        if units == 1:
            return cls(math.inf, 0.0, units)
        skewness = 0.0
        if squares > 0:
            skewness = cubes / units / (squares / units) ** 1.5
        return cls(math.sqrt(squares / (units * (units - 1))), skewness, units)

    def reach(self, level: float) -> tuple[float, float]:
        """The lowest and highest plausible estimates of a mean whose true value is 0.

        In standard errors, each is the farther quantile of Student's t and Hall's t. With the
        skewness γ and k = γ/√G, Hall's transformation of t is t + k t²/3 + k² t³/27 + k/6.
        """
        from scipy.special import stdtrit  # Student's t

        if self.units == 1:
            return -math.inf, math.inf
        student = float(stdtrit(self.units - 1, (1 + level) / 2))
        k = self.skewness / math.sqrt(self.units)
        lowest = min(-student, _inverse_of_hall(-student, k))
        highest = max(student, _inverse_of_hall(student, k))
        return lowest * self.error, highest * self.error


def _inverse_of_hall(t: float, k: float) -> float:
    """The inverse of Hall's transformation of t."""
    if abs(k) < 1e-9:
        return t
    cubed = 1 + k * (t - k / 6)
    root = math.copysign(abs(cubed) ** (1 / 3), cubed)
    return 3 / k * (root - 1)


def _difference_moments(a: UnitDeviations, b: UnitDeviations) -> Callable[[float], _Moments]:
    """The moments of mean(a − r b) as a function of r."""
    x = a.deviations
    y = b.deviations
    units = a.units
    xx = float((x * x).sum())
    xy = float((x * y).sum())
    yy = float((y * y).sum())
    xxx = float((x * x * x).sum())
    xxy = float((x * x * y).sum())
    xyy = float((x * y * y).sum())
    yyy = float((y * y * y).sum())
    both_shares = a.is_share and b.is_share

    def moments(ratio: float) -> _Moments:
        squares = xx - 2 * ratio * xy + ratio**2 * yy
        # Equal deviations have a variance of 0, apart from rounding errors.
        if squares < 1e-14 * (xx + ratio**2 * yy):
            squares = 0.0
        if both_shares:
            # Student's t with one more unit in which the two differ (Agresti and Min, 2005), so
            # that the interval does not collapse if all units are equal.
            return _Moments.from_sums(squares + (units - 1) / units, 0.0, units)
        cubes = xxx - 3 * ratio * xxy + 3 * ratio**2 * xyy - ratio**3 * yyy
        return _Moments.from_sums(squares, cubes, units)

    return moments
