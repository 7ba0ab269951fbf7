"""Recipes are found by name, and their options are checked before anything is trained."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Literal

import pytest

from edokit.members import Group, Member
from edokit.members.recipe_options import Range, known_options
from edokit.members.registry import find_recipe, make_member, recipe_names
from tests.errors import raises_code


def recipe_options(recipe: str, options: Mapping[str, object]) -> Mapping[str, object]:
    """The options of a group, once they are checked."""
    return Group(recipe, options=options).checked().options


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_found(name: str) -> None:
    assert Member in find_recipe(name).__mro__


def test_a_recipe_of_ones_own_is_named_by_its_place() -> None:
    assert find_recipe("member_cases:PriorMember").__name__ == "PriorMember"


@pytest.mark.parametrize(
    ("name", "code", "fact"),
    [
        (
            "lineal",
            "unknown-recipe",
            "'embeddings', 'encoder', 'linear', 'llm', 'nearest', 'sklearn', 'transformer',"
            " 'trees'",
        ),
        ("no_such_module:Member", "failed-import", "no_such_module"),
        ("member_cases:Nobody", "failed-import", "Nobody"),
        ("member_cases:NotARecipe", "invalid-plugin", "edokit.members.Member"),
        ("member_cases:KIND", "invalid-plugin", "edokit.members.Member"),
        (f"edokit.{'a.' * 300}b:Member", "failed-import", "edokit.a.a"),
        ("..relative:Member", "failed-import", "..relative"),
        ("a" * 50_000, "unknown-recipe", "'aaa"),
    ],
)
def test_anything_else_is_refused(name: str, code: str, fact: str) -> None:
    with raises_code(code, fact):
        find_recipe(name)


def test_options_are_understood_as_text_and_as_values() -> None:
    same = {"strength": 3.0, "fewest": 4}
    assert recipe_options("linear", {"strength": "3", "fewest": "4"}) == same
    assert recipe_options("linear", {"strength": 3, "fewest": 4}) == same


class LengthMember(Member):
    """A recipe whose options have limits, and no fields."""

    def __init__(
        self,
        n_classes: int,
        *,
        bins: Annotated[int, "number", Range(1)] = 3,
        kind: Literal["words", "signs"] = "words",
    ) -> None:
        self.n_classes = n_classes
        self.bins = bins
        self.kind = kind


@pytest.mark.parametrize(
    ("options", "code"), [({"bins": 0}, "invalid-number"), ({"kind": "lines"}, "unknown-choice")]
)
def test_limits_hold_without_a_call_of_the_recipe(
    options: Mapping[str, str | int], code: str
) -> None:
    recipe = f"{__name__}:LengthMember"
    assert make_member(recipe, 2, {"bins": 1}).get_params()["bins"] == 1
    with raises_code(code, next(iter(options))):
        make_member(recipe, 2, options)


class LackingMember(Member):
    """A recipe with an option that has no default."""

    def __init__(self, n_classes: int, *, bins: int) -> None:
        self.n_classes = n_classes
        self.bins = bins


def test_an_option_without_a_default_is_refused() -> None:
    with raises_code("invalid-plugin", "bins"):
        find_recipe(f"{__name__}:LackingMember")


def test_truth_and_nothing_are_understood() -> None:
    given = {"speaker_tags": "true", "annotators": "False", "weight_decay": "none"}
    wanted = {"speaker_tags": True, "annotators": False, "weight_decay": None}
    assert recipe_options("transformer", given) == wanted
    assert recipe_options("transformer", {"weight_decay": "0.01"}) == {"weight_decay": 0.01}


def test_text_that_looks_like_a_number_stays_text_where_text_is_wanted() -> None:
    assert recipe_options("encoder", {"model": "7"}) == {"model": "7"}


@pytest.mark.parametrize(
    ("options", "code", "fact"),
    [
        ({"strenght": 1}, "unknown-option", "strength, context"),
        ({"strength": "much"}, "invalid-option", "strength is 'much'"),
        ({"fewest": 2.5}, "invalid-option", "fewest is 2.5"),
        ({"fewest": True}, "invalid-option", "fewest is True"),
        ({"device": "cpu"}, "unknown-option", "'device'"),
        ({"n_classes": 3}, "unknown-option", "'n_classes'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], code: str, fact: str) -> None:
    with raises_code(code, fact):
        recipe_options("linear", options)


@pytest.mark.parametrize("value", ["maybe", "none", None])
def test_an_option_that_is_true_or_false_takes_nothing_else(value: str | None) -> None:
    with raises_code("invalid-option", "true or false"):
        recipe_options("nearest", {"annotators": value})


def test_the_device_reaches_recipes_that_compute_with_torch() -> None:
    assert find_recipe("transformer").capabilities.device
    assert find_recipe("encoder").capabilities.device
    assert not find_recipe("linear").capabilities.device
    assert make_member("encoder", 2, {}, "cpu").device == "cpu"  # type: ignore[attr-defined]
    assert "device" not in known_options(find_recipe("encoder"))


def test_importing_the_room_loads_nothing_heavy() -> None:
    heavy = ("sklearn", "torch", "transformers", "pandas", "pyarrow", "skops", "joblib", "scipy")
    code = f"import edokit.members, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
