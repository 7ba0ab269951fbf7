"""Arrays that are probably something else than they seem are asked about, not fitted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edokit import EDOClassifier, EDOEnsemble, Predictions, load
from tests.errors import raises_code

P = np.random.default_rng(0).dirichlet([1, 1], size=(6, 2))
LABELS = np.array([[0, 0, -1], [1, 1, 0], [0, 0, 1], [1, -1, 1], [0, 0, 0], [1, 1, 1]])


def members(y: np.ndarray) -> EDOClassifier:
    return EDOClassifier([("lr", LogisticRegression())], cv=2).fit(P[:, 0], y)


@pytest.mark.parametrize("fit", [members, lambda y: EDOEnsemble().fit(P, y)])
def test_minus_one_beside_zero_is_asked_about(fit: Callable[[np.ndarray], object]) -> None:
    with raises_code("ambiguous-labels", "1", "0", "2", "NaN"):
        fit(LABELS)
    fit(np.where(LABELS < 0, np.nan, LABELS))


@pytest.mark.parametrize("fit", [members, lambda y: EDOEnsemble().fit(P, y)])
def test_soft_labels_must_sum_to_one(fit: Callable[[np.ndarray], object]) -> None:
    with raises_code("invalid-probabilities", "1.2", "1"):
        fit(np.tile([0.9, 0.3], (6, 1)))


def test_a_tensor_with_gradients_is_refused_with_the_remedy() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(P, requires_grad=True)
    with raises_code("not-numbers"):
        EDOEnsemble().fit(tensor, np.abs(LABELS))
    with raises_code("not-numbers"):
        Predictions.from_arrays(tensor, layout="NKC")


def test_load_says_what_it_returns() -> None:
    assert load.__annotations__["return"] == "Bundle | EDOEnsemble"


def test_predictions_of_a_single_class_are_refused() -> None:
    with raises_code("too-few-classes"):
        EDOEnsemble().fit(np.ones((5, 2, 1)), np.zeros((5, 2), dtype=int))
