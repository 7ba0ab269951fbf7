"""Estimators are read from text, never evaluated."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline

from edokit.members.recipes.sklearn import read_estimator
from tests.errors import raises_code


def test_parameters_are_plain_values() -> None:
    estimator = read_estimator("sklearn.naive_bayes.ComplementNB(alpha=0.3, norm=True)")
    assert isinstance(estimator, ComplementNB)
    assert estimator.get_params()["alpha"] == 0.3
    assert estimator.get_params()["norm"] is True


def test_brackets_may_be_left_out() -> None:
    assert isinstance(read_estimator("sklearn.naive_bayes.ComplementNB"), ComplementNB)


def test_estimators_nest() -> None:
    text = (
        "sklearn.pipeline.make_pipeline(sklearn.decomposition.TruncatedSVD(n_components=5),"
        " sklearn.ensemble.RandomForestClassifier(10, class_weight={0: 1.0, 1: -2.0}))"
    )
    estimator = read_estimator(text)
    assert isinstance(estimator, Pipeline)
    assert estimator[-1].class_weight == {0: 1.0, 1: -2.0}


def test_lists_of_steps_are_understood() -> None:
    text = (
        "sklearn.ensemble.VotingClassifier([('a', sklearn.naive_bayes.ComplementNB()),"
        " ('b', sklearn.linear_model.LogisticRegression())], voting='soft')"
    )
    assert [name for name, _ in read_estimator(text).estimators] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sklearn.naive_bayes.ComplementNB(", "never closed"),
        ("__import__('os').system('true')", "not a public name"),
        ("os.system('true')", "os is not among the packages sklearn"),
        ("sklearn.os.system('true')", "sklearn.os"),
        ("sklearn.naive_bayes.Nothing()", "Nothing"),
        ("sklearn.naive_bayes.ComplementNB(beta=1)", "beta"),
        ("sklearn.naive_bayes.ComplementNB(**{'alpha': 1})", "**"),
        ("sklearn.naive_bayes.ComplementNB(alpha=1 if True else 2)", "not a plain value"),
        ("sklearn.datasets.load_iris()", "is not an estimator"),
        ("sklearn.preprocessing.FunctionTransformer(sklearn.base.copy)", "of sklearn itself"),
        (
            "sklearn.preprocessing.FunctionTransformer(sklearn.base.defaultdict)",
            "of sklearn itself",
        ),
        ("sklearn.naive_bayes._BaseNB()", "not a public name"),
        ("sklearn.svm.LinearSVC()", "gives no probabilities"),
        ("sklearn.decomposition.PCA()", "gives no probabilities"),
        ("3", "gives no probabilities"),
    ],
)
def test_anything_else_is_refused_in_one_line(text: str, reason: str) -> None:
    with raises_code("invalid-estimators", reason) as caught:
        read_estimator(text)
    assert "\n" not in str(caught.value)


def test_other_packages_are_imported_when_allowed() -> None:
    with raises_code("invalid-estimators", "member_cases"):
        read_estimator("member_cases.ForeignClassifier()")
    foreign = read_estimator("member_cases.ForeignClassifier()", allowed=["member_cases"])
    assert type(foreign).__name__ == "ForeignClassifier"
