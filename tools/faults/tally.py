"""Count the faults and how the commands ended."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Row:
    """One fault and one command."""

    fault: str
    command: str
    times: int = 0
    """How often the fault occurred."""
    well: int = 0
    """How often the command, or its rerun, ended with the result of an undisturbed run."""
    refused: int = 0
    """How often it first ended with an error in one line."""
    troubles: list[str] = field(default_factory=list)
    """Results that were lost or wrong."""

    @property
    def failing(self) -> int:
        """The number of failed claims; after a few, more would only take time."""
        return len(self.troubles)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Record a claim that fails, and go on with the others."""
        try:
            yield
        except Exception as error:  # a file that can't be read is as bad as a wrong one
            message = " ".join(str(error).split())[:400]
            if not isinstance(error, AssertionError):
                message = f"{type(error).__name__} {message}"
            self.troubles.append(message or traceback.format_exc()[-400:])


class Tally:
    """All rows."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.skipped: list[str] = []

    def row(self, fault: str, command: str) -> Row:
        """The row of this fault and command."""
        for row in self.rows:
            if (row.fault, row.command) == (fault, command):
                return row
        self.rows.append(Row(fault, command))
        return self.rows[-1]

    @property
    def troubles(self) -> list[str]:
        """The troubles of all rows."""
        troubles = []
        for row in self.rows:
            troubles += [f"{row.fault}, {row.command}: {trouble}" for trouble in row.troubles]
        return troubles

    @property
    def times(self) -> int:
        """How often a fault occurred."""
        return sum(row.times for row in self.rows)

    @property
    def killed(self) -> int:
        """How often a command was killed."""
        return sum(row.times for row in self.rows if row.fault.startswith("SIGKILL"))

    def table(self) -> str:
        """The rows in Markdown."""
        lines = [
            "| fault | command | times | refused in one line | ended as in peace | lost or wrong |",
            "|---|---|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {r.fault} | {r.command} | {r.times} | {r.refused} | {r.well} | {len(r.troubles)} |"
            for r in sorted(self.rows, key=lambda row: ("SIGKILL" not in row.fault, row.fault))
            if r.times or r.troubles
        ]
        lines.append(
            f"| all | | {self.times} | {sum(r.refused for r in self.rows)} |"
            f" {sum(r.well for r in self.rows)} | {len(self.troubles)} |"
        )
        return "\n".join(lines)
