"""The statistics of a gate: has the mean loss risen since the fit?

Losses are averages over the labels of an item, so that their mean does not depend on how many
annotators an item has. Two means are compared by Welch's t test, with items that belong together
counted as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from edokit._types import Bools, Floats, Ints
from edokit.analysis.gate.options import GateOptions
from edokit.analysis.gate.result import GateRow
from edokit.analysis.scores.slices import FEWEST_ITEMS
from edokit.analysis.sequential import holm
from edokit.metrics.resampling import unit_count
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


@dataclass(frozen=True, eq=False)
class LossSample:
    """The losses [n] of some items; items with the same cluster number [n] count as one."""

    losses: Floats
    clusters: Ints | None

    @property
    def has_enough(self) -> bool:
        """Whether there are enough items, or clusters of items, for the variance of their mean."""
        return unit_count(len(self.losses), self.clusters) >= FEWEST_ITEMS

    def take(self, mask: Bools) -> LossSample:
        """The losses of some of the items."""
        if self.clusters is None:
            return LossSample(self.losses[mask], None)
        return LossSample(self.losses[mask], self.clusters[mask])


def compare_losses(
    fit_sample: LossSample,
    new_sample: LossSample,
    options: GateOptions,
    n_tests: int,
    column: str | None = None,
    value: str | None = None,
) -> GateRow:
    """The losses of new items beside those of items of the fit, before the verdict.

    Where the new items are too few, this is said instead of a test.
    """
    row = GateRow(
        items=len(new_sample.losses),
        fit_items=len(fit_sample.losses),
        verdict="too few",
        fit_loss=float(fit_sample.losses.mean()),
        loss=float(new_sample.losses.mean()),
        column=column,
        value=value,
    )
    if not new_sample.has_enough:
        return row
    estimate = loss_change(
        fit_sample.losses,
        new_sample.losses,
        fit_sample.clusters,
        new_sample.clusters,
        level=options.level,
        tolerance=options.tolerance,
        tests=n_tests,
    )
    return replace(
        row,
        change=estimate.change,
        low=estimate.low,
        high=estimate.high,
        p=estimate.p,
        detectable=estimate.detectable,
    )


def with_verdicts(rows: Sequence[GateRow], level: float) -> list[GateRow]:
    """The rows with p-values corrected for all of them, and the verdicts of those that have one."""
    tested = [number for number, row in enumerate(rows) if row.p is not None]
    p_values = holm(np.array([rows[number].p for number in tested], dtype=np.float64))
    decided = list(rows)
    for number, p in zip(tested, p_values.tolist(), strict=True):
        verdict: Literal["pass", "fail"] = "pass"
        if p <= (1 - level) / 2:
            verdict = "fail"
        decided[number] = replace(rows[number], p=p, verdict=verdict)
    return decided
