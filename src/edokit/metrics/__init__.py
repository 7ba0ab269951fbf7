"""Metrics of predicted probabilities: F1, cross-entropy, distances, calibration, intervals.

They take arrays: p predicted probabilities [N, C], q soft labels [N, C], y hard labels [N], and
raise `InputError` where these are no such thing or do not fit together.
"""

from edokit.metrics.compute import (
    MAIN_METRICS,
    METRICS,
    SEARCH_METRICS,
    MetricSums,
    Reliability,
    compute_metrics,
    ece,
    reliability_curve,
)
from edokit.metrics.resampling import Interval, PairedTest, bootstrap, paired_test
from edokit.metrics.scores import (
    AnnotatorErrors,
    annotator_errors,
    bs,
    bs_items,
    ce,
    ce_items,
    entropy,
    entropy_correlation,
    entropy_items,
    f1,
    f1_items,
    jsd,
    jsd_items,
    macro_f1,
    md,
    md_items,
)

__all__ = [
    "METRICS",
    "MAIN_METRICS",
    "SEARCH_METRICS",
    "compute_metrics",
    "MetricSums",
    "f1",
    "f1_items",
    "macro_f1",
    "ce",
    "ce_items",
    "md",
    "md_items",
    "bs",
    "bs_items",
    "jsd",
    "jsd_items",
    "entropy",
    "entropy_items",
    "entropy_correlation",
    "ece",
    "reliability_curve",
    "Reliability",
    "annotator_errors",
    "AnnotatorErrors",
    "bootstrap",
    "Interval",
    "paired_test",
    "PairedTest",
]
