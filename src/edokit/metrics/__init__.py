"""Metrics of predicted probabilities: F1, cross-entropy, distances, calibration, intervals.

They take arrays: p predicted probabilities [N, C], q soft labels [N, C], y hard labels [N] (all
[N, L] for sets of labels), and raise `InputError` where these are no such thing or do not fit
together. Which metrics there are depends on the answer scale (`edokit.scales.Scale`); those of sets
of labels are computed by `compute_metrics` with their scale. Functions called ``*_items`` give one
value per item [N]. Logarithms are natural.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edokit._package import lazy_names
from edokit.metrics.calibration import Reliability, ece, reliability_curve
from edokit.metrics.compute import MetricSums, best_possible, compute_metrics
from edokit.metrics.functions import (
    bs,
    bs_items,
    ce,
    ce_items,
    entropy,
    entropy_items,
    f1,
    f1_items,
    jsd,
    md,
    md_items,
    rps,
    w1,
    w1_items,
)
from edokit.metrics.registry import (
    MAIN_METRICS,
    METRIC,
    Metric,
    headline_metric,
    item_values,
    main_metrics,
    metrics_of,
    search_metrics,
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
