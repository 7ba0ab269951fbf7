"""How the answers of levels of an attribute differ, compared within items: arrays in, numbers out.

People label different items, so a plain mean of a level mixes what its people think with what they
were shown. Labels are therefore compared within items, by the model

    y_ia = μ_i + β x_a + u_a + ε_ia

with an effect μ_i of each item (fixed: nothing is assumed about who was shown what), a habit u_a of
each person (random, so that somebody with few labels counts less than somebody with many, and
nobody counts more than one person) and x_a = 1 for people of the level, 0 for the others. With C
the Laplacian of who labelled with whom (C_aa = Σ_i (1 − 1/n_i), C_ab = −Σ_i 1/n_i over their
items), r = C b the sums of each person's deviations from the item means, and λ = Var ε / Var u, the
generalised least squares estimate needs people alone: β = x'z / x'Qx with z = (C + λ)⁻¹ r and
Q = (C + λ)⁻¹ C. The working model sets weights only; variances come from how much people of a level
differ from one another (a jackknife over people), without assuming that levels are equally diverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import t as student_t

from edokit._progress import Progress, no_progress
from edokit._types import Bools, Floats, Ints
from edokit.analysis.diagnose.vectors import BiasDesign, LabelVectors, totals
from edokit.analysis.sequential import MonteCarloTests, run_tests

CONFIDENCE = 0.95
_MOST_WEIGHTED = 3000
"""With more people, labels are not weighted by generalised least squares: that takes a table of all
pairs of people."""
_MOST_NUMBERS = 2_000_000
"""Numbers that permutations hold in memory at a time."""
_LARGEST_RATIO = 1e4
"""λ where people do not differ beyond chance."""


@dataclass(frozen=True, eq=False)
class PersonScores:
    """How each person answers beside the others on the same items, and how much that tells.

    Attributes
    ----------
    labels : LabelVectors
        The labels [M, D] of these people, of items that two or more of them labelled.
    scores : ndarray of shape (A, D)
        z: how much higher each person answers than the others on the same items, weighted.
    information : ndarray or sparse matrix of shape (A, A)
        Q: the covariance of the scores under the working model, up to a factor.
    weight : ndarray of shape (A,)
        Diagonal of Q: how much each person's score tells.
    whitener : ndarray of shape (A, A) or None
        (C + λ)⁻¹; None where labels are not weighted.
    """

    labels: LabelVectors
    scores: Floats
    information: Any
    weight: Floats
    whitener: Floats | None

    @classmethod
    def from_labels(cls, vectors: LabelVectors) -> PersonScores:
        """Return the scores of people who labelled items together."""
        labels = vectors.take(vectors.per_item >= 2)
        share = 1.0 / labels.per_item[labels.item]
        shape = (labels.annotators, labels.items)
        cells = (labels.annotator, labels.item)
        labelled = sparse.csr_matrix((np.ones(len(share)), cells), shape)
        shared = sparse.csr_matrix((share, cells), shape)
        laplacian = sparse.diags(labels.per_annotator.astype(np.float64)) - shared @ labelled.T
        sums = labels.sums_by_annotator(labels.deviations)
        if labels.annotators > _MOST_WEIGHTED:
            return cls(labels, sums, laplacian.tocsr(), laplacian.diagonal(), None)
        ratio = _variance_ratio(labels)
        system = laplacian.toarray() + ratio * np.eye(labels.annotators)
        whitener: Floats = np.linalg.inv(system).astype(np.float64)
        information = np.eye(labels.annotators) - ratio * whitener
        return cls(labels, whitener @ sums, information, np.diag(information).copy(), whitener)


def _variance_ratio(labels: LabelVectors) -> float:
    """λ: variance of a person's labels of an item over the variance between persons."""
    within = float(labels.scatter.sum() / max((labels.per_item - 1).sum(), 1))
    between = BiasDesign.from_vectors(labels).variance(labels)
    if not between > 0 or within <= 0:
        return _LARGEST_RATIO
    return float(np.clip((within - between) / between, 1e-2, _LARGEST_RATIO))


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Estimates of one or many contrasts x [A, B]: people of a level against the others.

    Attributes
    ----------
    difference : ndarray of shape (B, D)
        β; NaN where no item was labelled by both sides.
    variance : ndarray of shape (B, D)
        Its variance over people, by the jackknife.
    freedom : ndarray of shape (B, D)
        Degrees of freedom of the variance (Welch and Satterthwaite).
    """

    difference: Floats
    variance: Floats
    freedom: Floats

    @property
    def statistic(self) -> Floats:
        """Largest |β| over its standard error, over the D columns [B]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(self.difference) / np.sqrt(self.variance)
        # Where people of a side don't differ at all, any difference is clear.
        ratio = np.where((self.variance <= 0) & (self.difference != 0), np.inf, ratio)
        largest: Floats = np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max(axis=1)
        return largest


