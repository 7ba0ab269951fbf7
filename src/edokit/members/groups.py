"""Groups of members: one recipe each, from text or a TOML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from edokit._errors import InputError, MissingExtraError, errors_in, examples, one_of
from edokit._io.schema import needs
from edokit.annotator_effects import attribute_names
from edokit.members.recipe import check_options, find_recipe, known_options, refuse_code
from edokit.members.supervision import Draw, Supervision

MEMBERS = 10
_KEYS = ("name", "recipe", "members", "supervision", "draw", "options")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Group:
    """Members of one recipe that differ in their targets, or by chance.

    An option with several values makes a group for each of them, and for each combination where
    several options have some.

    Parameters
    ----------
    recipe : str
        ``"linear"``, ``"encoder"``, ``"sklearn"``, ``"transformer"``, ``"llm"`` or
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
    members: int = MEMBERS
    name: str = ""
    supervision: str = Supervision.RANDOM_SELECT.value
    draw: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def checked(self) -> Group:
        """The same group with nothing left open, or an error that says what is wrong."""
        recipe = find_recipe(self.recipe)
        name = self.name or self.recipe.rpartition(":")[2]
        if not is_folder_name(name):
            raise InputError(
                f"folders are named after groups, but {name!r} is not made of letters, digits, '.',"
                " '_' and '-', a letter or digit first",
                "rename the group",
            )
        if isinstance(self.members, bool) or not isinstance(self.members, int) or self.members < 1:
            raise InputError(
                f"group {name!r} has {self.members!r} members; it needs a whole number above 0",
                "ask for ten",
                parameters=("members",),
            )
        one_of("supervision", self.supervision, [mode.value for mode in Supervision])
        draw = self.draw or (Draw.EPOCH.value if recipe.resamples else Draw.ONCE.value)
        one_of("draw", draw, [mode.value for mode in Draw])
        if draw == Draw.EPOCH.value and not recipe.resamples:
            raise InputError(
                f"the recipe {self.recipe!r} trains in one pass, so its targets can't be drawn"
                f" anew: draw={draw!r}",
                "leave draw out",
                parameters=("draw",),
            )
        options = check_options(f"the recipe {self.recipe!r}", known_options(recipe), self.options)
        knows = [key for key in ("annotators", "attributes", "examples") if options.get(key)]
        if knows and self.supervision == Supervision.PER_ANNOTATOR.value:
            raise InputError(
                f"group {name!r} has {knows[0]}={options[knows[0]]!r}, but its members learn one"
                " annotator's labels each (supervision='per-annotator')",
                f"choose another supervision, or leave {knows[0]} out",
                parameters=("supervision",),
            )
        if self.members > 1 and not recipe.learns(options):
            raise InputError(
                f"group {name!r} has {self.members} members, but they would all be the same: it"
                " learns nothing from the items",
                "ask for one; several models, prompts or personas make members that differ",
                parameters=("members",),
            )
        return replace(self, name=name, draw=draw, options=recipe.read_options(options))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of annotators that its members use."""
        named = self.options.get("attributes")
        return attribute_names(named) if isinstance(named, str) else ()

    def each(self) -> list[Group]:
        """A group for each combination of the values of its options."""
        several = {
            key: _named_values(key, value)
            for key, value in self.options.items()
            if isinstance(value, Mapping | list | tuple)
        }
        if not several:
            return [self]
        groups, known = [], known_options(find_recipe(self.recipe))
        for chosen in product(*(values.items() for values in several.values())):
            own = dict(zip(several, (value for _, value in chosen), strict=True))
            for key, (name, _) in zip(several, chosen, strict=True):
                if isinstance(self.options[key], Mapping) and f"{key}_name" in known:
                    own[f"{key}_name"] = name
            first = self.name or self.recipe.rpartition(":")[2]
            name = "-".join([first, *(name for name, _ in chosen)])
            groups.append(replace(self, name=name, options={**self.options, **own}))
        return groups


def _named_values(option: str, values: Any) -> dict[str, Any]:
    """Values of an option, each with a word for it: a short value's own, else its number."""
    if not values:
        raise InputError(f"the option {option} is an empty list", "name a value")
    each = list(values.values() if isinstance(values, Mapping) else values)
    if twice := [value for k, value in enumerate(each) if value in each[:k]]:
        raise InputError(f"the option {option} has {examples(twice)} twice", "name it once")
    if isinstance(values, Mapping):
        return {str(name): value for name, value in values.items()}
    words = [
        re.sub(r"[^A-Za-z0-9._]+", "-", re.sub(r"\.(?:txt|md|json)$", "", str(value)))
        for value in (str(value).rpartition("/")[2] for value in values)
    ]
    short = all(word.strip("-") and len(word) <= 40 for word in words)
    short = short and not any(char.isspace() for value in values for char in str(value))
    if not short or len(set(words)) < len(words):
        words = [f"{option}-{k + 1}" for k in range(len(words))]
    return dict(zip((word.strip("-") for word in words), values, strict=True))


