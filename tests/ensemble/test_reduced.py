"""What learned weights lose without members: solved again, and losses are held out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ensemble_cases import people_and_pool

from edokit import EDOEnsemble, Objective, Predictions
from edokit.ensemble.reduced import LearnedPool, Reduced
from edokit.fitdata.data import FitData
from edokit.metrics import ce_items

PEOPLE, POOL = people_and_pool()


def literal_losses(members: list[str], penalty: float) -> np.ndarray[Any, Any]:
    """Held-out cross-entropy of each item, from one ordinary fit per fold."""
    data = FitData.from_predictions(POOL, PEOPLE, ties="random").draw(5000)
    kept = [POOL.members.index(name) for name in members]
    losses = []
    for rest, fold in data.folds(5, 0):
        fitted = EDOEnsemble(objective=Objective(reg=penalty)).fit(rest.select(kept))
        p = np.einsum("nkc,k->nc", fold.sample.P[:, kept], fitted.weights_)
        losses.append(ce_items(p, fold.sample.q))
    return np.concatenate(losses)


def test_losses_and_errors_are_those_of_a_fit_per_fold() -> None:
    pool = LearnedPool(POOL, PEOPLE, 0)
    fitted = EDOEnsemble(ties="random").fit(POOL, PEOPLE)
    np.testing.assert_allclose(pool.weights, fitted.weights_, atol=1e-9)
    penalty = fitted.settings_["lambda_reg"]
    base = literal_losses(list(POOL.members), penalty)
    assert pool.whole.loss == pytest.approx(base.mean(), abs=1e-9)
    _, without = pool.without(POOL.members.index("good"))
    gaps = literal_losses(["fair", "noise-1", "noise-2"], penalty) - base
    assert without.difference == pytest.approx(gaps.mean(), abs=1e-9)
    assert without.error == pytest.approx(gaps.std(ddof=1) / np.sqrt(120), rel=1e-6)
    assert without.verdict == "worse"


def test_the_path_ends_at_one_member() -> None:
    path = LearnedPool(POOL, PEOPLE, 0).path()
    assert len(path[-1].members) == 1
    assert all(np.isfinite(reduced.loss) for reduced in path)


def test_a_copy_of_a_member_is_free_to_drop() -> None:
    pool = Predictions.from_arrays(
        np.concatenate([POOL.probabilities, POOL.probabilities[:, :1]], axis=1),
        items=POOL.items,
        members=[*POOL.members, "copy"],
        classes=POOL.classes,
        layout="NKC",
    )
    _, without = LearnedPool(pool, PEOPLE, 0).without(4)
    assert without.verdict == "free"
    assert abs(without.difference) < 2e-3


def test_a_wide_interval_is_unclear_and_never_free() -> None:
    reduced = Reduced(("a",), loss=0.5, difference=0.0, error=0.01)
    assert reduced.verdict == "unclear"
    assert replace(reduced, error=0.001).verdict == "free"
    assert replace(reduced, difference=0.03).verdict == "worse"
    assert replace(reduced, difference=-0.03).verdict == "better"


def test_few_items_are_in_sample() -> None:
    pool = LearnedPool(POOL.take(range(8)), PEOPLE.take(range(8)), 0)
    assert len(pool.folds) == 1
