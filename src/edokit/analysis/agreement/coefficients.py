"""Coefficients of agreement on arrays: counts of labels by item, and pairs of labels.

Each is a smooth function of sums over items, so that each item's influence on it is known in closed
form (the infinitesimal jackknife). The influences of items that belong together add up, and an
interval follows from them as for a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from edokit._types import Bools, Codes, Floats, Ints
from edokit.metrics import Interval
from edokit.metrics.mean_intervals import FEWEST_UNITS, UnitDeviations

WeightKind = Literal["nominal", "linear", "quadratic"]
WEIGHT_KINDS: tuple[WeightKind, ...] = ("nominal", "linear", "quadratic")
# Differences that are rounding alone.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class CoefficientEstimate:
    """A coefficient, and what each item adds to it.

    Attributes
    ----------
    value : float
    influence : ndarray of shape [N]
        By item; they sum to 0, and the variance of their mean is that of the coefficient.
    is_used : ndarray of bool of shape [N]
        Which items the coefficient is computed from.
    is_counted : ndarray of bool of shape [N]
        Which items count: an interval needs ten of them. For kappa and alpha, these are the items
        with a label other than the commonest: if there are few, intervals would be too short.
    """

    value: float
    influence: Floats
    is_used: Bools
    is_counted: Bools

    def interval(self, level: float, clusters: Ints | None) -> Interval:
        """The coefficient with its interval over items, or groups of items by ``clusters`` [N].

        The interval is missing if fewer than ten items or groups count, and if all items are alike.
        """
        groups = None
        units = int(self.is_counted.sum())
        if clusters is not None:
            groups = np.unique(clusters[self.is_used], return_inverse=True)[1]
            units = len(np.unique(clusters[self.is_counted]))
        influence = self.influence[self.is_used] * self.is_used.mean()
        if units < FEWEST_UNITS or np.abs(influence).max() < ROUNDING:
            return Interval(self.value, None, None)
        low, high = UnitDeviations.from_values(self.value + influence, groups).ends(level)
        return Interval(self.value, max(low, -1.0), min(high, 1.0))


def interval_or_unknown(
    estimate: CoefficientEstimate | None, level: float, clusters: Ints | None
) -> Interval:
    """A coefficient with its interval; all unknown where it is undefined."""
    if estimate is None:
        return Interval(None, None, None)
    return estimate.interval(level, clusters)


def mean_estimate(estimates: Sequence[CoefficientEstimate]) -> CoefficientEstimate | None:
    """The mean of several coefficients of the same items; None for none."""
    if not estimates:
        return None
    return CoefficientEstimate(
        value=float(np.mean([estimate.value for estimate in estimates])),
        influence=np.mean([estimate.influence for estimate in estimates], axis=0),
        is_used=np.any([estimate.is_used for estimate in estimates], axis=0),
        is_counted=np.any([estimate.is_counted for estimate in estimates], axis=0),
    )


def class_weights(kind: WeightKind, positions: Floats) -> Floats:
    """How much two classes at these positions [C] agree, from 0 to 1 [C, C]."""
    if kind == "nominal" or len(positions) < 2:
        return np.eye(len(positions))
    distances = np.abs(positions[:, None] - positions) / np.ptp(positions)
    if kind == "linear":
        return np.asarray(1.0 - distances)
    return np.asarray(1.0 - distances**2)


def item_agreement(counts: Floats, weights: Floats) -> Floats:
    """How much two labels of an item agree [N]; NaN where there are fewer than two."""
    labels = counts.sum(axis=1)
    agreeing = (counts * (counts @ weights - 1.0)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(labels >= 2, agreeing / (labels * (labels - 1.0)), np.nan)


def observed_agreement(counts: Floats, weights: Floats) -> CoefficientEstimate | None:
    """The mean agreement of two labels of an item; None where no item has two."""
    agreement = item_agreement(counts, weights)
    has_several = ~np.isnan(agreement)
    if not has_several.any():
        return None
    value = float(agreement[has_several].mean())
    influence = np.where(has_several, agreement - value, 0.0) / has_several.mean()
    return CoefficientEstimate(value, influence, has_several, has_several)


def fleiss_kappa(counts: Floats, weights: Floats) -> CoefficientEstimate | None:
    """Fleiss' kappa for any number of labels per item (Gwet 2014), counts [N, C].

    None where no item has two labels, or all labels are the same.
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean_shares = shares.mean(axis=0)
    agreement_of_class = weights @ mean_shares
    chance = float(mean_shares @ agreement_of_class)
    influence = 2.0 * (shares - mean_shares) @ agreement_of_class
    estimate = _beyond_chance(observed_agreement(counts, weights), chance, influence)
    if estimate is None:
        return None
    return replace(estimate, is_counted=estimate.is_counted & _is_varied(counts))


