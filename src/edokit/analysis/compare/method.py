"""Methods by name: the registry, and what weighted pools of members share."""

from __future__ import annotations

import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, counted, examples, listed, option
from edokit._types import ClassValues, Codes, Floats, Strings
from edokit.analysis.compare import methods
from edokit.annotations.core import Annotations, Ties
from edokit.ensemble.fitted import on_simplex
from edokit.fitdata.inputs import align_inputs, members_with_weight
from edokit.item_array import classes_of, rows_of
from edokit.metrics import ce_items
from edokit.objective.pools import pool
from edokit.predictions.core import Predictions
from edokit.rows import Rows, in_order, is_default_index
from edokit.scales import NOMINAL, Scale

EDO = "edo"
# Position in tables of methods that are not registered: after all that are.
_AFTER_REGISTERED = 2000
# Rounding error of a sum of weights.
_ROUNDING = 1e-12

MemberPredictions: TypeAlias = Predictions | npt.ArrayLike
"""Predictions, or an array [N, K, C]."""
ItemLabels: TypeAlias = Annotations | npt.ArrayLike
"""Annotations, or an array with a row per item."""
PredictedLabels: TypeAlias = ClassValues
"""One class per item [N]; for multi-label data, 1 for each chosen label [N, L]."""


class Method(Protocol):
    """Predictions in, one distribution per item out; `EDOEnsemble` is one of them."""

    def fit(self, predictions: MemberPredictions, annotations: ItemLabels) -> Method:
        """Learn from predictions (or [N, K, C]) and annotations of the items; returns itself."""

    def predict_proba(self, predictions: MemberPredictions) -> Floats:
        """Probabilities [N, C]."""

    def predict(self, predictions: MemberPredictions) -> PredictedLabels:
        """One class per item [N]; for multi-label data, 1 for each chosen label [N, L]."""


class MakeMethod(Protocol):
    """A class, or a function, that makes a method."""

    def __call__(self, *, random_state: int, ties: Ties) -> Method:
        """The method, not fitted yet."""


Maker = TypeVar("Maker", bound=MakeMethod)


# --- Registry -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodEntry:
    """A method in the registry; ``make(random_state=…, ties=…)`` returns it, not fitted yet.

    Methods with a low ``order`` come first in tables. `compare` runs a ``slow`` one only on
    request.
    """

    name: str
    description: str
    make: MakeMethod
    order: int
    slow: bool = False


METHODS: dict[str, MethodEntry] = {}


def register_method(
    name: str, description: str, *, order: int = 1000, slow: bool = False
) -> Callable[[Maker], Maker]:
    """Decorator: enter a class (or function) that takes ``random_state`` and ``ties``.

    Parameters
    ----------
    name : str
        The name in tables and for ``methods`` of `compare`.
    description : str
        What the method does, in a few words.
    order : int, default=1000
        Position in tables; low numbers first.
    slow : bool, default=False
        Whether it takes so long that `compare` runs it only on request.

    Raises
    ------
    InputError
        If another method has this name.
    """

    def enter(make: Maker) -> Maker:
        existing = METHODS.get(name)
        if existing is not None and existing.make is not make:
            raise InputError(
                f"the method name {name!r} is taken", "choose another name", code="taken-name"
            )
        METHODS[name] = MethodEntry(name, description, make, order, slow)
        return make

    return enter


def _load_methods() -> None:
    """Import the modules of `edokit.analysis.compare.methods`, which enter their methods."""
    for module in pkgutil.iter_modules(methods.__path__):
        import_module(f"{methods.__name__}.{module.name}")


def method_names() -> list[str]:
    """The names of all methods, in the order of tables."""
    _load_methods()
    entries = sorted(METHODS.values(), key=lambda entry: (entry.order, entry.name))
    return [entry.name for entry in entries]


def find_method(name: str) -> MethodEntry:
    """The registry's entry of this name, or one for the class at ``package.module:Class``."""
    _load_methods()
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise InputError(
            f"there is no method {name!r}; the methods are {examples(method_names(), 50)} and"
            " 'package.module:Class'",
            f"choose {option('methods')} among these",
            code="unknown-method",
        )
    return _imported_method(name)


