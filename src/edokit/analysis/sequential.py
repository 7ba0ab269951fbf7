"""Monte Carlo p-values with enough permutations for a verdict that does not depend on the seed.

After each look, an exact (Clopper–Pearson) interval says where each p-value can lie. Holm's
procedure is monotone in the p-values: a test that it rejects with all upper ends is rejected
wherever the p-values lie in their intervals, and one that it retains with all lower ends is
retained (Gandy & Hahn, 2014). Permutations go on until every test is decided, or up to a largest
number. The verdict on a test that is still open is then "can't tell".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import beta

from edokit._progress import Progress, no_progress
from edokit._types import Bools, Floats, Ints

LEVEL = 0.05
"""Level of all tests of a family together."""
RISK = 0.001
"""Probability, over all looks, that an interval misses the p-value of endless permutations."""
FIRST_LOOK = 199
"""Fewer permutations can't show that a p-value is below 5 %."""
_GROWTH = 2
"""Factor by which the number of permutations grows from one look to the next."""

Verdict = Literal["yes", "no", "can't tell"]


@dataclass(frozen=True, eq=False)
class MonteCarloTests:
    """P-values of a family of tests, estimated from permutations.

    Attributes
    ----------
    p, low, high : ndarray of shape (T,)
        P-values, and the ends of the interval in which those of infinitely many permutations lie.
    adjusted : ndarray of shape (T,)
        P-values, corrected by Holm's procedure for all tests of the family.
    verdicts : tuple of {"yes", "no", "can't tell"}
        Whether each test rejects at 5 % after correction.
    permutations : ndarray of shape (T,)
        Permutations of each test.
    """

    p: Floats
    low: Floats
    high: Floats
    adjusted: Floats
    verdicts: tuple[Verdict, ...]
    permutations: Ints


def holm(p: Floats, weights: Floats | None = None) -> Floats:
    """Return p-values corrected for the number of tests by Holm's procedure.

    The tests share the level by their ``weights``, or equally if these are None.
    """
    if weights is None:
        weights = np.ones(len(p))
    weighted = p / weights
    order = np.argsort(weighted, kind="stable")
    # At each step, the level is shared by this test and those with a larger weighted p-value: their
    # weights are summed from the end.
    from_the_end = np.cumsum(weights[order][::-1])
    remaining = from_the_end[::-1]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(weighted[order] * remaining), 1.0)
    return adjusted


def p_interval(exceeding: Ints, permutations: Ints, risk: float) -> tuple[Floats, Floats]:
    """Return Clopper–Pearson intervals of p-values, given the number of exceeding permutations."""
    below = beta.ppf(risk / 2, exceeding, permutations - exceeding + 1)
    above = beta.ppf(1 - risk / 2, exceeding + 1, permutations - exceeding)
    low = np.where(exceeding == 0, 0.0, below)
    high = np.where(exceeding == permutations, 1.0, above)
    return low, high


def look_sizes(most: int) -> list[int]:
    """Return after how many permutations to look: 199, 399, 799, …, and last ``most``."""
    sizes = []
    size = FIRST_LOOK
    while size < most:
        sizes.append(size)
        size = _GROWTH * size + 1
    return [*sizes, most]


def decide(
    low: Floats, high: Floats, weights: Floats | None = None, level: float = LEVEL
) -> tuple[Verdict, ...]:
    """Return whether Holm's procedure rejects each test, given intervals of the p-values."""
    rejected = holm(high, weights) <= level
    retained = holm(low, weights) > level
    verdicts: list[Verdict] = []
    for is_rejected, is_retained in zip(rejected, retained, strict=True):
        if is_rejected:
            verdicts.append("yes")
        elif is_retained:
            verdicts.append("no")
        else:
            verdicts.append("can't tell")
    return tuple(verdicts)


def run_tests(
    weights: Floats,
    count_exceeding: Callable[[Bools, int], Ints],
    most: int,
    progress: Progress = no_progress,
) -> MonteCarloTests:
    """Permute until every test is decided, or ``most`` times.

    Parameters
    ----------
    weights : ndarray of shape (T,)
        Share of the level that each test has.
    count_exceeding : callable
        Called with which tests are open [T] and how many permutations to make. Returns in how many
        of these each statistic is at least that of the data [T]; counts of tests that are not open
        are ignored.
    most : int
        Largest number of permutations.
    progress : callable, default=no_progress
        Called with the permutations done and the largest number.

    Returns
    -------
    MonteCarloTests
    """
    n_tests = len(weights)
    exceeding = np.zeros(n_tests, dtype=np.int64)
    permutations = np.zeros(n_tests, dtype=np.int64)
    is_open = np.ones(n_tests, dtype=bool)
    verdicts: tuple[Verdict, ...] = ()
    low = np.zeros(n_tests)
    high = np.ones(n_tests)
    sizes = look_sizes(most)
    done = 0
    for size in sizes:
        if not is_open.any():
            break
        counts = count_exceeding(is_open, size - done)
        exceeding[is_open] += counts[is_open]
        permutations[is_open] = size
        done = size
        low, high = p_interval(exceeding, permutations, RISK / len(sizes))
        verdicts = decide(low, high, weights)
        if most < FIRST_LOOK:
            # So few permutations can't decide through intervals. The estimates decide, and the
            # verdict may change with the seed.
            estimates = (exceeding + 1) / (permutations + 1)
            verdicts = decide(estimates, estimates, weights)
        is_open = np.array([verdict == "can't tell" for verdict in verdicts])
        progress(done, most, "permuting people")
    progress(most, most, "permuting people")
    p = (exceeding + 1) / (permutations + 1)
    return MonteCarloTests(p, low, high, holm(p, weights), verdicts, permutations)
