"""Careless annotators: those whose labels look partly random, whatever the item."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import chdtrc

from edokit._types import Bools, Floats, Ints
from edokit.analysis.diagnose.vectors import LabelVectors, peer_agreement, squares, totals
from edokit.analysis.human_labels import nearness_kernels
from edokit.annotations.core import Annotations
from edokit.scales import Scale

# Smallest share of random labels that is reported.
SMALLEST_RATE = 0.1
# Shares of random labels that are tried.
RATES = np.linspace(0.0, 1.0, 21)
# How many labels the shares of all labels count as: numbers that are tried.
_CONCENTRATIONS = 2.0 ** np.arange(-3, 6)
_STRICTNESS_ROUNDS = 10


def find_careless(annotations: Annotations, false_alarms: float = 0.1) -> tuple[Bools, Floats]:
    """Who seems careless [A], and the share of each annotator's labels that seems random [A].

    The labels of an item with three annotators or more are predicted from those of the
    others (Dirichlet-multinomial); on a scale, a label also counts for the points near it, and
    each label of multi-label data is predicted on its own. An annotator is careless if the
    prediction fits clearly better when part of their labels is drawn at random from all classes,
    and better than when they only prefer some classes (strictness), and if they agree with the
    others less than two others do on the same items. Annotators who deviate and agree with each
    other are a group with a view of its own, not careless. If nobody is careless, at most
    ``false_alarms`` annotators are expected to be named.
    """
    scale = annotations.scale
    # Labels as distributions over the classes.
    vectors = LabelVectors.from_annotations(annotations, np.eye(len(annotations.classes)))
    vectors = vectors.take(vectors.per_item >= 3)
    item = vectors.item
    annotator = vectors.annotator
    labels = vectors.values
    n_annotators = vectors.annotators
    rate = np.zeros(n_annotators)
    nobody = np.zeros(n_annotators, dtype=bool)
    tables = _tables(labels, scale)
    if not len(item) or not tables:
        return nobody, rate

    def log_likelihood(table: Floats, probabilities: Floats) -> Floats:
        """The log-likelihood of each annotator's labels [A]."""
        return vectors.sums_by_annotator(np.sum(table * np.log(probabilities), axis=1))

    # The second time, careless labels weigh less in the predictions.
    for _ in range(2):
        weight = (1.0 - rate)[annotator]
        predictions = []
        fits = np.zeros((len(RATES), n_annotators))
        for table, kernels in tables:
            prediction = _predict(item, table, kernels, weight, vectors.items)
            predictions.append(prediction)
            for k, random_share in enumerate(RATES):
                mixed = (1 - random_share) * prediction + random_share / table.shape[1]
                fits[k] += log_likelihood(table, mixed)
        rate = RATES[fits.argmax(axis=0)]
    # Strictness: the odds of each class have a factor for each annotator.
    strict_fit = np.zeros(n_annotators)
    for prediction, (table, _) in zip(predictions, tables, strict=True):
        overall = table.mean(axis=0)
        factors = np.ones((n_annotators, len(overall)))
        sums = vectors.sums_by_annotator(table) + overall
        for _ in range(_STRICTNESS_ROUNDS):
            shifted = prediction * factors[annotator]
            shifted /= shifted.sum(axis=1, keepdims=True)
            factors *= sums / (vectors.sums_by_annotator(shifted) + overall)
        strict_fit += log_likelihood(table, shifted)
    best_fit = fits.max(axis=0)
    p = chance_of_gain(best_fit - fits[0], len(tables))
    active = int((vectors.per_annotator > 0).sum())
    class_vectors = scale.vectors(labels.shape[1], absolute=True)
    vectors = replace(vectors, values=labels @ class_vectors)
    lengths = labels @ squares(class_vectors)
    # The others count by the share of their labels that is not random.
    weight = (1.0 - rate)[annotator]
    agreement, of_others = peer_agreement(item, vectors.values, lengths, weight)
    surplus = vectors.sums_by_annotator(np.nan_to_num(agreement - of_others))
    careless = (p <= false_alarms * min(0.05, 1.0 / active)) & (rate >= SMALLEST_RATE)
    careless &= (best_fit > strict_fit) & (surplus < 0)
    if not 0 < careless.sum() <= active / 2:
        return nobody, rate
    if _is_group(vectors, careless):
        return nobody, rate
    return careless, rate


def chance_of_gain(gain: Floats, tables: int) -> Floats:
    """The p-value of a gain in log-likelihood by a share of random labels (likelihood ratio)."""
    # Half of that of chi-squared, since a share can't be below 0. The labels of a multi-label
    # answer are not independent, so they count as one.
    return np.asarray(0.5 * chdtrc(1, 2.0 * gain / tables))


def _tables(labels: Floats, scale: Scale) -> list[tuple[Floats, list[Floats]]]:
    """Labels as distributions over the classes in use [M, C], and kernels of these classes.

    There is one table, for multi-label data one per label.
    """
    tables = []
    for table in scale.tables(labels):
        is_used = np.asarray(table.any(axis=0))
        if is_used.sum() > 1:
            tables.append((table[:, is_used], nearness_kernels(scale, is_used)))
    return tables


def _predict(
    item: Ints, labels: Floats, kernels: list[Floats], weight: Floats, items: int
) -> Floats:
    """The prediction of each label from the others of its item [M, C].

    The others' labels are smoothed by a kernel and shrunk towards the shares of all labels; kernel
    and shrinkage are those with which the labels are likeliest.
    """
    overall = labels.mean(axis=0)
    weighted = labels * weight[:, None]
    other_totals = totals(item, weighted, items)[item] - weighted
    best = other_totals
    highest = -np.inf
    for kernel, concentration in product(kernels, _CONCENTRATIONS):
        n_labels = other_totals.sum(axis=1) + concentration
        candidate = (other_totals @ kernel + concentration * overall) / n_labels[:, None]
        candidate = np.maximum(candidate, 1e-9)
        likelihood = float(np.sum(weighted * np.log(candidate)))
        if likelihood > highest:
            best = candidate
            highest = likelihood
    return best


def _is_group(vectors: LabelVectors, annotators: Bools) -> bool:
    """Whether these annotators disagree less with each other than with the rest."""
    distances_inside, pairs_inside = _distances(vectors, annotators)
    distances_outside, pairs_outside = _distances(vectors, ~annotators)
    distances, pairs = _distances(vectors, np.ones_like(annotators))
    # Distances are compared with that of the mean pair of the same item.
    mean = distances / np.maximum(pairs, 1.0)
    beyond_inside = float(np.sum(distances_inside - pairs_inside * mean))
    beyond_outside = float(np.sum(distances_outside - pairs_outside * mean))
    n_inside = float(np.sum(pairs_inside))
    n_across = float(np.sum(pairs)) - n_inside - float(np.sum(pairs_outside))
    if not n_inside or not n_across:
        return False
    # All pairs together are exactly as far apart as the mean pair.
    beyond_across = -(beyond_inside + beyond_outside)
    return beyond_inside / n_inside < beyond_across / n_across


def _distances(vectors: LabelVectors, annotators: Bools) -> tuple[Floats, Floats]:
    """Sums of squared distances of pairs of these annotators by item, and numbers of pairs [N]."""
    weight = annotators[vectors.annotator].astype(np.float64)
    n = vectors.sums_by_item(weight)
    values = vectors.values * weight[:, None]
    distances = n * vectors.sums_by_item(squares(values)) - squares(vectors.sums_by_item(values))
    return distances, n * (n - 1) / 2
