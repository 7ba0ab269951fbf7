"""The options of recipes: their names, types and limits."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from edokit._errors import InputError, check_number, examples, one_of
from edokit.members.recipe import Member, OptionValues

# What an option may be.
OptionValue = str | int | float | bool | None

_NOUNS = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}


class Range(NamedTuple):
    """The numbers that an option may have, as in ``Annotated[int, Range(1)]``.

    ``least`` itself is excluded if ``above`` is set.
    """

    least: float
    largest: float = float("inf")
    above: bool = False


def known_options(recipe: type[Member]) -> dict[str, OptionValue]:
    """The recipe's options and their defaults."""
    reserved = {"n_classes"}
    if recipe.capabilities.device:
        reserved.add("device")  # the runner's, not an option of a group
    return {
        name: parameter.default
        for name, parameter in inspect.signature(recipe).parameters.items()
        if name not in reserved and parameter.kind is not parameter.VAR_KEYWORD
    }


def learns_people(recipe: type[Member], options: OptionValues) -> bool:
    """Whether a member with these options learns individual annotators."""
    name = recipe.capabilities.people
    if name is None:
        return False
    return bool(options.get(name, known_options(recipe)[name]))


def learns_items(recipe: type[Member], options: OptionValues) -> bool:
    """Whether a member with these options learns from the items to train on."""
    return recipe.capabilities.trained or learns_people(recipe, options)


def check_options(
    owner: str, defaults: Mapping[str, OptionValue], options: OptionValues
) -> dict[str, Any]:
    """Options in the types of their defaults; text such as "3" or "true" is converted."""
    unknown = [name for name in options if name not in defaults]
    if unknown:
        raise InputError(
            f"{owner} has no option {examples(unknown)}; its options are"
            f" {', '.join(defaults) or '(none)'}",
            "check the spelling",
            code="unknown-option",
        )
    return {name: _typed(name, value, defaults[name]) for name, value in options.items()}


def _typed(name: str, value: object, default: OptionValue) -> object:
    """The value of an option in the type of its default."""
    kind = type(default)
    if isinstance(value, str) and kind is not str:
        value = plain_value(value)
    if default is None:
        return value
    # A number may be left unset if its type says so, which `check_values` knows.
    if value is None and kind in (int, float):
        return value
    is_boolean = isinstance(value, bool)  # which Python counts as a whole number
    if kind is float and isinstance(value, int) and not is_boolean:
        return float(value)
    if not isinstance(value, kind) or (is_boolean and kind is not bool):
        default_text = repr(default)
        if kind is bool:
            default_text = default_text.lower()
        raise InputError(
            f"the option {name} is {value!r}, but must be {_NOUNS.get(kind, kind.__name__)}",
            f"its default is {default_text}",
            code="invalid-option",
        )
    return value


def plain_value(text: str) -> OptionValue:
    """``"3"`` as 3, ``"true"`` as True; anything else stays text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def check_values(member: Member) -> None:
    """Check the values of options against the `Range` or ``Literal`` in their types.

    `make_member` does this for every recipe.
    """
    for name, hint in _option_types(type(member)).items():
        if get_origin(hint) is Literal:
            one_of(name, getattr(member, name), get_args(hint))
        elif get_origin(hint) is Annotated:
            value = getattr(member, name)
            kind, *notes = get_args(hint)
            kinds = get_args(kind) or (kind,)
            if value is None and NoneType in kinds:
                continue
            for limits in notes:
                if isinstance(limits, Range):
                    check_number(
                        name,
                        value,
                        limits.least,
                        limits.largest,
                        above=limits.above,
                        whole=int in kinds,
                    )


def _option_types(recipe: type[Member]) -> dict[str, object]:
    """The annotated types of ``n_classes`` and the options: of fields, or of ``__init__``."""
    names = {"n_classes", *known_options(recipe)}
    types: dict[str, object] = {}
    for base in reversed(recipe.__mro__):
        annotations = dict(vars(base).get("__annotations__", {}))
        if not is_dataclass(base) and "__init__" in vars(base):
            annotations |= getattr(vars(base)["__init__"], "__annotations__", {})
        # Types of other attributes may not exist at run time.
        option_types = {name: hint for name, hint in annotations.items() if name in names}
        holder = SimpleNamespace(__annotations__=option_types)
        namespace = vars(sys.modules[base.__module__])
        types |= get_type_hints(holder, namespace, include_extras=True)
    return types
