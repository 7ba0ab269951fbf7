"""Targets follow from annotations, seed and epoch alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from member_cases import small_people

from edokit import Annotations
from edokit.members.supervision import (
    annotator_targets,
    majority_targets,
    most_active,
    random_select_targets,
    soft_targets,
)
from tests.errors import raises_code


@st.composite
def matrices(draw: st.DrawFn) -> Annotations:
    """Up to 8 items, 5 annotators and 4 classes, with gaps."""
    n = draw(st.integers(1, 8))
    a = draw(st.integers(1, 5))
    c = draw(st.integers(2, 4))
    row = st.lists(st.integers(-1, c - 1), min_size=a, max_size=a).filter(lambda r: max(r) >= 0)
    rows = draw(st.lists(row, min_size=n, max_size=n))
    return Annotations.from_matrix(np.ma.masked_equal(rows, -1), classes=list(range(c)))


def shares_as_answers() -> Annotations:
    """Two annotators who answer in probabilities."""
    table = {
        "item": ["a", "a", "b"],
        "annotator": ["x", "y", "x"],
        "p_0": [0.9, 0.2, 0.5],
        "p_1": [0.1, 0.8, 0.5],
    }
    return Annotations.from_table(table)


@given(matrices(), st.integers(0, 2**31), st.integers(0, 50))
def test_random_select_gives_each_item_an_answer_that_someone_gave(
    people: Annotations, seed: int, epoch: int
) -> None:
    targets = random_select_targets(people, seed, epoch)
    assert targets.shape == (len(people.items), len(people.classes))
    assert (targets.sum(axis=1) == 1).all()
    assert (people.counts[targets == 1] > 0).all()


def test_random_select_is_unbiased_over_seeds_and_over_epochs() -> None:
    people = Annotations.from_matrix([[0, 1, 1, None], [2, None, None, None], [0, 0, 1, 2]])
    draws = 4000
    over_seeds = np.mean([random_select_targets(people, seed) for seed in range(draws)], axis=0)
    over_epochs = np.mean(
        [random_select_targets(people, 3, epoch) for epoch in range(draws)], axis=0
    )
    # Five standard errors of a share.
    bound = 5 * np.sqrt(0.25 / draws)
    np.testing.assert_allclose(over_seeds, people.soft_labels, atol=bound)
    np.testing.assert_allclose(over_epochs, people.soft_labels, atol=bound)


def test_random_select_draws_items_independently() -> None:
    people = Annotations.from_matrix([[0, 1]] * 2)
    draws = np.array([random_select_targets(people, seed)[:, 1] for seed in range(2000)])
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.1


def test_random_select_repeats_itself_and_changes_with_seed_and_epoch() -> None:
    people = small_people()
    first = random_select_targets(people, 1, 2)
    np.testing.assert_array_equal(first, random_select_targets(people, 1, 2))
    assert (first != random_select_targets(people, 1, 3)).any()
    assert (first != random_select_targets(people, 2, 2)).any()


def test_random_select_takes_one_annotators_probabilities_as_they_are() -> None:
    people = shares_as_answers()
    targets = np.array([random_select_targets(people, seed) for seed in range(600)])
    rows = {tuple(row) for row in targets[:, 0]}
    assert rows == {(0.9, 0.1), (0.2, 0.8)}
    np.testing.assert_allclose(targets.mean(axis=0), people.soft_labels, atol=0.08)


def test_soft_and_majority_targets_are_the_labels() -> None:
    people = Annotations.from_matrix([[0, 1, 1], [0, 0, 1]])
    np.testing.assert_allclose(soft_targets(people), [[1 / 3, 2 / 3], [2 / 3, 1 / 3]])
    np.testing.assert_array_equal(majority_targets(people), [[0, 1], [1, 0]])


def test_per_annotator_gives_the_annotators_own_items_and_answers() -> None:
    people = Annotations.from_matrix([[0, 1], [None, 0], [1, 1]], annotators=["x", "y"])
    positions, targets = annotator_targets(people, "x")
    np.testing.assert_array_equal(positions, [0, 2])
    np.testing.assert_array_equal(targets, [[1, 0], [0, 1]])


def test_per_annotator_splits_the_answer_of_one_who_answered_twice() -> None:
    table = {"item": ["a", "a", "b"], "annotator": ["x"] * 3, "label": ["0", "1", "1"]}
    positions, targets = annotator_targets(Annotations.from_table(table, duplicates="all"), "x")
    np.testing.assert_array_equal(positions, [0, 1])
    np.testing.assert_array_equal(targets, [[0.5, 0.5], [0, 1]])


def test_per_annotator_keeps_probabilities() -> None:
    positions, targets = annotator_targets(shares_as_answers(), "x")
    np.testing.assert_array_equal(positions, [0, 1])
    np.testing.assert_allclose(targets, [[0.9, 0.1], [0.5, 0.5]])


def test_most_active_annotators_come_first_and_ties_keep_their_order() -> None:
    people = Annotations.from_matrix(
        [[0, 0, 0], [None, 1, 1], [None, 1, None]], annotators=["x", "y", "z"]
    )
    assert most_active(people, 3, ignore_limit=True) == ["y", "z", "x"]


def test_more_per_annotator_members_than_the_least_annotated_item_has_are_refused() -> None:
    people = Annotations.from_matrix([[0, 1, 1], [None, 0, None]])
    assert len(most_active(people, 1)) == 1
    with raises_code("too-many-members", "2", "1", "A_i") as error:
        most_active(people, 2)
    assert "ignore_annotator_limit=True" in str(error.value)
    assert len(most_active(people, 2, ignore_limit=True)) == 2


def test_more_per_annotator_members_than_annotators_are_refused() -> None:
    with raises_code("too-many-members", "4", "3"):
        most_active(small_people(), 4)
