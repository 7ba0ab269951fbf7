"""A temperature after pooling: a pool of calibrated members is not calibrated."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from edokit._types import Floats
from edokit.objective import EPSILON

LOWEST, HIGHEST = 0.05, 20.0
"""Temperatures that are considered."""


def sharpen(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities [N, C] to the power 1/temperature, normalised; below 1 sharpens."""
    if temperature == 1.0:
        return probabilities
    logs = np.log(probabilities + EPSILON) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    sharpened: Floats = powers / powers.sum(axis=1, keepdims=True)
    return sharpened


def fit_temperature(probabilities: Floats, soft_labels: Floats) -> float:
    """The temperature with the lowest cross-entropy, between 1/20 and 20.

    The cross-entropy is convex in 1/temperature, so there is one lowest point.
    """
    logs = np.log(probabilities + EPSILON)

    def cross_entropy(power: float) -> float:
        scores = logs * power
        top = scores.max(axis=1, keepdims=True)
        norms = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        return float(np.mean(norms - (soft_labels * scores).sum(axis=1)))

    found = minimize_scalar(
        cross_entropy, bounds=(1 / HIGHEST, 1 / LOWEST), method="bounded", options={"xatol": 1e-9}
    )
    return float(1.0 / found.x)


def power_sums(probabilities: Floats, soft_labels: Floats, power: float) -> Floats:
    """[3] cross-entropy after sharpening to this power, its slope and its bend in the power.

    Summed over items, so that shards add up.
    """
    logs = np.log(probabilities + EPSILON)
    scores = logs * power
    top = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - top)
    norms = powers.sum(axis=1, keepdims=True)
    sharp = powers / norms
    mean = (sharp * logs).sum(axis=1)
    value = (top + np.log(norms)).sum() - (soft_labels * scores).sum()
    slope = mean.sum() - (soft_labels * logs).sum()
    bend = (sharp * logs**2).sum() - (mean**2).sum()
    return np.array([value, slope, bend])
