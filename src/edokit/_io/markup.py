"""Names from data in Markdown, XML and spreadsheets, and tables in Markdown.

A name may hold anything: markup, controls, marks that turn the direction of text. Wherever it is
put, it stays text (`printable` does so for a terminal, `json_text` for JSON, `edokit.report` for
HTML).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

from edokit._errors import printable

Cell = str | int | float | None

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*[]|$~"} | {"<": "&lt;", ">": "&gt;"})
_ENTITY = re.compile(r"&(?=#?\w+;)")
_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = re.compile(r"'*(?:[\s\x00-\x1f]*[=+\-@＝＋－＠]|[\t\r])")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is, on one line: no HTML, no links, no columns."""
    line = _ENTITY.sub("&amp;", printable(" ".join(text.split()))).translate(_MARKDOWN)
    return _EMPHASIS.sub(r"\\_", line)


def xml_text(text: str) -> str:
    """Text without the characters that no XML document can hold; they are written out."""
    return _NOT_XML.sub(lambda found: repr(found[0])[1:-1], text)


def xml_attribute(text: str) -> str:
    """A quoted attribute; characters that steer a terminal are references."""
    quoted = quoteattr(xml_text(text))
    return "".join(
        character if character.isprintable() else f"&#{ord(character)};" for character in quoted
    )


def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet does not run as a formula: it begins with a quote then.

    So does text that begins with quotes before a formula, so that `without_quote` restores both.
    """
    is_formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def without_quote(text: str) -> str:
    """The text that `spreadsheet_text` made this of."""
    is_quoted = text.startswith("'") and _FORMULA.match(text)
    return text[1:] if is_quoted else text


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header. Numbers are shown rounded.

    Attributes
    ----------
    notes : Sequence[str]
        Sentences below the table.
    bold : Collection[tuple[int, int]]
        (row, column) of the cells to stress.
    digits : int
        Decimals of numbers that are not whole.
    marks : Mapping[tuple[int, int], str]
        Signs behind the cells at (row, column), which a note explains.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    bold: Collection[tuple[int, int]] = ()
    digits: int = 4
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        title: str,
        records: Sequence[Mapping[str, Any]],
        notes: Sequence[str] = (),
        digits: int = 4,
    ) -> Table:
        """A row per record; columns in which no record has a value are left out."""
        columns = dict.fromkeys(name for record in records for name in record)
        header = [name for name in columns if any(r.get(name) is not None for r in records)]
        rows = [[record.get(name) for name in header] for record in records]
        return cls(title, header, rows, notes, digits=digits)

    def shown(self) -> list[list[str]]:
        """The cells as people read them."""
        rows = self.unmarked()
        for (i, j), mark in self.marks.items():
            rows[i][j] += mark
        return rows

    def unmarked(self) -> list[list[str]]:
        """The cells as people read them, without their marks."""

        def text(cell: Cell) -> str:
            if isinstance(cell, float):
                return f"{cell:.{self.digits}f}"
            return "–" if cell is None else str(cell)

        return [[text(cell) for cell in row] for row in self.rows]

    def markdown(self) -> str:
        """A Markdown table under its title in bold, notes below."""
        rows = [[markdown_text(text) for text in row] for row in self.shown()]
        for i, j in self.bold:
            rows[i][j] = f"**{rows[i][j]}**"
        lines = [
            *([f"**{markdown_text(self.title)}**", ""] if self.title else []),
            _line([markdown_text(name) for name in self.header]),
            _line(["---"] + ["---:"] * (len(self.header) - 1)),
            *map(_line, rows),
        ]
        for note in self.notes:
            # A sentence of ours, with names in it: no tags, but it may hold Markdown.
            text = _ENTITY.sub("&amp;", printable(" ".join(note.split())))
            lines += ["", text.replace("<", "&lt;")]
        return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
