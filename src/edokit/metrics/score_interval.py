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

    A normal interval, or a bootstrap, collapses if all values are equal, and is too short near 0
    and 1. This is Wilson's score interval, which has neither problem, for a binomial sample with
    the variance of the estimate, and with the quantile of Student's t.

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
    # Variance of one value relative to that of a binomial; 1 if nothing varies.
    pseudo = _PSEUDO_VARIANCE / size
    ratios = (np.asarray(variances) * size + pseudo) / (binomial + pseudo)
    z = quantile**2 * ratios / size
    centres = (means + z / 2) / (1 + z)
    halves = np.sqrt(binomial * z + z**2 / 4) / (1 + z)
    low = np.clip(centres - halves, 0.0, 1.0)
    high = np.clip(centres + halves, 0.0, 1.0)
    return low, high
