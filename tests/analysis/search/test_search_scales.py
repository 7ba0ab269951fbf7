"""A search on every answer scale: what it optimises, what it may vary, memory and shards alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from search_cases import arrays

from edokit import Scale, SearchSpace, search
from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.result import ParetoFront
from edokit.analysis.search.space import trial_settings
from edokit.analysis.search.statistics import Evaluator
from edokit.analysis.search.storage import open_storage
from edokit.analysis.search.study import run_study
from edokit.fitdata.data import FitData
from edokit.metrics import METRIC, compute_metrics, rps
from edokit.objective.pools import pool
from shard_cases import cut
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.*tied:edokit._errors.EDOWarning")
UNEVEN = Scale("ordinal", (0, 1, 4))
SETS = Scale("multi-label")


def search_in_memory(data: FitData, plan: SearchPlan, trials: int = 12) -> ParetoFront:
    with open_storage(None) as opened:
        found, _ = run_study(opened, replace(plan, trials=trials), data)
        return ParetoFront.from_trials(found)


def test_ordered_classes_are_searched_by_rps_and_w1() -> None:
    P, q, y = arrays(classes=3)
    data = FitData.from_arrays(P, q, y, scale=UNEVEN)
    plan = SearchPlan(
        space=SearchSpace.named("ordinal"), solver="exact", folds=0, judge="optimistic"
    )
    front = search_in_memory(data, plan)
    chosen = front.chosen
    assert chosen.metrics == ("f1", "rps", "w1")
    assert chosen.value("rps") == min(trial.value("rps") for trial in front)
    metrics = compute_metrics(pool(P, np.array(chosen.weights)), q, y, scale=UNEVEN)
    for name in ("f1", "ce", "md", "rps", "w1"):
        assert chosen.value(name) == pytest.approx(metrics[name], abs=1e-9)
    searched = trial_settings(chosen.configuration)
    assert searched["lambda_rps"] > 0
    assert searched["lambda_w1"] > 0
    assert {"rps", "w1", "rps_se"} <= chosen.to_dict().keys()


def test_sets_are_searched_on_their_rows() -> None:
    rng = np.random.default_rng(0)
    P = rng.random((50, 4, 3))
    q = rng.integers(0, 4, (50, 3)) / 3
    y = (q > 0.5).astype(int)
    data = FitData.from_arrays(P, q, y, scale="multi-label")
    front = search_in_memory(data, SearchPlan(solver="exact", folds=3))
    chosen = front.chosen
    assert chosen.metrics == ("f1", "ce", "md")
    metrics = compute_metrics(pool(P, np.array(chosen.weights)), q, y, scale=SETS)
    for name in chosen.metrics:
        assert chosen.estimates["optimistic"][name] == pytest.approx(metrics[name], abs=1e-9)


@pytest.mark.parametrize("scale", [UNEVEN, SETS])
def test_shards_are_searched_like_memory(scale: Scale, tmp_path: Path) -> None:
    made = cut(tmp_path, 90, [30, 60], classes=3, scale=scale)
    space = SearchSpace.named("ordinal") if scale.steps is not None else SearchSpace()
    plan = SearchPlan(space=space, solver="exact", folds=0, judge="optimistic")
    memory = search_in_memory(FitData.from_predictions(made.pool, made.people), plan, 4)
    with FitData.open(made.predictions, made.annotations, jobs=1) as shards:
        streamed = search_in_memory(shards, plan, 4)
        assert shards.evaluate(np.full(4, 0.25))["f1"] is not None
    for one, other in zip(streamed, memory, strict=True):
        assert one.estimates["optimistic"] == pytest.approx(other.estimates["optimistic"], rel=1e-4)


def test_metrics_of_shards_are_those_of_memory(tmp_path: Path) -> None:
    weights = np.array([[0.4, 0.3, 0.2, 0.1]])
    relative = [name for name, metric in METRIC.items() if metric.relative is not None]
    for scale in (UNEVEN, SETS):
        made = cut(tmp_path / scale.kind, 60, [25], classes=3, scale=scale)
        memory = FitData.from_predictions(made.pool, made.people)
        expected = dict(memory.evaluate(weights[0]))
        p = pool(np.asarray(made.pool.probabilities, dtype=float), weights[0])
        q = np.asarray(made.people.soft_labels)
        y = np.asarray(made.people.hard_labels())
        assert expected == compute_metrics(p, q, y, scale=scale)
        with FitData.open(made.predictions, made.annotations, jobs=1) as shards:
            found = dict(shards.evaluate(weights[0]))
        # Neither ranks among all items nor values relative to them are sums over shards.
        for name in ("entropy_correlation", *relative):
            assert found.pop(name, None) is None
            expected.pop(name, None)
        assert found == pytest.approx(expected, rel=1e-5)


def test_a_declared_scale_holds_for_arrays_and_for_files_without_one(tmp_path: Path) -> None:
    P, q, _ = arrays(classes=3)
    search_result = search(P, q, trials=3, solver="exact", folds=0, scale="ordinal")
    assert (search_result.rule, search_result.ensemble.scale_) == (
        "lowest-rps",
        Scale("ordinal", (0, 1, 2)),
    )
    expected = compute_metrics(
        search_result.ensemble.predict_proba(P),
        q,
        q.argmax(axis=1),
        scale=search_result.ensemble.scale_,
    )
    assert search_result.ensemble.metrics_ == pytest.approx(expected)
    sets = search(P, q.round(), trials=3, solver="exact", folds=0, scale="multi-label")
    assert sets.ensemble.predict_proba(P).shape == (60, 3)
    made = cut(tmp_path, 60, [25], classes=3)
    paths = made.predictions, made.annotations
    how: Any = {"trials": 3, "solver": "exact", "folds": 0, "scale": "ordinal"}
    streamed = search(*paths, streaming={"jobs": 1}, **how)
    full_search_result = search(*paths, **how)
    assert streamed.chosen.values == pytest.approx(full_search_result.chosen.values, rel=1e-4)
    assert streamed.ensemble.scale_ == Scale("ordinal", (0, 1, 2))


def test_a_search_of_ordered_classes_is_kept(tmp_path: Path) -> None:
    P, q, _ = arrays(classes=3)
    space = SearchSpace(lambda_rps=[0, 1])
    how: Any = {"solver": "exact", "folds": 0, "scale": "ordinal", "out": tmp_path / "run"}
    search(P, q, trials=4, space=space, **how)
    second_search_result = search(P, q, trials=10, space=space, **how)
    assert second_search_result.done_before == 4
    table = pq.read_table(tmp_path / "run/search/trials.parquet")
    assert set(table["lambda_rps"].to_pylist()) == {0.0, 1.0}
    assert table["rps"].null_count == table["optimistic_w1"].null_count == 0
    content = json.loads((tmp_path / "run/search/search.json").read_text())
    assert content["metrics"] == ["f1", "rps", "w1"]
    assert content["space"]["lambda_rps"] == [0, 1]


def test_gumbel_searches_terms_of_ordered_classes() -> None:
    P, q, y = arrays(classes=3)
    data = FitData.from_arrays(P, q, y, scale=UNEVEN)
    plan = SearchPlan(
        space=SearchSpace.named("ordinal").with_(epochs=2, batch_size=16, ce="mean"),
        folds=0,
        judge="optimistic",
    )
    settings = dict.fromkeys(plan.space.searched, 0.5) | {"diversity": "preserve"}
    chosen = [plan.fit_config(settings, 60)]
    (found,) = Evaluator(data, plan).evaluate(chosen)
    p = pool(P, np.array(found.weights))
    assert found.optimistic["rps"] == pytest.approx(rps(p, q, UNEVEN.positions))


def test_classes_without_an_order_have_no_terms_of_it() -> None:
    with raises_code("unordered-scale"):
        search(*arrays()[:2], trials=2, population=2, space="ordinal")
    with raises_code("conflicting-options", "linear"):
        SearchSpace(lambda_w1=0.5, pool=["linear", "log"])


def test_searches_begun_before_these_terms_go_on() -> None:
    assert "lambda_rps" not in SearchSpace().to_dict()
    assert SearchSpace.named("ordinal").to_dict()["lambda_rps"]["high"] == 1.0
