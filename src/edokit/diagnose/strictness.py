"""Shuffling answers within items so that strict people stay strict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from edokit._types import Floats
from edokit.diagnose.answers import Answers, products

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
