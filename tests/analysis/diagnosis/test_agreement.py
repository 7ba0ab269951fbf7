"""Agreement: alpha as two libraries have it, pairs, and each one with the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edokit import Annotations
from edokit.analysis.diagnose.overview import agreement, describe_annotators, describe_groups


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(3, 25))
def test_alpha_is_what_a_second_library_says(seed: int, classes: int, items: int) -> None:
    from crowdkit.metrics.data import alpha_krippendorff

    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=(items, 4)).astype(object)
    labels[rng.random(labels.shape) < 0.3] = None
    labels[0] = [0, 1, 0, 1]
    given_ = [row for row in labels if sum(value is not None for value in row) >= 2]
    annotations = Annotations.from_matrix(np.array(given_, dtype=object))
    frame = annotations.to_table().to_pandas()
    frame = frame.rename(columns={"item": "task", "annotator": "worker"}).astype(str)
    assert agreement(annotations)["alpha"] == pytest.approx(alpha_krippendorff(frame), abs=1e-9)


def test_alpha_of_the_published_example() -> None:
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", four observers.
    rows = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    matrix = np.array(rows, dtype=object).T
    assert agreement(Annotations.from_matrix(matrix))["alpha"] == pytest.approx(0.743, abs=5e-4)
    ordinal = Annotations.from_matrix(matrix, scale="ordinal")
    assert agreement(ordinal)["alpha"] == pytest.approx(0.849, abs=5e-4)


def test_there_is_no_alpha_without_different_labels_of_one_item() -> None:
    assert agreement(Annotations.from_matrix([["a", "a"], ["b", None]]))["alpha"] is None
    assert agreement(Annotations.from_matrix([["a", None], ["b", None]]))["alpha"] is None


def test_pairs_agree_as_counted_by_hand() -> None:
    annotations = Annotations.from_matrix([["a", "a", "b"], ["a", "b", None], ["b", None, None]])
    coefficients = agreement(annotations)
    # One agreeing pair of three, none of one.
    assert coefficients["pairwise"] == pytest.approx(1 / 4)
    assert coefficients["by_chance"] == pytest.approx(0.5)


def test_an_annotator_is_compared_with_the_others_on_the_same_items() -> None:
    annotations = Annotations.from_matrix(
        [["a", "a", "b"], ["a", "a", "b"], ["b", None, None]], annotators=["x", "y", "z"]
    )
    x, y, z = describe_annotators(annotations)
    assert (x["agreement"], y["agreement"], z["agreement"]) == (0.5, 0.5, 0.0)
    # The two others, without the annotator's own pairs; nobody else agrees where z is left out.
    assert (x["expected"], y["expected"], z["expected"]) == (0.0, 0.0, 1.0)
    assert x["shares"] == {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}
    assert z["annotations"] == 2


def test_probabilities_agree_by_expectation_and_have_no_alpha() -> None:
    table = pd.DataFrame(
        {
            "item": ["i", "i"],
            "annotator": ["x", "y"],
            "p_a": [0.5, 1.0],
            "p_b": [0.5, 0.0],
        }
    )
    coefficients = agreement(Annotations.from_table(table))
    assert coefficients["alpha"] is None
    assert "probabilities" in coefficients["reason"]
    assert coefficients["pairwise"] == pytest.approx(0.5)


def test_labels_that_one_annotator_repeats_are_not_those_of_two() -> None:
    columns = {
        "item": [0, 0, 1, 1, 2, 2],
        "annotator": ["a", "a", "b", "b", "a", "b"],
        "label": ["x", "x", "y", "y", "x", "y"],
    }
    repeated = Annotations.from_table(columns, duplicates="all")
    first = [0, 2, 4, 5]
    once = Annotations.from_table(
        {name: [values[k] for k in first] for name, values in columns.items()}
    )
    assert agreement(repeated)["pairwise"] == agreement(once)["pairwise"] == 0.0
    for row, expected in zip(describe_annotators(repeated), describe_annotators(once), strict=True):
        assert row["agreement"] == expected["agreement"] == 0.0
        assert row["annotations"] == 3
    single_annotations = Annotations.from_table(
        {name: values[:4] for name, values in columns.items()}, duplicates="all"
    )
    assert agreement(single_annotations)["pairwise"] is None
    assert [row["agreement"] for row in describe_annotators(single_annotations)] == [None, None]


def test_groups_count_those_who_labelled() -> None:
    labels = [["x", "y", None], ["y", "x", None]]
    people = Annotations.from_matrix(labels, annotators=["a", "b", "c"])
    described = describe_groups(people, np.array([0, 1, 1]), ["one", "two"])
    assert [row["annotators"] for row in described] == [1, 1]
