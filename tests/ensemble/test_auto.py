"""Pool, groups, penalty and temperature settled on the fit data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ensemble_cases import people_and_pool

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._errors import InputError
from edokit.ensemble.auto import Candidate, _settled, candidates, choose
from edokit.objective import Settings, sharpen

GROUPS = ("a", "a", "b", "b")


def chosen(ensemble: EDOEnsemble) -> dict:
    (one,) = [each for each in ensemble.settings_["considered"] if each["chosen"]]
    return one


def with_groups(pool: Predictions, names: str) -> Predictions:
    return pool.grouped(dict(zip(pool.members, names, strict=True)))


def useful_groups(items: int = 60) -> tuple[Annotations, Predictions]:
    """Forty members, twenty fair and twenty at random: two weights say it all, forty overfit."""
    people, pool = people_and_pool(items)
    rng = np.random.default_rng(100)
    share = np.asarray(pool.probabilities)[:, 0, 1]
    fair = [np.clip(share + rng.normal(scale=0.3, size=items), 0.02, 0.98) for _ in range(20)]
    random = [rng.uniform(0.02, 0.98, size=items) for _ in range(20)]
    return people, Predictions.from_arrays(
        np.stack([*fair, *random], axis=1),
        items=pool.items,
        classes=pool.classes,
        groups=["fair"] * 20 + ["random"] * 20,
        layout="NK",
    )


def test_groups_that_tell_good_members_from_bad_are_used() -> None:
    people, pool = useful_groups()
    fitted = EDOEnsemble("auto").fit(pool, people)
    assert chosen(fitted)["groups"] is True
    assert fitted.group_weights_ is not None
    assert fitted.group_weights_[0] > 0.9


def test_groups_that_mix_good_members_with_bad_are_left_alone() -> None:
    people, pool = people_and_pool(300)
    mixed = with_groups(pool, "xyxy")
    fitted = EDOEnsemble("auto").fit(mixed, people)
    assert chosen(fitted)["groups"] is False
    assert fitted.weights_[0] > 0.6


def test_members_that_are_too_soft_get_a_temperature() -> None:
    people, pool = people_and_pool(300)
    soft = np.stack([sharpen(pool.probabilities[:, k], 4.0) for k in range(4)], axis=1)
    faint = Predictions.from_arrays(soft, items=pool.items, classes=pool.classes, layout="NKC")
    fitted = EDOEnsemble("auto").fit(faint, people)
    assert chosen(fitted)["recalibrate"] == "temperature"
    assert fitted.temperature_ < 0.6
    assert fitted.metrics_["ce"] < EDOEnsemble().fit(faint, people).metrics_["ce"] - 0.02


def test_calibrated_members_get_none() -> None:
    people, pool = people_and_pool(300)
    assert EDOEnsemble("auto").fit(pool.select(["good"]), people).temperature_ == 1.0


def test_a_choice_that_is_given_is_kept() -> None:
    people, pool = people_and_pool()
    fitted = EDOEnsemble(
        "auto", pool="log", groups=True, lambda_reg=0.5, recalibrate="none", solver="gumbel"
    ).fit(pool, people)
    assert len(fitted.settings_["considered"]) == 1
    one = chosen(fitted)
    assert (one["pool"], one["groups"], one["lambda_reg"]) == ("log", True, 0.5)
    assert (fitted.temperature_, fitted.settings_["solver"]) == (1.0, "gumbel")
    warm = EDOEnsemble("auto", recalibrate="temperature").fit(pool, people)
    assert warm.temperature_ != 1.0


def test_groups_that_are_asked_for_must_be_there() -> None:
    people, pool = people_and_pool()
    bare = Predictions(pool.probabilities, pool.items, pool.members, pool.classes)
    with pytest.raises(InputError, match="group of each member"):
        EDOEnsemble("auto", groups=True).fit(bare, people)
    assert chosen(EDOEnsemble("auto").fit(bare, people))["groups"] is False


def test_neither_one_group_nor_a_group_each_is_a_grouping() -> None:
    for names in (("a",) * 4, ("a", "b", "c", "d"), None):
        assert not any(each.groups for each in candidates(names, Settings(), {}))
    logs = candidates(GROUPS, Settings(), {"pool": "log"})
    assert [each.groups for each in logs] == [False, True, False]


def test_the_default_comes_first_and_a_given_penalty_leaves_one_per_pool() -> None:
    default = Settings()
    first = candidates(GROUPS, default, {})[0]
    assert first == Candidate(str(default.pool), False, default.lambda_reg)
    assert len(candidates(None, default, {"lambda_reg": 0.2})) == 2


def test_the_default_stays_unless_another_is_better_by_more_than_the_noise() -> None:
    rng = np.random.default_rng(0)
    first, noise = rng.normal(size=400), rng.normal(size=400)
    noise = (noise - noise.mean()) / noise.std()
    # The standard error of the difference is 1 / 20.
    assert _settled([first, first + noise - 0.04]) == 0
    assert _settled([first, first - noise, first + noise - 0.06]) == 2
    assert _settled([first, first]) == 0


def test_held_out_losses_are_told_and_the_chosen_one_is_among_the_lowest() -> None:
    people, pool = people_and_pool()
    q, y = people.soft_labels, people.hard_labels()
    found = choose(pool.probabilities, q, y, GROUPS, Settings(), {})
    assert min(each.above for each in found) == 0.0
    best = next(each for each in found if each.chosen)
    assert best is found[0] or best.above <= best.error + 1e-12


def test_a_temperature_that_is_asked_for_is_part_of_what_is_compared() -> None:
    people, pool = people_and_pool()
    considered = {
        asked: EDOEnsemble("auto", recalibrate=asked).fit(pool, people).settings_["considered"]
        for asked in ("temperature", None)
    }
    assert {each["recalibrate"] for each in considered["temperature"]} == {"temperature"}
    # What was tried with a temperature anyway has the same cross-entropy on record.
    kind = ("pool", "groups", "lambda_reg")
    tried = considered[None][-1]
    assert tried["recalibrate"] == "temperature"
    (asked,) = (
        each
        for each in considered["temperature"]
        if [each[name] for name in kind] == [tried[name] for name in kind]
    )
    assert asked["ce"] == pytest.approx(tried["ce"], rel=1e-12)


def test_the_order_of_the_items_does_not_matter() -> None:
    people, pool = people_and_pool()
    rows = np.random.default_rng(3).permutation(len(pool))
    one, other = (EDOEnsemble("auto").fit(some, people) for some in (pool, pool.take(rows)))
    assert chosen(one)["pool"] == chosen(other)["pool"]
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-7)


def test_with_few_items_nothing_is_chosen() -> None:
    people, pool = people_and_pool(8)
    fitted = EDOEnsemble("auto").fit(pool, people)
    assert chosen(fitted)["ce"] is None
    np.testing.assert_array_equal(fitted.weights_, EDOEnsemble().fit(pool, people).weights_)


def test_a_class_that_a_fold_lacks_is_no_obstacle_to_class_weights() -> None:
    _, pool = people_and_pool(60)
    rare = np.zeros((60, 2))
    rare[:, 0] = 1.0
    rare[0] = [0.0, 1.0]
    answers = Annotations.from_soft_labels(rare, items=pool.items, classes=pool.classes)
    fitted = EDOEnsemble("auto", class_weights=True).fit(pool, answers)
    assert fitted.weights_.sum() == pytest.approx(1.0)


def test_what_was_considered_is_saved_with_the_ensemble(tmp_path: Path) -> None:
    people, pool = people_and_pool()
    fitted = EDOEnsemble("auto").fit(pool, people)
    fitted.save(tmp_path / "ensemble")
    loaded = EDOEnsemble.load(tmp_path / "ensemble")
    assert loaded.settings_["considered"] == fitted.settings_["considered"]
    np.testing.assert_array_equal(loaded.predict_proba(pool), fitted.predict_proba(pool))
