"""From any common layout to [N, K, C], as it is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import InputError, Predictions
from tests.errors import raises_code


def made_up(n: int, k: int, c: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).dirichlet(np.ones(c), (n, k))


SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(2, 4))


@given(SIZES)
def test_every_layout_leads_to_the_same_array(sizes: tuple[int, int, int]) -> None:
    n, k, c = sizes
    array = made_up(n, k, c)
    members = [array[:, j] for j in range(k)]
    for values, layout in (
        (array, "NKC"),
        (array.transpose(1, 0, 2), "KNC"),
        (members, None),
        (tuple(members), "KNC"),
        ({str(j): member for j, member in enumerate(members)}, None),
        ({str(j): member.tolist() for j, member in enumerate(members)}, None),
        ([pd.DataFrame(member) for member in members], None),
        (array.tolist(), "NKC"),
    ):
        predictions = Predictions.from_arrays(values, layout=layout)
        np.testing.assert_array_equal(predictions.probabilities, array)
        assert predictions.shape == sizes
        assert predictions.members == tuple(map(str, range(k)))


@given(st.integers(1, 4), st.integers(1, 4))
def test_probabilities_of_the_second_of_two_classes_are_enough(n: int, k: int) -> None:
    array = made_up(n, k, 2)
    second = array[:, :, 1]
    for values, layout in (
        (second, "NK"),
        (second.T, "KN"),
        ([second[:, j] for j in range(k)], None),
        ({str(j): pd.Series(second[:, j]) for j in range(k)}, None),
    ):
        predictions = Predictions.from_arrays(values, layout=layout)
        np.testing.assert_allclose(predictions.probabilities, array, atol=1e-15)
        np.testing.assert_array_equal(predictions.probabilities[:, :, 1], second)


@given(st.integers(1, 4), st.integers(2, 4))
def test_one_member_is_a_table_of_items_and_classes(n: int, c: int) -> None:
    array = made_up(n, 1, c)
    predictions = Predictions.from_arrays(array[:, 0], layout="NC")
    np.testing.assert_array_equal(predictions.probabilities, array)


@pytest.mark.parametrize("shape", [(2, 3, 4), (4, 3), (4,), ()])
def test_axes_that_nothing_tells_apart_are_never_guessed(shape: tuple[int, ...]) -> None:
    with raises_code("ambiguous-layout"):
        Predictions.from_arrays(np.full(shape, 0.5))


def test_names_that_fit_two_layouts_are_no_layout() -> None:
    with raises_code("ambiguous-layout", "NKC, KNC"):
        Predictions.from_arrays(made_up(3, 3, 2), items=list("abc"), members=list("xyz"))
    with raises_code("ambiguous-layout", "NC, NK"):
        Predictions.from_arrays(made_up(4, 1, 3)[:, 0], items=list("abcd"))


def test_the_only_layout_that_fits_is_taken() -> None:
    array = made_up(5, 3, 4)
    swapped = array.swapaxes(0, 1)
    for values in (array, swapped):
        for names in ({"items": list("abcde")}, {"members": list("xyz")}):
            predictions = Predictions.from_arrays(values, **names)
            np.testing.assert_array_equal(predictions.probabilities, array)
    second = made_up(5, 3, 2)[:, :, 1]
    for values in (second, second.T):
        predictions = Predictions.from_arrays(values, items=list("abcde"))
        np.testing.assert_array_equal(predictions.probabilities[:, :, 1], second)
    predictions = Predictions.from_arrays(array[:, 0], classes=list("pqrs"))
    np.testing.assert_array_equal(predictions.probabilities[:, 0], array[:, 0])


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([np.ones((2, 1)), np.ones((3, 1))], {}, ("shapes-differ", "(2, 1), (3, 1)")),
        ([np.ones((2, 2, 1))], {}, ("shapes-differ", "(2, 2, 1)")),
        ({}, {}, ("shapes-differ",)),
        (np.ones((2, 2, 2)), {"layout": "NC"}, ("wrong-shape", "NC")),
        (np.ones((2, 2, 2)), {"layout": "XYZ"}, ("unknown-choice", "'NKC'")),
        (np.ones((2, 1, 2)), {"layout": "NKC", "items": [1]}, ("wrong-shape", "NKC", "N=1")),
        (np.zeros((0, 2, 2)), {"layout": "NKC"}, ("wrong-shape",)),
        ([["a", "b"]], {"layout": "NC"}, ("not-numbers", "<U1")),
        ([np.array([["a", "b"]])], {}, ("not-numbers",)),
        ([[0.5, 0.5], [1.0]], {"layout": "NC"}, ("not-numbers",)),
        (np.array([[1j, 0]]), {"layout": "NC"}, ("not-numbers", "complex128")),
        (pd.DataFrame([["a", "b"]]), {"layout": "NC"}, ("not-numbers",)),
        (None, {}, ("not-numbers",)),
        ("abc", {}, ("not-numbers",)),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(
    values: Any, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with raises_code(*words):
        Predictions.from_arrays(values, **options)


# --- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.bool_, np.float64),
    ],
)
def test_predictions_are_float32_or_float64(given_type: Any, kept: type) -> None:
    values = np.array([[[1, 0]], [[0, 1]]]).astype(given_type)
    predictions = Predictions.from_arrays(values, layout="NKC")
    assert predictions.probabilities.dtype == np.dtype(kept)
    assert predictions.probabilities.dtype.isnative
    assert predictions.probabilities.tolist() == [[[1, 0]], [[0, 1]]]


def test_rounded_half_precision_is_set_right() -> None:
    third = np.full((1, 1, 3), 1 / 3, dtype=np.float16)
    predictions = Predictions.from_arrays(third, layout="NKC")
    np.testing.assert_allclose(predictions.probabilities.sum(axis=2), 1, atol=1e-6)


def test_gaps_are_refused_not_passed_over() -> None:
    masked = np.ma.array(np.full((1, 1, 2), 0.5), mask=[[[True, False]]])
    with raises_code("invalid-probabilities", "member '0'", "item '0'", "0.5"):
        Predictions.from_arrays(masked, layout="NKC")
    frame = pd.DataFrame([[0.5, None]], dtype="Float64")
    with raises_code("invalid-probabilities", "0.5"):
        Predictions.from_arrays(frame, layout="NC")


# --- logits ---------------------------------------------------------------------------------------


@given(SIZES)
def test_logits_become_probabilities_only_when_asked(sizes: tuple[int, int, int]) -> None:
    array = made_up(*sizes)
    logits = np.log(array) + 3
    predictions = Predictions.from_arrays(logits, layout="NKC", logits=True)
    np.testing.assert_allclose(predictions.probabilities, array, atol=1e-12)
    with pytest.raises(InputError):
        Predictions.from_arrays(logits, layout="NKC")


@given(st.floats(-700, 700).filter(lambda logit: not 0 <= logit <= 100))
def test_two_class_logits_are_log_odds(logit: float) -> None:
    predictions = Predictions.from_arrays([[logit]], layout="NK", logits=True)
    no, yes = predictions.probabilities[0, 0]
    assert np.log(yes) - np.log(no) == pytest.approx(logit, rel=1e-9, abs=1e-12)
    both = Predictions.from_arrays([[[0.0, logit]]], layout="NKC", logits=True)
    np.testing.assert_allclose(both.probabilities, predictions.probabilities, atol=1e-12)


def test_large_logits_of_float32_keep_the_small_probability() -> None:
    predictions = Predictions.from_arrays(np.array([[20.0]], np.float32), layout="NK", logits=True)
    assert predictions.probabilities[0, 0, 0] == pytest.approx(2.06e-9, rel=1e-2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_must_be_numbers(bad: float) -> None:
    with raises_code("invalid-probabilities", "member '0'", "item '1'"):
        Predictions.from_arrays([[[0.0, 1]], [[bad, 1]]], layout="NKC", logits=True)


@pytest.mark.parametrize(
    ("values", "layout"),
    [
        ({"soft": [[0.8, 0.2], [0.4, 0.6]], "raw": [[2.0, -1.0], [0.5, 0.5]]}, "KNC"),
        ([[0.8, 2.5], [0.4, 0.5]], "NK"),
    ],
)
def test_probabilities_are_no_logits(values: Any, layout: str) -> None:
    members = ["soft", "raw"]
    with raises_code("not-logits", "'soft'") as caught:
        Predictions.from_arrays(values, members=members, layout=layout, logits=True)
    assert "logits=True" in str(caught.value)


def test_negative_numbers_may_be_logits() -> None:
    with raises_code("invalid-probabilities", "(-1, 2)", "logits=True"):
        Predictions.from_arrays([[-1.0, 2.0]], layout="NC")
