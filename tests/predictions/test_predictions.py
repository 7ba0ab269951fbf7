"""The canonical table: checked, named, matched by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edokit
from edokit import (
    Annotations,
    EDOEnsemble,
    InputError,
    Predictions,
    read_predictions,
    write_predictions,
)
from edokit.predictions.shards import Shards
from tests.errors import raises_code


def made_up(n: int = 4, k: int = 3, c: int = 2, seed: int = 0, **names: Any) -> Predictions:
    array = np.random.default_rng(seed).dirichlet(np.ones(c), (n, k))
    return Predictions.from_arrays(array, layout="NKC", **names)


# --- checks ---------------------------------------------------------------------------------------

GOOD = np.full((3, 2, 2), 0.5)


def spoiled(row: list[float], kind: type = np.float64) -> np.ndarray[Any, Any]:
    array = GOOD.astype(kind)
    array[2, 1] = row
    return array


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("invalid", ["error", "normalize"])
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([np.nan, 1], ("invalid-probabilities", "member 'y'", "item 'c'")),
        ([np.inf, -np.inf], ("invalid-probabilities", "member 'y'", "item 'c'", "(inf, -inf)")),
        ([-0.25, 1.25], ("invalid-probabilities", "member 'y'", "item 'c'", "(-0.25, 1.25)")),
        ([0, 0], ("invalid-probabilities", "member 'y'", "item 'c'", "zero: (0, 0)")),
    ],
)
def test_what_is_no_probability_is_refused_with_its_item_and_member(
    row: list[float], words: tuple[str, ...], invalid: str, kind: type
) -> None:
    with raises_code(*words):
        Predictions.from_arrays(
            spoiled(row, kind), layout="NKC", items=["a", "b", "c"], members=["x", "y"],
            invalid=invalid,
        )  # fmt: skip


def test_unnormalised_probabilities_are_refused_or_divided_by_their_sum() -> None:
    with raises_code("invalid-probabilities", "member '1'", "item '2'", "(1, 3)") as caught:
        Predictions.from_arrays(spoiled([1, 3]), layout="NKC")
    assert "invalid='normalize'" in str(caught.value)
    assert "logits=True" in str(caught.value)
    predictions = Predictions.from_arrays(spoiled([1, 3]), layout="NKC", invalid="normalize")
    assert predictions.probabilities[2, 1].tolist() == [0.25, 0.75]


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with raises_code("unknown-choice", "'error', 'normalize'"):
        Predictions.from_arrays(GOOD, layout="NKC", invalid="ignore")


@pytest.mark.parametrize("off", [3e-7, 9e-7, 1.1e-6, 5e-4])
@pytest.mark.parametrize("classes", [2, 7, 8])
def test_rows_are_divided_by_their_sum_from_the_same_distance_on(off: float, classes: int) -> None:
    rng = np.random.default_rng(classes)
    rows = rng.dirichlet(np.ones(classes), (50, 3)) * (1 + off * rng.uniform(-1, 1, (50, 3, 1)))
    rows = rows.astype(np.float32)
    total = rows.sum(axis=2, keepdims=True, dtype=np.float64)
    wanted = np.where(np.abs(total - 1) > 1e-6, rows / total, rows)
    made = Predictions.from_arrays(rows, layout="NKC").probabilities
    np.testing.assert_array_equal(made, wanted.astype(np.float32))


def test_rounded_probabilities_are_set_right_and_exact_ones_left_alone() -> None:
    array = spoiled([0.333, 0.6667])
    made = Predictions.from_arrays(array, layout="NKC").probabilities
    assert made[2, 1].sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_array_equal(made[:2], array[:2])
    assert array[2, 1].tolist() == [0.333, 0.6667]


@given(st.integers(0, 2**32 - 1), st.integers(2, 2000), st.sampled_from([np.float32, np.float64]))
def test_checking_twice_changes_nothing(seed: int, c: int, kind: type) -> None:
    weights = np.random.default_rng(seed).gamma(0.5, size=(2, 1, c)).astype(kind) + kind(1e-9)
    once = Predictions.from_arrays(weights, layout="NKC", invalid="normalize").probabilities
    again = Predictions.from_arrays(once, layout="NKC").probabilities
    np.testing.assert_array_equal(once, again)
    assert once.dtype == kind


def test_the_callers_array_is_not_changed() -> None:
    array = spoiled([1, 3])
    Predictions.from_arrays(array, layout="NKC", invalid="normalize")
    assert array[2, 1].tolist() == [1, 3]


def test_a_row_of_many_classes_is_not_shown_in_full() -> None:
    with pytest.raises(InputError) as caught:
        Predictions.from_arrays(np.ones((1, 1, 5000)), layout="NKC")
    assert len(str(caught.value)) < 500


# --- names ----------------------------------------------------------------------------------------


def test_names_are_numbers_unless_given() -> None:
    made = made_up(2, 3, 2)
    assert made.items.tolist() == ["0", "1"]
    assert made.members == ("0", "1", "2")
    assert made.classes == ("0", "1")
    assert made.groups is None
    assert len(made) == 2


def test_names_are_strings() -> None:
    made = made_up(
        2, 2, 2, items=[7, "007"], members=[1.0, 2.5], classes=[True, False], groups=[1, 1]
    )
    assert made.items.tolist() == ["7", "007"]
    assert made.members == ("1", "2.5")
    assert made.classes == ("True", "False")
    assert made.groups == ("1", "1")


def test_frames_and_mappings_bring_their_names() -> None:
    frame = pd.DataFrame([[0.5, 0.5], [1, 0]], index=["a", "b"], columns=["no", "yes"])
    predictions = Predictions.from_arrays(frame, layout="NC")
    assert (predictions.items.tolist(), predictions.classes) == (["a", "b"], ("no", "yes"))
    many = Predictions.from_arrays({"x": frame, "y": frame})
    assert (many.items.tolist(), many.members, many.classes) == (
        ["a", "b"],
        ("x", "y"),
        ("no", "yes"),
    )
    people = Predictions.from_arrays(frame, layout="NK")
    assert (people.items.tolist(), people.members) == (["a", "b"], ("no", "yes"))
    turned = Predictions.from_arrays(frame.T, layout="KN")
    assert (turned.items.tolist(), turned.members) == (["a", "b"], ("no", "yes"))
    series = Predictions.from_arrays({"x": frame["yes"]})
    assert (series.items.tolist(), series.members) == (["a", "b"], ("x",))
    named_predictions = Predictions.from_arrays({"x": frame}, items=["c", "d"], members=["z"])
    assert (named_predictions.items.tolist(), named_predictions.members) == (["c", "d"], ("z",))


def test_frames_in_different_orders_are_never_put_side_by_side() -> None:
    frame = pd.DataFrame([[0.5, 0.5], [1, 0]], index=["a", "b"], columns=["no", "yes"])
    for other in (frame.iloc[::-1], frame[["yes", "no"]], frame.to_numpy()):
        with raises_code("items-differ"):
            Predictions.from_arrays({"x": frame, "y": other})


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"items": ["a", "a"]}, ("duplicate-name", "'a'")),
        ({"members": [1, "1"]}, ("duplicate-name", "'1'")),
        ({"classes": ["a", "a"]}, ("duplicate-name",)),
        ({"items": [None, "a"]}, ("missing-value",)),
        ({"items": ["", "a"]}, ("missing-value",)),
        ({"items": "ab"}, ("single-value",)),
        ({"groups": ["a"]}, ("wrong-shape", "K=1")),
    ],
)
def test_names_must_tell_things_apart(names: dict[str, Any], words: tuple[str, ...]) -> None:
    with raises_code(*words):
        made_up(2, 2, 2, **names)


# --- choosing -------------------------------------------------------------------------------------


@given(st.permutations(range(5)))
def test_taking_in_another_order_and_back_is_nothing(order: list[int]) -> None:
    made = made_up(5, items=list("abcde"))
    taken = made.take(order)
    assert taken.items.tolist() == [made.items[place] for place in order]
    np.testing.assert_array_equal(taken.probabilities, made.probabilities[order])
    back = taken.align(made.items)
    assert back.items.tolist() == made.items.tolist()
    np.testing.assert_array_equal(back.probabilities, made.probabilities)


def test_a_mask_takes_what_it_marks() -> None:
    assert made_up(3).take([True, False, True]).items.tolist() == ["0", "2"]


@pytest.mark.parametrize("positions", [[0, 0], [4], [True], [0.0]])
def test_positions_must_be_positions(positions: Any) -> None:
    with pytest.raises(InputError):
        made_up(4).take(positions)


def test_alignment_needs_the_same_ids() -> None:
    predictions = Predictions.from_arrays(made_up(3).probabilities, items=[0, 1, 2], layout="NKC")
    assert predictions.align([2, 0, 1]).items.tolist() == ["2", "0", "1"]
    assert predictions.align(predictions.items) is predictions
    with raises_code("items-differ", "1 of 3", "'9'; 1", "'2'"):
        predictions.align([0, 1, 9])
    with raises_code("duplicate-name"):
        predictions.align([0, 0, 1])


@given(st.permutations(range(4)))
def test_classes_move_with_their_probabilities(order: list[int]) -> None:
    made = made_up(2, 2, 4)
    moved = made.order_classes(order)
    assert moved.classes == tuple(map(str, order))
    np.testing.assert_array_equal(moved.probabilities, made.probabilities[:, :, order])
    np.testing.assert_array_equal(
        moved.order_classes(made.classes).probabilities, made.probabilities
    )


@pytest.mark.parametrize("classes", [["0"], ["0", "0"], ["0", "2"], ["0", "1", "2"]])
def test_classes_must_be_the_same(classes: list[str]) -> None:
    with raises_code("classes-differ", "'0', '1'"):
        made_up().order_classes(classes)


def test_members_are_selected_by_name_with_their_groups() -> None:
    made = made_up(2, 3, members=list("xyz"), groups=["g", "g", "h"])
    chosen = made.select(["z", "x"])
    assert chosen.members == ("z", "x")
    assert chosen.groups == ("h", "g")
    np.testing.assert_array_equal(chosen.probabilities, made.probabilities[:, [2, 0]])
    with raises_code("unknown-member", "'q'", "'x', 'y', 'z'"):
        made.select(["x", "q"])
    with raises_code("duplicate-name", "selected"):
        made.select(["x", "x"])


def test_members_get_groups_by_name() -> None:
    made = made_up(2, 3, members=list("xyz"))
    assert made.grouped({"y": "g"}).groups == ("", "g", "")
    assert made.grouped({"y": "g"}).grouped({"x": "h"}).groups == ("h", "g", "")
    with raises_code("unknown-member", "'q'"):
        made.grouped({"q": "g"})


def test_the_plain_mean_of_the_members_is_in_float64() -> None:
    predictions = Predictions.from_arrays(
        np.array([[[0.1, 0.9], [0.3, 0.7]]], np.float32), layout="NKC"
    )
    np.testing.assert_allclose(predictions.uniform, [[0.2, 0.8]], atol=1e-7)
    assert predictions.uniform.dtype == np.float64


def pairs_of_item_and_annotator() -> Predictions:
    array = np.random.default_rng(0).dirichlet([1, 1], (3, 2))
    names = {"items": ["a", "a", "b"], "annotators": ["x", "y", "x"], "members": ["m", "n"]}
    return Predictions.from_arrays(array, **names, classes=["no", "yes"], layout="NKC")


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_pairs_of_item_and_annotator_come_back_from_files(ending: str, tmp_path: Path) -> None:
    pairs = pairs_of_item_and_annotator()
    write_predictions(pairs, tmp_path / f"p.{ending}")
    second_predictions = read_predictions(tmp_path / f"p.{ending}")
    assert second_predictions.annotators is not None
    assert second_predictions.annotators.tolist() == ["x", "y", "x"]
    assert second_predictions.items.tolist() == ["a", "a", "b"]
    np.testing.assert_array_equal(second_predictions.probabilities, pairs.probabilities)
    assert repr(second_predictions) == "Predictions(3 pairs, 2 members, classes no, yes)"
    half = second_predictions.take([2])
    assert half.annotators is not None
    assert half.annotators.tolist() == ["x"]


def test_a_pair_may_be_there_once() -> None:
    with raises_code("duplicate-name", "'a · x'"):
        Predictions.from_arrays(
            np.full((2, 1, 2), 0.5), items=["a", "a"], annotators=["x", "x"], layout="NKC"
        )


def test_pairs_are_refused_where_items_are_needed(tmp_path: Path) -> None:
    pairs = pairs_of_item_and_annotator()
    write_predictions(pairs, tmp_path / "p.npz")
    labels = Annotations.from_matrix([["no", "yes"], ["no", "no"]], items=["a", "b"])
    for use in (
        lambda: EDOEnsemble().fit(pairs, labels),
        lambda: edokit.fit(tmp_path / "p.npz", labels),
        lambda: Shards.open(tmp_path / "p.npz"),
        lambda: pairs.align(["a", "b"]),
    ):
        with raises_code("pairs-for-items", "'a · x'"):
            use()