def estimate(people: PersonScores, members: Floats) -> Contrasts:
    """Compare the members of a level (1 in a column of ``members`` [A, B]) with the others (0).

    Each side has at least two people who labelled items together with somebody.
    """
    weight = people.weight[:, None]
    covered = np.asarray(people.information @ members)
    information = (members * covered).sum(axis=0)
    mass = (weight * members).sum(axis=0)
    other_mass = weight.sum() - mass
    centre = mass / weight.sum()
    centred = members - centre
    naive = (weight * centred**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_estimable = information > 1e-9 * naive
        difference = np.where(is_estimable, (members.T @ people.scores).T / information, np.nan)
        # Share of each person in the mean of their side. The jackknife: without this person, the
        # mean moves by their residual over what is left of the side.
        leverage = weight * np.where(members > 0, 1.0 / mass, 1.0 / other_mass)
        correction = (centred / np.maximum(1.0 - leverage, 1e-9)) ** 2
        # The scores of two people who labelled together are correlated.
        overlap = information / naive
        # Effective numbers of people, less 1.
        freedom_inside = 1.0 / (members * leverage**2).sum(axis=0) - 1.0
        freedom_outside = 1.0 / ((1.0 - members) * leverage**2).sum(axis=0) - 1.0
    variance = np.empty((members.shape[1], people.scores.shape[1]))
    freedom = np.empty_like(variance)
    for column in range(people.scores.shape[1]):
        residual = people.scores[:, column, None] - covered * difference[column]
        parts = correction * residual**2
        inside = (members * parts).sum(axis=0)
        outside = parts.sum(axis=0) - inside
        total = inside + outside
        variance[:, column] = total * overlap / information**2
        with np.errstate(divide="ignore", invalid="ignore"):
            welch = total**2 / (inside**2 / freedom_inside + outside**2 / freedom_outside)
        freedom[:, column] = np.nan_to_num(welch, nan=1.0)
    # A few people may look alike by chance; many others must not raise the degrees of freedom then.
    bound = 2.0 * np.minimum(freedom_inside, freedom_outside)
    freedom = np.maximum(np.minimum(freedom, bound[:, None]), 1.0)
    return Contrasts(difference.T, variance, freedom)


def interval(
    people: PersonScores, member: Bools, item_groups: Ints | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return the difference of a level to the others [D], and the ends of its interval [D].

    The variance is that over people, and what drawing other items adds (two-way clustering: the
    variance over items less that over labels of one person for one item, where it is positive).
    Items with the same number in ``item_groups`` [N] are drawn together, and count as one here.
    """
    contrast = estimate(people, member.astype(np.float64)[:, None])
    difference = contrast.difference[0]
    variance = contrast.variance[0] + _item_variance(people, member, difference, item_groups)
    half = student_t.ppf((1 + CONFIDENCE) / 2, contrast.freedom[0]) * np.sqrt(variance)
    return difference, difference - half, difference + half


def _item_variance(
    people: PersonScores, member: Bools, difference: Floats, item_groups: Ints | None
) -> Floats:
    """Variance that drawing other items adds [D], as the difference may vary between items."""
    labels = people.labels

    def centred_in_items(numbers: Floats) -> Floats:
        means = totals(labels.item, numbers, labels.items) / labels.per_item
        return np.asarray(numbers - means[labels.item])

    x = member.astype(np.float64)
    weights = x
    if people.whitener is not None:
        weights = people.whitener @ x
    information = float(x @ (people.information @ x))
    in_level = centred_in_items(x[labels.annotator])
    residual = labels.deviations - in_level[:, None] * difference
    contribution = centred_in_items(weights[labels.annotator])[:, None] * residual
    # A residual is smaller than its error, whose item mean was taken off.
    count = labels.per_item[labels.item][:, None]
    if item_groups is None:
        by_unit = totals(labels.item, contribution, labels.items)
        by_cell = (contribution**2 * count / (count - 1)).sum(axis=0)
    else:
        # Units are groups of items; in each, somebody may have several labels.
        unit = np.unique(item_groups, return_inverse=True)[1][labels.item]
        by_unit = totals(unit, contribution, int(unit.max()) + 1)
        keys = unit * labels.annotators + labels.annotator
        cell = np.unique(keys, return_inverse=True)[1]
        errors = contribution * np.sqrt(count / (count - 1))
        by_cell = (totals(cell, errors, int(cell.max()) + 1) ** 2).sum(axis=0)
    added: Floats = np.maximum((by_unit**2).sum(axis=0) - by_cell, 0.0) / information**2
    return added


@dataclass(frozen=True, eq=False)
class LevelTests:
    """Which levels of an attribute are tested, and the people that they are tested on."""

    people: PersonScores
    codes: Ints
    levels: tuple[int, ...]

    def members(self, codes: Ints, level: int) -> Floats:
        """1 for people with a level, 0 for the others; codes are [A] or [A, B]."""
        members: Floats = (codes == level).astype(np.float64)
        return members


def permutation_tests(
    attributes: list[LevelTests],
    random_state: int,
    most: int,
    progress: Progress = no_progress,
) -> MonteCarloTests:
    """Test every level of every attribute by permuting levels between people.

    All labels of a person move together and stay with their items. The statistic is the largest
    difference in standard errors, so that levels may differ in how many labels their people gave
    and in how much these differ from one another. In the correction, every attribute has the same
    share of the 5 %, which its tests divide: one with many levels costs the others nothing.
    """
    # The number of the attribute, and the level, of each test.
    tests = [(number, level) for number, group in enumerate(attributes) for level in group.levels]
    observed = np.empty(len(tests))
    for test, (number, level) in enumerate(tests):
        group = attributes[number]
        members = group.members(group.codes, level)[:, None]
        observed[test] = estimate(group.people, members).statistic[0]
    generators = [np.random.default_rng([random_state, 5, n]) for n in range(len(attributes))]

    def count_exceeding(is_open: Bools, permutations: int) -> Ints:
        counts = np.zeros(len(tests), dtype=np.int64)
        for number, group in enumerate(attributes):
            of_attribute = [t for t in np.flatnonzero(is_open) if tests[t][0] == number]
            if not of_attribute:
                continue
            size = max(1, _MOST_NUMBERS // max(len(group.codes), 1))
            for start in range(0, permutations, size):
                block = min(size, permutations - start)
                shuffled = np.tile(group.codes[:, None], (1, block))
                shuffled = generators[number].permuted(shuffled, axis=0)
                for test in of_attribute:
                    members = group.members(shuffled, tests[test][1])
                    reached = estimate(group.people, members).statistic
                    counts[test] += int((reached >= observed[test] * (1 - 1e-9)).sum())
        return counts

    weights = [1.0 / len(attributes[number].levels) for number, _ in tests]
    return run_tests(np.array(weights), count_exceeding, most, progress)


@dataclass(frozen=True, eq=False)
class ItemDifferences:
    """How a level and the others answered each item.

    Attributes
    ----------
    inside, outside : ndarray of shape (N, D)
        Mean answers of the level and of the others; NaN where there is none.
    count, other_count : ndarray of shape (N,)
        Numbers of labels that these are means of.
    shrunken : ndarray of shape (N, D)
        Differences, shrunk towards that of all items: the more, the fewer labels there are.
    spread : float
        Standard deviation of the differences between items, beyond chance.
    """

    inside: Floats
    outside: Floats
    count: Ints
    other_count: Ints
    shrunken: Floats
    spread: float


def item_differences(labels: LabelVectors, member: Bools, difference: Floats) -> ItemDifferences:
    """Compare a level with the others item by item; ``difference`` [D] is that over all items."""
    is_member = member[labels.annotator]
    count = np.bincount(labels.item[is_member], minlength=labels.items)
    other_count = labels.per_item - count
    sums = totals(labels.item[is_member], labels.values[is_member], labels.items)
    other_sums = labels.sums_by_item(labels.values) - sums
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = sums / count[:, None]
        outside = other_sums / other_count[:, None]
    has_two_sides = (count > 0) & (other_count > 0)
    gap = np.where(has_two_sides[:, None], inside - outside, difference)
    # Variance of a label within its side of the item.
    own_mean = np.where(is_member[:, None], inside[labels.item], outside[labels.item])
    scatter = ((labels.values - own_mean) ** 2).sum()
    freedom = len(labels.item) - (count > 0).sum() - (other_count > 0).sum()
    noise = scatter / max(freedom, 1)
    chance = noise * (1.0 / np.maximum(count, 1) + 1.0 / np.maximum(other_count, 1))
    excess = ((gap - difference) ** 2).sum(axis=1)[has_two_sides] - chance[has_two_sides]
    precision = 1.0 / np.maximum(chance[has_two_sides], 1e-12) ** 2
    between = 0.0
    if has_two_sides.any() and noise > 0:
        between = max(float(precision @ excess / precision.sum()), 0.0)
    trust = between / (between + np.maximum(chance, 1e-12))
    shrunken = difference + trust[:, None] * (gap - difference)
    shrunken[~has_two_sides] = np.nan
    return ItemDifferences(inside, outside, count, other_count, shrunken, float(np.sqrt(between)))
