"""Resampling of items: bootstrap intervals, and a paired test of two methods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.metrics import _arrays
from edokit.metrics.compute import (
    METRIC,
    Binning,
    checked_bins,
    checked_names,
    entropies,
    gap_parts,
    values,
)
from edokit.scales import NOMINAL, Scale

Key = TypeVar("Key", bound=Hashable)
BLOCK = 1 << 20
"""Item counts in memory at a time, whatever N and the number of samples."""


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
    random_state: int | np.random.Generator = 0,
    bins: int = 10,
    binning: Binning = "width",
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
    random_state : int or numpy.random.Generator, default=0
        Seed of the resamples.
    bins, binning : int, default=10, and {"width", "mass"}, default="width"
        Calibration bins, as for `reliability_curve`.

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
    predicted, soft, hard = _arrays.answers(p, q, y, scale)
    bins, binning = checked_bins(bins, binning)
    samples, level = _arrays.whole("samples", samples), _arrays.share("level", level)
    measures = {name: _measure(name, predicted, soft, hard, bins, binning, scale) for name in names}
    resampled: dict[str, list[Floats]] = {name: [] for name in names}
    rng = _arrays.generator(random_state)
    for counts in resamples(len(predicted), samples, rng, clusters):
        for name, measure in measures.items():
            resampled[name].append(measure(counts))
    found = {}
    for name, estimate in values(names, predicted, soft, hard, bins, binning, scale).items():
        sample = np.concatenate(resampled[name])
        if name == "ece":
            measured = measures[name](np.ones((1, len(predicted))))
            found[name] = _ece_interval(measured, sample, level)
            continue
        defined = sample[~np.isnan(sample)]
        known = estimate is not None and len(defined)
        ends = quantiles(defined, level) if known else (None, None)
        found[name] = Interval(estimate, *ends)
    return found


def resamples(
    items: int, samples: int, rng: np.random.Generator, clusters: Ints | None = None
) -> Iterator[Floats]:
    """How often each resample takes each item, block by block [B, N].

    Items of the same cluster [N] are taken together.
    """
    drawn = items if clusters is None else int(clusters.max()) + 1
    for rows in blocks(items, samples):
        draws = rng.integers(drawn, size=(rows, drawn))
        draws += drawn * np.arange(rows)[:, None]
        counts = np.bincount(draws.ravel(), minlength=rows * drawn)
        taken = counts.reshape(rows, drawn).astype(np.float64)
        yield taken if clusters is None else taken[:, clusters]


def _means(counts: Floats, values: Floats) -> Floats:
    """Means [B, M] of values [N, M] over multisets of items [B, N]."""
    means: Floats = counts @ values / counts.sum(axis=1, keepdims=True)
    return means


def blocks(items: int, samples: int) -> Iterator[int]:
    """Sizes of the blocks in which the samples are made, so that memory stays flat."""
    size = max(1, BLOCK // items)
    for start in range(0, samples, size):
        yield min(size, samples - start)


def quantiles(drawn: Floats, level: float) -> tuple[float, float]:
    """The central interval of resampled values."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def intervals(
    values: Mapping[Key, Floats],
    *,
    clusters: Ints | None = None,
    samples: int,
    level: float,
    random_state: int,
) -> dict[Key, tuple[float, float]]:
    """Percentile intervals of means of values by item [N], all over the same resamples."""
    if not samples:
        return {}
    columns = np.column_stack(list(values.values()))
    counts = resamples(len(columns), samples, np.random.default_rng(random_state), clusters)
    drawn = np.concatenate([_means(block, columns) for block in counts])
    return dict(zip(values, (quantiles(column, level) for column in drawn.T), strict=True))


def _ece_interval(measured: Floats, drawn: Floats, level: float) -> Interval:
    """From the gaps of the bins, measured [1, B] and resampled [samples, B]."""
    estimate = float(np.abs(measured).sum())
    low, high = quantiles(np.abs(drawn).sum(axis=1), level)
    # Resampled gaps vary around the measured ones as these would around zero.
    chance = np.quantile(np.abs(drawn - measured).sum(axis=1), level)
    return Interval(
        estimate,
        low=0.0 if estimate <= chance else min(max(2 * estimate - high, 0.0), estimate),
        high=max(2 * estimate - low, estimate),
    )


