"""The statistics of a gate: has the mean loss risen since the fit?

Losses are averages over the labels of an item, so that their mean does not depend on how many
annotators an item has. Two means are compared by Welch's t test, with items that belong together
counted as one.
"""

from __future__ import annotations

from dataclasses import dataclass

from edokit._types import Floats, Ints
from edokit.metrics.sample_mean import MeanEstimate, sample_mean

_POWER = 0.8
"""Probability with which a rise of the detectable size would have been found."""


@dataclass(frozen=True)
class LossChange:
    """How much the mean loss differs from that on the items of the fit.

    Attributes
    ----------
    reference, current : float
        The mean loss on the items of the fit, and on the new ones.
    change, low, high : float
        The difference, positive where answers got worse, with its interval.
    p : float
        P-value of a one-sided test for a rise beyond the tolerance.
    detectable : float
        A rise of this size would have been found with a probability of 80 % or more.
    """

    reference: float
    current: float
    change: float
    low: float
    high: float
    p: float
    detectable: float


def loss_change(
    reference: Floats,
    current: Floats,
    reference_clusters: Ints | None,
    current_clusters: Ints | None,
    *,
    level: float,
    tolerance: float = 0.0,
    tests: int = 1,
) -> LossChange:
    """Compare the losses [n] of new items with those [N] of the items of the fit.

    ``tests`` is the number of comparisons that are made, for which a detectable rise is corrected.
    """
    from scipy.special import stdtr, stdtrit  # Student's t

    before = sample_mean(reference, reference_clusters)
    after = sample_mean(current, current_clusters)
    change = after.mean - before.mean
    error = max(before.variance + after.variance, 1e-30) ** 0.5
    freedom = _welch_freedom(before, after)
    reach = float(stdtrit(freedom, (1 + level) / 2))
    excess = change - tolerance * before.mean
    # A few new items may happen to vary little. They are taken to vary at least as those of the
    # fit do, so that the detectable rise is not too small.
    fit_variance = before.variance * before.size / after.size
    cautious_error = (before.variance + max(after.variance, fit_variance)) ** 0.5
    corrected_reach = float(stdtrit(freedom, 1 - (1 - level) / 2 / tests))
    power_reach = float(stdtrit(freedom, _POWER))
    detectable_rise = (corrected_reach + power_reach) * cautious_error
    return LossChange(
        reference=before.mean,
        current=after.mean,
        change=change,
        low=change - reach * error,
        high=change + reach * error,
        p=float(stdtr(freedom, -excess / error)),
        detectable=tolerance * before.mean + detectable_rise,
    )


def _welch_freedom(before: MeanEstimate, after: MeanEstimate) -> float:
    """Degrees of freedom of the difference of two means, by Welch and Satterthwaite."""
    total = before.variance + after.variance
    if total <= 0:
        return float(before.size + after.size - 2)
    before_part = before.variance**2 / max(before.size - 1, 1)
    after_part = after.variance**2 / max(after.size - 1, 1)
    return max(total**2 / max(before_part + after_part, 1e-300), 1.0)
