"""The interval of a calibration error, an estimate that noise biases upwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edokit._types import Floats


def ece_ends(measured: Floats, resampled: Floats, level: float) -> tuple[float, float]:
    """Low and high ends, from the gaps of the bins, measured [B] and resampled [samples, B].

    Noise increases the gaps of bins, so the ECE is biased upwards, and its resamples even more. The
    interval contains the true values for which the estimate is neither surprisingly high nor low.
    For each value, the most plausible gaps with this sum are tested: the measured gaps, all moved
    towards 0, or away from it, by a multiple of their variances.
    """
    noise = resampled - measured
    variances = noise.var(axis=0)
    estimate = float(np.abs(measured).sum())
    tail = (1 - level) / 2
    signs = np.where(measured < 0, -1.0, 1.0)

    def moved(multiple: float) -> Floats:
        """The gaps, moved from 0 by a multiple of their variances, or towards 0 if it is negative.

        No gap moves beyond 0.
        """
        return np.asarray(signs * np.maximum(np.abs(measured) + multiple * variances, 0.0))

    def is_too_low(multiple: float) -> bool:
        """Whether the moved gaps are implausibly small.

        If they were the true gaps, an ECE as high as the estimate would be surprising.
        """
        simulated = np.abs(moved(multiple) + noise).sum(axis=1)
        return bool((simulated >= estimate - 1e-12).mean() < tail)

    def is_too_high(multiple: float) -> bool:
        """Whether the moved gaps are implausibly large.

        If they were the true gaps, an ECE as low as the estimate would be surprising.
        """
        simulated = np.abs(moved(multiple) + noise).sum(axis=1)
        return bool((simulated <= estimate + 1e-12).mean() < tail)

    varied = variances > 0
    if not varied.any():
        return estimate, estimate
    # Moved by −farthest, all gaps that vary are 0.
    farthest = float((np.abs(measured[varied]) / variances[varied]).max())
    low = 0.0
    if is_too_low(-farthest):
        multiple = _last_multiple(is_too_low, -farthest, farthest)
        low = float(np.abs(moved(multiple)).sum())
    # Doubled until the moved gaps are too large, so that the high end lies before it.
    end = max(farthest, estimate / float(variances.sum()))
    while not is_too_high(end):
        end *= 2
    multiple = _last_multiple(lambda value: not is_too_high(value), -farthest, end)
    high = float(np.abs(moved(multiple)).sum())
    return min(low, estimate), max(high, estimate)


def _last_multiple(holds: Callable[[float], bool], start: float, end: float) -> float:
    """The multiple up to which a condition holds, by bisection.

    It holds at the start and not at the end, and changes once between them.
    """
    for _ in range(30):
        middle = (start + end) / 2
        if holds(middle):
            start = middle
        else:
            end = middle
    return start
