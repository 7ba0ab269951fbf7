"""Simulated annotators: how they see posts, how noisy their labels are, and who labels what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from edokit._types import Bools, Floats, Ints
from edokit.datasets.simulate.posts import VIEW_NAMES, Features, draw_features
from edokit.datasets.simulate.regimes import Regime
from edokit.datasets.split import whole_numbers

_REFERENCE_POSTS = 8192
"""Number of posts that define the scale of severity."""


def standardize(values: Floats, reference: Floats) -> Floats:
    """Values on a scale on which the reference has mean 0 and standard deviation 1."""
    return np.asarray((values - reference.mean(axis=0)) / reference.std(axis=0))


def standard_sides(features: Features, reference: Features) -> Floats:
    """The standardised sides of posts, and a last column of ones for thresholds [N, V + 1]."""
    sides = standardize(features.sides(), reference.sides())
    return np.hstack([sides, np.ones((len(features), 1))])


@dataclass(frozen=True)
class Population:
    """A simulated annotators.

    Attributes
    ----------
    group : Ints
        The group of each annotator [A].
    views : tuple[Floats, ...]
        Each annotator's own weights of the sides of a post [A, V + 1]: one array for severity, or
        one for each label.
    noise : Floats
        The standard deviation of each annotator's noise [A].
    activity : Floats
        How likely each annotator is to label an item, relative to the others [A].
    reference : Features
        The posts that define the scale of severity, so that it does not depend on the posts drawn.
    labels : Mapping[str, Mapping[str, float]]
        The weights of the sides of a post for each label; empty if annotators rate severity.
    """

    group: Ints
    views: tuple[Floats, ...]
    noise: Floats
    activity: Floats
    reference: Features
    labels: Mapping[str, Mapping[str, float]]

    def __len__(self) -> int:
        return len(self.group)

    def scores(self, features: Features) -> tuple[Floats, ...]:
        """How severe each annotator finds each post, or how clear each label [N, A]; no noise."""
        sides = standard_sides(features, self.reference)
        common_scores = []
        if self.labels:
            correlation = np.corrcoef(self.reference.sides(), rowvar=False)
            for weight_by_side in self.labels.values():
                weights = np.array([weight_by_side.get(side, 0.0) for side in VIEW_NAMES])
                standard_deviation = math.sqrt(weights @ correlation @ weights)
                common_scores.append(sides[:, :-1] @ (weights / standard_deviation))
        else:
            common_scores.append(standardize(features.severity(), self.reference.severity()))
        scores = []
        for common, views in zip(common_scores, self.views, strict=True):
            scores.append(common[:, None] + sides @ views.T)
        return tuple(scores)


def exceed_probability(scores: Floats, noise: Floats, threshold: float) -> Floats:
    """The probability that a noisy annotator puts a post above the threshold (shape of scores)."""
    gap = scores - threshold
    # Either all annotators are noisy or none is; without noise this is a step.
    if not np.any(noise):
        return (gap > 0).astype(np.float64)
    # A logistic with standard deviation 1 has the scale √3/π.
    chance: Floats = expit(gap * (math.pi / math.sqrt(3.0)) / noise)
    return chance


def answer_probabilities(
    scores: tuple[Floats, ...], noise: Floats, thresholds: Floats, sets: bool
) -> Floats:
    """The probability of each class (shape of scores, C); for multi-label data, of each label.

    The thresholds [C - 1] of classes ascend; multi-label data have one threshold per label.
    """
    if sets:
        pairs = zip(scores, thresholds.tolist(), strict=True)
        return np.stack(
            [exceed_probability(label_scores, noise, at) for label_scores, at in pairs], axis=-1
        )
    severity = scores[0]
    exceeds = [exceed_probability(severity, noise, at) for at in thresholds.tolist()]
    edges = [np.ones_like(severity), *exceeds, np.zeros_like(severity)]
    return np.stack([low - high for low, high in pairwise(edges)], axis=-1)


def draw_population(rng: np.random.Generator, regime: Regime) -> Population:
    """Draw the annotators of a regime, whose views and noise are as large as it says."""
    count = regime.annotators
    reference = draw_features(np.random.default_rng(0), _REFERENCE_POSTS, regime.hostile_share)
    sides = standard_sides(reference, reference)
    group = _groups(rng, regime)
    # Standard normal draws: for the views of each side, the strictness, and last the noise level.
    z = ndtri(np.clip(rng.random((count, len(VIEW_NAMES) + 2)), 1e-12, None))
    # The noise level of an annotator is a lasting trait, so it scales with the lasting part.
    factor = np.exp(regime.noise_spread * math.sqrt(regime.structured) * z[:, -1])
    noise = regime.disagreement * math.sqrt(1.0 - regime.structured)
    # The activities are the same for every seed; only who has which is drawn.
    ranks = ndtri((rng.random(count).argsort() + 0.5) / count)
    # Annotators have separate views of every label; those of the first label are in z.
    view_draws = [z[:, :-1]]
    for _ in list(regime.labels)[1:]:
        draws = np.clip(rng.random((count, len(VIEW_NAMES) + 1)), 1e-12, None)
        view_draws.append(ndtri(draws))
    return Population(
        group=group,
        views=tuple(_views(draws, group, sides, regime) for draws in view_draws),
        noise=noise * factor / math.sqrt(float(np.mean(factor**2))),
        activity=np.exp(regime.activity_spread * ranks),
        reference=reference,
        labels=regime.labels,
    )


def _views(z: Floats, group: Ints, sides: Floats, regime: Regime) -> Floats:
    """Each annotator's own weights of the sides [A, V + 1], from standard normal draws ``z``."""
    columns = (*VIEW_NAMES, "always")
    by_group = [[group.views.get(side, 0.0) for side in columns] for group in regime.groups]
    shared = np.array(by_group)[group]
    shared -= shared.mean(axis=0)
    deviations = _within_groups(z, group)
    is_threshold = np.arange(len(columns)) == len(VIEW_NAMES)
    parts = [
        (regime.group_weight, _unit(shared, sides)),
        (regime.personal_weight, _unit(np.where(is_threshold, 0.0, deviations), sides)),
        (regime.threshold_weight, _unit(np.where(is_threshold, deviations, 0.0), sides)),
    ]
    # The weight of a part that can't vary (one group, or groups of one) goes to the others.
    parts = [(weight, part) for weight, part in parts if part.any()]
    total = sum(weight for weight, _ in parts)
    lasting = regime.disagreement * math.sqrt(regime.structured)
    views = np.zeros((len(group), sides.shape[1]))
    if lasting > 0:
        for weight, part in parts:
            views += lasting * math.sqrt(weight / total) * part
    return views


