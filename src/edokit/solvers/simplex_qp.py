"""A convex quadratic on the simplex, to machine precision."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from edokit._types import Bools, Floats

_EXCHANGES = 30
_PATIENCE = 3  # exchanges in a row that may leave as many members on the wrong side
_STEPS = 60
_TO_THE_EDGE = 0.995  # how much of the way to the nearest edge a step may go


def minimize_on_simplex(
    hessian: Floats,
    linear: Floats,
    tolerance: float = 1e-13,
    support: Bools | None = None,
) -> Floats:
    """The x [K] that minimises ½·xᵀHx + c·x with x ≥ 0 and Σx = 1; H [K, K] positive semidefinite
    along the simplex.

    ``support`` [K] guesses which x are above zero. A few exchanges of members between the two sides
    settle most problems; those that they don't (H singular, say) go to an interior-point method.
    """
    if len(linear) == 1:
        return np.ones(1)
    # Costs of order one make the stopping rule and the starting point free of units.
    scale = max(float(np.abs(hessian).max()), float(linear.max() - linear.min()), 1e-300)
    h, c = hessian / scale, (linear - linear.min()) / scale
    x = _exchange(h, c, tolerance, np.ones(len(c), bool) if support is None else support.copy())
    if x is None:
        x = _interior(h, c, tolerance)
    minimum: Floats = x / x.sum()
    return minimum


def _exchange(h: Floats, c: Floats, tolerance: float, inside: Bools) -> Floats | None:
    """Solve among the members inside; those that come out negative leave, those outside whose
    slope promises a gain enter, all at once, until nobody moves. None if that does not end well.
    """
    fewest, patience = len(c) + 1, _PATIENCE
    for _ in range(_EXCHANGES):
        places = np.flatnonzero(inside)
        count = len(places)
        if count == 0:
            return None
        system = np.ones((count + 1, count + 1))
        system[:count, :count] = h if count == len(c) else h[places[:, None], places]
        system[count, count] = 0.0
        right = np.ones(count + 1)
        np.negative(c[places], out=right[:count])
        try:
            solved = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            return None
        x = np.zeros(len(c))
        x[places] = solved[:count]
        slope = h @ x + c + solved[count]
        wrong = np.where(inside, x < 0, slope < -tolerance)
        moving = int(wrong.sum())
        if moving == 0:
            exact = np.abs(slope[places]).max() < max(1e2 * tolerance, 1e-11)
            return x if exact and abs(x.sum() - 1) < 1e-9 else None
        if moving < fewest:
            fewest, patience = moving, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            return None
        inside ^= wrong
    return None


def _interior(h: Floats, c: Floats, tolerance: float) -> Floats:
    """Mehrotra's predictor-corrector steps: each solves one K × K system, and some twenty of them
    are enough whatever K is."""
    k = len(c)
    x = np.full(k, 1.0 / k)
    slope = h @ x + c
    level = float(slope.min()) - 1.0
    z = slope - level  # the price of each x ≥ 0
    for _ in range(_STEPS):
        off_dual = h @ x + c - level - z
        off_sum = 1.0 - x.sum()
        gap = float(x @ z) / k
        if gap < tolerance and np.abs(off_dual).max() < tolerance and abs(off_sum) < tolerance:
            break
        system = h.copy()
        system[np.diag_indices(k)] += z / x + 1e-15
        factor, failed = dpotrf(system, lower=1)
        if failed:
            break
        ones = dpotrs(factor, np.ones(k), lower=1)[0]

        target = np.zeros(k)
        for corrected in (False, True):
            # Newton's step towards x·z = target.
            free = dpotrs(factor, -off_dual + target / x - z, lower=1)[0]
            level_step = float((off_sum - free.sum()) / ones.sum())
            x_step = free + level_step * ones
            z_step = target / x - z - z / x * x_step
            along_x, along_z = (min(1.0, to_the_edge(*way)) for way in ((x, x_step), (z, z_step)))
            if not corrected:
                ahead = (x + along_x * x_step) @ (z + along_z * z_step) / k
                target = gap * (ahead / gap) ** 3 - x_step * z_step
        along = _TO_THE_EDGE * min(along_x, along_z)
        x, z, level = x + along * x_step, z + along * z_step, level + along * level_step
    inside: Floats = np.maximum(x, 0.0)
    return inside


def to_the_edge(values: Floats, step: Floats) -> float:
    """How many such steps all values stay at least zero."""
    shrinking = step < 0
    return float((values[shrinking] / -step[shrinking]).min()) if shrinking.any() else math.inf
