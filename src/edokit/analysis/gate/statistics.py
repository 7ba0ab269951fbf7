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
        One-sided, of a rise by no more than the tolerance.
    detectable : float
        The rise that would have been found with a probability of 80 %.
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

    ``tests`` comparisons are made in all, for which a rise must be clear.
    """
    from scipy.special import stdtr, stdtrit  # Student's t

    before = sample_mean(reference, reference_clusters)
    after = sample_mean(current, current_clusters)
    change = after.mean - before.mean
    error = max(before.variance + after.variance, 1e-30) ** 0.5
    freedom = _welch_freedom(before, after)
    reach = float(stdtrit(freedom, (1 + level) / 2))
    excess = change - tolerance * before.mean
    # A few new items without a surprise would promise too much.
    expected_variance = before.variance * before.size / after.size
    expected_error = (before.variance + max(after.variance, expected_variance)) ** 0.5
    corrected_reach = float(stdtrit(freedom, 1 - (1 - level) / 2 / tests))
    named_rise = (corrected_reach + float(stdtrit(freedom, _POWER))) * expected_error
    return LossChange(
        reference=before.mean,
        current=after.mean,
        change=change,
        low=change - reach * error,
        high=change + reach * error,
        p=float(stdtr(freedom, -excess / error)),
        detectable=tolerance * before.mean + named_rise,
    )


def _welch_freedom(one: MeanEstimate, other: MeanEstimate) -> float:
    """Degrees of freedom of the difference of two means."""
    total = one.variance + other.variance
    if total <= 0:
        return float(one.size + other.size - 2)
    parts = one.variance**2 / max(one.size - 1, 1) + other.variance**2 / max(other.size - 1, 1)
    return max(total**2 / max(parts, 1e-300), 1.0)
