"""Escaping for Markdown, XML and spreadsheets, and tables in Markdown.

A name from data may contain anything: markup, control characters, marks that change the direction
of text. It is escaped wherever it is written (`printable` does so for a terminal, `json_text` for
JSON, `edokit.report` for HTML).
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
    """Text on one line in which HTML, links, emphasis and column separators are escaped."""
    line = _ENTITY.sub("&amp;", printable(" ".join(text.split()))).translate(_MARKDOWN)
    return _EMPHASIS.sub(r"\\_", line)


def xml_text(text: str) -> str:
    """Text in which characters that XML does not allow are written as escape sequences."""
    return _NOT_XML.sub(lambda match: repr(match[0])[1:-1], text)


def xml_attribute(text: str) -> str:
    """A quoted attribute; control characters are written as references."""
    quoted = quoteattr(xml_text(text))
    characters = []
    for character in quoted:
        if not character.isprintable():
            character = f"&#{ord(character)};"
        characters.append(character)
    return "".join(characters)


def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet does not run as a formula: a quote is put before a formula.

    A quote is also put before text that begins with quotes and a formula, so that `without_quote`
    restores both.
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def without_quote(text: str) -> str:
    """The original text: the inverse of `spreadsheet_text`."""
    if text.startswith("'") and _FORMULA.match(text):
        return text[1:]
    return text


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header. Numbers are shown rounded.

    Attributes
    ----------
    notes : Sequence[str]
        Sentences below the table.
    bold : Collection[tuple[int, int]]
        (row, column) of the cells in bold.
    digits : int
        Decimals of numbers that are not whole.
    marks : Mapping[tuple[int, int], str]
        Marks after the cells at (row, column), which a note explains.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    bold: Collection[tuple[int, int]] = ()
    digits: int = 4
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @classmethod
    def from_records(
        cls,
        title: str,
        records: Sequence[Mapping[str, Any]],
        notes: Sequence[str] = (),
        digits: int = 4,
    ) -> Table:
        """One row per record; columns in which every value is missing are left out."""
        filled: dict[str, bool] = {}  # by column, in order of first appearance
        for record in records:
            for name, value in record.items():
                filled[name] = filled.get(name, False) or value is not None
        header = [name for name, is_filled in filled.items() if is_filled]
        rows = [list(map(record.get, header)) for record in records]
        return cls(title, header, rows, notes, digits=digits)

    def marked(self) -> list[list[str]]:
        """The cells as text, with their marks."""
        rows = self.unmarked()
        for (i, j), mark in self.marks.items():
            rows[i][j] += mark
        return rows

    def unmarked(self) -> list[list[str]]:
        """The cells as text, without their marks."""
        return [list(map(self._cell_text, row)) for row in self.rows]

    def _cell_text(self, cell: Cell) -> str:
        if cell is None:
            return "–"
        if isinstance(cell, float):
            return f"{cell:.{self.digits}f}"
        return str(cell)

    def markdown(self) -> str:
        """A Markdown table under its title in bold, with the notes below."""
        rows = [list(map(markdown_text, row)) for row in self.marked()]
        for i, j in self.bold:
            rows[i][j] = f"**{rows[i][j]}**"
        lines = []
        if self.title:
            lines += [f"**{markdown_text(self.title)}**", ""]
        lines += [
            _line([markdown_text(name) for name in self.header]),
            _line(["---"] + ["---:"] * (len(self.header) - 1)),
            *map(_line, rows),
        ]
        for note in self.notes:
            # EDO's own sentences may contain Markdown; names within them must not add HTML.
            text = _ENTITY.sub("&amp;", printable(" ".join(note.split())))
            lines += ["", text.replace("<", "&lt;")]
        return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
