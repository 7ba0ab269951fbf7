"""A title above the header is recognised, and skipped where one says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edokit import read_annotations
from edokit._errors import OpenDecisionsError
from edokit._io.tables import read_table
from tests.errors import raises_code

HEADER = ["item", "annotator", "label"]
ROWS = [["a", "ann", "no"], ["a", "ben", "yes"], ["b", "ann", "no"]]


def write_csv(path: Path, rows: list[list[str]]) -> Path:
    path.write_text("\n".join(",".join(row) for row in rows), encoding="utf-8")
    return path


def write_xlsx(path: Path, rows: list[list[str]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    path = path.with_suffix(".xlsx")
    book.save(path)
    return path


@pytest.mark.parametrize("write", [write_csv, write_xlsx])
@pytest.mark.parametrize("above", [[["Study of manners"]], [["Study of manners"], [], ["2024"]]])
def test_a_title_is_recognised_and_skipped(
    write: Callable[[Path, list[list[str]]], Path], above: list[list[str]], tmp_path: Path
) -> None:
    path = write(tmp_path / "votes.csv", [*above, HEADER, *ROWS])
    with raises_code(
        "rows-above-header", "'item', 'annotator', 'label'", kind=OpenDecisionsError
    ) as refused:
        read_annotations(path)
    assert refused.value.remedy == {"skip_rows": len(above)}
    annotations = read_annotations(path, skip_rows=len(above))
    assert annotations.items.tolist() == ["a", "b"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_empty_cells_beside_a_title_and_other_separators(mark: str, tmp_path: Path) -> None:
    lines = [mark.join(cells) for cells in (["Study", "", ""], HEADER, *ROWS)]
    (tmp_path / "votes.csv").write_text("\r\n".join(lines), encoding="utf-8")
    with raises_code("rows-above-header", "skip_rows=1"):
        read_annotations(tmp_path / "votes.csv")
    assert len(read_annotations(tmp_path / "votes.csv", skip_rows=1)) == 3


def test_tables_without_a_title_are_read_as_they_are(tmp_path: Path) -> None:
    indexed = [["", *HEADER], *([str(k), *row] for k, row in enumerate(ROWS))]
    assert len(read_annotations(write_csv(tmp_path / "indexed.csv", indexed))) == 3
    (tmp_path / "texts.csv").write_text('text\n"one, two, three"\n', encoding="utf-8")
    assert read_table(tmp_path / "texts.csv").column_names == ["text"]


def test_where_no_option_skips_rows_the_message_names_none(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "p.csv", [["Study"], ["item", "p_no", "p_yes"], ["a", ".5", ".5"]])
    with raises_code("rows-above-header") as refused:
        read_table(path)
    assert "skip_rows" not in str(refused.value)


def test_files_without_a_header_have_no_rows_to_skip(tmp_path: Path) -> None:
    (tmp_path / "votes.jsonl").write_text('{"item": "a"}\n', encoding="utf-8")
    with raises_code("inapplicable-option", "skip_rows", ".csv, .tsv, .xlsx"):
        read_annotations(tmp_path / "votes.jsonl", skip_rows=1)
