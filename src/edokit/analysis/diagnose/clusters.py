"""Groups of annotators who agree with each other more than the items explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from edokit._types import Bools, Floats, Ints
from edokit.analysis.diagnose.vectors import BiasDesign, LabelVectors, estimate_bias, squares

# Largest number of groups.
MOST_GROUPS = 4
# Contested items that an annotator must have labelled to be assigned to a group.
FEWEST_CONTESTED = 10
# Up to this many annotators, tables of pairs of annotators are dense arrays.
_DENSE = 1000
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Design:
    """What stays when labels are permuted: who labelled what, and the declared groups.

    On each contested item the excesses of all pairs of annotators sum to 0: what counts is who
    agrees with whom, not the overall agreement.

    Attributes
    ----------
    bias : BiasDesign
    within : float
        Mean variance of the labels of an item.
    placed : Ints
        Annotators with enough contested items to be assigned to a group [P].
    number : Ints
        The number of each annotator among them [A], -1 for the others.
    information : Any
        Variance of each pair's excess if annotators were interchangeable [P, P], diagonal 0.
    chance : float
        Sum of the variances of all pairs, placed or not.
    declared : Ints or None
        The declared group of each annotator [A], -1 for none; None where groups are looked for.
    count : int
        Number of declared groups.
    """

    bias: BiasDesign
    within: float
    placed: Ints
    number: Ints
    information: Any
    chance: float
    declared: Ints | None
    count: int

    @classmethod
    def from_vectors(
        cls,
        vectors: LabelVectors,
        declared: Ints | None = None,
        count: int = 0,
        fewest: int = FEWEST_CONTESTED,
    ) -> Design:
        """The design of these labels."""
        several = vectors.per_item >= 2
        spread = vectors.scatter[several] / (vectors.per_item[several] - 1)
        within = float(spread.mean()) if several.any() else float("nan")
        # Permuting changes something from three annotators on: two agree or disagree in any order.
        contested = vectors.take((vectors.scatter > 1e-12) & (vectors.per_item >= 3))
        placed = np.flatnonzero(contested.per_annotator >= fewest)
        number = np.full(vectors.annotators, -1, dtype=np.int64)
        number[placed] = np.arange(len(placed))
        variance = _product_variance(contested, contested.deviations)
        among = (contested, number, len(placed))
        information = _off_diagonal(_table(*among, variance[contested.item]) @ _table(*among).T)
        chance = float((contested.per_item * (contested.per_item - 1)) @ variance)
        pairs = (placed, number, information, chance)
        return cls(BiasDesign.from_vectors(vectors), within, *pairs, declared, count)

    @property
    def smallest(self) -> int:
        """Smallest size of a group; from two on its views can be distinguished from noise."""
        return 2 if len(self.placed) >= 4 else 1

    def excess(self, vectors: LabelVectors, deviations: Floats) -> Any:
        """Agreement of each pair beyond what its items explain [P, P], diagonal 0.

        Scaled so that its variance under chance is ``information``.
        """
        n = vectors.per_item.astype(np.float64)
        pairs = n * (n - 1)
        scatter = vectors.sums_by_item(squares(deviations))
        # An item with two labels has one pair, and nothing to compare it with.
        mean = np.where(n >= 3, scatter / np.maximum(pairs, 1.0), 0.0)
        # Without biases deviations are smaller, and so is their variance under chance.
        chance = float(pairs @ _product_variance(vectors, deviations))
        scale = np.sqrt(self.chance / chance) if chance > 0 else 0.0
        among = (vectors, self.number, len(self.placed))
        several = (vectors.per_item >= 3)[vectors.item]
        total = _table(*among, mean[vectors.item]) @ _table(*among).T
        for column in deviations.T:
            table = _table(*among, column * several)
            total = total + table @ table.T
        return _off_diagonal(total * scale)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of annotators, and how clearly they are separated.

    Attributes
    ----------
    group : Ints
        The group of each annotator [A], -1 for those who are in none.
    count : int
        Number of groups; 0 where none could be looked for.
    score : float
        How much more pairs agree within groups than across, in standard errors.
    items : Bools or None
        The items on which groups found on the others are evaluated [N]; None: all of them.
    """

    group: Ints
    count: int
    score: float = float("nan")
    items: Bools | None = None


def contrast(design: Design, excess: Any, group: Ints, count: int) -> Clusters:
    """How clearly given groups [A] are separated."""
    member = _membership(group[design.placed], count)
    score = _score(member.T @ (excess @ member), member.T @ (design.information @ member))
    return Clusters(group, count, score)


def find_groups(design: Design, excess: Any) -> Clusters:
    """Split off one group after the other, as long as that separates them better."""
    annotators = len(design.placed)
    best = Clusters(np.zeros(annotators, dtype=np.int64), 0, 0.0)
    degree = np.asarray(design.information.sum(axis=1)).ravel()
    # Annotators with few shared items weigh less: their excess is mostly noise.
    scale = 1.0 / np.sqrt(degree + degree.mean() + 1e-300) if annotators >= 3 else degree
    for count in range(2, MOST_GROUPS + 1 if annotators >= 3 else 2):
        tried = [best]
        # Each group in turn is split in two along its strongest contrast.
        for old in range(count - 1):
            inside = best.group == old
            if inside.sum() >= 2:
                side = _strongest(excess, np.where(inside, scale, 0.0)) > 0
                start = np.where(inside & side, count - 1, best.group)
                tried.append(_settle(design, excess, start, count))
        clearest = max(tried, key=lambda clusters: clusters.score)
        if clearest is best:
            break
        best = clearest
    # Those who are not placed are in no group.
    return Clusters(np.append(best.group, -1)[design.number], best.count, best.score)


