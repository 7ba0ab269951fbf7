"""Training also predicts texts without labels, and what each annotator would say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people

from edokit import read_predictions
from edokit.members import Group, train_members
from edokit.members.texts import Texts
from tests.errors import raises_code

PEOPLE = small_people(40).split("train", "dev")
NEW = Texts(
    ("new-1", "new-2"), ("awful tea", "warm bread"), (("person-1",), ("person-2", "nobody"))
)
GROUPS = [Group("member_cases:PeopleMember", 1, "people"), Group("linear", 1, "plain", "soft")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    out = tmp_path_factory.mktemp("pairs") / "members"
    return train_members(PEOPLE, GROUPS, out=out, unlabelled={"test": NEW}, jobs=1), out


def test_texts_without_labels_are_predicted_and_not_scored(trained: tuple[Any, Path]) -> None:
    result, out = trained
    assert list(result.predictions["test"].items) == ["new-1", "new-2"]
    assert list(read_predictions(out / "predictions" / "test.npz").items) == ["new-1", "new-2"]
    assert set(result.manifest["mean"]) == {"dev"}
    assert all(set(member["metrics"]) == {"dev"} for member in result.manifest["members"])


def test_members_that_know_annotators_predict_pairs(trained: tuple[Any, Path]) -> None:
    result, out = trained
    pairs = read_predictions(out / "predictions" / "test-pairs.npz")
    assert pairs.members == ("people-01",)  # not the one that knows nobody
    assert list(zip(pairs.items, pairs.annotators, strict=True)) == [
        ("new-1", "person-1"),
        ("new-2", "person-2"),
        ("new-2", "nobody"),
        ("new-1", ""),
        ("new-2", ""),
    ]
    items = read_predictions(out / "predictions" / "test.npz").select(["people-01"])
    np.testing.assert_array_equal(pairs.anonymous().probabilities, items.probabilities)
    train = PEOPLE.split("train")
    own = train.label_codes[train.annotator_codes == list(train.annotators).index("person-1")]
    np.testing.assert_allclose(pairs.probabilities[0, 0, 1], own.mean(), atol=1e-6)
    dev = PEOPLE.split("dev")
    known = result.predictions["dev-pairs"]
    known = known.take(known.annotators != "")
    assert len(known) == len(dev)
    asked = set(zip(dev.items[dev.item_codes], dev.annotators[dev.annotator_codes], strict=True))
    assert set(zip(known.items, known.annotators, strict=True)) == asked


def test_pairs_of_folds_are_out_of_fold(tmp_path: Path) -> None:
    result = train_members(PEOPLE, GROUPS[:1], cross_fit=3, unlabelled={"test": NEW}, jobs=1)
    fit = result.predictions["fit-pairs"]
    order = {item: row for row, item in enumerate(PEOPLE.items)}
    assert [order[item] for item in fit.items] == sorted(order[item] for item in fit.items)
    assert len(fit) == len(PEOPLE) + len(PEOPLE.items)
    np.testing.assert_array_equal(
        fit.anonymous().probabilities, result.predictions["fit"].probabilities
    )
    assert len(result.predictions["test-pairs"].pairs()) == 3


@pytest.mark.parametrize(
    ("unlabelled", "words"),
    [({"dev": NEW}, "'dev'"), ({"test": Texts(("item-0",), ("warm tea",))}, "'item-0'")],
)
def test_texts_without_labels_are_new(unlabelled: Any, words: str) -> None:
    with raises_code("duplicate-name", words):
        train_members(PEOPLE, GROUPS, unlabelled=unlabelled)


def test_texts_without_annotators_are_predicted_anonymously_alone() -> None:
    group = Group("nearest", 1, supervision="soft", options={"annotators": True})
    texts = Texts(("new-1", "new-2"), ("awful tea", "warm bread"))
    trained = train_members(PEOPLE, [group], unlabelled={"test": texts}, jobs=1)
    assert not trained.failed
    pairs = trained.predictions["test-pairs"]
    assert pairs.annotators.tolist() == ["", ""]
    items = trained.predictions["test"]
    np.testing.assert_array_equal(pairs.probabilities, items.probabilities)
