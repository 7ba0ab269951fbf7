"""Which items of a fit are worth another label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edokit._types import Floats
from edokit.analysis.fit_items import FitItems
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.labels.statistics import predict_labels
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import Labelled, Review, review


def review_again(fit_items: FitItems, count: int) -> list[Review]:
    """The items of a fit that most need another label, in one measure with new items.

    Parameters
    ----------
    fit_items : FitItems
    count : int
        How many items.

    Returns
    -------
    list of Review
    """
    pooled, labelled = with_labels(fit_items)
    return review(pooled, count, labelled=labelled)


def with_labels(fit_items: FitItems) -> tuple[Pooled, Labelled]:
    """What ensemble and labels together say of each item, and how many labels it has.

    The ensemble's answer counts as many labels as makes the single labels likeliest.
    """
    pooled = fit_items.pooled
    annotations = fit_items.labels
    if set(annotations.classes) < set(pooled.classes):
        annotations = annotations.with_classes(pooled.classes)
    order = [annotations.classes.index(name) for name in pooled.classes]
    labels = HumanLabels(annotations)
    inverse = np.argsort(order)
    strength = predict_labels(labels, pooled.probabilities[:, inverse], habits=False).strength
    soft_labels = np.nan_to_num(labels.soft_labels)[:, order]
    counts = labels.counts[:, None]
    posterior: Floats = strength * pooled.probabilities + counts * soft_labels
    posterior = posterior / (strength + counts)
    return replace(pooled, probabilities=posterior), Labelled(labels.counts, strength)
