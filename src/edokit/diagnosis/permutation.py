"""Structure or noise? The same look at answers that are shuffled within their items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from edokit._types import Floats
from edokit.diagnosis.clusters import Design, Look, look
from edokit.diagnosis.vectors import Answers, products

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class StructureTest:
    """How often shuffled answers look as structured as the real ones."""

    permutations: int
    seed: int
    leaning: float
    """Of the real answers: variance of the annotators' leanings."""
    score: float
    """Of the real answers: how clearly groups stand apart."""
    leanings: Floats
    """The same of answers shuffled within items [permutations]."""
    scores: Floats
    strict_scores: Floats
    """And of answers shuffled so that strict people stay strict [permutations]."""
    p_annotator: float
    """Of the leanings: do people differ, whatever they are shown? NaN where it can't be tested."""
    p_group_item: float
    """Of the groups: do people who think alike see other things in an item?"""
    p_views: float
    """Of the groups, beyond what strictness alone would make."""
    p: float
    """For any structure at all: the first two together."""

    @property
    def structured(self) -> bool:
        """Whether chance is ruled out at the 5 % level."""
        return self.p <= LEVEL


def permutation_test(
    answers: Answers,
    design: Design,
    seen: Look,
    permutations: int,
    seed: int,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> StructureTest:
    """Shuffle who gave which answer within each item, and look (for groups, too) every time."""
    rng = np.random.default_rng([seed, 3])
    # Many small products: threads would only wait for each other.
    with threadpool_limits(1):
        plain, strict = _shuffle(answers, design, seen, permutations, rng, step)
    table = np.array(plain)
    ranks = np.stack([_rank(column) for column in table.T])
    known = ranks[~np.isnan(ranks).any(axis=1)]
    p = float("nan")
    if len(known):
        # The smaller of two p-values, against the smaller ones of the shuffled answers.
        least = known.min(axis=0)
        p = float(np.mean(least <= least[0] + 1e-12))
    views = np.array(strict)[:, 1]
    return StructureTest(
        permutations=permutations,
        seed=seed,
        leaning=float(table[0, 0]),
        score=float(table[0, 1]),
        leanings=table[1:, 0],
        scores=table[1:, 1],
        strict_scores=views[1:],
        p_annotator=float(ranks[0, 0]),
        p_group_item=float(ranks[1, 0]),
        p_views=float(_rank(views)[0]),
        p=p,
    )


def _shuffle(
    answers: Answers,
    design: Design,
    seen: Look,
    permutations: int,
    rng: np.random.Generator,
    step: Callable[[int, int], None],
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """What is found in the real answers and in shuffled ones, plainly and with strictness kept."""
    plain, strict = [_numbers(seen)], [_numbers(seen)]
    for done in range(permutations):
        plain.append(_numbers(look(answers.shuffled(rng), design)))
        step(done + 1, 2 * permutations)
    shuffles = strict_shuffles(answers, rng)
    for done in range(permutations):
        strict.append(_numbers(look(next(shuffles), design)))
        step(permutations + done + 1, 2 * permutations)
    return plain, strict


def _numbers(seen: Look) -> tuple[float, float]:
    return seen.leaning, seen.groups.score if np.isfinite(seen.groups.score) else float("nan")


def _rank(column: Floats) -> Floats:
    """Share of all rows that reach each row, itself included; NaN where there is nothing to rank.

    Rows that are not known count as the lowest.
    """
    lowest = np.where(np.isnan(column), -np.inf, column)
    if not np.isfinite(lowest[0]) or np.all(lowest == lowest[0]):
        return np.full(len(column), np.nan)
    ordered = np.sort(lowest)
    reached: Floats = (len(column) - np.searchsorted(ordered, lowest - 1e-12)) / len(column)
    return reached


_LEARNING = 40
"""Sweeps in which strictness is learned; the answers forget where they came from meanwhile."""
_PRIOR = 0.25
"""Keeps those with few answers near the others. At this value shuffled people lean about as much as
the real ones, in full panels as in sparse crowds."""
_BETWEEN = 6
"""Sweeps between two shuffled tables."""


def strict_shuffles(answers: Answers, rng: np.random.Generator) -> Iterator[Answers]:
    """Tables in which people differ by where they draw the line, and by nothing else, without end.

    Answers to an item are exchanged between two people in proportion to how well they fit the
    strictness of each (a Rasch model given the answers to each item; Metropolis' rule).
    """
    # Only items with different answers have something to exchange.
    seen = answers.scatter > 1e-12
    where = np.flatnonzero(seen[answers.item])
    there = answers.take(seen)
    wanted = there.sums_by_person(there.values)
    room = there.item_means * (there.values.max(initial=0.0) - there.item_means)
    known = there.sums_by_person(room[there.item]) + _PRIOR
    strict = np.zeros_like(wanted)
    values = there.values
    for round_ in range(_LEARNING):
        values = _sweep(there, values, strict, rng)
        gap = wanted - there.sums_by_person(values) - _PRIOR * strict
        strict = strict + gap / known / (1.0 + round_ / 8.0)
    while True:
        for _ in range(_BETWEEN):
            values = _sweep(there, values, strict, rng)
        table = answers.values.copy()
        table[where] = values
        yield replace(answers, values=table)


def _sweep(answers: Answers, values: Floats, strict: Floats, rng: np.random.Generator) -> Floats:
    """Everybody meets somebody else at each of their items, and they may exchange answers."""
    order = np.argsort(answers.item + rng.random(len(answers.item)), kind="stable")
    starts = np.cumsum(answers.per_item) - answers.per_item
    place = np.arange(len(order)) - starts[answers.item]
    first = np.flatnonzero((place % 2 == 0) & (place + 1 < answers.per_item[answers.item]))
    one, other = order[first], order[first + 1]
    apart = strict[answers.person[one]] - strict[answers.person[other]]
    gain = products(values[other] - values[one], apart)
    agreed = np.log(np.maximum(rng.random(len(gain)), 1e-300)) < gain
    one, other = one[agreed], other[agreed]
    exchanged = values.copy()
    exchanged[one], exchanged[other] = values[other], values[one]
    return exchanged
