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
# How often the items are divided into halves, so that groups are evaluated on other items.
SPLITS = 5
# Up to this many annotators, tables of pairs of annotators are dense arrays.
_MOST_DENSE = 1000
_MOST_MOVES = 8


@dataclass(frozen=True, eq=False)
class Design:
    """What does not change when labels are permuted: who labelled what, and the declared groups.

    The excess of two annotators is how much more they agree than their items explain. On each
    contested item the excesses of all pairs of annotators sum to 0: what counts is who agrees with
    whom, not the overall agreement.

    Attributes
    ----------
    bias : BiasDesign
    within : float
        Mean variance of the labels of an item.
    placed : Ints
        Annotators with enough contested items to be assigned to a group [P].
    position : Ints
        The position of each annotator in ``placed`` [A], -1 for the others.
    information : Any
        Variance of each pair's excess if annotators were interchangeable [P, P], diagonal 0; an
        array, or a sparse matrix for many annotators.
    total_variance : float
        Sum of these variances over all pairs, placed or not.
    declared : Ints or None
        The declared group of each annotator [A], -1 for none; None where groups are searched for.
    n_declared : int
        Number of declared groups.
    """

    bias: BiasDesign
    within: float
    placed: Ints
    position: Ints
    information: Any
    total_variance: float
    declared: Ints | None
    n_declared: int

    @classmethod
    def from_vectors(
        cls,
        vectors: LabelVectors,
        declared: Ints | None = None,
        n_declared: int = 0,
        fewest: int = FEWEST_CONTESTED,
    ) -> Design:
        """The design of these labels."""
        several = vectors.per_item >= 2
        within = float("nan")
        if several.any():
            spread = vectors.scatter[several] / (vectors.per_item[several] - 1)
            within = float(spread.mean())
        # Permuting changes something from three annotators on: two agree or disagree in any order.
        contested = vectors.take((vectors.scatter > 1e-12) & (vectors.per_item >= 3))
        placed = np.flatnonzero(contested.per_annotator >= fewest)
        position = np.full(vectors.annotators, -1, dtype=np.int64)
        position[placed] = np.arange(len(placed))
        variance = _product_variance(contested, contested.deviations)
        # Over the items that both annotators of a pair labelled.
        labelled = _table(contested, position, len(placed), np.ones(len(contested.item)))
        variances = _table(contested, position, len(placed), variance[contested.item])
        pairs = contested.per_item * (contested.per_item - 1)
        return cls(
            bias=BiasDesign.from_vectors(vectors),
            within=within,
            placed=placed,
            position=position,
            information=_off_diagonal(variances @ labelled.T),
            total_variance=float(pairs @ variance),
            declared=declared,
            n_declared=n_declared,
        )

    @property
    def smallest(self) -> int:
        """Smallest size of a group; the views of two can be distinguished from noise."""
        return 2 if len(self.placed) >= 4 else 1

    def excess(self, vectors: LabelVectors, deviations: Floats) -> Any:
        """Agreement of each pair beyond what its items explain [P, P], diagonal 0.

        It is scaled so that its variance is ``information`` if annotators are interchangeable.
        """
        n = vectors.per_item.astype(np.float64)
        pairs = n * (n - 1)
        scatter = vectors.sums_by_item(squares(deviations))
        # An item with two labels has one pair, and nothing to compare it with.
        mean = np.where(n >= 3, scatter / np.maximum(pairs, 1.0), 0.0)
        # Deviations without biases are smaller, and so is the variance of their products.
        total_variance = float(pairs @ _product_variance(vectors, deviations))
        scale = 0.0
        if total_variance > 0:
            scale = np.sqrt(self.total_variance / total_variance)
        size = len(self.placed)
        labelled = _table(vectors, self.position, size, np.ones(len(vectors.item)))
        means = _table(vectors, self.position, size, mean[vectors.item])
        excess = means @ labelled.T
        has_three = (vectors.per_item >= 3)[vectors.item]
        for column in deviations.T:
            products = _table(vectors, self.position, size, column * has_three)
            excess = excess + products @ products.T
        return _off_diagonal(excess * scale)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of annotators, and how clearly they are separated.

    Attributes
    ----------
    group : Ints
        The group of each annotator [A], -1 for those who are in none.
    count : int
        Number of groups; 0 where too little is known to search for any.
    score : float
        How much more pairs agree within groups than across, in standard errors.
    items : Bools or None
        The items on which the groups are evaluated, where they were found on the others [N]; None:
        all items.
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
    most_groups = MOST_GROUPS
    if annotators < 3:
        most_groups = 1
    else:
        # Annotators with few shared items weigh less: their excess is mostly noise.
        degree = np.asarray(design.information.sum(axis=1)).ravel()
        scale = 1.0 / np.sqrt(degree + degree.mean() + 1e-300)
    for count in range(2, most_groups + 1):
        candidates = [best]
        # Each group in turn is split in two along its main contrast.
        for old in range(count - 1):
            in_group = best.group == old
            if in_group.sum() >= 2:
                is_split_off = _main_contrast(excess, np.where(in_group, scale, 0.0)) > 0
                start = np.where(in_group & is_split_off, count - 1, best.group)
                candidates.append(_improve(design, excess, start, count))
        clearest = max(candidates, key=lambda clusters: clusters.score)
        if clearest is best:
            break
        best = clearest
    # Those who are not placed are in no group.
    group = np.full(len(design.position), -1, dtype=np.int64)
    group[design.placed] = best.group
    return Clusters(group, best.count, best.score)


