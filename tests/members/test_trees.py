"""Packed trees answer as scikit-learn's do, and hold nothing that leads astray."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people
from sklearn.ensemble import ExtraTreesRegressor

from edokit.members import MemberData
from edokit.members.arrays import read_arrays, write_arrays
from edokit.members.recipes.trees import PackedTrees, TreesMember
from edokit.members.supervision import soft_targets
from tests.errors import raises_code


def fitted(**options: int) -> TreesMember:
    data = small_people()
    targets = soft_targets(data)
    lesson = MemberData(list(map(str, data.texts)), lambda epoch: targets)
    return TreesMember(2, trees=4, **options).fit(lesson, random_state=3)


def test_packed_trees_predict_what_scikit_learn_predicts() -> None:
    generator = np.random.default_rng(0)
    # Single precision, as trees see features; many values sit exactly on a threshold.
    features = generator.integers(0, 4, (200, 12)).astype(np.float32) / 3
    shares = generator.dirichlet(np.ones(3), 200)
    forest = ExtraTreesRegressor(7, random_state=0).fit(features, shares)
    packed = PackedTrees.pack([tree.tree_ for tree in forest.estimators_])
    packed.check(features.shape[1])
    new = generator.integers(0, 4, (300, 12)).astype(np.float32) / 3
    for rows in (new, new[:1]):
        np.testing.assert_allclose(packed.predict(rows), forest.predict(rows), atol=1e-6)


def test_a_tree_that_is_one_leaf_can_be_packed() -> None:
    forest = ExtraTreesRegressor(2, random_state=0).fit(np.eye(3), [[0.2, 0.8]] * 3)
    packed = PackedTrees.pack([tree.tree_ for tree in forest.estimators_])
    answers = packed.predict(np.zeros((5, 3), dtype=np.float32))
    np.testing.assert_allclose(answers, [[0.2, 0.8]] * 5, atol=1e-6)


def test_a_tree_learns_from_so_many_items_at_most() -> None:
    few = fitted(items=12, fewest=3)
    assert len(few._forest.leaves) <= 4 * 12 / 3
    assert len(few._forest.leaves) < len(fitted(fewest=3)._forest.leaves)


@pytest.mark.parametrize(
    ("name", "value"), [("children", 10**6), ("children", 0), ("features", 10**6), ("roots", -999)]
)
def test_damaged_trees_are_refused(name: str, value: int, tmp_path: Path) -> None:
    fitted().save(tmp_path)
    TreesMember.load(tmp_path)
    path = tmp_path / "trees.npz"
    arrays = read_arrays(path, None)  # type: ignore[arg-type]
    arrays[name].flat[-1] = value
    write_arrays(path, **arrays)
    with raises_code("damaged-file"):
        TreesMember.load(tmp_path)
