"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MINUS = "−"
NONE = "–"


def number(value: float | None, digits: int = 4) -> str:
    """``0.2947``, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{value:.{digits}f}"
    return f"{MINUS}{text[1:]}" if text.startswith("-") else text


def signed(value: float | None, digits: int = 4) -> str:
    """``+0.0012`` or ``−0.0097``."""
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{value:+.{digits}f}"
    return f"{MINUS}{text[1:]}" if text.startswith("-") else text


def percent(share: float | None, digits: int = 0) -> str:
    """``74 %``, with a space that does not break."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{100 * share:.{digits}f}\u00a0%"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """``1 item``, ``10,000 items``."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def interval(ends: Sequence[float | None] | None, digits: int = 4) -> str:
    """``0.2812 to 0.3090``, or nothing."""
    if ends is None or len(ends) != 2 or ends[0] is None or ends[1] is None:
        return ""
    return f"{number(ends[0], digits)} to {number(ends[1], digits)}"


def listed(words: Sequence[str]) -> str:
    """``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def rounded(values: Any, digits: int = 4) -> Any:
    """Nested lists of numbers, short enough for a page; what is not finite becomes None."""
    if isinstance(values, list | tuple):
        return [rounded(value, digits) for value in values]
    if hasattr(values, "tolist"):
        return rounded(values.tolist(), digits)
    if isinstance(values, float):
        return round(values, digits) if math.isfinite(values) else None
    return values
