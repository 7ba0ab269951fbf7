"""Is one method better than another, or luckier? A paired test over the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats
from edokit.metrics import _checks
from edokit.metrics.intervals import blocks, quantiles, resamples


@dataclass(frozen=True)
class PairedTest:
    """Two methods on the same items."""

    difference: float
    """Mean of a less mean of b: below 0, a has the lower loss."""
    low: float
    """Lower end of the difference's bootstrap interval."""
    high: float
    """Upper end of the difference's bootstrap interval."""
    p_value: float
    """How often chance alone makes a difference as large, in either direction."""
    n: int
    """How many items."""


def paired_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    samples: int = 10_000,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> PairedTest:
    """Compare per-item losses a and b [N] of two methods on the same items in the same order.

    The interval is a percentile bootstrap over items. The p-value is that of a sign-flip
    permutation test, (1 + as extreme) / (1 + samples), so it is never 0.
    """
    (found,) = paired_tests([(a, b)], samples=samples, level=level, random_state=random_state)
    return found


def paired_tests(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    samples: int = 10_000,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> list[PairedTest]:
    """`paired_test` of each pair, all on the same items and from the same draws of them."""
    samples, level = _checks.whole("samples", samples), _checks.share("level", level)
    rng = _checks.generator(random_state)
    if not pairs:
        return []
    gaps = np.column_stack([_gaps(a, b) for a, b in pairs])
    items = len(gaps)
    means = np.concatenate([counts @ gaps / items for counts in resamples(items, samples, rng)])
    p_values = _sign_flip(gaps, samples, rng)
    return [
        PairedTest(float(column.mean()), *quantiles(drawn, level), p_value=p_value, n=items)
        for column, drawn, p_value in zip(gaps.T, means.T, p_values, strict=True)
    ]


def _gaps(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Loss by loss, how much higher the first is [N]."""
    first, second = _checks.losses("a", a), _checks.losses("b", b)
    if len(first) != len(second):
        raise InputError(
            "a and b must hold the losses of the same items, but got "
            f"{len(first)} and {len(second)}",
            "match the items of the two methods by id",
        )
    return first - second


def _sign_flip(gaps: Floats, samples: int, rng: np.random.Generator) -> list[float]:
    """The p-value of each column of gaps [N, M]."""
    items, total = len(gaps), gaps.sum(axis=0)
    # Sums that are equal on paper differ by rounding, and must count as equally extreme.
    extreme = np.abs(total) - 1e-9 * np.abs(gaps).sum(axis=0)
    hits = np.zeros(gaps.shape[1], dtype=np.int64)
    for rows in blocks(items, samples):
        bits = np.frombuffer(rng.bytes(rows * ((items + 7) // 8)), dtype=np.uint8)
        flipped = np.unpackbits(bits.reshape(rows, -1), axis=1, count=items).astype(np.float64)
        hits += (np.abs(total - 2 * (flipped @ gaps)) >= extreme).sum(axis=0)
    return [float(value) for value in (1 + hits) / (1 + samples)]
