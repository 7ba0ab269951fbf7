"""`edo diagnose`: for people, for scripts, and one line when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from diagnose_cases import camps

from commands import status
from edokit._io.tables import write_table


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_table(camps(items=120, sizes=(3, 3)).to_table(), tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_people_read_shares_groups_and_advice(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("diagnose", source, "--permutations", 39) == 0
    said = capsys.readouterr().out
    for words in ("Krippendorff's alpha", "groups by items", "Advice", "What can't be known"):
        assert words in said


def test_scripts_read_json_and_nothing_else(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("diagnose", source, "--group-by", "camp", "--permutations", 0, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["clusters"]["kind"] == "declared"
    assert content["test"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--group-by", "party"], "'camp'"), (["--permutations", "5"], "39")],
)
def test_what_makes_no_sense_is_one_line(
    source: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("diagnose", source, *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
