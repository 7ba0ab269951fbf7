"""One finding of the paper, held against ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edokit.reproduce.effects import Effect
from edokit.reproduce.section import signed

HOLDS, PARTLY, FAILS, OPEN = "holds", "holds in part", "does not replicate", "not available"


@dataclass(frozen=True)
class Finding:
    """What the paper says, what was measured here, and the verdict."""

    paper_says: str
    here: str
    verdict: str


def shown(one: Effect) -> str:
    """An effect with its interval and spread."""
    return (
        f"{signed(one.value)} [{signed(one.low)}, {signed(one.high)}; spread between seeds"
        f" {one.spread:.4f}]"
    )


def largest(effects: Sequence[Effect]) -> Effect:
    """The one that is farthest from 0."""
    return max(effects, key=lambda one: abs(one.value))


def not_tested(says: str, members: str = "random-select") -> Finding:
    """Without members there is nothing to hold it against."""
    return Finding(says, f"There are no predictions of {members} members.", OPEN)
