"""The linear recipe learns, shares its counts and is a serious baseline."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people

from edokit import read_annotations
from edokit.members import MemberData
from edokit.members.recipes.linear import LinearMember
from edokit.members.supervision import soft_targets
from edokit.metrics import ce
from tests.errors import raises_code


def test_it_learns_who_objects() -> None:
    data = small_people(400)
    train = data.split("train")
    test = data.split("test")
    member = LinearMember(2).fit(MemberData(train.texts, lambda epoch: soft_targets(train)))
    q = np.asarray(test.soft_labels)
    constant = np.tile(train.soft_labels.mean(axis=0), (len(test.items), 1))
    assert ce(member.predict_proba(test.texts), q) < ce(constant, q)


def test_shared_counts_change_nothing() -> None:
    data = small_people()
    lessons = [
        MemberData(data.texts, lambda epoch: soft_targets(data), corpus=corpus)
        for corpus in ((), tuple(data.texts))
    ]
    alone, together = (LinearMember(2).fit(lesson) for lesson in lessons)
    np.testing.assert_array_equal(
        alone.predict_proba(data.texts), together.predict_proba(data.texts)
    )


def test_a_context_weight_of_zero_makes_context_silent() -> None:
    data = small_people(24)
    pairs = [(str(text), f"reply {i}") for i, text in enumerate(data.texts)]
    member = LinearMember(2, context=0.0).fit(MemberData(pairs, lambda epoch: soft_targets(data)))
    np.testing.assert_allclose(
        member.predict_proba([("tea", "river")]), member.predict_proba([("tea", "awful")])
    )


@pytest.mark.parametrize("option", ["strength", "words", "context", "fewest"])
def test_options_below_their_bound_are_refused(option: str) -> None:
    with raises_code("invalid-number", f"{option} is -1"):
        LinearMember(2, **{option: -1})


def test_a_strength_of_zero_is_refused() -> None:
    with raises_code("invalid-number", "strength", "0"):
        LinearMember(2, strength=0)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    data = small_people(24)
    LinearMember(2).fit(MemberData(data.texts, lambda epoch: soft_targets(data))).save(tmp_path)
    file = tmp_path / "linear.npz"
    file.write_bytes(file.read_bytes()[:100])
    with raises_code("damaged-file"):
        LinearMember.load(tmp_path)


@pytest.mark.lewidi
@pytest.mark.parametrize(("dataset", "bound"), [("HS-Brexit", 0.335), ("ArMIS", 0.61)])
def test_one_soft_member_beats_the_constant_answer_by_far_on_real_data(
    lewidi: Path, dataset: str, bound: float
) -> None:
    data = read_annotations(lewidi / dataset)
    train = data.split("train")
    test = data.split("test")
    member = LinearMember(2).fit(MemberData(train.texts, lambda epoch: soft_targets(train)))
    assert ce(member.predict_proba(test.texts), np.asarray(test.soft_labels)) < bound


def test_arrays_that_are_not_its_own_are_not_unpacked(tmp_path: Path) -> None:
    data = small_people(24)
    member = LinearMember(2).fit(MemberData(data.texts, lambda epoch: soft_targets(data)))
    member.save(tmp_path)
    extra = np.zeros(1 << 23)
    with (
        zipfile.ZipFile(tmp_path / "linear.npz", "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("extra.npy", "w") as part,
    ):
        np.lib.format.write_array(part, extra)
    tracemalloc.start()
    again = LinearMember.load(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < extra.nbytes / 4
    np.testing.assert_array_equal(again.predict_proba(data.texts), member.predict_proba(data.texts))