def gwet_ac(counts: Floats, weights: Floats) -> CoefficientEstimate | None:
    """Gwet's AC1, with weights of ordered classes AC2, counts [N, C].

    None where no item has two labels, or there is a single class to choose.
    """
    classes = counts.shape[1]
    if classes < 2:
        return None
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean_shares = shares.mean(axis=0)
    scale = weights.sum() / (classes * (classes - 1))
    chance = float(scale * (mean_shares * (1.0 - mean_shares)).sum())
    influence = scale * (shares - mean_shares) @ (1.0 - 2.0 * mean_shares)
    return _beyond_chance(observed_agreement(counts, weights), chance, influence)


def _beyond_chance(
    observed: CoefficientEstimate | None, chance: float, chance_influence: Floats
) -> CoefficientEstimate | None:
    """(observed − chance) / (1 − chance), both functions of the same items."""
    if observed is None or 1.0 - chance < ROUNDING:
        return None
    value = (observed.value - chance) / (1.0 - chance)
    influence = (observed.influence - (1.0 - value) * chance_influence) / (1.0 - chance)
    return CoefficientEstimate(
        value, influence, np.ones(len(influence), dtype=bool), observed.is_counted
    )


def _is_varied(counts: Floats) -> Bools:
    """Whether an item has a label other than the commonest of all items [N]."""
    commonest = counts.sum(axis=0).argmax()
    return np.asarray(counts[:, commonest] < counts.sum(axis=1))


def krippendorff_alpha(counts: Floats, weights: Floats) -> CoefficientEstimate | None:
    """Krippendorff's alpha: one minus the observed disagreement over that expected by chance.

    Parameters
    ----------
    counts : array of shape (N, C)
        How many annotators gave item i the label c.
    weights : array of shape (C, C)
        How much two labels agree: 1 for the same one.

    Returns
    -------
    CoefficientEstimate or None
        None where all labels of the items with two labels or more are the same.
    """
    has_several = counts.sum(axis=1) >= 2
    # Items with one label form no pair.
    counts = counts * has_several[:, None]
    labels = counts.sum(axis=1)
    distances = 1.0 - weights
    # Each item weighs as many labels as it has.
    disagreeing = (counts * (counts @ distances)).sum(axis=1) / np.maximum(labels - 1.0, 1.0)
    totals = counts.sum(axis=0)
    chance_pairs = float(totals @ distances @ totals)
    if chance_pairs < ROUNDING:
        return None
    n_others = totals.sum() - 1.0
    expected = chance_pairs / n_others
    observed = float(disagreeing.sum())
    # What an item adds to ``expected``, by its pairs with all labels and by the number of labels.
    by_pairs = 2.0 * counts @ (distances @ totals) / n_others
    expected_change = by_pairs - expected / n_others * labels
    change = disagreeing / expected - observed / expected**2 * expected_change
    # The changes would sum to 0, were it not for the 1 that is subtracted in ``n_others``.
    change -= change[has_several].mean() * has_several
    influence = -len(counts) * change
    return CoefficientEstimate(
        1.0 - observed / expected, influence, has_several, has_several & _is_varied(counts)
    )


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """Pairs of labels of one item by two annotators, and the pairs of annotators who gave them.

    Attributes
    ----------
    first_labels, second_labels : ndarray of int of shape [E]
        The two labels of each pair, as positions among all labels.
    annotator_pair : ndarray of int of shape [E]
        The pair of annotators of each pair of labels, in ascending order.
    first_annotators, second_annotators : ndarray of int of shape [P]
        The annotators of each pair of annotators.
    shared : ndarray of int of shape [P]
        How many items both annotators of a pair labelled.
    """

    first_labels: Ints
    second_labels: Ints
    annotator_pair: Ints
    first_annotators: Ints
    second_annotators: Ints
    shared: Ints

    @classmethod
    def from_labels(cls, item_codes: Ints, annotator_codes: Codes, fewest: int) -> LabelPairs:
        """All pairs of labels of an item, by annotators who share at least ``fewest`` items."""
        order = np.lexsort((annotator_codes, item_codes))
        per_item = np.bincount(item_codes)
        starts = np.cumsum(per_item) - per_item
        first_parts = [np.zeros(0, dtype=np.int64)]
        second_parts = [np.zeros(0, dtype=np.int64)]
        for count in np.unique(per_item[per_item >= 2]):
            labels = order[starts[per_item == count][:, None] + np.arange(count)]
            a, b = np.triu_indices(count, k=1)
            first_parts.append(labels[:, a].ravel())
            second_parts.append(labels[:, b].ravel())
        first_labels = np.concatenate(first_parts)
        second_labels = np.concatenate(second_parts)
        annotators = int(annotator_codes.max(initial=0)) + 1
        first_annotator = annotator_codes[first_labels].astype(np.int64)
        keys = first_annotator * annotators + annotator_codes[second_labels]
        pairs, codes, shared = np.unique(keys, return_inverse=True, return_counts=True)
        is_kept = shared >= fewest
        by_pair = np.argsort(codes, kind="stable")
        by_pair = by_pair[is_kept[codes[by_pair]]]
        shared = shared[is_kept]
        return cls(
            first_labels=first_labels[by_pair],
            second_labels=second_labels[by_pair],
            annotator_pair=np.repeat(np.arange(len(shared)), shared),
            first_annotators=pairs[is_kept] // annotators,
            second_annotators=pairs[is_kept] % annotators,
            shared=shared,
        )

    def by_annotator(self) -> dict[int, Ints]:
        """The pairs of annotators in which each annotator is."""
        annotators = np.concatenate([self.first_annotators, self.second_annotators])
        pairs = np.tile(np.arange(len(self.shared)), 2)
        order = np.argsort(annotators, kind="stable")
        names, starts = np.unique(annotators[order], return_index=True)
        groups = np.split(pairs[order], starts[1:])
        return dict(zip(names.tolist(), groups, strict=True))

    def label_pairs(self, annotator_pairs: Ints) -> Ints:
        """The positions of the pairs of labels [E] that these pairs of annotators gave."""
        ends = np.cumsum(self.shared)
        starts = ends - self.shared
        parts = [np.arange(starts[pair], ends[pair]) for pair in annotator_pairs]
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class PairKappas:
    """Cohen's kappa of pairs of annotators, and the influence of single pairs of labels.

    Attributes
    ----------
    values : ndarray of shape [P]
        NaN where both annotators gave all shared items the same one label.
    changes : ndarray of shape [E]
        The influence of each pair of labels on the kappa of its pair of annotators; they sum to 0.
    is_varied : ndarray of bool of shape [E]
        Whether at least one of the two labels is not the commonest of all.
    """

    values: Floats
    changes: Floats
    is_varied: Bools


