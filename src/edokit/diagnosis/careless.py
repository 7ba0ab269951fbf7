"""Careless annotators: those whose labels look partly random, whatever the item."""

from __future__ import annotations

import numpy as np
from scipy import stats

from edokit._types import Bools, Floats, Ints
from edokit.diagnosis.vectors import LabelVectors, products, squares, totals

SMALLEST = 0.1
"""Smallest share of random labels that is reported."""
_RATES = np.linspace(0.0, 1.0, 21)
_CONCENTRATIONS = 2.0 ** np.arange(-3, 6)
_ROUNDS = 10


def find_careless(vectors: LabelVectors, false_alarms: float = 0.1) -> tuple[Bools, Floats]:
    """Who seems careless [A], and the share of each annotator's labels that seems random [A].

    The labels of an item with three annotators or more are predicted from those of the
    others (Dirichlet-multinomial). An annotator is careless if the prediction fits clearly better
    when part of their labels is drawn at random from all classes, and better than when they only
    prefer some classes (strictness), and if they agree with the others less than two others do on
    the same items. Annotators who deviate and agree with each other are a group
    with a view of its own, not careless. ``false_alarms`` are expected if nobody is careless.
    """
    kept = vectors.per_item[vectors.item] >= 3
    item, who, labels = vectors.item[kept], vectors.annotator[kept], vectors.values[kept]
    count = vectors.annotators
    rate, nobody = np.zeros(count), np.zeros(count, dtype=bool)
    if not kept.any():
        return nobody, rate
    # As probabilities of the classes in use [M, C].
    labels = np.hstack([1 - labels, labels]) if labels.shape[1] == 1 else labels * np.sqrt(2.0)
    labels = labels[:, labels.any(axis=0)]
    classes, overall = labels.shape[1], labels.mean(axis=0)

    def by_annotator(numbers: Floats) -> Floats:
        return np.stack([totals(who, column, count) for column in numbers.T], axis=1)

    def fit(probabilities: Floats) -> Floats:
        return totals(who, np.sum(labels * np.log(probabilities), axis=1), count)

    # The second time careless labels weigh less in what the others are predicted from.
    for _ in range(2):
        weight = (1.0 - rate)[who]
        weighed = labels * weight[:, None]
        sums = [totals(item, column, vectors.items)[item] for column in weighed.T]
        others = np.stack(sums, axis=1) - weighed
        tried = [
            np.maximum((others + m * overall) / (others.sum(axis=1) + m)[:, None], 1e-9)
            for m in _CONCENTRATIONS
        ]
        expected = max(tried, key=lambda one: float(np.sum(weighed * np.log(one))))
        fits = np.stack([fit((1 - e) * expected + e / classes) for e in _RATES])
        rate = _RATES[fits.argmax(axis=0)]
    tilt = np.ones((count, classes))
    chosen = by_annotator(labels) + overall
    for _ in range(_ROUNDS):
        strict = expected * tilt[who]
        strict /= strict.sum(axis=1, keepdims=True)
        tilt *= chosen / (by_annotator(strict) + overall)
    best = fits.max(axis=0)
    # Half of the chance, since a share below 0 is no option.
    p = 0.5 * stats.chi2.sf(2.0 * (best - fits[0]), 1)
    active = int((vectors.per_annotator > 0).sum())
    careless = (
        (p <= false_alarms * min(0.05, 1.0 / active)) & (rate >= SMALLEST) & (best > fit(strict))
    ) & (_agreement_beyond_others(item, who, labels, rate, vectors.items) < 0)
    if not 0 < careless.sum() <= active / 2:
        return nobody, rate
    return (nobody if _is_group(vectors, careless) else careless), rate


def _agreement_beyond_others(
    item: Ints, who: Ints, labels: Floats, rate: Floats, items: int
) -> Floats:
    """Each annotator's agreement with the others less that of two others on the same items [A].

    The others count by the share of their labels that is not random.
    """
    weight = (1.0 - rate)[who]

    def of_others(numbers: Floats) -> Floats:
        return totals(item, numbers, items)[item] - numbers

    count = of_others(weight)
    sums = np.stack([of_others(column) for column in (labels * weight[:, None]).T], axis=1)
    pairs = count**2 - of_others(weight**2)
    known = pairs > 1e-9
    agreeing = squares(sums) - of_others(squares(labels) * weight**2)
    beyond = products(labels, sums)[known] / count[known] - agreeing[known] / pairs[known]
    return totals(who[known], beyond, len(rate))


def _is_group(vectors: LabelVectors, chosen: Bools) -> bool:
    """Whether these annotators disagree less with each other than with the rest."""
    distances, pairs = [], []
    for mask in (chosen, ~chosen, np.ones_like(chosen)):
        weight = mask[vectors.annotator].astype(np.float64)
        n, sums = vectors.sums_by_item(weight), vectors.values * weight[:, None]
        totals_ = np.stack([vectors.sums_by_item(column) for column in sums.T], axis=1)
        distances.append(n * vectors.sums_by_item(squares(sums)) - squares(totals_))
        pairs.append(n * (n - 1) / 2)
    # Compared with the mean pair of the same item.
    usual = distances[2] / np.maximum(pairs[2], 1.0)
    beyond = [float(np.sum(d - n * usual)) for d, n in zip(distances, pairs, strict=True)]
    number = [float(np.sum(n)) for n in pairs]
    across = number[2] - number[0] - number[1]
    if not number[0] or not across:
        return False
    return beyond[0] / number[0] < -(beyond[0] + beyond[1]) / across
