"""Groups of members: one recipe each, from text or a TOML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from edokit._errors import InputError, check_number, errors_in, examples, one_of, option
from edokit._io.documents import Document, read_model
from edokit.members.layout import FOLDER_NAME
from edokit.members.recipe_options import (
    check_options,
    known_options,
    learns_items,
    learns_people,
)
from edokit.members.registry import find_recipe
from edokit.members.supervision import (
    EPOCH,
    ONCE,
    PER_ANNOTATOR,
    PER_GROUP,
    RANDOM_SELECT,
    SUPERVISIONS,
)
from edokit.members.trust import refuse_code

_DEFAULT_MEMBERS = 10


@dataclass(frozen=True)
class Group:
    """Members of one recipe that differ in their targets, or by chance.

    If options have several values, there is a group for each combination of them.

    Parameters
    ----------
    recipe : str
        ``"linear"``, ``"trees"``, ``"nearest"``, ``"encoder"``,
        ``"embeddings"``, ``"sklearn"``, ``"transformer"``, ``"llm"`` or ``"package.module:Class"``.
    members : int, default=None
        Number of members. None: 10, or 1 if the recipe asks a server. With per-group supervision
        there is one for each level, and no other number is accepted.
    name : str, default=""
        The name of the group. Empty: that of the recipe.
    supervision : {"random-select", "per-annotator", "per-group", "soft", "majority"}
        Which labels are the targets; "random-select" by default.
    draw : {"epoch", "once"}, default=None
        When random-select draws. None: every epoch if the recipe has epochs.
    options : mapping, default={}
        Options of the recipe. For several values, a list or a mapping of names to values.
    attribute : str, default=None
        With per-group supervision: the attribute of annotators, such as ``"country"``, whose levels
        get a member each.
    levels : sequence of str, default=()
        With per-group supervision: the levels that get a member. Empty: all.
    """

    recipe: str
    members: int | None = None
    name: str = ""
    supervision: str = RANDOM_SELECT
    draw: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    attribute: str | None = None
    levels: Sequence[str] = ()

    @property
    def n_members(self) -> int:
        """Number of members; known once the group is checked and its levels are found."""
        assert self.members is not None
        return self.members

    @property
    def title(self) -> str:
        """The name of the group, or that of its recipe."""
        return self.name or self.recipe.rpartition(":")[2]

    def checked(self) -> Group:
        """The same group with defaults filled in; an invalid one is refused."""
        recipe = find_recipe(self.recipe)
        name = self.title
        check_folder_name(name)
        one_of("supervision", self.supervision, SUPERVISIONS)
        members = self.members
        if self.supervision == PER_GROUP:
            self._check_levels()
        else:
            self._refuse_levels()
            if members is None:
                members = default_members(self.recipe)
        if members is not None:
            check_number("members", members, 1, whole=True)
        draws = (EPOCH, ONCE) if recipe.capabilities.epochs else (ONCE,)
        draw = self.draw or draws[0]
        one_of("draw", draw, draws)
        _refuse_retired(self.recipe, self.options)
        options = check_options(f"the recipe {self.recipe!r}", known_options(recipe), self.options)
        target_of = {PER_ANNOTATOR: "one annotator", PER_GROUP: "one level of an attribute"}
        if self.supervision in target_of and learns_people(recipe, options):
            people = recipe.capabilities.people
            raise InputError(
                f"group {name!r} learns individual annotators (option {people}), but with"
                f" {option('supervision', self.supervision)} each member learns"
                f" {target_of[self.supervision]}",
                f"choose another supervision, or leave {people} out",
                code="conflicting-options",
            )
        if not learns_items(recipe, options):
            if self.supervision == PER_GROUP:
                raise InputError(
                    f"group {name!r} learns nothing from the items, so that the members of all"
                    f" levels of {self.attribute} would be the same",
                    "choose another recipe or supervision",
                    code="identical-members",
                )
            if members != 1:
                raise InputError(
                    f"group {name!r} has {option('members', members)}, which would all be the"
                    " same: it learns nothing from the items",
                    "ask for one; several models, prompts or personas make members that differ",
                    code="identical-members",
                )
        return replace(
            self,
            name=name,
            members=members,
            draw=draw,
            options=recipe.checked_options(options),
            levels=tuple(self.levels),
        )

    def _check_levels(self) -> None:
        """Refuse per-group supervision without an attribute, and levels that are named twice."""
        if not self.attribute:
            raise InputError(
                f"{option('supervision', PER_GROUP)} trains a member for each level of an attribute"
                " of the annotators, but names none",
                f"name a column of the annotations: {option('attribute', 'country')}",
                code="missing-option",
            )
        if isinstance(self.levels, str):
            raise InputError(
                f"{option('levels')} is one string, not a list of levels",
                f"name each of them: {option('levels', ['a', 'b'])}",
                code="invalid-option",
            )
        repeated = sorted({level for level in self.levels if list(self.levels).count(level) > 1})
        if repeated:
            raise InputError(
                f"{option('levels')} names {examples(repeated)} twice",
                "name it once",
                code="duplicate-name",
            )

    def _refuse_levels(self) -> None:
        """Refuse an attribute or levels with a supervision that does not use them."""
        for name, value in {"attribute": self.attribute, "levels": self.levels}.items():
            if value:
                raise InputError(
                    f"{option(name, value)} is for per-group supervision, but group {self.title!r}"
                    f" has {option('supervision', self.supervision)}",
                    f"leave it out, or choose {option('supervision', PER_GROUP)}",
                    code="conflicting-options",
                )

    def expanded(self) -> list[Group]:
        """A group for each combination of the values of its options."""
        values_of = {
            key: _named_values(key, value)
            for key, value in self.options.items()
            if isinstance(value, Mapping | list | tuple)
        }
        if not values_of:
            return [self]
        titled = find_recipe(self.recipe).capabilities.titled
        groups = []
        # A combination is the name of one value of each of these options.
        for combination in product(*values_of.values()):
            options = dict(self.options)
            for key, value_name in zip(values_of, combination, strict=True):
                options[key] = values_of[key][value_name]
                if isinstance(self.options[key], Mapping) and key in titled:
                    options[f"{key}_name"] = value_name
            group_name = "-".join([self.title, *combination])
            groups.append(replace(self, name=group_name, options=options))
        return groups


def _named_values(option_name: str, values: Any) -> dict[str, Any]:
    """Values of an option by name: as declared, else the value if it is short, else its number."""
    if not values:
        raise InputError(
            f"the option {option_name} is an empty list", "name a value", code="empty-option"
        )
    listed = list(values.values()) if isinstance(values, Mapping) else list(values)
    repeated = [value for number, value in enumerate(listed) if value in listed[:number]]
    if repeated:
        raise InputError(
            f"the option {option_name} has {examples(repeated)} twice",
            "name it once",
            code="repeated-option",
        )
    if isinstance(values, Mapping):
        return {str(name): value for name, value in values.items()}
    words = [_word(str(value)) for value in listed]
    if not all(words) or len(set(words)) < len(words):
        words = [f"{option_name}-{number + 1}" for number in range(len(words))]
    return dict(zip(words, listed, strict=True))


def _word(value: str) -> str:
    """The last part of a name or path; empty if it is long or has blanks."""
    part = re.sub(r"\.(?:txt|md|json)$", "", value.rpartition("/")[2])
    word = re.sub(r"[^A-Za-z0-9._]+", "-", part)
    has_blanks = any(character.isspace() for character in value)
    if len(word) > 40 or has_blanks:
        return ""
    return word.strip("-")


def check_folder_name(name: str) -> None:
    """Raise an error if a group or member has a name that a folder can't have."""
    if not re.fullmatch(FOLDER_NAME, name):
        raise InputError(
            f"folders are named after groups and members, but {name!r} is not made of letters,"
            " digits, '.', '_' and '-', a letter or digit first",
            "choose another name",
            code="invalid-name",
        )


