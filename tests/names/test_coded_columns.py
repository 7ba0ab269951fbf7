"""Columns of names as codes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import InputError
from edokit._names import Encoded, column_of, encode, recode, text_array
from tests.errors import raises_code

CELLS = st.lists(st.none() | st.sampled_from(["", "a", "b", "7", "007", "nan", "مرحبا"]))


def decoded(encoded: Encoded) -> list[str | None]:
    return [None if code < 0 else encoded.names[code] for code in encoded.codes]


@given(CELLS, st.integers(1, 4))
def test_codes_say_what_the_column_said_and_gaps_are_gaps(
    cells: list[str | None], chunks: int
) -> None:
    parts = [
        pa.array(list(part), pa.string())
        for part in np.array_split(np.array(cells, object), chunks)
    ]
    plain = pa.chunked_array(parts)
    coded = pa.chunked_array([part.dictionary_encode() for part in parts])
    small = coded.cast(pa.dictionary(pa.int8(), pa.string()))
    unsigned = coded.cast(pa.dictionary(pa.uint16(), pa.string()))
    for column in (plain, coded, small, unsigned, plain.cast(pa.large_string())):
        encoded = encode(column, "item")
        assert decoded(encoded) == [cell or None for cell in cells]
        assert encoded.codes.dtype == np.int32
        assert encoded.names.tolist() == list(dict.fromkeys(cell for cell in cells if cell))


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (pa.array([7, 7, 2**62 + 1]), ["7", str(2**62 + 1)]),
        (pa.array([2**63 + 1], pa.uint64()), [str(2**63 + 1)]),
        (pa.array([1.0, None, 2.0, float("nan")]), ["1", "2"]),
        (pa.array([0.0, -0.0]), ["0"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([True, False]), ["True", "False"]),
        (pa.array([datetime.date(2024, 1, 2)]), ["2024-01-02"]),
        (pa.array(pd.to_datetime(["2024-01-02"])), ["2024-01-02 00:00:00"]),
        (pa.array([1, 2]).cast(pa.decimal128(25, 2)), ["1", "2"]),
        (pa.nulls(3), []),
    ],
)
def test_values_of_every_plain_type_have_names(values: pa.Array, names: list[str]) -> None:
    assert encode(values, "item").names.tolist() == names


def test_a_dictionary_may_name_a_value_twice_or_never_use_it() -> None:
    column = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None, 1, 3], pa.uint8()), pa.array(["x", "y", "x", None, "unused"])
    )
    assert decoded(encode(column, "label")) == ["x", "x", None, "y", None]
    assert encode(column, "label").names.tolist() == ["x", "y"]


def test_small_dictionaries_of_many_chunks_become_one() -> None:
    parts = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), pa.array([f"{part}-{k}" for k in range(100)])
        )
        for part in range(5)
    ]
    assert encode(pa.chunked_array(parts), "item").codes.tolist() == list(range(500))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}]),
        pa.array([b"a"]),
        pa.array([b"aa"], pa.binary(2)),
        pa.array([b"a"]).dictionary_encode(),
    ],
)
def test_a_column_must_hold_plain_values(values: pa.Array) -> None:
    with raises_code("unsupported-type", "column 'item'"):
        encode(values, "item")


def test_a_date_that_no_calendar_holds_is_refused() -> None:
    column = pa.array([2**62]).cast(pa.timestamp("s"))
    with raises_code("unsupported-type"):
        encode(column, "item")


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.2e18, 1.2e18 + 256]),
        pd.Series([10**17 + 1, None, 10**17 + 2]),
        np.array([2**26], np.float32),
    ],
)
def test_numbers_too_large_to_tell_apart_are_no_ids(values: object) -> None:
    with raises_code("inexact-number"):
        encode(column_of(values, "item"), "item")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, "a"], ("mixed-types", "row 1", "int", "row 2", "str")),
        (["a", None, 2.5], ("mixed-types", "row 1", "str", "row 3", "float")),
        ([None, True, 2], ("mixed-types", "row 2", "bool", "row 3", "int")),
        (pd.Series(["a", 1], dtype=object), ("mixed-types", "row 1", "str", "row 2", "int")),
        ("abc", ("mixed-types", "'abc'")),
        (7, ("mixed-types", "iterable")),
        ([2**70], ("mixed-types",)),
        (["\ud800"], ("mixed-types", "surrogates")),
        (np.zeros((2, 2)), ("mixed-types", "1-dimensional")),
        (np.array([1j]), ("mixed-types", "column 'item'")),
    ],
)
def test_a_column_holds_one_type_of_value(values: Any, words: tuple[str, ...]) -> None:
    with raises_code(*words):
        column_of(values, "item")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, 2, None]),
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series(["1", "2", None]),
        pd.Series(["1", "2", None], dtype="category"),
        pd.Series(["1", "2", None], dtype="string"),
        np.ma.array([1, 2, 9], mask=[False, False, True]),
        [1, 2.0, None],
        ("1", "2", None),
        pa.array(["1", "2", None]),
        pa.chunked_array([["1"], ["2", None]]),
    ],
)
def test_the_same_values_in_any_container_are_the_same_column(values: Any) -> None:
    assert decoded(encode(column_of(values, "item"), "item")) == ["1", "2", None]


def test_codes_into_declared_names_keep_gaps() -> None:
    encoded = encode(pa.array(["b", None, "a", "b"]), "label")
    assert recode(encoded, ["a", "b", "c"], "label").tolist() == [1, -1, 0, 1]


def test_a_name_outside_the_declared_ones_is_refused_with_its_row() -> None:
    encoded = encode(pa.array(["a", "c", "b", "d"]), "label")
    with pytest.raises(InputError) as caught:
        recode(encoded, ["a", "b"], "label")
    assert caught.value.message == (
        "data row 2 has label 'c', which is not among the classes 'a', 'b' (2 such values in all)"
    )
    with raises_code("unknown-class", "item 'x'", "label 'c'"):
        recode(encoded, ["a", "b"], "label", lambda row: "item 'x'")


def test_text_with_half_a_character_is_refused() -> None:
    assert text_array(iter(["a", "مرحبا"]), "names").to_pylist() == ["a", "مرحبا"]
    with raises_code("invalid-unicode"):
        text_array(["a", "\ud800"], "names")
