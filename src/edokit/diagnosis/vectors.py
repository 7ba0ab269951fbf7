"""Labels as vectors, whose squared distances are variances, and the bias of each annotator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from edokit._types import Floats, Ints
from edokit.annotations import Annotations

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answers:
    """M answers, those of an item side by side, one per annotator and item."""

    item: Ints
    """The item of each answer [M], ascending."""
    person: Ints
    """The annotator of each answer [M]."""
    values: Floats
    """The answers as vectors [M, D]: their variance is half the sum over classes of the variance
    of "the label is this class"."""
    items: int
    """How many items there are, N."""
    people: int
    """How many annotators there are, A."""

    @classmethod
    def of(cls, annotations: Annotations) -> Answers:
        """The first answer of each annotator to each item."""
        first = np.flatnonzero(~annotations.repeated)
        first = first[np.argsort(annotations.item_codes[first], kind="stable")]
        classes = len(annotations.classes)
        shares = annotations.label_probabilities
        if shares is None:
            shares = np.eye(classes)[annotations.labels]
        # Of two classes one says it all; of more, each counts half.
        values = shares[first, 1:] if classes == 2 else shares[first] * np.sqrt(0.5)
        return cls(
            annotations.item_codes[first].astype(np.int64),
            annotations.annotator_codes[first].astype(np.int64),
            np.ascontiguousarray(values),
            len(annotations.items),
            len(annotations.annotators),
        )

    @cached_property
    def per_item(self) -> Ints:
        """Answers per item [N]."""
        return np.bincount(self.item, minlength=self.items)

    @cached_property
    def per_person(self) -> Ints:
        """Answers per annotator [A]."""
        return np.bincount(self.person, minlength=self.people)

    @cached_property
    def item_means(self) -> Floats:
        """The mean answer to each item [N, D]."""
        return self.means_by_item(self.values)

    @cached_property
    def deviations(self) -> Floats:
        """Each answer less the mean of its item [M, D]."""
        apart: Floats = self.values - self.item_means[self.item]
        return apart

    @cached_property
    def scatter(self) -> Floats:
        """Sum of the squared deviations of each item [N]."""
        return self.sums_by_item(squares(self.deviations))

    @cached_property
    def contested(self) -> Mask:
        """Whether shuffling the answers to an item changes anything that can be seen [N].

        It takes two different answers, and three people: with two, both agree or both don't.
        """
        seen: Mask = (self.scatter > 1e-12) & (self.per_item >= 3)
        return seen

    def sums_by_item(self, numbers: Floats) -> Floats:
        """Sums of numbers [M] over each item [N]."""
        return totals(self.item, numbers, self.items)

    def means_by_item(self, vectors: Floats) -> Floats:
        """Means of vectors [M, D] over each item [N, D]."""
        sums = np.stack([self.sums_by_item(column) for column in vectors.T], axis=1)
        means: Floats = sums / np.maximum(self.per_item, 1)[:, None]
        return means

    def sums_by_person(self, vectors: Floats) -> Floats:
        """Sums of vectors [M, D] over each annotator [A, D]."""
        columns = [totals(self.person, column, self.people) for column in vectors.T]
        return np.stack(columns, axis=1)

    def take(self, items: Mask) -> Answers:
        """The answers to the items where the mask [N] is true; annotators stay as numbered."""
        kept = items[self.item]
        number = np.cumsum(items) - 1
        return Answers(
            number[self.item[kept]],
            self.person[kept],
            self.values[kept],
            int(items.sum()),
            self.people,
        )

    def shuffled(self, rng: np.random.Generator) -> Answers:
        """The same answers to the same items, given to others of those who answered the item."""
        order = np.argsort(self.item + rng.random(len(self.item)), kind="stable")
        return replace(self, values=self.values[order])


def squares(vectors: Floats) -> Floats:
    """Squared length of each vector [M]."""
    return products(vectors, vectors)


def products(vectors: Floats, others: Floats) -> Floats:
    """Inner product of each vector with its partner [M]."""
    result: Floats = np.einsum("md,md->m", vectors, others)
    return result


def totals(codes: npt.NDArray[Any], numbers: Floats, size: int) -> Floats:
    """Sums of numbers [M] by code [size]."""
    return np.bincount(codes, weights=numbers, minlength=size).astype(np.float64, copy=False)


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
