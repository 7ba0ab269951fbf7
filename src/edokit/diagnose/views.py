"""How much of the variance is what groups of annotators see differently in an item."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from edokit._types import Floats, Ints
from edokit.diagnose.answers import Answers, products, squares, totals


@dataclass(frozen=True, eq=False)
class Views:
    """Sums over pairs of answers to the same item, by the groups of the two and by block of items.

    They add up: leaving a block out is a subtraction.
    """

    kinds: list[tuple[int, int]]
    """The two groups of each kind of pair [T]."""
    normal: Floats
    """How much is known of each kind, and of two together [B, T, T]."""
    right: Floats
    """How much pairs of each kind go together [B, T], the item's mean taken out."""
    shares: Floats
    """Share of each group in the annotators [G]."""

    @classmethod
    def of(
        cls,
        answers: Answers,
        numbers: Floats,
        group: Ints,
        count: int,
        block: Ints,
        blocks: int,
        by_answers: bool,
    ) -> Views:
        """From numbers [M, D] (answers without leanings), groups [A] and blocks of items [N].

        Groups weigh as much as they have people, or, with ``by_answers``, answers.
        """
        placed = group[answers.person] >= 0
        item, own = answers.item[placed], group[answers.person][placed]
        kinds = list(combinations_with_replacement(range(count), 2))
        n, pairs, together = _pair_sums(item, own, numbers[placed], answers.items, kinds)
        total = pairs.sum(axis=1)
        met = total > 0
        # An item of n answers knows about n − 1 things, however many pairs it has.
        weight = np.zeros(answers.items)
        weight[met] = 2.0 / n[met].sum(axis=1)
        safe = np.maximum(total, 1.0)
        apart = weight[:, None] * (together - pairs * (together.sum(axis=1) / safe)[:, None])
        right = np.stack([totals(block, column, blocks) for column in apart.T], axis=1)
        normal = np.zeros((blocks, len(kinds), len(kinds)))
        for b in range(blocks):
            here = block == b
            some, weighed = pairs[here], weight[here, None] * pairs[here]
            normal[b] = np.diag(weighed.sum(axis=0)) - (weighed / safe[here, None]).T @ some
        members = np.bincount(own if by_answers else group[group >= 0], minlength=count)
        return cls(kinds, normal, right, members / members.sum())

    def variance(self, left_out: int | None = None) -> float:
        """Of what the groups see in an item beyond what all see; NaN where it can't be known.

        ``left_out`` is the block of items that doesn't count.
        """
        kept = np.arange(len(self.right)) != (-1 if left_out is None else left_out)
        normal, right = self.normal[kept].sum(axis=0), self.right[kept].sum(axis=0)
        # How two groups' views of an item go together, S[g, h], is known up to a constant, which
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
    answers: Answers, group: Ints, count: int
) -> tuple[list[float | None], list[float | None]]:
    """How much pairs within each group, and of it with the others, agree beyond the mean pair of
    the same item; None where there is no such pair."""
    placed = group[answers.person] >= 0
    kinds = list(combinations_with_replacement(range(count), 2))
    # Half the squared length is the variance, so twice the product is the agreement.
    scaled = answers.deviations[placed] * np.sqrt(2.0)
    own = group[answers.person][placed]
    _, pairs, together = _pair_sums(answers.item[placed], own, scaled, answers.items, kinds)
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
    """Answers per item and group [N, G], pairs of each kind and sums of their products [N, T]."""
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
