"""Shares of the labels' variance: items, annotators, groups by items, rest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from edokit._types import Floats, Ints
from edokit.diagnosis.clusters import Design, Grouping
from edokit.diagnosis.vectors import (
    BiasDesign,
    LabelVectors,
    estimate_bias,
    products,
    squares,
    totals,
)

BLOCKS = 20
_T = 2.093
"""Width of a 95 % interval from 20 blocks, in standard errors."""


@dataclass(frozen=True)
class Part:
    """A share of the total variance, with a 95 % interval over items."""

    share: float
    low: float
    high: float
    hidden: float
    """How much more it could be if the rest were views of single annotators: with few annotators
    these can't be told from noise, and count as noise."""


@dataclass(frozen=True)
class Shares:
    """Parts of the variance of the label of a random item by a random annotator.

    They sum to 1; NaN is unknown, and counts as 0.
    """

    total: float
    item: Part
    """Differences between items."""
    annotator: Part
    """Differences between annotators, whatever the item."""
    group_item: Part
    """Groups of annotators see items differently."""
    rest: Part
    """Noise, and views of single annotators."""

    @property
    def disagreement(self) -> float:
        """Share of the variance within items."""
        return 1.0 - self.item.share

    @property
    def structured(self) -> float:
        """Least share of the disagreement that is systematic; 0 without disagreement."""
        systematic = sum(
            np.nan_to_num(max(p.share, 0.0)) for p in (self.annotator, self.group_item)
        )
        return float(systematic / self.disagreement) if self.disagreement > 1e-12 else 0.0


def decompose(
    vectors: LabelVectors, design: Design, groupings: list[Grouping], random_state: int = 0
) -> Shares | None:
    """The shares, with groups as declared (one grouping) or found on other items (several).

    None where no item has two labels, or all labels are the same.
    """
    blocks = min(BLOCKS, vectors.items)
    block = np.random.default_rng([random_state, 2]).permutation(vectors.items) % blocks
    within = _mean_within(vectors, block, blocks)
    total = _total(vectors, block, blocks)
    if not total[-1] > 1e-12 or np.isnan(within[-1]):
        return None
    bias_variance = np.array(
        [
            *(_bias_variance(vectors.take(block != b)) for b in range(blocks)),
            design.bias.variance(vectors),
        ]
    )
    own = estimate_bias(vectors, float(bias_variance[-1]), design.within)
    numbers = vectors.values - own[vectors.annotator]
    usable = [grouping for grouping in groupings if grouping.count >= 2]
    views = [_views(vectors, numbers, grouping, block, blocks) for grouping in usable]
    # Halves without any group to be found have groups that explain nothing.
    group_item = np.full(blocks + 1, np.nan)
    if views:
        group_item = np.sum(views, axis=0) / len(groupings)
    annotators = int((vectors.per_annotator > 0).sum())
    annotator = bias_variance * (annotators - 1) / annotators
    systematic = np.nan_to_num(annotator) + np.nan_to_num(group_item)
    # Two different annotators out of few lie further apart than two drawn with replacement.
    disagreement = within - systematic / max(annotators - 1, 1)
    parts = {
        "item": total - disagreement,
        "annotator": annotator,
        "group_item": group_item,
        "rest": disagreement - systematic,
    }
    # With very few items, leaving some out may leave nothing that varies.
    total = np.where(total > 1e-12, total, np.nan)
    shares = {name: values / total for name, values in parts.items()}
    rest = max(float(shares["rest"][-1]), 0.0)
    item, views_ = _hidden(usable, annotators)
    hidden = {"item": item * rest, "group_item": views_ * rest}
    return Shares(
        float(total[-1]),
        **{name: _part(values, hidden.get(name, 0.0)) for name, values in shares.items()},
    )


def _part(values: Floats, hidden: float) -> Part:
    """The estimate stands last, after those with one block of items left out."""
    blocks = len(values) - 1
    scatter = float(np.sum((values[:-1] - values[:-1].mean()) ** 2))
    width = _T * np.sqrt(scatter * (blocks - 1) / blocks)
    share = float(values[-1])
    # What can't be estimated with some items left out may be anything.
    width = width if np.isfinite(width) or np.isnan(share) else np.inf
    return Part(share, float(share - width), float(share + width), hidden)


