"""One question about the paper's numbers, answered by computing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edokit._io.markup import Table


@dataclass(frozen=True)
class Check:
    """A question, whether the paper's numbers pass, and why."""

    question: str
    holds: bool | None
    """Whether the paper's figures are as they should be; None where the data is missing."""
    finding: str
    """In words, with the figures that matter."""
    table: Table | None = None

    @property
    def answer(self) -> str:
        """``yes``, ``no`` or ``needs the data``."""
        return "needs the data" if self.holds is None else "yes" if self.holds else "no"


def logit(p: float) -> float:
    """The number whose sigmoid is p: what a squashed value was before."""
    return math.log(p / (1 - p))


def binary_entropy(p: float) -> float:
    """Entropy of (1 − p, p) in nats."""
    return -sum(x * math.log(x) for x in (p, 1 - p) if x > 0)
