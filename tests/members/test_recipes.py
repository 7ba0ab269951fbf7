"""Every recipe keeps the same promises."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people

from edokit import EDOWarning
from edokit._types import Floats
from edokit.members import Member, MemberData
from edokit.members.contexts import Text
from edokit.members.recipe_options import known_options
from edokit.members.registry import find_recipe, make_member
from edokit.members.supervision import majority_targets, soft_targets

pytestmark = pytest.mark.usefixtures("own_cache")

RECIPES = {
    "linear": {},
    "encoder": {},
    "nearest": {"model": None},
    "sklearn": {"estimator": "sklearn.naive_bayes.ComplementNB(alpha=0.3)"},
    "trees": {"trees": 5},
    "transformer": {"epochs": 1, "max_length": 24},
}


@pytest.fixture(params=RECIPES)
def recipe(request: pytest.FixtureRequest, model: str) -> tuple[str, dict[str, object]]:
    name: str = request.param
    more = {"model": model} if "model" in known_options(find_recipe(name)) else {}
    return name, {**more, **RECIPES[name]}


def made(recipe: tuple[str, dict[str, object]], n_classes: int = 2) -> Member:
    return make_member(recipe[0], n_classes, recipe[1], "cpu")


def lesson_of(
    texts: Sequence[Text], targets: Floats, recipe: tuple[str, dict[str, object]]
) -> MemberData:
    return MemberData(texts, lambda epoch: targets, corpus=tuple(texts))


def test_it_learns_from_shares_and_comes_back_from_its_folder(
    recipe: tuple[str, dict[str, object]], tmp_path: Path
) -> None:
    data = small_people()
    member = made(recipe)
    member.fit(lesson_of(data.texts, soft_targets(data), recipe), random_state=1)
    new = [*data.texts[:5], "something never seen before"]
    answers = member.predict_proba(new)
    assert answers.shape == (6, 2)
    np.testing.assert_allclose(answers.sum(axis=1), 1, atol=1e-6)
    (tmp_path / "kept").mkdir()
    member.save(tmp_path / "kept")
    again = find_recipe(recipe[0]).load(tmp_path / "kept")
    np.testing.assert_allclose(again.predict_proba(new), answers, atol=1e-6)


def test_nothing_it_keeps_is_a_pickle(
    recipe: tuple[str, dict[str, object]], tmp_path: Path
) -> None:
    data = small_people(24)
    member = made(recipe)
    member.fit(lesson_of(data.texts, majority_targets(data), recipe), random_state=1)
    (tmp_path / "kept").mkdir()
    member.save(tmp_path / "kept")
    endings = {file.suffix for file in (tmp_path / "kept").rglob("*") if file.is_file()}
    assert endings <= {".npz", ".skops", ".safetensors", ".json", ".txt"}


def test_the_same_seed_gives_the_same_member(recipe: tuple[str, dict[str, object]]) -> None:
    data = small_people(24)
    lesson = lesson_of(data.texts, majority_targets(data), recipe)
    first = made(recipe)
    second = made(recipe)
    first.fit(lesson, random_state=5)
    second.fit(lesson, random_state=5)
    np.testing.assert_array_equal(first.predict_proba(data.texts), second.predict_proba(data.texts))


def test_it_reads_pairs(recipe: tuple[str, dict[str, object]]) -> None:
    data = small_people(24)
    pairs = [(str(text), "nice day\nyou are late") for text in data.texts]
    member = made(recipe)
    member.fit(lesson_of(pairs, soft_targets(data), recipe), random_state=1)
    assert member.predict_proba(pairs[:3]).shape == (3, 2)


def test_one_class_gives_a_constant_member_and_a_warning(
    recipe: tuple[str, dict[str, object]], tmp_path: Path
) -> None:
    data = small_people(24)
    member = made(recipe, n_classes=3)
    with pytest.warns(EDOWarning, match="24 targets are the same"):
        member.fit(lesson_of(data.texts, np.eye(3)[np.full(24, 1)], recipe), random_state=1)
    answers = member.predict_proba(["anything", "else"])
    np.testing.assert_allclose(answers[0], answers[1])
    assert answers[0].argmax() == 1
    assert (answers > 0).all()
    member.save(tmp_path)
    np.testing.assert_allclose(
        find_recipe(recipe[0]).load(tmp_path).predict_proba(["anything", "else"]), answers
    )


def test_every_option_has_a_plain_default(recipe: tuple[str, dict[str, object]]) -> None:
    for default in known_options(find_recipe(recipe[0])).values():
        assert default is None or isinstance(default, str | int | float | bool)
        assert default is not inspect.Parameter.empty