def _leave_out(sums: Floats, counts: Floats) -> Floats:
    """Means with each block left out, then of all: [B + 1]."""
    left = np.append(sums.sum() - sums, sums.sum())
    number = np.append(counts.sum() - counts, counts.sum())
    means: Floats = np.divide(left, number, out=np.full(len(left), np.nan), where=number > 0)
    return means


def _mean_within(vectors: LabelVectors, block: Ints, blocks: int) -> Floats:
    """Mean variance of the labels to an item, by block left out."""
    several = vectors.per_item >= 2
    spread = vectors.scatter[several] / (vectors.per_item[several] - 1)
    sums = totals(block[several], spread, blocks)
    return _leave_out(sums, np.bincount(block[several], minlength=blocks).astype(np.float64))


def _total(vectors: LabelVectors, block: Ints, blocks: int) -> Floats:
    """Variance of an label to a random item, by block left out."""
    counts = np.bincount(block, minlength=blocks).astype(np.float64)
    squared = vectors.means_by_item(vectors.values**2).sum(axis=1)
    total = _leave_out(totals(block, squared, blocks), counts)
    for column in vectors.item_means.T:
        total = total - _leave_out(totals(block, column, blocks), counts) ** 2
    return total


def _bias_variance(vectors: LabelVectors) -> float:
    return BiasDesign.of(vectors).variance(vectors)


def _views(
    vectors: LabelVectors, numbers: Floats, grouping: Grouping, block: Ints, blocks: int
) -> Floats:
    """Variance of the groups' views, by block left out, then of all: [B + 1]."""
    here = grouping.items
    judged = vectors.take(here)
    views = Views.of(
        judged,
        numbers[here[vectors.item]],
        grouping.group,
        grouping.count,
        block[here],
        blocks,
        grouping.by_labels,
    )
    return np.array([*(views.variance(b) for b in range(blocks)), views.variance()])


def _hidden(groupings: list[Grouping], annotators: int) -> tuple[float, float]:
    """How much of the rest could belong to items and to groups by items instead."""
    if not groupings:
        return 1.0 / max(annotators - 1, 1), 0.0
    item, views = [], []
    for grouping in groupings:
        size = np.bincount(grouping.group[grouping.group >= 0], minlength=grouping.count)
        share = size / size.sum()
        others = np.maximum(size - 1, 1)
        item.append(float(np.sum(share**2 / others)))
        views.append(float(np.sum(share * (1 - share) / others)))
    return float(np.mean(item)), float(np.mean(views))


