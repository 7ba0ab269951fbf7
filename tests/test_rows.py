"""Rows are about items, or about pairs of an item and an annotator, and matched by id."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import InputError
from edokit.rows import Rows
from tests.errors import raises_code

# A tab is a character like any other: the pairs a, b\tc and a\tb, c are two.
NAMES = st.sampled_from(["a", "b", "a\tb", "b\tc", "c", "", "7", "007", "b · c"])
ITEMS = st.lists(NAMES, unique=True)
PAIRS = st.lists(st.tuples(NAMES, NAMES), unique=True, min_size=1)


def rows_of(ids: list[str] | list[tuple[str, str]]) -> Rows:
    if ids and isinstance(ids[0], tuple):
        return Rows.from_names(*zip(*ids, strict=True))
    return Rows.from_names(ids)


def ids_of(rows: Rows) -> list[str] | list[tuple[str, str]]:
    if rows.annotator_names is None:
        return rows.item_names.tolist()
    return list(zip(rows.item_names, rows.annotator_names, strict=True))


@given(ITEMS | PAIRS, st.randoms())
def test_matching_finds_every_row_wherever_it_is(ids: list[str], random: object) -> None:
    shuffled = list(ids)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    places = rows_of(shuffled).match(rows_of(ids), "predictions", "annotations")
    assert [shuffled[place] for place in places] == ids


@given(PAIRS, PAIRS)
def test_positions_are_those_of_the_same_pair(ids: list[str], others: list[str]) -> None:
    places = rows_of(ids).positions(rows_of(others)).tolist()
    assert places == [ids.index(pair) if pair in ids else -1 for pair in others]


@given(ITEMS | PAIRS, st.data())
def test_rows_that_are_taken_keep_their_ids(ids: list[str], data: st.DataObject) -> None:
    rows = rows_of(ids)
    places = data.draw(
        st.lists(st.sampled_from(range(len(ids))), unique=True) if ids else st.just([])
    )
    taken = rows.take(places)
    assert ids_of(taken) == [ids[place] for place in places]
    assert set(taken.items) == set(taken.item_names)
    if taken.annotators is not None:
        assert set(taken.annotators) == set(taken.annotator_names)


@given(PAIRS, PAIRS)
def test_concatenated_rows_are_those_of_the_parts(ids: list[str], others: list[str]) -> None:
    both = Rows.concatenate([rows_of(ids), rows_of(others)])
    assert ids_of(both) == [*ids, *others]
    assert ids_of(both.distinct()) == list(dict.fromkeys([*ids, *others]))


def test_rows_about_items_are_anonymous_among_pairs() -> None:
    pairs = Rows.from_names(["a", "a"], ["", "x"])
    assert pairs.positions(Rows.from_names(["b", "a"])).tolist() == [-1, 0]
    assert Rows.from_names(["b", "a"]).positions(pairs).tolist() == [1, -1]
    assert ids_of(Rows.concatenate([Rows.from_names(["b"]), pairs]))[0] == ("b", "")


@given(st.lists(st.tuples(NAMES, st.floats(-9, 9)), min_size=1))
def test_the_mean_of_an_item_is_that_of_its_rows(values: list[tuple[str, float]]) -> None:
    items, numbers = zip(*values, strict=True)
    rows = Rows.from_names(items, [str(row) for row in range(len(items))])
    literal = [np.mean([number for name, number in values if name == item]) for item in rows.items]
    np.testing.assert_allclose(rows.mean(np.array(numbers)), literal, atol=1e-12)
    weighted = rows.mean(np.array(numbers)[:, None], np.full(len(items), 3.0))
    np.testing.assert_allclose(weighted[:, 0], literal, atol=1e-12)


def test_keys_tell_pairs_apart_whatever_characters_their_names_have() -> None:
    pairs = Rows.from_names(["a\tb", "a", "b", "a", "c"], ["c", "b\tc", "a", "b", "a\tb"])
    assert len({*pairs.keys.tolist()}) == len(pairs)
    assert pairs.take([3]).keys[0] == Rows.from_names(["x", "a"], ["x", "b"]).keys[1]


def test_ids_that_do_not_match_are_counted_with_three_examples() -> None:
    wanted = Rows.from_names(range(10))
    given_ids = Rows.from_names([*range(4), 90, 91, 92, 93])
    with pytest.raises(InputError) as caught:
        given_ids.match(wanted, "predictions", "annotations")
    assert caught.value.message == (
        "predictions and annotations hold different items: in predictions"
        " 6 of 10 are missing: '4', '5', '6' and 3 more; 4 are extra: '90', '91', '92' and 1 more"
    )
    assert "check the ids" in str(caught.value)


def test_pairs_that_do_not_match_are_named() -> None:
    pairs = Rows.from_names(["a", "a"], ["x", "y"])
    labelled = Rows.from_names(["a", "a"], ["x", "z"])
    with raises_code("items-differ", "'a · z'; 1", "'a · y'"):
        pairs.match(labelled, "predictions", "annotations")
    for source, rows, against, others in (
        ("predictions", pairs, "annotations", Rows.from_names(["a"])),
        ("annotations", Rows.from_names(["a"]), "predictions", pairs),
    ):
        with raises_code("pairs-for-items", "'a · x'", "learn='pairs'"):
            rows.match(others, source, against)
    with raises_code("items-for-pairs"):
        labelled.match(Rows.from_names(["a"]), "annotations", "predictions")


@pytest.mark.parametrize(
    ("wanted", "given_ids", "owner"),
    [(["a", "a"], ["a", "b"], "annotations"), (["a", "b"], ["a", "a", "b"], "predictions")],
)
def test_an_id_that_is_repeated_can_not_be_matched(
    wanted: list[str], given_ids: list[str], owner: str
) -> None:
    with raises_code("duplicate-name", owner, "'a'"):
        Rows.from_names(given_ids).match(Rows.from_names(wanted), "predictions", "annotations")
    pairs = [Rows.from_names(names, ["x"] * len(names)) for names in (given_ids, wanted)]
    with raises_code("duplicate-name", owner, "'a · x'"):
        pairs[0].match(pairs[1], "predictions", "annotations")


def test_seven_matches_seven_but_not_double_o_seven() -> None:
    assert Rows.from_names(["7"]).match(Rows.from_names([7]), "a", "b").tolist() == [0]
    with raises_code("items-differ", "1 of 1", "'7'; 1", "'007'"):
        Rows.from_names(["007"]).match(Rows.from_names([7]), "a", "b")


def test_rows_without_ids_are_what_rows_called_by_number_are() -> None:
    numbered = Rows.numbered(50)
    named = Rows.from_names(range(50))
    places = [7, 3, 40]
    assert numbered.names == named.names
    assert numbered.take(places).names == ["7", "3", "40"]
    assert numbered.take(places).take([2]).names == ["40"]
    np.testing.assert_array_equal(numbered.keys, named.keys)
    np.testing.assert_array_equal(numbered.draw(20), named.draw(20))
    np.testing.assert_array_equal(numbered.take(places).draw(2), named.take(places).draw(2))
    again = numbered.take(places).match(numbered.take([3, 40, 7]), "a", "b")
    np.testing.assert_array_equal(again, [1, 2, 0])


def test_rows_without_ids_match_no_ids_that_look_like_their_numbers() -> None:
    numbered = Rows.numbered(50)
    named = Rows.from_names(range(50))
    for rows, others in ((numbered, named), (named, numbered)):
        with raises_code("missing-ids"):
            rows.match(others, "a", "b")
    assert numbered.are_numbers_of(named)
    assert not named.are_numbers_of(numbered)
    assert not numbered.are_numbers_of(named.take(np.arange(50)[::-1]))


def test_items_without_ids_are_counted_without_names() -> None:
    rows = Rows.numbered(3)
    assert rows.count_items() == 3
    assert rows.count_items(np.array([0, 2])) == 2
    assert "items" not in vars(rows)
