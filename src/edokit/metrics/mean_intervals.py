"""Intervals of means, and of the ratio of two means, over items or clusters of items.

A percentile bootstrap is too short with few items, and Student's t with skewed values such as
losses. Hall (1992) corrects t for the skewness, which has to be estimated; for symmetric values,
this estimate costs coverage. Here, the interval spans two: that by Student's t, and that by Hall's
t. Nothing is drawn at random. `benchmarks/coverage.py` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edokit._types import Floats, Ints
from edokit.metrics.score_interval import score_interval

FEWEST_UNITS = 10
"""The least number of independent units (items, or clusters of items) for an interval."""
LARGEST_RATIO = 11.0
"""Where intervals of ratios are cut off: they are unbounded if the denominator may be 0."""
_BISECTIONS = 50


@dataclass(frozen=True, eq=False)
class UnitDeviations:
    """A mean over items, and the deviations of independent units from it.

    Attributes
    ----------
    mean : float
    deviations : ndarray of shape [G]
        One per unit; their sum is 0, and their variance over G is the variance of the mean.
    is_zero_or_one : bool
        Whether the value of every item is 0 or 1, so that the mean is a share of the items.
    is_nonnegative : bool
        Whether no value is negative.
    """

    mean: float
    deviations: Floats
    is_zero_or_one: bool
    is_nonnegative: bool

    @classmethod
    def from_values(cls, values: Floats, clusters: Ints | None) -> UnitDeviations:
        """From values per item [N]; ``clusters`` [N] are the units of items, or None."""
        mean = float(values.mean())
        deviations = values - mean
        if clusters is not None:
            sums = np.bincount(clusters, weights=deviations)
            # Divided by the mean number of items of a unit, so that they are deviations of means if
            # all units have equally many items.
            deviations = np.asarray(sums * (len(sums) / len(values)), dtype=np.float64)
        is_zero_or_one = bool(((values == 0) | (values == 1)).all())
        is_nonnegative = bool((values >= 0).all())
        return cls(mean, deviations, is_zero_or_one, is_nonnegative)

    @property
    def units(self) -> int:
        """Number of independent units, G."""
        return len(self.deviations)

    def ends(self, level: float) -> tuple[float, float]:
        """Low and high ends of the interval of the mean.

        If no value is negative, the low end is not, either.
        """
        moments = _Moments.from_deviations(self.deviations)
        if self.is_zero_or_one:
            # A score interval does not collapse if all values are equal.
            ends = score_interval(self.mean, moments.error**2, self.units, level=level)
            return float(ends[0]), float(ends[1])
        lowest, highest = moments.reach(level)
        low = self.mean - highest
        if self.is_nonnegative:
            low = max(low, 0.0)
        return low, self.mean - lowest


def difference_ends(a: UnitDeviations, b: UnitDeviations, level: float) -> tuple[float, float]:
    """Low and high ends of the interval of mean(a) − mean(b) over the same units."""
    difference = a.mean - b.mean
    moments_at = _difference_moments(a, b)
    moments = moments_at(1.0)
    lowest, highest = moments.reach(level)
    low = difference - highest
    high = difference - lowest
    if a.is_zero_or_one and b.is_zero_or_one:
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
    """Low and high ends of the interval of mean(a) / mean(b); the mean of b must be positive.

    The interval contains the ratios r for which the interval of mean(a − r b) contains 0 (Fieller,
    1954): it excludes 1 if and only if the interval of the difference excludes 0. It is cut off
    below ``lowest`` and above ``largest``; if the ratio itself lies beyond ``largest``, it is the
    high end.
    """
    moments_at = _difference_moments(a, b)

    def contains(ratio: float) -> bool:
        """Whether the interval of mean(a) / mean(b) contains a ratio."""
        low_reach, high_reach = moments_at(ratio).reach(level)
        return low_reach <= a.mean - ratio * b.mean <= high_reach

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
    """The inverse of Hall's transformation, (3/k) ((1 + k (t − k/6))^(1/3) − 1)."""
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
    both_zero_or_one = a.is_zero_or_one and b.is_zero_or_one

    def moments(ratio: float) -> _Moments:
        squares = xx - 2 * ratio * xy + ratio**2 * yy
        # Equal deviations have a variance of 0, apart from rounding errors.
        if squares < 1e-14 * (xx + ratio**2 * yy):
            squares = 0.0
        if both_zero_or_one:
            # As if the two differed in one more unit (Agresti and Min, 2005), so that the interval
            # does not collapse if they differ in none. A skewness of 0 leaves Student's t alone.
            return _Moments.from_sums(squares + (units - 1) / units, 0.0, units)
        cubes = xxx - 3 * ratio * xxy + 3 * ratio**2 * xyy - ratio**3 * yyy
        return _Moments.from_sums(squares, cubes, units)

    return moments
