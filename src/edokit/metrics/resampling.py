"""Intervals of metrics over items, and a paired test of two methods."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, check_number, check_seed
from edokit._types import Counts, Floats, Ints
from edokit.item_array import Order, match_rows
from edokit.metrics.checks import answers, losses
from edokit.metrics.compute import as_labels, entropy_ranks, values
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
# Sign flips in memory at a time. The draws, and therefore p-values, depend on it.
BLOCK = 1 << 20
# Items whose counts are in memory at a time.
DRAWS = 1 << 16
# The least number of resamples that are added up together: an item is read once for all of them.
ROWS = 16
# Items whose counts are turned into floating-point numbers at a time; they stay in the cache.
CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Resampling:
    """How items are resampled.

    Parameters
    ----------
    samples : int, default=1000
        Half the sign flips of a test, and resamples where an interval needs them; 0 for neither
        intervals nor tests.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the samples.
    clusters : array of int of shape [N], default=None
        Codes of what is resampled together, as the item of each pair of an item and an annotator.
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

    For means of one value per item, each end of the interval is the farther end of the intervals by
    Student's t and by Hall's t, which is corrected for skewness; shares (F1) get score intervals.
    The ECE is biased upwards: its interval contains the values for which the measured ECE is
    neither surprisingly high nor low. The intervals of macro-F1 (over the classes of a resample)
    and of the entropy correlation are bootstrap percentiles, widened by Student's t. No interval is
    computed for fewer than ten items (or groups of items), or for macro-F1 if a class is the hard
    label of fewer than ten items. `docs/coverage.md` shows the coverage.

    Parameters
    ----------
    p, q, y, metrics, scale, order
        See `compute_metrics`; the labels of an item are resampled together.
    clusters : array of int of shape [N], default=None
        Rows with the same code are resampled together, such as the pairs of an item with its
        annotators; in the order of the labels.
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
    predicted, soft, hard = answers(p, labels.soft, labels.hard, scale, order)
    rng = _checked_rng(samples, level, random_state)
    estimates = values(names, predicted, soft, hard, scale)
    units = unit_count(len(predicted), clusters)
    if units < FEWEST_UNITS:
        return {name: Interval(estimate, None, None) for name, estimate in estimates.items()}

    table, columns = _parts(names, predicted, soft, hard, scale)
    ranks = None
    if "entropy_correlation" in names:
        ranks = entropy_ranks(predicted, soft, scale)
    rank_correlations: list[Floats] = []
    totals: list[Floats] = []
    if columns or ranks is not None:
        for counts in resamples(len(predicted), samples, rng, clusters):
            totals.append(sums(counts, table))
            if ranks is not None:
                rank_correlations.append(ranks(counts))
    has_class = scale.indicators(hard, soft.shape[1])
    rarest_class = min(units_with(column, clusters) for column in has_class.T)
    results: dict[str, Interval] = {}
    for name, estimate in estimates.items():
        item_formula = METRIC[name].relative
        if METRIC[name].is_mean:
            item_formula = METRIC[name].formula
        if name == "entropy_correlation":
            sample = np.concatenate(rank_correlations)
            results[name] = _percentile_interval(estimate, sample, level, units)
        elif name == "ece":
            resampled = np.concatenate(totals)
            gaps = resampled[:, columns[name]] / resampled[:, -1:]
            ends = ece_ends(table[:, columns[name]].mean(axis=0), gaps, level)
            results[name] = Interval(estimate, *ends)
        elif estimate is None or (name == "macro_f1" and rarest_class < FEWEST_UNITS):
            results[name] = Interval(estimate, None, None)
        elif item_formula is not None:
            item_values = UnitDeviations.from_values(
                item_formula(predicted, soft, hard, scale), clusters
            )
            results[name] = Interval(estimate, *item_values.ends(level))
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
    """The interval of resampled values [samples], without undefined values."""
    if estimate is None or np.isnan(resampled).all():
        return Interval(estimate, None, None)
    return Interval(estimate, *percentile_ends(resampled, level, units))


