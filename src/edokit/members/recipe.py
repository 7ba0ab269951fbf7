"""What a recipe is, how recipes are found by name, and the arrays that their members are kept in.

A recipe is a class with `Member` as its base, made with ``Recipe(n_classes, **options)``; every
option is a keyword argument with a default of a plain type (str, int, float, bool or None). A
recipe that computes with torch also takes ``device: str | None``. A new recipe is one file in
``recipes``, named like it, with its class.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples
from edokit._io import npz as archives
from edokit._types import Floats
from edokit.members import recipes

Text = str | tuple[str, str]
"""One text, or (utterance, context) for dialogue."""
Progress = Callable[[dict[str, Any]], None]
"""Called with what happened: epoch, dev CE, …"""


@dataclass(frozen=True)
class MemberData:
    """What one member learns from: N texts, and targets that may change from epoch to epoch."""

    texts: Sequence[Text]
    """Texts [N]."""
    targets: Callable[[int], Floats]
    """Targets [N, C] of an epoch; rows that are one-hot are drawn or chosen classes."""
    dev_texts: Sequence[Text] = ()
    """Texts to stop early on."""
    dev_soft_labels: Floats | None = None
    """Soft labels [N_dev, C] of the dev texts."""
    dev_hard_labels: npt.NDArray[np.int32] | None = None
    """Hard labels [N_dev] of the dev texts."""
    annotations: Any = None
    """The annotations of the N texts, for recipes with a head per annotator: an object with
    ``annotators`` [A], ``item_codes`` [M], ``annotator_codes`` [M], ``label_codes`` [M] (or
    ``label_probabilities`` [M, C]) as in `edokit.annotations.Annotations`."""
    shared: Any = None
    """What ``prepare`` returned, the same for all members of a group."""


class Member(Protocol):
    """One classifier of the ensemble."""

    resamples: ClassVar[bool] = False
    """Whether ``fit`` asks for the targets of every epoch; else it asks for epoch 0 alone."""
    stops_early: ClassVar[bool] = False
    """Whether ``fit`` uses the dev texts."""
    on_device: ClassVar[bool] = False
    """Whether ``fit`` computes with torch: one member then trains per device at a time."""

    @property
    def known_annotators(self) -> Sequence[str]:
        """The annotators whose answers it can tell apart; none unless it says so.

        Where there are some, ``predict_proba`` also takes ``annotators``: for each text those who
        judge it.
        """
        return ()

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> Any:
        """Work that all members of a group share, done once for all texts that they will see.

        It reaches the members as ``lesson.shared``, by way of pickle.
        """
        return None

    def fit(self, lesson: MemberData, *, seed: int, progress: Progress | None = None) -> Any:
        """Learn; the same seed gives the same member on the same machine."""

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]."""

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, nothing that executes on load.

        The folder exists and is empty; the name ``member.json`` is taken.
        """

    @classmethod
    def load(cls, folder: Path) -> Any:
        """Read what ``save`` wrote; may also take ``device``, and ``trust`` (names of packages)."""


def recipe_names() -> list[str]:
    """The names of all recipes; nothing of them is loaded."""
    names = (module.name for module in pkgutil.iter_modules(recipes.__path__))
    # Files with an underscore are parts of recipes.
    return sorted(name for name in names if not name.startswith("_"))


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
            "see edokit/members/recipes/linear.py for an example",
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
            "see edokit/members/recipes/linear.py for an example",
        )
    return found[0]


def known_options(recipe: type) -> dict[str, Any]:
    """The recipe's options and their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(recipe).parameters.items()
        if name not in ("n_classes", "device") and parameter.kind is not parameter.VAR_KEYWORD
    }


def recipe_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe in their own types; text such as "3" or "true" is understood."""
    return check_options(f"the recipe {name!r}", known_options(find_recipe(name)), options)


def check_options(who: str, known: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
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


def write_arrays(path: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays by name."""
    with path.open("wb") as stream:
        archives.write_arrays(stream, arrays)


def read_arrays(path: Path, needed: Iterable[str] = ()) -> dict[str, npt.NDArray[Any]]:
    """Read them back; a file that is cut off, or lacks one, is refused."""
    try:
        arrays = archives.read_arrays(path)
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} must be a whole file of plain arrays, but can't be read: {error}",
            "train the member again",
        ) from error
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise InputError(
            f"{path} must hold the arrays of a member, but lacks {examples(missing)}",
            "train the member again",
        )
    return arrays


def check_texts(texts: Sequence[Text]) -> None:
    """Refuse what is neither a text nor a pair of texts, naming where it stands."""
    for position, text in enumerate(texts):
        pair = isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text)
        if not (isinstance(text, str) or pair):
            raise InputError(
                "every text must be a string or a pair (utterance, context) of strings, but text"
                f" {position + 1} of {len(texts)} is {_kind(text)}",
                "fill the gap or drop the item",
            )


def _kind(text: Any) -> str:
    if text is None or (isinstance(text, float) and text != text):
        return "missing"
    return f"{type(text).__name__}"
