"""Statistics of a jury: its effective number of judges, what each member adds, its agreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.metrics import Interval
from edokit.metrics.mean_intervals import UnitDeviations, difference_ends, ratio_ends
from edokit.metrics.resampling import Resampling, resampled_means

# The largest error of the mean, as a multiple of the spread, that intervals of the number of judges
# consider: 1.001 judges.
LARGEST_ERROR = 1000.0
# Squared distances that differ by rounding alone are ties.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class JuryErrors:
    """Second moments of the members' errors on items with two annotators or more.

    The error of a member on an item is its answer less the soft label, as vectors.

    Attributes
    ----------
    spread : Floats
        Mean squared distance of the members from their mean, by item [N].
    mean_error : Floats
        Squared error of the members' mean, without the noise of the soft label, by item [N].
    noisy_mean_error : float
        The mean of the same over items, with that noise.
    products : Floats
        Mean product of the errors of each two members [K, K].
    """

    spread: Floats
    mean_error: Floats
    noisy_mean_error: float
    products: Floats

    @classmethod
    def from_predictions(cls, P: Floats, labels: HumanLabels) -> JuryErrors:
        """The moments of members with these probabilities [N, K, C]."""
        several = labels.has_several
        soft_labels = labels.vectors(labels.soft_labels[several])
        errors = labels.vectors(P[several]) - soft_labels[:, None]
        mean = errors.mean(axis=1)
        squared_mean = np.square(mean).sum(axis=1)
        # A soft label of n annotators has 1/n of the variance between annotators.
        noise = (labels.variance / labels.counts)[several]
        return cls(
            spread=np.square(errors - mean[:, None]).sum(axis=2).mean(axis=1),
            mean_error=squared_mean - noise,
            noisy_mean_error=float(squared_mean.mean()),
            products=np.einsum("nkd,nld->kl", errors, errors) / len(errors),
        )

    @property
    def members(self) -> int:
        """Number of members, K."""
        return len(self.products)

    def correlations(self, judges: float | None) -> Floats:
        """Correlation of the errors of each two members [K, K]; NaN where a member has none.

        The error of the members' mean, without the noise of the soft labels, is that of members
        who count as this many ``judges``; for None, it is the estimated one.
        """
        if judges is None or judges - 1 < ROUNDING:
            mean_error = self.mean_error.mean()
        else:
            mean_error = self.spread.mean() / (judges - 1)
        covariance = self.products - self.noisy_mean_error + mean_error
        variances = np.diag(covariance)
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
            return np.asarray(np.clip(covariance / np.outer(deviations, deviations), -1, 1))


def effective_judges(errors: JuryErrors, resampling: Resampling) -> Interval:
    """How many judges with independent errors K members count as, with an interval.

    If errors correlate by ρ, that is K / (1 + (K − 1) ρ), the effective sample size of equally
    correlated measurements (Kish 1965); it equals 1 + spread / error of the mean. It is at most K:
    errors are taken not to correlate negatively. In some resamples of the items, the noise of the
    labels hides the error of the mean; the estimate is the median over the others. The interval is
    that of the ratio of the two means.
    """
    if errors.spread.max() < ROUNDING:
        # All members are copies of one.
        judges = None
        if errors.mean_error.mean() > 0:
            judges = 1.0
        return Interval(judges, judges, judges)
    rng = np.random.default_rng(resampling.random_state)
    columns = [errors.spread, errors.mean_error]
    spread, mean_error = resampled_means(columns, resampling.samples, rng, resampling.clusters)
    smallest_error = spread / (errors.members - 1)
    visible_error = np.maximum(mean_error, smallest_error)
    # A resample of items on which all members answer alike has one judge.
    ratios = np.divide(spread, visible_error, out=np.zeros_like(spread), where=visible_error > 0)
    counts = 1 + ratios
    low, high = _judges_interval(errors, resampling)
    is_visible = mean_error > smallest_error
    estimate = high
    if is_visible.any():
        estimate = float(np.median(counts[is_visible]))
    return Interval(float(np.clip(estimate, low, high)), low, high)


def _judges_interval(errors: JuryErrors, resampling: Resampling) -> tuple[float, float]:
    """The interval of the number of judges, which is between 1 and K."""
    mean_error = UnitDeviations.from_values(errors.mean_error, resampling.clusters)
    spread = UnitDeviations.from_values(errors.spread, resampling.clusters)
    low_ratio, high_ratio = ratio_ends(
        mean_error,
        spread,
        resampling.level,
        lowest=1 / (errors.members - 1),
        largest=LARGEST_ERROR,
    )
    return 1 + 1 / high_ratio, 1 + 1 / low_ratio


def mean_correlation(correlations: Floats) -> float | None:
    """The mean correlation of the errors of two members; None where none is defined."""
    of_pairs = correlations[np.triu_indices(len(correlations), k=1)]
    if np.isnan(of_pairs).all():
        return None
    return float(np.nanmean(of_pairs))


def equal_correlation(judges: float, members: int) -> float:
    """The correlation ρ of all errors with which K members count as this many judges."""
    return (members / judges - 1) / (members - 1)


def most_judges(judges: float, members: int) -> float | None:
    """The number of judges that infinitely many members would count as, 1/ρ; None if unbounded.

    ρ is the correlation of errors with which K members count as this many judges.
    """
    correlation = equal_correlation(judges, members)
    if correlation <= 0:
        return None
    return 1 / correlation


@dataclass(frozen=True)
class DroppedMember:
    """What the uniform mean loses without a member, with an interval over items.

    Attributes
    ----------
    loss : float
        Of the member alone.
    pool_loss : float
        Of the uniform mean of all members.
    difference, low, high : float
        How much higher the loss of the uniform mean is without the member.
    """

    loss: float
    pool_loss: float
    difference: float
    low: float
    high: float


def dropped_members(
    P: Floats, uniform: Floats, labels: HumanLabels, level: float, clusters: Ints | None
) -> list[DroppedMember]:
    """What each member adds to the uniform mean [N, C] of all members [N, K, C].

    The interval is that of a mean over items, or over groups of items by ``clusters`` [N].
    """
    members = P.shape[1]
    pool_losses = labels.losses(uniform)
    with_all = UnitDeviations.from_values(pool_losses, clusters)
    dropped = []
    for k in range(members):
        without = (members * uniform - P[:, k]) / (members - 1)
        losses = labels.losses(without)
        difference = float((losses - pool_losses).mean())
        without_member = UnitDeviations.from_values(losses, clusters)
        low, high = difference_ends(without_member, with_all, level)
        dropped.append(
            DroppedMember(
                loss=float(labels.losses(P[:, k]).mean()),
                pool_loss=float(losses.mean()) - difference,
                difference=difference,
                low=low,
                high=high,
            )
        )
    return dropped


@dataclass(frozen=True, eq=False)
class Agreements:
    """Agreement with a random annotator of each item [N], from 0 to 1.

    Attributes
    ----------
    jury : Floats
        Of the jury's single answer.
    person : Floats
        Of another annotator; NaN where there is none.
    best : Floats
        Of the best single answer.
    """

    jury: Floats
    person: Floats
    best: Floats


def agreements(p: Floats, labels: HumanLabels) -> Agreements:
    """Agreement of a jury with these probabilities [N, C], beside that of people."""
    return Agreements(
        jury=1 - labels.disagreement(p),
        # The mean squared distance of two annotators is twice the variance.
        person=1 - 2 * labels.variance,
        best=1 - labels.disagreement(labels.soft_labels),
    )
