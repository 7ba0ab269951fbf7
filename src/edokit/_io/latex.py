"""Tables in LaTeX, and text that is escaped for pdfLaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from edokit._errors import InputError, option, printable
from edokit._io.markup import Table

_LABEL = re.compile(r"[A-Za-z0-9:._+-]*")
# Characters that pdfLaTeX can't typeset directly, in text and in mathematics.
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
    "†": r"\dag{}",
}
_MATHS = (
    r"− -, ± \pm, × \times, ≤ \leq, ≥ \geq, ≈ \approx, ↑ \uparrow, ↓ \downarrow, → \to, · \cdot,"
    r"▲ \bigtriangleup, ▼ \bigtriangledown,"
    r"< <, > >, | |, ‖ \|, ² ^2, ₀ _0, ₁ _1, ₂ _2, α \alpha, β \beta, γ \gamma, δ \delta, η \eta,"
    r"λ \lambda, μ \mu, π \pi, ρ \rho, σ \sigma, φ \varphi, Δ \Delta, Σ \Sigma"
)
_ESCAPED = {sign: f"\\{sign}" for sign in "&%$#_{}"}
_FORMULAS = {sign: f"${code}$" for sign, code in map(str.split, _MATHS.split(","))}
_LATEX = _ESCAPED | _WORDS | _FORMULAS
_NEGATIVE = re.compile(r"-(?=[\d.])")
# The start of a cell in a numeric column; a dash marks a missing number.
_NUMBER = re.compile(r"[-+−]?[\d.]|–$")


def latex_text(text: str) -> str:
    """Text that is escaped for pdfLaTeX, on one line."""
    return "".join(_LATEX.get(sign, sign) for sign in printable(" ".join(text.split())))


def latex(table: Table, *, label: str = "") -> str:
    """A ``table`` with ``booktabs`` rules and the notes in its caption.

    Numbers are aligned to the right, words to the left. Marks of cells are superscripts without
    width, so that numbers stay aligned.
    """
    cells = table.unmarked()
    rows = [list(map(_cell, row)) for row in cells]
    for i, j in table.bold:
        rows[i][j] = f"\\textbf{{{rows[i][j]}}}"
    for (i, j), mark in table.marks.items():
        rows[i][j] += f"\\rlap{{\\textsuperscript{{{latex_text(mark)}}}}}"
    _check_label(label)
    title = table.title
    if title and not title.endswith((".", "?", "!")):
        title += "."
    caption = " ".join(latex_text(part) for part in (title, *table.notes) if part)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}[tbh]",
        "\\centering",
    ]
    if caption:
        lines.append(f"\\caption{{{caption}}}")
    if label:
        lines.append(f"\\label{{{label}}}")
    lines += [
        f"\\begin{{tabular}}{{@{{}}{_alignment(cells, len(table.header))}@{{}}}}",
        "\\toprule",
        " & ".join(map(latex_text, table.header)) + r" \\",
        "\\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A cell, whose negative number has a minus sign instead of a hyphen."""
    if _NUMBER.match(text):
        text = _NEGATIVE.sub("−", text, count=1)
    return latex_text(text)


def _alignment(cells: Sequence[Sequence[str]], columns: int) -> str:
    """``l`` for the first column and those of words, ``r`` for those of numbers."""
    letters = ["l"]
    for j in range(1, columns):
        letter = "r"
        if not all(_NUMBER.match(row[j]) for row in cells):
            letter = "l"
        letters.append(letter)
    return "".join(letters)


def _check_label(label: str) -> None:
    if not _LABEL.fullmatch(label):
        raise InputError(
            f"{label!r} is not a LaTeX label",
            f"use letters, digits, colons and hyphens, as in {option('label', 'tab:methods')}",
            code="invalid-name",
        )
