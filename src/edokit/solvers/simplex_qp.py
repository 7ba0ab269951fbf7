"""A convex quadratic on the simplex, to machine precision, by an interior-point method."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

Floats = npt.NDArray[np.float64]

_ITERATIONS = 60
_TO_THE_EDGE = 0.995  # how much of the way to the nearest edge a step may go


def minimize_on_simplex(hessian: Floats, linear: Floats, tolerance: float = 1e-13) -> Floats:
    """The x [K] that minimises ½·xᵀHx + c·x with x ≥ 0 and Σx = 1; H [K, K] positive semidefinite.

    Mehrotra's predictor-corrector steps: each solves one K × K system, and some twenty of them
    are enough whatever K is.
    """
    k = len(linear)
    if k == 1:
        return np.ones(1)
    # Costs of order one make the stopping rule and the starting point free of units.
    scale = max(float(np.abs(hessian).max()), float(np.ptp(linear)), 1e-300)
    h, c = hessian / scale, (linear - linear.min()) / scale
    x = np.full(k, 1.0 / k)
    slope = h @ x + c
    level = float(slope.min()) - 1.0
    z = slope - level  # the price of each x ≥ 0
    for _ in range(_ITERATIONS):
        off_dual = h @ x + c - level - z
        off_sum = 1.0 - x.sum()
        gap = float(x @ z) / k
        if gap < tolerance and np.abs(off_dual).max() < tolerance and abs(off_sum) < tolerance:
            break
        factor = cho_factor(h + np.diag(z / x) + 1e-15 * np.eye(k), check_finite=False)
        ones = cho_solve(factor, np.ones(k), check_finite=False)

        def step(
            target: Floats,
            off_dual: Floats = off_dual,
            off_sum: float = off_sum,
            factor: tuple[Floats, bool] = factor,
            ones: Floats = ones,
            x: Floats = x,
            z: Floats = z,
        ) -> tuple[Floats, Floats, float]:
            """Newton's step towards x·z = target."""
            right = -off_dual + target / x - z
            free = cho_solve(factor, right, check_finite=False)
            level_step = (off_sum - free.sum()) / ones.sum()
            x_step = free + level_step * ones
            return x_step, target / x - z - z / x * x_step, float(level_step)

        x_step, z_step, _ = step(np.zeros(k))
        ahead = (x + _longest(x, x_step) * x_step) @ (z + _longest(z, z_step) * z_step) / k
        centre = gap * (ahead / gap) ** 3
        x_step, z_step, level_step = step(centre - x_step * z_step)
        along_x, along_z = _longest(x, x_step), _longest(z, z_step)
        along = _TO_THE_EDGE * min(along_x, along_z)
        x, z, level = x + along * x_step, z + along * z_step, level + along * level_step
    x = np.maximum(x, 0.0)
    minimum: Floats = x / x.sum()
    return minimum


def _longest(values: Floats, step: Floats) -> float:
    """How far along the step all values stay at least zero, at most 1."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((values[shrinking] / -step[shrinking]).min()))
