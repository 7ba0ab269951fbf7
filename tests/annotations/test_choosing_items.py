"""Some items, in some order: take, align, split, and the way through a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from annotation_cases import assert_same, known, long_tables, said
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations, InputError
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")


@given(long_tables())
def test_a_table_comes_back_as_it_went(table: pa.Table) -> None:
    made = Annotations.from_table(table)
    second_annotations = Annotations.from_table(made.to_table())
    assert_same(second_annotations, made)
    assert second_annotations.annotators.tolist() == made.annotators.tolist()
    np.testing.assert_array_equal(second_annotations.item_codes, made.item_codes)
    np.testing.assert_array_equal(second_annotations.label_codes, made.label_codes)


@given(long_tables(), st.randoms())
def test_items_taken_in_any_order_keep_all_that_is_known_of_them(
    table: pa.Table, random: object
) -> None:
    made = Annotations.from_table(table)
    places = list(range(len(made.items)))
    random.shuffle(places)  # type: ignore[attr-defined]
    places = places[: random.randint(1, len(places))]  # type: ignore[attr-defined]
    taken = made.take(places)
    chosen = set(made.items[places])
    assert taken.items.tolist() == made.items[places].tolist()
    assert said(taken) == [row for row in said(made) if row[0] in chosen]
    np.testing.assert_array_equal(taken.counts, made.counts[places])
    assert set(taken.annotators) == {row[1] for row in said(taken)}
    for name, values in known(taken).items():
        assert values == {key: known(made)[name][key] for key in values}
    # A table keeps the order, too.
    second_annotations = Annotations.from_table(taken.to_table(), classes=made.classes)
    assert_same(second_annotations, taken)


@given(long_tables(), st.randoms())
def test_taking_in_another_order_and_back_is_nothing(table: pa.Table, random: object) -> None:
    made = Annotations.from_table(table)
    order = list(range(len(made.items)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert_same(made.take(order).take(np.argsort(order)), made)
    assert_same(made.take(order).align(made.items), made)


@given(long_tables(), st.data())
def test_a_mask_takes_what_its_positions_take(table: pa.Table, data: st.DataObject) -> None:
    made = Annotations.from_table(table)
    n = len(made.items)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert_same(made.take(mask), made.take(np.flatnonzero(mask)))


def test_no_items_are_no_annotations() -> None:
    none = Annotations.from_matrix([["a"], ["b"]]).take([])
    assert len(none) == len(none.items) == len(none.annotators) == 0
    assert none.soft_labels.shape == (0, 2)
    assert none.hard_labels().tolist() == []


@pytest.mark.parametrize("positions", [[0, 0], [2], [True], [0.0]])
def test_positions_must_be_positions(positions: list[object]) -> None:
    with pytest.raises(InputError):
        Annotations.from_matrix([["a"], ["b"]]).take(positions)  # type: ignore[arg-type]


def test_alignment_is_by_id_and_needs_the_same_ids() -> None:
    made = Annotations.from_matrix([["a"], ["b"]], items=[7, "007"])
    assert made.align(["007", 7]).items.tolist() == ["007", "7"]
    with pytest.raises(InputError) as caught:
        made.align(["7", "8", "9", "10", "11"], against="p.npz")
    assert caught.value.message == (
        "annotations and p.npz hold different items: in annotations"
        " 4 of 5 are missing: '8', '9', '10' and 1 more; 1 is extra: '007'"
    )
    with raises_code("duplicate-name", "'7'"):
        made.align([7, 7])


def test_splits_are_taken_by_name() -> None:
    made = Annotations.from_table(
        {
            "item": ["a", "b", "c"],
            "annotator": ["x", "y", "x"],
            "label": [0, 1, 2],
            "split": [1, 2, 1],
        }
    )
    assert made.split_names == ("1", "2")
    assert made.split("1").items.tolist() == ["a", "c"]
    assert made.split(2).classes == ("0", "1", "2")  # type: ignore[arg-type]
    with raises_code("unknown-split", "'dev'", "'1', '2'"):
        made.split("dev")
    with raises_code("unknown-split", "'dev'"):
        Annotations.from_matrix([["a"]]).split("dev")


def test_half_a_character_is_no_name() -> None:
    with raises_code("mixed-types", "surrogates"):
        Annotations.from_matrix([["a"]], items=["\ud800"])


@given(long_tables(), st.randoms())
def test_classes_may_move_and_grow_without_changing_what_was_said(
    table: pa.Table, random: object
) -> None:
    made = Annotations.from_table(table)
    classes = [*made.classes, "one more class"]
    random.shuffle(classes)  # type: ignore[attr-defined]
    moved = made.with_classes(classes)
    assert moved.classes == tuple(classes)
    assert said(moved) == said(made)
    assert known(moved) == known(made)
    assert_same(moved, Annotations.from_table(table, classes=classes))


def test_probabilities_move_with_their_classes() -> None:
    moved = Annotations.from_soft_labels([[0.25, 0.75]]).with_classes(["2", "1", "0"])
    assert moved.soft_labels.tolist() == [[0, 0.75, 0.25]]


def test_classes_that_were_chosen_can_not_go() -> None:
    made = Annotations.from_matrix([["a", "b", "c"]])
    with raises_code("unknown-class", "'b', 'c'", "'a', 'd'"):
        made.with_classes(["a", "d"])
    with raises_code("duplicate-name", "'a'"):
        made.with_classes(["a", "b", "c", "a"])
