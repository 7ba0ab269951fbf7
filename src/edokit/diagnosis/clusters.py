"""Groups of annotators who agree with each other more than the items explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from edokit._types import Floats, Ints
from edokit.diagnosis.vectors import Answers, Leanings, Mask, leanings, squares, without_leanings

MOST_GROUPS = 4
"""Groups that are looked for at most."""
FEWEST_CONTESTED = 10
"""Contested items that someone must have answered to be put into a group."""
_DENSE = 1500
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Meetings:
    """Where annotators meet on contested items. Shuffling answers within items changes none of it.

    On each item the excesses of all pairs sum to 0: what counts is who goes with whom, not how
    much they agree in all.
    """

    placed: Ints
    """Those who answered enough contested items to be put into a group [P]."""
    number: Ints
    """The number of each annotator among them [A], -1 for the others."""
    information: Any
    """Variance of each pair's excess if annotators were alike [P, P], the diagonal 0."""
    chance: float
    """Sum of the variances of all pairs, placed or not."""
    smallest: int
    """How many a group must be; its views can be told from noise from two on."""

    @classmethod
    def of(cls, answers: Answers, fewest: int = FEWEST_CONTESTED) -> Meetings:
        """The meetings of all pairs of annotators."""
        there = answers.take(answers.contested)
        placed = np.flatnonzero(there.per_person >= fewest)
        number = np.full(answers.people, -1, dtype=np.int64)
        number[placed] = np.arange(len(placed))
        variance = _product_variance(there, there.deviations)
        among = _Among(there, number, len(placed))
        information = among.table(variance[there.item]) @ among.table().T
        chance = float((there.per_item * (there.per_item - 1)) @ variance)
        smallest = 2 if len(placed) >= 4 else 1
        return cls(placed, number, _off_diagonal(information), chance, smallest)

    def excess(self, answers: Answers, deviations: Floats) -> Any:
        """How much each pair goes together beyond its items [P, P], the diagonal 0.

        Scaled so that chance makes it as large as ``information`` says.
        """
        n = answers.per_item.astype(np.float64)
        pairs = n * (n - 1)
        scatter = answers.sums_by_item(squares(deviations))
        # With two answers to an item there is one pair, and nothing to compare it with.
        mean = np.where(n >= 3, scatter / np.maximum(pairs, 1.0), 0.0)
        several = (n >= 3)[answers.item]
        among = _Among(answers, self.number, len(self.placed))
        total = among.table(mean[answers.item]) @ among.table().T
        for column in deviations.T:
            one = among.table(column * several)
            total = total + one @ one.T
        # Without leanings deviations are smaller, and so is what chance makes of them.
        chance = float(pairs @ _product_variance(answers, deviations))
        return _off_diagonal(total * (np.sqrt(self.chance / chance) if chance > 0 else 0.0))

    def everyone(self, group: Ints) -> Ints:
        """Groups of those placed [P] as groups of all annotators [A], -1 for the others."""
        return np.append(group, -1)[self.number]


@dataclass(frozen=True, eq=False)
class Found:
    """Groups of annotators, and how clearly they stand apart."""

    group: Ints
    """The group of each annotator [A], -1 for those who are in none."""
    count: int
    """How many groups there are; 0 where none could be looked for."""
    score: float
    """How much more pairs go together within groups than across, in standard errors."""


def contrast(meetings: Meetings, excess: Any, group: Ints, count: int) -> Found:
    """How clearly given groups [A] stand apart."""
    member = _membership(group[meetings.placed], count)
    score = _score(member.T @ (excess @ member), member.T @ (meetings.information @ member))
    return Found(group, count, score)


