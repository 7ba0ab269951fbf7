"""Metrics of predicted probabilities: F1, cross-entropy, distances, calibration, intervals.

They take arrays: p predicted probabilities [N, C], q soft labels [N, C], y hard labels [N] (all
[N, L] for sets of labels), and raise `InputError` where these are no such thing or do not fit
together. Which metrics there are depends on the answer scale (`edokit.scales.Scale`).
"""

from typing import TYPE_CHECKING

from edokit._package import lazy_names
from edokit.metrics.scores import (
    MAIN_METRICS,
    METRIC,
    Metric,
    MetricSums,
    Reliability,
    best_possible,
    bs,
    bs_items,
    ce,
    ce_items,
    compute_metrics,
    ece,
    entropy,
    entropy_items,
    f1,
    f1_items,
    headline_metric,
    item_values,
    jsd,
    main_metrics,
    md,
    md_items,
    metrics_of,
    reliability_curve,
    rps,
    search_metrics,
    w1,
    w1_items,
)

if TYPE_CHECKING:
    from edokit.metrics.resampling import Interval, PairedTest, bootstrap, paired_test

__all__ = [
    "MAIN_METRICS",
    "METRIC",
    "Metric",
    "metrics_of",
    "main_metrics",
    "search_metrics",
    "headline_metric",
    "item_values",
    "compute_metrics",
    "best_possible",
    "MetricSums",
    "f1",
    "f1_items",
    "ce",
    "ce_items",
    "md",
    "md_items",
    "bs",
    "bs_items",
    "jsd",
    "w1",
    "w1_items",
    "rps",
    "entropy",
    "entropy_items",
    "ece",
    "reliability_curve",
    "Reliability",
    "bootstrap",
    "Interval",
    "paired_test",
    "PairedTest",
]
# What a fit does without.
__getattr__ = lazy_names(
    __name__, {"resampling": ("Interval", "PairedTest", "bootstrap", "paired_test")}
)
