"""A row of the table of `coverage.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edokit.metrics.score_interval import score_interval

Promise = Literal["covers", "false alarms", "kept"]


@dataclass(frozen=True)
class CoverageRow:
    """How often one statement was true in simulations.

    Attributes
    ----------
    shown : str
        The statement that a user sees, such as "interval of CE".
    data : str
        What was simulated, such as "two classes, balanced".
    promise : {"covers", "false alarms", "kept"}
        What is counted: intervals that cover the truth, tests that find a difference where there is
        none, or promises ("at most 5 %, with 95 % confidence") that were kept.
    nominal : float
        The share that the product states: the least of intervals or promises, the most of false
        alarms.
    count, runs : int
        How often it happened, among how many simulated tables.
    size : str, default=""
        How much was simulated, such as "30 items". Rows that differ in nothing else share a line of
        the table, and should follow each other.
    """

    shown: str
    data: str
    promise: Promise
    nominal: float
    count: int
    runs: int
    size: str = ""

    @property
    def title(self) -> tuple[str, ...]:
        """The texts that rows of one line share."""
        return self.shown, self.data, f"{self.promise} {100 * self.nominal:g}%"

    @property
    def share(self) -> float:
        """The measured share."""
        return self.count / self.runs

    @property
    def is_miss(self) -> bool:
        """Whether the simulation shows that it is worse than stated, chance aside."""
        variance = self.share * (1 - self.share) / self.runs
        low, high = score_interval(self.share, variance, self.runs)
        if self.promise == "false alarms":
            return bool(low > self.nominal)
        return bool(high < self.nominal)

    @property
    def measured(self) -> str:
        """``30 items: 91.2 %``, in bold if it is a miss."""
        text = f"{100 * self.share:.1f} %"
        if self.is_miss:
            text = f"**{text}**"
        if self.size:
            text = f"{self.size}: {text}"
        return text


def table_line(name: str, rows: list[CoverageRow]) -> str:
    """A line of the table, from rows of one title; ``name`` is that of the scenario."""
    runs = {str(row.runs) for row in rows}
    measured = ", ".join(row.measured for row in rows)
    cells = [f"`{name}`", *rows[0].title, measured, "–".join(sorted(runs, key=int))]
    return f"| {' | '.join(cells)} |"
