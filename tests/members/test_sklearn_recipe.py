"""Any scikit-learn classifier can be a member, and is kept without pickle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people

from edokit import Scale
from edokit._io.skops import read_estimator_file
from edokit.members import MemberData
from edokit.members.recipes.sklearn import SklearnMember
from edokit.members.supervision import majority_targets, soft_targets
from tests.errors import raises_code

COURSE = small_people(48)
HARD = MemberData(COURSE.texts, lambda epoch: majority_targets(COURSE))
SOFT = MemberData(COURSE.texts, lambda epoch: soft_targets(COURSE))
SVD = "sklearn.decomposition.TruncatedSVD(n_components=5)"


@pytest.mark.parametrize(
    "estimator",
    [
        "sklearn.naive_bayes.MultinomialNB()",
        "sklearn.linear_model.LogisticRegression(C=3.0)",
        "sklearn.linear_model.SGDClassifier(loss='log_loss')",
        "sklearn.ensemble.RandomForestClassifier(n_estimators=5)",
        "sklearn.ensemble.ExtraTreesClassifier(n_estimators=5)",
        "sklearn.neighbors.KNeighborsClassifier()",
        "sklearn.calibration.CalibratedClassifierCV(sklearn.svm.LinearSVC())",
        f"sklearn.pipeline.make_pipeline({SVD}, sklearn.naive_bayes.GaussianNB())",
        f"sklearn.pipeline.make_pipeline({SVD},"
        " sklearn.ensemble.HistGradientBoostingClassifier(max_iter=3))",
        f"sklearn.pipeline.make_pipeline({SVD},"
        " sklearn.ensemble.GradientBoostingClassifier(n_estimators=3))",
        f"sklearn.pipeline.make_pipeline({SVD}, sklearn.neural_network.MLPClassifier([4], "
        "max_iter=2000, tol=0.01))",
    ],
)
def test_a_classifier_comes_back_as_it_was(estimator: str, tmp_path: Path) -> None:
    member = SklearnMember(2, estimator=estimator).fit(HARD, random_state=3)
    member.save(tmp_path)
    again = SklearnMember.load(tmp_path)
    np.testing.assert_allclose(
        again.predict_proba(COURSE.texts), member.predict_proba(COURSE.texts)
    )


def test_a_regressor_learns_shares_and_rules_no_class_out(tmp_path: Path) -> None:
    trees = "sklearn.ensemble.ExtraTreesRegressor(5)"
    member = SklearnMember(2, estimator=trees, pieces=20).fit(SOFT)
    answers = member.predict_proba(COURSE.texts)
    np.testing.assert_allclose(answers.sum(axis=1), 1)
    assert answers.min() >= 1 / 51
    np.testing.assert_allclose(answers, soft_targets(COURSE), atol=0.5)
    member.save(tmp_path)
    again = SklearnMember.load(tmp_path)
    np.testing.assert_allclose(again.predict_proba(COURSE.texts), answers)
    assert again.get_params()["pieces"] == 20


def test_a_regressor_learns_the_shares_of_labels() -> None:
    shares = np.column_stack([soft_targets(COURSE)[:, 0], np.zeros(48)])  # nobody chose the second
    data = MemberData(COURSE.texts, lambda epoch: shares, scale=Scale("multi-label"))
    found = SklearnMember(2, estimator="sklearn.linear_model.Ridge()").fit(data)
    p = found.predict_proba(COURSE.texts)
    assert np.corrcoef(p[:, 0], shares[:, 0])[0, 1] > 0.7
    np.testing.assert_allclose(p[:, 1], 1 / 50)


def test_only_the_most_frequent_pieces_are_features() -> None:
    ridge = "sklearn.linear_model.Ridge()"
    few, all_pieces = (
        SklearnMember(2, estimator=ridge, pieces=pieces).fit(SOFT)._fitted.n_features_in_
        for pieces in (7, 0)
    )
    assert few == 7 < all_pieces


def test_an_estimator_may_read_texts_by_itself() -> None:
    estimator = (
        "sklearn.pipeline.make_pipeline(sklearn.feature_extraction.text.CountVectorizer(),"
        " sklearn.naive_bayes.MultinomialNB())"
    )
    member = SklearnMember(2, estimator=estimator, features="texts").fit(SOFT)
    assert member.predict_proba(["awful nonsense", ("tea", "in the garden")]).shape == (2, 2)


def test_shares_are_passed_on_as_weights() -> None:
    half = MemberData(COURSE.texts, lambda epoch: np.full((48, 2), 0.5))
    member = SklearnMember(2, estimator="sklearn.naive_bayes.MultinomialNB()").fit(half)
    np.testing.assert_allclose(member.predict_proba(COURSE.texts[:3]), 0.5)


def test_shares_for_an_estimator_without_weights_are_refused() -> None:
    member = SklearnMember(2, estimator="sklearn.neighbors.KNeighborsClassifier()")
    with raises_code("unsupported-weights", "KNeighborsClassifier"):
        member.fit(SOFT)


def test_what_an_estimator_cannot_learn_from_is_said_in_one_line() -> None:
    member = SklearnMember(2, estimator="sklearn.naive_bayes.GaussianNB()")
    with raises_code("invalid-estimators", "GaussianNB"):
        member.fit(HARD)


def test_the_seed_reaches_the_estimator() -> None:
    estimator = "sklearn.ensemble.RandomForestClassifier(n_estimators=3)"
    first, second, other = (
        SklearnMember(2, estimator=estimator)
        .fit(HARD, random_state=seed)
        .predict_proba(COURSE.texts)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_an_estimator_is_needed() -> None:
    with raises_code("invalid-estimators"):
        SklearnMember(2)


def test_foreign_types_are_loaded_only_when_trusted(tmp_path: Path) -> None:
    member = SklearnMember(
        2, estimator="member_cases.ForeignClassifier()", allow="member_cases"
    ).fit(HARD)
    member.save(tmp_path)
    with raises_code("untrusted-code", "trust='member_cases'"):
        SklearnMember.load(tmp_path)
    again = SklearnMember.load(tmp_path, trust=["member_cases"])
    np.testing.assert_allclose(again.predict_proba(["x"]), member.predict_proba(["x"]))


def test_a_damaged_skops_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "estimator.skops").write_bytes(b"PK\x03\x04 cut off")
    with raises_code("damaged-file"):
        read_estimator_file(tmp_path / "estimator.skops")