def find_groups(meetings: Meetings, excess: Any) -> Found:
    """Groups that are split off one after the other, while that makes them stand apart more."""
    people = len(meetings.placed)
    group, best = np.zeros(people, dtype=np.int64), Found(np.zeros(people, np.int64), 0, 0.0)
    degree = np.asarray(meetings.information.sum(axis=1)).ravel()
    # Those who met few others weigh less: their excess is mostly noise.
    scale = 1.0 / np.sqrt(degree + degree.mean() + 1e-300) if people >= 3 else degree
    for count in range(2, MOST_GROUPS + 1 if people >= 3 else 2):
        tried = [
            _settle(meetings, excess, start, count)
            for start in _splits(excess, scale, group, count)
        ]
        better = [found for found in tried if found.score > best.score]
        if not better:
            break
        best = max(better, key=lambda found: found.score)
        group = best.group
    return Found(meetings.everyone(best.group), best.count, best.score)


def _splits(excess: Any, scale: Floats, group: Ints, count: int) -> list[Ints]:
    """Each group in turn split in two along its strongest contrast."""
    splits = []
    for old in range(count - 1):
        inside = group == old
        if inside.sum() < 2:
            continue
        side = _strongest(excess, np.where(inside, scale, 0.0)) > 0
        new = group.copy()
        new[inside & side] = count - 1
        splits.append(new)
    return splits


def _strongest(excess: Any, scale: Floats) -> Floats:
    """The first eigenvector [A] of the scaled excess."""
    size = len(scale)
    if size <= 64:
        table = excess if isinstance(excess, np.ndarray) else excess.toarray()
        vector: Floats = np.linalg.eigh(scale[:, None] * table * scale)[1][:, -1]
        return vector

    def times(v: Floats) -> Floats:
        product: Floats = scale * (excess @ (scale * v.ravel()))
        return product

    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    # A fixed start that is not all ones, to which every excess is nearly blind.
    start: Floats = scale * np.cos(np.arange(size, dtype=np.float64) ** 2)
    try:
        vectors: Floats = eigsh(operator, k=1, which="LA", v0=start, tol=1e-3)[1]
    except ArpackError:
        # There is no strongest contrast; any start is as good, and people move from there.
        return start
    return vectors[:, 0]


def _settle(meetings: Meetings, excess: Any, group: Ints, count: int) -> Found:
    """Everybody moves to the group that they go with most, until nobody wants to move."""
    options = []
    for _ in range(_ROUNDS):
        member = _membership(group, count)
        pull = excess @ member
        options.append((group, member, member.T @ pull))
        moved = pull.argmax(axis=1)
        if np.array_equal(moved, group):
            break
        group = moved
    # All moving at once may go in circles; where it started or where it ended, the better counts.
    best = Found(group, count, -np.inf)
    for chosen, member, within in (options[0], options[-1]):
        if member.sum(axis=0).min() >= meetings.smallest:
            score = _score(within, member.T @ (meetings.information @ member))
            if score > best.score:
                best = Found(chosen, count, score)
    return best


def _score(excess: Floats, information: Floats) -> float:
    """From the sums over pairs of groups [G, G]."""
    # Pairs are counted both ways.
    within, across = (part / 2 for part in (np.trace(excess), excess.sum() - np.trace(excess)))
    near, far = np.trace(information) / 2, (information.sum() - np.trace(information)) / 2
    if near <= 0 or far <= 0:
        return -np.inf
    return float((within / near - across / far) / np.sqrt(1 / near + 1 / far))


def _membership(group: Ints, count: int) -> Floats:
    """A column per group [A, G], 1 for its annotators."""
    member: Floats = np.eye(count + 1)[group][:, :count]
    return member


def _product_variance(answers: Answers, deviations: Floats) -> Floats:
    """Variance of the product of two deviations over the pairs of each item [N]."""
    n = answers.per_item.astype(np.float64)
    pairs = np.maximum(n * (n - 1), 1.0)
    sums = 0.0 - answers.sums_by_item(squares(deviations) ** 2)
    width = deviations.shape[1]
    for c in range(width):
        for d in range(width):
            sums = sums + answers.sums_by_item(deviations[:, c] * deviations[:, d]) ** 2
    mean = answers.sums_by_item(squares(deviations)) / pairs
    variance: Floats = np.where(n >= 3, np.maximum(sums / pairs - mean**2, 0.0), 0.0)
    return variance


