"""One part of the reproduction: tables, sentences, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edokit._io.markup import Cell, Table
from edokit.figures import Figure
from reproduction.tables import write_table


@dataclass(frozen=True)
class Section:
    """A part of the results with its tables, sentences and figures."""

    name: str
    title: str
    tables: Mapping[str, Table]
    """By the name of the files they are written to."""
    words: Sequence[str] = ()
    """The results in words, a sentence each."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The results for scripts, ready for JSON."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """By the name of the files they are written to."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "words": list(self.words),
            **self.values,
            "tables": {
                name: {"title": table.title, "rows": records(table)}
                for name, table in self.tables.items()
            },
        }

    def write(self, folder: Path) -> list[Path]:
        """Every table as Markdown, CSV and LaTeX, and the figures."""
        written: list[Path] = []
        for name, table in self.tables.items():
            written += write_table(table, folder, name)
        for name, figure in self.figures.items():
            for ending in ("png", "pdf"):
                path = folder / f"{name}.{ending}"
                figure.save(path)
                written.append(path)
        return written


def records(table: Table) -> list[dict[str, Cell]]:
    """The rows of a table by column."""
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def difference(ours: float | None, theirs: float | None) -> float | None:
    """Ours less the paper's, where both are known."""
    if ours is None or theirs is None:
        return None
    return ours - theirs


def signed(value: float | None, digits: int = 4) -> str | None:
    """A difference with its sign; a difference that rounds to zero has none."""
    if value is None:
        return None
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return f"{0:.{digits}f}"
    return text.replace("-", "−")
