"""Logistic regression learns from shares as from repeated rows, and says something of any class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edokit._errors import EDOWarning
from edokit.members.recipes._regression import Logistic, over_all_classes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))


def fitted(features: np.ndarray, targets: np.ndarray, strength: float) -> Logistic:
    return Logistic.fit_each(features, [(slice(None), targets, None)], strength)[0].rounded()


def one_hot(codes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.eye(n_classes)[codes]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_agrees_with_scikit_learn_on_classes(n_classes: int) -> None:
    codes = np.argmax(X[:, :n_classes] + RNG.normal(size=(80, n_classes)), axis=1)
    mine = fitted(X, one_hot(codes, n_classes), 2.0).predict(X)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000).fit(X, codes).predict_proba(X)
    np.testing.assert_allclose(mine, theirs, atol=1e-6)


@pytest.mark.parametrize(("items", "features"), [(80, 5), (30, 50)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_regressions_side_by_side_are_those_of_scikit_learn(
    n_classes: int, items: int, features: int
) -> None:
    rng = np.random.default_rng(features)
    table = rng.normal(size=(items, features))
    tasks, theirs = [], []
    for rows in (
        slice(None),
        np.arange(items) % 5 > 0,
        rng.integers(0, items, items),
        np.arange(6),
    ):
        own = table[rows]
        shares = rng.dirichlet(np.full(n_classes, 0.3), len(own))
        codes = np.tile(np.arange(n_classes), len(own))
        repeated = np.repeat(own, n_classes, axis=0)
        model = LogisticRegression(C=2.0, solver="newton-cg", tol=1e-10, max_iter=5000)
        theirs.append(model.fit(repeated, codes, shares.ravel()).predict_proba(table))
        tasks.append((rows, shares, None))
    mine = Logistic.fit_each(table, tasks, 2.0)
    for found, expected in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(found.predict(table), expected, atol=1e-6)


@pytest.mark.parametrize("strength", [1.0, 1e8, 1e12])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_features_that_repeat_others_count_as_larger_ones(strength: float, shift: float) -> None:
    targets = one_hot(np.arange(80) % 2, 2)
    twice, once = np.hstack([X, X + shift, np.full((80, 2), 3.3)]), X * np.sqrt(2)
    found, wanted = (fitted(each, targets, strength).predict(each) for each in (twice, once))
    np.testing.assert_allclose(found, wanted, atol=1e-3 if shift else 1e-6)


def test_a_regression_stays_at_the_optimum_that_it_starts_from() -> None:
    targets = [one_hot(RNG.integers(0, 3, 80), 3) for _ in range(3)]
    tasks = [(slice(None), own, None) for own in targets]
    for own, start in zip(targets, Logistic.fit_each(X, tasks, 2.0), strict=True):
        again = Logistic.fit_each(X, [(slice(None), own, start)], 2.0)[0]
        np.testing.assert_allclose(again.weights, start.weights, atol=1e-7)
        np.testing.assert_allclose(fitted(X, own, 2.0).weights, start.weights, atol=1e-6)


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
    with pytest.warns(EDOWarning, match="all 80 targets name one class"):
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_comes_back_from_its_arrays(n_classes: int) -> None:
    codes = RNG.integers(0, n_classes, 80)
    model = fitted(X, one_hot(codes, n_classes), 1.0)
    np.testing.assert_array_equal(
        Logistic.of(Path("model.npz"), model.arrays()).predict(X), model.predict(X)
    )
