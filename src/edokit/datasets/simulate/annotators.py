"""Simulated annotators: how each of them sees a post, how steadily, and who annotates what."""

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


def standardize(values: Floats, reference: Floats) -> Floats:
    """Values on a scale on which the reference posts have mean 0 and spread 1."""
    return np.asarray((values - reference.mean(axis=0)) / reference.std(axis=0))


def standard_sides(features: Features, reference: Features) -> Floats:
    """One column per VIEW_NAMES, then a column of ones for thresholds: [N, V + 1]."""
    sides = standardize(features.sides(), reference.sides())
    return np.hstack([sides, np.ones((len(features), 1))])


@dataclass(frozen=True)
class Population:
    """A annotators: group [A], own weight of each side [A, V + 1], noise [A], activity [A].

    Attributes
    ----------
    views : tuple[Floats, ...]
        One of severity, or one of each label.
    reference : Features
        Posts that define what is severe: "spread 1" must not depend on those that are drawn.
    labels : Mapping[str, Mapping[str, float]]
        The labels to choose from; none where annotators rate severity.
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
        """How bad each annotator finds each post, or how clear each label, before noise: [N, A]."""
        sides = standard_sides(features, self.reference)
        bases = [standardize(features.severity(), self.reference.severity())]
        if self.labels:
            correlation = np.corrcoef(self.reference.sides(), rowvar=False)
            weights = [
                np.array([label.get(side, 0.0) for side in VIEW_NAMES])
                for label in self.labels.values()
            ]
            bases = [sides[:, :-1] @ (w / math.sqrt(w @ correlation @ w)) for w in weights]
        pairs = zip(bases, self.views, strict=True)
        return tuple(base[:, None] + sides @ views.T for base, views in pairs)


def exceed_probability(scores: Floats, noise: Floats, threshold: float) -> Floats:
    """Probability that a noisy annotator puts a post above the threshold: shape of scores."""
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
    """Probability of each class or, for multi-label data, of each label: shape of scores, then C.

    Thresholds [C - 1] of classes increase; multi-label data have one threshold per label.
    """
    label_scores = scores if sets else scores * len(thresholds)
    pairs = zip(label_scores, thresholds.tolist(), strict=True)
    tails = [exceed_probability(score, noise, at) for score, at in pairs]
    if not sets:
        edges = [np.ones_like(scores[0]), *tails, np.zeros_like(scores[0])]
        tails = [low - high for low, high in pairwise(edges)]
    return np.stack(tails, axis=-1)


def draw_population(rng: np.random.Generator, regime: Regime) -> Population:
    """The annotators of a regime; each part of what sets them apart has the size it asks for."""
    count = regime.annotators
    reference = draw_features(np.random.default_rng(0), _REFERENCE_POSTS, regime.hostile_share)
    sides = standard_sides(reference, reference)
    group = _groups(rng, regime)
    z = ndtri(np.clip(rng.random((count, len(VIEW_NAMES) + 2)), 1e-12, None))
    # An annotator's noise level is itself a lasting trait, so it fades with the rest of them.
    factor = np.exp(regime.noise_spread * math.sqrt(regime.structured) * z[:, -1])
    noise = regime.disagreement * math.sqrt(1.0 - regime.structured)
    # The activities are spread alike for every seed; who is active is drawn.
    ranks = ndtri((rng.random(count).argsort() + 0.5) / count)
    # Each further label is seen with views of its own.
    other_views = [
        ndtri(np.clip(rng.random((count, len(VIEW_NAMES) + 1)), 1e-12, None))
        for _ in list(regime.labels)[1:]
    ]
    return Population(
        group=group,
        views=tuple(_views(views, group, sides, regime) for views in (z[:, :-1], *other_views)),
        noise=noise * factor / math.sqrt(float(np.mean(factor**2))),
        activity=np.exp(regime.activity_spread * ranks),
        reference=reference,
        labels=regime.labels,
    )


def _views(z: Floats, group: Ints, sides: Floats, regime: Regime) -> Floats:
    """Each annotator's own weight of each side [A, V + 1], from standard normal draws."""
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
    # A part that cannot vary (one group, or groups of one) leaves its weight to the others.
    parts = [(weight, part) for weight, part in parts if part.any()]
    total = sum(weight for weight, _ in parts)
    lasting = regime.disagreement * math.sqrt(regime.structured)
    views = np.zeros((len(group), sides.shape[1]))
    for weight, part in parts if lasting > 0 else []:
        views += lasting * math.sqrt(weight / total) * part
    return views