def _imported_method(name: str) -> MethodEntry:
    """An entry for a class of another package.

    It gets ``random_state`` and ``ties`` where it has such parameters.
    """
    module_name, _, class_name = name.partition(":")
    try:
        method_class = getattr(import_module(module_name), class_name)
    except Exception as error:  # whatever importing an arbitrary module may raise
        raise InputError(
            f"the method {examples([name])} can't be imported: {error}",
            "check the spelling",
            code="failed-import",
        ) from error
    verbs = ("fit", "predict_proba", "predict")
    missing = [verb for verb in verbs if not callable(getattr(method_class, verb, None))]
    missing += sorted(getattr(method_class, "__abstractmethods__", ()))
    if missing:
        raise InputError(
            f"the method {examples([name])} lacks {listed(missing)}",
            "give it fit(predictions, annotations), predict_proba(predictions) and"
            " predict(predictions), as edokit.analysis.compare.method.Method describes; a"
            " WeightedPool needs find_weights(P, q, y) alone",
            code="invalid-plugin",
        )
    parameters = inspect.signature(method_class).parameters
    takes_any = any(part.kind is part.VAR_KEYWORD for part in parameters.values())

    def make(*, random_state: int, ties: Ties) -> Method:
        settings = {"random_state": random_state, "ties": ties}
        if not takes_any:
            settings = {key: value for key, value in settings.items() if key in parameters}
        method: Method = method_class(**settings)
        return method

    description = (inspect.getdoc(method_class) or name).partition("\n")[0]
    return MethodEntry(name, description, make, _AFTER_REGISTERED)


def make_method(name: str, *, random_state: int = 0, ties: Ties = "first") -> Method:
    """A method by name, not fitted yet.

    Parameters
    ----------
    name : str
        One of `method_names`, or ``package.module:Class``.
    random_state : int, default=0
        Seed of methods that search.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.

    Examples
    --------
    >>> from edokit.analysis.compare.method import make_method
    >>> P = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.4, 0.6]]]
    >>> make_method("best-single").fit(P, [0, 1]).weights_.tolist()
    [1.0, 0.0]
    """
    return find_method(name).make(random_state=random_state, ties=ties)


def check_fitted(method: object, attribute: str) -> None:
    """Refuse a method without this attribute, which ``fit`` sets."""
    if not hasattr(method, attribute):
        # Importing it takes longer than fitting most methods.
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(method).__name__} is not fitted; call fit")


# --- Weighted pools -------------------------------------------------------------------------------


class WeightedPool(ABC):
    """A method that weighs members and pools them; a subclass implements `find_weights`.

    Items and members are sorted by name first, so that the order of a file never changes a result.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weight of each member, on the simplex.
    members_ : tuple of str
        Names of the members, in the order of the weights.
    classes_ : ndarray of shape (C,)
        Names of the classes, in the order of the probabilities.
    """

    pool = "linear"
    weights_: Floats
    members_: tuple[str, ...]
    classes_: Strings
    scale_: Scale = NOMINAL

    def __init__(self, *, random_state: int = 0, ties: Ties = "first") -> None:
        self.random_state = random_state
        self.ties = ties

    @abstractmethod
    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        """Weights [K] from P [N, K, C], soft labels q [N, C] and hard label codes y [N].

        For multi-label data, each item and label is a row with the classes "not chosen" and
        "chosen".
        """

    def fit(self, predictions: MemberPredictions, annotations: ItemLabels) -> WeightedPool:
        """Find the weights."""
        members, labels = align_inputs(predictions, annotations)
        members = sort_by_name(members)
        labels = labels.align(members.rows)
        scale = labels.scale
        P = np.asarray(scale.rows(members.probabilities), dtype=np.float64)
        q = scale.rows(np.asarray(labels.soft_labels))
        y = np.asarray(labels.hard_labels(ties=self.ties, random_state=self.random_state))
        self.weights_ = self._checked_weights(P, q, scale.row_codes(y))
        self.scale_ = scale
        self.members_ = members.members
        self.classes_ = np.array(members.classes, dtype=object)
        return self

    def _checked_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        """The weights of `find_weights`, which are refused unless they are on the simplex."""
        weights = np.asarray(self.find_weights(P, q, y), dtype=np.float64)
        n_members = P.shape[1]
        if not on_simplex(weights, n_members):
            raise InputError(
                f"weights must be one for each of the {n_members} members, not negative and sum to"
                f" 1; those of {type(self).__name__} are {weights.tolist()}",
                "correct its find_weights",
                code="invalid-weights",
            )
        return weights

    @property
    def size_(self) -> int:
        """Number of members with weight."""
        return int((self.weights_ > 0).sum())

    def predict_proba(self, predictions: MemberPredictions) -> Floats:
        """Pooled probabilities [N, C]."""
        P, weights = self._weighted_members(predictions)
        pooled = pool(P, weights, self.pool)
        return np.asarray(self.scale_.from_rows(pooled, len(self.classes_)))

    def predict(self, predictions: MemberPredictions) -> PredictedLabels:
        """The most probable class [N]; for multi-label data, 1 for each chosen label [N, L]."""
        hard = self.scale_.hard(self.predict_proba(predictions))
        return self.scale_.labels(hard, self.classes_)

    def _weighted_members(self, predictions: MemberPredictions) -> tuple[Floats, Floats]:
        """Rows P [n, k, C] in the classes of the fit, and weights [k], of members with weight."""
        check_fitted(self, "weights_")
        members = members_with_weight(
            predictions, self.members_, tuple(self.classes_), self.weights_, self.scale_
        )
        rows = self.scale_.rows(members.probabilities)
        return np.asarray(rows, dtype=np.float64), self.weights_[self.weights_ > 0]


