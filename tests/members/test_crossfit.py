"""Folds are alike, near-duplicates stay together, and no fit answers what it learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from member_cases import small_people

from edokit._names import as_names
from edokit.members.training_data import FIT, TrainingData, check_splits, fold_numbers, rows_for_job
from tests.errors import raises_code

# The texts of these tests are drawn from few words.
pytestmark = pytest.mark.filterwarnings("ignore::edokit.datasets.similar_texts.SimilarTextsWarning")

COURSE = TrainingData.from_annotations(small_people(200))


def with_splits(splits: list[str]) -> TrainingData:
    """The same data with other splits."""
    return TrainingData.from_annotations(replace(COURSE.annotations, splits=as_names(splits)))


def test_folds_part_train_and_dev_evenly() -> None:
    folds = fold_numbers(COURSE, 5, seed=0)
    inside = COURSE.where("train", "dev")
    assert (folds[COURSE.where("test")] == -1).all()
    assert np.bincount(folds[inside]).tolist() == [30] * 5


def test_folds_are_alike_in_hard_labels() -> None:
    folds = fold_numbers(COURSE, 5, seed=0)
    counts = [np.bincount(COURSE.hard_labels[folds == fold], minlength=2) for fold in range(5)]
    assert np.ptp(counts, axis=0).max() <= 1


def test_folds_follow_the_seed() -> None:
    np.testing.assert_array_equal(fold_numbers(COURSE, 5, 1), fold_numbers(COURSE, 5, 1))
    assert (fold_numbers(COURSE, 5, 1) != fold_numbers(COURSE, 5, 2)).any()


def test_near_duplicates_share_a_fold() -> None:
    texts = [
        f"thing number {i // 2} was said about {'abcdefghij'[i // 2 % 10] * 9} today"
        for i in range(40)
    ]
    texts = [text + ("!" if i % 2 else "") for i, text in enumerate(texts)]
    people = replace(small_people(40), texts=as_names(texts), splits=as_names(["train"] * 40))
    folds = fold_numbers(TrainingData.from_annotations(people), 4, seed=0)
    assert (folds[::2] == folds[1::2]).all()


def test_no_fold_answers_what_it_learned_and_each_item_is_answered_once() -> None:
    folds = fold_numbers(COURSE, 3, seed=0)
    answered = []
    for fold in range(3):
        rows = rows_for_job(COURSE, folds, fold)
        assert not set(rows.train) & set(rows.predict[FIT])
        assert set(rows.stop) <= set(rows.train)
        assert set(rows.predict) == {FIT, "test"}
        answered += rows.predict[FIT].tolist()
    assert sorted(answered) == COURSE.where("train", "dev").tolist()


def test_without_folds_each_other_split_is_answered() -> None:
    rows = rows_for_job(COURSE, None, None)
    np.testing.assert_array_equal(rows.train, COURSE.where("train"))
    np.testing.assert_array_equal(rows.stop, COURSE.where("dev"))
    assert set(rows.predict) == {"dev", "test"}


def test_dev_may_be_called_validation() -> None:
    splits = ["validation" if split == "dev" else split for split in COURSE.splits]
    data = with_splits(splits)
    np.testing.assert_array_equal(rows_for_job(data, None, None).stop, COURSE.where("dev"))


@pytest.mark.parametrize("folds", [-1, 0, 1, 151])
def test_a_number_of_folds_that_cannot_be_is_refused(folds: int) -> None:
    with raises_code("too-many-folds", "150", "2"):
        fold_numbers(COURSE, folds, seed=0)


def test_folds_without_items_are_refused() -> None:
    people = replace(
        small_people(8), texts=as_names(["the same text"] * 8), splits=as_names(["train"] * 8)
    )
    with raises_code("too-many-folds", "2"):
        fold_numbers(TrainingData.from_annotations(people), 2, seed=0)


def test_data_without_a_train_split_is_refused() -> None:
    data = with_splits(["dev"] * len(COURSE))
    with raises_code("empty-split", "'dev'"):
        check_splits(data, None)


def test_data_with_nothing_to_predict_needs_folds() -> None:
    data = with_splits(["train"] * len(COURSE))
    with raises_code("empty-split", "cross_fit=5"):
        check_splits(data, None)
    check_splits(data, 5)
