"""The folder of `edo search`: whose results it holds, which stay true, and what an error leaves."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from search_cases import QUICK as SPACE
from search_cases import arrays, data, trial
from test_search_command import QUICK, files

from commands import edo
from edokit import SearchResult, search
from edokit.analysis.search import text as search_text
from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.statistics import Evaluator
from edokit.cli import console

__all__ = ["files"]


def everything(folder: Path) -> dict[str, bytes]:
    """Names and bytes of all files."""
    return {str(f): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_refused_before_a_trial_is_finished_it_leaves_nothing(
    files: list[Any], tmp_path: Path
) -> None:
    before = everything(tmp_path)
    code, _, err = edo("search", *files, *QUICK, "--folds", 60)
    assert (code, err.count("\n")) == (2, 1)
    assert not (tmp_path / "run").exists()
    assert everything(tmp_path) == before
    assert edo("search", *files, *QUICK)[0] == 0


def test_what_was_there_or_is_finished_stays_after_an_error(tmp_path: Path) -> None:
    P, _, y = arrays()
    how: Any = {"space": SPACE, "population": 3, "folds": 2, "storage": tmp_path / "a" / "s.log"}
    judged = Evaluator.evaluate

    def interrupted(after: int) -> Any:
        seen: list[int] = []

        def call(self: Evaluator, chosen: Any) -> Any:
            if len(seen) == after:
                raise KeyboardInterrupt
            seen.append(1)
            return judged(self, chosen)

        return mock.patch.object(Evaluator, "evaluate", call)

    for after, left in ((0, False), (1, True), (0, True)):
        with interrupted(after), pytest.raises(KeyboardInterrupt):
            search(P, y, trials=9, **how)
        assert how["storage"].exists() is left
        assert how["storage"].parent.exists() is left
    assert len(search(P, y, trials=3, **how).trials) == 3


def test_trials_of_the_same_scores_share_a_row() -> None:
    scores = ((0.9, 0.3, 0.2), (0.9, 0.3, 0.2), (0.8, 0.4, 0.1))
    trials = tuple(trial(*three, number=number) for number, three in enumerate(scores))
    members = ("a", "b", "c")
    found = SearchResult(trials, SearchPlan(), members, data())
    printed = io.StringIO()
    with redirect_stdout(printed):
        console.print_records(search_text.title(found), search_text.front_rows(found))
    lines = [line.split() for line in printed.getvalue().splitlines()]
    assert lines[2][-2:] == ["same", "scores"]
    assert lines[4][-4:] == ["preserve,", "mean", "1", "more"]
    assert lines[5][-3:] == ["preserve,", "mean", "–"]


@pytest.mark.parametrize("results", [True, False], ids=["finished", "interrupted"])
def test_a_search_of_another_space_says_what_differs(
    results: bool, files: list[Any], tmp_path: Path
) -> None:
    few = ("--trials", 3, "--folds", 0, "--no-report")
    assert edo("search", *files, *few, "--space", "paper", "--space", "ce=mean")[0] == 0
    if not results:
        (tmp_path / "run" / "search" / "search.json").unlink()
    code, out, err = edo("search", *files, *few, "--space", "ce=mean")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "different space (learning_rate" in err
    assert (
        edo("search", *files, *few, "--space", "paper", "--space", "ce=mean", "--trials", 4)[0] == 0
    )
