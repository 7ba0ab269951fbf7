"""EDOClassifier: scikit-learn's contract, with several annotators' labels."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from edokit import Annotations, EDOClassifier, EDOEnsemble, InputError, Objective
from edokit.ensemble.classifier import soft_score
from edokit.metrics import ce
from tests.errors import raises_code

ESTIMATORS = [("lr", LogisticRegression()), ("nb", GaussianNB())]
# Evenly split items are common in small invented data; the note about them is not the point here.
pytestmark = pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


class DeclaredScale(EDOClassifier):
    """The same, called a classifier before it is fitted, for scikit-learn to check it as one."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        return tags


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{kind.__name__}-{name_of(check)}")
        for kind in (EDOClassifier, DeclaredScale)
        for estimator, check in estimator_checks_generator(kind(ESTIMATORS))
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


def test_soft_supervision_learns_from_every_label_and_beats_drawn_ones() -> None:
    X, labels, _ = data()
    losses = {
        supervision: -EDOClassifier([("lr", LogisticRegression())], supervision=supervision)
        .fit(X[:150], labels[:150])
        .soft_score(X[150:], labels[150:])
        for supervision in ("random-select", "soft")
    }
    shares = LogisticRegression().fit(
        np.repeat(X[:150], 5, axis=0), labels[:150].ravel(), sample_weight=np.full(750, 0.2)
    )
    by_hand = ce(shares.predict_proba(X[150:]), np.eye(2)[labels[150:]].mean(axis=1))
    assert losses["soft"] < losses["random-select"]
    assert losses["soft"] == pytest.approx(by_hand, abs=1e-4)


def test_soft_supervision_goes_through_pipelines_and_names_what_takes_no_weights() -> None:
    texts = ["lovely day", "awful day", "lovely song", "awful song"] * 10
    labels = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = EDOClassifier([("a", reader)], supervision="soft").fit(texts, labels)
    p = model.predict_proba(["lovely day", "awful day"])
    assert p[0, 1] < p[1, 1]
    neighbours = [("near", make_pipeline(TfidfVectorizer(), KNeighborsClassifier()))]
    with raises_code("unsupported-weights", "sample_weight", "KNeighborsClassifier"):
        EDOClassifier(neighbours, supervision="soft").fit(texts, labels)


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
    with pytest.raises(NotFittedError):
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


def forms_of_gaps() -> dict[str, Any]:
    """The same labels of three annotators, the gaps written in every usual way."""
    labels = data()[1][:120, :3]
    gaps = np.isnan(with_gaps(labels))
    words = np.where(gaps, None, np.array(["calm", "rude"], dtype=object)[labels])
    numbers = np.where(gaps, np.nan, labels)
    return {
        "nan": numbers,
        "None": np.where(gaps, None, labels.astype(object)),
        "words": words,
        "empty": np.where(gaps, "", np.array(["calm", "rude"])[labels]),
        "masked": np.ma.array(labels, mask=gaps),
        "list": numbers.tolist(),
        "frame": pd.DataFrame(numbers, columns=["ann", "bob", "cy"], index=range(500, 620)),
        "Int64": pd.DataFrame(numbers).astype("Int64"),
        "frame of words": pd.DataFrame(words),
        "string": pd.DataFrame(words).astype("string"),
        "category": pd.DataFrame(words).astype("category"),
    }


@cache
def scores_with_gaps(folds: int) -> Any:
    """What every way to write the gaps must give."""
    X = data()[0][:120]
    y = forms_of_gaps()["nan"]
    return cross_val_score(EDOClassifier(ESTIMATORS, cv=2), X, y, cv=KFold(folds))


@pytest.mark.parametrize("form", forms_of_gaps())
def test_labels_with_gaps_are_cross_validated_however_they_are_written(form: str) -> None:
    y = forms_of_gaps()[form]
    table = pd.DataFrame(data()[0][:120], columns=list("abcdef"), index=range(500, 620))
    found = cross_val_score(EDOClassifier(ESTIMATORS, cv=2), table, y, cv=2, error_score="raise")
    np.testing.assert_allclose(found, scores_with_gaps(2))


def test_labels_with_gaps_are_cross_validated_with_plain_defaults() -> None:
    X = data()[0][:120]
    y = forms_of_gaps()["nan"]
    found = cross_val_score(EDOClassifier(ESTIMATORS, cv=2), X, y, error_score="raise")
    np.testing.assert_allclose(found, scores_with_gaps(5))


