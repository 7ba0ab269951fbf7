"""Which items of a fit most need another label (`edo predict --again`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edokit._types import Floats
from edokit.analysis.fit_items import FitItems
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.labels.statistics import predict_labels
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import ExistingLabels, Review, review


def review_again(fit_items: FitItems, count: int) -> list[Review]:
    """The items of a fit that most need another label, by the same measure as new items.

    Parameters
    ----------
    fit_items : FitItems
    count : int
        How many items.

    Returns
    -------
    list of Review
    """
    pooled, labelled = update_by_labels(fit_items)
    return review(pooled, count, labelled=labelled)


def update_by_labels(fit_items: FitItems) -> tuple[Pooled, ExistingLabels]:
    """The ensemble's answers, updated by the labels of each item, and how many labels it has.

    An answer counts as the number of labels that makes the single labels likeliest.
    """
    pooled = fit_items.pooled
    annotations, answers = fit_items.labels_and_answers()
    labels = HumanLabels(annotations)
    strength = predict_labels(labels, answers, learn_annotators=False).strength
    order = [annotations.classes.index(name) for name in pooled.classes]
    soft_labels = np.nan_to_num(labels.soft_labels)[:, order]
    counts = labels.counts[:, None]
    posterior: Floats = strength * pooled.probabilities + counts * soft_labels
    posterior = posterior / (strength + counts)
    return replace(pooled, probabilities=posterior), ExistingLabels(labels.counts, strength)