class VotingPool(WeightedPool):
    """A pool whose hard label is a weighted vote of the members' own hard labels."""

    def predict(self, predictions: MemberPredictions) -> PredictedLabels:
        """The class with the most votes [N]; of tied classes, the one that the pool prefers.

        For multi-label data, each label is voted on [N, L].
        """
        P, weights = self._weighted_members(predictions)
        votes = vote_shares(P, weights)
        has_most_votes = votes >= votes.max(axis=1, keepdims=True) - _ROUNDING
        # Below every probability, so that no other class wins.
        candidates = np.where(has_most_votes, pool(P, weights, self.pool), -1.0)
        winners = np.eye(P.shape[2])[candidates.argmax(axis=1)]
        hard = self.scale_.hard(self.scale_.from_rows(winners, len(self.classes_)))
        return self.scale_.labels(hard, self.classes_)


def vote_shares(P: Floats, weights: Floats) -> Floats:
    """The share of the weight that votes for each class [n, C]; tied classes divide a vote."""
    is_likeliest = (P.max(axis=2, keepdims=True) == P).astype(np.float64)
    ballots = is_likeliest / is_likeliest.sum(axis=2, keepdims=True)
    return np.asarray(np.einsum("nkc,k->nc", ballots, weights))


def check_order(predictions: Predictions, answers: object, name: str) -> None:
    """Refuse answers of a method that are not in the order of the predictions.

    Rows and columns without names are taken to be in the order of the predictions.
    """
    rows = rows_of(answers)
    classes = classes_of(answers)
    if isinstance(answers, pd.DataFrame | pd.Series) and not is_default_index(answers.index):
        rows = Rows.from_names(answers.index)
    if isinstance(answers, pd.DataFrame) and {*answers.columns} == {*predictions.classes}:
        classes = tuple(answers.columns)
    count = len(predictions.rows)
    shape = np.asarray(answers).shape
    if shape[:1] != (count,):
        raise InputError(
            f"{name} has the shape {shape} for {counted(count, 'item')}",
            "return one row per item",
            code="invalid-plugin",
        )
    positions = np.arange(count)
    if rows is not None and predictions.rows.has_ids:
        positions = rows.match(predictions.rows, name, "the predictions")
    if not in_order(positions):
        raise InputError(
            f"{name} has the items in another order than the predictions",
            "return them in the order of predictions.items",
            code="invalid-plugin",
        )
    if classes is not None and classes != predictions.classes:
        raise InputError(
            f"{name} has the classes {examples(classes, 20)}, but the predictions have"
            f" {examples(predictions.classes, 20)}",
            "return them in the order of predictions.classes",
            code="invalid-plugin",
        )


def sort_by_name(predictions: Predictions) -> Predictions:
    """The same predictions with items and members sorted by name."""
    return predictions.take(predictions.rows.order()).select(sorted(predictions.members))


def member_ce(P: Floats, q: Floats) -> Floats:
    """Cross-entropy of each member alone [K]."""
    return np.array([ce_items(P[:, k], q).mean() for k in range(P.shape[1])])


def best_members(P: Floats, q: Floats, count: int) -> Floats:
    """Equal weights for the members with the lowest cross-entropy."""
    best = np.argsort(member_ce(P, q), kind="stable")[:count]
    weights = np.zeros(P.shape[1])
    weights[best] = 1.0 / len(best)
    return weights
