"""Structure or noise? A permutation test: labels are permuted within their items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from edokit._types import Floats
from edokit.diagnosis.clusters import Design, Structure, find_structure
from edokit.diagnosis.vectors import LabelVectors, products

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class StructureTest:
    """Test whether labels are more structured than the same labels permuted within items."""

    permutations: int
    random_state: int
    bias_variance: float
    """Variance of annotator bias in the data."""
    score: float
    """How clearly groups are separated in the data."""
    null_bias: Floats
    """Variance of bias after each permutation."""
    null_scores: Floats
    """Separation of groups after each permutation."""
    null_strict_scores: Floats
    """The same after permutations in which strict annotators stay strict."""
    p_annotator: float
    """Do annotators differ in their base rates? NaN where it can't be tested."""
    p_group_item: float
    """Do groups of annotators see items differently?"""
    p_views: float
    """The same, beyond what strictness alone explains."""
    p: float
    """Any structure: the first two tests together."""

    @property
    def structured(self) -> bool:
        """Whether chance is rejected at the 5 % level."""
        return self.p <= LEVEL


def permutation_test(
    vectors: LabelVectors,
    design: Design,
    found: Structure,
    permutations: int,
    random_state: int,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> StructureTest:
    """Permute labels within each item; bias and groups are estimated anew every time."""
    rng = np.random.default_rng([random_state, 3])
    # Many small products: threads only wait for each other.
    with threadpool_limits(1):
        plain, strict = _permute(vectors, design, found, permutations, rng, step)
    table = np.array(plain)
    ranks = np.stack([_rank(column) for column in table.T])
    known = ranks[~np.isnan(ranks).any(axis=1)]
    p = float("nan")
    if len(known):
        # The smaller of two p-values, against the smaller ones of the permuted labels.
        least = known.min(axis=0)
        p = float(np.mean(least <= least[0] + 1e-12))
    views = np.array(strict)[:, 1]
    return StructureTest(
        permutations=permutations,
        random_state=random_state,
        bias_variance=float(table[0, 0]),
        score=float(table[0, 1]),
        null_bias=table[1:, 0],
        null_scores=table[1:, 1],
        null_strict_scores=views[1:],
        p_annotator=float(ranks[0, 0]),
        p_group_item=float(ranks[1, 0]),
        p_views=float(_rank(views)[0]),
        p=p,
    )


def _permute(
    vectors: LabelVectors,
    design: Design,
    found: Structure,
    permutations: int,
    rng: np.random.Generator,
    step: Callable[[int, int], None],
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Statistics of the data and of permutations, free ones and ones that keep strictness."""
    plain, strict = [_numbers(found)], [_numbers(found)]
    for done in range(permutations):
        plain.append(_numbers(find_structure(vectors.permuted(rng), design)))
        step(done + 1, 2 * permutations)
    tables = strict_permutations(vectors, rng)
    for done in range(permutations):
        strict.append(_numbers(find_structure(next(tables), design)))
        step(permutations + done + 1, 2 * permutations)
    return plain, strict


def _numbers(found: Structure) -> tuple[float, float]:
    score = found.groups.score
    return found.bias_variance, score if np.isfinite(score) else float("nan")


def _rank(column: Floats) -> Floats:
    """Share of the values that reach each value (its p-value); NaN where all are equal.

    Unknown values count as the lowest.
    """
    lowest = np.where(np.isnan(column), -np.inf, column)
    if not np.isfinite(lowest[0]) or np.all(lowest == lowest[0]):
        return np.full(len(column), np.nan)
    ordered = np.sort(lowest)
    reached: Floats = (len(column) - np.searchsorted(ordered, lowest - 1e-12)) / len(column)
    return reached


_LEARNING = 40
"""Sweeps in which strictness is estimated and the labels forget where they came from."""
_PRIOR = 0.25
"""Keeps annotators with few labels near the others; with this value their bias after permutation is
about that of the data, in full panels and in sparse crowds."""
_BETWEEN = 6
"""Sweeps between two tables."""


def strict_permutations(vectors: LabelVectors, rng: np.random.Generator) -> Iterator[LabelVectors]:
    """Endless permutations in which annotators differ in strictness and in nothing else.

    Two annotators exchange their labels of an item in proportion to how well these fit the
    strictness of each (a Rasch model given the labels of each item; Metropolis' rule).
    """
    # Only items with different labels have something to exchange.
    varied = vectors.scatter > 1e-12
    where = np.flatnonzero(varied[vectors.item])
    there = vectors.take(varied)
    wanted = there.sums_by_annotator(there.values)
    room = there.item_means * (there.values.max(initial=0.0) - there.item_means)
    known = there.sums_by_annotator(room[there.item]) + _PRIOR
    strict = np.zeros_like(wanted)
    values = there.values
    for round_ in range(_LEARNING):
        values = _sweep(there, values, strict, rng)
        gap = wanted - there.sums_by_annotator(values) - _PRIOR * strict
        strict = strict + gap / known / (1.0 + round_ / 8.0)
    while True:
        for _ in range(_BETWEEN):
            values = _sweep(there, values, strict, rng)
        table = vectors.values.copy()
        table[where] = values
        yield replace(vectors, values=table)


def _sweep(
    vectors: LabelVectors, values: Floats, strict: Floats, rng: np.random.Generator
) -> Floats:
    """Pair the annotators of each item at random; each pair may exchange its labels."""
    order = np.argsort(vectors.item + rng.random(len(vectors.item)), kind="stable")
    starts = np.cumsum(vectors.per_item) - vectors.per_item
    position = np.arange(len(order)) - starts[vectors.item]
    first = np.flatnonzero((position % 2 == 0) & (position + 1 < vectors.per_item[vectors.item]))
    one, other = order[first], order[first + 1]
    apart = strict[vectors.annotator[one]] - strict[vectors.annotator[other]]
    gain = products(values[other] - values[one], apart)
    agreed = np.log(np.maximum(rng.random(len(gain)), 1e-300)) < gain
    one, other = one[agreed], other[agreed]
    exchanged = values.copy()
    exchanged[one], exchanged[other] = values[other], values[one]
    return exchanged
