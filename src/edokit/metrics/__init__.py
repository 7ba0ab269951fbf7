"""F1, cross-entropy, distances, calibration: how well predictions match people's answers.

Bare arrays in: p predicted probabilities [N, C], q soft labels [N, C], y hard labels [N].
"""

from edokit.metrics.calibration import Reliability, ece, reliability_curve
from edokit.metrics.comparison import PairedTest, paired_test
from edokit.metrics.compute import METRICS, MetricSums, compute_metrics
from edokit.metrics.intervals import Interval, bootstrap
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
