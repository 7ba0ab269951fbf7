"""Tables in LaTeX, and text that pdfLaTeX shows as it is."""

from __future__ import annotations

import re

from edokit._errors import InputError, option, printable
from edokit._io.markup import Table

_LABEL = re.compile(r"[A-Za-z0-9:._+-]*")
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
    "†": r"\dag{}",
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


def latex(table: Table, *, label: str = "") -> str:
    """A ``table`` with ``booktabs`` rules; the notes are in its caption.

    Marks of cells stand above the line and take no room, so that numbers stay aligned.
    """
    rows = [[latex_text(text) for text in row] for row in table.unmarked()]
    for i, j in table.bold:
        rows[i][j] = f"\\textbf{{{rows[i][j]}}}"
    for (i, j), mark in table.marks.items():
        rows[i][j] += f"\\rlap{{\\textsuperscript{{{latex_text(mark)}}}}}"
    _check_label(label)
    end = "" if not table.title or table.title.endswith((".", "?", "!")) else "."
    caption = " ".join(latex_text(part) for part in (table.title + end, *table.notes) if part)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}[tbh]",
        "\\centering",
        *([f"\\caption{{{caption}}}"] if caption else []),
        *([f"\\label{{{label}}}"] if label else []),
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


def _check_label(label: str) -> None:
    if not _LABEL.fullmatch(label):
        raise InputError(
            f"{label!r} is not a label of LaTeX",
            f"use letters, digits, colons and hyphens, as in {option('label', 'tab:methods')}",
        )