def is_folder_name(name: object) -> bool:
    """Whether a folder may be named so: no path, no odd characters."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def folder_name(value: Any, at: str) -> Any:
    """Check of a value in a document: a name that a folder may have."""
    needs(is_folder_name(value), at, "is no name of a folder")
    return value


def parse_groups(
    text: str,
    *,
    members: int | None = None,
    supervision: str = Supervision.RANDOM_SELECT.value,
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

    Examples
    --------
    >>> from edokit.members import parse_groups
    >>> [(group.name, group.members) for group in parse_groups("linear:5,encoder:3")]
    [('linear', 5), ('encoder', 3)]
    """
    common: dict[str, Any] = {"supervision": supervision, "draw": draw}
    toml = text.endswith(".toml")
    parts = [_split_count(part.strip()) for part in text.split(",")]
    if members is not None and (toml or len(parts) > 1 or parts[0][1] is not None):
        raise InputError(
            f"the number of members is given twice: by {text!r} and by members={members}",
            "leave members out",
            parameters=("members",),
        )
    groups = read_groups(text, options or {}, **common) if toml else []
    for recipe, count in () if toml else parts:
        usual = find_recipe(recipe).usual_members if members is None else members
        groups.append(Group(recipe, usual if count is None else count, **common))
    with errors_in(text) if toml else nullcontext():
        return check_groups(_with_options(groups, options or {}))


def check_groups(groups: Iterable[Group]) -> list[Group]:
    """The groups with nothing left open, each name once."""
    checked = [one.checked() for group in groups for one in group.each()]
    names = [group.name for group in checked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"several groups are called {examples(twice)}", "name them in a TOML file")
    if not checked:
        raise InputError("there is no group of members to train", "name a recipe")
    return checked


def read_groups(path: str | Path, replaced: Collection[str] = (), **common: Any) -> list[Group]:
    """Groups from a TOML file with one ``[[group]]`` table each; ``common`` fills what it omits.

    Options that are ``replaced`` by others, ``option`` or ``group.option``, need not be allowed.
    """
    document = _toml(Path(path))
    tables = document.get("group")
    if set(document) != {"group"} or not isinstance(tables, list):
        raise InputError(
            f"{path} holds {examples(document) or 'nothing'} instead of [[group]] tables",
            'write [[group]] and under it recipe = "linear" and members = 5',
        )
    groups = []
    for position, table in enumerate(tables):
        unknown = [key for key in table if key not in _KEYS]
        if unknown or "recipe" not in table:
            raise InputError(
                f"group {position + 1} of {path} has {examples(table, 10)}; a group has a recipe"
                f" and may have {', '.join(_KEYS)}",
                "check the spelling",
            )
        odd = [
            key
            for key in ("recipe", "name", "supervision", "draw")
            if not isinstance(table.get(key, ""), str)
        ]
        if odd or not isinstance(table.get("options", {}), dict):
            raise InputError(
                f"{(odd or ['options'])[0]} of group {position + 1} of {path} is not"
                f" {'text' if odd else 'a table'}",
                "correct the file",
            )
        name = table.get("name") or table["recipe"]
        kept = {
            key: value
            for key, value in table.get("options", {}).items()
            if not {key, f"{name}.{key}"} & {*replaced}
        }
        refuse_code(f"group {position + 1} of {path}", table["recipe"], kept)
        with errors_in(path):
            usual = find_recipe(table["recipe"]).usual_members
        groups.append(Group(**{"members": usual, **common, **table}))
    return groups


def _split_count(text: str) -> tuple[str, int | None]:
    name, colon, count = text.rpartition(":")
    return (name, int(count)) if colon and re.fullmatch(r"-?\d+", count) else (text, None)


def _with_options(groups: list[Group], options: Mapping[str, Any]) -> list[Group]:
    known = [known_options(find_recipe(group.recipe)) for group in groups]
    names = [group.name or group.recipe.rpartition(":")[2] for group in groups]
    changed = [dict(group.options) for group in groups]
    for key, value in options.items():
        prefix, dot, option = key.partition(".") if "." in key else ("", "", key)
        fitting = [
            k for k, name in enumerate(names) if (name == prefix if dot else option in known[k])
        ]
        if not fitting:
            lists = [f"{n}: {', '.join(k) or 'none'}" for n, k in zip(names, known, strict=True)]
            raise InputError(
                f"no group has the option {key!r}; the options are: {'; '.join(lists)}",
                "check the spelling",
            )
        for k in fitting:
            changed[k][option] = value
    return [replace(group, options=own) for group, own in zip(groups, changed, strict=True)]


def _toml(path: Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # Python 3.10
        try:
            import tomli as tomllib  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError as error:
            raise MissingExtraError(
                "on Python 3.10 groups in TOML need the package tomli, which is not installed",
                "install it with: pip install tomli",
            ) from error
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no file")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply", "correct the file") from error
    except OSError as error:
        raise InputError(
            f"{path} can't be read: {error.strerror or error}", "check the spelling"
        ) from error
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}", "correct the file") from error
