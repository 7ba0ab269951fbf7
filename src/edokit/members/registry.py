"""Recipes by name, loaded when they are first used, and made from checked options.

A new recipe is one file in ``recipes``, called like it, with its class.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from edokit._errors import InputError, examples
from edokit.members import recipes
from edokit.members.recipe import Member


def recipe_names() -> list[str]:
    """The names of all recipes; nothing of them is loaded."""
    return sorted(module.name for module in pkgutil.iter_modules(recipes.__path__))


def find_recipe(name: str) -> type[Member]:
    """The recipe of this name, or the class at ``package.module:Class``."""
    if name in recipe_names():
        return _only_recipe(f"{recipes.__name__}.{name}")
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InputError(
            f"the recipe must be one of {', '.join(map(repr, recipe_names()))} or"
            f" 'package.module:Class', but got {name!r}",
            "choose one of these",
        )
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the recipe {name!r} must be importable, but: {error}", "check the spelling"
        ) from error
    if not (isinstance(found, type) and Member in found.__mro__):
        raise InputError(
            f"the recipe {name!r} must be a class with edokit.members.recipe.Member as its base,"
            " but is not",
            "see edokit/members/linear.py for an example",
        )
    return found


def _only_recipe(module: str) -> type[Member]:
    """The class with `Member` as its base that a file of ``recipes`` holds."""
    found = [
        value
        for value in vars(import_module(module)).values()
        if isinstance(value, type) and value is not Member and Member in value.__mro__
    ]
    if len(found) != 1:
        raise InputError(
            f"a file of recipes must hold one class with edokit.members.recipe.Member as its base,"
            f" but {module} holds {len(found)}",
            "see edokit/members/linear.py for an example",
        )
    return found[0]


def known_options(recipe: type) -> dict[str, Any]:
    """The recipe's options and their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(recipe).parameters.items()
        if name not in ("n_classes", "device") and parameter.kind is not parameter.VAR_KEYWORD
    }


def checked_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe in their own types; text such as "3" or "true" is understood."""
    return typed_options(f"the recipe {name!r}", known_options(find_recipe(name)), options)


def typed_options(who: str, known: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """These options in the types of their defaults; what is not among the known is refused."""
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"{who} has the options {', '.join(known) or '(none)'}, but got {examples(unknown)}",
            "check the spelling",
        )
    return {option: _typed(option, value, known[option]) for option, value in options.items()}


def takes_device(recipe: type[Member]) -> bool:
    """Whether the recipe computes with torch."""
    return "device" in inspect.signature(recipe).parameters


def make_member(
    name: str, n_classes: int, options: Mapping[str, Any], device: str | None = None
) -> Member:
    """A member that is not fitted yet."""
    recipe: Any = find_recipe(name)
    more = {"device": device} if takes_device(recipe) else {}
    member: Member = recipe(n_classes, **options, **more)
    return member


def _typed(option: str, value: Any, default: Any) -> Any:
    if isinstance(value, str) and not isinstance(default, str):
        value = plain_value(value)
    if value is None or default is None:
        return value
    kind = type(default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
        raise InputError(
            f"the option {option} must be {names.get(kind, kind.__name__)}, but got {value!r}",
            f"its default is {default!r}",
        )
    return value


def plain_value(text: str) -> Any:
    """``"3"`` as 3, ``"true"`` as True; what is no number and no such word is text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
