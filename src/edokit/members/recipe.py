"""What a recipe is, how recipes are found by name, and the arrays that members are saved in.

A recipe is a scikit-learn-style estimator in one file of ``recipes``, named like it: a class with
`Member` as its base, made with ``Recipe(n_classes, **options)``, and five methods: ``fit``,
``predict_proba``, ``get_params`` (inherited), ``save`` and ``load``. Every option is a keyword
argument with a default of a plain type (str, int, float, bool or None). Seeds, targets, splits,
folds, resuming, progress, failures and the files of predictions are the runner's.

Options with these names also tell the runner how to train a member:

==============  ===================================================================================
``epochs``      it asks for the targets of every epoch, and stops early on dev texts
``device``      it computes with torch; with ``epochs`` it trains on GPUs
``base_url``    it asks a server: its members run one by one, and may have a budget
``annotators``  it learns who labelled
``examples``    number of labelled items in the prompt; 0 (with ``base_url``): nothing is learned
==============  ===================================================================================

The defaults of the other attributes of `Member` serve most recipes.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeGuard,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, check_number, examples, one_of, option
from edokit._io import npz as archives
from edokit._types import Codes, Floats, Ints
from edokit.members import recipes
from edokit.scales import NOMINAL, Scale

# One text, or (text, context): a reply and the post before it, an utterance and its dialogue.
Text = str | tuple[str, str]
# The context of each text.
Context = Sequence[str] | None
# For each text the annotators whose labels are to be predicted.
Annotators = Sequence[Iterable[str]] | None
# Called with what happened: epoch, dev CE, …
Progress = Callable[[dict[str, Any]], None]
# Options that change no prediction; a member is not trained again for other values.
OPERATIONAL = ("concurrency", "timeout", "retries", "price_in", "price_out")


@dataclass(frozen=True)
class MemberData:
    """What one member trains on.

    Parameters
    ----------
    texts : sequence of str
        N texts.
    targets : callable
        Targets [N, C] of an epoch, counted from 0; of sets the share, or choice, of each label.
    context : sequence of str, default=None
        What each text is seen with, such as the post that it replies to.
    dev_texts, dev_context : sequence of str, default=() and None
        Texts to stop early on.
    dev_soft_labels : ndarray of shape (N_dev, C), default=None
        Soft labels of the dev texts.
    dev_hard_labels : ndarray of shape (N_dev,), default=None
        Hard labels of the dev texts; of sets (N_dev, C).
    annotations, dev_annotations : Annotations, default=None
        The annotations of the texts, for recipes that learn who labelled.
    scale : Scale, default=nominal
        What the classes are to one another.
    classes : sequence of str, default=()
        Names of the C classes.
    corpus : tuple of str or of (str, str), default=()
        All texts of the training, with their contexts: a recipe may compute their features once
        for all members.
    """

    texts: Sequence[str]
    targets: Callable[[int], Floats]
    context: Sequence[str] | None = None
    dev_texts: Sequence[str] = ()
    dev_context: Sequence[str] | None = None
    dev_soft_labels: Floats | None = None
    dev_hard_labels: Codes | None = None
    annotations: Any = None
    dev_annotations: Any = None
    scale: Scale = NOMINAL
    classes: Sequence[str] = ()
    corpus: tuple[Text, ...] = ()


class Member:
    """One classifier of the ensemble: the base class of every recipe.

    A recipe has ``multi_label = True`` if it can give each label a probability of its own, as sets
    of labels need.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit.members import Member, MemberData
    >>> class Prior(Member):
    ...     def __init__(self, n_classes):
    ...         self.n_classes = n_classes
    ...     def fit(self, data, *, random_state=0, progress=None):
    ...         self.share = data.targets(0).mean(axis=0)
    ...         return self
    ...     def predict_proba(self, texts, context=None, annotators=None):
    ...         return np.tile(self.share, (len(texts), 1))
    >>> data = MemberData(["a", "b"], lambda epoch: np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> Prior(2).fit(data).predict_proba(["c"])
    array([[0.5, 0.5]])
    """

    multi_label: ClassVar[bool] = False

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        """Fit; the same ``random_state`` gives the same member on the same machine."""
        raise NotImplementedError

    def predict_proba(
        self, texts: Sequence[str], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; each label's own if it was fitted to sets of labels.

        ``context`` is passed if it was trained with contexts. ``annotators`` is passed if it knows
        annotators: for each text those whose labels are to be predicted.
        """
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that it was made with."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, nothing that executes on load.

        The folder exists and is empty; the name ``member.json`` is taken.
        """
        raise NotImplementedError

    @classmethod
    def load(cls, folder: Path) -> Any:
        """Read what ``save`` wrote.

        It may also take ``device``, ``trust`` (names of packages), and ``models``: the folders, in
        a bundle, of pretrained models that the option ``model`` names and ``save`` does not write.
        """
        raise NotImplementedError

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """Annotators that it has learned; none by default."""
        return ()

    @property
    def details(self) -> Mapping[str, Any]:
        """Plain values about a fitted member, for ``member.json`` and ``Predictions.member_info``.

        ``cost`` is of one item; ``requests`` and ``failures`` are counts.
        """
        return {}

    @classmethod
    def checked_options(cls, options: Mapping[str, Any], source: str = "") -> dict[str, Any]:
        """Options with the content of the files that they name.

        ``source`` is the file that sets them, empty if the user does: what would run code, or send
        texts elsewhere, is refused if a file sets it.
        """
        return dict(options)


def recipe_names() -> list[str]:
    """The names of all recipes; nothing of them is loaded."""
    names = (module.name for module in pkgutil.iter_modules(recipes.__path__))
    # Files with an underscore are parts of recipes.
    return sorted(name for name in names if not name.startswith("_"))


def find_recipe(name: str) -> type[Member]:
    """The recipe of this name, or the class at ``package.module:Class``."""
    if name in recipe_names():
        values = vars(import_module(f"{recipes.__name__}.{name}"))
        members = (value for value in values.values() if _is_member(value))
        # Others, such as its base, are imported from elsewhere.
        local = [member for member in members if member.__module__ == values["__name__"]]
        if len(local) != 1:
            raise InputError(f"{values['__name__']} holds {len(local)} classes", "leave one recipe")
        return local[0]
    module_name, colon, class_name = name.partition(":")
    if not colon or module_name in recipe_names():
        raise InputError(
            f"there is no recipe {examples([name])}; recipes are {examples(recipe_names(), 20)} and"
            " 'package.module:Class'",
            f"write {module_name}:10 for ten members" if colon else "choose one of these",
        )
    try:
        recipe = getattr(import_module(module_name), class_name)
    except Exception as error:  # whatever a module, or a name that is none, may raise
        raise InputError(
            f"the recipe {examples([name])} can't be imported: {error}", "check the spelling"
        ) from error
    if not _is_member(recipe):
        raise InputError(
            f"the recipe {examples([name])} is not a class with edokit.members.recipe.Member as its"
            " base",
            "see edokit/members/recipes/linear.py for an example",
        )
    return recipe


def refuse_code(source: str, recipe: str, trust: Collection[str] | None = None) -> None:
    """Refuse a file that names a recipe outside of EDO, which would be imported.

    ``trust`` are packages that may be imported nevertheless; None if the caller has no such
    parameter.
    """
    package = recipe.partition(":")[0].partition(".")[0]
    if recipe in recipe_names() or ":" not in recipe or package in ("edokit", *(trust or ())):
        return  # find_recipe reports an unknown recipe
    raise code_in_file(source, "recipe", recipe, None if trust is None else package)


def code_in_file(source: str, key: str, value: str, package: str | None = None) -> InputError:
    """The error for a file that asks for an import; ``package`` could be trusted."""
    remedy = option(key, value) if package is None else option("trust", package)
    return InputError(
        f"{source} has {key} = {examples([value])}, which would import code; a file can't ask for"
        " that",
        f"if you trust it, {'set' if package is None else 'add'} {remedy}"
        + (" yourself" if package is None else ""),
    )


def _is_member(value: object) -> TypeGuard[type[Member]]:
    return isinstance(value, type) and issubclass(value, Member)


def known_options(recipe: type) -> dict[str, Any]:
    """The recipe's options and their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(recipe).parameters.items()
        if name not in ("n_classes", "device") and parameter.kind is not parameter.VAR_KEYWORD
    }


