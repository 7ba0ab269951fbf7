"""The smallest difference between two models that shows, by annotators and items."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.metrics import item_values, main_metrics
from edokit.metrics.resampling import resampled_means


def difference_spreads(
    labels: HumanLabels,
    model: Floats,
    other_model: Floats,
    counts: Sequence[int],
    samples: int,
    item_groups: Ints | None = None,
) -> dict[str, Floats]:
    """By metric, the standard deviation over items of the difference of two models [N, C].

    There is one for each resample of the pilot and each number of annotators [samples, counts].
    The variance is *between + within / annotators* (components of variance of a one-way
    random-effects model); this is exact for metrics that are linear in the soft label. Both parts
    follow from the variance with one label per item and that with all of them. The resamples are
    always the same, so that recommendations do not depend on a seed; they keep items together that
    have the same number in ``item_groups`` [N].
    """
    scale = labels.scale
    several = labels.has_several
    codes = labels.item_codes
    clusters = None
    if item_groups is not None:
        clusters = np.unique(item_groups[several], return_inverse=True)[1]
    hard_labels = scale.hard(labels.soft_labels)
    single_hard_labels = scale.hard(labels.shares)
    inverse_count = float((1 / labels.counts[several]).mean())
    spreads = {}
    for name, value in item_values(scale).items():
        if name not in main_metrics(scale):
            continue
        # Differences by item, with all of its labels, and by label.
        losses = value(model, labels.soft_labels, hard_labels)
        other_losses = value(other_model, labels.soft_labels, hard_labels)
        gaps = (losses - other_losses)[several]
        single_losses = value(model[codes], labels.shares, single_hard_labels)
        other_single_losses = value(other_model[codes], labels.shares, single_hard_labels)
        single_gaps = single_losses - other_single_losses
        columns = [
            labels.mean_by_item(single_gaps)[several],
            labels.mean_by_item(single_gaps**2)[several],
            gaps,
            gaps**2,
        ]
        rng = np.random.default_rng(0)
        single_mean, single_square, mean, square = resampled_means(columns, samples, rng, clusters)
        variance_with_one = single_square - single_mean**2
        variance_with_all = square - mean**2
        within = np.maximum(variance_with_one - variance_with_all, 0) / (1 - inverse_count)
        between = np.maximum(variance_with_one - within, 0)
        spreads[name] = np.sqrt(between[:, None] + within[:, None] / np.array(counts))
    return spreads


def detectable(spreads: Floats, items: Sequence[int], level: float, power: float) -> Floats:
    """The smallest difference that a two-sided test shows with this power [samples, counts].

    It is (z_level + z_power) standard errors of the mean over these numbers of items [counts].
    """
    normal = NormalDist()
    factor = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    return np.asarray(spreads * (factor / np.sqrt(items)))
