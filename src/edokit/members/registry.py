"""Recipes by name: those of EDO, and classes of other packages."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import Any, TypeGuard

from edokit._errors import InputError, examples
from edokit.members import recipes
from edokit.members.recipe import Capabilities, Member, OptionValues
from edokit.members.recipe_options import check_values, known_options


def recipe_names() -> list[str]:
    """The names of EDO's recipes, found without importing them."""
    names = [module.name for module in pkgutil.iter_modules(recipes.__path__)]
    # Files with an underscore are parts of recipes.
    return sorted(name for name in names if not name.startswith("_"))


def find_recipe(name: str) -> type[Member]:
    """The recipe of this name, or the class at ``package.module:Class``."""
    if name in recipe_names():
        return _find_builtin(name)
    module_name, colon, class_name = name.partition(":")
    if not colon or module_name in recipe_names():
        hint = "choose one of these"
        if colon:
            hint = f"write {module_name}:10 for ten members"
        raise InputError(
            f"there is no recipe {examples([name])}; recipes are {examples(recipe_names(), 20)} and"
            " 'package.module:Class'",
            hint,
            code="unknown-recipe",
        )
    try:
        recipe = getattr(import_module(module_name), class_name)
    except Exception as error:  # whatever importing an arbitrary module may raise
        raise InputError(
            f"the recipe {examples([name])} can't be imported: {error}",
            "check the spelling",
            code="failed-import",
        ) from error
    if not _is_member(recipe):
        raise InputError(
            f"the recipe {examples([name])} is not a subclass of edokit.members.Member",
            "see edokit/members/recipes/linear.py for an example",
            code="invalid-plugin",
        )
    _check_capabilities(name, recipe)
    return recipe


def _find_builtin(name: str) -> type[Member]:
    """The recipe in the file of this name in ``recipes``, which must define exactly one."""
    module = import_module(f"{recipes.__name__}.{name}")
    classes = [value for value in vars(module).values() if _is_member(value)]
    # Others, such as its base, are imported from elsewhere.
    defined = [member for member in classes if member.__module__ == module.__name__]
    if len(defined) != 1:
        raise InputError(
            f"{module.__name__} defines {len(defined)} recipes, but must define exactly one",
            "put each recipe into a file of its own",
            code="invalid-plugin",
        )
    recipe = defined[0]
    _check_capabilities(name, recipe)
    return recipe


def _check_capabilities(name: str, recipe: type[Member]) -> None:
    """Raise an error if a recipe declares options or parameters that it does not have."""
    capabilities = recipe.capabilities
    if not isinstance(capabilities, Capabilities):
        raise InputError(
            f"the recipe {examples([name])} has capabilities = {capabilities!r}",
            "declare them as edokit.members.Capabilities(…)",
            code="invalid-plugin",
        )
    for option_name, default in known_options(recipe).items():
        if default is not None and not isinstance(default, str | int | float):
            raise InputError(
                f"the option {option_name} of the recipe {examples([name])} has no default that is"
                " text, a number, true, false or None",
                "give it one",
                code="invalid-plugin",
            )
    parameters = inspect.signature(recipe).parameters
    declared = list(capabilities.named_options())
    if capabilities.device:
        declared.append("device")
    missing = [option_name for option_name in declared if option_name not in parameters]
    if missing:
        raise InputError(
            f"the recipe {examples([name])} declares the option {examples(missing)}, which it does"
            " not have",
            "correct its capabilities",
            code="invalid-plugin",
        )
    accepted = inspect.signature(recipe.load).parameters
    refused = [name for name in capabilities.load_parameters() if name not in accepted]
    if refused:
        raise InputError(
            f"the recipe {examples([name])} declares capabilities with which its load must take"
            f" {examples(refused)}, but it does not",
            "add the parameter, or correct its capabilities",
            code="invalid-plugin",
        )


def _is_member(value: object) -> TypeGuard[type[Member]]:
    return isinstance(value, type) and issubclass(value, Member)


def make_member(
    name: str, n_classes: int, options: OptionValues, device: str | None = None
) -> Member:
    """A member that is not fitted yet."""
    recipe: Any = find_recipe(name)  # the parameters of a recipe are its own
    member: Member
    if recipe.capabilities.device:
        member = recipe(n_classes, **options, device=device)
    else:
        member = recipe(n_classes, **options)
    check_values(member)
    return member
