"""How long something takes: the clock, and the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


class Seconds(NamedTuple):
    """On the clock, and of the processor (which other work on the machine does not lengthen)."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:.3g} / {self.processor:.3g}"

    def times(self, other: Seconds) -> str:
        """How often the other fits into this."""
        return f"{self.clock / other.clock:.0f} / {self.processor / other.processor:.0f}"


def timed(task: Callable[[], T], rounds: int = 1) -> tuple[Seconds, T]:
    """The median of a few rounds, and the result."""
    taken = []
    for _ in range(rounds):
        before = time.perf_counter(), time.process_time()
        result = task()
        taken.append((time.perf_counter() - before[0], time.process_time() - before[1]))
    return Seconds(*np.median(taken, axis=0)), result