def _strongest(excess: Any, scale: Floats) -> Floats:
    """The first eigenvector [A] of the scaled excess."""
    if len(scale) <= 64:
        vectors: Floats = np.linalg.eigh(scale[:, None] * excess * scale)[1]
        return vectors[:, -1]
    scaled = LinearOperator(
        excess.shape, matvec=lambda v: scale * (excess @ (scale * v.ravel())), dtype=np.float64
    )
    # A fixed start that is not all ones, to which every excess is nearly blind.
    start: Floats = scale * np.cos(np.arange(len(scale), dtype=np.float64) ** 2)
    try:
        vectors = eigsh(scaled, k=1, which="LA", v0=start, tol=1e-3)[1]
    except ArpackError:
        # No contrast is the strongest; any start will do.
        return start
    return vectors[:, 0]


def _settle(design: Design, excess: Any, group: Ints, count: int) -> Clusters:
    """Move annotators to the group that they agree with most, until nothing changes."""
    options = []
    for _ in range(_ROUNDS):
        member = _membership(group, count)
        pull = excess @ member
        options.append((group, member, member.T @ pull))
        moved = pull.argmax(axis=1)
        if np.array_equal(moved, group):
            break
        group = moved
    # Moving all at once may cycle; the better of the first and the last assignment counts.
    best = Clusters(group, count, -np.inf)
    for assignment, member, within in (options[0], options[-1]):
        if member.sum(axis=0).min() >= design.smallest:
            score = _score(within, member.T @ (design.information @ member))
            if score > best.score:
                best = Clusters(assignment, count, score)
    return best


def _score(excess: Floats, information: Floats) -> float:
    """From the sums over pairs of groups [G, G]."""
    # Pairs are counted both ways.
    within = np.trace(excess) / 2
    within_information = np.trace(information) / 2
    across = excess.sum() / 2 - within
    across_information = information.sum() / 2 - within_information
    if within_information <= 0 or across_information <= 0:
        return -np.inf
    contrast = within / within_information - across / across_information
    return float(contrast / np.sqrt(1 / within_information + 1 / across_information))


def _membership(group: Ints, count: int) -> Floats:
    """A column per group [A, G], 1 for its annotators."""
    member: Floats = np.eye(count + 1)[group][:, :count]
    return member


def _product_variance(vectors: LabelVectors, deviations: Floats) -> Floats:
    """Variance of the product of two deviations over the pairs of each item [N]."""
    n = vectors.per_item.astype(np.float64)
    pairs = np.maximum(n * (n - 1), 1.0)
    sums = 0.0 - vectors.sums_by_item(squares(deviations) ** 2)
    for column, row in product(deviations.T, repeat=2):
        sums = sums + vectors.sums_by_item(column * row) ** 2
    mean = vectors.sums_by_item(squares(deviations)) / pairs
    variance: Floats = np.where(n >= 3, np.maximum(sums / pairs - mean**2, 0.0), 0.0)
    return variance


def _table(vectors: LabelVectors, number: Ints, size: int, numbers: Floats | None = None) -> Any:
    """Numbers [M], or ones, as a sparse table [P, N] of the assigned annotators."""
    row = number[vectors.annotator]
    labels = np.flatnonzero(row >= 0)
    entries = np.ones(len(labels)) if numbers is None else numbers[labels]
    cells = (row[labels], vectors.item[labels])
    return sparse.csr_matrix((entries, cells), (size, vectors.items))


def _off_diagonal(table: Any) -> Any:
    """The table with zeros on its diagonal, as an array where it is small."""
    table.setdiag(0.0)
    return table.toarray() if table.shape[0] <= _DENSE else table.tocsr()


class Structure(NamedTuple):
    """Variance of annotator bias, and who agrees with whom apart from bias."""

    bias_variance: float
    groups: Clusters


def find_structure(vectors: LabelVectors, design: Design) -> Structure:
    """Estimate the bias of annotators and find or test their groups."""
    bias_variance = design.bias.variance(vectors)
    bias = estimate_bias(vectors, bias_variance, design.within)[vectors.annotator]
    unbiased = vectors.deviations - bias + vectors.means_by_item(bias)[vectors.item]
    excess = design.excess(vectors, unbiased)
    if design.declared is None:
        return Structure(bias_variance, find_groups(design, excess))
    groups = contrast(design, excess, design.declared, design.count)
    return Structure(bias_variance, groups)


SPLITS = 5


def cross_fitted(vectors: LabelVectors, random_state: int, splits: int = SPLITS) -> list[Clusters]:
    """Groups from one half of the items, to be evaluated on the other half, both ways."""
    rng = np.random.default_rng([random_state, 1])
    groupings = []
    for _ in range(splits):
        half = np.zeros(vectors.items, dtype=bool)
        half[rng.permutation(vectors.items)[: vectors.items // 2]] = True
        for items in (half, ~half):
            labels = vectors.take(items)
            design = Design.from_vectors(labels, fewest=FEWEST_CONTESTED // 2)
            clusters = find_structure(labels, design).groups
            groupings.append(replace(clusters, items=~items))
    return groupings


def stability(groupings: list[Clusters]) -> float:
    """Agreement of the groups of two halves (adjusted Rand index): 1 the same, 0 chance."""
    from sklearn.metrics import adjusted_rand_score

    values = []
    for odd, even in zip(groupings[::2], groupings[1::2], strict=True):
        placed = (odd.group >= 0) & (even.group >= 0)
        score = 0.0
        if odd.count and even.count and placed.sum() >= 2:
            score = adjusted_rand_score(odd.group[placed], even.group[placed])
        values.append(score)
    return float(np.mean(values)) if values else 0.0
