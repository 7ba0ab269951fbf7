"""Workbooks are read as tables, and `data info` counts what one looks for in a spreadsheet."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from edokit import Annotations, EDOWarning, MissingExtraError, read_annotations
from edokit._errors import OpenDecisionsError
from edokit.datasets.info import describe_annotations
from tests.errors import raises_code

FRAME = pd.DataFrame(
    {
        "item": ["007", "007", "8", None],
        "annotator": ["ann", "ben", "ann", None],
        "label": [1.0, 0.0, 1.0, None],
        "text": ["Tea at four?", "Tea at four?", "Tea, at four!", None],
    }
)


def workbook(path: Path, *sheets: str) -> Path:
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(path) as writer:
        for sheet in sheets:
            FRAME.to_excel(writer, sheet_name=sheet, index=False)
    return path


def test_cells_of_a_workbook_are_text_and_empty_rows_are_none(tmp_path: Path) -> None:
    annotations = read_annotations(workbook(tmp_path / "votes.xlsx", "votes"))
    assert annotations.items.tolist() == ["007", "8"]
    assert annotations.classes == ("0", "1")


def test_of_several_sheets_the_first_is_read_with_a_note(tmp_path: Path) -> None:
    path = workbook(tmp_path / "votes.xlsx", "votes", "old")
    with pytest.warns(EDOWarning, match="2 sheets.*'votes'"):
        read_annotations(path)


def test_a_sheet_is_read_by_its_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "votes.xlsx", "old", "votes")
    assert read_annotations(path, sheet="votes").items.tolist() == ["007", "8"]
    with raises_code("missing-sheet", "'vote'", "did you mean 'votes'?"):
        read_annotations(path, sheet="vote")
    (tmp_path / "votes.csv").write_text("item,annotator,label\na,x,no\n", encoding="utf-8")
    with raises_code("inapplicable-option", "sheet"):
        read_annotations(tmp_path / "votes.csv", sheet="votes")


def test_a_first_sheet_with_too_few_columns_is_no_table_of_annotations(tmp_path: Path) -> None:
    path = tmp_path / "votes.xlsx"
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"note": ["see the next sheet"]}).to_excel(writer, sheet_name="about")
        FRAME.to_excel(writer, sheet_name="votes", index=False)
    with raises_code("missing-sheet", "'about'", kind=OpenDecisionsError) as refused:
        read_annotations(path)
    assert refused.value.remedy == {"sheet": "votes"}
    assert read_annotations(path, sheet="votes").items.tolist() == ["007", "8"]


def test_a_damaged_workbook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.xlsx"
    path.write_bytes(b"no archive")
    with raises_code("unreadable-file"):
        read_annotations(path)


def test_without_openpyxl_the_extra_is_named_as_typed_in_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "votes.xlsx", "votes")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with raises_code("missing-package", '".[xlsx]"', kind=MissingExtraError):
        read_annotations(path)


@pytest.mark.filterwarnings("ignore:.*dropped:edokit._errors.EDOWarning")
def test_info_counts_annotations_per_class_and_near_duplicates_without_a_split() -> None:
    about = describe_annotations(Annotations.from_table(FRAME, empty="drop"))
    assert about["splits"]["all"]["annotations_per_class"] == {"0": 1, "1": 2}
    assert about["near_duplicates"]["items"] == 2
