"""Careless annotators: those whose labels look partly random, whatever the item."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import chdtrc

from edokit._types import Bools, Floats, Ints
from edokit.analysis.diagnose.vectors import LabelVectors, peer_agreement, squares, totals
from edokit.annotations.core import Annotations
from edokit.scales import Scale

# Smallest share of random labels that is reported.
SMALLEST = 0.1
RATES = np.linspace(0.0, 1.0, 21)
_CONCENTRATIONS = 2.0 ** np.arange(-3, 6)
# Shares of a scale over which nearness falls to a third.
_WIDTHS = (0.05, 0.1, 0.2, 0.4)
_ROUNDS = 10


def find_careless(annotations: Annotations, false_alarms: float = 0.1) -> tuple[Bools, Floats]:
    """Who seems careless [A], and the share of each annotator's labels that seems random [A].

    The labels of an item with three annotators or more are predicted from those of the
    others (Dirichlet-multinomial); on a scale, a label also counts for the points near it, and
    each label of multi-label data is predicted on its own. An annotator is careless if the
    prediction fits clearly better when part of their labels is drawn at random from all classes,
    and better than when they only prefer some classes (strictness), and if they agree with the
    others less than two others do on the same items. Annotators who deviate and agree with each
    other are a group with a view of its own, not careless. ``false_alarms`` are expected if nobody
    is careless.
    """
    scale = annotations.scale
    vectors = LabelVectors.from_annotations(annotations, np.eye(len(annotations.classes)))
    vectors = vectors.take(vectors.per_item >= 3)
    item = vectors.item
    annotator = vectors.annotator
    labels = vectors.values
    count = vectors.annotators
    rate = np.zeros(count)
    nobody = np.zeros(count, dtype=bool)
    tables = _tables(labels, scale)
    if not len(item) or not tables:
        return nobody, rate

    def fit(labels: Floats, probabilities: Floats) -> Floats:
        return vectors.sums_by_annotator(np.sum(labels * np.log(probabilities), axis=1))

    # The second time careless labels weigh less in what the others are predicted from.
    for _ in range(2):
        weight = (1.0 - rate)[annotator]
        expected = [_expected(item, table, near, weight, vectors.items) for table, near in tables]
        fits = np.zeros((len(RATES), count))
        for answers, (table, _) in zip(expected, tables, strict=True):
            fits += [fit(table, (1 - e) * answers + e / table.shape[1]) for e in RATES]
        rate = RATES[fits.argmax(axis=0)]
    strictness = np.zeros(count)
    for answers, (table, _) in zip(expected, tables, strict=True):
        overall = table.mean(axis=0)
        tilt = np.ones((count, len(overall)))
        sums = vectors.sums_by_annotator(table) + overall
        for _ in range(_ROUNDS):
            tilted = answers * tilt[annotator]
            tilted /= tilted.sum(axis=1, keepdims=True)
            tilt *= sums / (vectors.sums_by_annotator(tilted) + overall)
        strictness += fit(table, tilted)
    best = fits.max(axis=0)
    p = chance_of_gain(best - fits[0], len(tables))
    active = int((vectors.per_annotator > 0).sum())
    absolute = scale.vectors(labels.shape[1], absolute=True)
    vectors = replace(vectors, values=labels @ absolute)
    # The others count by the share of their labels that is not random.
    lengths = labels @ squares(absolute)
    weight = (1.0 - rate)[annotator]
    agreement, by_others = peer_agreement(item, vectors.values, lengths, weight)
    beyond = vectors.sums_by_annotator(np.nan_to_num(agreement - by_others))
    careless = (p <= false_alarms * min(0.05, 1.0 / active)) & (rate >= SMALLEST)
    careless &= (best > strictness) & (beyond < 0)
    if not 0 < careless.sum() <= active / 2:
        return nobody, rate
    if _is_group(vectors, careless):
        return nobody, rate
    return careless, rate


def chance_of_gain(gain: Floats, tables: int) -> Floats:
    """The chance that a share of random labels raises the likelihood this much if there is none."""
    # Half of the chance, since a share can't be below 0. The labels of a multi-label answer are
    # not independent, so they count as one.
    return np.asarray(0.5 * chdtrc(1, 2.0 * gain / tables))


def _tables(labels: Floats, scale: Scale) -> list[tuple[Floats, list[Floats]]]:
    """Probabilities of the classes in use [M, C], and how near classes are to one another.

    There is one table, for multi-label data one per label; the kernels [C, C] of each let more and
    more of the scale count as near.
    """
    tables = []
    for table in scale.tables(labels):
        present = table.any(axis=0)
        near = [np.eye(int(present.sum()))]
        if scale.span is not None:
            place = np.array(scale.positions)[present] / scale.span
            distance = np.abs(place[:, None] - place)
            kernels = [np.exp(-distance / width) for width in _WIDTHS]
            near += [kernel / kernel.sum(axis=1, keepdims=True) for kernel in kernels]
        if present.sum() > 1:
            tables.append((table[:, present], near))
    return tables


def _expected(item: Ints, labels: Floats, near: list[Floats], weight: Floats, items: int) -> Floats:
    """What the others' labels of the item predict [M, C], as close and sure as fits best."""
    overall = labels.mean(axis=0)
    weighed = labels * weight[:, None]
    peers = totals(item, weighed, items)[item] - weighed
    best = peers
    highest = -np.inf
    for kernel, m in product(near, _CONCENTRATIONS):
        candidate = (peers @ kernel + m * overall) / (peers.sum(axis=1) + m)[:, None]
        candidate = np.maximum(candidate, 1e-9)
        likelihood = float(np.sum(weighed * np.log(candidate)))
        if likelihood > highest:
            best = candidate
            highest = likelihood
    return best


def _is_group(vectors: LabelVectors, annotators: Bools) -> bool:
    """Whether these annotators disagree less with each other than with the rest."""
    distances = []
    pairs = []
    for mask in (annotators, ~annotators, np.ones_like(annotators)):
        weight = mask[vectors.annotator].astype(np.float64)
        n = vectors.sums_by_item(weight)
        sums = vectors.values * weight[:, None]
        item_sums = vectors.sums_by_item(sums)
        distances.append(n * vectors.sums_by_item(squares(sums)) - squares(item_sums))
        pairs.append(n * (n - 1) / 2)
    # Compared with the mean pair of the same item.
    mean = distances[2] / np.maximum(pairs[2], 1.0)
    beyond = [float(np.sum(d - n * mean)) for d, n in zip(distances, pairs, strict=True)]
    number = [float(np.sum(n)) for n in pairs]
    across = number[2] - number[0] - number[1]
    if not number[0] or not across:
        return False
    return beyond[0] / number[0] < -(beyond[0] + beyond[1]) / across
