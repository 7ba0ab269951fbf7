"""The default: how far weights are drawn to uniform ones is chosen by cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from ensemble_cases import people_and_pool

from edokit import Annotations, EDOEnsemble, Objective, Predictions, simulate
from edokit.config import from_parameters
from edokit.demo import train_quick_members
from edokit.ensemble._fit import GRID, UNIFORM
from edokit.ensemble.answers import FOLDS
from edokit.ensemble.text import describe_lambda_reg
from edokit.fitdata.data import FitData
from edokit.metrics import ce, ce_items
from edokit.objective.pools import pool
from edokit.solvers.exact import solve_exact
from flat_options import flat_ensemble
from shard_cases import cut


def choice(ensemble: EDOEnsemble) -> dict[str, Any]:
    found: dict[str, Any] = ensemble.settings_["lambda_reg_choice"]
    return found


def literal(people: Annotations, made: Predictions, seed: int = 0, **how: Any) -> list[float]:
    """The held-out cross-entropy of every penalty, one solve after the other."""
    P, q, y = map(np.asarray, (made.probabilities, people.soft_labels, people.hard_labels()))
    rows = np.lexsort([*np.sort(P, axis=1).sum(axis=1).T[::-1], *q.T[::-1], y])
    P = P[rows]
    q = q[rows]
    y = y[rows]
    shuffled = np.random.default_rng([seed, FOLDS, 0]).permutation(len(y))
    fold = np.empty(len(y), dtype=int)
    fold[shuffled[np.argsort(y[shuffled], kind="stable")]] = np.arange(len(y)) % FOLDS
    means = []
    for penalty in GRID:
        losses = np.zeros(len(y))
        for k in range(FOLDS):
            rest = fold != k
            held_out = fold == k
            weights = np.full(P.shape[1], 1 / P.shape[1])
            if np.isfinite(penalty):
                asked = flat_ensemble({"lambda_reg": penalty, **how}).get_params(deep=False)
                config = from_parameters(**asked)
                data = FitData.from_arrays(P[rest], q[rest], y[rest])
                weights = solve_exact(data, config.objective.resolve(config.pool)).weights
            pooled = np.asarray(pool(P[held_out], weights, how.get("pool", "linear")))
            losses[held_out] = ce_items(pooled, q[held_out])
        means.append(float(losses.mean()))
    return means


@pytest.mark.parametrize("how", [{}, {"pool": "log"}, {"lambda_div": 0.2, "lambda_f1": 0.0}])
def test_the_penalty_is_the_mean_of_all_weighted_by_their_likelihood(how: dict[str, Any]) -> None:
    people, made = people_and_pool(90)
    ensemble = flat_ensemble({"random_state": 4, **how}).fit(made, people)
    means = np.array(literal(people, made, 4, **how))
    np.testing.assert_allclose(
        [one["ce"] for one in choice(ensemble)["compared"]], means, atol=1e-7
    )
    shares = np.exp(-90 * means / 2) / np.exp(-90 * means / 2).sum()
    logs = np.log(np.minimum(GRID, UNIFORM))
    assert ensemble.settings_["lambda_reg"] == float(f"{np.exp(shares @ logs):.3g}")
    # Its own held-out loss is that of the penalty, not of a value of the grid.
    assert min(means) - 1e-3 < choice(ensemble)["ce"] < max(means)


def test_weights_are_the_certified_optimum_under_that_penalty() -> None:
    people, made = people_and_pool()
    ensemble = EDOEnsemble().fit(made, people)
    second_ensemble = EDOEnsemble(objective=Objective(reg=ensemble.settings_["lambda_reg"])).fit(
        made, people
    )
    np.testing.assert_array_equal(second_ensemble.weights_, ensemble.weights_)
    assert ensemble.certificate_ is not None
    assert ensemble.certificate_.gap < 1e-9


def test_a_penalty_that_is_given_is_kept_and_nothing_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people, made = people_and_pool()
    monkeypatch.delattr("edokit.ensemble._fit.choose_lambda_reg")
    for preset, penalty in (("default", 0.5), ("default", 0), ("paper-fixed", None)):
        ensemble = flat_ensemble({"preset": preset, "lambda_reg": penalty})
        ensemble.fit(made, people)
        assert ensemble.settings_["lambda_reg"] == (1e-3 if penalty is None else penalty)
        assert "lambda_reg_choice" not in ensemble.settings_
        assert ensemble.fitted_.regularization is None


def test_the_choice_goes_with_every_kind_of_fit() -> None:
    people, made = people_and_pool()
    for how in (
        {"groups": True, "pool": "log", "recalibrate": "temperature"},
        {"solver": "gumbel", "epochs": 2},
        {"max_members": 2},
        {"diversity": "suppress", "lambda_div": 0.1},
        {"class_weights": True, "ce": "all"},
    ):
        ensemble = flat_ensemble(how).fit(made, people)
        assert 1e-3 <= ensemble.settings_["lambda_reg"] <= UNIFORM
        assert choice(ensemble)["folds"] == FOLDS


def test_order_and_seed() -> None:
    people, made = people_and_pool()
    rows = np.random.default_rng(3).permutation(len(made))
    turned = made.take(rows).select(made.members[::-1])
    one, other = (EDOEnsemble().fit(some, people) for some in (made, turned))
    assert one.settings_["lambda_reg"] == other.settings_["lambda_reg"]
    np.testing.assert_allclose(one.weights_, other.weights_[::-1], atol=1e-7)
    seeds = {
        EDOEnsemble(random_state=s).fit(made, people).settings_["lambda_reg"] for s in range(5)
    }
    assert len(seeds) > 1, "other seeds make other folds"


def test_shards_choose_what_memory_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edokit.ensemble._fit.MAX_ITEMS", 150)
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 100)
    made = cut(tmp_path, 400, [90, 130, 400], members=5)
    for how in ({}, {"groups": True}):
        wanted = flat_ensemble(how).fit(made.pool, made.people)
        with FitData.open(made.predictions, made.annotations, jobs=1) as shards:
            ensemble = flat_ensemble(how).fit(shards)
        assert choice(ensemble)["items"] == choice(wanted)["items"] == 150
        assert ensemble.settings_["lambda_reg"] == wanted.settings_["lambda_reg"]
        np.testing.assert_allclose(ensemble.weights_, wanted.weights_, atol=1e-7)
        assert "on 150 of the 400 items" in str(ensemble.fitted_.regularization)


def test_few_items_and_lonely_classes_are_no_obstacle() -> None:
    people, made = people_and_pool(9)
    ensemble = EDOEnsemble().fit(made, people)
    middle = np.exp(np.log(np.minimum(GRID, UNIFORM)).mean())
    assert ensemble.settings_["lambda_reg"] == pytest.approx(middle, rel=0.01)
    assert "too few" in str(ensemble.fitted_.regularization)
    _, made = people_and_pool(60)
    rare = np.tile([1.0, 0.0], (60, 1))
    rare[0] = [0.0, 1.0]
    answers = Annotations.from_soft_labels(rare, items=made.items, classes=made.classes)
    weighted = EDOEnsemble(objective=Objective(class_weights=True)).fit(made, answers)
    assert choice(weighted)["folds"] is None
    assert "items of a class" in str(weighted.fitted_.regularization)
    assert choice(EDOEnsemble().fit(made, answers))["folds"] == FOLDS


def test_the_place_of_a_class_that_nobody_chose_does_not_matter_to_held_out_answers() -> None:
    people, made = people_and_pool(60)
    held_out = []
    for unused in range(3):
        classes = ["no", "yes"]
        classes.insert(unused, "maybe")
        predictions = Predictions.from_arrays(
            np.insert(made.probabilities, unused, 0.0, axis=2),
            items=made.items,
            classes=classes,
            layout="NKC",
        )
        ensemble = EDOEnsemble(objective=Objective(class_weights=True))
        fitted = ensemble.fit(predictions, people.with_classes(classes)).fitted_
        assert fitted.held_out is not None
        held_out.append(np.delete(fitted.held_out.answers, unused, axis=1))
    np.testing.assert_allclose(held_out[0], held_out[2], atol=2e-6)
    np.testing.assert_allclose(held_out[1], held_out[2], atol=2e-6)


def test_it_says_how_clear_the_choice_was(tmp_path: Path) -> None:
    people, made = people_and_pool(300)
    alike = Predictions.from_arrays(
        made.probabilities[:, [0, 0, 0]], items=made.items, classes=made.classes, layout="NKC"
    )
    for some, words in ((made, "were clearly worse"), (alike, "were not clearly worse")):
        ensemble = EDOEnsemble().fit(some, people)
        sentence = str(ensemble.fitted_.regularization)
        assert sentence.startswith(f"L2 {ensemble.settings_['lambda_reg']:g}, chosen by 5-fold")
        assert words in sentence
        ensemble.save(tmp_path / "ensemble")
        assert sentence in (tmp_path / "ensemble" / "README.md").read_text(encoding="utf-8")
        loaded = EDOEnsemble.load(tmp_path / "ensemble")
        assert loaded.fitted_.regularization == sentence
        assert choice(loaded) == choice(ensemble)


def with_noise(made: Predictions, seed: int) -> Predictions:
    """The same members, but the last three answer for other items."""
    rng = np.random.default_rng(seed)
    P = np.array(made.probabilities)
    for k in range(-3, 0):
        P[:, k] = P[rng.permutation(len(P)), k]
    return Predictions.from_arrays(P, items=made.items, classes=made.classes, layout="NKC")


class World(NamedTuple):
    """Pools whose members are alike and uneven, and the truth about their test items."""

    dev: Annotations
    pools: dict[str, dict[str, Predictions]]
    truth: Any


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    found = []
    for seed in range(3):
        simulation = simulate("three-voices", random_state=seed, items=(400, 600, 600))
        alike = train_quick_members(simulation.annotations, 8, seed)
        uneven = {split: with_noise(made, seed) for split, made in alike.items()}
        truth = simulation.truth[simulation.rows("test")]
        dev = simulation.annotations.split("dev")
        found.append(World(dev, {"alike": alike, "uneven": uneven}, truth))
    return found


@pytest.mark.parametrize("items", [100, 200])
def test_small_dev_sets_never_cost_more_than_noise(items: int, worlds: list[World]) -> None:
    above: dict[str, list[float]] = {"alike": [], "uneven": []}
    for dev, pools, truth in worlds:
        for name, made in pools.items():
            uniform = ce(np.asarray(made["test"].uniform), truth)
            for rows in np.random.default_rng(items).permutation(600).reshape(-1, items):
                fitted = EDOEnsemble().fit(made["dev"].take(rows), dev.take(rows))
                p = np.asarray(fitted.predict_proba(made["test"]))
                above[name].append(ce(p, truth) - uniform)
    # Alike: nothing to learn, and next to nothing lost. Uneven: every draw is better.
    assert np.mean(above["alike"]) < 0.001
    assert max(above["alike"]) < 0.008
    assert max(above["uneven"]) < -0.01


@pytest.mark.parametrize("gap", [-0.0123, -1.5])
def test_a_small_penalty_is_written_as_a_number_and_a_gap_with_a_minus(gap: float) -> None:
    choice = {"items": 90, "folds": 5, "uniform_above": gap, "uniform_above_error": 0.001}
    words = describe_lambda_reg({"lambda_reg": 1e-05, "lambda_reg_choice": choice}, {"items": 90})
    assert words is not None
    assert words.startswith("L2 1e-05, chosen by 5-fold")
    assert f"ΔCE −{-gap:.4f} ± " in words