def _measure(
    name: str, p: Floats, q: Floats, y: Ints, bins: int, binning: Binning, scale: Scale
) -> Callable[[Floats], Floats]:
    """The metric as a function of item counts: [B, N] -> [B] (the ECE's gaps: [B, bins])."""
    metric = METRIC[name]
    if name == "entropy_correlation":
        return _arrays.entropy_ranks(*entropies(p, q, scale))
    if name == "ece":
        gaps = gap_parts(p, q, bins, binning, scale)
        return lambda counts: _means(counts, gaps)
    assert metric.parts is not None
    parts = metric.parts(p, q, y, scale)
    return lambda counts: np.asarray(metric.value(counts @ parts, counts.sum(axis=1)))


@dataclass(frozen=True)
class PairedTest:
    """Two methods compared on the same items."""

    difference: float
    """Mean of a minus mean of b: below 0, a has the lower loss."""
    low: float
    """Lower end of the difference's bootstrap interval."""
    high: float
    """Upper end of the difference's bootstrap interval."""
    p_value: float
    """Two-sided p-value of the sign-flip test."""
    n: int
    """Number of items."""


def paired_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: Ints | None = None,
    samples: int = 10_000,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
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
    random_state : int or numpy.random.Generator, default=0
        Seed of the resamples.

    Returns
    -------
    PairedTest

    Examples
    --------
    >>> paired_test([0.1, 0.2, 0.3, 0.2] * 5, [0.2, 0.4, 0.3, 0.3] * 5).p_value < 0.05
    True
    """
    resampling = {"samples": samples, "level": level, "random_state": random_state}
    (found,) = paired_tests([(a, b)], clusters=clusters, **resampling)  # type: ignore[arg-type]
    return found


def paired_tests(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    clusters: Ints | None = None,
    samples: int = 10_000,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> list[PairedTest]:
    """`paired_test` of each pair, all on the same items and the same resamples."""
    samples, level = _arrays.whole("samples", samples), _arrays.share("level", level)
    rng = _arrays.generator(random_state)
    if not pairs:
        return []
    losses = [(_arrays.losses("a", a), _arrays.losses("b", b)) for a, b in pairs]
    for a, b in losses:
        if len(a) != len(b):
            raise InputError(
                f"a has {len(a)} losses, b has {len(b)}", "match the items of the two methods by id"
            )
    gaps = np.column_stack([a - b for a, b in losses])
    items = len(gaps)
    drawn = [_means(counts, gaps) for counts in resamples(items, samples, rng, clusters)]
    p_values = _sign_flip(gaps, samples, rng, clusters)
    return [
        PairedTest(float(column.mean()), *quantiles(means, level), p_value=p_value, n=items)
        for column, means, p_value in zip(gaps.T, np.concatenate(drawn).T, p_values, strict=True)
    ]


def _sign_flip(
    gaps: Floats, samples: int, rng: np.random.Generator, clusters: Ints | None
) -> list[float]:
    """The p-value of each column of differences [N, M]."""
    if clusters is not None:
        gaps = np.stack([np.bincount(clusters, column) for column in gaps.T], axis=1)
    items, total = len(gaps), gaps.sum(axis=0)
    # Sums that differ by rounding alone count as equally extreme.
    extreme = np.abs(total) - 1e-9 * np.abs(gaps).sum(axis=0)
    hits = np.zeros(gaps.shape[1], dtype=np.int64)
    for rows in blocks(items, samples):
        bits = np.frombuffer(rng.bytes(rows * ((items + 7) // 8)), dtype=np.uint8)
        flipped = np.unpackbits(bits.reshape(rows, -1), axis=1, count=items).astype(np.float64)
        hits += (np.abs(total - 2 * (flipped @ gaps)) >= extreme).sum(axis=0)
    return [float(value) for value in (1 + hits) / (1 + samples)]