def _groups(rng: np.random.Generator, regime: Regime) -> Ints:
    """The group of each annotator [A], in numbers as close to the shares as possible."""
    shares = np.array([group.share for group in regime.groups])
    # Each group has at least one annotator; the others are divided in proportion to the shares.
    sizes = whole_numbers(shares, regime.annotators - len(shares)) + 1
    group = np.repeat(np.arange(len(shares)), sizes)
    return group[rng.random(regime.annotators).argsort()]


def _within_groups(values: Floats, group: Ints) -> Floats:
    """The deviations of values from the mean of their group."""
    sizes = np.bincount(group)
    means = np.stack([np.bincount(group, weights=column) / sizes for column in values.T], axis=1)
    centred: Floats = values - means[group]
    # The deviation of the only annotator of a group is 0, up to rounding.
    centred[sizes[group] == 1] = 0.0
    return centred


def _unit(views: Floats, sides: Floats) -> Floats:
    """The views, scaled so that the mean square of their scores over posts and annotators is 1."""
    # mean_i (x_i·u)² = uᵀMu with the second moments M of the sides, without a table [N, A].
    moments = sides.T @ sides / len(sides)
    mean_square = float(np.mean(np.einsum("av,vw,aw->a", views, moments, views)))
    if mean_square <= 1e-24:
        return np.zeros_like(views)
    return views / math.sqrt(mean_square)


