"""Annotations from a wide matrix with gaps, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from annotation_cases import assert_same, said
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations
from tests.errors import raises_code


@st.composite
def matrices(draw: st.DrawFn) -> list[list[str | None]]:
    """At least one answer in each row."""
    width = draw(st.integers(1, 4))
    cells = st.none() | st.sampled_from(["a", "b", "10", "9", "nan"])
    rows = st.lists(cells, min_size=width, max_size=width).filter(any)
    return draw(st.lists(rows, min_size=1, max_size=5))


@given(matrices())
def test_wide_and_long_say_the_same(matrix: list[list[str | None]]) -> None:
    wide = Annotations.from_matrix(matrix)
    rows = [
        (str(i), str(a), label)
        for i, row in enumerate(matrix)
        for a, label in enumerate(row)
        if label is not None
    ]
    table = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    long = Annotations.from_table(table)
    assert said(wide) == said(long) == sorted(rows)
    assert wide.items.tolist() == long.items.tolist()
    assert wide.classes == long.classes
    np.testing.assert_array_equal(wide.soft_labels, long.soft_labels)


@given(matrices())
def test_long_becomes_wide_again_with_a_pivot(matrix: list[list[str | None]]) -> None:
    wide = Annotations.from_matrix(matrix)
    frame = wide.to_table().to_pandas().astype(str)
    again = frame.pivot(index="item", columns="annotator", values="label")
    again = again.reindex(wide.items.tolist()).reindex(columns=wide.annotators.tolist())
    assert_same(Annotations.from_matrix(again), wide)


@given(matrices())
def test_every_way_to_write_a_gap_means_the_same(matrix: list[list[str | None]]) -> None:
    plain_annotations = Annotations.from_matrix(matrix)
    holes = np.array([[cell is None for cell in row] for row in matrix])
    filled = np.array([["-" if cell is None else cell for cell in row] for row in matrix], object)
    as_nan = filled.copy()
    as_nan[holes] = np.nan
    as_empty = filled.copy()
    as_empty[holes] = ""
    for same in (as_nan, as_empty, np.ma.array(filled, mask=holes), as_empty.astype(str)):
        assert_same(Annotations.from_matrix(same), plain_annotations)


NUMBERS = [[0, 1, None], [1, None, None], [10, 9, 9]]


@pytest.mark.parametrize(
    "matrix",
    [
        np.array(NUMBERS, dtype=float),
        np.ma.masked_equal(np.nan_to_num(np.array(NUMBERS, dtype=float), nan=-1).astype(int), -1),
        pd.DataFrame(NUMBERS, dtype="Int64"),
        pd.DataFrame(NUMBERS),
        pd.DataFrame(NUMBERS).astype("category"),
        NUMBERS,
    ],
)
def test_whole_numbers_stay_whole_in_every_container(matrix: Any) -> None:
    made = Annotations.from_matrix(matrix)
    assert made.classes == ("0", "1", "9", "10")
    assert made.counts.tolist() == [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 2, 1]]
    assert made.annotators.tolist() == ["0", "1", "2"]


def test_a_frame_brings_its_index_and_columns() -> None:
    frame = pd.DataFrame([["a", None], ["b", "a"]], index=[7, "007"], columns=["x", "y"])
    made = Annotations.from_matrix(frame)
    assert made.items.tolist() == ["7", "007"]
    assert made.annotators.tolist() == ["x", "y"]
    named_annotations = Annotations.from_matrix(frame, items=["i", "j"], annotators=[1, 2])
    assert named_annotations.items.tolist() == ["i", "j"]
    assert named_annotations.annotators.tolist() == ["1", "2"]


def test_an_annotator_without_answers_stays_and_covers_nothing() -> None:
    made = Annotations.from_matrix([["a", None], ["b", None]])
    assert made.coverage.tolist() == [1, 0]


def test_the_callers_masked_array_is_left_alone() -> None:
    matrix = np.ma.array(np.array([["a", "b"]], object), mask=[[False, True]])
    Annotations.from_matrix(matrix)
    assert matrix.data.tolist() == [["a", "b"]]


@pytest.mark.parametrize(
    ("matrix", "options", "words"),
    [
        ([[0, 1], [None, None]], {}, ("missing-value", "1 of 2", "'1'")),
        ([["", "a"], ["", ""]], {"items": ["x", "y"]}, ("missing-value", "1 of 2", "'y'")),
        (
            [[0, None], [1, 7]],
            {"classes": [0, 1]},
            ("unknown-class", "item '1'", "annotator '1'", "label '7'"),
        ),
        ([[0, "a"], [1, None]], {}, ("mixed-types", "item '0'", "annotator '1'", "str")),
        ([[0, 1], [1]], {}, ("wrong-shape",)),
        ([0, 1], {}, ("wrong-shape", "[items, annotators]", "(2,)")),
        ([], {}, ("wrong-shape", "[items, annotators]", "(0,)")),
        (3, {}, ("wrong-shape", "[items, annotators]")),
        (np.array([[1j]]), {}, ("mixed-types",)),
        ([[0], [1]], {"items": ["a"]}, ("lengths-differ", "1 item", "2 rows")),
        ([[0], [1]], {"items": ["a", "a"]}, ("duplicate-name", "'a'")),
        ([[0], [1]], {"items": [None, "a"]}, ("missing-value",)),
        ([[0], [1]], {"items": ["", "a"]}, ("missing-value",)),
        ([[0], [1]], {"items": "ab"}, ("single-value",)),
        ([[0], [1]], {"annotators": ["a", "b"]}, ("lengths-differ", "2 annotator", "1 columns")),
        ([[0, 1]], {"annotators": [1, 1.0]}, ("duplicate-name", "'1'")),
    ],
)
def test_a_bad_matrix_is_told_in_one_line(
    matrix: Any, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with raises_code(*words):
        Annotations.from_matrix(matrix, **options)
