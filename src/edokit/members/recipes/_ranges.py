"""Numbers that options of a recipe may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from edokit._errors import check_number


class Range(NamedTuple):
    """The least and the largest value of an option.

    It may have to be an ``integer``, or ``above`` the least value; ``optional``: it may be None.
    """

    least: float
    largest: float = float("inf")
    integer: bool = False
    above: bool = False
    optional: bool = False


def check_ranges(options: Any, ranges: Mapping[str, Range]) -> None:
    """Refuse options, attributes by name, outside of their ranges."""
    for name, (least, largest, integer, above, optional) in ranges.items():
        value = getattr(options, name)
        if value is not None or not optional:
            check_number(name, value, least, largest, whole=integer, above=above)