@pytest.mark.parametrize("form", ["nan", "frame of words"])
def test_a_classifier_that_is_fitted_is_cross_validated_alike(form: str) -> None:
    X = data()[0][:120]
    y = forms_of_gaps()[form]
    model = EDOClassifier(ESTIMATORS, cv=2).fit(X, y)
    np.testing.assert_allclose(cross_val_score(model, X, y, cv=2), scores_with_gaps(2))


def test_a_grid_search_over_texts_takes_series_and_frames_with_gaps() -> None:
    texts = pd.Series(["lovely day", "awful day", "lovely song", "awful song"] * 10)
    labels = pd.DataFrame([[0, None, 1], [1, 1, None], [0, 0, 0], [1, None, 1]] * 10)
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = EDOClassifier([("a", reader), ("b", DummyClassifier())], cv=2)
    choices = {"a__logisticregression__C": [0.01, 10.0]}
    grid = GridSearchCV(model, choices, scoring=soft_score, error_score="raise").fit(texts, labels)
    assert grid.best_params_ == {"a__logisticregression__C": 10.0}
    p = grid.predict_proba(pd.Series(["lovely day", "awful day"]))
    assert p[0, 1] < p[1, 1]


def test_scorers_of_single_labels_know_a_fitted_classifier() -> None:
    X, labels, _ = data()
    model = EDOClassifier(ESTIMATORS, cv=2)
    assert is_classifier(model.fit(X, labels))
    found = cross_val_score(model, X, labels[:, 0], scoring="roc_auc", error_score="raise")
    assert found.mean() > 0.6


def test_texts_go_through_pipelines() -> None:
    texts = ["lovely day", "awful day", "lovely song", "awful song"] * 10
    labels = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model = EDOClassifier([("a", reader), ("b", DummyClassifier())]).fit(texts, labels)
    p = model.predict_proba(["lovely day", "awful day"])
    assert p[0, 1] < p[1, 1]


@pytest.mark.parametrize("kind", [object, "string", "str"])
def test_texts_come_as_a_series_too(kind: Any) -> None:
    texts = ["lovely day", "awful day", "lovely song", "awful song"] * 10
    labels = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10)
    reader = make_pipeline(TfidfVectorizer(), LogisticRegression())
    members = [("a", reader), ("b", DummyClassifier())]
    series = pd.Series(texts, index=np.arange(40)[::-1], dtype=kind)
    wanted = EDOClassifier(members).fit(texts, labels)
    classifier = EDOClassifier(members).fit(series, pd.DataFrame(labels))
    np.testing.assert_allclose(classifier.predict_proba(series), wanted.predict_proba(texts))
    array = EDOClassifier(members).fit(np.array(texts), labels)
    np.testing.assert_allclose(array.weights_, wanted.weights_)


def test_parallel_fits_find_the_same() -> None:
    X, labels, _ = data()
    single_classifier = EDOClassifier(ESTIMATORS).fit(X, labels)
    several = EDOClassifier(ESTIMATORS, n_jobs=2).fit(X, labels)
    np.testing.assert_array_equal(single_classifier.predict_proba(X), several.predict_proba(X))


def test_any_splitter_that_partitions_the_items_gives_the_folds() -> None:
    X, labels, _ = data()
    counted = EDOClassifier(ESTIMATORS, cv=3, random_state=4).fit(X, labels)
    same = KFold(3, shuffle=True, random_state=4)
    for cv in (same, list(same.split(X))):
        model = EDOClassifier(ESTIMATORS, cv=cv, random_state=4).fit(X, labels)
        np.testing.assert_array_equal(model.weights_, counted.weights_)
    EDOClassifier(ESTIMATORS, cv=StratifiedKFold(3)).fit(X, labels)
    with pytest.raises(ValueError, match="partitions"):
        EDOClassifier(ESTIMATORS, cv=ShuffleSplit(3, random_state=0)).fit(X, labels)


