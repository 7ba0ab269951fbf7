"""How the Gumbel solver searches."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from edokit._errors import InputError


@dataclass(frozen=True)
class GumbelSettings:
    """How to search; the defaults are the paper's."""

    epochs: int = 10
    """Passes over the items."""
    batch_size: int = 32
    """Items per step; at most all of them."""
    learning_rate: float = 1e-3
    """Step size of Adam (η)."""
    temperature: float = 0.5
    """Of the Gumbel-Softmax in the first epoch (T₀)."""
    temperature_decay: float = 0.05
    """The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ)."""
    min_temperature: float = 0.1
    """It falls no further than this."""
    min_members: int = 1
    """Smallest size (K_min)."""
    max_members: int = 10
    """Largest size (K_max); members ranked below it get no weight. At most all members."""

    @classmethod
    def thorough(
        cls, items: int, *, batch_size: int = 32, min_members: int = 1, max_members: int = 10
    ) -> GumbelSettings:
        """Settings that come close to the optimum on so many items.

        At least 2,000 steps (the paper's ten epochs are 50 on 141 items), a learning rate thirty
        times the paper's, and a temperature that cools from 1 to 0.1 over all of them.
        """
        steps = math.ceil(items / min(batch_size, items))
        epochs = max(10, math.ceil(2000 / steps))
        return cls(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=0.03,
            temperature=1.0,
            temperature_decay=math.log(10.0) / (epochs - 1),
            min_members=min_members,
            max_members=max_members,
        )

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "min_members", "max_members"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            _require(whole and value >= 1, name, "a whole number of at least 1", value)
        for name in ("learning_rate", "temperature", "min_temperature"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value > 0, name, "a number above 0", value)
        decay = self.temperature_decay
        allowed = math.isfinite(decay) and decay >= 0
        _require(allowed, "temperature_decay", "a number of at least 0", decay)
        if self.min_members > self.max_members:
            raise InputError(
                "min_members <= max_members must hold, but got "
                f"min_members={self.min_members}, max_members={self.max_members}",
                "make them equal to fix the size",
            )


def _require(holds: bool, name: str, rule: str, value: Any) -> None:
    if not holds:
        usual = next(field.default for field in fields(GumbelSettings) if field.name == name)
        raise InputError(f"{name} must be {rule}, but got {value!r}", f"the paper uses {usual!r}")
