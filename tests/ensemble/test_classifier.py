"""EDOClassifier: scikit-learn's contract, with several annotators' labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from edokit import Annotations, EDOClassifier, EDOEnsemble
from edokit._errors import InputError
from edokit.ensemble import soft_score

ESTIMATORS = [("lr", LogisticRegression()), ("nb", GaussianNB())]
# Evenly split items are common in small invented data; the note about them is not the point here.
pytestmark = pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=name_of(check))
        for estimator, check in estimator_checks_generator(EDOClassifier(ESTIMATORS))
        # Arrays on a GPU: that is for the classifiers inside to say, not for the pool.
        if name_of(check) != "check_array_api_input"
    ],
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def data(seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, five annotators' labels, and the share that says 1."""
    rng = np.random.default_rng(seed)
    X, _ = make_classification(300, 6, n_informative=4, random_state=seed)
    share = 1 / (1 + np.exp(-X[:, 0] - 0.7 * X[:, 1]))
    return X, (rng.random((300, 5)) < share[:, None]).astype(int), share


def with_gaps(labels: Any, seed: int = 0) -> Any:
    gaps = np.random.default_rng(seed).random(labels.shape) < 0.3
    gaps[:, 0] = False
    return np.where(gaps, np.nan, labels)


def test_it_learns_the_annotators_shares() -> None:
    X, labels, share = data()
    model = EDOClassifier(ESTIMATORS).fit(X[:200], labels[:200])
    p = model.predict_proba(X[200:])
    assert p.shape == (100, 2)
    assert np.corrcoef(p[:, 1], share[200:])[0, 1] > 0.8
    assert model.score(X[200:], labels[200:]) > 0.6
    assert list(model.classes_) == [0, 1]
    assert model.ensemble_.members_ == ("lr", "nb")


def test_gaps_soft_labels_and_annotations_are_all_understood() -> None:
    X, labels, _ = data()
    shares = labels.mean(axis=1)
    for y in (
        with_gaps(labels),
        np.where(np.isnan(with_gaps(labels)), None, labels),
        np.column_stack([1 - shares, shares]),
        Annotations.from_matrix(labels),
    ):
        model = EDOClassifier(ESTIMATORS).fit(X, y)
        assert model.predict_proba(X).shape == (300, 2)


def test_a_number_can_stand_for_gaps() -> None:
    X, labels, _ = data()
    marked = np.nan_to_num(with_gaps(labels), nan=-1).astype(int)
    assert list(EDOClassifier(ESTIMATORS, missing=-1).fit(X, marked).classes_) == [0, 1]
    assert list(EDOClassifier(ESTIMATORS).fit(X, marked).classes_) == [-1, 0, 1]


def test_prefit_classifiers_are_left_alone() -> None:
    X, labels, _ = data()
    fitted = LogisticRegression().fit(X[:100], labels[:100, 0])
    constant = DummyClassifier(strategy="prior").fit(X[:100], labels[:100, 0])
    before = fitted.coef_.copy()
    model = EDOClassifier([("lr", fitted), ("constant", constant)], prefit=True)
    model.fit(X[100:], labels[100:])
    np.testing.assert_array_equal(fitted.coef_, before)
    assert model.estimators_[0] is fitted
    assert model.ensemble_.weights_[0] > 0.5


def test_a_prefit_classifier_that_is_not_fitted_is_an_error() -> None:
    X, labels, _ = data()
    with pytest.raises(Exception, match="not fitted"):
        EDOClassifier(ESTIMATORS, prefit=True).fit(X, labels)


def test_it_works_in_a_pipeline_and_in_a_grid_search() -> None:
    X, labels, _ = data()
    pipeline = make_pipeline(StandardScaler(), EDOClassifier(ESTIMATORS, cv=3))
    grid = GridSearchCV(
        pipeline,
        {
            "edoclassifier__lr__C": [0.01, 1.0],
            "edoclassifier__ensemble": [EDOEnsemble(), EDOEnsemble("paper-fixed")],
        },
        scoring=soft_score,
        cv=KFold(3),
    )
    grid.fit(X, with_gaps(labels))
    assert grid.best_score_ > -np.log(2)
    assert grid.predict_proba(X[:3]).shape == (3, 2)


def test_texts_go_through_pipelines() -> None:
    texts = ["lovely day", "awful day", "lovely song", "awful song"] * 10
    labels = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = EDOClassifier([("a", reader), ("b", DummyClassifier())]).fit(texts, labels)
    p = model.predict_proba(["lovely day", "awful day"])
    assert p[0, 1] < p[1, 1]


def test_names_of_classes_come_back_as_they_came() -> None:
    X, labels, _ = data()
    words = np.array(["calm", "rude"], dtype=object)[labels]
    model = EDOClassifier(ESTIMATORS).fit(X, words)
    assert set(model.predict(X)) <= {"calm", "rude"}


def test_bad_input_gets_one_clear_line() -> None:
    X, labels, _ = data()
    with pytest.raises(InputError, match="at least one classifier"):
        EDOClassifier().fit(X, labels)
    with pytest.raises(InputError, match="predict_proba"):
        EDOClassifier([("ridge", RidgeClassifier())]).fit(X, labels)
    with pytest.raises(InputError, match="one row for each"):
        EDOClassifier(ESTIMATORS).fit(X, labels[:10])
    with pytest.raises(InputError, match="supervision"):
        EDOClassifier(ESTIMATORS, supervision="luck").fit(X, labels)
