"""From annotations to counts, soft labels, hard labels, entropy and coverage."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from annotation_cases import long_tables
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations, EDOWarning
from edokit.annotations.core import PublishedLabelWarning
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")

THREE = Annotations.from_table(
    {
        "item": ["a", "a", "a", "b", "b", "c"],
        "annotator": ["x", "y", "z", "x", "y", "x"],
        "label": ["no", "no", "yes", "yes", "no", "maybe"],
    }
)
"""Item a has a majority, item b is tied, item c has one annotation."""


def test_counts_soft_labels_entropy_and_coverage_of_a_small_table() -> None:
    assert THREE.classes == ("maybe", "no", "yes")
    assert THREE.counts.tolist() == [[0, 2, 1], [0, 1, 1], [1, 0, 0]]
    np.testing.assert_allclose(THREE.soft_labels, [[0, 2 / 3, 1 / 3], [0, 0.5, 0.5], [1, 0, 0]])
    expected = [-(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3), math.log(2), 0]
    np.testing.assert_allclose(THREE.entropy, expected)
    np.testing.assert_allclose(THREE.coverage, [1, 2 / 3, 1 / 3])
    assert THREE.annotations_per_item.tolist() == [3, 2, 1]
    assert THREE.annotations_per_annotator.tolist() == [3, 2, 1]
    assert len(THREE) == 6


def test_agreement_has_an_entropy_of_plain_zero() -> None:
    assert not np.signbit(THREE.entropy[2])


@given(long_tables())
def test_soft_labels_are_shares_and_entropy_is_bounded(table: pa.Table) -> None:
    made = Annotations.from_table(table)
    assert made.counts.sum() == len(made) == table.num_rows
    np.testing.assert_array_equal(made.counts.sum(axis=1), made.annotations_per_item)
    np.testing.assert_allclose(made.soft_labels.sum(axis=1), 1)
    assert (made.entropy >= 0).all()
    assert (made.entropy <= math.log(len(made.classes)) + 1e-12).all()
    assert (made.coverage > 0).all()
    assert (made.coverage <= 1).all()


@given(long_tables(), st.integers(0, 3))
def test_a_majority_is_the_most_frequent_class_whatever_the_policy(
    table: pa.Table, seed: int
) -> None:
    made = Annotations.from_table(table.drop_columns(["hard_label"]))
    top = made.counts.max(axis=1)
    clear = (made.counts == top[:, None]).sum(axis=1) == 1
    drawn = made.hard_labels("random", seed)
    np.testing.assert_array_equal(made.counts[np.arange(len(top)), drawn], top)
    np.testing.assert_array_equal(drawn[clear], made.counts.argmax(axis=1)[clear])


def test_the_same_ties_in_another_order_make_the_same_note() -> None:
    tied = Annotations.from_matrix([[0, 1]] * 5, items=list("cadbe"))
    notes = []
    for ordered in (tied, tied.take([4, 2, 0, 1, 3])):
        with pytest.warns(EDOWarning) as found:
            ordered.hard_labels()
        notes.append([str(one.message) for one in found])
    assert notes[0] == notes[1]


def test_ties_go_to_the_first_class_and_are_counted_in_a_warning() -> None:
    with pytest.warns(EDOWarning, match=r"1 of 3 items .*'b'.*ties='first'"):
        labels = THREE.hard_labels()
    assert [THREE.classes[code] for code in labels] == ["no", "no", "maybe"]


def test_ties_can_be_an_error() -> None:
    with raises_code("tied-item", "1 of 3 items", "'b'", "ties='first'"):
        THREE.hard_labels("error")


def test_random_ties_follow_the_seed_and_reach_every_tied_class() -> None:
    n = 400
    even = Annotations.from_matrix([["a", "b", "c"]] * n)
    drawn = even.hard_labels("random", random_state=1)
    np.testing.assert_array_equal(drawn, even.hard_labels("random", random_state=1))
    assert not np.array_equal(drawn, even.hard_labels("random", random_state=2))
    assert np.bincount(drawn).min() > n / 3 - 60


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with raises_code("unknown-choice", "ties", "'first', 'error', 'random'"):
        THREE.hard_labels("last")


def test_published_labels_come_before_the_majority_and_settle_ties() -> None:
    made = Annotations.from_table(
        {
            "item": ["a", "a", "b", "b", "c"],
            "annotator": ["x", "y", "x", "y", "x"],
            "label": [1, 1, 0, 1, 1],
            "hard_label": [0, 0, 1, 1, None],
        }
    )
    assert made.published is not None
    assert made.published.tolist() == [0, 1, -1]
    assert made.hard_labels("error").tolist() == [0, 1, 1]


def test_a_hard_label_that_nobody_gave_is_a_class_only_if_declared() -> None:
    rows = {"item": [1, 2], "annotator": ["x", "x"], "label": [10, 9], "hard_label": [2, None]}
    with raises_code("unknown-class", "item '1'", "label '2'"):
        Annotations.from_table(rows)
    made = Annotations.from_table(rows, classes=[2, 9, 10])
    assert made.counts.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert made.hard_labels().tolist() == [0, 1]


def test_eleven_classes_stand_in_numeric_order() -> None:
    made = Annotations.from_table(
        {"item": range(11), "annotator": ["x"] * 11, "label": [10, 2, *range(2), *range(3, 10)]}
    )
    assert made.classes == tuple(map(str, range(11)))
    assert made.hard_labels().tolist() == [10, 2, 0, 1, *range(3, 10)]


def test_declared_classes_keep_their_order_even_if_nobody_chose_them() -> None:
    made = Annotations.from_table(
        {"item": [1], "annotator": ["x"], "label": ["b"]}, classes=["c", "b", "a"]
    )
    assert made.classes == ("c", "b", "a")
    assert made.counts.tolist() == [[0, 1, 0]]


def test_probabilities_of_annotations_add_up_to_soft_labels() -> None:
    made = Annotations.from_table(
        {
            "item": ["a", "a", "b"],
            "annotator": ["x", "y", "x"],
            "p_no": [0.9, 0.5, 0.25],
            "p_yes": [0.1, 0.5, 0.75],
        }
    )
    assert made.label_codes is None
    np.testing.assert_allclose(made.soft_labels, [[0.7, 0.3], [0.25, 0.75]])
    np.testing.assert_allclose(made.counts, [[1.4, 0.6], [0.25, 0.75]])
    assert made.hard_labels().tolist() == [0, 1]


def test_probabilities_that_differ_in_the_last_bit_are_tied() -> None:
    table = {
        "item": ["a"] * 3,
        "annotator": ["x", "y", "z"],
        "p_b": [0.7, 0.2, 0.1],
        "p_c": [0.1, 0.2, 0.7],
        "p_d": [0.2, 0.6, 0.2],
    }
    made = Annotations.from_table(table)
    assert made.counts[0, 0] != made.counts[0, 1]
    with pytest.warns(EDOWarning, match="1 of 1 item"):
        assert made.hard_labels().tolist() == [0]


@given(long_tables())
def test_a_class_is_a_probability_of_one(table: pa.Table) -> None:
    plain_annotations = Annotations.from_table(table.drop_columns(["hard_label"]))
    sure = np.eye(len(plain_annotations.classes))[plain_annotations.label_codes]
    if len(plain_annotations.classes) == 1:
        return
    data = {"item": table["item"], "annotator": table["annotator"]}
    data |= {f"p_{name}": sure[:, k] for k, name in enumerate(plain_annotations.classes)}
    soft = Annotations.from_table(data)
    assert soft.classes == plain_annotations.classes
    np.testing.assert_array_equal(soft.soft_labels, plain_annotations.soft_labels)
    np.testing.assert_array_equal(
        soft.hard_labels("random"), plain_annotations.hard_labels("random")
    )


def test_published_labels_against_the_annotators_are_told_once() -> None:
    table = {
        "item": ["a", "a", "a", "b", "b", "c", "d", "d"],
        "annotator": ["x", "y", "z", "x", "y", "x", "x", "y"],
        "label": [1, 1, 0, 0, 1, 1, 2, 2],
        "hard_label": [0, 0, 0, 1, 1, None, 0, 0],
    }
    said = (
        "hard_label of 2 of 4 items is used as given, though it is not the class that"
        " annotators chose most often: 'a', 'd'"
    )
    with pytest.warns(PublishedLabelWarning, match=f"^{said}$") as noted:
        Annotations.from_table(table)
    assert len(noted) == 1


def test_a_warning_points_at_the_line_of_the_caller() -> None:
    table = {"item": ["a", "a"], "annotator": ["x", "y"], "label": [0, 1]}
    with pytest.warns(EDOWarning, match="tied") as noted:
        Annotations.from_table(table).hard_labels()
    table = {"item": ["a", "b"], "annotator": ["x", "x"], "label": [1, 0]}
    with pytest.warns(PublishedLabelWarning) as published:
        Annotations.from_table({**table, "hard_label": [0, 0]})
    assert {one.filename for one in [*noted, *published]} == {__file__}


def test_a_published_label_may_differ_by_rounding_from_shares() -> None:
    table = {"item": ["a"], "annotator": ["x"], "hard_label": ["m"]}
    shares = {"p_m": [0.33], "p_n": [0.33], "p_o": [0.34]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Annotations.from_table(table | shares)
    with pytest.warns(EDOWarning, match="hard_label of 1 of 1"):
        Annotations.from_table(table | shares | {"p_m": [0.2], "p_o": [0.47]})


# --- labels that need a decision ------------------------------------------------------------------


def spelled(*labels: object, **more: object) -> dict[str, object]:
    """One item per label, all by one annotator."""
    items = [f"i{k}" for k in range(len(labels))]
    return {"item": items, "annotator": ["x"] * len(labels), "label": [*labels], **more}


@pytest.mark.parametrize(
    ("labels", "named", "mapped"),
    [
        (
            ["rude", "Rude", "rude"],
            ("doubtful-spelling", "'Rude'", "1 row", "row 2"),
            {"Rude": "rude"},
        ),
        (
            ["yes", "no", " yes", "yes"],
            ("doubtful-spelling", "' yes'", "1 row", "row 3"),
            {" yes": "yes"},
        ),
        (["no ", "yes", "no "], ("doubtful-spelling", "'no '", "2 rows"), {"no ": "no"}),
        (["1", "0", "1.0"], ("doubtful-spelling", "'1.0'", "1 row", "row 3"), {"1.0": "1"}),
        (
            ["caf\u00e9", "cafe\u0301", "caf\u00e9"],
            ("doubtful-spelling",),
            {"cafe\u0301": "caf\u00e9"},
        ),
    ],
)
def test_spellings_of_one_label_are_named_and_asked_for(
    labels: list[str], named: tuple[str, ...], mapped: dict[str, str]
) -> None:
    with raises_code(*named) as caught:
        Annotations.from_table(spelled(*labels))
    assert str(mapped) in str(caught.value)
    made = Annotations.from_table(spelled(*labels), label_map=mapped)
    assert set(made.classes) == {mapped.get(label, label) for label in labels}
    apart = Annotations.from_table(spelled(*labels), classes=sorted(set(labels)))
    assert len(apart.classes) == len(set(labels))


def test_a_matrix_is_asked_the_same() -> None:
    with raises_code("doubtful-spelling", "'Yes'", "1 row", "item '0'", "annotator '1'"):
        Annotations.from_matrix([["yes", "Yes"], ["no", "yes"]])
    Annotations.from_matrix([["yes", "Yes"], ["no", "yes"]], classes=["no", "yes", "Yes"])


def test_a_blank_label_is_a_gap_that_somebody_typed() -> None:
    with raises_code("missing-value", "1 row", "row 2", "empty='drop"):
        Annotations.from_table(spelled("yes", " ", "no"))


@pytest.mark.parametrize("mark", [",", ", ", ";", "|", "/", "+"])
def test_several_labels_in_a_cell_are_not_a_class(mark: str) -> None:
    both = f"neutral{mark}entailment"
    table = spelled("entailment", "neutral", both, both)
    with raises_code("undeclared-sets", "row 3", "2 such rows"):
        Annotations.from_table(table)
    first_annotations = Annotations.from_table(table, label_map={both: "neutral"})
    assert first_annotations.hard_labels().tolist() == [0, 1, 1, 1]
    declared = Annotations.from_table(table, classes=["entailment", "neutral", both])
    assert declared.classes == ("entailment", "neutral", both)


def test_lists_written_as_text_are_sets_of_labels() -> None:
    table = spelled('["calm"]', '["calm", "dry"]', '["dry"]')
    with raises_code("undeclared-sets"):
        Annotations.from_table(table)
    made = Annotations.from_table(table, scale="multi-label")
    assert made.soft_labels.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_a_label_with_a_comma_of_its_own_is_one_label() -> None:
    made = Annotations.from_table(spelled("yes, definitely", "no", "yes", "1/2"))
    assert made.classes == ("1/2", "no", "yes", "yes, definitely")


def test_a_mistyped_hard_label_adds_no_class() -> None:
    table = spelled("no", "yes", "yes", hard_label=["no", "yess", "yes"])
    with raises_code("unknown-class", "item 'i1'", "label 'yess'") as caught:
        Annotations.from_table(table)
    assert "label_map={'yess': 'yes'}" in str(caught.value)
    made = Annotations.from_table(table, label_map={"yess": "yes"})
    assert made.hard_labels().tolist() == [0, 1, 1]


def test_labels_of_other_splits_count_too() -> None:
    table = spelled("no", "yes", "Yes", split=["dev", "dev", "train"])
    with raises_code("doubtful-spelling", "'Yes'", "1 row", "row 3"):
        Annotations.from_table(table, split="dev")
    hard = spelled("no", "no", "yes", split=["dev", "dev", "train"], hard_label=["no", "yes", ""])
    assert Annotations.from_table(hard, split="dev").classes == ("no", "yes")


def test_a_label_map_that_maps_nothing_is_refused() -> None:
    with raises_code("unknown-label", "label_map", "'Ruude'", "'polite', 'rude'"):
        Annotations.from_table(spelled("rude", "polite"), label_map={"Ruude": "rude"})