def parse_groups(
    text: str,
    *,
    members: int | None = None,
    supervision: str = RANDOM_SELECT,
    draw: str | None = None,
    options: Mapping[str, Any] | None = None,
    attribute: str | None = None,
    levels: Sequence[str] = (),
) -> list[Group]:
    """Groups from a text such as ``"linear:5,encoder:5"``, or from a TOML file.

    Parameters
    ----------
    text : str
        A recipe, recipes with numbers of members, or the path of a file with ``[[group]]`` tables;
        a file can't name code: no ``package.module:Class``, and no option ``allow``.
    members : int, default=None
        Number of members if ``text`` is one recipe without a number. None: see `Group`.
    supervision, draw
        For groups that don't set them; see `Group`.
    options : mapping, default=None
        Options by name: ``option`` is set in every group whose recipe has it, ``group.option`` in
        one group. Several values make several groups, see `Group`.
    attribute : str, default=None
        For groups with per-group supervision: the attribute whose levels get a member each.
    levels : sequence of str, default=()
        For these groups: the levels that get a member. Empty: all.

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
    is_file = text.endswith(".toml")
    parts = [_split_count(part.strip()) for part in text.split(",")]
    has_numbers = is_file or len(parts) > 1 or parts[0][1] is not None
    if members is not None and has_numbers:
        raise InputError(
            f"{option('members', members)} is for one recipe without a number, not for {text!r}",
            "leave it out",
            code="conflicting-options",
        )
    if is_file:
        groups = read_groups(
            text,
            options or {},
            supervision=supervision,
            draw=draw,
            attribute=attribute,
            levels=levels,
        )
        with errors_in(text):
            return check_groups(_with_options(groups, options or {}))
    groups = []
    for recipe, count in parts:
        group = Group(
            recipe,
            members if count is None else count,
            supervision=supervision,
            draw=draw,
            attribute=attribute,
            levels=levels,
        )
        groups.append(group)
    return check_groups(_with_options(groups, options or {}))


def default_members(recipe: str) -> int:
    """Number of members of a group by default: one if a server is asked, whose answers are paid."""
    if find_recipe(recipe).capabilities.endpoint:
        return 1
    return _DEFAULT_MEMBERS


def check_groups(groups: Iterable[Group]) -> list[Group]:
    """The groups with defaults and combinations filled in; names must differ."""
    checked = [part.checked() for group in groups for part in group.expanded()]
    names = [group.name for group in checked]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"several groups are called {examples(repeated)}",
            "name them in a TOML file",
            code="duplicate-name",
        )
    if not checked:
        raise InputError(
            "no group of members is named to train", "name a recipe", code="empty-option"
        )
    return checked


def attributes_of(groups: Iterable[Group]) -> list[str]:
    """The attributes of annotators that groups learn by."""
    return list(dict.fromkeys(group.attribute for group in groups if group.attribute))


class _GroupTable(Document):
    """A ``[[group]]`` table of a TOML file."""

    model_config = ConfigDict(extra="forbid")

    recipe: str
    members: int | None = None
    name: str = ""
    supervision: str | None = None
    draw: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    attribute: str | None = None
    levels: list[str] = Field(default_factory=list)


class _GroupFile(Document):
    model_config = ConfigDict(extra="forbid")

    group: list[_GroupTable]


def read_groups(
    path: str | Path,
    overridden: Collection[str] = (),
    *,
    supervision: str = RANDOM_SELECT,
    draw: str | None = None,
    attribute: str | None = None,
    levels: Sequence[str] = (),
) -> list[Group]:
    """Read groups from a TOML file with a ``[[group]]`` table each.

    ``supervision``, ``draw``, ``attribute`` and ``levels`` are for groups that don't set them, the
    last two for groups with per-group supervision. ``overridden`` are the options, ``option`` or
    ``group.option``, that the caller sets: what the file says of them is ignored, so it may even
    name code.
    """
    hint = (
        'write [[group]] and under it recipe = "linear"; a group may also have members, name,'
        " supervision, draw, attribute, levels and options"
    )
    groups = []
    tables = read_model(path, _GroupFile, title="a file of [[group]] tables", hint=hint).group
    for number, table in enumerate(tables, start=1):
        source = f"group {number} of {path}"
        refuse_code(source, table.recipe)
        with errors_in(path):
            recipe = find_recipe(table.recipe)
        name = table.name or table.recipe
        options = {
            key: value
            for key, value in table.options.items()
            if key not in overridden and f"{name}.{key}" not in overridden
        }
        group = Group(
            recipe=table.recipe,
            members=table.members,
            name=table.name,
            supervision=supervision if table.supervision is None else table.supervision,
            draw=draw if table.draw is None else table.draw,
            options=recipe.checked_options(options, source),
            attribute=table.attribute,
            levels=table.levels,
        )
        if group.supervision == PER_GROUP:
            group = replace(
                group,
                attribute=table.attribute or attribute,
                levels=table.levels or levels,
            )
        groups.append(group)
    return groups


def _refuse_retired(recipe: str, options: Iterable[str]) -> None:
    """Raise an error if an option is one that the recipe no longer has."""
    for retired in find_recipe(recipe).capabilities.retired:
        if retired.name in options:
            raise InputError(
                f"the recipe {recipe!r} no longer has the option {retired.name}",
                retired.hint,
                code="retired-option",
            )


def _split_count(text: str) -> tuple[str, int | None]:
    """A recipe and its number of members, from text such as ``linear:5``."""
    name, colon, count = text.rpartition(":")
    if colon and re.fullmatch(r"-?\d+", count):
        return name, int(count)
    return text, None


def _with_options(groups: list[Group], options: Mapping[str, Any]) -> list[Group]:
    """Groups with these options: ``option`` of all that have it, ``group.option`` of one."""
    options_of = {group.title: known_options(find_recipe(group.recipe)) for group in groups}
    changes: dict[str, dict[str, Any]] = {title: {} for title in options_of}
    for key, value in options.items():
        title, dot, name = key.partition(".")
        if dot:
            titles = [title] if title in options_of else []
        else:
            name = key
            titles = [title for title in options_of if key in options_of[title]]
        if not titles:
            for group in groups:
                _refuse_retired(group.recipe, [name])
            lists = [
                f"{title}: {', '.join(option_names) or 'none'}"
                for title, option_names in options_of.items()
            ]
            raise InputError(
                f"no group has the option {key!r}; the options are: {'; '.join(lists)}",
                "check the spelling",
                code="unknown-option",
            )
        for title in titles:
            changes[title][name] = value
    return [replace(group, options={**group.options, **changes[group.title]}) for group in groups]
