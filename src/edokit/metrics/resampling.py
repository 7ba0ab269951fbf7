"""Resampling of items: bootstrap intervals, and a paired test of two methods."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, check_number, check_seed
from edokit._types import Counts, Floats, Ints
from edokit.metrics.checks import answers, losses
from edokit.metrics.compute import entropy_ranks, values
from edokit.metrics.registry import METRIC, checked_names
from edokit.scales import NOMINAL, Scale

Key = TypeVar("Key", bound=Hashable)
# Changes of signs in memory at a time. The draws, and so p-values, depend on it.
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
        Bootstrap samples of an interval, and half the sign flips of a test; 0 for neither.
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
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] | None = None,
    scale: Scale = NOMINAL,
    clusters: Ints | None = None,
    samples: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
) -> dict[str, Interval]:
    """Metrics with bootstrap intervals over items.

    Percentile intervals, except for the ECE: its estimate is biased upwards and its resamples more
    so. There the percentiles are mirrored at the estimate, and the interval starts at 0 where
    calibrated predictions could give the same estimate. Its bins stay those of the data; macro-F1
    is over the classes of a resample; resamples without an entropy correlation are left out.

    Parameters
    ----------
    p, q, y, metrics, scale
        As for `compute_metrics`; the labels of an item are resampled together.
    clusters : array of int of shape [N], default=None
        Codes of what is resampled together, as the item of each pair of an item and an annotator.
    samples : int, default=1000
        Number of resamples.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    dict of str to Interval
        Estimate, lower and upper end of each metric.

    Examples
    --------
    >>> p, q = [[0.8, 0.2], [0.4, 0.6]] * 20, [[1, 0], [0.5, 0.5]] * 20
    >>> found = bootstrap(p, q, [0, 1] * 20, metrics=["ce"], samples=200)["ce"]
    >>> found.low < found.estimate < found.high
    True
    """
    names = checked_names(metrics, scale)
    predicted, soft, hard = answers(p, q, y, scale)
    rng = _checked_rng(samples, level, random_state)
    table, columns = _parts(names, predicted, soft, hard, scale)
    ranks = None
    if "entropy_correlation" in names:
        ranks = entropy_ranks(predicted, soft, scale)
    rank_correlations: list[Floats] = []
    totals: list[Floats] = []
    for counts in resamples(len(predicted), samples, rng, clusters):
        totals.append(sums(counts, table))
        if ranks is not None:
            rank_correlations.append(ranks(counts))
    resampled = np.concatenate(totals)
    sizes = resampled[:, -1]
    results: dict[str, Interval] = {}
    for name, estimate in values(names, predicted, soft, hard, scale).items():
        if name == "ece":
            gaps = resampled[:, columns[name]] / sizes[:, None]
            results[name] = _ece_interval(table[:, columns[name]].mean(axis=0), gaps, level)
        elif name == "entropy_correlation":
            results[name] = _interval(estimate, np.concatenate(rank_correlations), level)
        else:
            sample = np.asarray(METRIC[name].combine(resampled[:, columns[name]], sizes))
            results[name] = _interval(estimate, sample, level)
    return results


def _interval(estimate: float | None, resampled: Floats, level: float) -> Interval:
    """The interval of resampled values [samples], without those that are undefined."""
    defined = resampled[~np.isnan(resampled)]
    if estimate is None or len(defined) == 0:
        return Interval(estimate, None, None)
    low, high = quantiles(defined, level)
    return Interval(estimate, low, high)


def resamples(
    items: int, samples: int, rng: np.random.Generator, clusters: Ints | None = None
) -> Iterator[Counts]:
    """How often each resample takes each item, block by block [B, N].

    Items of the same cluster [N] are taken together. The draws do not depend on the blocks.
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
    """Percentile intervals of means of values by item [N], and a `paired_test` a comparison.

    All have the same resamples, tests twice as many.
    """
    samples = resampling.samples
    level = resampling.level
    clusters = resampling.clusters
    rng = np.random.default_rng(resampling.random_state)
    gaps = [values[a] - values[b] for a, b in comparisons]
    draws = samples
    if comparisons:
        draws = 2 * samples
    means = resampled_means([*values.values(), *gaps], draws, rng, clusters)
    intervals = {}
    for key, column in zip(values, means, strict=False):
        intervals[key] = quantiles(column[:samples], level)
    tests: list[PairedTest] = []
    if comparisons:
        tests = _tests(gaps, means[len(values) :], level, rng, clusters)
    return intervals, tests


