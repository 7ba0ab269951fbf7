"""Which members make up a pool: groups of one recipe each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edokit._errors import InputError, MissingExtraError, examples, one_of
from edokit.members.recipe import find_recipe, known_options, recipe_options
from edokit.members.supervision import Draw, Supervision

MEMBERS = 10
_KEYS = ("name", "recipe", "members", "supervision", "draw", "options")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Group:
    """Members of one recipe that differ in what they were told, or by chance."""

    recipe: str
    """A recipe's name, or package.module:Class."""
    members: int = MEMBERS
    """How many."""
    name: str = ""
    """Its name; the recipe's where none is given."""
    supervision: str = Supervision.RANDOM_SELECT.value
    """Whose answers they learn from."""
    draw: str | None = None
    """When random-select draws; where none is given, every epoch if the recipe has epochs."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the recipe."""

    def checked(self) -> Group:
        """The same group with nothing left open, or an error that says what is wrong."""
        recipe = find_recipe(self.recipe)
        name = self.name or self.recipe.rpartition(":")[2]
        if not is_folder_name(name):
            raise InputError(
                "the name of a group must be letters, digits, '.', '_' and '-' (folders are named"
                f" after it), but got {name!r}",
                "rename the group",
            )
        if isinstance(self.members, bool) or not isinstance(self.members, int) or self.members < 1:
            raise InputError(
                f"group {name!r} must have a whole number of members above 0, but got"
                f" {self.members!r}",
                "ask for ten",
            )
        one_of("supervision", self.supervision, [mode.value for mode in Supervision])
        draw = self.draw or (Draw.EPOCH.value if recipe.resamples else Draw.ONCE.value)
        one_of("draw", draw, [mode.value for mode in Draw])
        if draw == Draw.EPOCH.value and not recipe.resamples:
            raise InputError(
                f"the recipe {self.recipe!r} learns in one pass, so its targets are drawn once, but"
                f" got draw={draw!r}",
                "leave draw out",
            )
        return replace(
            self, name=name, draw=draw, options=recipe_options(self.recipe, self.options)
        )


def is_folder_name(name: object) -> bool:
    """Whether a folder may be named so, wherever the name comes from: no path, no odd letters."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def parse_pool(
    text: str,
    *,
    members: int | None = None,
    supervision: str = Supervision.RANDOM_SELECT.value,
    draw: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Group]:
    """Groups from ``linear``, from ``linear:5,encoder:5``, or from a TOML file.

    What the text leaves open is taken from the other arguments. An option goes to every group that
    has one of that name; ``group.option`` goes to one group.
    """
    common: dict[str, Any] = {"supervision": supervision, "draw": draw}
    if text.endswith(".toml"):
        _no_count(members, text)
        groups = read_pool(text, **common)
    else:
        parts = [_part(part) for part in text.split(",")]
        if any(count is not None for _, count in parts) or len(parts) > 1:
            _no_count(members, text)
        groups = [
            Group(recipe, count if count is not None else members or MEMBERS, **common)
            for recipe, count in parts
        ]
        if members is not None and len(groups) == 1:
            groups = [replace(groups[0], members=members)]
    return check_pool(_with_options(groups, options or {}))


def check_pool(groups: Iterable[Group]) -> list[Group]:
    """The groups with nothing left open, each name once."""
    pool = [group.checked() for group in groups]
    names = [group.name for group in pool]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"groups must have different names, but {examples(twice)} stand twice",
            "name them in a TOML file",
        )
    if not pool:
        raise InputError("a pool must have a group, but has none", "name a recipe")
    return pool


def read_pool(path: str | Path, **common: Any) -> list[Group]:
    """Groups from a TOML file with one ``[[group]]`` table each; ``common`` fills what it omits."""
    document = _toml(Path(path))
    tables = document.get("group")
    if set(document) != {"group"} or not isinstance(tables, list):
        raise InputError(
            f"{path} must hold [[group]] tables and nothing else, but holds"
            f" {examples(document) or 'nothing'}",
            'write [[group]] and under it recipe = "linear" and members = 5',
        )
    groups = []
    for position, table in enumerate(tables):
        unknown = [key for key in table if key not in _KEYS]
        if unknown or "recipe" not in table:
            raise InputError(
                f"a group must have a recipe and may have {', '.join(_KEYS)}, but group"
                f" {position + 1} of {path} has {examples(table, 10)}",
                "check the spelling",
            )
        odd = [key for key in ("recipe", "name", "supervision", "draw") if not _is_text(table, key)]
        if odd or not isinstance(table.get("options", {}), dict):
            raise InputError(
                f"{(odd or ['options'])[0]} of group {position + 1} of {path} must be"
                f" {'text' if odd else 'a table'}, but is something else",
                "correct the file",
            )
        groups.append(Group(**{**common, **table}))
    return groups


def _is_text(table: Mapping[str, Any], key: str) -> bool:
    return isinstance(table.get(key, ""), str)


def _part(text: str) -> tuple[str, int | None]:
    name, colon, count = text.strip().rpartition(":")
    if colon and re.fullmatch(r"-?\d+", count):
        return name, int(count)
    return text.strip(), None


def _no_count(members: int | None, text: str) -> None:
    if members is not None:
        raise InputError(
            f"the number of members is given once, but both --recipe {text} and --members"
            f" {members} say it",
            "leave --members out",
        )


def _with_options(groups: list[Group], options: Mapping[str, Any]) -> list[Group]:
    known = [known_options(find_recipe(group.recipe)) for group in groups]
    names = [group.name or group.recipe.rpartition(":")[2] for group in groups]
    given: list[dict[str, Any]] = [{} for _ in groups]
    for key, value in options.items():
        prefix, dot, option = key.partition(".")
        if dot:
            fitting = [k for k, name in enumerate(names) if name == prefix]
        else:
            option = key
            fitting = [k for k in range(len(groups)) if option in known[k]]
        if not fitting:
            listed = "; ".join(
                f"{name}: {', '.join(have) or 'none'}"
                for name, have in zip(names, known, strict=True)
            )
            raise InputError(
                f"an option must belong to a group of the pool ({listed}), but got {key!r}",
                "check the spelling",
            )
        for k in fitting:
            given[k][option] = value
    return [
        replace(group, options={**group.options, **more})
        for group, more in zip(groups, given, strict=True)
    ]


def _toml(path: Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # Python 3.10
        try:
            import tomli as tomllib  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError as error:
            raise MissingExtraError(
                "on Python 3.10 a pool in TOML needs the package tomli, but it is not installed",
                "install it with: pip install tomli",
            ) from error
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is none")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise InputError(
            f"{path} must be TOML of ordinary depth, but is nested too deeply", "correct the file"
        ) from error
    except OSError as error:
        raise InputError(
            f"{path} must be a readable file, but {error.strerror or error}", "check the spelling"
        ) from error
    except ValueError as error:
        raise InputError(f"{path} must be valid TOML, but: {error}", "correct the file") from error
