"""Tables that people read and copy: Markdown, CSV and LaTeX from the same cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from edokit._errors import InputError, one_of
from edokit._io import whole_file

Cell = str | int | float | None

ENDINGS = {"markdown": "md", "csv": "csv", "latex": "tex"}
"""How a file in each form of a table ends."""
FORMATS = tuple(ENDINGS)
"""Names of these forms."""

# What pdfLaTeX does not take as it is: signs of its own, other signs of text, mathematics.
_WORDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "’": "'",
}
_MATHS = (
    r"− -, ± \pm, × \times, ≤ \leq, ≥ \geq, ≈ \approx, ↑ \uparrow, ↓ \downarrow, → \to, · \cdot,"
    r"< <, > >, | |, ‖ \|, ² ^2, ₁ _1, ₂ _2, α \alpha, β \beta, γ \gamma, δ \delta, η \eta,"
    r"λ \lambda, μ \mu, π \pi, ρ \rho, σ \sigma, φ \varphi, Δ \Delta, Σ \Sigma"
)
_LATEX = (
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | _WORDS
    | {sign: f"${code}$" for sign, code in map(str.split, _MATHS.split(","))}
)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header. Numbers are shown rounded, and kept whole in CSV."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    """Sentences below the table (not in CSV)."""
    bold: Collection[tuple[int, int]] = ()
    """(row, column) of the cells to stress (not in CSV)."""
    digits: int = 4
    """Decimals of numbers that are not whole."""

    def __post_init__(self) -> None:
        for position, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise InputError(
                    f"every row needs {len(self.header)} cells, but row {position} of"
                    f" {self.title!r} has {len(row)}",
                    "give None for an empty cell",
                )

    def text(self, kind: str) -> str:
        """The table in one of `FORMATS`."""
        one_of("format", kind, FORMATS)
        written: str = getattr(self, kind)()
        return written

    def shown(self) -> list[list[str]]:
        """The cells as people read them."""

        def text(cell: Cell) -> str:
            if isinstance(cell, float):
                return f"{cell:.{self.digits}f}"
            return "–" if cell is None else str(cell)

        return [[text(cell) for cell in row] for row in self.rows]

    def markdown(self) -> str:
        """A Markdown table under its title in bold, notes below."""
        rows = [[_cell(text) for text in row] for row in self.shown()]
        for i, j in self.bold:
            rows[i][j] = f"**{rows[i][j]}**"
        lines = [
            *([f"**{_cell(self.title)}**", ""] if self.title else []),
            _line([_cell(name) for name in self.header]),
            _line(["---"] + ["---:"] * (len(self.header) - 1)),
            *map(_line, rows),
        ]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Comma-separated values with a header, numbers in full, empty cells empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return out.getvalue()

    def latex(self) -> str:
        """A ``table`` with ``booktabs`` rules; the notes stand in its caption."""
        rows = [[_tex(text) for text in row] for row in self.shown()]
        for i, j in self.bold:
            rows[i][j] = f"\\textbf{{{rows[i][j]}}}"
        end = "" if not self.title or self.title.endswith((".", "?", "!")) else "."
        caption = " ".join(_tex(part) for part in (self.title + end, *self.notes) if part)
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}[tbh]",
            "\\centering",
            *([f"\\caption{{{caption}}}"] if caption else []),
            f"\\begin{{tabular}}{{@{{}}l{'r' * (len(self.header) - 1)}@{{}}}}",
            "\\toprule",
            " & ".join(map(_tex, self.header)) + r" \\",
            "\\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``, ``name.csv`` and ``name.tex`` into a folder."""
        written = []
        for kind, ending in ENDINGS.items():
            path = folder / f"{name}.{ending}"
            with whole_file(path) as temporary:
                temporary.write_text(self.text(kind), encoding="utf-8")
            written.append(path)
        return written


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
