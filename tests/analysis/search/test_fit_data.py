"""Data in memory: scores are the metrics', folds judge every item once, batches change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from search_cases import arrays, data

from edokit import SearchSpace
from edokit.analysis.search.options import SearchPlan
from edokit.analysis.search.statistics import solve
from edokit.fitdata.data import FitData
from edokit.metrics import ce, ce_items, f1, md
from edokit.objective.pools import pool
from edokit.objective.settings import Pool
from edokit.solvers.gumbel import solve_gumbel
from tests.errors import raises_code

SPACE = SearchSpace.paper(epochs=2)


def configurations(count: int) -> list:
    rng = np.random.default_rng(0)
    return [
        SPACE.fit_config(
            {
                "lambda_f1": rng.random(),
                "lambda_ce": rng.random(),
                "lambda_div": rng.random(),
                "diversity": ["preserve", "suppress"][k % 2],
                "lambda_reg": 1e-3,
                "ce": ["mean", "all", "random"][k % 3],
                "learning_rate": 1e-3,
                "temperature": 0.5,
                "temperature_decay": 0.1,
            },
            items=60,
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_the_metrics(classes: int) -> None:
    P, q, y = arrays(items=40, classes=classes)
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    kinds = [Pool.LINEAR, Pool.LOG, Pool.LINEAR]
    found = data(items=40, classes=classes).scores(weights, kinds).estimates()
    for v, kind, estimate in zip(weights, kinds, found, strict=True):
        p = pool(P, v, str(kind))
        losses = ce_items(p, q)
        assert estimate["f1"] == pytest.approx(f1(p, y))
        assert estimate["ce"] == pytest.approx(ce(p, q))
        assert estimate["md"] == pytest.approx(md(p, q))
        assert estimate["ce_se"] == pytest.approx(losses.std(ddof=1) / np.sqrt(len(losses)))


def test_scores_add_over_parts() -> None:
    whole = data(items=50)
    weights = np.random.default_rng(1).dirichlet(np.ones(5), size=4)
    kinds = [Pool.LINEAR] * 4
    parts = [judge.scores(weights, kinds) for _, judge in whole.folds(3, 0)]
    together = (parts[0] + parts[1] + parts[2]).estimates()
    for a, b in zip(together, whole.scores(weights, kinds).estimates(), strict=True):
        assert a == pytest.approx(b)


def test_folds_judge_every_item_once_and_never_learn_from_it() -> None:
    whole = data(items=53)
    folds = whole.folds(5, 1)
    judged = np.concatenate([judge.sample.P for _, judge in folds])
    assert sorted(judged[:, 0, 0]) == sorted(whole.sample.P[:, 0, 0])
    for learn, judge in folds:
        assert len(learn) + len(judge) == 53
        assert not set(learn.sample.P[:, 0, 0]) & set(judge.sample.P[:, 0, 0])
        assert len(judge) in (10, 11)


def test_folds_spread_rare_classes_evenly() -> None:
    P, q, y = arrays(items=50)
    y = np.where(np.arange(50) < 5, 1, 0)
    made = FitData.from_arrays(P, q, y)
    assert [int(judge.sample.y.sum()) for _, judge in made.folds(5, 3)] == [1] * 5


def test_folds_depend_on_the_seed_and_on_nothing_else() -> None:
    first, again, other = (data().folds(5, s)[0][1].sample.P for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_more_folds_than_items_are_refused() -> None:
    with raises_code("too-many-folds", "5", "4"):
        data(items=4).folds(5, 0)


def test_a_batch_gives_what_each_configuration_gives_alone() -> None:
    P, q, y = arrays()
    several = configurations(6)
    found = solve(data(), several, SearchPlan(random_state=3))
    for one, solution in zip(several, found, strict=True):
        alone = solve_gumbel(
            FitData.from_arrays(P, q, y),
            one.objective.resolve(one.pool),
            one.solver.resolve(60),
            random_state=3,
        )[0]
        assert not isinstance(solution, str)
        assert np.allclose(solution.weights, alone.weights, atol=1e-12)
        assert solution.size == alone.size
