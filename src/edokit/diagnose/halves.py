"""Groups found on one half of the items, to be judged on the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._types import Ints
from edokit.diagnose.alike import FEWEST_CONTESTED
from edokit.diagnose.answers import Answers, Mask
from edokit.diagnose.structure import Design, look

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
