"""A search that an earlier version began is continued, and gives what that version would give."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from edokit import SearchResult, SearchSpace, search

FROZEN = Path(__file__).parent / "frozen"
TRIALS = 14
COMPLETE = 8


def run(folder: Path | None, trials: int) -> SearchResult:
    storage = None
    if folder is not None:
        storage = folder / "journal.log"
    return search(
        FROZEN / "predictions.npz",
        str(FROZEN / "annotations.csv"),
        trials=trials,
        population=4,
        folds=2,
        space=SearchSpace.paper(epochs=1, batch_size=8, learning_rate=(1e-2, 1e-1)),
        random_state=7,
        storage=storage,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(FROZEN / "journal.log", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    content = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))
    assert content["commit"] == "50a361e9"
    return list(content["trials"])


def check(found: SearchResult, expected: list[dict[str, Any]]) -> None:
    assert len(found.trials) == len(expected)
    for trial, wanted in zip(found.trials, expected, strict=True):
        assert [trial.generation, trial.slot] == [wanted["generation"], wanted["slot"]]
        assert trial.searched.keys() == wanted["searched"].keys()
        for name, value in wanted["searched"].items():
            if isinstance(value, float):
                value = pytest.approx(value, rel=1e-12)
            assert trial.searched[name] == value
        assert trial.size == wanted["size"]
        assert list(trial.weights) == pytest.approx(wanted["weights"], abs=1e-9)
        for kind, estimate in wanted["estimates"].items():
            assert trial.estimates[kind] == pytest.approx(estimate, abs=1e-9)


def test_complete_trials_are_read_as_they_were_written(
    folder: Path, expected: list[dict[str, Any]]
) -> None:
    found = run(folder, COMPLETE)
    assert found.done_before == COMPLETE
    check(found, expected[:COMPLETE])
    for trial, wanted in zip(found.trials, expected, strict=False):
        assert trial.number == wanted["number"]
        assert trial.estimates == wanted["estimates"]


def test_an_interrupted_search_is_continued(folder: Path, expected: list[dict[str, Any]]) -> None:
    found = run(folder, TRIALS)
    assert found.done_before == COMPLETE
    check(found, expected)
    again = run(folder, TRIALS)
    assert again.done_before == TRIALS
    assert again.to_dict() == found.to_dict()


def test_a_fresh_search_finds_the_same(expected: list[dict[str, Any]]) -> None:
    check(run(None, TRIALS), expected)