def cohen_kappas(
    first_codes: Ints, second_codes: Ints, annotator_pair: Ints, pairs: int, weights: Floats
) -> PairKappas:
    """Cohen's kappa of each of P pairs of annotators, from E pairs of class codes."""
    classes = len(weights)
    n = np.bincount(annotator_pair, minlength=pairs).astype(np.float64)
    agreement = weights[first_codes, second_codes]
    cells = annotator_pair * classes
    first_counts = np.bincount(cells + first_codes, minlength=pairs * classes).reshape(
        pairs, classes
    )
    second_counts = np.bincount(cells + second_codes, minlength=pairs * classes).reshape(
        pairs, classes
    )
    first_shares = first_counts / n[:, None]
    second_shares = second_counts / n[:, None]
    observed = np.bincount(annotator_pair, weights=agreement, minlength=pairs) / n
    # The agreement of each class of one annotator with what the other says by chance.
    with_second = second_shares @ weights
    with_first = first_shares @ weights
    chance = (first_shares * with_second).sum(axis=1)
    beyond = np.where(1.0 - chance < ROUNDING, np.nan, 1.0 - chance)
    values = (observed - chance) / beyond
    chance_change = (
        with_second[annotator_pair, first_codes] + with_first[annotator_pair, second_codes]
    )
    chance_change -= 2.0 * chance[annotator_pair]
    changes = agreement - observed[annotator_pair]
    changes -= (1.0 - values[annotator_pair]) * chance_change
    changes /= n[annotator_pair] * beyond[annotator_pair]
    commonest = (first_counts + second_counts).sum(axis=0).argmax()
    return PairKappas(values, changes, (first_codes != commonest) | (second_codes != commonest))


def mean_kappa(
    kappas: PairKappas, pairs: LabelPairs, annotator_pairs: Ints, item_codes: Ints, items: int
) -> CoefficientEstimate | None:
    """The mean kappa of some pairs of annotators, of those for which it is defined.

    ``item_codes`` [E] are the items of the pairs of labels.
    """
    annotator_pairs = annotator_pairs[~np.isnan(kappas.values[annotator_pairs])]
    if not len(annotator_pairs):
        return None
    rows = pairs.label_pairs(annotator_pairs)
    row_items = item_codes[rows]
    changes = np.bincount(row_items, weights=kappas.changes[rows], minlength=items)
    is_used = np.bincount(row_items, minlength=items) > 0
    is_counted = np.bincount(row_items[kappas.is_varied[rows]], minlength=items) > 0
    value = float(kappas.values[annotator_pairs].mean())
    influence = np.asarray(changes * (items / len(annotator_pairs)), dtype=np.float64)
    return CoefficientEstimate(value, influence, is_used, is_counted)