@dataclass(frozen=True, eq=False)
class Views:
    """Sums over pairs of labels to the same item, by the groups of the two and by block of items.

    They add up: leaving a block out is a subtraction.
    """

    kinds: list[tuple[int, int]]
    """The two groups of each kind of pair [T]."""
    normal: Floats
    """How much is known of each kind, and of two together [B, T, T]."""
    right: Floats
    """How much pairs of each kind agree [B, T], the item's mean taken out."""
    shares: Floats
    """Share of each group in the annotators [G]."""

    @classmethod
    def of(
        cls,
        vectors: LabelVectors,
        numbers: Floats,
        group: Ints,
        count: int,
        block: Ints,
        blocks: int,
        by_labels: bool,
    ) -> Views:
        """From numbers [M, D] (labels without biases), groups [A] and blocks of items [N].

        Groups weigh as much as they have annotators, or, with ``by_labels``, labels.
        """
        placed = group[vectors.annotator] >= 0
        item, own = vectors.item[placed], group[vectors.annotator][placed]
        kinds = list(combinations_with_replacement(range(count), 2))
        n, pairs, together = _pair_sums(item, own, numbers[placed], vectors.items, kinds)
        total = pairs.sum(axis=1)
        met = total > 0
        # An item of n labels knows about n − 1 things, however many pairs it has.
        weight = np.zeros(vectors.items)
        weight[met] = 2.0 / n[met].sum(axis=1)
        safe = np.maximum(total, 1.0)
        apart = weight[:, None] * (together - pairs * (together.sum(axis=1) / safe)[:, None])
        right = np.stack([totals(block, column, blocks) for column in apart.T], axis=1)
        normal = np.zeros((blocks, len(kinds), len(kinds)))
        for b in range(blocks):
            here = block == b
            some, weighed = pairs[here], weight[here, None] * pairs[here]
            normal[b] = np.diag(weighed.sum(axis=0)) - (weighed / safe[here, None]).T @ some
        members = np.bincount(own if by_labels else group[group >= 0], minlength=count)
        return cls(kinds, normal, right, members / members.sum())

    def variance(self, left_out: int | None = None) -> float:
        """Of what the groups see in an item beyond what all see; NaN where it can't be known.

        ``left_out`` is the block of items that doesn't count.
        """
        kept = np.arange(len(self.right)) != (-1 if left_out is None else left_out)
        normal, right = self.normal[kept].sum(axis=0), self.right[kept].sum(axis=0)
        # How two groups' views of an item agree, S[g, h], is known up to a constant, which
        # cancels in Σ_g π_g S[g, g] − Σ_gh π_g π_h S[g, h].
        wanted = np.array(
            [
                -((1 + (g != h)) * self.shares[g] * self.shares[h]) + (g == h) * self.shares[g]
                for g, h in self.kinds
            ]
        )
        solved = np.linalg.lstsq(normal, np.stack([right, wanted], axis=1), rcond=1e-10)[0]
        if not np.allclose(normal @ solved[:, 1], wanted, atol=1e-6):
            return float("nan")
        return float(wanted @ solved[:, 0])


def pair_agreement(
    vectors: LabelVectors, group: Ints, count: int
) -> tuple[list[float | None], list[float | None]]:
    """How much pairs within each group, and of it with the others, agree beyond the mean pair of
    the same item; None where there is no such pair."""
    placed = group[vectors.annotator] >= 0
    kinds = list(combinations_with_replacement(range(count), 2))
    # Half the squared length is the variance, so twice the product is the agreement.
    scaled = vectors.deviations[placed] * np.sqrt(2.0)
    own = group[vectors.annotator][placed]
    _, pairs, together = _pair_sums(vectors.item[placed], own, scaled, vectors.items, kinds)
    total = np.maximum(pairs.sum(axis=1), 1.0)
    beyond = (together - pairs * (together.sum(axis=1) / total)[:, None]).sum(axis=0)
    number = pairs.sum(axis=0)

    def mean(chosen: list[int]) -> float | None:
        met = float(number[chosen].sum())
        return float(beyond[chosen].sum()) / met if met > 0 else None

    within = [mean([k for k, kind in enumerate(kinds) if kind == (g, g)]) for g in range(count)]
    between = [
        mean([k for k, (a, b) in enumerate(kinds) if a != b and g in (a, b)]) for g in range(count)
    ]
    return within, between


def _pair_sums(
    item: Ints, own: Ints, numbers: Floats, items: int, kinds: list[tuple[int, int]]
) -> tuple[Floats, Floats, Floats]:
    """Labels per item and group [N, G], pairs of each kind and sums of their products [N, T]."""
    count = kinds[-1][1] + 1
    cell = item * count + own

    def table(numbers: Floats) -> Floats:
        return totals(cell, numbers, items * count).reshape(items, count)

    n = table(np.ones(len(cell)))
    sums = np.stack([table(column) for column in numbers.T], axis=2)
    alone = table(squares(numbers))
    pairs, together = np.empty((2, items, len(kinds)))
    for k, (g, h) in enumerate(kinds):
        product = products(sums[:, g], sums[:, h])
        pairs[:, k] = n[:, g] * (n[:, g] - 1) / 2 if g == h else n[:, g] * n[:, h]
        together[:, k] = (product - alone[:, g]) / 2 if g == h else product
    return n, pairs, together
