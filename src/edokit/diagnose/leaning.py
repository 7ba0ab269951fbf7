"""How far annotators differ whatever they are shown: strict ones and lenient ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from edokit._types import Floats
from edokit.diagnose.answers import Answers, squares, totals

_TYPICAL = 20.0
"""Answers from which on an annotator counts about as much as any other."""
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Leanings:
    """What the variance of the annotators' leanings is estimated with; the design decides it."""

    weight: Floats
    """Of each annotator's pairs of answers [A]."""
    expected: float
    """What their weighted sum is expected to be where the leanings' variance is 1."""

    @classmethod
    def of(cls, answers: Answers) -> Leanings:
        """From who answered what."""
        count = answers.per_person.astype(np.float64)
        pairs = np.maximum(count * (count - 1), 1.0)
        weight = np.where(count >= 2, (count / (count + _TYPICAL)) ** 2 / pairs, 0.0)
        share = 1.0 / answers.per_item[answers.item]
        shape = (answers.people, answers.items)
        asked = sparse.csr_matrix((np.ones(len(share)), (answers.person, answers.item)), shape)
        part = sparse.csr_matrix((share, (answers.person, answers.item)), shape)
        # Deviations on items i and j hold t_a − mean of t over those who answered i, or j:
        # E = 1 − 1/n_i − 1/n_j + shared_ij/(n_i n_j), summed over all pairs i ≠ j of an annotator.
        met = (part @ asked.T).power(2)
        own = totals(answers.person, share, answers.people)
        overlap = np.asarray(met.sum(axis=1)).ravel() - own
        expected = count * (count - 1) - 2.0 * (count - 1) * own + overlap
        return cls(weight, float(weight @ expected))

    def variance(self, answers: Answers) -> float:
        """The variance of the leanings in the population that these annotators stand for.

        Different items only, so that noise adds nothing; NaN where leanings can't be seen.
        """
        # Where all items have the same one annotator, only rounding is left.
        if self.expected <= 1e-9 * max(float(self.weight.sum()), 1e-300):
            return float("nan")
        sums = answers.sums_by_person(answers.deviations)
        same = totals(answers.person, squares(answers.deviations), answers.people)
        return float(self.weight @ (squares(sums) - same)) / self.expected


def leanings(answers: Answers, variance: float, within: float) -> Floats:
    """How far each annotator leans to each class [A, D], shrunk where there are few answers."""
    found = np.zeros((answers.people, answers.values.shape[1]))
    if not (variance > 0 and within > 0):
        return found
    count = np.maximum(answers.per_person, 1)
    trust = (variance / (variance + within / count) / count)[:, None]
    for _ in range(_ROUNDS):
        company = answers.means_by_item(found[answers.person])
        found = trust * answers.sums_by_person(answers.deviations + company[answers.item])
    return found


def without_leanings(answers: Answers, own: Floats) -> Floats:
    """Deviations [M, D] that are left when everybody's leaning [A, D] is taken out."""
    lean = own[answers.person]
    left: Floats = answers.deviations - lean + answers.means_by_item(lean)[answers.item]
    return left
