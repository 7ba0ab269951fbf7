"""`edo report` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_cases import make_run

from commands import edo
from edokit import EDOWarning
from edokit.cli.report import add_page


def test_the_page_and_what_is_missing_are_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    code, out, _ = edo("report", run)
    assert code == 0
    assert out.startswith(f"{run / 'report.html'}: ")
    code, out, _ = edo("report", run / "ensemble", "--out", tmp_path / "page.html", "--json")
    answer = json.loads(out)
    assert answer["bytes"] == (tmp_path / "page.html").stat().st_size
    missing = "The page does not show items, since the folder does not record where they are"
    assert any(missing in line for line in answer["missing"])
    code, out, _ = edo("report", run / "ensemble", "--out", tmp_path / "page.html")
    assert out.splitlines()[1].startswith(missing)


def test_items_can_be_given(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    code, out, err = edo(
        *("report", run / "ensemble", "--predictions", run / "test.npz"),
        *("--annotations", run / "test.parquet", "--out", tmp_path / "page.html", "--json"),
    )
    assert code == 0, err
    assert json.loads(out)["missing"] == []


def test_a_page_that_fails_does_not_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_page(make_run(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").exists()

    def broken(*given: Any, **options: Any) -> Path:
        raise RuntimeError("no luck")

    monkeypatch.setattr("edokit.report.write_report", broken)
    with pytest.warns(EDOWarning, match="could not be made .no luck."):
        add_page(tmp_path / "run")


def test_a_search_makes_its_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "made")
    words = ["search", "--predictions", run / "dev.npz", "--annotations", run / "dev.parquet"]
    words += ["--trials", "4", "--population", "2", "--folds", "0", "--ties", "random"]
    code, _, err = edo(*words, "--out", tmp_path / "a")
    assert code == 0, err
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert "Of 4 trials" in page
    assert edo(*words, "--out", tmp_path / "b", "--no-report")[0] == 0
    assert not (tmp_path / "b" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "nowhere"], "nowhere is not the folder of a run"),
        (["report", "run", "--split", "dev"], "--split is for --annotations"),
        (["report", "run", "--annotations", "run/test.parquet"], "predictions"),
        (["report", "run", "--predictions", "run/nothing.npz"], "there is no file"),
        (["report", "run", "--out", "run"], "can't write"),
    ],
)
def test_bad_requests_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    make_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    code, out, err = edo(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_what_a_page_or_a_pooling_is_made_of_is_never_replaced(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    members = run / "test.npz"
    people = run / "test.parquet"
    before = members.read_bytes(), people.read_bytes()
    given = ("--predictions", members, "--annotations", people)
    for words in (
        ("report", run / "ensemble", *given, "--out", people),
        ("predict", run / "ensemble", *given, "--review", 3, "--out", people),
    ):
        code, _, err = edo(*words)
        assert (code, err.count("\n")) == (2, 1)
        assert "input and output are the same file" in err
    code, _, err = edo("report", run / "ensemble", "--out", tmp_path / "page.csv")
    assert (code, "must end in .html" in err) == (2, True)
    assert (members.read_bytes(), people.read_bytes()) == before
