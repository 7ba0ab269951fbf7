"""What members train on: annotations with texts, splits and a digest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from member_cases import small_people

from edokit import Annotations, EDOWarning
from edokit.members.texts import Texts
from edokit.members.training_data import TrainingData, check_splits, rows_for_job
from tests.errors import raises_code

data_of = TrainingData.from_annotations


def test_the_digest_names_the_data() -> None:
    assert data_of(small_people()).digest == data_of(small_people()).digest
    assert data_of(small_people()).digest != data_of(small_people(seed=1)).digest


def test_the_digest_names_the_annotators_of_items_with_the_same_id_in_two_splits() -> None:
    later = Texts(("a",), ("soon",), (("ann",),))
    digests = set()
    for annotators in (("ann",), ("ann", "ben")):
        new = Texts(("a",), ("now",), (annotators,))
        digests.add(data_of(small_people(), unlabelled={"new": new, "later": later}).digest)
    assert len(digests) == 2


def test_data_without_splits_is_all_train() -> None:
    assert set(data_of(small_people(splits=False)).splits) == {"train"}


def test_items_in_no_split_are_named_and_neither_trained_on_nor_predicted() -> None:
    people = small_people()
    splits = people.splits.copy()
    nowhere = [*np.flatnonzero(splits == "dev"), np.flatnonzero(splits == "train")[0]]
    splits[nowhere] = ""
    data = data_of(replace(people, splits=splits))
    with pytest.warns(EDOWarning, match=rf"{len(nowhere)} of {len(splits)} items"):
        check_splits(data, None)
    rows = rows_for_job(data, None, None)
    assert "" not in rows.predict
    used = np.concatenate([rows.train, rows.stop, *rows.predict.values()])
    assert not set(used) & set(nowhere)


def test_members_that_learn_nothing_need_items_in_a_split() -> None:
    people = replace(small_people(), splits=np.full(72, "", dtype=object))
    with raises_code("empty-split", "no item is in a split"):
        check_splits(data_of(people), None, learns=False)
    with raises_code("empty-split", "'train', which is empty"):
        check_splits(data_of(people), None)


def test_data_without_texts_is_refused() -> None:
    with raises_code("missing-texts"):
        data_of(Annotations.from_matrix([[0, 1]]))


@pytest.mark.parametrize("gap", ["", "  ", None, 3.5])
def test_items_without_text_are_counted_and_named(gap: object) -> None:
    texts = small_people().texts
    assert texts is not None
    texts = texts.copy()
    texts[[1, 4]] = gap
    with raises_code("missing-value", "2", "72", "'item-1'", "'item-4'"):
        data_of(replace(small_people(), texts=texts))


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b", "a\\b"])
def test_a_split_can_not_decide_where_its_predictions_are_written(name: str) -> None:
    people = small_people()
    splits = np.where(people.splits == "dev", name, people.splits)
    with raises_code("invalid-name", name.encode("unicode_escape").decode()):
        check_splits(data_of(replace(people, splits=splits)), None)


@pytest.mark.parametrize("name", ["fit", "train-pairs"])
def test_names_of_other_predictions_are_refused_before_training(name: str) -> None:
    people = small_people()
    splits = np.where(people.splits == "dev", name, people.splits)
    with raises_code("reserved-name", name):
        check_splits(data_of(replace(people, splits=splits)), 5)


def test_without_folds_a_split_may_be_called_fit() -> None:
    people = small_people()
    splits = np.where(people.splits == "dev", "fit", people.splits)
    check_splits(data_of(replace(people, splits=splits)), None)


def test_repeated_items_without_labels_are_refused_before_training() -> None:
    texts = Texts(("new-1", "new-1"), ("a fine day", "another"))
    with raises_code("duplicate-name", "new", "'new-1'"):
        data_of(small_people(), unlabelled={"new": texts})