@dataclass(frozen=True, eq=False)
class _Among:
    """Answers of some of the annotators."""

    answers: Answers
    number: Ints
    people: int

    def table(self, numbers: Floats | None = None) -> Any:
        """Numbers [M], or ones, as a sparse table [P, N]."""
        row = self.number[self.answers.person]
        kept = np.flatnonzero(row >= 0)
        entries = np.ones(len(kept)) if numbers is None else numbers[kept]
        shape = (self.people, self.answers.items)
        return sparse.csr_matrix((entries, (row[kept], self.answers.item[kept])), shape)


def _off_diagonal(table: Any) -> Any:
    """The table with zeros on its diagonal; as an array where it is small."""
    if table.shape[0] <= _DENSE:
        dense: Floats = table.toarray()
        np.fill_diagonal(dense, 0.0)
        return dense
    table.setdiag(0.0)
    return table.tocsr()


@dataclass(frozen=True, eq=False)
class Design:
    """Who answered what, and the declared groups: what stays when answers are shuffled."""

    leanings: Leanings
    meetings: Meetings
    declared: Ints | None
    """The declared group of each annotator [A], -1 for none; None where groups are looked for."""
    count: int
    """How many declared groups there are."""
    within: float
    """Mean variance of the answers to an item."""

    @classmethod
    def of(
        cls,
        answers: Answers,
        declared: Ints | None = None,
        count: int = 0,
        fewest: int = FEWEST_CONTESTED,
    ) -> Design:
        """The design of these answers."""
        several = answers.per_item >= 2
        spread = answers.scatter[several] / (answers.per_item[several] - 1)
        return cls(
            Leanings.of(answers),
            Meetings.of(answers, fewest),
            declared,
            count,
            float(spread.mean()) if several.any() else float("nan"),
        )


@dataclass(frozen=True, eq=False)
class Look:
    """What one look at the answers finds."""

    leaning: float
    """Variance of the annotators' leanings."""
    groups: Found
    """Who goes with whom, leanings taken out."""


def look(answers: Answers, design: Design) -> Look:
    """Leanings and groups of these answers."""
    leaning = design.leanings.variance(answers)
    own = leanings(answers, leaning, design.within)
    excess = design.meetings.excess(answers, without_leanings(answers, own))
    if design.declared is None:
        return Look(leaning, find_groups(design.meetings, excess))
    return Look(leaning, contrast(design.meetings, excess, design.declared, design.count))


SPLITS = 5


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of annotators, and the items on which they are judged."""

    group: Ints
    """The group of each annotator [A], -1 for none."""
    count: int
    items: Mask
    """Where they are judged [N]."""
    by_answers: bool
    """Whether people count by their answers: those with few can't be put into a group well."""


def cross_fitted(answers: Answers, seed: int, splits: int = SPLITS) -> list[Grouping]:
    """Groups from one half of the items with the other half to judge them on, both ways."""
    rng = np.random.default_rng([seed, 1])
    groupings = []
    for _ in range(splits):
        first = np.zeros(answers.items, dtype=bool)
        first[rng.permutation(answers.items)[: answers.items // 2]] = True
        for here in (first, ~first):
            half = answers.take(here)
            design = Design.of(half, fewest=FEWEST_CONTESTED // 2)
            found = look(half, design).groups
            groupings.append(Grouping(found.group, found.count, ~here, True))
    return groupings


def stability(groupings: list[Grouping]) -> float:
    """How far the groups of two halves are the same: 1 all, 0 as by chance (adjusted Rand)."""
    from sklearn.metrics import adjusted_rand_score

    values = []
    for one, other in zip(groupings[::2], groupings[1::2], strict=True):
        both = (one.group >= 0) & (other.group >= 0)
        if one.count and other.count and both.sum() >= 2:
            values.append(float(adjusted_rand_score(one.group[both], other.group[both])))
        else:
            values.append(0.0)
    return float(np.mean(values)) if values else 0.0