def percentile_ends(resampled: Floats, level: float, units: int) -> tuple[float, float]:
    """The ends of an interval of resampled values [samples], without undefined values.

    The percentiles are widened by Student's t as for a mean (Hesterberg, 2015): with few units, the
    percentiles of the level are too close, since the variance of resamples is that of G units, not
    G − 1.
    """
    from scipy.special import ndtr, stdtrit

    student = stdtrit(units - 1, (1 + level) / 2)
    tail = float(ndtr(-student * np.sqrt(units / (units - 1))))
    return quantiles(resampled[~np.isnan(resampled)], 1 - 2 * tail)


def resamples(
    items: int, samples: int, rng: np.random.Generator, clusters: Ints | None = None
) -> Iterator[Counts]:
    """The number of times that each resample draws each item, in blocks [B, N].

    Items of the same cluster [N] are drawn together. The draws do not depend on the blocks.
    """
    units = items
    if clusters is not None:
        units = int(clusters.max()) + 1
    size = max(ROWS, DRAWS // items)
    for start in range(0, samples, size):
        # No item is drawn 65,536 times: there are as many draws as items.
        counts = np.empty((min(size, samples - start), units), dtype=np.uint16)
        for part in np.array_split(counts, -(-counts.size // DRAWS)):
            draws = rng.integers(units, size=part.shape) + units * np.arange(len(part))[:, None]
            part[:] = np.bincount(draws.ravel(), minlength=part.size).reshape(part.shape)
        if clusters is None:
            yield counts
        else:
            yield counts[:, clusters]


def sums(counts: Counts, values: Floats) -> Floats:
    """Sums [B, M] of values [N, M] over multisets of items [B, N]."""
    total = np.zeros((len(counts), values.shape[1]))
    for start in range(0, len(values), CHUNK):
        part = slice(start, start + CHUNK)
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


def quantiles(resampled: Floats, level: float) -> tuple[float, float]:
    """The central interval of resampled values."""
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
    if comparisons:
        pairs = [(units[a], units[b]) for a, b in comparisons]
        gaps = [values[a] - values[b] for a, b in comparisons]
        p_values = _sign_flip(np.column_stack(gaps), 2 * resampling.samples, rng, clusters)
        for (a, b), gap, p_value in zip(pairs, gaps, p_values, strict=True):
            tests.append(PairedTest.from_units(a, b, level, p_value, len(gap)))
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
        Mean of a minus mean of b: below 0, a has the lower loss.
    low, high : float
        Ends of the difference's interval.
    p_value : float
        Two-sided p-value of the sign-flip test.
    n : int
        Number of items.
    ratio : float or None
        Mean of a over mean of b; None if it is undefined or unknown.
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
        if a.is_positive and b.is_positive and b.mean > 0:
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

    Each end of the interval is the farther end of the intervals by Student's t and by Hall's t,
    which is corrected for skewness. The p-value is that of a sign-flip permutation test,
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
    losses_a = losses("a", a)
    losses_b = losses("b", b)
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
    items = len(gaps)
    total = gaps.sum(axis=0)
    # Sums that differ only by rounding count as equally extreme.
    extreme = np.abs(total) - 1e-9 * np.abs(gaps).sum(axis=0)
    hits = np.zeros(gaps.shape[1], dtype=np.int64)
    for flips in flip_rows(items, samples, rng):
        hits += (np.abs(total - 2 * sums(flips, gaps)) >= extreme).sum(axis=0)
    return [float(value) for value in (1 + hits) / (1 + samples)]


def flip_rows(items: int, samples: int, rng: np.random.Generator) -> Iterator[Counts]:
    """Whether each item changes its sign in each sample, 0 or 1, in blocks [B, N]."""
    size = max(1, BLOCK // items)
    for start in range(0, samples, size):
        rows = min(size, samples - start)
        bits = np.frombuffer(rng.bytes(rows * ((items + 7) // 8)), dtype=np.uint8)
        yield np.unpackbits(bits.reshape(rows, -1), axis=1, count=items)
