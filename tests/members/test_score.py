"""Trained members judge new texts exactly as they judged the splits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people

from edokit import Annotations, score_members, train_members
from edokit.members import parse_groups
from edokit.members.loaded import load_member
from edokit.members.texts import Texts
from tests.errors import raises_code

PEOPLE = small_people()
TEST = PEOPLE.split("test")
BAYES = {"estimator": "sklearn.naive_bayes.ComplementNB()"}


def asked() -> Texts:
    assert TEST.texts is not None
    return Texts(tuple(TEST.items), tuple(TEST.texts))


def test_scores_of_the_test_texts_are_the_test_predictions(tmp_path: Path) -> None:
    pool = parse_groups("linear:2,sklearn:1", options=BAYES)
    trained = train_members(PEOPLE, pool, out=tmp_path, jobs=1)
    scored = score_members(tmp_path, asked())
    kept = trained.predictions["test"]
    assert (scored.members, scored.groups, scored.classes) == (
        kept.members,
        kept.groups,
        kept.classes,
    )
    assert list(scored.items) == list(kept.items)
    np.testing.assert_allclose(scored.probabilities, kept.probabilities, atol=1e-6)
    of_annotations = score_members(tmp_path, TEST)
    assert list(of_annotations.items) == list(kept.items)
    np.testing.assert_array_equal(of_annotations.probabilities, scored.probabilities)


def test_annotations_without_texts_are_not_scored(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path, jobs=1)
    with raises_code("missing-texts"):
        score_members(tmp_path, Annotations.from_matrix([["a", "b"], ["b", "b"]]))


def test_members_trained_in_folds_answer_with_their_mean(tmp_path: Path) -> None:
    trained = train_members(PEOPLE, parse_groups("linear:2"), out=tmp_path, cross_fit=3, jobs=1)
    scored = score_members(tmp_path, asked())
    np.testing.assert_allclose(
        scored.probabilities, trained.predictions["test"].probabilities, atol=1e-6
    )


def test_named_members_answer_in_the_order_of_their_names(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups("linear:3"), out=tmp_path, jobs=1)
    everyone = score_members(tmp_path, ["tea", "awful"])
    some = score_members(tmp_path, ["tea", "awful"], ["linear-03", "linear-01"])
    assert some.members == ("linear-03", "linear-01")
    assert list(some.items) == ["0", "1"]
    np.testing.assert_array_equal(some.probabilities, everyone.probabilities[:, [2, 0]])


@pytest.mark.parametrize("names", [["linear-09"], []])
def test_members_that_are_not_there_are_refused(tmp_path: Path, names: list[str]) -> None:
    train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path, jobs=1)
    with raises_code("unknown-member", "'linear-01'"):
        score_members(tmp_path, ["tea"], names)


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with raises_code("wrong-folder", "manifest.json"):
        score_members(tmp_path, ["tea"])


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path, jobs=1)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with raises_code("wrong-content"):
        score_members(tmp_path, ["tea"])


def test_members_that_were_not_kept_are_refused(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path, keep_models=False, jobs=1)
    with raises_code("missing-model", "keep_models=False"):
        score_members(tmp_path, ["tea"])


def test_a_member_whose_files_changed_is_not_loaded(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path, jobs=1)
    file = tmp_path / "members" / "linear-01" / "linear.npz"
    with file.open("ab") as stream:
        stream.write(b"x")
    with raises_code("damaged-file", "'linear.npz'"):
        score_members(tmp_path, ["tea"])


def test_a_missing_member_folder_is_refused(tmp_path: Path) -> None:
    with raises_code("wrong-folder", "member.json"):
        load_member(tmp_path)


def test_a_recipe_from_elsewhere_is_imported_only_when_trusted(tmp_path: Path) -> None:
    train_members(PEOPLE, parse_groups("member_cases:PriorMember:1"), out=tmp_path, jobs=1)
    with raises_code("untrusted-code", "trust='member_cases'"):
        score_members(tmp_path, ["tea"])
    scored = score_members(tmp_path, ["tea"], trust=["member_cases"])
    assert scored.shape == (1, 1, 2)
