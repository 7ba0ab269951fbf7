"""Where the truth is known: is the fitted pool closer to it? Over ten seeds, not one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from edokit import Annotations, EDOEnsemble, Objective, Predictions, simulate
from edokit.demo import TRAIN_SHARES, train_quick_members
from edokit.metrics import ce

SEEDS = 10


class World(NamedTuple):
    """One simulation with ten members of uneven quality."""

    dev: Annotations
    on_dev: Predictions
    on_test: Predictions
    truth: NDArray[np.float64]


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    built = []
    for seed in range(SEEDS):
        simulation = simulate("three-voices", random_state=seed)
        pool = train_quick_members(simulation.annotations, 10, seed, shares=TRAIN_SHARES)
        truth = simulation.truth[simulation.rows("test")]
        dev = simulation.annotations.split("dev")
        built.append(World(dev, pool["dev"], pool["test"], truth))
    return built


def interval(differences: list[float]) -> tuple[float, float]:
    """95 % interval of the mean."""
    values = np.array(differences)
    error = 2.26 * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - error, values.mean() + error


def test_the_fitted_pool_is_closer_to_the_truth_than_uniform_and_best_single(
    worlds: list[World],
) -> None:
    to_uniform = []
    to_single = []
    for world in worlds:
        ensemble = EDOEnsemble().fit(world.on_dev, world.dev)
        fitted = ce(np.asarray(ensemble.predict_proba(world.on_test)), world.truth)
        single = world.on_test.probabilities[:, ensemble.member_ce_.argmin()]
        to_uniform.append(fitted - ce(np.asarray(world.on_test.uniform), world.truth))
        to_single.append(fitted - ce(single, world.truth))
    assert interval(to_uniform)[1] < 0
    assert interval(to_single)[1] < 0


def noisy(world: World, seed: int) -> tuple[Predictions, Predictions]:
    """Three real members and seven whose answers belong to other items."""
    rng = np.random.default_rng(seed)
    pools = []
    for table in (world.on_dev, world.on_test):
        P = table.probabilities[:, :3]
        lost = [P[rng.permutation(len(P)), k % 3] for k in range(7)]
        array = np.concatenate([P, np.stack(lost, axis=1)], axis=1)
        pools.append(
            Predictions.from_arrays(array, items=table.items, classes=table.classes, layout="NKC")
        )
    return pools[0], pools[1]


def test_the_size_follows_the_data(worlds: list[World]) -> None:
    sizes = []
    real_weight = []
    for seed, world in enumerate(worlds):
        on_dev, _ = noisy(world, seed)
        sparse = EDOEnsemble(objective=Objective(f1=1, reg=0)).fit(on_dev, world.dev)
        sizes.append(sparse.size_)
        real_weight.append(EDOEnsemble().fit(on_dev, world.dev).weights_[:3].sum())
    # Of ten members, seven of them noise, about three keep weight; by default the noise may keep
    # crumbs, but the three real members hold nearly all.
    assert 2 <= np.mean(sizes) <= 4
    assert np.mean(real_weight) > 0.9
