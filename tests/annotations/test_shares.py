"""Annotations from soft labels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from annotation_cases import assert_same
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations, InputError
from tests.errors import raises_code


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1))
def test_soft_labels_come_back_as_they_were_given(weights: list[list[float]]) -> None:
    shares = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    made = Annotations.from_soft_labels(shares)
    np.testing.assert_array_equal(made.soft_labels, shares)
    assert made.annotators.tolist() == ["soft"]
    assert_same(Annotations.from_table(made.to_table()), made)


def test_rounded_shares_sum_to_one_afterwards() -> None:
    made = Annotations.from_soft_labels([[0.333, 0.333, 0.333]])
    assert made.soft_labels.sum() == 1


def test_names_are_given_or_come_from_a_frame() -> None:
    frame = pd.DataFrame([[0.5, 0.5]], index=["x"], columns=["no", "yes"])
    assert Annotations.from_soft_labels(frame).items.tolist() == ["x"]
    assert Annotations.from_soft_labels(frame).classes == ("no", "yes")
    made = Annotations.from_soft_labels(frame, items=["y"], classes=[0, 1])
    assert (made.items.tolist(), made.classes) == (["y"], ("0", "1"))
    assert made.annotators.tolist() == ["soft"]


@pytest.mark.parametrize(
    ("shares", "options", "words"),
    [
        (
            [[0.5, 0.5], [0.5, 0.6]],
            {"items": ["a", "b"]},
            ("invalid-probabilities", "item 'b'", "(0.5, 0.6)"),
        ),
        ([[-0.5, 1.5]], {}, ("invalid-probabilities", "item '0'", "(-0.5, 1.5)")),
        ([[np.nan, 1]], {}, ("invalid-probabilities", "item '0'")),
        ([[np.inf, -np.inf]], {}, ("invalid-probabilities", "item '0'", "(inf, -inf)")),
        ([[None, 1]], {}, ("invalid-probabilities", "item '0'")),
        (
            np.ma.array([[0.5, 0.5]], mask=[[True, False]]),
            {},
            ("invalid-probabilities", "item '0'"),
        ),
        ([["a", "b"]], {}, ("wrong-shape",)),
        ([[1], [0.5, 0.5]], {}, ("wrong-shape",)),
        ([0.5, 0.5], {}, ("wrong-shape", "[items, classes]", "(2,)")),
        (np.zeros((0, 2)), {}, ("wrong-shape", "[items, classes]", "(0, 2)")),
        ([[0.5, 0.5]], {"classes": ["a"]}, ("lengths-differ", "1 class", "2 columns")),
        ([[0.5, 0.5]], {"classes": ["a", "a"]}, ("duplicate-name",)),
    ],
)
def test_bad_shares_are_told_in_one_line(
    shares: Any, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with raises_code(*words):
        Annotations.from_soft_labels(shares, **options)


def test_a_row_of_many_classes_is_not_shown_in_full() -> None:
    with pytest.raises(InputError) as caught:
        Annotations.from_soft_labels(np.full((1, 5000), 0.5))
    assert "and 4990 more" in str(caught.value)
    assert len(str(caught.value)) < 500
