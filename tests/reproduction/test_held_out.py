"""What decides was held out: folds, rivals, near-duplicates and the power to sharpen by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction_cases import SIZES, small_lewidi, small_pool, small_study

from edokit.metrics import MAIN_METRICS
from reproduction.lewidi2023 import benchmark, findings, methods
from reproduction.lewidi2023.benchmark import Line, trade
from reproduction.lewidi2023.checks import duplicates
from reproduction.lewidi2023.items import near_duplicates
from reproduction.lewidi2023.methods import POWERS, HeldOut, method_outcome
from reproduction.lewidi2023.study import EVERYTHING, Missing, Pool, Study
from reproduction.outcomes import Outcome


def test_no_method_learns_from_the_items_that_it_is_judged_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method that remembers what it was fitted on is a uniform answer on held-out items."""
    judged: list[str] = []

    class Remembers:
        def fit(self, predictions: Any, annotations: Any) -> Remembers:
            soft = zip(annotations.items, annotations.soft_labels, strict=True)
            self.known = dict(soft)
            return self

        def predict_proba(self, predictions: Any) -> Any:
            judged.extend(predictions.items)
            assert not set(self.known) & set(predictions.items)
            return np.full((len(predictions), 2), 0.5)

    monkeypatch.setattr(methods, "make", lambda name, seed: Remembers())
    members = small_study(tmp_path).pool("HS-Brexit", "random-select")
    assert isinstance(members, Pool)
    found = methods._held_out(members, "remembers", 0)
    assert sorted(judged) == sorted(members.fit.items), "each item is held out once"
    assert found.ce == pytest.approx(np.log(2))
    assert found.dev_ce == pytest.approx(np.log(2))


def scored(ce: float, seeds: int = 3, items: int = 200) -> Outcome:
    """Scores that are all ``ce`` but for noise."""
    noise = np.random.default_rng(int(ce * 1000)).normal(0, 0.01, size=(seeds, 4, items))
    return Outcome(np.full((seeds, 4), ce), np.full((seeds, 4, items), ce) + noise)


