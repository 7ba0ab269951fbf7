"""Intervals of metrics over items, and a paired test of two methods."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, check_number, check_seed
from edokit._types import Counts, Floats, Ints
from edokit.item_array import Order, match_rows
from edokit.metrics.checks import checked_p_q_y, vector
from edokit.metrics.compute import as_labels, checked_metrics, entropy_correlation
from edokit.metrics.ece_interval import ece_ends
from edokit.metrics.mean_intervals import (
    FEWEST_UNITS,
    UnitDeviations,
    difference_ends,
    ratio_ends,
)
from edokit.metrics.registry import METRIC, checked_names
from edokit.scales import Scale

if TYPE_CHECKING:  # annotations need pandas, which a bare GPU machine does not have
    from edokit.annotations.core import Annotations

Key = TypeVar("Key", bound=Hashable)
# Sign flips in memory at a time. Random bits are drawn by block, so p-values depend on it.
FLIPS_PER_BLOCK = 1 << 20
# Counts in memory at a time: resamples in a block times items.
COUNTS_PER_BLOCK = 1 << 16
# With many items, too, this many resamples are added up together: the values of an item are read
# once for all of them.
FEWEST_RESAMPLES_PER_BLOCK = 16
# Items whose counts are turned into floating-point numbers at a time; they stay in the cache.
ITEMS_PER_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Resampling:
    """How items are resampled.

    Parameters
    ----------
    samples : int, default=1000
        Number of resamples, for intervals that need them; a test uses twice as many sign flips or
        exchanges. With 0, there are neither intervals nor tests.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the samples.
    clusters : array of int of shape [N], default=None
        Rows with the same code are resampled together, such as the pairs of an item with its
        annotators. Codes count from 0.
    """

    samples: int = 1000
    level: float = 0.95
    random_state: int = 0
    clusters: Ints | None = None


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval; None where undefined."""

    estimate: float | None
    low: float | None
    high: float | None


def bootstrap(
    p: npt.ArrayLike,
    q: npt.ArrayLike | Annotations,
    y: npt.ArrayLike | None = None,
    *,
    metrics: Iterable[str] | None = None,
    scale: Scale | None = None,
    order: Order | None = None,
    clusters: Ints | None = None,
    samples: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
) -> dict[str, Interval]:
    """Metrics with intervals over items.

    For means of one value per item, the interval spans two: that by Student's t, and that by Hall's
    t, which is corrected for skewness. Shares (F1) get score intervals.
    The ECE is biased upwards: its interval contains the values for which the measured ECE is
    neither surprisingly high nor low. The intervals of macro-F1 (over the classes of a resample)
    and of the entropy correlation are bootstrap percentiles, widened by Student's t. No interval is
    computed for fewer than ten items (or clusters of items), or for macro-F1 if a class is the hard
    label of fewer than ten of them. `docs/coverage.md` shows the coverage.

    Parameters
    ----------
    p, q, y, metrics, scale, order
        See `compute_metrics`; the labels of an item are resampled together.
    clusters : array of int of shape [N], default=None
        Rows with the same code are resampled together, such as the pairs of an item with its
        annotators. Codes are in the order of the labels; any whole numbers will do.
    samples : int, default=1000
        Number of resamples, for intervals that need them.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    dict of str to Interval
        Estimate, lower and upper end of each metric; the ends are None without an interval.

    Examples
    --------
    >>> p, q = [[0.8, 0.2], [0.4, 0.6]] * 20, [[1, 0], [0.5, 0.5]] * 20
    >>> found = bootstrap(p, q, [0, 1] * 20, metrics=["ce"], samples=200)["ce"]
    >>> found.low < found.estimate < found.high
    True
    """
    clusters = gapless_codes(clusters)
    labels = as_labels(p, q, y, scale)
    scale = labels.scale
    names = checked_names(metrics, scale)
    predicted, soft, hard = checked_p_q_y(p, labels.soft, labels.hard, scale, order)
    rng = _checked_rng(samples, level, random_state)
    estimates = checked_metrics(names, predicted, soft, hard, scale)
    units = unit_count(len(predicted), clusters)
    if units < FEWEST_UNITS:
        return {name: Interval(estimate, None, None) for name, estimate in estimates.items()}

    table, columns = _parts(names, predicted, soft, hard, scale)
    ranks = None
    if "entropy_correlation" in names:
        ranks = entropy_correlation(predicted, soft, scale)
    rank_correlations: list[Floats] = []
    totals: list[Floats] = []
    if columns or ranks is not None:
        for counts in resamples(len(predicted), samples, rng, clusters):
            totals.append(sums(counts, table))
            if ranks is not None:
                rank_correlations.append(ranks(counts))
    has_class = scale.indicators(hard, soft.shape[1])
    fewest_of_a_class = min(units_with(column, clusters) for column in has_class.T)
    results: dict[str, Interval] = {}
    for name, estimate in estimates.items():
        # Not None if the metric is a mean of one value per item.
        item_formula = METRIC[name].relative
        if METRIC[name].is_mean:
            item_formula = METRIC[name].formula
        if name == "entropy_correlation":
            sample = np.concatenate(rank_correlations)
            results[name] = _percentile_interval(estimate, sample, level, units)
        elif name == "ece":
            # The last column counts the items of each resample.
            resampled = np.concatenate(totals)
            gaps = resampled[:, columns[name]] / resampled[:, -1:]
            ends = ece_ends(table[:, columns[name]].mean(axis=0), gaps, level)
            results[name] = Interval(estimate, *ends)
        elif estimate is None or (name == "macro_f1" and fewest_of_a_class < FEWEST_UNITS):
            results[name] = Interval(estimate, None, None)
        elif item_formula is not None:
            item_values = item_formula(predicted, soft, hard, scale)
            deviations = UnitDeviations.from_values(item_values, clusters)
            results[name] = Interval(estimate, *deviations.ends(level))
        else:
            resampled = np.concatenate(totals)
            sample = np.asarray(METRIC[name].combine(resampled[:, columns[name]], resampled[:, -1]))
            results[name] = _percentile_interval(estimate, sample, level, units)
    return results


