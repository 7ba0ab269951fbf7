"""Metrics of predicted probabilities: F1, cross-entropy, distances, calibration, intervals.

Arrays are p, predicted probabilities [N, C], q, soft labels [N, C], and y, hard labels [N].
`compute_metrics` and `bootstrap` compute the metrics of any answer scale (`edokit.scales.Scale`);
for multi-label data, their arrays are [N, L]. Functions of one metric, such as `ce`, are for scales
with one class per answer; those called ``*_items`` return one value per item [N]. All of them raise
`InputError` for invalid arrays and different shapes. Logarithms are natural. `register_metric` adds
a metric.
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
    register_metric,
    search_metrics,
)

if TYPE_CHECKING:
    from edokit.metrics.resampling import Interval, PairedTest, bootstrap, paired_test

__all__ = [
    "MAIN_METRICS",
    "METRIC",
    "Metric",
    "register_metric",
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
# Loaded when they are first used: a fit does not need them.
__getattr__ = lazy_names(
    __name__, {"resampling": ("Interval", "PairedTest", "bootstrap", "paired_test")}
)
