"""Differential evolution on a box, a whole generation at a time.

The same search as ``scipy.optimize.differential_evolution`` with ``strategy="best1bin"`` and its
defaults (without the final polish), written for losses that take a generation in one call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from edokit._types import Floats

CROSSING = 0.7
MUTATION = (0.5, 1.0)


def evolve(
    loss: Callable[[Floats], Floats],
    low: Floats,
    high: Floats,
    rng: np.random.Generator,
    *,
    generations: int = 100,
    population: int = 15,
    tolerance: float = 1e-6,
) -> tuple[Floats, float]:
    """The best point [D] found between ``low`` and ``high`` [D], and its loss.

    ``loss`` maps points [S, D] to [S]. There are ``population`` points per dimension. It ends
    early when the losses of a generation differ by less than ``tolerance`` of their mean.
    """
    dimensions = len(low)
    count = max(5, population * dimensions)
    # Points live in the unit box.
    points = rng.random((count, dimensions))
    losses = loss(low + points * (high - low))
    for _ in range(generations):
        best = points[losses.argmin()]
        first, second = _pairs(count, rng)
        mutants = best + rng.uniform(*MUTATION) * (points[first] - points[second])
        crossed = rng.random((count, dimensions)) < CROSSING
        crossed[np.arange(count), rng.integers(dimensions, size=count)] = True
        tried = np.where(crossed, mutants, points)
        outside = (tried < 0) | (tried > 1)
        tried[outside] = rng.random(int(outside.sum()))
        found = loss(low + tried * (high - low))
        better = found <= losses
        points[better], losses[better] = tried[better], found[better]
        if losses.std() <= tolerance * abs(losses.mean()):
            break
    winner = int(losses.argmin())
    return low + points[winner] * (high - low), float(losses[winner])


def _pairs(count: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
    """Two others for each point, all three different [count] each."""
    own = np.arange(count)
    first = (own + rng.integers(1, count, size=count)) % count
    second = rng.integers(count - 2, size=count)
    lower, upper = np.minimum(own, first), np.maximum(own, first)
    second = second + (second >= lower)
    return first, second + (second >= upper)
