"""Members that know the annotator, beside the same members without that knowledge."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction_cases import small_lewidi, small_pool

from edokit import read_predictions
from edokit.metrics import MAIN_METRICS
from reproduction.lewidi2023.annotators import annotators
from reproduction.lewidi2023.methods import held_out_ce, method_outcome
from reproduction.lewidi2023.study import DATASETS, KNOWN, WITH_ANNOTATORS, Missing, Pool, Study
from reproduction.outcomes import Outcome


def study_with(folder: Path, insight: float | None) -> Study:
    data = small_lewidi(folder / "data")
    predictions = folder / "predictions"
    small_pool(predictions, data, "soft-ce", 3, noise=0.4, seed=1)
    small_pool(predictions, data, "annotators", 2, insight=insight)
    return Study(data, predictions, seeds=1)


def measured(study: Study) -> dict[str, Any]:
    found: dict[str, Any] = annotators(study).values["annotators"]["HS-Brexit"]
    return found


def test_known_answers_are_means_over_the_annotators_of_an_item(tmp_path: Path) -> None:
    study = study_with(tmp_path, 1.0)
    known, everything = (
        study.pool("HS-Brexit", name + KNOWN) for name in ("annotators", WITH_ANNOTATORS)
    )
    assert isinstance(known, Pool)
    assert isinstance(everything, Pool)
    pairs = read_predictions(
        tmp_path / "predictions" / "HS-Brexit" / "annotators" / "dev-pairs.npz"
    )
    item = known.fit.items[3]
    rows = (pairs.items == item) & (pairs.annotators != "")
    assert rows.sum() == 5
    assert known.fit.probabilities[3] == pytest.approx(pairs.probabilities[rows].mean(axis=0))
    # Beside the anonymous answers of all members, not instead of them.
    assert len(everything.fit.members) == 7
    assert everything.fit.members[-2:] == tuple(
        f"annotators{KNOWN}/annotators-{k:02}" for k in (1, 2)
    )
    # They are no pool that dev may choose for the anonymous setting.
    assert study.pools["HS-Brexit"] == ["soft-ce"]


def test_knowing_what_annotators_answer_lowers_ce(tmp_path: Path) -> None:
    found = measured(study_with(tmp_path, 1.0))
    for row in found["items"].values():
        assert row["known"]["ce"] < row["anonymous"]["ce"]
        assert row["ce_change"][0] == pytest.approx(row["known"]["ce"] - row["anonymous"]["ce"])
    everybody, familiar = (found["annotators"][key] for key in ("all annotators", "known ones"))
    assert everybody == familiar  # all of them are in train
    assert everybody["labels"] == 250
    value, low, high = everybody["changes"][0]
    assert low <= value <= high < 0
    assert everybody["known error"] < everybody["anonymous error"]


def test_knowing_nothing_changes_nothing(tmp_path: Path) -> None:
    found = measured(study_with(tmp_path, 0.0))
    assert found["items"]["uniform on annotators"]["ce_change"] == pytest.approx(
        (0, 0, 0), abs=1e-7
    )
    changes = found["annotators"]["all annotators"]["changes"]
    assert np.allclose(changes, 0, atol=1e-7)


def test_without_pairs_it_says_so(tmp_path: Path) -> None:
    study = study_with(tmp_path, None)
    assert isinstance(study.pool("HS-Brexit", "annotators" + KNOWN), Missing)
    section = annotators(study)
    assert section.values["annotators"] == {}
    assert all("not available" in str(row[1]) for row in section.tables["annotators"].rows)


@pytest.mark.lewidi
def test_the_results_page_has_what_the_committed_pairs_give(lewidi: Path) -> None:
    """The uniform means of members that know annotators, in both settings."""
    committed = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2023"
    page = (committed / "RESULTS.md").read_text(encoding="utf-8")
    table = page.split("\n## Members that know the annotator\n")[1].split("\n\n")[1].splitlines()
    rows = [row.strip("| ").split(" | ") for row in table[2:]]
    printed = {row[0]: row[3:13] for row in rows if row[1:3] == ["annotators", "uniform"]}
    assert set(printed) == set(DATASETS)
    study = Study(lewidi, committed, seeds=1)
    for dataset, cells in printed.items():
        found = []
        for pool in ("annotators", "annotators" + KNOWN):
            outcome = method_outcome(study, dataset, pool, "uniform")
            assert isinstance(outcome, Outcome)
            held_out = held_out_ce(study, dataset, (pool,), ("uniform",))[pool, "uniform"]
            found += [held_out.dev_ce, *(outcome.mean(m) for m in MAIN_METRICS)]
        assert found == pytest.approx([float(cell) for cell in cells], abs=5.1e-5)


def test_readme_quotes_the_results_page() -> None:
    root = Path(__file__).resolve().parents[2]
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    page = (root / "benchmarks/lewidi2023/RESULTS.md").read_text(encoding="utf-8")
    for dataset in DATASETS:
        (row,) = [
            line for line in page.splitlines() if line.startswith(f"| {dataset} | all annotators |")
        ]
        change = row.replace("\\", "").strip("| ").split(" | ")[8]
        assert re.search(rf"{re.escape(change)} (is )?on {dataset}", readme)


def test_figures_about_known_annotators_are_those_of_the_results_page() -> None:
    folder = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2023"
    page = (folder / "RESULTS.md").read_text(encoding="utf-8").replace("\\", "")
    shortened = re.sub(r"(?<![\d.])0\.(?=\d)", ".", page)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Members that know the annotator\n")[1].partition("\n## ")[0]
    figures = re.findall(r"[−+]?\.\d{4}(?: \[[^\]]*\])?", " ".join(section.split()))
    assert len(figures) > 20
    assert [figure for figure in figures if figure not in shortened] == []


def test_the_rows_of_both_settings_are_those_with_the_lowest_ce_on_dev(tmp_path: Path) -> None:
    rows = measured(study_with(tmp_path, 1.0))["items"]
    for setting in ("anonymous", "known"):
        best = min(rows, key=lambda name: rows[name][setting]["dev_ce"])
        assert [name for name, row in rows.items() if setting in row["chosen"]] == [best]
