"""Adam for many small problems at once: one array of parameters, a learning rate per row."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

MEAN_DECAY = 0.9  # β₁
SQUARE_DECAY = 0.999  # β₂
TINY = 1e-8


class Adam:
    """Moves parameters of any shape in place, with learning rates that broadcast to it."""

    def __init__(self, parameters: Floats, learning_rate: Floats) -> None:
        self._parameters = parameters
        self._learning_rate = learning_rate
        self._mean = np.zeros_like(parameters)
        self._square = np.zeros_like(parameters)
        self._steps = 0

    def step(self, gradient: Floats) -> None:
        """One step downhill; every number of the gradient is used up (it serves as scratch)."""
        self._steps += 1
        self._mean *= MEAN_DECAY
        self._mean += (1.0 - MEAN_DECAY) * gradient
        np.multiply(gradient, gradient, out=gradient)
        gradient *= 1.0 - SQUARE_DECAY
        self._square *= SQUARE_DECAY
        self._square += gradient
        # Both averages start at zero; dividing by these takes that bias out again.
        mean_share = 1.0 - MEAN_DECAY**self._steps
        square_share = math.sqrt(1.0 - SQUARE_DECAY**self._steps)
        scale = np.sqrt(self._square, out=gradient)
        scale *= mean_share / square_share
        scale += TINY * mean_share
        np.divide(self._mean, scale, out=scale)
        scale *= self._learning_rate
        self._parameters -= scale
