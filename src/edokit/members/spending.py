"""What the requests of one command share: a budget, and the member that sends them.

Opening a session does not load the client of language models, which few members need.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from edokit._errors import InputError, check_number, option
from edokit.members.contexts import Text

_BYTES_PER_TOKEN = 4  # of English in UTF-8, on average
_FRAME_TOKENS = 8  # around each message: its role, and marks of the chat template


@dataclass(frozen=True)
class TokenEstimate:
    """How many tokens a request and its answer have, before a server has counted them.

    Attributes
    ----------
    prompt : int
        Tokens that the prompt has on average.
    most_prompt : int
        Tokens that the prompt has at most: one a byte, and what a chat template adds.
    most_answer : int or None
        Tokens that the answer may have; None if the request does not limit them.
    """

    prompt: int
    most_prompt: int
    most_answer: int | None


def estimate_tokens(texts: list[str], most_answer: int | None) -> TokenEstimate:
    """Estimate the tokens of a request from the contents of its messages.

    No tokenizer makes more tokens than the text has bytes.
    """
    n_bytes = sum(utf8_length(text) for text in texts)
    frame = _FRAME_TOKENS * (len(texts) + 1)
    return TokenEstimate(mean_tokens(n_bytes), n_bytes + frame, most_answer)


def mean_tokens(n_bytes: int) -> int:
    """Number of tokens that a text of this length has on average."""
    return -(-n_bytes // _BYTES_PER_TOKEN)


def utf8_length(text: str) -> int:
    """Length of a text in bytes; an unpaired surrogate has three."""
    return len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens of prompts and of answers."""

    prompt: float
    answer: float

    def cost(self, prompt_tokens: int, answer_tokens: int) -> float:
        """The cost of tokens."""
        return (prompt_tokens * self.prompt + answer_tokens * self.answer) / 1e6


@dataclass(frozen=True)
class Reservation:
    """What a request should cost at most, and the amount that is set aside for it."""

    highest_cost: float
    amount: float


class Budget:
    """A limit on what the requests of one command cost together.

    Before a request is sent, the most that it can cost is reserved. It is sent if the limit covers
    this, what was spent, and what is reserved for requests under way. Otherwise it waits for these,
    which may turn out cheaper, and is refused if none is left. Only a server that counts more
    tokens than a request allows can exceed the limit: after the first such answer, requests are
    sent one by one, and more is reserved for each, in proportion.

    Parameters
    ----------
    limit : float, default=None
        The most that requests may cost; None: as much as they do.

    Attributes
    ----------
    spent : float
        Cost of the requests so far, answered or perhaps charged for without an answer.
    """

    def __init__(self, limit: float | None = None) -> None:
        if limit is not None:
            check_number("budget", limit, 0)
        self.limit = limit
        self.spent = 0.0
        self._reserved = 0.0
        self._under_way = 0
        # The highest cost of a request so far, divided by what it should have cost at most.
        self._excess: float | None = None
        self._changed = threading.Condition()

    def reserve(self, highest_cost: float) -> Reservation:
        """Wait until a request that costs at most this fits, and reserve that; or refuse it."""
        with self._changed:
            while True:
                amount = highest_cost * max(1.0, self._excess or 0.0)
                if self._fits(amount):
                    self._reserved += amount
                    self._under_way += 1
                    return Reservation(highest_cost, amount)
                if not self._under_way:
                    raise self._refusal(amount)
                self._changed.wait()

    def settle(self, reservation: Reservation, cost: float) -> None:
        """Replace what was reserved for a request by its cost; 0 if it was refused."""
        with self._changed:
            self._reserved -= reservation.amount
            self._under_way -= 1
            self.spent += cost
            # A free request does not show how the server counts.
            if cost > 0 and reservation.highest_cost > 0:
                self._excess = max(self._excess or 0.0, cost / reservation.highest_cost)
            self._changed.notify_all()

    def _refusal(self, amount: float) -> InputError:
        problem = (
            f"the budget of {self.limit:g} does not cover the next request, which may cost"
            f" {amount:.4g}"
        )
        if self.spent == 0:
            return InputError(
                problem,
                f"run the same command with a larger {option('budget')}",
                code="exceeded-budget",
            )
        return InputError(
            f"{problem}; {self.spent:.4g} was spent in this run, and its answers are cached",
            f"run the same command again to continue: {option('budget')} is per run",
            code="exceeded-budget",
        )

    def _fits(self, amount: float) -> bool:
        """Whether a request that costs at most this may be sent now."""
        if self.limit is None or amount == 0:  # what is free fits any limit
            return True
        # Until one answer has shown how the server counts, requests are sent one by one.
        is_trusted = self._excess is not None and self._excess <= 1
        if self._under_way and not is_trusted:
            return False
        remaining = self.limit - self.spent
        # Sums of costs are rounded.
        return remaining > 0 and self._reserved + amount <= remaining * (1 + 1e-12)


@dataclass
class Session:
    """What all requests of one command share.

    Attributes
    ----------
    budget : Budget
        What requests may cost.
    allow_http : bool
        Whether texts and keys may be sent to other machines without encryption.
    place : callable
        Names the item of a text that is asked about.
    member : str
        The member whose requests are sent.
    report : callable
        Called with the member and its progress.
    """

    budget: Budget = field(default_factory=Budget)
    allow_http: bool = False
    place: Callable[[Text], str] | None = None
    member: str = ""
    report: Callable[[str], None] | None = None


_SESSION: ContextVar[Session | None] = ContextVar("session", default=None)


@contextmanager
def session(
    *,
    budget: float | None = None,
    allow_http: bool = False,
    place: Callable[[Text], str] | None = None,
) -> Iterator[Session]:
    """Requests inside share this budget."""
    opened = Session(Budget(budget), allow_http, place)
    token = _SESSION.set(opened)
    try:
        yield opened
    finally:
        _SESSION.reset(token)


def current_session() -> Session:
    """The session that is open, or one without limits."""
    return _SESSION.get() or Session()
