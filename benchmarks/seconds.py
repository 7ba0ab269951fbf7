"""Measure how long a task takes, on the clock and of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


class Seconds(NamedTuple):
    """Seconds on the clock, and of the processor.

    Other work on the machine does not lengthen those of the processor.
    """

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:.3g} / {self.processor:.3g}"

    def times(self, other: Seconds) -> str:
        """The ratio to other seconds, on the clock and of the processor."""
        return f"{self.clock / other.clock:.0f} / {self.processor / other.processor:.0f}"


def timed(task: Callable[[], T], rounds: int = 1) -> tuple[Seconds, T]:
    """The median seconds of a few rounds, and the result of the last one."""
    clock_seconds = []
    processor_seconds = []
    for _ in range(rounds):
        clock_start = time.perf_counter()
        processor_start = time.process_time()
        result = task()
        clock_seconds.append(time.perf_counter() - clock_start)
        processor_seconds.append(time.process_time() - processor_start)
    return Seconds(np.median(clock_seconds), np.median(processor_seconds)), result
