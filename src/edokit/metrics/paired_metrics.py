"""Paired tests of metrics that are not means over items, such as macro-F1 and the ECE.

The answers of two methods are exchanged on random items; if the methods are equally good, this does
not change the distribution of the difference. For a mean over items, this is the sign-flip test.
Intervals resample items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from edokit._types import Counts, Floats, HardLabels, Ints
from edokit.metrics.compute import entropy_correlation, item_entropies
from edokit.metrics.formulas import mid_ranks
from edokit.metrics.mean_intervals import FEWEST_UNITS
from edokit.metrics.registry import METRIC, Combine
from edokit.metrics.resampling import (
    PairedTest,
    Resampling,
    flip_rows,
    gapless_codes,
    percentile_ends,
    resamples,
    units_with,
)
from edokit.scales import Scale

DifferenceFunction: TypeAlias = Callable[[Floats], Floats]
"""The difference of two methods' metrics [B], as a function of rows of G numbers, one per unit:
how often a resample draws each unit, or whether its answers are exchanged."""


def paired_metric_test(
    metric: str,
    first: Floats,
    second: Floats,
    q: Floats,
    y: HardLabels,
    scale: Scale,
    resampling: Resampling,
) -> PairedTest | None:
    """Test whether two methods differ in a metric that is not a mean over items.

    Parameters
    ----------
    metric : str
        Name of the metric.
    first, second : array of shape [N, C], or [N, L] for multi-label data
        Checked answers of the two methods. For a metric of hard labels, these are indicators of the
        predicted classes or labels, 0 or 1.
    q : array of the same shape
        Checked soft labels.
    y : array of int of shape [N], or [N, L] for multi-label data
        Checked hard labels.
    scale : Scale
        The answer scale.
    resampling : Resampling
        How items are resampled. The test exchanges answers twice as often as it says ``samples``.

    Returns
    -------
    PairedTest or None
        None if the metric can't be tested or is undefined for one of the methods, if there are
        fewer than ten items (or clusters of items), or, for macro-F1, if a class is the hard label
        of fewer than ten.
    """
    clusters = gapless_codes(resampling.clusters)
    if clusters is None:
        clusters = np.arange(len(first))
    n_units = int(clusters.max()) + 1
    if n_units < FEWEST_UNITS:
        return None
    if metric == "macro_f1":
        has_class = scale.indicators(y, q.shape[1])
        if min(units_with(column, clusters) for column in has_class.T) < FEWEST_UNITS:
            return None
    formula = METRIC[metric].formula
    if formula is None:
        # Values relative to all items stay those of the data in resamples, as in `bootstrap`.
        formula = METRIC[metric].relative
    if metric == "entropy_correlation":
        resampled_difference, exchanged_difference = _entropy_differences(
            first, second, q, scale, clusters
        )
    elif formula is None:
        return None
    else:
        resampled_difference, exchanged_difference = _summed_differences(
            METRIC[metric].combine,
            np.asarray(formula(first, q, y, scale)),
            np.asarray(formula(second, q, y, scale)),
            clusters,
        )

    difference = float(resampled_difference(np.ones((1, n_units)))[0])
    if np.isnan(difference):
        return None
    rng = np.random.default_rng(resampling.random_state)
    p_value = _exchange_p_value(exchanged_difference, n_units, 2 * resampling.samples, rng)
    differences: list[Floats] = []
    for counts in resamples(n_units, resampling.samples, rng):
        differences.append(resampled_difference(counts.astype(np.float64)))
    low, high = percentile_ends(np.concatenate(differences), resampling.level, n_units)
    return PairedTest(difference, low, high, p_value, len(first))


def _exchange_p_value(
    exchanged_difference: DifferenceFunction, n_units: int, exchanges: int, rng: np.random.Generator
) -> float:
    """The p-value: the share of exchanges whose difference is at least as large as the observed."""
    observed = abs(float(exchanged_difference(np.zeros((1, n_units)))[0]))
    extreme_exchanges = 0
    for flips in flip_rows(n_units, exchanges, rng):
        differences = np.abs(exchanged_difference(flips.astype(np.float64)))
        # Differences that differ by rounding, and undefined ones, count as equally extreme.
        is_smaller = differences < observed - 1e-9
        extreme_exchanges += int((~is_smaller).sum())
    return (1 + extreme_exchanges) / (1 + exchanges)


def _unit_sums(parts: Floats, clusters: Ints) -> Floats:
    """The sums of a metric's parts [N] or [N, m] over the rows of each unit [G, m + 1].

    The last column is the number of rows of each unit.
    """
    table = np.column_stack([parts, np.ones(len(parts))])
    sums = np.zeros((int(clusters.max()) + 1, table.shape[1]))
    np.add.at(sums, clusters, table)
    return sums


def _summed_differences(
    combine: Combine, first_parts: Floats, second_parts: Floats, clusters: Ints
) -> tuple[DifferenceFunction, DifferenceFunction]:
    """The differences of a metric of sums, from its parts for each method [N] or [N, m]."""
    first_sums = _unit_sums(first_parts, clusters)
    second_sums = _unit_sums(second_parts, clusters)

    def metric_values(sums: Floats) -> Floats:
        """The metric of each row of sums [B, m + 1]."""
        parts = sums[:, :-1]
        if first_parts.ndim == 1:
            parts = sums[:, 0]
        return np.asarray(combine(parts, sums[:, -1]), dtype=np.float64)

    def resampled_difference(counts: Floats) -> Floats:
        return metric_values(counts @ first_sums) - metric_values(counts @ second_sums)

    def exchanged_difference(flips: Floats) -> Floats:
        gain = flips @ (second_sums - first_sums)
        first_totals = first_sums.sum(axis=0) + gain
        second_totals = second_sums.sum(axis=0) - gain
        return metric_values(first_totals) - metric_values(second_totals)

    return resampled_difference, exchanged_difference


def _entropy_differences(
    first: Floats, second: Floats, q: Floats, scale: Scale, clusters: Ints
) -> tuple[DifferenceFunction, DifferenceFunction]:
    """The differences of the entropy correlation, whose ranks change with the items drawn."""
    first_correlation = entropy_correlation(first, q, scale)
    second_correlation = entropy_correlation(second, q, scale)
    first_entropies = item_entropies(first, scale)
    second_entropies = item_entropies(second, scale)
    soft_entropies = item_entropies(q, scale)
    soft_ranks = mid_ranks(soft_entropies[None, :])[0]

    def resampled_difference(counts: Floats) -> Floats:
        item_counts: Counts = counts.astype(np.uint16)[:, clusters]
        return first_correlation(item_counts) - second_correlation(item_counts)

    def exchanged_difference(flips: Floats) -> Floats:
        is_exchanged = flips[:, clusters] > 0
        first_ranks = mid_ranks(np.where(is_exchanged, second_entropies, first_entropies))
        second_ranks = mid_ranks(np.where(is_exchanged, first_entropies, second_entropies))
        return _correlation(first_ranks, soft_ranks) - _correlation(second_ranks, soft_ranks)

    return resampled_difference, exchanged_difference


def _correlation(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation of each row of x [B, N] with y [N]; NaN if it is undefined."""
    centred_x = x - x.mean(axis=1, keepdims=True)
    centred_y = y - y.mean()
    spread = (centred_x**2).sum(axis=1) * (centred_y**2).sum()
    return np.asarray((centred_x @ centred_y) / np.sqrt(np.where(spread > 0, spread, np.nan)))
