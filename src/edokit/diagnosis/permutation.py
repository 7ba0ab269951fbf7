"""Structure or noise? A permutation test: labels are permuted within their items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from edokit._types import Floats, Ints
from edokit.diagnosis.clusters import Design, Structure, find_structure
from edokit.diagnosis.vectors import LabelVectors, products

LEVEL = 0.05


def permutation_test(
    vectors: LabelVectors,
    design: Design,
    found: Structure,
    permutations: int,
    random_state: int,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Test whether labels are more structured than the same labels permuted within items.

    Bias and groups are estimated anew for every permutation. The result has, as plain values, the
    statistic of the data, its p-value and the statistics after permutation for ``annotator``
    (do annotators differ in their base rates?), ``group_item`` (do groups of annotators see items
    differently?) and ``views`` (the same, beyond what strictness alone explains), and ``p`` of the
    first two together; None where it can't be tested.
    """
    rng = np.random.default_rng([random_state, 3])
    free = [_numbers(found)]
    strict = [_numbers(found)[1]]
    # Many small products: threads only wait for each other.
    with threadpool_limits(1):
        for done in range(permutations):
            free.append(_numbers(find_structure(vectors.permuted(rng), design)))
            step(done + 1, 2 * permutations)
        tables = strict_permutations(vectors, rng)
        for done in range(permutations):
            strict.append(_numbers(find_structure(next(tables), design))[1])
            step(permutations + done + 1, 2 * permutations)
    bias, scores = np.array(free).T
    columns = {"annotator": bias, "group_item": scores, "views": np.array(strict)}
    ranks = {name: _rank(column) for name, column in columns.items()}
    known = [ranks[name] for name in ("annotator", "group_item") if np.isfinite(ranks[name][0])]
    p = float("nan")
    if known:
        # The smaller of two p-values, against the smaller ones of the permuted labels.
        least = np.min(known, axis=0)
        p = float(np.mean(least <= least[0] + 1e-12))
    tests = {
        name: {
            "statistic": _known(column[0]),
            "p": _known(ranks[name][0]),
            "null": [_known(value) for value in column[1:]],
        }
        for name, column in columns.items()
    }
    counts = {"permutations": permutations, "seed": random_state}
    return {**counts, **tests, "p": _known(p), "structured": p <= LEVEL}


def _numbers(found: Structure) -> tuple[float, float]:
    score = found.groups.score
    return found.bias_variance, score if np.isfinite(score) else float("nan")


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


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
    room = there.means_by_item(there.deviations**2)
    known = there.sums_by_annotator(room[there.item]) + _PRIOR
    strict = np.zeros_like(wanted)
    values = there.values
    # Shuffled, the first label of an item meets the second, the third the fourth, and so on.
    last = np.cumsum(there.per_item)[there.item] - 1
    position = np.arange(len(last)) - (last + 1 - there.per_item[there.item])
    first = np.flatnonzero((position % 2 == 0) & (np.arange(len(last)) < last))
    for round_ in range(_LEARNING):
        values = _sweep(there, first, values, strict, rng)
        gap = wanted - there.sums_by_annotator(values) - _PRIOR * strict
        strict = strict + gap / known / (1.0 + round_ / 8.0)
    while True:
        for _ in range(_BETWEEN):
            values = _sweep(there, first, values, strict, rng)
        table = vectors.values.copy()
        table[where] = values
        yield replace(vectors, values=table)


def _sweep(
    vectors: LabelVectors, first: Ints, values: Floats, strict: Floats, rng: np.random.Generator
) -> Floats:
    """Pair the annotators of each item at random; each pair may exchange its labels."""
    order = np.argsort(vectors.item + rng.random(len(vectors.item)), kind="stable")
    one, other = order[first], order[first + 1]
    apart = strict[vectors.annotator[one]] - strict[vectors.annotator[other]]
    gain = products(values[other] - values[one], apart)
    agreed = np.log(np.maximum(rng.random(len(gain)), 1e-300)) < gain
    one, other = one[agreed], other[agreed]
    exchanged = values.copy()
    exchanged[one], exchanged[other] = values[other], values[one]
    return exchanged
