"""Tables that people copy."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from edokit._io.latex import latex
from edokit._io.markup import Table
from reproduction.tables import comma_separated, write_table

TABLE = Table(
    "Half of it: 50 %",
    ["method", "CE ↓", "size"],
    [["a_b|c", 0.123456, 3], ["λ & co", None, 10]],
    ["Best: λ_Div = 0."],
    bold=[(0, 1)],
)


def test_numbers_are_rounded_for_people_and_whole_for_programs() -> None:
    assert "| **0.1235** |" in TABLE.markdown()
    rows = list(csv.reader(io.StringIO(comma_separated(TABLE))))
    assert rows == [["method", "CE ↓", "size"], ["a_b|c", "0.123456", "3"], ["λ & co", "", "10"]]


def test_markdown_keeps_its_columns_whatever_the_cells_hold() -> None:
    lines = [line for line in TABLE.markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}
    assert TABLE.markdown().endswith("Best: λ_Div = 0.\n")


def test_latex_holds_nothing_that_pdflatex_stumbles_over() -> None:
    text = latex(TABLE)
    assert r"a\_b$|$c & \textbf{0.1235} & 3 \\" in text
    assert r"$\lambda$ \& co & -- & 10 \\" in text
    assert r"\caption{Half of it: 50 \%. Best: $\lambda$\_Div = 0.}" in text
    assert text.isascii()


def test_every_sign_of_latex_is_escaped_once() -> None:
    text = latex(Table("", ["x"], [["\\ ~ ^ { } # $ − ± … ≈ ▲ ▼"]]))
    assert r"\textbackslash{} \textasciitilde{} \textasciicircum{} \{ \} \# \$ $-$" in text
    assert "\\caption" not in text
    assert text.isascii()


def test_all_forms_are_written_side_by_side(tmp_path: Path) -> None:
    written = write_table(TABLE, tmp_path / "new", "one")
    assert [path.name for path in written] == ["one.md", "one.csv", "one.tex"]
    texts = [TABLE.markdown(), comma_separated(TABLE), latex(TABLE)]
    assert [path.read_text(encoding="utf-8") for path in written] == texts
