"""Texts that are nearly the same."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit._types import Bools
from edokit.datasets import near_duplicates as module
from edokit.datasets.lewidi import read_lewidi
from edokit.datasets.near_duplicates import (
    NearDuplicates,
    TextColumn,
    near_duplicate_groups,
    normal_form,
    without_markup,
)

LONG = "the quick brown fox jumps over the lazy dog near the river bank at noon"


def pieces(text: str) -> set[str]:
    text = text.ljust(5)
    return {text[k : k + 5] for k in range(len(text) - 4)}


def near_duplicates_of(texts: TextColumn, reference: TextColumn, threshold: float = 0.8) -> Bools:
    both = [*texts, *reference]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "THRESHOLD", threshold)
        found = NearDuplicates.among(both).has_match(np.arange(len(both)) >= len(texts))
    return found[: len(texts)]


def overlap(one: str, other: str) -> float:
    a = pieces(one)
    b = pieces(other)
    return len(a & b) / len(a | b)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Good  MORNING!", "good morning"),
        ("@anna Good morning https://example.org/x", "good morning"),
        ("<user> good morning &amp; bye <url>", "good morning bye"),
        ("good😀morning", "good morning"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁne ４２", "fine 42"),
        ("صباح الخير، يا @anna!", "صباح الخير يا"),
        ("!!!  😀", "!!! 😀"),
        ("<user> <url>", "<user> <url>"),
        (" \n ", ""),
    ],
)
def test_normal_form(text: str, form: str) -> None:
    assert normal_form(text) == form


def test_links_case_and_marks_do_not_part_texts() -> None:
    groups = near_duplicate_groups([LONG, LONG.upper() + "!! https://example.org", "else"])
    assert groups.tolist() == [0, 0, 1]


def test_a_changed_letter_leaves_a_near_duplicate() -> None:
    other = LONG.replace("quick", "quack")
    assert 0.8 <= overlap(LONG, other) < 0.95
    assert near_duplicate_groups([LONG, other]).tolist() == [0, 0]
    assert not near_duplicates_of([LONG], [other], 0.95).any()


def test_near_duplicates_by_way_of_others_share_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "THRESHOLD", 0.7)
    words = LONG.split()
    chain = [" ".join(words[k : k + 12]) for k in range(4)]
    assert overlap(chain[0], chain[1]) >= 0.7 > overlap(chain[0], chain[3])
    assert set(near_duplicate_groups(chain)) == {0}
    assert near_duplicates_of(chain[3:], chain[:1], threshold=0.7).tolist() == [False]


def test_empty_texts_are_near_duplicates_of_nothing() -> None:
    assert near_duplicate_groups(["", " ", "tea", ""]).tolist() == [0, 1, 2, 3]
    assert near_duplicates_of(["", " "], ["", "tea"]).tolist() == [False, False]


def test_texts_without_letters_match_only_as_they_stand() -> None:
    texts = ["!!!", "???", " !!! ", "<user>", "<url>", "<user>"]
    assert near_duplicate_groups(texts).tolist() == [0, 1, 0, 2, 3, 2]


def test_arabic_texts_are_compared_by_their_letters() -> None:
    texts = ["صباح الخير يا صديقي العزيز", "صباح الخير، يا صديقي العزيز! 😀", "مساء النور"]
    assert near_duplicate_groups(texts).tolist() == [0, 0, 1]


def test_few_texts_and_none() -> None:
    assert near_duplicate_groups([]).tolist() == []
    assert near_duplicate_groups(["tea"]).tolist() == [0]
    assert near_duplicate_groups(["\0", "\0\0"]).tolist() == [0, 1]
    assert near_duplicates_of(["tea"], []).tolist() == [False]
    assert near_duplicates_of([], ["tea"]).tolist() == []


WORDS = st.lists(st.sampled_from(["tea", "cake", "milk", "a", "sugar"]), max_size=9).map(" ".join)


@given(st.lists(WORDS, max_size=12), st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 0.8, 0.9]))
def test_the_search_finds_exactly_the_pairs_that_overlap(
    texts: list[str], threshold: float
) -> None:
    # Comparing few texts at once must not lose any pair.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FORMS_AT_ONCE", 2)
        found = near_duplicates_of(texts[:5], texts[5:], threshold)
    expected = [
        any(one and other and overlap(one, other) >= threshold - 1e-9 for other in texts[5:])
        for one in texts[:5]
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
def test_no_pair_of_many_alike_texts_is_missed(
    threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "THRESHOLD", threshold)
    rng = np.random.default_rng(0)
    words = LONG.split()
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(4, 40, 120)]
    texts += [normal_form(text[: -1 - k % 20]) for k, text in enumerate(texts)]
    found = NearDuplicates.among(texts)
    forms = {form: pieces(text) for form, text in zip(found.forms.tolist(), texts, strict=True)}
    expected = {
        (one, other)
        for one, other in combinations(sorted(forms), 2)
        if len(forms[one] & forms[other]) / len(forms[one] | forms[other]) >= threshold - 1e-9
    }
    pairs = np.sort(np.stack([found.first_forms, found.second_forms], axis=1), axis=1)
    assert len(pairs) == len(expected) > 30
    assert {tuple(pair) for pair in pairs.tolist()} == expected


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_text_is_grouped_and_groups_are_numbered_as_they_appear(texts: list[str]) -> None:
    groups = near_duplicate_groups(texts)
    assert len(groups) == len(texts)
    firsts = [int(group) for k, group in enumerate(groups) if group not in groups[:k]]
    assert firsts == list(range(len(firsts)))


@pytest.mark.parametrize(
    ("name", "verbatim", "near"),
    [
        ("ArMIS", (0, 0), (0, 0)),
        ("ConvAbuse", (15, 20), (139, 154)),
        ("HS-Brexit", (0, 0), (0, 0)),
        ("MD-Agreement", (4, 16), (7, 19)),
    ],
)
def test_texts_of_dev_and_test_that_stand_in_train_of_the_real_files(
    lewidi: Path, name: str, verbatim: tuple[int, int], near: tuple[int, int]
) -> None:
    texts = {
        split: read_lewidi(lewidi / name / f"{name}_{split}.json").texts
        for split in ("train", "dev", "test")
    }
    for threshold, expected in ((1, verbatim), (0.8, near)):
        known = near_duplicates_of(
            np.concatenate([texts["dev"], texts["test"]]), texts["train"], threshold
        )
        dev = len(texts["dev"])
        assert (known[:dev].sum(), known[dev:].sum()) == expected


def test_an_address_with_an_at_sign_inside_is_no_mention() -> None:
    assert without_markup("write to anna@example") == "write to anna@example"
    assert without_markup("@anna see www.example.org &amp; <b>go</b>").split() == ["see", "&", "go"]
