"""Names are strings everywhere, and things are matched by name."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit._names import as_name, as_names, check_positions, check_unique, class_order
from tests.errors import raises_code


@pytest.mark.parametrize("value", [7, 7.0, "7", np.int8(7), np.float32(7), Decimal("7.00"), b"7"])
def test_seven_is_one_name_however_it_is_written(value: object) -> None:
    assert as_name(value) == "7"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("007", "007"),
        ("7.0", "7.0"),
        (0.5, "0.5"),
        (np.float32(0.1), "0.1"),
        (-0.0, "0"),
        (True, "True"),
        (np.True_, "True"),
        (2**70, str(2**70)),
        (float("inf"), "inf"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        ("مرحبا", "مرحبا"),
        ("", ""),
    ],
)
def test_every_other_value_keeps_its_own_name(value: object, name: str) -> None:
    assert as_name(value) == name


@pytest.mark.parametrize("gap", [None, np.nan, float("nan"), pd.NA, pd.NaT, np.ma.masked])
def test_a_gap_is_no_name(gap: object) -> None:
    with raises_code("missing-value"):
        as_names(["a", gap])


def test_bytes_that_are_no_text_are_no_name() -> None:
    with raises_code("invalid-unicode", "UTF-8"):
        as_name(b"caf\xe9")


@pytest.mark.parametrize("values", ["abc", b"abc", 7, None])
def test_a_single_value_is_no_list_of_names(values: object) -> None:
    with raises_code("single-value"):
        as_names(values)  # type: ignore[arg-type]


@given(st.lists(st.integers() | st.text() | st.floats(allow_nan=False)))
def test_names_are_names_of_themselves(values: list[object]) -> None:
    once = as_names(values)
    assert all(type(name) is str for name in once)
    assert as_names(once).tolist() == once.tolist()
    assert as_names(name for name in once).tolist() == once.tolist()


def test_arrays_of_numpy_give_the_same_names_as_lists() -> None:
    assert as_names(np.array([1.0, 2.5])).tolist() == ["1", "2.5"]
    assert as_names(np.array(["a", "b"])).tolist() == ["a", "b"]
    assert as_names(np.array([b"a"])).tolist() == ["a"]
    assert as_names(pd.Index([3, 4])).tolist() == ["3", "4"]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["10", "2", "1"], ("1", "2", "10")),
        (["1.5", "-1", "0"], ("-1", "0", "1.5")),
        ([str(k) for k in range(11)], tuple(str(k) for k in range(11))),
        (["b", "10", "a"], ("10", "a", "b")),
        (["nan", "1", "2"], ("1", "2", "nan")),
        (["infinity", "1"], ("1", "infinity")),
        (["1", "01", "1.0"], ("01", "1", "1.0")),
        (["b", "A", "a"], ("A", "a", "b")),
        ([], ()),
    ],
)
def test_classes_stand_in_numeric_order_if_all_are_numbers_else_alphabetically(
    names: list[str], order: tuple[str, ...]
) -> None:
    assert class_order(names) == order


@given(st.sets(st.text(max_size=3) | st.integers().map(str)), st.randoms())
def test_class_order_does_not_depend_on_the_order_of_appearance(
    names: set[str], random: object
) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert class_order(shuffled) == class_order(names)
    assert set(class_order(names)) == names


def test_repeated_names_are_named() -> None:
    check_unique(as_names(["a", "b", "c"]), "members", "rename them")
    with raises_code("duplicate-name", "'a', 'b'"):
        check_unique(as_names(["a", "b", "a", "b", "b", "c"]), "members", "rename them")


@given(st.lists(st.booleans()))
def test_a_mask_chooses_what_its_positions_choose(mask: list[bool]) -> None:
    places = [place for place, marked in enumerate(mask) if marked]
    assert check_positions(np.array(mask, dtype=bool), len(mask)).tolist() == places
    assert check_positions(places, len(mask)).tolist() == places


def test_positions_may_count_from_the_end() -> None:
    assert check_positions([-1, 0], 3).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        ([3], ("invalid-positions", "bounds")),
        ([-4], ("invalid-positions", "bounds")),
        ([0, 0], ("invalid-positions",)),
        ([2, -1], ("invalid-positions",)),
        ([True], ("invalid-positions", "boolean")),
        ([0.5], ("invalid-positions",)),
        ([[0]], ("invalid-positions",)),
    ],
)
def test_positions_that_choose_nothing_sensible_are_refused(
    positions: object, words: tuple[str, ...]
) -> None:
    with raises_code(*words):
        check_positions(positions, 3)  # type: ignore[arg-type]