def _main_contrast(excess: Any, scale: Floats) -> Floats:
    """The first eigenvector [P] of the scaled excess; its signs divide the annotators in two."""
    if len(scale) <= 64:
        vectors: Floats = np.linalg.eigh(scale[:, None] * excess * scale)[1]
        return vectors[:, -1]
    scaled = LinearOperator(
        excess.shape, matvec=lambda v: scale * (excess @ (scale * v.ravel())), dtype=np.float64
    )
    # A fixed start. It is not all ones: the rows of an excess nearly sum to 0.
    start: Floats = scale * np.cos(np.arange(len(scale), dtype=np.float64) ** 2)
    try:
        vectors = eigsh(scaled, k=1, which="LA", v0=start, tol=1e-3)[1]
    except ArpackError:
        # No eigenvector stands out; any division will do as a start.
        return start
    return vectors[:, 0]


def _improve(design: Design, excess: Any, group: Ints, count: int) -> Clusters:
    """Move annotators to the group that they agree with most, until nothing changes."""
    assignments = []
    for _ in range(_MOST_MOVES):
        member = _membership(group, count)
        agreement = excess @ member
        assignments.append((group, member, member.T @ agreement))
        moved = agreement.argmax(axis=1)
        if np.array_equal(moved, group):
            break
        group = moved
    # Moving all at once may cycle; the better of the first and the last assignment counts.
    best = Clusters(group, count, -np.inf)
    for assignment, member, group_excess in (assignments[0], assignments[-1]):
        if member.sum(axis=0).min() >= design.smallest:
            score = _score(group_excess, member.T @ (design.information @ member))
            if score > best.score:
                best = Clusters(assignment, count, score)
    return best


def _score(excess: Floats, information: Floats) -> float:
    """How clearly groups are separated, from the sums over pairs of annotators [G, G] by group."""
    # Pairs are counted both ways.
    within = np.trace(excess) / 2
    within_information = np.trace(information) / 2
    across = excess.sum() / 2 - within
    across_information = information.sum() / 2 - within_information
    if within_information <= 0 or across_information <= 0:
        return -np.inf
    difference = within / within_information - across / across_information
    return float(difference / np.sqrt(1 / within_information + 1 / across_information))


def _membership(group: Ints, count: int) -> Floats:
    """A column per group [P, G], 1 for its annotators; all 0 for those in none (-1)."""
    member: Floats = (group[:, None] == np.arange(count)).astype(np.float64)
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


def _table(vectors: LabelVectors, position: Ints, size: int, numbers: Floats) -> Any:
    """Numbers of the labels [M] as a sparse table [P, N] of placed annotators and items."""
    row = position[vectors.annotator]
    labels = np.flatnonzero(row >= 0)
    cells = (row[labels], vectors.item[labels])
    return sparse.csr_matrix((numbers[labels], cells), (size, vectors.items))


def _off_diagonal(table: Any) -> Any:
    """The table with zeros on its diagonal, as an array where it is small."""
    table.setdiag(0.0)
    return table.toarray() if table.shape[0] <= _MOST_DENSE else table.tocsr()


class Structure(NamedTuple):
    """Variance of the annotators' biases, and groups of those who agree apart from bias."""

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
    groups = contrast(design, excess, design.declared, design.n_declared)
    return Structure(bias_variance, groups)


def cross_fitted(
    vectors: LabelVectors,
    random_state: int,
    splits: int = SPLITS,
    item_groups: Ints | None = None,
) -> list[Clusters]:
    """Groups found on one half of the items, to be evaluated on the other half, and vice versa.

    Items with the same number in ``item_groups`` [N] are in the same half.
    """
    rng = np.random.default_rng([random_state, 1])
    unit_of_item = np.arange(vectors.items)
    if item_groups is not None:
        unit_of_item = np.unique(item_groups, return_inverse=True)[1]
    n_units = int(unit_of_item.max()) + 1
    groupings = []
    for _ in range(splits):
        in_half = np.zeros(n_units, dtype=bool)
        in_half[rng.permutation(n_units)[: n_units // 2]] = True
        half = in_half[unit_of_item]
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
    for first_half, second_half in zip(groupings[::2], groupings[1::2], strict=True):
        placed = (first_half.group >= 0) & (second_half.group >= 0)
        score = 0.0
        if first_half.count and second_half.count and placed.sum() >= 2:
            score = adjusted_rand_score(first_half.group[placed], second_half.group[placed])
        values.append(score)
    return float(np.mean(values)) if values else 0.0
