"""The mean of a sample and its variance; items may be clustered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit._types import Floats, Ints


@dataclass(frozen=True)
class MeanEstimate:
    """An estimated mean, its variance, and the number of independent values."""

    mean: float
    variance: float
    size: int


def sample_mean(values: Floats, clusters: Ints | None = None) -> MeanEstimate:
    """The mean of values [n]; items with the same cluster number [n] count as one.

    Examples
    --------
    >>> sample_mean(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
    MeanEstimate(mean=2.0, variance=1.0, size=2)
    """
    mean = float(values.mean())
    totals = cluster_totals((values - mean) / len(values), clusters)
    size = len(totals)
    variance = float(np.sum(totals**2)) * size / max(size - 1, 1)
    return MeanEstimate(mean, variance, size)


def cluster_totals(values: Floats, clusters: Ints | None) -> Floats:
    """The sum of the values [n] of each cluster."""
    if clusters is None:
        return values
    _, codes = np.unique(clusters, return_inverse=True)
    return np.asarray(np.bincount(codes, weights=values), dtype=np.float64)
