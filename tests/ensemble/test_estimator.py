"""EDOEnsemble: what people import."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from ensemble_cases import MEMBERS, people_and_pool
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from edokit import (
    Annotations,
    EDOEnsemble,
    EDOWarning,
    Exact,
    Gumbel,
    Objective,
    Predictions,
)
from edokit.fitdata.inputs import load_inputs
from edokit.fitdata.reading import ReadOptions
from edokit.metrics import ce
from edokit.objective.pools import average_groups, pool
from edokit.objective.settings import PAPER_SOLVERS, PRESETS
from flat_options import flat_ensemble
from tests.errors import raises_code

PEOPLE, POOL = people_and_pool()


def test_the_good_member_gets_most_of_the_weight_and_noise_little() -> None:
    ensemble = EDOEnsemble(objective=Objective(div=0)).fit(POOL, PEOPLE)
    weights = dict(zip(ensemble.members_, ensemble.weights_, strict=True))
    assert weights["good"] > 0.7
    assert weights["noise-1"] + weights["noise-2"] < 0.15
    assert ensemble.members_ == MEMBERS
    assert ensemble.weights_.sum() == pytest.approx(1)
    assert ensemble.size_ == (ensemble.weights_ > 1e-6).sum()
    assert ensemble.certificate_ is not None
    assert ensemble.certificate_.gap < 1e-8
    assert {"f1", "ce", "div", "reg", "total"} <= set(ensemble.objective_)


def test_a_part_of_fit_data_is_fitted_as_data_of_its_own() -> None:
    data = load_inputs(POOL, PEOPLE, ReadOptions())
    part, _ = data.folds(3)[0]
    assert part.positions is not None
    ensemble = EDOEnsemble().fit(part)
    second_ensemble = EDOEnsemble().fit(POOL.take(part.positions), PEOPLE.take(part.positions))
    np.testing.assert_array_equal(ensemble.weights_, second_ensemble.weights_)
    assert ensemble.data_ == second_ensemble.data_
    assert ensemble.people_ is not None
    assert second_ensemble.people_ is not None
    np.testing.assert_array_equal(ensemble.people_.effects, second_ensemble.people_.effects)
    held_out = ensemble.fitted_.held_out
    assert held_out is not None
    np.testing.assert_array_equal(held_out.shares, second_ensemble.fitted_.held_out.shares)
    np.testing.assert_array_equal(held_out.answers, second_ensemble.fitted_.held_out.answers)


def test_the_pool_is_the_weighted_mean_of_the_members() -> None:
    ensemble = EDOEnsemble().fit(POOL, PEOPLE)
    expected = np.einsum("nkc,k->nc", POOL.probabilities, ensemble.weights_)
    np.testing.assert_allclose(ensemble.predict_proba(POOL), expected, atol=1e-12)
    assert set(ensemble.predict(POOL)) <= {"no", "yes"}
    assert ensemble.soft_score(POOL, PEOPLE) == pytest.approx(
        -ce(expected, np.asarray(PEOPLE.soft_labels))
    )


def test_items_and_classes_are_matched_by_name() -> None:
    ensemble = EDOEnsemble().fit(POOL, PEOPLE)
    order = np.random.default_rng(0).permutation(len(POOL))
    shuffled = POOL.take(order).order_classes(("yes", "no"))
    second_ensemble = EDOEnsemble().fit(shuffled, PEOPLE)
    np.testing.assert_allclose(second_ensemble.weights_, ensemble.weights_, atol=1e-9)
    np.testing.assert_allclose(
        second_ensemble.predict_proba(shuffled), ensemble.predict_proba(POOL)[order], atol=1e-9
    )
    assert list(second_ensemble.classes_) == ["no", "yes"]


def test_bare_arrays_give_the_same_weights() -> None:
    named_ensemble = EDOEnsemble().fit(POOL, PEOPLE)
    shares = EDOEnsemble().fit(POOL.probabilities, np.asarray(PEOPLE.soft_labels))
    np.testing.assert_allclose(shares.weights_, named_ensemble.weights_, atol=1e-9)
    assert PEOPLE.label_codes is not None
    matrix = PEOPLE.label_codes.reshape(len(POOL), 5)
    labels = EDOEnsemble().fit(POOL.probabilities, matrix)
    np.testing.assert_allclose(labels.weights_, named_ensemble.weights_, atol=1e-9)
    assert shares.predict_proba(POOL.probabilities).shape == (len(POOL), 2)


def test_predicted_labels_have_the_type_of_the_given_ones() -> None:
    P = POOL.probabilities
    y = (PEOPLE.soft_labels[:, 1] > 0.5).astype(int)
    ensemble = EDOEnsemble().fit(P, y)
    predicted = ensemble.predict(P)
    assert predicted.dtype.kind == "i"
    assert ensemble.classes_.tolist() == [0, 1]
    accuracy = (predicted == y).mean()
    assert accuracy > 0.8
    assert ensemble.score(P, y) == pytest.approx(accuracy)
    words = np.array(["no", "yes"])[y]
    assert set(EDOEnsemble().fit(POOL, words, order="annotations").predict(POOL)) == {"no", "yes"}
    with_gaps = np.column_stack([y.astype(float), np.where(y > 0, np.nan, 0.0)])
    assert EDOEnsemble().fit(P, with_gaps).predict(P).dtype == float
    assert set(EDOEnsemble().fit(P, np.asarray(PEOPLE.soft_labels)).predict(P)) == {0, 1}
    assert set(EDOEnsemble().fit(POOL, PEOPLE).predict(POOL)) == {"no", "yes"}


def test_a_class_that_nobody_chose_has_the_type_of_the_others() -> None:
    three = np.random.default_rng(0).dirichlet(np.ones(3), size=(20, 2))
    assert EDOEnsemble().fit(three, np.arange(20) % 2).classes_.tolist() == [0, 1, 2]


def test_scores_are_accuracy_and_minus_cross_entropy() -> None:
    ensemble = EDOEnsemble().fit(POOL, PEOPLE)
    p = ensemble.predict_proba(POOL)
    hard = PEOPLE.hard_labels(ties="first")
    assert ensemble.score(POOL, PEOPLE) == pytest.approx((p.argmax(axis=1) == hard).mean())
    first = np.eye(len(POOL))[0]
    assert ensemble.score(POOL, PEOPLE, sample_weight=first) == (p[0].argmax() == hard[0])
    turned = replace(PEOPLE).with_classes(("yes", "no"))
    assert ensemble.soft_score(POOL, turned) == pytest.approx(-ce(p, PEOPLE.soft_labels))


def test_without_labels_it_says_so() -> None:
    with raises_code("missing-labels"):
        EDOEnsemble().fit(POOL)
    with raises_code("missing-labels"):
        EDOEnsemble().fit(POOL.probabilities, None)
    with raises_code("wrong-shape", "120"):
        EDOEnsemble().fit(POOL.probabilities, 3)


def test_a_type_checker_knows_the_words_of_each_parameter() -> None:
    words = {
        "preset": {"default", "paper-fixed"},
        "solver": {"exact", "gumbel"},
        "ce": {"mean", "all", "random"},
        "diversity": {"preserve", "suppress", -1, 1},
        "pool": {"linear", "log"},
        "recalibrate": {"temperature"},
        "ties": {"first", "error", "random"},
    }
    hints = {
        name: kind
        for owner in (Objective, Gumbel, EDOEnsemble.__init__)
        for name, kind in get_type_hints(owner).items()
    }
    for name, expected in words.items():
        kinds = [hints[name]] if get_origin(hints[name]) is Literal else get_args(hints[name])
        known = {word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)}
        assert known == expected, name
        assert str not in kinds, name


def test_a_matrix_that_could_be_labels_or_shares_is_not_guessed() -> None:
    with raises_code("ambiguous-labels"):
        EDOEnsemble().fit(POOL.probabilities[:3], np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))


def test_only_members_with_weight_are_needed_to_predict() -> None:
    ensemble = EDOEnsemble(solver=Exact(max_members=2)).fit(POOL, PEOPLE)
    assert set(np.flatnonzero(ensemble.weights_)) <= {0, 1}
    kept = POOL.select(["fair", "good"])
    np.testing.assert_allclose(
        ensemble.predict_proba(kept), ensemble.predict_proba(POOL), atol=1e-12
    )
    with raises_code("missing-members", "'good'"):
        ensemble.predict_proba(POOL.select(["fair", "noise-1"]))


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_groups_are_averaged_first(kind: str) -> None:
    ensemble = EDOEnsemble(groups=True, pool=kind).fit(POOL, PEOPLE)
    assert ensemble.group_weights_ is not None
    assert len(ensemble.group_weights_) == 2
    assert ensemble.weights_[0] == pytest.approx(ensemble.weights_[1])
    means = average_groups(POOL.probabilities, POOL.groups or ())
    expected = pool(means, ensemble.group_weights_, kind)
    np.testing.assert_allclose(ensemble.predict_proba(POOL), expected, atol=1e-12)


def test_groups_without_names_are_an_error() -> None:
    with raises_code("missing-groups", "groups=True"):
        EDOEnsemble(groups=True).fit(replace(POOL, groups=None), PEOPLE)


def test_a_temperature_never_worsens_the_fit() -> None:
    soft = replace(POOL, probabilities=0.4 * POOL.probabilities + 0.3)
    plain_ensemble = EDOEnsemble().fit(soft, PEOPLE)
    sharp = EDOEnsemble(recalibrate="temperature").fit(soft, PEOPLE)
    # Members that are too timid are sharpened.
    assert sharp.temperature_ < 1
    assert plain_ensemble.temperature_ == 1
    assert sharp.soft_score(soft, PEOPLE) > plain_ensemble.soft_score(soft, PEOPLE)
    np.testing.assert_array_equal(plain_ensemble.predict(soft), sharp.predict(soft))


def test_entropy_and_spread_come_with_the_probabilities() -> None:
    ensemble = EDOEnsemble(objective=Objective(div=0.5)).fit(POOL, PEOPLE)
    pooled = ensemble.describe(POOL)
    p = pooled.probabilities
    np.testing.assert_allclose(pooled.entropy, -(p * np.log(p)).sum(axis=1))
    around = np.abs(POOL.probabilities - p[:, None]).sum(axis=2)
    np.testing.assert_allclose(pooled.spread, around @ ensemble.weights_, atol=1e-12)
    # Appendix A: the disagreement lies between the spread and twice the spread.
    assert pooled.spread.mean() <= ensemble.objective_["div"] <= 2 * pooled.spread.mean()
    table = pooled.to_table()
    assert table.column_names == ["item", "p_no", "p_yes", "entropy", "spread", "label"]


def test_the_paper_preset_searches_with_gumbel_and_keeps_its_path() -> None:
    ensemble = EDOEnsemble("paper-fixed").fit(POOL, PEOPLE)
    assert ensemble.certificate_ is None
    assert ensemble.trajectory_ is not None
    assert len(ensemble.trajectory_) == 10
    assert ensemble.trajectory_.sizes.shape == (10, 4)
    assert ensemble.settings_["lambda_div"] == 1.0
    assert ensemble.settings_["class_weights"] is True
    second_ensemble = EDOEnsemble("paper-fixed").fit(POOL, PEOPLE)
    np.testing.assert_array_equal(second_ensemble.weights_, ensemble.weights_)


def test_our_gumbel_comes_close_to_the_exact_optimum() -> None:
    exact = EDOEnsemble().fit(POOL, PEOPLE)
    search = EDOEnsemble(solver="gumbel").fit(POOL, PEOPLE)
    assert search.settings_["learning_rate"] == 0.03
    assert search.objective_["total"] == pytest.approx(exact.objective_["total"], abs=2e-3)


def test_flat_names_and_objects_are_the_same_options() -> None:
    flat = {"preset": "paper-fixed", "lambda_div": 0.2, "ce": "all", "epochs": 3, "ties": "random"}
    ensemble = flat_ensemble(flat)
    assert ensemble.get_params(deep=False) == {
        **EDOEnsemble().get_params(deep=False),
        "preset": "paper-fixed",
        "ties": "random",
        "objective": Objective(f1=1.0, div=0.2, reg=1e-3, ce="all", class_weights=True),
        "solver": replace(PAPER_SOLVERS["gumbel"], epochs=3),
    }
    assert ensemble.fit(POOL, PEOPLE).settings_.items() >= flat.items()
    assert flat_ensemble({}).get_params() == EDOEnsemble().get_params()
    with pytest.warns(EDOWarning, match="epochs: .*gumbel"):
        assert flat_ensemble({"epochs": 3}).solver is None


def test_nested_parameters_change_the_object_in_force() -> None:
    ensemble = EDOEnsemble("paper-fixed")
    assert ensemble.get_params()["objective__div"] == 1.0
    assert ensemble.get_params()["solver__epochs"] == 10
    ensemble.set_params(objective__div=0, solver__epochs=5)
    assert ensemble.objective == replace(PRESETS["paper-fixed"], div=0)
    assert ensemble.solver == replace(PAPER_SOLVERS["gumbel"], epochs=5)
    assert EDOEnsemble().set_params(preset="paper-fixed", objective__reg=1.0).objective.f1 == 1.0
    assert EDOEnsemble().set_params(solver="gumbel", solver__epochs=2).solver == Gumbel(epochs=2)
    for name in ("objective__nope", "solver__epochs", "objectives__div"):
        with pytest.raises(ValueError, match=r"nope|epochs|objectives"):
            EDOEnsemble().set_params(**{name: 1})


def test_a_given_parameter_wins_over_the_preset() -> None:
    ensemble = EDOEnsemble("paper-fixed", solver="exact").set_params(objective__div=0.25)
    ensemble.fit(POOL, PEOPLE)
    assert ensemble.settings_["solver"] == "exact"
    assert ensemble.settings_["lambda_div"] == 0.25
    assert ensemble.settings_["lambda_f1"] == 1.0


def test_explain_gives_a_reason_per_member() -> None:
    reasons = EDOEnsemble(objective=Objective(div=0, reg=0)).fit(POOL, PEOPLE).explain()
    assert len(reasons) == 4
    assert (reasons[0].member, reasons[0].kind, reasons[0].rank) == ("good", "dominant", 1)
    assert "most of the weight" in str(reasons[0])
    zero = [reason for reason in reasons if not reason.has_weight]
    assert zero
    for reason in zero:
        assert (reason.kind, reason.weight) == ("excluded_by_loss", 0)
        assert (reason.price or 0) > 0
        assert f"{reason.ce:.4f}" in str(reason)
        assert f"{reason.price:.4f}" in str(reason)
    bounded = EDOEnsemble(solver=Exact(max_members=2)).fit(POOL, PEOPLE).explain()
    assert [reason.kind for reason in bounded[2:]] == ["beyond_max_members"] * 2
    assert sum("max_members=2" in str(reason) for reason in bounded) == 2


def test_a_small_weight_does_not_read_as_none() -> None:
    weights = [0.9997, 0.0003, 0.0, 0.0]
    reasons = EDOEnsemble.from_weights(weights, POOL, PEOPLE).explain()
    assert [reason.has_weight for reason in reasons] == [True, True, False, False]
    assert "weight 0.0003 " in str(reasons[1])


def test_it_is_a_scikit_learn_estimator() -> None:
    ensemble = EDOEnsemble(objective=Objective(ce="all", div=0.2))
    assert clone(ensemble).get_params() == ensemble.get_params()
    assert ensemble.set_params(objective__ce="mean").objective == Objective(div=0.2)
    ensemble.fit(POOL, PEOPLE)
    again = pickle.loads(pickle.dumps(ensemble))
    np.testing.assert_array_equal(again.predict_proba(POOL), ensemble.predict_proba(POOL))
    with pytest.raises(NotFittedError):
        EDOEnsemble().predict_proba(POOL)
    with pytest.raises(ValueError, match="'nope'"):
        ensemble.set_params(nope=1)
    with config_context(print_changed_only=False):
        assert "objective=None" in repr(EDOEnsemble())


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_mixin_order",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimators_unfitted",
    ],
)
def test_it_passes_the_checks_of_scikit_learn_that_give_it_no_table(check: str) -> None:
    getattr(estimator_checks, check)("EDOEnsemble", EDOEnsemble())


def test_scikit_learn_searches_over_it_in_a_pipeline_and_draws_it() -> None:
    X = POOL.probabilities
    y = np.asarray(PEOPLE.hard_labels(ties="first"))
    steps = make_pipeline(FunctionTransformer(), EDOEnsemble())
    grid = GridSearchCV(steps, {"edoensemble__objective__reg": [0.1, 10.0]}, cv=2).fit(X, y)
    assert (
        grid.best_estimator_[-1].objective.reg == grid.best_params_["edoensemble__objective__reg"]
    )
    parameters_and_results = grid.best_estimator_._repr_html_()
    assert "objective" in parameters_and_results
    assert "weights_" in parameters_and_results


def test_scikit_learn_routes_weights_to_its_score() -> None:
    X = POOL.probabilities
    y = np.asarray(PEOPLE.hard_labels(ties="first"))
    weights = np.random.default_rng(0).uniform(size=len(y))
    with config_context(enable_metadata_routing=True):
        asking = EDOEnsemble().set_score_request(sample_weight=True)
        assert isinstance(asking, EDOEnsemble)
        found = cross_validate(asking, X, y, params={"sample_weight": weights}, cv=KFold(2))
    half = len(y) // 2
    by_hand = EDOEnsemble().fit(X[half:], y[half:]).score(X[:half], y[:half], weights[:half])
    assert found["test_score"][0] == pytest.approx(by_hand)


def test_a_class_nobody_chose_is_defined_without_class_weights_and_refused_with_them() -> None:
    # Annotators chose "yes" now and then, but it is nobody's hard label.
    rows = np.array([["no", "no", "yes"]] * 10 + [["no", "no", "no"]] * 10, dtype=object)
    people = Annotations.from_matrix(rows, items=POOL.items[:20], classes=("no", "yes"))
    part = POOL.take(np.arange(20))
    assert EDOEnsemble().fit(part, people).size_ >= 1
    with raises_code("missing-class"):
        EDOEnsemble(objective=Objective(class_weights=True)).fit(part, people)


def test_more_predicted_classes_than_chosen_ones_are_fine() -> None:
    rng = np.random.default_rng(0)
    three = Predictions.from_arrays(
        rng.dirichlet(np.ones(3), size=(20, 2)),
        items=POOL.items[:20],
        classes=("maybe", "no", "yes"),
        layout="NKC",
    )
    ensemble = EDOEnsemble().fit(three, PEOPLE.take(np.arange(20)))
    assert list(ensemble.classes_) == ["maybe", "no", "yes"]


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        ({"preset": "best"}, "unknown-choice", "preset"),
        ({"preset": "paper"}, "unknown-choice", "edo search --space paper"),
        ({"solver": "magic"}, "unknown-choice", "solver"),
        ({"ce": "median"}, "unknown-choice", "ce"),
        ({"diversity": "more", "lambda_div": 0.1}, "unknown-choice", "diversity"),
        ({"pool": "cubic"}, "unknown-choice", "pool"),
        ({"lambda_ce": -1.0}, "invalid-number", "lambda_ce is -1.0"),
        ({"recalibrate": "isotonic"}, "unknown-choice", "recalibrate"),
        (
            {"solver": "gumbel", "min_members": 3, "max_members": 2},
            "invalid-range",
            "min_members=3",
        ),
    ],
)
def test_bad_parameters_get_one_clear_line(change: dict[str, Any], code: str, fact: str) -> None:
    with raises_code(code, fact):
        flat_ensemble(change).fit(POOL, PEOPLE)


def test_an_array_of_logits_is_refused_with_where_to_declare_it() -> None:
    with raises_code("invalid-probabilities", "logits=True"):
        EDOEnsemble().fit(np.log(POOL.probabilities), PEOPLE)


def test_predictions_and_annotations_must_hold_the_same_items() -> None:
    with raises_code("items-differ"):
        EDOEnsemble().fit(POOL, PEOPLE.take(np.arange(100)))
    with raises_code("classes-differ"):
        EDOEnsemble().fit(replace(POOL, classes=("0", "1")), PEOPLE)


def test_ties_follow_their_policy() -> None:
    people = Annotations.from_matrix(
        np.array([["no", "yes"]] * 10, dtype=object), items=POOL.items[:10]
    )
    part = POOL.take(np.arange(10))
    with pytest.warns(EDOWarning, match="10 of 10 items"):
        EDOEnsemble().fit(part, people)
    with raises_code("tied-item"):
        EDOEnsemble(ties="error").fit(part, people)


def test_metrics_are_those_of_the_labels_that_were_fitted_whenever_they_are_read() -> None:
    probabilities = np.array(POOL.probabilities)
    shares = np.array(PEOPLE.soft_labels)
    expected = EDOEnsemble().fit(probabilities, shares).metrics_
    ensemble = EDOEnsemble().fit(probabilities, shares)
    copied = pickle.loads(pickle.dumps(EDOEnsemble().fit(probabilities, shares)))
    probabilities[:] = 0.5
    shares[:] = 0.5
    assert ensemble.metrics_ == expected
    assert copied.metrics_ == expected
