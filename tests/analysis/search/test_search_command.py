"""`edo search` on files: what it prints, what it keeps, and one line when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from search_cases import written

from commands import edo
from edokit.runs.record import RunRecord

QUICK = (
    *("--trials", 6, "--population", 3, "--folds", 2),
    *("--space", "epochs=1", "--space", "learning_rate=0.01..0.1", "--no-report"),
)


@pytest.fixture
def files(tmp_path: Path) -> list[Any]:
    """Options that name predictions, annotations and the folder of the run."""
    written(tmp_path)
    return [
        *("--predictions", tmp_path / "dev.npz", "--annotations", tmp_path / "dev.csv"),
        *("--out", tmp_path / "run"),
    ]


def test_json_has_trials_front_and_choice(files: list[Any]) -> None:
    code, out, err = edo("search", *files, *QUICK, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["trials"] == 6
    assert all({"f1", "ce", "md", "size", "settings"} <= set(trial) for trial in result["front"])
    assert result["chosen"]["ce"] == min(trial["ce"] for trial in result["front"])
    assert set(result["chosen"]["estimates"]) == {"optimistic", "cross-fitted"}
    assert result["chosen"]["settings"]["epochs"] == 1
    assert sum(result["chosen"]["weights"].values()) == pytest.approx(1.0)


def test_the_folder_holds_everything(files: list[Any], tmp_path: Path) -> None:
    code, out, _ = edo("search", *files, *QUICK)
    assert code == 0
    assert "on the front" in out
    run = tmp_path / "run"
    for name in ("search/trials.parquet", "search/search.json", "search/journal.log", "run.json"):
        assert (run / name).is_file()
    record = RunRecord.load(run)
    assert record.kind == "search"
    assert record.command.startswith("edo search --predictions")
    assert set(record.inputs) == {"predictions", "annotations"}
    people = record.annotations("annotations", run)
    assert people is not None
    assert len(people.items) == 50
    assert (
        edo(
            "predict",
            run / "ensemble",
            "--predictions",
            tmp_path / "test.npz",
            "--out",
            tmp_path / "p.csv",
        )[0]
        == 0
    )


def test_started_again_it_goes_on(files: list[Any], tmp_path: Path) -> None:
    full_content = json.loads(
        edo("search", *files, *QUICK, "--storage", tmp_path / "other.log", "--json")[1]
    )
    edo("search", *files, *QUICK, "--trials", 4)
    journal = tmp_path / "run" / "search" / "journal.log"
    before = journal.read_bytes()
    code, out, _ = edo("search", *files, *QUICK, "--json")
    assert code == 0
    assert journal.read_bytes().startswith(before), "what was done stays as it was"
    resumed = json.loads(out)
    assert (resumed["front"], resumed["chosen"]) == (full_content["front"], full_content["chosen"])


def test_the_space_is_set_on_the_command_line(files: list[Any], tmp_path: Path) -> None:
    extra = ("--space", "ce=mean", "--space", "diversity=preserve", "--space", "lambda_div=0")
    wide = ("--space", "lambda_reg=1e-3..1e-1", "--space", "pool=linear,log")
    code, _, err = edo("search", *files, *QUICK, *extra, *wide, "--solver", "exact", "--json")
    assert (code, err) == (0, "")
    space = json.loads((tmp_path / "run" / "search" / "search.json").read_text("utf-8"))["space"]
    assert (space["ce"], space["diversity"], space["lambda_div"]) == ("mean", "preserve", 0)
    assert space["lambda_reg"] == {"low": 1e-3, "high": 1e-1, "log": True}
    assert space["pool"] == ["linear", "log"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--trials", 0), "trials is 0, but must be a whole number of at least 1"),
        (("--population", 1), "population is 1, but must be a whole number of at least 2"),
        (("--folds", 1), "folds is 0 (none) or at least 2"),
        (("--solver", "magic"), 'Choose from: "gumbel", "exact"'),
        (("--space", "lambda_f1=1..0"), "starts at 1 and ends at 0"),
        (("--space", "lambda_f1=a..b"), "must be written LOW..HIGH"),
        (("--space", "lambda=1"), "must be one of 'lambda_f1'"),
        (("--space", "lambda_f1"), "but got 'lambda_f1'"),
        (("--space", "ce=median"), "'median'"),
        (("--groups",), "needs the group of each member"),
        (("--worker",), "--storage"),
        (("--storage", "mysql://host/db"), "mysql"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(words: Any, part: str, files: list[Any]) -> None:
    code, out, err = edo("search", *files, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert part in err


def test_another_search_in_the_same_folder_is_refused_and_nothing_is_lost(
    files: list[Any], tmp_path: Path
) -> None:
    edo("search", *files, *QUICK)
    journal = tmp_path / "run" / "search" / "journal.log"
    before = journal.read_bytes()
    code, _, err = edo("search", *files, *QUICK, "--seed", 5)
    assert code == 2
    assert "seed 0 and not 5" in err
    assert err.count("\n") == 1
    assert journal.read_bytes() == before


def test_without_a_folder_there_is_nothing_to_keep(files: list[Any]) -> None:
    code, _, err = edo("search", *files[:4])
    assert code == 2
    assert "give --out RUN" in err
