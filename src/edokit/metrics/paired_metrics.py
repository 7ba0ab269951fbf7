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
from edokit.metrics.compute import entropy_ranks, floor_items
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

Differences: TypeAlias = Callable[[Floats], Floats]
"""The difference of two methods' metrics [B] as a function of counts of units, or of exchanges
[B, G]."""


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
    first, second : array of shape [N, C]
        Checked answers of the methods; for a metric of hard labels, 0 or 1.
    q : array of shape [N, C]
    y : array of int of shape [N]
    scale : Scale
    resampling : Resampling
        With twice as many exchanges as ``samples``.

    Returns
    -------
    PairedTest or None
        None if the metric has no values to sum or is undefined for one of the methods, if there are
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
        of_samples, of_exchanges = _entropy_differences(first, second, q, scale, clusters)
    elif formula is None:
        return None
    else:
        of_samples, of_exchanges = _summed_differences(
            METRIC[metric].combine,
            np.asarray(formula(first, q, y, scale)),
            np.asarray(formula(second, q, y, scale)),
            clusters,
        )

    difference = float(of_samples(np.ones((1, n_units)))[0])
    if np.isnan(difference):
        return None
    rng = np.random.default_rng(resampling.random_state)
    p_value = _exchange_p_value(of_exchanges, n_units, 2 * resampling.samples, rng)
    resampled: list[Floats] = []
    for counts in resamples(n_units, resampling.samples, rng):
        resampled.append(of_samples(counts.astype(np.float64)))
    low, high = percentile_ends(np.concatenate(resampled), resampling.level, n_units)
    return PairedTest(difference, low, high, p_value, len(first))


def _exchange_p_value(
    of_exchanges: Differences, n_units: int, exchanges: int, rng: np.random.Generator
) -> float:
    """The p-value: the share of exchanges with at least the observed difference."""
    observed = abs(float(of_exchanges(np.zeros((1, n_units)))[0]))
    hits = 0
    for flips in flip_rows(n_units, exchanges, rng):
        differences = np.abs(of_exchanges(flips.astype(np.float64)))
        # Differences that differ by rounding, and undefined ones, count as equally extreme.
        hits += int((~(differences < observed - 1e-9)).sum())
    return (1 + hits) / (1 + exchanges)


def _unit_sums(parts: Floats, clusters: Ints) -> Floats:
    """Parts of a metric [N] or [N, m], and 1, summed over the rows of each unit [G, m + 1]."""
    table = np.column_stack([parts, np.ones(len(parts))])
    sums = np.zeros((int(clusters.max()) + 1, table.shape[1]))
    np.add.at(sums, clusters, table)
    return sums


def _summed_differences(
    combine: Combine, first_parts: Floats, second_parts: Floats, clusters: Ints
) -> tuple[Differences, Differences]:
    first_sums = _unit_sums(first_parts, clusters)
    second_sums = _unit_sums(second_parts, clusters)

    def value(sums: Floats) -> Floats:
        parts = sums[:, :-1]
        if first_parts.ndim == 1:
            parts = sums[:, 0]
        return np.asarray(combine(parts, sums[:, -1]), dtype=np.float64)

    def of_samples(counts: Floats) -> Floats:
        return value(counts @ first_sums) - value(counts @ second_sums)

    def of_exchanges(flips: Floats) -> Floats:
        exchanged = flips @ (second_sums - first_sums)
        first_totals = first_sums.sum(axis=0) + exchanged
        second_totals = second_sums.sum(axis=0) - exchanged
        return value(first_totals) - value(second_totals)

    return of_samples, of_exchanges


def _entropy_differences(
    first: Floats, second: Floats, q: Floats, scale: Scale, clusters: Ints
) -> tuple[Differences, Differences]:
    ranks_first = entropy_ranks(first, q, scale)
    ranks_second = entropy_ranks(second, q, scale)
    entropies = [floor_items(p, "ce", scale) for p in (first, second)]
    soft_ranks = mid_ranks(floor_items(q, "ce", scale)[None, :])[0]

    def of_samples(counts: Floats) -> Floats:
        rows: Counts = counts.astype(np.uint16)[:, clusters]
        return ranks_first(rows) - ranks_second(rows)

    def of_exchanges(flips: Floats) -> Floats:
        is_exchanged = flips[:, clusters] > 0
        first_ranks = mid_ranks(np.where(is_exchanged, entropies[1], entropies[0]))
        second_ranks = mid_ranks(np.where(is_exchanged, entropies[0], entropies[1]))
        return _correlation(first_ranks, soft_ranks) - _correlation(second_ranks, soft_ranks)

    return of_samples, of_exchanges


def _correlation(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation of each row of x [B, N] with y [N]; NaN if it is undefined."""
    centred_x = x - x.mean(axis=1, keepdims=True)
    centred_y = y - y.mean()
    spread = (centred_x**2).sum(axis=1) * (centred_y**2).sum()
    return np.asarray((centred_x @ centred_y) / np.sqrt(np.where(spread > 0, spread, np.nan)))
