"""Tables of the reproduction as files: Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from edokit._errors import printable
from edokit._io.atomic import whole_file
from edokit._io.latex import latex
from edokit._io.markup import Cell, Table, spreadsheet_text


def comma_separated(table: Table) -> str:
    """Comma-separated values with a header, numbers in full, empty cells empty.

    Text that a spreadsheet would take for a formula begins with a quote.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_spreadsheet_cell, table.header))
    for row in table.rows:
        writer.writerow(map(_spreadsheet_cell, row))
    return out.getvalue()


def _spreadsheet_cell(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return spreadsheet_text(printable(cell))
    return cell


def write_table(table: Table, folder: Path, name: str) -> list[Path]:
    """Write ``name.md``, ``name.csv`` and ``name.tex`` into a folder."""
    texts = {"md": table.markdown(), "csv": comma_separated(table), "tex": latex(table)}
    paths = {folder / f"{name}.{ending}": text for ending, text in texts.items()}
    for path, text in paths.items():
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return list(paths)
