"""Tables of the reproduction as files: Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from edokit._errors import printable
from edokit._io.atomic import whole_file
from edokit._io.markup import Cell, Table, spreadsheet_text

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


def latex_text(text: str) -> str:
    """Text that pdfLaTeX shows as it is."""
    return "".join(_LATEX.get(sign, sign) for sign in printable(" ".join(text.split())))


def latex(table: Table) -> str:
    """A ``table`` with ``booktabs`` rules; the notes are in its caption."""
    rows = [[latex_text(text) for text in row] for row in table.shown()]
    for i, j in table.bold:
        rows[i][j] = f"\\textbf{{{rows[i][j]}}}"
    end = "" if not table.title or table.title.endswith((".", "?", "!")) else "."
    caption = " ".join(latex_text(part) for part in (table.title + end, *table.notes) if part)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}[tbh]",
        "\\centering",
        *([f"\\caption{{{caption}}}"] if caption else []),
        f"\\begin{{tabular}}{{@{{}}l{'r' * (len(table.header) - 1)}@{{}}}}",
        "\\toprule",
        " & ".join(map(latex_text, table.header)) + r" \\",
        "\\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def comma_separated(table: Table) -> str:
    """Comma-separated values with a header, numbers in full, empty cells empty.

    Text that a spreadsheet would take for a formula begins with a quote.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_plain, table.header))
    writer.writerows([[_plain(cell) for cell in row] for row in table.rows])
    return out.getvalue()


def _plain(cell: Cell) -> Cell:
    return spreadsheet_text(printable(cell)) if isinstance(cell, str) else cell


def write_table(table: Table, folder: Path, name: str) -> list[Path]:
    """Write ``name.md``, ``name.csv`` and ``name.tex`` into a folder."""
    texts = {"md": table.markdown(), "csv": comma_separated(table), "tex": latex(table)}
    paths = {folder / f"{name}.{ending}": text for ending, text in texts.items()}
    for path, text in paths.items():
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return list(paths)
