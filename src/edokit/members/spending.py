"""What the requests of one command share: a budget, and who asks.

The client of language models is not needed to open a session, so members that ask no server never
load it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from edokit._errors import InputError, check_number, option


class Budget:
    """What requests may cost together; one that may cost more than is left is refused."""

    def __init__(self, limit: float | None = None) -> None:
        if limit is not None:
            check_number("budget", limit, 0)
        self.limit = limit
        self.spent = 0.0
        self._rate: float | None = None  # highest cost so far per character of a request
        self._pending = 0  # characters of requests under way
        self._changed = threading.Condition()

    def reserve(self, size: int) -> None:
        """Wait until a request of so many characters fits, or refuse it."""
        with self._changed:
            while not self._fits(size):
                if not self._pending:
                    raise InputError(
                        f"the budget of {self.limit:g} does not cover the next request;"
                        f" {self.spent:.4g} was spent on requests of this run, whose answers are"
                        " cached",
                        f"run the same command with a larger {option('budget')}: it resumes from"
                        " there",
                    )
                self._changed.wait()
            self._pending += size

    def settle(self, size: int, cost: float | None) -> None:
        """Record the cost of a finished request; None if it failed."""
        with self._changed:
            self._pending -= size
            if cost is not None:
                self.spent += cost
                self._rate = max(self._rate or 0.0, cost / size)
            self._changed.notify_all()

    def count_lost(self, size: int) -> None:
        """Count an attempt that was not answered in time as if it cost as much as any before."""
        with self._changed:
            self.spent += (self._rate or 0.0) * size

    def _fits(self, size: int) -> bool:
        if self.limit is None:
            return True
        remaining = self.limit - self.spent
        if self._rate is None:  # the cost of the first request is not known, so it runs alone
            return remaining > 0 and not self._pending
        return remaining > 0 and self._rate * (self._pending + size) <= remaining


@dataclass
class Session:
    """What all requests of one command share.

    Attributes
    ----------
    budget : Budget
        What requests may cost.
    place : callable
        Names the item of a text that is asked about.
    member : str
        The member whose requests are sent.
    report : callable
        Called with the member and its progress.
    """

    budget: Budget = field(default_factory=Budget)
    place: Callable[[Any], str] | None = None
    member: str = ""
    report: Callable[[str], None] | None = None


_SESSION: ContextVar[Session | None] = ContextVar("session", default=None)


@contextmanager
def session(
    *, budget: float | None = None, place: Callable[[Any], str] | None = None
) -> Iterator[Session]:
    """Requests inside share this budget."""
    opened = Session(Budget(budget), place)
    token = _SESSION.set(opened)
    try:
        yield opened
    finally:
        _SESSION.reset(token)


def current_session() -> Session:
    """The session that is open, or one without limits."""
    return _SESSION.get() or Session()
