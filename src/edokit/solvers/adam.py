"""Adam for many small problems at once: one array of parameters, a learning rate for each."""

from __future__ import annotations

import math

import numpy as np

from edokit._types import Floats

MEAN_DECAY = 0.9  # β₁
SQUARE_DECAY = 0.999  # β₂
TINY = 1e-8
FURTHEST = (1 - MEAN_DECAY) / math.sqrt(1 - SQUARE_DECAY)
"""No step is longer than so many learning rates."""


class Adam:
    """Moves parameters in place, with learning rates of the same shape.

    The running means are kept without their factors 1 − β, which are applied at the end.
    """

    def __init__(self, parameters: Floats, learning_rate: Floats) -> None:
        self._parameters = parameters
        self._learning_rate = learning_rate
        self._mean = np.zeros_like(parameters)
        self._square = np.zeros_like(parameters)
        self._steps = 0

    def step(self, gradient: Floats) -> None:
        """One step downhill; every number of the gradient is used up (it serves as scratch)."""
        self._steps += 1
        mean, square = self._mean, self._square
        mean *= MEAN_DECAY
        mean += gradient
        np.multiply(gradient, gradient, out=gradient)
        square *= SQUARE_DECAY
        square += gradient
        # Both averages start at zero; dividing by these takes that bias out again.
        mean_share = 1.0 - MEAN_DECAY**self._steps
        square_share = math.sqrt(1.0 - SQUARE_DECAY**self._steps)
        scale = np.sqrt(square, out=gradient)
        scale += TINY * square_share / math.sqrt(1.0 - SQUARE_DECAY)
        np.divide(mean, scale, out=scale)
        scale *= self._learning_rate
        scale *= FURTHEST * square_share / mean_share
        self._parameters -= scale
