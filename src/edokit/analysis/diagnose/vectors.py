"""Labels as vectors, whose squared distances are variances, and the bias of each annotator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from edokit._types import Bools, Codes, Floats, Ints
from edokit.annotations.core import Annotations


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """M labels as vectors, sorted by item, at most one per annotator and item.

    Attributes
    ----------
    item : Ints
        The item of each label [M], ascending.
    annotator : Ints
        The annotator of each label [M].
    values : Floats
        The labels as vectors [M, D], whose squared distances say how much two labels disagree
        (`Scale.vectors`). Their variance is half the sum over classes of the variance of "the label
        is this class"; on an ordinal scale, the variance of the positions; for multi-label data,
        the mean over labels of the variance of "this label is chosen".
    items : int
        Number of items, N.
    annotators : int
        Number of annotators, A.
    """

    item: Ints
    annotator: Ints
    values: Floats
    items: int
    annotators: int

    @classmethod
    def from_annotations(
        cls, annotations: Annotations, class_vectors: Floats | None = None
    ) -> LabelVectors:
        """The first label of each annotator for each item.

        ``class_vectors`` has the vector of each class [C, D]; by default it is that of the scale.
        """
        rows = np.flatnonzero(~annotations.repeated)
        rows = rows[np.argsort(annotations.item_codes[rows], kind="stable")]
        if class_vectors is None:
            class_vectors = annotations.scale.vectors(len(annotations.classes))
        return cls(
            annotations.item_codes[rows].astype(np.int64),
            annotations.annotator_codes[rows].astype(np.int64),
            label_vectors(annotations, class_vectors)[rows],
            len(annotations.items),
            len(annotations.annotators),
        )

    @cached_property
    def per_item(self) -> Ints:
        """Labels per item [N]."""
        return np.bincount(self.item, minlength=self.items)

    @cached_property
    def per_annotator(self) -> Ints:
        """Labels per annotator [A]."""
        return np.bincount(self.annotator, minlength=self.annotators)

    @cached_property
    def item_means(self) -> Floats:
        """The mean label to each item [N, D]."""
        return self.means_by_item(self.values)

    @cached_property
    def deviations(self) -> Floats:
        """Each label less the mean of its item [M, D]."""
        deviations: Floats = self.values - self.item_means[self.item]
        return deviations

    @cached_property
    def scatter(self) -> Floats:
        """Sum of the squared deviations of each item [N]."""
        return self.sums_by_item(squares(self.deviations))

    def sums_by_item(self, numbers: Floats) -> Floats:
        """Sums of numbers [M] or vectors [M, D] over each item: [N] or [N, D]."""
        return totals(self.item, numbers, self.items)

    def means_by_item(self, vectors: Floats) -> Floats:
        """Means of vectors [M, D] over each item [N, D]."""
        means: Floats = self.sums_by_item(vectors) / np.maximum(self.per_item, 1)[:, None]
        return means

    def sums_by_annotator(self, vectors: Floats) -> Floats:
        """Sums of numbers [M] or vectors [M, D] over each annotator: [A] or [A, D]."""
        return totals(self.annotator, vectors, self.annotators)

    def take(self, items: Bools) -> LabelVectors:
        """The labels of the items where the mask [N] is true; annotators keep their numbers."""
        number = np.cumsum(items) - 1
        part = self._select(items[self.item])
        return replace(part, item=number[part.item], items=int(items.sum()))

    def without(self, annotators: Bools) -> LabelVectors:
        """The labels of all but these annotators (mask [A]); items keep their numbers."""
        return self._select(~annotators[self.annotator])

    def _select(self, rows: Bools) -> LabelVectors:
        return replace(
            self,
            item=self.item[rows],
            annotator=self.annotator[rows],
            values=self.values[rows],
        )

    def permuted(self, rng: np.random.Generator) -> LabelVectors:
        """The same labels, permuted among the annotators of each item."""
        order = np.argsort(self.item + rng.random(len(self.item)), kind="stable")
        return replace(self, values=self.values[order])


def label_vectors(annotations: Annotations, class_vectors: Floats) -> Floats:
    """The vector of each label [M, D], given that of each class [C, D].

    Probabilities, and label sets, have the sum of the vectors of their classes, so weighted.
    """
    shares = annotations.label_probabilities
    if shares is None:
        assert annotations.label_codes is not None
        return np.asarray(class_vectors[annotations.label_codes])
    return np.asarray(shares @ class_vectors)


def squares(vectors: Floats) -> Floats:
    """Squared length of each vector [M]."""
    return products(vectors, vectors)


def products(vectors: Floats, others: Floats) -> Floats:
    """Inner product of each vector with the other one in its row [M]."""
    result: Floats = np.einsum("md,md->m", vectors, others)
    return result


def totals(codes: Ints | Codes, numbers: Floats, size: int) -> Floats:
    """Sums of numbers [M] or vectors [M, D] by code: [size] or [size, D]."""
    columns = np.atleast_2d(numbers.T)
    sums: Floats = np.stack([np.bincount(codes, column, size) for column in columns], axis=-1)
    if numbers.ndim == 1:
        return sums[:, 0]
    return sums


def finite(value: float) -> float | None:
    """The number; None where it is unknown."""
    return float(value) if np.isfinite(value) else None


def peer_agreement(
    item: Ints | Codes, vectors: Floats, lengths: Floats, weight: Floats | float = 1.0
) -> tuple[Floats, Floats]:
    """How much each label agrees with the others of its item, and two others with each other [M].

    NaN where there are none. Labels are vectors [M, D] with their expected squared ``lengths`` [M];
    the others count by their ``weight`` [M].
    """
    weights = np.broadcast_to(weight, len(item))

    def of_others(numbers: Floats) -> Floats:
        """The sum over the other labels of each label's item."""
        return np.asarray(totals(item, numbers, int(item.max()) + 1)[item] - numbers)

    count = of_others(weights)
    sums = of_others(vectors * weights[:, None])
    total_length = of_others(lengths * weights)
    pairs = count**2 - of_others(weights**2)
    # Two labels disagree by the sum of their lengths less twice their product.
    agreeing = count * (1 - lengths) - total_length + 2 * products(vectors, sums)
    pair_lengths = total_length * count - of_others(lengths * weights**2)
    inner = squares(sums) - of_others(squares(vectors) * weights**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement = np.where(count > 1e-9, agreeing / count, np.nan)
        expected = np.where(pairs > 1e-9, 1 - 2 * (pair_lengths - inner) / pairs, np.nan)
    return agreement, expected


# An annotator with this many labels has a quarter of the weight of one with very many.
_TYPICAL_LABELS = 20.0
_BIAS_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class BiasDesign:
    """Constants of the estimated variance of annotator bias; they depend on who labelled what.

    Attributes
    ----------
    weight : Floats
        Weight of each annotator's pairs of labels [A].
    expected : float
        Expected weighted sum if the variance of the biases is 1.
    """

    weight: Floats
    expected: float

    @classmethod
    def from_vectors(cls, vectors: LabelVectors) -> BiasDesign:
        """The constants of these labels."""
        count = vectors.per_annotator.astype(np.float64)
        pairs = np.maximum(count * (count - 1), 1.0)
        weight = np.where(count >= 2, (count / (count + _TYPICAL_LABELS)) ** 2 / pairs, 0.0)
        share = 1.0 / vectors.per_item[vectors.item]
        shape = (vectors.annotators, vectors.items)
        cells = (vectors.annotator, vectors.item)
        labelled = sparse.csr_matrix((np.ones(len(share)), cells), shape)
        part = sparse.csr_matrix((share, cells), shape)
        # With biases t, the deviation of annotator a on item i contains t_a − the mean of t over
        # those who labelled i. The product of two such terms, on items i and j, has the expectation
        # 1 − 1/n_i − 1/n_j + shared_ij/(n_i n_j), summed here over an annotator's pairs i ≠ j.
        shared = (part @ labelled.T).power(2)
        self_overlap = vectors.sums_by_annotator(share)
        overlap = np.asarray(shared.sum(axis=1)).ravel() - self_overlap
        expected = count * (count - 1) - 2.0 * (count - 1) * self_overlap + overlap
        return cls(weight, float(weight @ expected))

    def variance(self, vectors: LabelVectors) -> float:
        """Variance of the biases in the population of annotators; NaN where it is unknown.

        Only products over different items are used, so that noise adds nothing.
        """
        # If all items have the same single annotator, only rounding is left.
        if self.expected <= 1e-9 * max(float(self.weight.sum()), 1e-300):
            return float("nan")
        sums = vectors.sums_by_annotator(vectors.deviations)
        noise = vectors.sums_by_annotator(squares(vectors.deviations))
        return float(self.weight @ (squares(sums) - noise)) / self.expected


def estimate_bias(vectors: LabelVectors, variance: float, within: float) -> Floats:
    """Bias of each annotator towards each class [A, D], shrunk where there are few labels."""
    bias = np.zeros((vectors.annotators, vectors.values.shape[1]))
    if not (variance > 0 and within > 0):
        return bias
    count = np.maximum(vectors.per_annotator, 1)
    trust = (variance / (variance + within / count) / count)[:, None]
    for _ in range(_BIAS_ROUNDS):
        mean = vectors.means_by_item(bias[vectors.annotator])
        bias = trust * vectors.sums_by_annotator(vectors.deviations + mean[vectors.item])
    return bias
