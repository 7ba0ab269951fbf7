"""Shards keep groups of items together as a table in memory does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import EDOEnsemble, Scale, search
from edokit._io.tables import write_table
from edokit.fitdata.data import FitData
from edokit.scales import NOMINAL
from shard_cases import Cut, cut

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
ITEMS = 120


def grouped(folder: Path, scale: Scale = NOMINAL) -> Cut:
    """Three shards; threads of four items go across them, and every seventh item is alone."""
    made = cut(folder, ITEMS, [50, 53], scale=scale)
    threads = np.array([f"thread-{i % 30}" if i % 7 else "" for i in range(ITEMS)], dtype=object)
    people = replace(made.people, item_groups=threads)
    for path in sorted(made.annotations.iterdir()):
        start, end = {"part-0": (0, 50), "part-1": (50, 53), "part-2": (53, ITEMS)}[path.stem]
        write_table(people.take(list(range(start, end))[::-1]).to_table(), path)
    return made._replace(people=people)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return grouped(tmp_path_factory.mktemp("groups"))


def assert_same_folds(made: Cut, annotations: Any, **options: Any) -> None:
    whole = FitData.from_predictions(made.pool, made.people)
    with FitData.open(made.predictions, annotations, jobs=1, **options) as shards:
        for (_, in_memory), (rest, fold) in zip(whole.folds(5, 3), shards.folds(5, 3), strict=True):
            assert len(rest) + len(fold) == ITEMS
            np.testing.assert_allclose(fold.sample.P, in_memory.sample.P, atol=1e-6)


def test_folds_are_those_of_the_table_in_memory(made: Cut) -> None:
    assert_same_folds(made, made.annotations)  # a file for each shard
    assert_same_folds(made, made.people)


def test_folds_of_sets_are_those_of_the_table_in_memory(tmp_path: Path) -> None:
    made = grouped(tmp_path, Scale("multi-label"))
    assert_same_folds(made, made.annotations, scale=Scale("multi-label"))


def test_a_group_is_in_one_fold_whatever_its_shards(made: Cut) -> None:
    assert made.people.item_groups is not None
    owners = dict(zip(made.people.items, made.people.item_groups, strict=True))
    rows = made.pool.probabilities.astype(np.float64)
    items_by_row = {row.tobytes(): item for row, item in zip(rows, made.pool.items, strict=True)}
    seen: dict[str, int] = {}
    with FitData.open(made.predictions, made.annotations, jobs=1) as shards:
        for number, (_, fold) in enumerate(shards.folds(5)):
            for row in fold.sample.P:
                thread = owners[items_by_row[row.tobytes()]]
                if thread:
                    assert seen.setdefault(thread, number) == number
    assert len(seen) == 30


def test_cross_validated_figures_are_those_of_the_table_in_memory(made: Cut) -> None:
    """λ_Reg and its losses, the steps for metrics, and the answers kept for promises."""
    options: dict[str, Any] = {"people": False, "random_state": 1}
    whole = EDOEnsemble(**options).fit(made.pool, made.people).fitted_
    with FitData.open(made.predictions, made.annotations, jobs=1) as data:
        found = EDOEnsemble(**options).fit(data).fitted_
    assert found.settings["lambda_reg"] == whole.settings["lambda_reg"]
    choice = found.settings["lambda_reg_choice"]
    assert choice["ce"] == pytest.approx(whole.settings["lambda_reg_choice"]["ce"], abs=1e-8)
    assert found.answers == whole.answers
    assert found.held_out is not None
    assert whole.held_out is not None
    np.testing.assert_array_equal(found.held_out.groups, whole.held_out.groups)
    np.testing.assert_allclose(found.held_out.answers, whole.held_out.answers, atol=2e-6)
    np.testing.assert_array_equal(found.held_out.shares, whole.held_out.shares)


def test_a_search_finds_in_shards_what_it_finds_in_memory(made: Cut) -> None:
    options: dict[str, Any] = {"trials": 4, "folds": 3, "random_state": 1}
    full_search_result = search(made.pool, made.people, **options)
    with FitData.open(made.predictions, made.annotations, jobs=1) as data:
        search_result = search(data, None, **options)
    for trial, in_memory in zip(search_result.trials, full_search_result.trials, strict=True):
        assert trial.weights == pytest.approx(in_memory.weights, abs=1e-6)
        assert trial.judge == "cross-fitted"
        assert trial.values == pytest.approx(in_memory.values, abs=1e-6)
