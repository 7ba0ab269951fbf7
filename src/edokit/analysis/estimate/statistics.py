"""The statistics of shares: prediction-powered inference from many answers and few labels.

Of n labelled items among N, with labels q and answers f, the share is estimated by the regression
of labels on answers, at the mean answer of all items: q̄ + λ (f̄_N − f̄_n). λ is tuned for power as
in prediction-powered inference (Angelopoulos et al., 2023: PPI++). Answers that say nothing about
the labels have λ near 0 and do no harm: where the labels alone give a narrower interval, that
interval is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edokit._types import Floats, Ints
from edokit.metrics.sample_mean import MeanEstimate, cluster_totals, sample_mean
from edokit.metrics.score_interval import score_interval

FEWEST_LABELS = 5
"""With fewer labelled items an interval says nothing."""
_NOT_BY_CHANCE = 1e-4
"""Probability of a gap by chance below which labelled texts do not look like a random sample."""
_SMALLEST_GAP = 0.02
"""A smaller gap is not worth a note."""


@dataclass(frozen=True)
class ShareEstimate:
    """A share with the ends of its interval."""

    share: float
    low: float
    high: float
    label_width: float
    """The width of the interval of the labels alone."""

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low

    def scaled(self, offset: float, factor: float) -> ShareEstimate:
        """The estimate ``offset + factor * share``, such as a point of an ordinal scale."""
        return ShareEstimate(
            offset + factor * self.share,
            offset + factor * self.low,
            offset + factor * self.high,
            factor * self.label_width,
        )


def estimate_share(
    labels: Floats,
    answers: Floats,
    target: float,
    clusters: Ints | None,
    level: float,
) -> ShareEstimate:
    """The mean label of all items, from the labels of some and the answers to all.

    Parameters
    ----------
    labels, answers : ndarray of shape (n,)
        Of the labelled items; both between 0 and 1.
    target : float
        The mean answer of all items.
    clusters : ndarray of int of shape (n,) or None
        Items with the same number belong together.
    level : float
        Level of the interval.
    """
    labels_mean = sample_mean(labels, clusters)
    low, high = _interval(labels_mean, level)
    regressed = regression_estimate(labels, answers, target, clusters)
    if regressed is not None and regressed.variance <= labels_mean.variance:
        powered_low, powered_high = _interval(regressed, level)
        if powered_high - powered_low <= high - low:
            return ShareEstimate(regressed.mean, powered_low, powered_high, high - low)
    return ShareEstimate(labels_mean.mean, low, high, high - low)


def transported_share(
    labels: Floats, answers: Floats, targets: Floats, clusters: Ints | None, level: float
) -> ShareEstimate:
    """The mean label of N items without labels, from their answers, ``targets`` [N].

    People are assumed to judge them as they judged labelled items with the same answer. The labels
    that the N items would get vary around what is expected of them, which adds to the variance.
    """
    labels_mean = sample_mean(labels, clusters)
    regressed = regression_estimate(labels, answers, float(targets.mean()), clusters)
    if regressed is None:
        regressed = labels_mean
    item_variance = float(np.var(labels)) / len(targets)
    estimate = MeanEstimate(regressed.mean, regressed.variance + item_variance, regressed.size)
    low, high = _interval(estimate, level)
    return ShareEstimate(estimate.mean, low, high, high - low)


def shares_of_one(estimates: Sequence[ShareEstimate]) -> Floats:
    """The shares [C] of classes that exclude each other, which were estimated one by one.

    They sum to 1, and each lies in its interval; where the intervals leave no room for that, the
    sum is as near to 1 as they allow. What is missing, or too much, is divided between the classes
    by the squared widths of their intervals: a share moves the more, the less certain it is.
    """
    shares = np.array([estimate.share for estimate in estimates])
    low = np.array([estimate.low for estimate in estimates])
    high = np.array([estimate.high for estimate in estimates])
    if not low.sum() <= 1.0 <= high.sum():
        return low if low.sum() > 1.0 else high
    widths = (high - low) ** 2
    if abs(shares.sum() - 1.0) > 1e-6:  # more than the rounding errors of kept answers
        # The sum grows with the step. At these two, every share is at an end of its interval.
        farthest = 1.0 / max(widths.min(), 1e-12)
        steps = (-farthest, farthest)
        for _ in range(200):
            middle = (steps[0] + steps[1]) / 2
            if np.clip(shares + middle * widths, low, high).sum() < 1.0:
                steps = (middle, steps[1])
            else:
                steps = (steps[0], middle)
        shares = np.clip(shares + steps[1] * widths, low, high)
    return np.asarray(shares / shares.sum())


def regression_estimate(
    labels: Floats, answers: Floats, target: float, clusters: Ints | None
) -> MeanEstimate | None:
    """The regression of labels on answers at the mean answer ``target``.

    None where all answers are equal, and for fewer than three items. The variance is that of a
    jackknife: every residual is divided by one minus the leverage of its item.
    """
    size = len(labels)
    mean_answer = float(answers.mean())
    centred = answers - mean_answer
    spread = float(np.sum(centred**2))
    if size < 3 or spread < 1e-12:
        return None
    slope = float(np.sum(centred * labels)) / spread
    mean_label = float(labels.mean())
    mean = mean_label + slope * (target - mean_answer)
    residuals = labels - mean_label - slope * centred
    leverage = 1.0 / size + centred**2 / spread
    weights = 1.0 / size + centred * (target - mean_answer) / spread
    jackknife_residuals = residuals / np.maximum(1.0 - leverage, 1e-9)
    totals = cluster_totals(weights * jackknife_residuals, clusters)
    mean = min(max(mean, 0.0), 1.0)
    return MeanEstimate(mean, float(np.sum(totals**2)), max(len(totals) - 1, 2))


@dataclass(frozen=True)
class MeanGap:
    """Two means of a column that differ by more than a random sample would show."""

    column: int
    sample: float
    population: float


def largest_gap(sample: Floats, clusters: Ints | None, population: Floats) -> MeanGap | None:
    """The column in which a sample [n, C] is least like a random one of a population [N, C].

    None where every mean is about as near as that of a random sample would be. Gaps are tested with
    Student's t, since the standard errors of small samples are uncertain.
    """
    from scipy.special import stdtrit

    largest: MeanGap | None = None
    largest_deviation = 0.0
    for column in range(sample.shape[1]):
        estimate = sample_mean(sample[:, column], clusters)
        mean = float(population[:, column].mean())
        distance = abs(estimate.mean - mean)
        deviation = distance / max(estimate.variance, 1e-18) ** 0.5
        critical = float(stdtrit(max(estimate.size - 1, 1), 1 - _NOT_BY_CHANCE / 2))
        if distance <= _SMALLEST_GAP or deviation <= critical:
            continue
        if deviation > largest_deviation:
            largest_deviation = deviation
            largest = MeanGap(column, estimate.mean, mean)
    return largest


def _interval(estimate: MeanEstimate, level: float) -> tuple[float, float]:
    low, high = score_interval(estimate.mean, estimate.variance, estimate.size, level=level)
    return float(low), float(high)
