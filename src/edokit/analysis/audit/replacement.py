"""The alternative annotator test: can a candidate replace an annotator?

Calderon, Reichart and Dror: The Alternative Annotator Test for LLM-as-a-Judge (ACL 2025).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._errors import InputError, option
from edokit._types import Bools, Floats, Ints
from edokit.analysis.audit.statistics import ROUNDING
from edokit.analysis.human_labels import HumanLabels
from edokit.metrics.score_interval import score_interval
from edokit.rows import sums


@dataclass(frozen=True, eq=False)
class TestedCandidate:
    """The test of one candidate against each annotator [A].

    Attributes
    ----------
    advantages : Floats
        How often the candidate is as close to the other annotators as this one, or closer (ρ).
    human_advantages : Floats
        How often this annotator is as close to the others as the candidate, or closer.
    p_values : Floats
        P-values of the hypothesis that the annotator is better by ε or more, corrected by the
        procedure of Benjamini and Yekutieli.
    wins : Bools
        Whether the hypothesis is rejected.
    low, high : float
        Interval of the mean advantage.
    """

    advantages: Floats
    human_advantages: Floats
    p_values: Floats
    wins: Bools
    low: float
    high: float

    @property
    def advantage(self) -> float:
        """The mean of the advantages over annotators."""
        return float(self.advantages.mean())

    @property
    def winning_rate(self) -> float:
        """The share of annotators that the candidate wins against (ω)."""
        return float(self.wins.mean())


class AlternativeAnnotatorTest:
    """Who is closer to the other annotators of an item: a candidate, or the one left out?

    Attributes
    ----------
    annotators : Ints
        The annotators who share enough items with others, by their code [A].
    counts : Ints
        The items that each of them shares with others [A].
    """

    def __init__(
        self,
        labels: HumanLabels,
        epsilon: float,
        min_items: int,
        level: float,
        clusters: Ints | None = None,
    ) -> None:
        self.labels = labels
        self.epsilon = epsilon
        self.level = level
        shared = np.flatnonzero(labels.has_several[labels.item_codes])
        codes = labels.annotator_codes[shared]
        names = labels.annotations.annotators
        counts = np.bincount(codes, minlength=len(names))
        self.annotators: Ints = np.flatnonzero(counts >= min_items)
        if not len(self.annotators):
            raise InputError(
                f"no annotator shares {min_items} items with others;"
                f" {names[counts.argmax()]!r} shares most, {counts.max()}",
                f"annotate more items together, or lower {option('min_items')} (a test on fewer"
                " than 30 items is rough)",
                code="too-few-labels",
            )
        self.counts: Ints = counts[self.annotators]
        # The labels of these annotators [R]: the item of each, and the position of its annotator
        # in ``annotators``.
        is_compared = np.isin(codes, self.annotators)
        rows = shared[is_compared]
        self._items = labels.item_codes[rows]
        self._positions = np.searchsorted(self.annotators, codes[is_compared])
        # The item, or the group of items, of each of these labels [R].
        self._units = self._items
        if clusters is not None:
            self._units = clusters[self._items]
        # The mean vector of the item's other labels, and their mean squared length.
        vectors = labels.vectors(labels.shares, absolute=False)
        columns = np.column_stack([vectors, np.square(vectors).sum(axis=1)])
        totals = sums(columns, labels.item_codes, len(labels.counts))
        n_others = (labels.counts[self._items] - 1)[:, None]
        means = (totals[self._items] - columns[rows]) / n_others
        self._mean_of_others = means[:, :-1]
        self._length_of_others = means[:, -1]
        self._human_distances = self._distances_to_others(vectors[rows])

    def _distances_to_others(self, vectors: Floats) -> Floats:
        """Mean squared distance between vectors [R, D] and the other labels of their items [R]."""
        products = np.einsum("rd,rd->r", vectors, self._mean_of_others)
        return np.asarray(np.square(vectors).sum(axis=1) - 2 * products + self._length_of_others)

    def test(self, p: Floats) -> TestedCandidate:
        """The test of a candidate with these probabilities [N, C]."""
        from scipy.stats import false_discovery_control

        single = self.labels.vectors(self.labels.single_answers(p), absolute=False)
        distances = self._distances_to_others(single[self._items])
        as_good = (distances <= self._human_distances + ROUNDING).astype(np.float64)
        human_as_good = (self._human_distances <= distances + ROUNDING).astype(np.float64)
        advantages = self._mean_by_annotator(as_good)
        p_values = self._p_values(human_as_good - as_good)
        corrected = np.asarray(false_discovery_control(p_values, method="by"))
        low, high = self._interval(as_good, advantages)
        return TestedCandidate(
            advantages=advantages,
            human_advantages=self._mean_by_annotator(human_as_good),
            p_values=corrected,
            wins=corrected <= 1 - self.level,
            low=low,
            high=high,
        )

    def _interval(self, as_good: Floats, advantages: Floats) -> tuple[float, float]:
        """Score interval of the mean advantage over items, or groups of items."""
        # The influence of each item on the mean over annotators: annotators share items.
        deviations = as_good - advantages[self._positions]
        weights = deviations / (self.counts[self._positions] * len(self.annotators))
        influences = np.bincount(self._units, weights)
        variance = float(np.square(influences).sum())
        units = len(np.unique(self._units))
        low, high = score_interval(float(advantages.mean()), variance, units, level=self.level)
        return float(low), float(high)

    def _mean_by_annotator(self, values: Floats) -> Floats:
        """The mean of values [R] over the labels of each annotator [A]."""
        return np.asarray(np.bincount(self._positions, values) / self.counts)

    def _p_values(self, gaps: Floats) -> Floats:
        """P-values [A] of one-sided paired t-tests: is each person better by ε or more?

        ``gaps`` [R] are 1 where only the person is closer to the others, −1 where only the
        candidate is, else 0.
        """
        from scipy.special import stdtr  # Student's t

        means = self._mean_by_annotator(gaps)
        # The sum of the deviations of each annotator in each item, or group of items.
        keys = self._positions * (self._units.max() + 1) + self._units
        units, unit_of = np.unique(keys, return_inverse=True)
        sums = np.bincount(unit_of, gaps - means[self._positions])
        unit_positions = units // (self._units.max() + 1)
        unit_counts = np.bincount(unit_positions)
        squares = np.bincount(unit_positions, np.square(sums))
        degrees = np.maximum(unit_counts - 1, 1)
        errors = np.sqrt(squares * unit_counts / degrees) / self.counts
        # Where nothing varies, the sign decides.
        t = (means - self.epsilon) / np.maximum(errors, ROUNDING)
        return np.asarray(stdtr(degrees, t))
