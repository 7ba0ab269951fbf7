"""How sure a measured value is: bootstrap intervals over the items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._types import Floats, Ints
from edokit.metrics import _checks, calibration, scores
from edokit.metrics.compute import ITEM_VALUES, METRICS, checked_names, values

BLOCK = 1 << 20  # item counts held at a time: memory stays flat, whatever N and the samples


@dataclass(frozen=True)
class Interval:
    """A measured value and where the true one plausibly lies; None where undefined."""

    estimate: float | None
    low: float | None
    high: float | None


def bootstrap(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metrics: Iterable[str] = METRICS,
    samples: int = 1000,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
    bins: int = 10,
    binning: str = "width",
) -> dict[str, Interval]:
    """Each metric with its bootstrap interval: items are drawn again with replacement.

    Percentile intervals, except for the ECE. Its estimate lies too high and its resamples
    higher still, so there the percentiles are mirrored at the estimate, and the interval
    starts at 0 where a calibrated prediction could give the same estimate. The ECE's bins stay
    those of the data; macro-F1 is over the classes that a resample holds; resamples in which
    the entropy correlation is undefined are left out.
    """
    names = checked_names(metrics)
    predicted, soft, hard = _checks.triple(p, q, y)
    bins, binning = calibration.checked_bins(bins, binning)
    samples, level = _checks.whole("samples", samples), _checks.share("level", level)
    measures = {name: _measure(name, predicted, soft, hard, bins, binning) for name in names}
    drawn: dict[str, list[Floats]] = {name: [] for name in names}
    for counts in resamples(len(predicted), samples, _checks.generator(random_state)):
        for name, measure in measures.items():
            drawn[name].append(measure(counts))
    found = {}
    for name, estimate in values(names, predicted, soft, hard, bins, binning).items():
        resampled = np.concatenate(drawn[name])
        if name == "ece":
            measured = measures[name](np.ones((1, len(predicted))))
            found[name] = _ece_interval(measured, resampled, level)
        else:
            found[name] = _percentiles(estimate, resampled, level)
    return found


def resamples(items: int, samples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each item is drawn in each resample, block by block [B, N]."""
    for rows in blocks(items, samples):
        draws = rng.integers(items, size=(rows, items))
        draws += items * np.arange(rows)[:, None]
        counts = np.bincount(draws.ravel(), minlength=rows * items)
        yield counts.reshape(rows, items).astype(np.float64)


def blocks(items: int, samples: int) -> Iterator[int]:
    """Sizes of the blocks in which so many samples of so many items are worked off."""
    size = max(1, BLOCK // items)
    for start in range(0, samples, size):
        yield min(size, samples - start)


def quantiles(drawn: Floats, level: float) -> tuple[float, float]:
    """The central interval of the drawn values."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _percentiles(estimate: float | None, drawn: Floats, level: float) -> Interval:
    defined = drawn[~np.isnan(drawn)]
    if estimate is None or not len(defined):
        return Interval(estimate, None, None)
    return Interval(estimate, *quantiles(defined, level))


def _ece_interval(measured: Floats, drawn: Floats, level: float) -> Interval:
    """From the bins' gaps as measured [1, B] and as resampled [samples, B]."""
    estimate = float(np.abs(measured).sum())
    low, high = quantiles(np.abs(drawn).sum(axis=1), level)
    # Resampled gaps spread around the measured ones as those would around no gap at all.
    chance = np.quantile(np.abs(drawn - measured).sum(axis=1), level)
    return Interval(
        estimate,
        low=0.0 if estimate <= chance else min(max(2 * estimate - high, 0.0), estimate),
        high=max(2 * estimate - low, estimate),
    )


def _measure(
    name: str, p: Floats, q: Floats, y: Ints, bins: int, binning: str
) -> Callable[[Floats], Floats]:
    """The metric as a function of item counts: [B, N] -> [B] (the ECE's gaps: [B, bins])."""
    items = len(p)
    if name == "entropy_correlation":
        return scores.RankCorrelation(scores.rounded_entropy(p), scores.rounded_entropy(q))
    if name == "macro_f1":
        hits, members = scores.macro_parts(p, y)
        return lambda counts: scores.macro_from_parts(counts @ hits, counts @ members)
    if name == "ece":
        parts = calibration.gap_parts(p, q, bins, binning)
        return lambda counts: counts @ parts / items
    each = ITEM_VALUES[name](p, q, y)
    return lambda counts: counts @ each / items