def _groups(rng: np.random.Generator, regime: Regime) -> Ints:
    """Group of each annotator [A]: shares are met as closely as whole annotators allow."""
    shares = np.array([group.share for group in regime.groups])
    # Each group has at least one annotator; the others are divided by share.
    sizes = whole_numbers(shares, regime.annotators - len(shares)) + 1
    group = np.repeat(np.arange(len(shares)), sizes)
    return group[rng.random(regime.annotators).argsort()]


def _within_groups(values: Floats, group: Ints) -> Floats:
    """Values less their group's mean, so that what is personal is not shared."""
    sizes = np.bincount(group)
    means = np.stack([np.bincount(group, weights=column) / sizes for column in values.T], axis=1)
    centred: Floats = values - means[group]
    # A single annotator is their own group's mean, up to rounding.
    centred[sizes[group] == 1] = 0.0
    return centred


def _unit(views: Floats, sides: Floats) -> Floats:
    """The same views, scaled to a mean square of 1 over the posts and annotators."""
    # mean_i (x_i·u)² = u'Mu with M the second moments of the sides: no [N, A] table needed.
    moments = sides.T @ sides / len(sides)
    size = float(np.mean(np.einsum("av,vw,aw->a", views, moments, views)))
    return views / math.sqrt(size) if size > 1e-24 else np.zeros_like(views)


def choose_annotators(
    rng: np.random.Generator, n: int, per_item: Mapping[int, float], activity: Floats
) -> Ints:
    """Annotators of each item, the active ones more often: [N, most per item], -1 fills up."""
    sizes = np.array(sorted(per_item))
    shares = np.array([per_item[int(size)] for size in sizes])
    limits = np.cumsum(shares / shares.sum())[:-1]
    u = np.clip(rng.random((n, len(activity) + 1)), 1e-300, None)
    count = sizes[np.sum(u[:, :1] >= limits, axis=1)]
    # The largest keys (log activity plus Gumbel noise) are a draw without replacement.
    keys = np.log(activity) - np.log(-np.log(u[:, 1:]))
    top = np.argsort(-keys, axis=1)[:, : sizes[-1]]
    # Sorting by name hides who came first; empty cells go to the end.
    top[np.arange(sizes[-1]) >= count[:, None]] = len(activity)
    top.sort(axis=1)
    return np.where(top == len(activity), -1, top)


def assign_idle(rng: np.random.Generator, chosen: Ints, annotators: int) -> None:
    """Give annotators without an item one of a busier annotator, in place."""
    work = np.bincount(chosen[chosen >= 0], minlength=annotators)
    rows = iter(rng.random(len(chosen)).argsort().tolist())
    for idle in np.flatnonzero(work == 0).tolist():
        for row in rows:
            busiest = int(np.argmax(np.where(chosen[row] >= 0, work[chosen[row]], -1)))
            if work[chosen[row, busiest]] > 1:
                work[chosen[row, busiest]] -= 1
                work[idle] = 1
                chosen[row, busiest] = idle
                chosen[row, chosen[row] >= 0] = np.sort(chosen[row][chosen[row] >= 0])
                break


def solve_thresholds(
    scores: Floats, noise: Floats, chosen: Ints, balance: tuple[float, ...]
) -> Floats:
    """Rising thresholds [C - 1] at which the items' median labels are expected in balance.

    scores [N, A] and noise [A] are those of the annotators; chosen says who annotates.
    """
    is_asked = chosen >= 0
    score = np.take_along_axis(scores, np.where(is_asked, chosen, 0), axis=1)
    spread = noise[chosen]
    reach = float(np.max(np.abs(score))) + 50.0 * float(noise.max()) + 1.0

    def surplus(threshold: float, wanted: float) -> float:
        chance = np.where(is_asked, exceed_probability(score, spread, threshold), 0.0)
        return _majority(chance, is_asked) - wanted

    above = 1.0 - np.cumsum(balance)[:-1]
    # Bracketing, because without noise the share is a step function of slope zero.
    return np.array([brentq(surplus, -reach, reach, args=(share,)) for share in above])


def _majority(chance: Floats, asked: Bools) -> float:
    """Expected share of items with more yes than no; a tie counts half."""
    n, largest = chance.shape
    # votes[i, v]: probability of v yes among the labels so far (Poisson-binomial).
    votes = np.zeros((n, largest + 1))
    votes[:, 0] = 1.0
    for k in range(largest):
        yes = chance[:, k, None]
        votes[:, 1:] = votes[:, 1:] * (1.0 - yes) + votes[:, :-1] * yes
        votes[:, 0] *= 1.0 - chance[:, k]
    twice = 2 * np.arange(largest + 1)
    total = asked.sum(axis=1)[:, None]
    wins = (twice > total) + 0.5 * (twice == total)
    return float(np.mean(np.sum(votes * wins, axis=1)))