@pytest.mark.parametrize(("best_rival", "verdict"), [(0.3, "does not replicate"), (0.5, "holds")])
def test_edo_is_held_against_the_best_of_its_rivals(
    best_rival: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rivals = {"Soft-CE": 0.9, "WEL": best_rival, "Top-5 Voting": 0.8}
    monkeypatch.setattr(findings, "searched_outcome", lambda *_: scored(0.4))
    monkeypatch.setattr(
        Line,
        "outcome",
        lambda line, *_: scored(rivals[line.label]) if line.label in rivals else Missing("none"),
    )
    for finding in (findings.lowest, findings.per_annotator):
        found = finding(Study(Path(), Path(), 3))
        assert found.verdict == verdict
        assert "WEL" in found.sentence
        assert "Soft-CE" not in found.sentence


def test_near_duplicates_are_what_is_left_out(tmp_path: Path) -> None:
    """Members that are right on the repeated texts alone look worse without them."""
    data = small_lewidi(tmp_path / "data")
    train, test = (data / "HS-Brexit" / f"HS-Brexit_{split}.json" for split in ("train", "test"))
    items = json.loads(test.read_text())
    known = json.loads(train.read_text())
    repeated = list(items)[:10]
    for key in repeated:
        items[key]["text"] = known[key]["text"]
    test.write_text(json.dumps(items), encoding="utf-8")
    predictions = tmp_path / "predictions"
    small_pool(predictions, data, "soft-ce", 3)
    with np.load(predictions / "HS-Brexit" / "soft-ce" / "test.npz") as file:
        arrays = dict(file)
    rest = ~np.isin(arrays["items"], [f"test-{key}" for key in repeated])
    assert rest.sum() == SIZES["test"] - 10
    arrays["probabilities"][rest] = arrays["probabilities"][rest, :, ::-1]
    np.savez(predictions / "HS-Brexit" / "soft-ce" / "test.npz", **arrays)
    study = Study(data, predictions, 1)
    repeats = duplicates(study, "HS-Brexit")
    assert repeats is not None
    assert [int(mask.sum()) for mask in repeats] == [10, 10]
    for row in near_duplicates(study).to_dict()["tables"]["near-duplicates"]["rows"]:
        assert row["CE without"] == row["CE without verbatim"] > row["CE all"]
        assert row["F1 without"] < row["F1 all"]


def test_the_front_keeps_a_power_that_is_best_in_one_metric() -> None:
    # F1, CE, MD and an error of each power.
    worst, *others = [
        [0.7, 0.6, 0.4, 0],
        [0.9, 0.6, 0.4, 0],
        [0.8, 0.5, 0.4, 0],
        [0.7, 0.6, 0.3, 0],
    ]
    assert HeldOut(9, 0.5, 0.5, np.array([worst, *others])).front == [False, True, True, True]


def test_sharpening_is_chosen_and_its_front_found_on_held_out_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On test these members are upside down, so that softer is better there."""
    study = small_study(tmp_path, seeds=1)
    for pool in ("random-select", "soft-ce"):
        path = tmp_path / "predictions" / "HS-Brexit" / pool / "test.npz"
        with np.load(path) as file:
            arrays = dict(file)
        arrays["probabilities"] = arrays["probabilities"][:, :, ::-1]
        np.savez(path, **arrays)
    monkeypatch.setattr(benchmark, "METHODS", ("uniform",))
    rows = trade(study).to_dict()["tables"]["trade"]["rows"]
    (chosen,) = [row for row in rows if "chosen" in row["on dev's front"]]
    assert chosen["power"] > POWERS[0]
    assert min(rows, key=lambda row: row["CE"])["power"] == POWERS[0], "softest is best on test"
    first = next(row for row in rows if row["power"] == POWERS[0])
    assert first["on dev's front"] == "no"
    assert first["dev CE"] < first["CE"]


def test_the_power_has_the_lowest_distance_within_the_noise_of_the_lowest_ce() -> None:
    md = [0.5, 0.4, 0.3, 0.2, 0.1, 0.0]

    def held_out(ce: list[float]) -> HeldOut:
        columns = [np.full(6, 0.8), np.array(ce), np.array(md), np.full(6, 0.05)]
        return HeldOut(100, 0.5, 0.5, np.stack(columns, axis=1))

    found = held_out([0.52, 0.5, 0.52, 0.54, 0.56, 0.7])
    assert found.power == 1.5
    assert found.front == [False, True, True, True, True, True]
    assert held_out([0.5, 0.4, 0.6, 0.6, 0.6, 0.6]).power == 1.0


def test_a_method_is_fitted_on_dev_and_scored_on_test(tmp_path: Path) -> None:
    found = method_outcome(small_study(tmp_path, seeds=1), "HS-Brexit", "soft-ce", "uniform")
    assert isinstance(found, Outcome)
    assert found.items.shape == (1, 4, SIZES["test"])


QUICK = (
    *("uniform", "best-single", "top-5", "greedy", "linear-pool", "log-pool"),
    benchmark.SINGLE,
)


@pytest.mark.lewidi
def test_the_results_page_is_what_the_committed_predictions_give(lewidi: Path) -> None:
    """All rows of the benchmark table that need no search, on all datasets."""
    committed = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2023"
    page = (committed / "RESULTS.md").read_text(encoding="utf-8")
    table = page.split("\n## Benchmark table\n")[1].split("\n\n")[1].splitlines()
    printed = {
        (method, pool): [float(cell) for cell in cells if cell != "–"]
        for method, pool, *cells in (row.strip("| ").split(" | ") for row in table[2:])
    }
    study = Study(lewidi, committed, seeds=5)
    every = (*benchmark.PAPERS, *benchmark.OURS)
    lines = [line for line in every if line.method in QUICK and line.pool != EVERYTHING]
    assert len(lines) >= 10
    for line in lines:
        outcomes = [line.outcome(study, dataset) for dataset in benchmark.DATASETS]
        found = [one.mean(m) for one in outcomes if isinstance(one, Outcome) for m in MAIN_METRICS]
        row = printed[line.label, line.pool]
        assert found == pytest.approx(row, abs=5.1e-5), (line, list(zip(found, row, strict=True)))
