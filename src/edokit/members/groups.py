"""Groups of members: one recipe each, from text or a TOML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from edokit._errors import InputError, check_number, errors_in, examples, one_of, option
from edokit._io.documents import Document, read_model
from edokit.members.recipe import (
    asks_server,
    check_options,
    find_recipe,
    has_epochs,
    known_options,
    learns,
    refuse_code,
)
from edokit.members.supervision import EPOCH, ONCE, PER_ANNOTATOR, RANDOM_SELECT, SUPERVISIONS

_DEFAULT_MEMBERS = 10
# What folders may be called: no path, no odd characters, not too long for a disk.
FOLDER_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"


@dataclass(frozen=True)
class Group:
    """Members of one recipe that differ in their targets, or by chance.

    An option with several values makes a group for each of them, and for each combination where
    several options have some.

    Parameters
    ----------
    recipe : str
        ``"linear"``, ``"nearest"``, ``"encoder"``, ``"sklearn"``, ``"transformer"``, ``"llm"`` or
        ``"package.module:Class"``.
    members : int, default=10
        How many.
    name : str, default=""
        Its name; the recipe's where none is given.
    supervision : {"random-select", "per-annotator", "soft", "majority"}
        Which labels are the targets; "random-select" by default.
    draw : {"epoch", "once"}, default=None
        When random-select draws. None: every epoch if the recipe has epochs.
    options : mapping, default={}
        Options of the recipe; a list of values, or a mapping of names to values, for a group each.
    """

    recipe: str
    members: int = _DEFAULT_MEMBERS
    name: str = ""
    supervision: str = RANDOM_SELECT
    draw: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name, or that of its recipe."""
        return self.name or self.recipe.rpartition(":")[2]

    def checked(self) -> Group:
        """The same group with defaults filled in; an invalid one is refused."""
        recipe, name = find_recipe(self.recipe), self.title
        check_folder_name(name)
        check_number("members", self.members, 1, whole=True)
        one_of("supervision", self.supervision, SUPERVISIONS)
        draw = self.draw or (EPOCH if has_epochs(recipe) else ONCE)
        one_of("draw", draw, (EPOCH, ONCE) if has_epochs(recipe) else (ONCE,))
        options = check_options(f"the recipe {self.recipe!r}", known_options(recipe), self.options)
        for key in ("annotators", "examples"):
            if options.get(key) and self.supervision == PER_ANNOTATOR:
                raise InputError(
                    f"group {name!r} has {key}={options[key]!r}, but with"
                    f" {option('supervision', PER_ANNOTATOR)} each member learns one annotator",
                    f"choose another supervision, or leave {key} out",
                )
        if self.members > 1 and not learns(recipe, options):
            raise InputError(
                f"group {name!r} has {option('members', self.members)}, which would all be the"
                " same: it learns nothing from the items",
                "ask for one; several models, prompts or personas make members that differ",
            )
        return replace(self, name=name, draw=draw, options=recipe.checked_options(options))

    def expanded(self) -> list[Group]:
        """A group for each combination of the values of its options."""
        values_of = {
            key: _named_values(key, value)
            for key, value in self.options.items()
            if isinstance(value, Mapping | list | tuple)
        }
        if not values_of:
            return [self]
        groups, recipe_options = [], known_options(find_recipe(self.recipe))
        for combination in product(*(values.items() for values in values_of.values())):
            options = dict(self.options)
            for key, (name, value) in zip(values_of, combination, strict=True):
                options[key] = value
                if isinstance(self.options[key], Mapping) and f"{key}_name" in recipe_options:
                    options[f"{key}_name"] = name
            name = "-".join([self.title, *(name for name, _ in combination)])
            groups.append(replace(self, name=name, options=options))
        return groups


def _named_values(option_name: str, values: Any) -> dict[str, Any]:
    """Values of an option by a word for each: the value itself if it is short, else its number."""
    if not values:
        raise InputError(f"the option {option_name} is an empty list", "name a value")
    listed = list(values.values() if isinstance(values, Mapping) else values)
    if repeated := [value for k, value in enumerate(listed) if value in listed[:k]]:
        raise InputError(f"the option {option_name} has {examples(repeated)} twice", "name it once")
    if isinstance(values, Mapping):
        return {str(name): value for name, value in values.items()}
    words = [_word(str(value)) for value in listed]
    if not all(words) or len(set(words)) < len(words):
        words = [f"{option_name}-{k + 1}" for k in range(len(words))]
    return dict(zip(words, listed, strict=True))


def _word(value: str) -> str:
    """The last part of a name or path, if it is short and has no blanks."""
    part = re.sub(r"\.(?:txt|md|json)$", "", value.rpartition("/")[2])
    word = re.sub(r"[^A-Za-z0-9._]+", "-", part)
    return "" if len(word) > 40 or any(map(str.isspace, value)) else word.strip("-")


def check_folder_name(name: str) -> None:
    """Refuse a name of a group or member after which no folder can be named."""
    if not re.fullmatch(FOLDER_NAME, name):
        raise InputError(
            f"folders are named after groups and members, but {name!r} is not made of letters,"
            " digits, '.', '_' and '-', a letter or digit first",
            "choose another name",
        )