def choose_annotators(
    rng: np.random.Generator, n: int, per_item: Mapping[int, float], activity: Floats
) -> Ints:
    """Draw the annotators of each item, active ones more often [N, most per item].

    ``per_item`` has the share of items for each number of annotators. Items with fewer annotators
    than others are filled up with -1.
    """
    sizes = np.array(sorted(per_item))
    shares = np.array([per_item[int(size)] for size in sizes])
    limits = np.cumsum(shares / shares.sum())[:-1]
    u = np.clip(rng.random((n, len(activity) + 1)), 1e-300, None)
    count = sizes[np.sum(u[:, :1] >= limits, axis=1)]
    # The largest keys (log activity plus Gumbel noise) are a weighted draw without replacement.
    keys = np.log(activity) - np.log(-np.log(u[:, 1:]))
    top = np.argsort(-keys, axis=1)[:, : sizes[-1]]
    # Annotators are sorted, since the order of the draw means nothing; empty cells come last.
    top[np.arange(sizes[-1]) >= count[:, None]] = len(activity)
    top.sort(axis=1)
    return np.where(top == len(activity), -1, top)


def assign_idle(rng: np.random.Generator, chosen: Ints, annotators: int) -> None:
    """Give each annotator without an item one item of a busier annotator.

    ``chosen`` [N, most per item] has the annotators of each item, and is changed in place.
    """
    n_items = np.bincount(chosen[chosen >= 0], minlength=annotators)
    # Each row is used once, in random order.
    rows = iter(rng.random(len(chosen)).argsort().tolist())
    for idle in np.flatnonzero(n_items == 0).tolist():
        for row in rows:
            is_asked = chosen[row] >= 0
            place = int(np.argmax(np.where(is_asked, n_items[chosen[row]], -1)))
            busiest = chosen[row, place]
            if n_items[busiest] > 1:
                n_items[busiest] -= 1
                n_items[idle] = 1
                chosen[row, place] = idle
                chosen[row, is_asked] = np.sort(chosen[row, is_asked])
                break


def solve_thresholds(
    scores: Floats, noise: Floats, chosen: Ints, balance: tuple[float, ...]
) -> Floats:
    """The ascending thresholds [C - 1] that give the expected balance of median labels.

    Parameters
    ----------
    scores : ndarray of shape (N, A)
        The scores of items by all annotators.
    noise : ndarray of shape (A,)
        The noise of the annotators.
    chosen : ndarray of int of shape (N, most per item)
        The annotators of each item, filled up with -1.
    balance : tuple of float of length C
        The share of items in each class.
    """
    is_asked = chosen >= 0
    asked_scores = np.take_along_axis(scores, np.where(is_asked, chosen, 0), axis=1)
    asked_noise = noise[chosen]
    # All labels are below or above a threshold so far away.
    bound = float(np.max(np.abs(asked_scores))) + 50.0 * float(noise.max()) + 1.0

    def surplus(threshold: float, wanted: float) -> float:
        p = exceed_probability(asked_scores, asked_noise, threshold)
        return _expected_majority(np.where(is_asked, p, 0.0), is_asked) - wanted

    shares_above = 1.0 - np.cumsum(balance)[:-1]
    # A method that brackets the root, since without noise the share is a step function.
    return np.array([brentq(surplus, -bound, bound, args=(share,)) for share in shares_above])


def _expected_majority(p_yes: Floats, is_asked: Bools) -> float:
    """The expected share of items with more yes than no; a tie counts half.

    ``p_yes`` [N, most per item] is the probability that each annotator says yes.
    """
    n_items, most_per_item = p_yes.shape
    # p_votes[i, v]: probability of v yes among the annotators so far (Poisson binomial).
    p_votes = np.zeros((n_items, most_per_item + 1))
    p_votes[:, 0] = 1.0
    for k in range(most_per_item):
        p = p_yes[:, k, None]
        p_votes[:, 1:] = p_votes[:, 1:] * (1.0 - p) + p_votes[:, :-1] * p
        p_votes[:, 0] *= 1.0 - p_yes[:, k]
    twice_votes = 2 * np.arange(most_per_item + 1)
    n_asked = is_asked.sum(axis=1)[:, None]
    wins = (twice_votes > n_asked) + 0.5 * (twice_votes == n_asked)
    return float(np.mean(np.sum(p_votes * wins, axis=1)))
