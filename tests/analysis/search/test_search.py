"""From predictions and answers to the front and an ensemble, in one call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pa_parquet
import pytest
from search_cases import QUICK, arrays, essence, written

from edokit import (
    EDOEnsemble,
    EDOWarning,
    Predictions,
    SearchResult,
    SearchSpace,
    read_predictions,
    search,
)
from edokit._io.digests import digest_input
from edokit.runs.record import RunRecord
from tests.errors import raises_code

P, Q, Y = arrays(items=80, members=6)


@pytest.fixture(scope="module")
def found() -> SearchResult:
    return search(P, Q, trials=12, population=4, folds=3, space=QUICK)


def test_every_trial_has_both_estimates_a_size_and_weights(found: SearchResult) -> None:
    assert len(found.trials) == 12
    for trial in found.trials:
        assert set(trial.estimates) == {"optimistic", "cross-fitted"}
        assert len(trial.weights) == 6
        assert sum(trial.weights) == pytest.approx(1.0)
        assert trial.size == np.count_nonzero(trial.weights)


def test_the_front_and_the_choice_come_from_the_trials(found: SearchResult) -> None:
    assert set(found.front) <= set(found.trials)
    assert found.chosen is found.front.trials[0]
    assert found.chosen.ce == min(trial.ce for trial in found.trials)


@pytest.mark.parametrize("solver", ["gumbel", "exact"])
def test_the_ensemble_is_the_chosen_trial_on_all_data(solver: str) -> None:
    space = QUICK.with_(pool=["linear", "log"], class_weights=[True, False])
    found = search(P, Q, trials=6, population=3, folds=2, space=space, solver=solver)
    for trial in found.trials:
        refitted = found.refit(trial)
        assert np.allclose(refitted.weights_, trial.weights, atol=1e-9)
        assert refitted.size_ == trial.size
        optimistic = trial.estimates["optimistic"]
        assert optimistic is not None
        assert refitted.metrics_["ce"] == pytest.approx(optimistic["ce"])
    assert np.allclose(found.ensemble.weights_, found.chosen.weights, atol=1e-9)


def test_the_seed_decides_and_nothing_else() -> None:
    same = [search(P, Q, trials=5, folds=0, space=QUICK, random_state=s) for s in (3, 3, 4)]
    assert essence(same[0].trials) == essence(same[1].trials)
    assert essence(same[0].trials) != essence(same[2].trials)


def test_without_folds_trials_compete_on_the_data_they_were_fitted_on() -> None:
    plain_search_result = search(P, Q, trials=4, population=2, folds=0, space=QUICK)
    assert plain_search_result.plan.judge == "optimistic"
    assert plain_search_result.chosen.estimates["cross-fitted"] is None
    both = search(P, Q, trials=4, population=2, folds=2, space=QUICK)
    assert both.chosen.estimates["optimistic"] is not None
    assert both.chosen.ce == both.chosen.estimates["cross-fitted"]["ce"]


def test_unless_told_both_estimates_are_there_and_the_better_one_judges() -> None:
    for solver, space, judge in (
        ("gumbel", QUICK, "cross-fitted"),
        ("gumbel", "paper", "optimistic"),
        ("exact", "paper", "cross-fitted"),
    ):
        found = search(P, Q, trials=2, population=2, space=space, solver=solver)
        assert found.plan.folds == 5
        assert found.chosen.judge == judge
        assert None not in found.chosen.estimates.values()


def test_groups_are_averaged_first() -> None:
    named_predictions = Predictions.from_arrays(
        P, layout="NKC", groups=["a", "a", "b", "b", "c", "c"]
    )
    found = search(named_predictions, Q, trials=4, population=2, folds=0, space=QUICK, groups=True)
    assert found.members == ("a", "b", "c")
    assert len(found.chosen.weights) == 3
    assert found.ensemble.group_weights_ == pytest.approx(np.array(found.chosen.weights))


def test_groups_that_are_not_there_are_asked_for() -> None:
    with raises_code("missing-groups"):
        search(P, Q, trials=4, groups=True)


def test_a_file_keeps_the_search(tmp_path: Path, found: SearchResult) -> None:
    how: dict[str, Any] = {"population": 4, "folds": 3, "space": QUICK}
    search(P, Q, trials=5, storage=tmp_path / "journal.log", **how)
    second_search_result = search(P, Q, trials=12, storage=tmp_path / "journal.log", **how)
    assert essence(second_search_result.trials) == essence(found.trials)


def test_a_folder_holds_trials_summary_and_ensemble(tmp_path: Path, found: SearchResult) -> None:
    found.save(tmp_path)
    table = pa_parquet.read_table(tmp_path / "search" / "trials.parquet").to_pylist()
    assert [row["number"] for row in table] == list(range(12))
    for row, trial in zip(table, found.trials, strict=True):
        assert row["ce"] == row["cross_fitted_ce"] == trial.ce
        assert row["ce_variant"] == str(trial.configuration.objective.ce)
        assert row["lambda_div"] == trial.searched["lambda_div"]
        assert list(json.loads(row["weights"]).values()) == list(trial.weights)
        assert row["on_front"] == (trial in found.front.trials)
        assert row["chosen"] == (trial is found.chosen)
    summary = json.loads((tmp_path / "search" / "search.json").read_text("utf-8"))
    assert summary["trials"] == 12
    assert summary["chosen"]["ce"] == found.chosen.ce
    assert summary["space"]["lambda_f1"] == {"low": 0.0, "high": 1.0, "log": False}
    ensemble = EDOEnsemble.load(tmp_path / "ensemble")
    assert np.allclose(ensemble.weights_, found.ensemble.weights_)


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"trials": 0}, "invalid-number", ("trials is 0", "1")),
        ({"solver": "newton"}, "unknown-choice", ("'newton'",)),
        ({"folds": 200}, "too-many-folds", ("200", "80")),
    ],
)
def test_nothing_starts_with_bad_input(
    change: Any, code: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    with raises_code(code, *facts):
        search(P, Q, storage=tmp_path / "journal.log", **change)


def test_a_class_too_rare_for_folds_is_named_with_a_way_out() -> None:
    q = Q.copy()
    q[:] = [0.6, 0.4]
    q[0] = [0.2, 0.8]
    with raises_code("missing-class", "class_weights=False"):
        search(P, q, trials=4, folds=5, space=SearchSpace(epochs=1))
    with pytest.warns(EDOWarning, match="not estimated on held-out folds, since a class has"):
        found = search(P, q, trials=4, space=SearchSpace(epochs=1))
    assert found.plan.judge == "optimistic"


def test_weights_that_are_not_finite_end_the_search_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import edokit.analysis.search.statistics as module

    solve = module.solve_gumbel

    def broken(*given: Any, **named: Any) -> list[Any]:
        return [replace(one, weights=one.weights * np.nan) for one in solve(*given, **named)]

    monkeypatch.setattr(module, "solve_gumbel", broken)
    with raises_code("diverged-training"):
        search(P, Q, trials=4, population=2, space=QUICK)


HOW: dict[str, Any] = {"trials": 4, "population": 2, "folds": 2, "space": QUICK}


def test_from_files_to_a_folder_as_the_command_does(tmp_path: Path) -> None:
    files = written(tmp_path)
    run = tmp_path / "run"
    first_search_result = search(**files, **HOW, out=run)
    assert (first_search_result.done_before, first_search_result.storage) == (
        0,
        str(run / "search" / "journal.log"),
    )
    names = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    assert names == {
        *("run.json", "ensemble/ensemble.json", "ensemble/README.md"),
        *("search/journal.log", "search/search.json", "search/trials.parquet"),
    }
    record = RunRecord.load(run)
    assert set(record.inputs) == set(files)
    assert all(record.inputs[role].sha256 == digest_input(Path(one)) for role, one in files.items())
    assert record.command == ""

    second_search_result = search(**files, **HOW, out=run)
    assert second_search_result.done_before == 4
    assert set(RunRecord.load(run).inputs) == set(files)
    assert second_search_result.to_dict() == first_search_result.to_dict()


def test_what_is_in_memory_is_not_in_the_record(tmp_path: Path) -> None:
    files = written(tmp_path)
    named_predictions = read_predictions(files["predictions"])
    search(named_predictions, files["annotations"], **HOW, out=tmp_path / "run")
    assert set(RunRecord.load(tmp_path / "run").inputs) == {"annotations"}


def test_predictions_may_be_streamed_from_their_files(tmp_path: Path) -> None:
    files = written(tmp_path)
    full_search_result = search(**files, **{**HOW, "folds": 0}, solver="exact")
    streamed = search(**files, **{**HOW, "folds": 0}, solver="exact", streaming={"jobs": 1})
    assert streamed.chosen.ce == pytest.approx(full_search_result.chosen.ce, abs=1e-6)


@pytest.mark.parametrize("storage", ["search/search.json", "ensemble/ensemble.json", "run.json"])
def test_a_storage_is_not_overwritten_with_results(storage: str, tmp_path: Path) -> None:
    with raises_code("overwritten-input"):
        search(**written(tmp_path), **HOW, out=tmp_path / "run", storage=tmp_path / "run" / storage)
    assert not (tmp_path / "run").exists()


def test_a_split_of_a_file_is_the_fit_data(tmp_path: Path) -> None:
    files = written(tmp_path)
    parts = [pd.read_csv(tmp_path / f"{name}.csv").assign(split=name) for name in ("dev", "test")]
    pd.concat(parts).rename(columns={"item": "id"}).to_csv(tmp_path / "all.csv", index=False)
    where = {"split": "dev", "columns": {"item": "id"}}
    del files["annotations"]
    found = search(**files, annotations=tmp_path / "all.csv", **where, **HOW, out=tmp_path / "run")
    assert found.to_dict() == search(**written(tmp_path), **HOW).to_dict()
    record = RunRecord.load(tmp_path / "run")
    people = record.annotations("annotations", tmp_path / "run")
    assert people is not None
    assert people.items[0] == "dev-0"


def test_a_worker_needs_a_storage() -> None:
    with raises_code("inapplicable-option", "storage"):
        search(P, Q, **HOW, worker=True)


def test_the_default_search_learns_and_the_papers_says_that_it_does_not() -> None:
    P, q, _ = arrays(items=150)
    thorough, paper = (
        search(P, q, trials=10, folds=0, space=name) for name in ("thorough", "paper")
    )
    assert thorough.ensemble.fitted_.nothing_learned is None
    assert np.ptp(thorough.ensemble.weights_) > 0.1
    assert thorough.chosen.ce < paper.chosen.ce
    said = str(paper.ensemble.fitted_.nothing_learned)
    assert said.startswith("Nothing was learned")
    assert "10 epochs" in said
    kept = [reason for reason in paper.ensemble.explain() if reason.has_weight]
    assert {reason.kind for reason in kept} == {"not_learned"}
    assert np.ptp([reason.weight for reason in kept]) < 0.02
