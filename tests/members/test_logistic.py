"""Logistic regression learns from shares as from repeated rows, and says something of any class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edokit import EDOWarning
from edokit.members.recipes._regression import Logistic, over_all_classes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))


def fitted(features: np.ndarray, targets: np.ndarray, strength: float) -> Logistic:
    return Logistic.fit(features, targets, strength).rounded()


def one_hot(codes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.eye(n_classes)[codes]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_agrees_with_scikit_learn_on_classes(n_classes: int) -> None:
    codes = np.argmax(X[:, :n_classes] + RNG.normal(size=(80, n_classes)), axis=1)
    mine = fitted(X, one_hot(codes, n_classes), 2.0).predict(X)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000).fit(X, codes).predict_proba(X)
    np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_shares_count_as_repeated_rows() -> None:
    shares = RNG.choice([0, 1 / 3, 2 / 3, 1], 80)
    soft = np.column_stack([1 - shares, shares])
    thrice = np.repeat(X, 3, axis=0)
    answers = np.concatenate([[1] * round(3 * s) + [0] * (3 - round(3 * s)) for s in shares])
    mine = fitted(X, soft, 3.0).predict(X)
    # Three rows of weight 1 weigh three times as much as one row.
    theirs = fitted(thrice, one_hot(answers.astype(int), 2), 1.0).predict(X)
    np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_a_single_class_gives_one_warned_constant_answer() -> None:
    with pytest.warns(EDOWarning, match="all 80 targets"):
        model = fitted(X, one_hot(np.ones(80, dtype=int), 2), 1.0)
    np.testing.assert_allclose(model.predict(X[:3]), [[1 / 82, 81 / 82]] * 3)


def test_a_class_never_seen_gets_a_small_probability() -> None:
    codes = (X[:, 0] > 0).astype(int) * 2
    answers = fitted(X, one_hot(codes, 3), 1.0).predict(X)
    np.testing.assert_allclose(answers[:, 1], 1 / 83)
    np.testing.assert_allclose(answers.sum(axis=1), 1)


def test_all_classes_seen_leaves_shares_as_they_are() -> None:
    shares = np.array([[0.3, 0.7]])
    np.testing.assert_allclose(over_all_classes(shares, np.array([0, 1]), 2, 10), shares)
