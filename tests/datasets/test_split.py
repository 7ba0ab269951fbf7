"""Dividing items into splits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations
from edokit.datasets.lewidi import read_lewidi
from edokit.datasets.near_duplicates import NearDuplicates
from edokit.datasets.split import split_items
from tests.errors import raises_code

SHARES = {"train": 0.6, "dev": 0.2, "test": 0.2}


def people(n: int, seed: int = 0, positive: float = 0.3, texts: bool = True) -> Annotations:
    """Five answers per item, with texts that have nothing in common."""
    rng = np.random.default_rng(seed)
    lean = rng.beta(positive * 2, (1 - positive) * 2, size=n)
    matrix = (rng.random((n, 5)) < lean[:, None]).astype(int)
    made = Annotations.from_matrix(matrix, items=[f"i{k}" for k in range(n)], classes=[0, 1])
    if not texts:
        return made
    words = np.array(["".join(rng.choice(list("abcdefghij"), 40)) for _ in range(n)], dtype=object)
    return _with_texts(made, words)


def _with_texts(made: Annotations, texts: object) -> Annotations:
    return replace(made, texts=np.asarray(texts, dtype=object))


def counts(parted: Annotations) -> dict[str, int]:
    names, sizes = np.unique(parted.splits.astype(str), return_counts=True)
    return dict(zip(names.tolist(), sizes.tolist(), strict=True))


def test_every_item_gets_a_split_and_all_else_stays() -> None:
    before = people(100)
    after = split_items(before, SHARES)
    assert counts(after) == {"train": 60, "dev": 20, "test": 20}
    assert (after.items == before.items).all()
    assert (after.soft_labels == before.soft_labels).all()
    assert (after.texts == before.texts).all()


def test_the_default_is_eight_to_one_to_one() -> None:
    assert counts(split_items(people(200))) == {"train": 160, "dev": 20, "test": 20}


def test_same_seed_same_splits_other_seed_others() -> None:
    made = people(100)
    first = split_items(made, SHARES, random_state=3).splits
    assert (first == split_items(made, SHARES, random_state=3).splits).all()
    assert (first != split_items(made, SHARES, random_state=4).splits).any()


def test_over_seeds_an_item_visits_every_split_even_if_it_is_the_only_one_of_its_kind() -> None:
    labels = np.zeros((40, 3), int)
    labels[0] = 1
    made = Annotations.from_matrix(labels, classes=[0, 1])
    visited = {split_items(made, SHARES, random_state=seed).splits[0] for seed in range(40)}
    assert visited == set(SHARES)


@given(st.integers(60, 400), st.integers(0, 50), st.sampled_from([0.05, 0.2, 0.5]))
def test_each_split_gets_its_share_of_classes_and_of_disagreement(
    n: int, seed: int, positive: float
) -> None:
    made = people(n, seed, positive, texts=False)
    parted = split_items(made, SHARES, random_state=seed)
    positives = made.hard_labels(ties="first") == 1
    divided = made.entropy > 0
    for name, share in SHARES.items():
        here = parted.splits == name
        assert abs(here.sum() - share * n) <= 1
        # Items in a row are shared out to within two; a class stands in one row, the divided
        # items of the classes in one row each.
        assert abs((here & positives).sum() - share * positives.sum()) <= 2
        assert abs((here & divided).sum() - share * divided.sum()) <= 4


def test_a_rare_class_reaches_every_split() -> None:
    labels = np.zeros((100, 3), int)
    labels[:10] = 1
    made = Annotations.from_matrix(labels, classes=[0, 1])
    for seed in range(5):
        parted = split_items(made, SHARES, random_state=seed)
        rare = parted.splits[:10].tolist()
        assert all(abs(rare.count(name) - 10 * share) <= 1 for name, share in SHARES.items())
        assert set(rare) == set(SHARES)


def test_near_duplicates_stay_on_one_side() -> None:
    made = people(120)
    texts = made.texts.copy()
    for k in range(0, 60, 3):
        texts[k + 1] = texts[k].upper() + "! https://example.org"
        texts[k + 2] = "@anna " + texts[k]
    made = _with_texts(made, texts)
    parted = split_items(made, SHARES, random_state=1)
    for k in range(0, 60, 3):
        assert len(set(parted.splits[k : k + 3])) == 1
    assert counts(parted) == {"train": 72, "dev": 24, "test": 24}
    train = parted.splits == "train"
    assert not NearDuplicates.among(texts).has_match(train)[~train].any()


def test_groups_of_near_duplicates_go_to_all_splits_not_to_the_largest_alone() -> None:
    texts = [f"{chr(97 + k // 2)}" * 30 for k in range(50)]
    parted = split_items(_with_texts(people(50), texts), SHARES)
    assert counts(parted) == {"train": 30, "dev": 10, "test": 10}


def test_a_group_larger_than_its_split_leaves_the_rest_to_the_others() -> None:
    made = people(60)
    texts = made.texts.copy()
    texts[:50] = "the same text for all"
    parted = split_items(_with_texts(made, texts), SHARES)
    sizes = counts(parted)
    assert sizes["train"] >= 50
    assert min(sizes.values()) >= 1
    assert sum(sizes.values()) == 60


def test_items_in_a_split_stay_there() -> None:
    official = split_items(people(50), SHARES)
    assert split_items(official) is official
    with raises_code("missing-option", "10", "from_splits=['train']"):
        split_items(official, {"train": 0.5, "dev": 0.5})


def test_a_named_split_is_divided_and_no_other() -> None:
    official = split_items(people(100), SHARES)
    further = split_items(official, {"train": 0.9, "dev": 0.1}, from_splits=["dev"])
    untouched = official.splits != "dev"
    assert (further.splits[untouched] == official.splits[untouched]).all()
    assert counts(further) == {"train": 78, "dev": 2, "test": 20}
    anew = split_items(official, {"a": 0.5, "b": 0.5}, from_splits=["train", "dev", "test"])
    assert counts(anew) == {"a": 50, "b": 50}


def test_only_items_without_a_split_get_one() -> None:
    made = people(60)
    partly = replace(made, splits=np.array(["test"] * 20 + [""] * 40, dtype=object))
    with raises_code("missing-option", "40 of 60 items", "20"):
        split_items(partly)
    after = split_items(partly, {"train": 0.5, "dev": 0.5})
    assert (after.splits[:20] == "test").all()
    assert counts(after) == {"train": 20, "dev": 20, "test": 20}
    again = split_items(partly, {"train": 0.5, "dev": 0.5}, from_splits=[])
    assert again.splits.tolist() == after.splits.tolist()
    assert partly.split_names == ("test",)


def test_what_is_not_given_about_a_split_is_asked() -> None:
    official = split_items(people(50), SHARES)
    with raises_code("missing-option"):
        split_items(official, from_splits=["test"])
    with raises_code("unknown-split", "'tset'"):
        split_items(official, {"train": 0.5, "dev": 0.5}, from_splits=["tset"])


def test_annotations_in_probabilities_can_be_split() -> None:
    soft = np.random.default_rng(0).dirichlet(np.ones(3), size=40)
    parted = split_items(Annotations.from_soft_labels(soft), {"a": 0.75, "b": 0.25})
    assert counts(parted) == {"a": 30, "b": 10}


@pytest.mark.parametrize(
    "shares", [{}, {"a": 1.2}, {"a": 0.5, "b": 0.4}, {"a": 1.0, "b": 0.0}, {"a": float("nan")}]
)
def test_shares_that_do_not_divide_the_whole_are_refused(shares: dict[str, float]) -> None:
    with raises_code("invalid-shares"):
        split_items(people(10), shares)


def test_a_split_that_would_be_empty_is_refused() -> None:
    with raises_code("empty-split", "'dev'", "10"):
        split_items(people(10), {"train": 0.98, "dev": 0.02})
    made = _with_texts(people(10), ["one and the same text"] * 10)
    with raises_code("empty-split", "10 items", "1 group"):
        split_items(made, {"train": 0.5, "dev": 0.5})


def test_a_real_dataset_divides_evenly_without_near_duplicates_across(lewidi: Path) -> None:
    made = read_lewidi(lewidi / "ConvAbuse")
    parted = split_items(made, SHARES, from_splits=made.split_names, random_state=0)
    hard = made.hard_labels()
    n = len(made.items)
    for name, share in SHARES.items():
        here = parted.splits == name
        assert here.sum() / n == pytest.approx(share, abs=0.01)
        assert hard[here].mean() == pytest.approx(hard.mean(), abs=0.015)
        assert made.entropy[here].mean() == pytest.approx(made.entropy.mean(), abs=0.015)
    train = parted.splits == "train"
    assert not NearDuplicates.among(made.texts).has_match(train)[~train].any()