def _ece_interval(measured: Floats, resampled: Floats, level: float) -> Interval:
    """From the gaps of the bins, measured [B] and resampled [samples, B]."""
    estimate = float(np.abs(measured).sum())
    low, high = quantiles(np.abs(resampled).sum(axis=1), level)
    # Resampled gaps vary around the measured ones as these would around zero.
    chance = np.quantile(np.abs(resampled - measured).sum(axis=1), level)
    mirrored_low = 0.0
    if estimate > chance:
        mirrored_low = min(max(2 * estimate - high, 0.0), estimate)
    mirrored_high = max(2 * estimate - low, estimate)
    return Interval(estimate, mirrored_low, mirrored_high)


def _parts(
    names: Sequence[str], p: Floats, q: Floats, y: Ints, scale: Scale
) -> tuple[Floats, dict[str, int | slice]]:
    """The parts of all metrics side by side [N, M], and the column or columns of each metric.

    The last column is 1: its sum is the number of items. A metric without a formula has no parts.
    """
    arrays: list[Floats] = []
    columns: dict[str, int | slice] = {}
    start = 0
    for name in names:
        formula = METRIC[name].formula
        if formula is None:
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
        Ends of the difference's bootstrap interval.
    p_value : float
        Two-sided p-value of the sign-flip test.
    n : int
        Number of items.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int


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

    The interval is a percentile bootstrap over items, the p-value that of a sign-flip permutation
    test, (1 + as extreme) / (1 + samples), so it is never 0.

    Parameters
    ----------
    a, b : array-like of shape [N]
        Loss of each method by item, in the same order; for example from `ce_items`.
    clusters : array of int of shape [N], default=None
        Codes of what is resampled, and changes its sign, together; see `bootstrap`.
    samples : int, default=10_000
        Number of resamples.
    level : float, default=0.95
        Level of the interval.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    PairedTest

    Examples
    --------
    >>> paired_test([0.1, 0.2, 0.3, 0.2] * 5, [0.2, 0.4, 0.3, 0.3] * 5).p_value < 0.05
    True
    """
    rng = _checked_rng(samples, level, random_state)
    losses_a = losses("a", a)
    losses_b = losses("b", b)
    if len(losses_a) != len(losses_b):
        raise InputError(
            f"a has {len(losses_a)} losses, b has {len(losses_b)}",
            "match the items of the two methods by id",
        )
    gaps = [losses_a - losses_b]
    means = resampled_means(gaps, samples, rng, clusters)
    (test,) = _tests(gaps, means, level, rng, clusters)
    return test


def _checked_rng(samples: int, level: float, random_state: int) -> np.random.Generator:
    """The generator of a seed; invalid arguments are refused."""
    check_number("samples", samples, 1, whole=True)
    check_number("level", level, 0, 0.9999, above=True)
    check_seed(random_state)
    return np.random.default_rng(random_state)


def _tests(
    gaps: Sequence[Floats],
    means: Floats,
    level: float,
    rng: np.random.Generator,
    clusters: Ints | None,
) -> list[PairedTest]:
    """From differences [N] and their resampled means [M, samples]."""
    p_values = _sign_flip(np.column_stack(gaps), means.shape[1], rng, clusters)
    tests: list[PairedTest] = []
    for gap, resampled, p_value in zip(gaps, means, p_values, strict=True):
        low, high = quantiles(resampled, level)
        tests.append(PairedTest(float(gap.mean()), low, high, p_value, len(gap)))
    return tests


def _sign_flip(
    gaps: Floats, samples: int, rng: np.random.Generator, clusters: Ints | None
) -> list[float]:
    """The p-value of each column of differences [N, M]."""
    if clusters is not None:
        gaps = np.stack([np.bincount(clusters, column) for column in gaps.T], axis=1)
    items = len(gaps)
    total = gaps.sum(axis=0)
    # Sums that differ by rounding alone count as equally extreme.
    extreme = np.abs(total) - 1e-9 * np.abs(gaps).sum(axis=0)
    hits = np.zeros(gaps.shape[1], dtype=np.int64)
    size = max(1, BLOCK // items)
    for start in range(0, samples, size):
        rows = min(size, samples - start)
        bits = np.frombuffer(rng.bytes(rows * ((items + 7) // 8)), dtype=np.uint8)
        flips = np.unpackbits(bits.reshape(rows, -1), axis=1, count=items)
        hits += (np.abs(total - 2 * sums(flips, gaps)) >= extreme).sum(axis=0)
    return [float(value) for value in (1 + hits) / (1 + samples)]