def parse_groups(
    text: str,
    *,
    members: int | None = None,
    supervision: str = RANDOM_SELECT,
    draw: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Group]:
    """Groups from a text such as ``"linear:5,encoder:5"``, or from a TOML file.

    Parameters
    ----------
    text : str
        A recipe, recipes with numbers of members, or the path of a file with ``[[group]]`` tables;
        a file can't name code: no ``package.module:Class``, and no option ``allow``.
    members : int, default=None
        Members of a single group whose text gives no number. None: 10, or 1 of ``llm``.
    supervision, draw
        Of groups that don't have their own; see `Group`.
    options : mapping, default=None
        An option goes to every group that has one of that name; ``group.option`` to one group. A
        list of values makes a group for each, see `Group`.

    Returns
    -------
    list of Group
        Checked groups.

    Raises
    ------
    InputError
        If a recipe or an option is unknown or invalid.

    Examples
    --------
    >>> from edokit.members import parse_groups
    >>> [(group.name, group.members) for group in parse_groups("linear:5,encoder:3")]
    [('linear', 5), ('encoder', 3)]
    """
    defaults: dict[str, Any] = {"supervision": supervision, "draw": draw}
    toml = text.endswith(".toml")
    parts = [_split_count(part.strip()) for part in text.split(",")]
    if members is not None and (toml or len(parts) > 1 or parts[0][1] is not None):
        raise InputError(
            f"{option('members', members)}: the number of members is already in {text!r}",
            "leave it out",
        )
    groups = read_groups(text, options or {}, **defaults) if toml else []
    for recipe, count in () if toml else parts:
        if count is None:
            count = usual_members(recipe) if members is None else members
        groups.append(Group(recipe, count, **defaults))
    with errors_in(text) if toml else nullcontext():
        return check_groups(_with_options(groups, options or {}))


def usual_members(recipe: str) -> int:
    """How many members a group has by default; a server gives one answer to one question."""
    return 1 if asks_server(find_recipe(recipe)) else _DEFAULT_MEMBERS


def check_groups(groups: Iterable[Group]) -> list[Group]:
    """The groups with defaults and combinations filled in; names must differ."""
    checked = [part.checked() for group in groups for part in group.expanded()]
    names = [group.name for group in checked]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"several groups are called {examples(repeated)}", "name them in a TOML file"
        )
    if not checked:
        raise InputError("there is no group of members to train", "name a recipe")
    return checked


class _GroupTable(Document):
    """A ``[[group]]`` table of a TOML file."""

    model_config = ConfigDict(extra="forbid")

    recipe: str
    members: int | None = None
    name: str = ""
    supervision: str | None = None
    draw: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class _GroupFile(Document):
    model_config = ConfigDict(extra="forbid")

    group: list[_GroupTable]


def read_groups(path: str | Path, replaced: Collection[str] = (), **defaults: Any) -> list[Group]:
    """Read groups from a TOML file with a ``[[group]]`` table each.

    ``defaults`` fill in what a table leaves out. Options that others replace, ``option`` or
    ``group.option``, may name code.
    """
    hint = (
        'write [[group]] and under it recipe = "linear"; a group may also have members, name,'
        " supervision, draw and options"
    )
    groups = []
    tables = read_model(path, _GroupFile, title="a file of [[group]] tables", hint=hint).group
    for number, table in enumerate(tables, start=1):
        name = table.name or table.recipe
        options = {
            key: value
            for key, value in table.options.items()
            if not {key, f"{name}.{key}"} & {*replaced}
        }
        source = f"group {number} of {path}"
        refuse_code(source, table.recipe)
        with errors_in(path):
            members = usual_members(table.recipe)
        options = find_recipe(table.recipe).checked_options(options, source)
        values = {**table.model_dump(exclude_none=True), "options": options}
        groups.append(Group(**{"members": members, **defaults, **values}))
    return groups


def _split_count(text: str) -> tuple[str, int | None]:
    name, colon, count = text.rpartition(":")
    return (name, int(count)) if colon and re.fullmatch(r"-?\d+", count) else (text, None)


def _with_options(groups: list[Group], options: Mapping[str, Any]) -> list[Group]:
    """Groups with these options: ``option`` of all that have it, ``group.option`` of one."""
    names_of = {group.title: known_options(find_recipe(group.recipe)) for group in groups}
    changes: dict[str, dict[str, Any]] = {title: {} for title in names_of}
    for key, value in options.items():
        title, dot, name = key.partition(".")
        fitting = [title] if dot else [group for group in names_of if key in names_of[group]]
        if not fitting or fitting[0] not in names_of:
            lists = [f"{group}: {', '.join(names) or 'none'}" for group, names in names_of.items()]
            raise InputError(
                f"no group has the option {key!r}; the options are: {'; '.join(lists)}",
                "check the spelling",
            )
        for group in fitting:
            changes[group][name if dot else key] = value
    return [replace(group, options={**group.options, **changes[group.title]}) for group in groups]