def gapless_codes(clusters: Ints | None) -> Ints | None:
    """The codes of clusters [N], renumbered from 0 without gaps; a gap would count as a unit."""
    if clusters is None:
        return None
    _, codes = np.unique(clusters, return_inverse=True)
    return np.asarray(codes, dtype=np.int64)


def unit_count(items: int, clusters: Ints | None) -> int:
    """The number of independent units: items, or clusters of items."""
    if clusters is None:
        return items
    return len(np.unique(clusters))


def units_with(has_class: npt.NDArray[np.bool_], clusters: Ints | None) -> int:
    """The number of items, or clusters of items, that have a class; ``has_class`` is [N]."""
    if clusters is None:
        return int(has_class.sum())
    return len(np.unique(clusters[has_class]))


def _percentile_interval(
    estimate: float | None, resampled: Floats, level: float, units: int
) -> Interval:
    """The interval of resampled values [samples]; no ends if none of them is defined."""
    if estimate is None or np.isnan(resampled).all():
        return Interval(estimate, None, None)
    return Interval(estimate, *percentile_ends(resampled, level, units))


def percentile_ends(resampled: Floats, level: float, units: int) -> tuple[float, float]:
    """The ends of the interval of resampled values [samples]; undefined ones are left out.

    The percentiles are widened as for a mean (Hesterberg, 2015). With few units G, those of the
    level are too close: resamples have the variance Σ(x − x̄)² / G, not that over G − 1, and normal
    quantiles, not those of Student's t.
    """
    from scipy.special import ndtr, stdtrit

    student = stdtrit(units - 1, (1 + level) / 2)
    tail = float(ndtr(-student * np.sqrt(units / (units - 1))))
    return central_interval(resampled[~np.isnan(resampled)], 1 - 2 * tail)


