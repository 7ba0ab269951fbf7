"""`python -m reproduction lewidi2023`: from the committed predictions, or from scratch."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from reproduction_cases import small_lewidi, small_study

from reproduction.__main__ import main


def reproduction(*words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(map(str, words)))
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without data."""
    monkeypatch.delenv("EDO_LEWIDI2023", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_sigmoid_story_is_one_command_without_data(nowhere: Path) -> None:
    code, out, _ = reproduction("lewidi2023", "--table", "checks")
    assert code == 0
    assert "WEL 0.232 (printed 0.558)" in out
    assert "| WEL | ConvAbuse | 0.5577 | 0.2318 |" in out


def test_json_is_one_object(nowhere: Path) -> None:
    code, out, _ = reproduction("lewidi2023", "--table", "checks", "--json")
    assert code == 0
    found = json.loads(out)["sections"]["checks"]["checks"]
    assert found["distance-bounds"]["holds"] is False


def test_without_data_it_says_where_to_get_it(nowhere: Path) -> None:
    code, _, err = reproduction("lewidi2023")
    assert code == 2
    assert "edo data get lewidi2023" in err


def test_tables_and_page_are_written(nowhere: Path) -> None:
    study = small_study(nowhere)
    code, out, err = reproduction(
        *("lewidi2023", "--table", "datasets", "--table", "diversity"),
        *("--data", study.data, "--predictions", study.predictions, "--out", "made"),
        *("--results", "page.md", "--seeds", "2"),
    )
    assert code == 0, err
    assert "written: page.md" in out
    assert (nowhere / "made" / "tables" / "diversity.tex").is_file()
    page = (nowhere / "page.md").read_text(encoding="utf-8")
    assert page == (nowhere / "made" / "RESULTS.md").read_text(encoding="utf-8")
    assert "## Diversity ablation" in page


def test_from_scratch_with_a_quick_recipe(nowhere: Path) -> None:
    data = small_lewidi(nowhere / "data")
    code, out, err = reproduction(
        *("lewidi2023", "--train", "--recipe", "linear", "--members", "3"),
        *("--dataset", "HS-Brexit", "--data", data, "--out", "made", "--jobs", "1"),
        *("--table", "stability", "--seeds", "1", "--trials", "2", "--json"),
    )
    assert code == 0, err
    assert json.loads(out)["pools"]["HS-Brexit"] == ["per-annotator", "random-select", "soft-ce"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("other2023",), "lewidi2023"),
        (("lewidi2023", "--table", "table-7"), "the table must be one of"),
        (("lewidi2023", "--recipe", "linear"), "--train is missing"),
        (("lewidi2023", "--train", "--recipe", "linear"), "training needs the data"),
    ],
)
def test_mistakes_are_one_line(nowhere: Path, words: tuple[str, ...], said: str) -> None:
    code, _, err = reproduction(*words)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