@pytest.mark.parametrize("names", [("calm", "rude"), (3, 7), (False, True)], ids=str)
def test_a_saved_classifier_predicts_the_same(names: Any, tmp_path: Path) -> None:
    X, labels, _ = data()
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    y = np.array(names)[labels]
    model = EDOClassifier(ESTIMATORS, cv=KFold(3), ensemble=EDOEnsemble(pool="log")).fit(table, y)
    model.save(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pkl", ".joblib")]
    loaded = EDOClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.score(table, y) == model.score(table, y)
    assert loaded.explain() == model.explain()
    assert loaded.feature_names_in_.tolist() == table.columns.tolist()
    assert EDOEnsemble.load(tmp_path).size_ == model.size_
    loaded.fit(X, y)  # parameters came back, too


def test_a_classifier_is_loaded_whole_or_not_at_all(tmp_path: Path) -> None:
    X, labels, _ = data()
    with raises_code("wrong-folder", "classifier.json"):
        EDOClassifier.load(tmp_path)
    model = EDOClassifier(ESTIMATORS).fit(X, labels)
    model.save(tmp_path)
    path = tmp_path / "classifier.json"
    content = json.loads(path.read_text())
    for change in ({"classes": [0, 2]}, {"parameters": {}}, {"kind": "cake"}, {"format": 9}):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(InputError, match=r"classifier\.json"):
            EDOClassifier.load(tmp_path)
    path.write_text(json.dumps(content))
    (tmp_path / "members" / "0.skops").write_bytes(b"none")
    with raises_code("damaged-file", "0"):
        EDOClassifier.load(tmp_path)
    with pytest.raises(NotFittedError):
        EDOClassifier(ESTIMATORS).save(tmp_path)


def test_it_describes_items_and_scores_like_the_pool() -> None:
    X, labels, _ = data()
    model = EDOClassifier(ESTIMATORS).fit(X, labels)
    described = model.describe(X)
    np.testing.assert_array_equal(described.probabilities, model.predict_proba(X))
    assert described.entropy.shape == described.spread.shape == (300,)
    people = Annotations.from_matrix(labels)
    named = model.ensemble_
    members = np.stack([e.predict_proba(X) for e in model.estimators_], axis=1)
    assert model.score(X, labels) == pytest.approx(named.score(members, people))
    assert model.soft_score(X, labels) == pytest.approx(named.soft_score(members, people))
    assert soft_score(model, X, labels) == model.soft_score(X, labels)
    # Rows in which nobody chose one of the classes.
    ones = (labels == 1).all(axis=1)
    assert soft_score(model, X[ones], labels[ones]) < 0


def test_names_of_classes_come_back_as_they_came() -> None:
    X, labels, _ = data()
    words = np.array(["calm", "rude"], dtype=object)[labels]
    model = EDOClassifier(ESTIMATORS).fit(X, words)
    assert set(model.predict(X)) <= {"calm", "rude"}


def test_bad_input_gets_one_clear_line() -> None:
    X, labels, _ = data()
    with raises_code("invalid-estimators"):
        EDOClassifier().fit(X, labels)
    with raises_code("invalid-estimators", "predict_proba"):
        EDOClassifier([("ridge", RidgeClassifier())]).fit(X, labels)
    with raises_code("wrong-shape"):
        EDOClassifier(ESTIMATORS).fit(X, labels[:10])
    with raises_code("unknown-choice", "supervision"):
        EDOClassifier(ESTIMATORS, supervision="luck").fit(X, labels)


@pytest.mark.filterwarnings("ignore::edokit.EDOWarning")
def test_classifiers_of_sets_and_of_points_of_a_scale(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    sets = (X[:, :3] + rng.normal(0, 0.5, (90, 3)) > 0).astype(int)
    members = [
        ("each", OneVsRestClassifier(LogisticRegression())),
        ("forest", RandomForestClassifier(10, random_state=0)),
    ]
    pool = EDOEnsemble(scale="multi-label:rude,mocking,sincere")
    model = EDOClassifier(members, ensemble=pool, cv=3).fit(X, sets)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), p > 0.5)
    assert model.score(X, sets) == pytest.approx(((p > 0.5) == sets).mean())
    assert model.soft_score(X, sets) == pytest.approx(
        np.mean(np.where(sets == 1, np.log(p), np.log(1 - p)))
    )
    model.save(tmp_path)
    loaded = EDOClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), p)

    votes = np.clip(np.round(X[:, [0]] + 2 + rng.normal(0, 0.5, (90, 3))), 0, 4).astype(int)
    points = EDOEnsemble(scale="ordinal:0, 1, 2, 3, 4", objective=Objective(rps=1.0))
    ordered = EDOClassifier([("lr", LogisticRegression())], ensemble=points, cv=3).fit(X, votes)
    assert ordered.ensemble_.scale_.kind == "ordinal"
    assert ordered.predict_proba(X, answer_for="w1").shape == (90, 5)
    assert set(ordered.predict(X)) <= set(range(5))


def test_a_number_of_folds_is_saved_whatever_its_type(tmp_path: Path) -> None:
    X = np.arange(12.0)[:, None]
    model = EDOClassifier([("lr", LogisticRegression())], cv=np.int64(3)).fit(X, [0, 1] * 6)
    model.save(tmp_path / "model")
    assert EDOClassifier.load(tmp_path / "model").cv == 3