def resamples(
    items: int, samples: int, rng: np.random.Generator, clusters: Ints | None = None
) -> Iterator[Counts]:
    """The number of times that each resample draws each item, in blocks [B, N].

    Items of the same cluster [N] are drawn together. The draws do not depend on the blocks.
    """
    units = items
    if clusters is not None:
        units = int(clusters.max()) + 1
    size = max(FEWEST_RESAMPLES_PER_BLOCK, COUNTS_PER_BLOCK // items)
    for start in range(0, samples, size):
        # No item is drawn 65,536 times: there are as many draws as items.
        counts = np.empty((min(size, samples - start), units), dtype=np.uint16)
        # Draws need more memory than counts: they are made for a few resamples at a time.
        parts = math.ceil(counts.size / COUNTS_PER_BLOCK)
        for part in np.array_split(counts, parts):
            draws = rng.integers(units, size=part.shape)
            # Resample r counts its draws in cells r · units to (r + 1) · units.
            cells = draws + units * np.arange(len(part))[:, None]
            part[:] = np.bincount(cells.ravel(), minlength=part.size).reshape(part.shape)
        if clusters is None:
            yield counts
        else:
            yield counts[:, clusters]


def sums(counts: Counts, values: Floats) -> Floats:
    """Sums [B, M] of values [N, M] over resamples, which draw each item ``counts`` [B, N] times."""
    total = np.zeros((len(counts), values.shape[1]))
    for start in range(0, len(values), ITEMS_PER_CHUNK):
        part = slice(start, start + ITEMS_PER_CHUNK)
        total += counts[:, part].astype(np.float64) @ values[part]
    return total


def resampled_means(
    columns: Sequence[Floats], samples: int, rng: np.random.Generator, clusters: Ints | None
) -> Floats:
    """Means [M, samples] of M columns [N]."""
    table = np.column_stack([*columns, np.ones(len(columns[0]))])
    blocks = resamples(len(table), samples, rng, clusters)
    totals = np.concatenate([sums(counts, table) for counts in blocks])
    means: Floats = (totals[:, :-1] / totals[:, -1:]).T
    return means


def central_interval(resampled: Floats, level: float) -> tuple[float, float]:
    """The quantiles of resampled values that leave out equal shares below and above."""
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def intervals_and_tests(
    values: Mapping[Key, Floats], comparisons: Sequence[tuple[Key, Key]], resampling: Resampling
) -> tuple[dict[Key, tuple[float, float]], list[PairedTest]]:
    """Intervals of means of values per item [N], and a `paired_test` per comparison.

    All tests use the same sign flips, twice as many as samples.
    """
    level = resampling.level
    clusters = gapless_codes(resampling.clusters)
    rng = np.random.default_rng(resampling.random_state)
    units: dict[Key, UnitDeviations] = {}
    for key, column in values.items():
        units[key] = UnitDeviations.from_values(column, clusters)
    intervals = {key: deviations.ends(level) for key, deviations in units.items()}
    tests: list[PairedTest] = []
    if not comparisons:
        return intervals, tests
    gaps = np.column_stack([values[a] - values[b] for a, b in comparisons])
    p_values = _sign_flip(gaps, 2 * resampling.samples, rng, clusters)
    for (a, b), p_value in zip(comparisons, p_values, strict=True):
        tests.append(PairedTest.from_units(units[a], units[b], level, p_value, len(gaps)))
    return intervals, tests


def _parts(
    names: Sequence[str], p: Floats, q: Floats, y: Ints, scale: Scale
) -> tuple[Floats, dict[str, int | slice]]:
    """The parts of all metrics side by side [N, M], and the column or columns of each metric.

    The last column is 1, so that its sum is the number of items. Means of one value per item, and
    metrics without a formula, are left out.
    """
    arrays: list[Floats] = []
    columns: dict[str, int | slice] = {}
    start = 0
    for name in names:
        formula = METRIC[name].formula
        if formula is None or METRIC[name].is_mean:
            continue
        parts = formula(p, q, y, scale)
        arrays.append(parts)
        if parts.ndim == 1:
            columns[name] = start
            start += 1
        else:
            end = start + parts.shape[1]
            columns[name] = slice(start, end)
            start = end
    return np.column_stack([*arrays, np.ones(len(p))]), columns


@dataclass(frozen=True)
class PairedTest:
    """Two methods compared on the same items.

    Attributes
    ----------
    difference : float
        Metric of a minus metric of b. Of losses, these are means: below 0, a has the lower loss.
    low, high : float
        Ends of the difference's interval.
    p_value : float
        Two-sided p-value: of the sign-flip test for a mean over items, else of the test that
        exchanges the answers.
    n : int
        Number of items.
    ratio : float or None
        Mean of a over mean of b; None if it is undefined, or the metric is not a mean over items.
    ratio_low, ratio_high : float or None
        Ends of the ratio's interval, which excludes 1 if and only if the interval of the difference
        excludes 0.
    p_adjusted : float or None
        The p-value, corrected for the number of tests in a comparison; None without correction.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    p_adjusted: float | None = None

    @classmethod
    def from_units(
        cls, a: UnitDeviations, b: UnitDeviations, level: float, p_value: float, n: int
    ) -> PairedTest:
        """From the losses of each method per independent unit."""
        low, high = difference_ends(a, b, level)
        ratio = None
        ratio_low = None
        ratio_high = None
        if a.is_nonnegative and b.is_nonnegative and b.mean > 0:
            ratio = a.mean / b.mean
            ratio_low, ratio_high = ratio_ends(a, b, level)
        return cls(a.mean - b.mean, low, high, p_value, n, ratio, ratio_low, ratio_high)


def paired_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: Ints | None = None,
    samples: int = 10_000,
    level: float = 0.95,
    random_state: int = 0,
) -> PairedTest:
    """Test whether two methods differ, from their losses on the same items.

    The interval spans two: that by Student's t, and that by Hall's t, which is corrected for
    skewness. The p-value is that of a sign-flip permutation test,
    (1 + number of extreme flips) / (1 + samples), so that it is never 0.

    Parameters
    ----------
    a, b : array-like of shape [N]
        Loss of each method per item, in the same order; for example from `ce_items`. Losses with
        item ids are matched by id.
    clusters : array of int of shape [N], default=None
        Rows with the same code change their sign together; see `bootstrap`.
    samples : int, default=10_000
        Number of sign flips.
    level : float, default=0.95
        Level of the interval.
    random_state : int, default=0
        Seed of the sign flips.

    Returns
    -------
    PairedTest

    Examples
    --------
    >>> paired_test([0.1, 0.2, 0.3, 0.2] * 5, [0.2, 0.4, 0.3, 0.3] * 5).p_value < 0.05
    True
    """
    rng = _checked_rng(samples, level, random_state)
    clusters = gapless_codes(clusters)
    a, b = match_rows({"a": a, "b": b})
    hint = "give one loss per item, for example from ce_items"
    losses_a = vector("a", a, hint)
    losses_b = vector("b", b, hint)
    if len(losses_a) != len(losses_b):
        raise InputError(
            f"a has {len(losses_a)} losses, b has {len(losses_b)}",
            "match the items of the two methods by id",
            code="lengths-differ",
        )
    gaps = losses_a - losses_b
    (p_value,) = _sign_flip(gaps[:, None], samples, rng, clusters)
    units_a = UnitDeviations.from_values(losses_a, clusters)
    units_b = UnitDeviations.from_values(losses_b, clusters)
    return PairedTest.from_units(units_a, units_b, level, p_value, len(gaps))


def _checked_rng(samples: int, level: float, random_state: int) -> np.random.Generator:
    """The random number generator of a seed; invalid arguments are refused."""
    check_number("samples", samples, 1, whole=True)
    check_number("level", level, 0, 0.9999, above=True)
    check_seed(random_state)
    return np.random.default_rng(random_state)


def _sign_flip(
    gaps: Floats, samples: int, rng: np.random.Generator, clusters: Ints | None
) -> list[float]:
    """The p-value of each column of differences [N, M]."""
    if clusters is not None:
        gaps = np.stack([np.bincount(clusters, column) for column in gaps.T], axis=1)
    n_units = len(gaps)
    observed = gaps.sum(axis=0)
    # Sums that differ only by rounding count as equally extreme.
    threshold = np.abs(observed) - 1e-9 * np.abs(gaps).sum(axis=0)
    extreme_flips = np.zeros(gaps.shape[1], dtype=np.int64)
    for flips in flip_rows(n_units, samples, rng):
        flipped = observed - 2 * sums(flips, gaps)
        extreme_flips += (np.abs(flipped) >= threshold).sum(axis=0)
    p_values = (1 + extreme_flips) / (1 + samples)
    return [float(p_value) for p_value in p_values]


def flip_rows(units: int, samples: int, rng: np.random.Generator) -> Iterator[Counts]:
    """Whether each unit changes its sign in each sample, 0 or 1, in blocks [B, G]."""
    size = max(1, FLIPS_PER_BLOCK // units)
    for start in range(0, samples, size):
        rows = min(size, samples - start)
        bytes_per_row = math.ceil(units / 8)
        random_bytes = np.frombuffer(rng.bytes(rows * bytes_per_row), dtype=np.uint8)
        yield np.unpackbits(random_bytes.reshape(rows, bytes_per_row), axis=1, count=units)
