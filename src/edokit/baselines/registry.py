"""Methods by name. A new method is one file in ``methods`` with `method` above its class."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

from edokit._errors import InputError, examples
from edokit.annotations import Ties
from edokit.baselines.method import Method

Maker = TypeVar("Maker", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """A method in the registry."""

    name: str
    about: str
    """What it does, in a few words."""
    make: Callable[..., Any]
    """``make(seed=…, ties=…)`` gives the method, not fitted yet."""
    place: int
    """Where it stands in tables: low numbers first."""


_ENTRIES: dict[str, Entry] = {}


def method(name: str, about: str, *, place: int = 1000) -> Callable[[Maker], Maker]:
    """Enter a class (or a function) that takes ``seed`` and ``ties`` under this name."""

    def enter(make: Maker) -> Maker:
        known = _ENTRIES.get(name)
        if known is not None and known.make is not make:
            raise InputError(
                f"the name of a method must be free, but {name!r} is taken", "choose another name"
            )
        _ENTRIES[name] = Entry(name, about, make, place)
        return make

    return enter


def entries() -> list[Entry]:
    """All methods, in the order of tables."""
    _load()
    return sorted(_ENTRIES.values(), key=lambda entry: (entry.place, entry.name))


def method_names() -> list[str]:
    """The names of all methods, in the order of tables."""
    return [entry.name for entry in entries()]


def find_method(name: str) -> Entry:
    """The method of this name."""
    _load()
    if name not in _ENTRIES:
        raise InputError(
            f"the methods are {examples(method_names(), 50)}, but got {name!r}",
            "choose among these",
        )
    return _ENTRIES[name]


def make_method(name: str, *, seed: int = 0, ties: Ties = "first") -> Method:
    """The method of this name, not fitted yet."""
    return cast(Method, find_method(name).make(seed=seed, ties=ties))


@cache
def _load() -> None:
    from edokit.baselines import methods

    for found in pkgutil.iter_modules(methods.__path__):
        import_module(f"{methods.__name__}.{found.name}")