def check_options(
    who: str, defaults: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """These options in the types of their defaults; text such as "3" or "true" is converted."""
    unknown = [name for name in options if name not in defaults]
    if unknown:
        raise InputError(
            f"{who} has no option {examples(unknown)}; its options are"
            f" {', '.join(defaults) or '(none)'}",
            "check the spelling",
        )
    return {name: _typed(name, value, defaults[name]) for name, value in options.items()}


class Range(NamedTuple):
    """The numbers that an option may have: ``Annotated[int, Range(1)]``; ``above`` the least."""

    least: float
    largest: float = float("inf")
    above: bool = False


def check_types(member: Member) -> None:
    """Refuse options outside of the `Range`, or the ``Literal`` values, that their types name."""
    for name, hint in get_type_hints(type(member), include_extras=True).items():
        if get_origin(hint) is Literal:
            one_of(name, getattr(member, name), get_args(hint))
        elif get_origin(hint) is Annotated:
            (kind, limits), value = get_args(hint), getattr(member, name)
            kinds = get_args(kind) or (kind,)
            if value is not None or NoneType not in kinds:
                bounds = limits.least, limits.largest
                check_number(name, value, *bounds, above=limits.above, whole=int in kinds)


def takes_device(recipe: type[Member]) -> bool:
    """Whether the recipe computes with torch."""
    return "device" in inspect.signature(recipe).parameters


def has_epochs(recipe: type[Member]) -> bool:
    """Whether a member asks for the targets of every epoch, and for dev texts to stop early on."""
    return "epochs" in known_options(recipe)


def asks_server(recipe: type[Member]) -> bool:
    """Whether a member sends texts to a server."""
    return "base_url" in known_options(recipe)


def trains_on_device(recipe: type[Member]) -> bool:
    """Whether a member is fitted on a GPU, where there is one."""
    return has_epochs(recipe) and takes_device(recipe)


def learns(recipe: type[Member], options: Mapping[str, Any]) -> bool:
    """Whether a member learns from training items; otherwise all folds are the same fit."""
    return not asks_server(recipe) or bool(options.get("examples"))


def make_member(
    name: str, n_classes: int, options: Mapping[str, Any], device: str | None = None
) -> Member:
    """A member that is not fitted yet."""
    recipe: Any = find_recipe(name)
    placement = {"device": device} if takes_device(recipe) else {}
    return cast(Member, recipe(n_classes, **options, **placement))


def _typed(name: str, value: Any, default: Any) -> Any:
    if isinstance(value, str) and not isinstance(default, str):
        value = plain_value(value)
    if default is None or (value is None and not isinstance(default, str)):
        return value
    kind = type(default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        nouns = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
        raise InputError(
            f"the option {name} is {value!r}, but must be {nouns.get(kind, kind.__name__)}",
            f"its default is {repr(default).lower() if kind is bool else repr(default)}",
        )
    return value


def plain_value(text: str) -> Any:
    """``"3"`` as 3, ``"true"`` as True; anything else stays text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def write_arrays(path: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays by name."""
    with path.open("wb") as stream:
        archives.write_arrays(stream, arrays)


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of these names that exist; a damaged file is refused."""
    try:
        return archives.read_arrays(path, names)
    except (InputError, MemoryError):
        raise
    # A damaged archive fails in as many ways as zip, zlib and numpy have.
    except Exception as error:
        raise InputError(
            f"{path} is damaged or no file of plain arrays: {error}", "train the member again"
        ) from error


def with_context(texts: Sequence[Text], context: Sequence[str] | None) -> Sequence[Text]:
    """Texts, as pairs (text, context) where there is a context."""
    return texts if context is None else list(zip(texts, context, strict=True))  # type: ignore[arg-type]


def split_context(texts: Sequence[Text]) -> tuple[list[str], list[str] | None]:
    """Texts without their contexts, and the contexts; None if no text has one."""
    if not have_contexts(texts):
        return [*map(str, texts)], None
    pairs = [(text, "") if isinstance(text, str) else text for text in texts]
    return [text for text, _ in pairs], [context for _, context in pairs]


def predict_texts(member: Member, texts: Sequence[Text], **conditions: Any) -> Floats:
    """Probabilities [N, C] of a member; it gets a context only where there is one."""
    strings, context = split_context(texts)
    if context is not None:
        conditions["context"] = context
    predicted = np.asarray(member.predict_proba(strings, **conditions), dtype=float)
    expected = (len(texts), member.get_params()["n_classes"])
    if predicted.shape != expected:
        raise ValueError(f"it predicts an array of shape {predicted.shape}, not {expected}")
    return predicted


def have_contexts(texts: Sequence[Text]) -> bool:
    """Whether some of the texts have a context."""
    return any(not isinstance(text, str) for text in texts)


def distinct_texts(texts: Sequence[Text]) -> tuple[list[Text], Ints]:
    """Each text once, and the row of every text [N] among them."""
    row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(row_of), np.array([row_of[text] for text in texts], dtype=np.int64)


def known_labels(data: MemberData) -> Any:
    """The annotations, which are required by members that learn annotators."""
    if data.annotations is None:
        raise InputError(
            "a member that knows annotators needs annotations, but there are only targets",
            f"pass annotations, or choose {option('annotators', False)}",
        )
    return data.annotations


def joined(text: Text) -> str:
    """A text, with its context in the lines after it."""
    return text if isinstance(text, str) else "\n".join(text)


def check_texts(texts: Sequence[Text]) -> None:
    """Refuse what is neither a text nor a pair of texts, naming its position."""
    for position, text in enumerate(texts):
        pair = isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text)
        if not (isinstance(text, str) or pair):
            missing = text is None or (isinstance(text, float) and text != text)
            raise InputError(
                f"text {position + 1} of {len(texts)} is"
                f" {'missing' if missing else type(text).__name__}, neither a string nor a pair"
                " (utterance, context) of strings",
                "fill the gap or drop the item",
            )
