"""Folds hold every item once, spread labels evenly, and keep groups together."""

from __future__ import annotations

import numpy as np
import pytest

from edokit.folds import balanced_folds, random_folds, stratified_folds


def test_random_folds_differ_by_one_item_at_most() -> None:
    sizes = np.bincount(random_folds(23, 5, seed=1))
    assert sizes.tolist() == [5, 5, 5, 4, 4]


def test_each_label_is_spread_evenly() -> None:
    labels = np.repeat([0, 1, 2], [50, 20, 10])
    folds = stratified_folds(labels, 5, seed=0)
    for label, count in enumerate([10, 4, 2]):
        assert np.bincount(folds[labels == label]).tolist() == [count] * 5


def test_each_set_of_labels_is_spread_evenly() -> None:
    sets = np.array([[0, 0], [0, 1], [1, 1]])[np.arange(60) % 3]
    folds = stratified_folds(sets, 4, seed=0)
    for labels in ([0, 0], [0, 1], [1, 1]):
        assert np.bincount(folds[(sets == labels).all(axis=1)]).tolist() == [5] * 4


@pytest.mark.parametrize("deal", [stratified_folds, balanced_folds])
def test_groups_stay_together(deal: object) -> None:
    rng = np.random.default_rng(0)
    groups = np.unique(rng.integers(0, 30, 200), return_inverse=True)[1]
    folds = deal(rng.integers(0, 2, 200), 5, seed=3, groups=groups)  # type: ignore[operator]
    assert set(folds.tolist()) == set(range(5))
    for group in range(groups.max() + 1):
        assert len(set(folds[groups == group].tolist())) == 1


def test_a_large_group_leaves_the_other_folds_to_the_others() -> None:
    groups = np.array([0] * 10 + list(range(1, 11)))
    folds = balanced_folds(np.zeros(20, dtype=int), 2, seed=0, groups=groups)
    assert np.bincount(folds).tolist() == [10, 10]
