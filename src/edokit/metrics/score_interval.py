"""Wilson's score interval for estimated means of values between 0 and 1."""

from __future__ import annotations

import numpy as np

from edokit._types import Floats

# One value of variance 1/4 is added, so that the interval does not collapse if values are equal.
_PSEUDO_VARIANCE = 0.25


def score_interval(
    means: Floats | float, variances: Floats | float, size: int, *, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Low and high ends of the interval of each mean.

    Normal and bootstrap intervals collapse if all values are equal, and are too short for means
    near 0 and 1. Wilson's score interval, which is for shares of a binomial sample, has neither
    problem. Here it gets the variance of the estimate, and the quantile of Student's t.

    Parameters
    ----------
    means : float or ndarray
        Estimates between 0 and 1.
    variances : float or ndarray
        Variance of each estimate.
    size : int
        Number of independent values that were averaged.
    level : float, default=0.95
        Level of the interval.

    Returns
    -------
    low, high : ndarray
        Both between 0 and 1.

    Examples
    --------
    >>> low, high = score_interval(1.0, 0.0, 50)
    >>> round(float(low), 3), float(high)
    (0.925, 1.0)
    """
    from scipy.special import stdtrit

    quantile = float(stdtrit(max(size - 1, 1), 0.5 + level / 2))
    means = np.asarray(means, dtype=np.float64)
    binomial = means * (1.0 - means)
    # Variance of one value, relative to that of values of 0 and 1 with the same mean. If all values
    # are 0, or all are 1, both variances are 0, and the ratio is 1.
    pseudo = _PSEUDO_VARIANCE / size
    ratios = (np.asarray(variances) * size + pseudo) / (binomial + pseudo)
    # z²/n in Wilson's formula: it moves the centre towards one half.
    shrinkage = quantile**2 * ratios / size
    centres = (means + shrinkage / 2) / (1 + shrinkage)
    half_widths = np.sqrt(binomial * shrinkage + shrinkage**2 / 4) / (1 + shrinkage)
    low = np.clip(centres - half_widths, 0.0, 1.0)
    high = np.clip(centres + half_widths, 0.0, 1.0)
    return low, high
