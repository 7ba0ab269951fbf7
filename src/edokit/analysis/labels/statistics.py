"""How likely each label is, given the text, the other annotators and how this annotator differs.

The label that annotator a gave item i is predicted from the labels of the others on i, whose shares
are shrunk towards what the text says (the cross-fitted answer of an ensemble), or towards the
shares of all labels where no ensemble is known:

    (s · prior_i + sum of the others' labels) / (s + number of others)

The prior strength s, in labels, is chosen by the likelihood of all labels; on an ordinal scale, so
is the width over which neighbouring points count. This prediction for anybody is then shifted by
how annotator a differs from the others (`PeopleEffects`), learned from other items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels, nearness_kernels
from edokit.annotations.core import Annotations, take_rows
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.people import PeopleEffects
from edokit.rows import sums
from edokit.scales import Scale

STRENGTHS = 2.0 ** np.arange(-4, 10)
"""Prior strengths, in labels, that are tried."""
SMALLEST_PROBABILITY = 1e-6
FOLDS = 5
FEWEST_LABELS = 50
"""With fewer labels, differences between annotators are not learned."""


@dataclass(frozen=True, eq=False)
class LabelProbabilities:
    """Predictions of M single labels.

    Attributes
    ----------
    from_text : ndarray of shape (M, C) or None
        The ensemble's answer to the item of each label; NaN for items without an answer; None
        without an ensemble.
    from_others : ndarray of shape (M, C)
        Shares of the other annotators' labels of the item; NaN where nobody else labelled it.
    n_others : ndarray of int of shape (M,)
        How many other annotators labelled the item.
    anonymous : ndarray of shape (M, C)
        What the text and the other annotators predict for anybody.
    personal : ndarray of shape (M, C)
        What they predict for this annotator.
    strength : float
        How many labels the text, or the shares of all labels, count as; for multi-label data, the
        mean over labels.
    """

    from_text: Floats | None
    from_others: Floats
    n_others: Ints
    anonymous: Floats
    personal: Floats
    strength: float


def predict_labels(
    labels: HumanLabels, pool: Floats | None, *, learn_annotators: bool = True
) -> LabelProbabilities:
    """Predict each label from the others of its item, the pool [N, C], and its annotator.

    Without ``learn_annotators``, ``personal`` is the prediction for anybody.
    """
    scale = labels.scale
    prior = _priors(labels, pool)[labels.item_codes]
    totals = sums(labels.shares, labels.item_codes, len(labels.counts))
    other_counts = totals[labels.item_codes] - labels.shares
    n_others = labels.counts[labels.item_codes] - 1
    prior_tables = scale.tables(prior)
    label_tables = scale.tables(labels.shares)
    others_tables = scale.tables(other_counts, n_others)
    predictions = []
    strengths = []
    for tables in zip(prior_tables, label_tables, others_tables, strict=True):
        prediction, strength = _likeliest_prediction(*tables, scale)
        predictions.append(prediction)
        strengths.append(strength)
    anonymous = scale.from_tables(predictions)
    with np.errstate(invalid="ignore", divide="ignore"):
        from_others = other_counts / np.where(n_others > 0, n_others, np.nan)[:, None]
    from_text = None
    if pool is not None:
        from_text = pool[labels.item_codes]
    personal = anonymous
    if learn_annotators:
        personal = _shift_by_annotator(labels, anonymous)
    return LabelProbabilities(
        from_text=from_text,
        from_others=from_others,
        n_others=n_others,
        anonymous=anonymous,
        personal=personal,
        strength=float(np.mean(strengths)),
    )


def _priors(labels: HumanLabels, pool: Floats | None) -> Floats:
    """What is expected of each item before anybody labels it [N, C]."""
    overall = np.broadcast_to(labels.shares.mean(axis=0), (len(labels.counts), labels.n_classes))
    if pool is None:
        return np.array(overall)
    return np.where(np.isnan(pool), overall, pool)


def _likeliest_prediction(
    prior: Floats, labels: Floats, others: Floats, scale: Scale
) -> tuple[Floats, float]:
    """The prediction [M, C] under which the labels [M, C] are likeliest, and its prior strength.

    ``others`` [M, C] counts the labels of the item's other annotators.
    """
    best = prior
    best_strength = float(STRENGTHS[-1])
    highest = -np.inf
    n_others = others.sum(axis=1, keepdims=True)
    for kernel in nearness_kernels(scale, np.ones(prior.shape[1], dtype=bool)):
        near_others = others @ kernel
        for strength in STRENGTHS:
            prediction = (strength * prior + near_others) / (strength + n_others)
            prediction = np.maximum(prediction, SMALLEST_PROBABILITY)
            likelihood = float((labels * np.log(prediction)).sum())
            if likelihood > highest:
                best = prediction
                best_strength = float(strength)
                highest = likelihood
    return best / best.sum(axis=1, keepdims=True), best_strength


def _shift_by_annotator(labels: HumanLabels, anonymous: Floats) -> Floats:
    """Predictions [M, C] shifted by how each annotator differs, learned from other items."""
    if len(anonymous) < FEWEST_LABELS:
        return anonymous
    pairs = _first_labels(labels.annotations)
    fold_of_label = _item_folds(labels)[labels.item_codes]
    personal = np.array(anonymous)
    names = [str(name) for name in labels.annotations.annotators]
    for fold in range(FOLDS):
        is_held_out = fold_of_label == fold
        learned = np.flatnonzero(~is_held_out)
        if not is_held_out.any() or not len(learned):
            continue
        people = PeopleEffects.fit(anonymous[learned], pairs.take(learned), attributes=())
        annotator_codes = people.person_codes(names)[labels.annotator_codes[is_held_out]]
        personal[is_held_out] = people.answers(anonymous[is_held_out], annotator_codes)
    return personal


def _first_labels(annotations: Annotations) -> Annotations:
    """The first label of each annotator for each item, with a row for each."""
    if annotations.repeated.any():
        is_first = ~annotations.repeated
        annotations = replace(
            annotations,
            item_codes=annotations.item_codes[is_first],
            annotator_codes=annotations.annotator_codes[is_first],
            annotation_columns={},
            label_codes=take_rows(annotations.label_codes, is_first),
            label_probabilities=take_rows(annotations.label_probabilities, is_first),
        )
    return annotations.pairs()


def _item_folds(labels: HumanLabels) -> Ints:
    """The fold of each item [N]; items that belong together are in one."""
    clusters = item_clusters(labels.annotations)
    if clusters is None:
        clusters = np.arange(len(labels.counts))
    numbers = np.unique(clusters, return_inverse=True)[1]
    n_clusters = int(numbers.max()) + 1
    return np.asarray(np.random.default_rng(0).permutation(n_clusters)[numbers] % FOLDS)


def choice_probabilities(shares: Floats, predicted: Floats, scale: Scale) -> Floats:
    """The predicted probability of what annotators chose [M, T].

    A class is one choice (T = 1). For multi-label data, each label is one: it was chosen or left
    out.
    """
    columns = []
    for choice_shares, table in zip(scale.tables(shares), scale.tables(predicted), strict=True):
        columns.append((choice_shares * table).sum(axis=1))
    return np.column_stack(columns)
