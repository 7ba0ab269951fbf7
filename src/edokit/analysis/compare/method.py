"""Methods by name: the registry, what every method can do, and simple weighted pools."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning, InputError, examples, option
from edokit._types import Codes, Floats, Strings
from edokit.analysis.scores.statistics import constant_answer, constant_label
from edokit.annotations.core import Annotations, Ties
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Constant
from edokit.fitdata.data import FitData
from edokit.fitdata.inputs import align_inputs, pooled_members
from edokit.metrics import ce_items
from edokit.metrics.formulas import CLIP
from edokit.objective.pools import pool
from edokit.objective.settings import Objective
from edokit.predictions.core import Predictions
from edokit.scales import NOMINAL, Scale
from edokit.solvers.exact import solve_exact

Maker = TypeVar("Maker", bound=Callable[..., Any])
ROUNDS = 100
DECIMALS = 6


class Method(Protocol):
    """Predictions in, one distribution per item out; `EDOEnsemble` is one of them."""

    def fit(self, predictions: Any, annotations: Any) -> Any:
        """Learn from predictions (or [N, K, C]) and annotations of the items; returns itself."""

    def predict_proba(self, predictions: Any) -> Floats:
        """Probabilities [N, C]."""

    def predict(self, predictions: Any) -> npt.NDArray[Any]:
        """One class per item [N]; of sets, 1 for each chosen label [N, L]."""


def _check_fitted(method: Method, attribute: str) -> None:
    if not hasattr(method, attribute):
        from sklearn.exceptions import NotFittedError  # takes longer than most methods

        raise NotFittedError(f"this {type(method).__name__} is not fitted; call fit")


# --- Registry -------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A method in the registry; ``make(random_state=…, ties=…)`` returns it, not fitted yet."""

    name: str
    about: str
    make: Callable[..., Any]
    order: int
    slow: bool = False  # `compare` runs it only when it is asked for


METHODS: dict[str, Entry] = {}


def register_method(
    name: str, about: str, *, order: int = 1000, slow: bool = False
) -> Callable[[Maker], Maker]:
    """Decorator: enter a class (or function) that takes ``random_state`` and ``ties``.

    Parameters
    ----------
    name : str
        The name in tables and for ``methods`` of `compare`.
    about : str
        What the method does, in a few words.
    order : int, default=1000
        Position in tables; low numbers first.
    slow : bool, default=False
        Whether it takes so long that `compare` runs it only when it is asked for.

    Raises
    ------
    InputError
        If another method has this name.
    """

    def enter(make: Maker) -> Maker:
        existing = METHODS.get(name)
        if existing is not None and existing.make is not make:
            raise InputError(f"the method name {name!r} is taken", "choose another name")
        METHODS[name] = Entry(name, about, make, order, slow)
        return make

    return enter


def _enter_all() -> None:
    """Import the modules that enter further methods."""
    import_module("edokit.analysis.compare.methods.wel")


def method_names() -> list[str]:
    """The names of all methods, in the order of tables."""
    _enter_all()
    return [e.name for e in sorted(METHODS.values(), key=lambda e: (e.order, e.name))]


def find_method(name: str) -> Entry:
    """The registry's entry of this name."""
    _enter_all()
    if name not in METHODS:
        raise InputError(
            f"there is no method {name!r}; the methods are {examples(method_names(), 50)}",
            f"choose {option('methods')} among these",
        )
    return METHODS[name]


def make_method(name: str, *, random_state: int = 0, ties: Ties = "first") -> Method:
    """A method by name, not fitted yet.

    Parameters
    ----------
    name : str
        One of `method_names`.
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
    return cast(Method, find_method(name).make(random_state=random_state, ties=ties))


# --- Weighted pools -------------------------------------------------------------------------------


class WeightedPool(ABC):
    """A method that weighs members; a subclass implements `find_weights`.

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

        Of sets there is a row per item and label, with the classes "not chosen" and "chosen".
        """

    def fit(self, predictions: Any, annotations: Any) -> WeightedPool:
        """Find the weights."""
        members, labels = align_inputs(predictions, annotations)
        members = in_order(members)
        labels, scale = labels.align(members.rows), labels.scale
        P = np.asarray(scale.rows(members.probabilities), dtype=np.float64)
        y = labels.hard_labels(ties=self.ties, random_state=self.random_state)
        self.weights_ = self.find_weights(P, scale.rows(labels.soft_labels), scale.row_codes(y))
        self.scale_ = scale
        self.members_ = members.members
        self.classes_ = np.array(members.classes, dtype=object)
        return self

    @property
    def size_(self) -> int:
        """How many members carry weight."""
        return int((self.weights_ > 0).sum())

    def predict_proba(self, predictions: Any) -> Floats:
        """Pooled probabilities [N, C]."""
        pooled = pool(*self._with_weight(predictions), self.pool)
        return np.asarray(self.scale_.from_rows(pooled, len(self.classes_)))

    def predict(self, predictions: Any) -> npt.NDArray[Any]:
        """The most probable class of each item [N]; of sets, 1 for each chosen label [N, L]."""
        hard = self.scale_.hard(self.predict_proba(predictions))
        return self.scale_.labels(hard, self.classes_)

    def _with_weight(self, predictions: Any) -> tuple[Floats, Floats]:
        """Rows P [n, k, C] and weights [k] of the members that carry weight, classes as fitted."""
        _check_fitted(self, "weights_")
        members = pooled_members(
            predictions, self.members_, tuple(self.classes_), self.weights_, self.scale_
        )
        rows = self.scale_.rows(members.probabilities)
        return np.asarray(rows, dtype=np.float64), self.weights_[self.weights_ > 0]


class VotingPool(WeightedPool):
    """A pool whose hard label is a weighted vote of the members' own hard labels."""

    def predict(self, predictions: Any) -> npt.NDArray[Any]:
        """The class with most votes [N]; of equals, the more probable one. Of sets, by label."""
        P, weights = self._with_weight(predictions)
        votes = _votes(P, weights)
        level = votes >= votes.max(axis=1, keepdims=True) - 1e-12
        likeliest = np.where(level, pool(P, weights, self.pool), -1.0)
        votes = np.eye(P.shape[2])[likeliest.argmax(axis=1)]
        hard = self.scale_.hard(self.scale_.from_rows(votes, len(self.classes_)))
        return self.scale_.labels(hard, self.classes_)


def _votes(P: Floats, weights: Floats) -> Floats:
    """[n, C] share of the weight whose likeliest class each is; of equals, each gets a part."""
    top = (P.max(axis=2, keepdims=True) == P).astype(np.float64)
    return np.asarray(np.einsum("nkc,k->nc", top / top.sum(axis=2, keepdims=True), weights))


def in_order(predictions: Predictions) -> Predictions:
    """The same predictions with items and members sorted by name."""
    return predictions.take(predictions.rows.order()).select(sorted(predictions.members))


def member_ce(P: Floats, q: Floats) -> Floats:
    """Cross-entropy of each member alone [K]."""
    return np.array([ce_items(P[:, k], q).mean() for k in range(P.shape[1])])


def _best(P: Floats, q: Floats, count: int) -> Floats:
    """Equal weights for the members with the lowest cross-entropy."""
    best = np.argsort(member_ce(P, q), kind="stable")[:count]
    weights = np.zeros(P.shape[1])
    weights[best] = 1.0 / len(best)
    return weights


@register_method("constant", "the same shares and the majority class for every item", order=5)
class ConstantAnswer:
    """The mean soft label of the items that it was fitted on, whatever the members predict."""

    constant_: Constant
    classes_: Strings

    def __init__(self, *, random_state: int = 0, ties: Ties = "first") -> None:
        self.random_state = random_state
        self.ties = ties

    def fit(self, predictions: Any, annotations: Any) -> ConstantAnswer:
        """Take the shares of these items."""
        _, labels = align_inputs(predictions, annotations)
        return self.take_shares(labels, "fit")

    def take_shares(self, labels: Annotations, source: str) -> ConstantAnswer:
        """Take the shares of these annotations, whichever items they are of."""
        with warnings.catch_warnings():
            # The majority class hardly depends on ties.
            warnings.simplefilter("ignore", EDOWarning)
            hard = labels.hard_labels(ties=self.ties, random_state=self.random_state)
        self.constant_ = constant_answer(labels.soft_labels, hard, labels.scale, source)
        self.classes_ = np.array(labels.classes, dtype=object)
        return self

    def predict_proba(self, predictions: Any) -> Floats:
        """The shares, once per item [N, C]."""
        _check_fitted(self, "constant_")
        return np.tile(self.constant_.shares, (len(predictions), 1))

    def predict(self, predictions: Any) -> npt.NDArray[Any]:
        """The majority class, once per item [N]; of sets, the labels that most items have."""
        self.predict_proba(predictions)
        hard = constant_label(self.constant_, len(predictions))
        return hard if hard.ndim > 1 else np.asarray(self.classes_[hard])


@register_method("uniform", "the uniform mean of all members", order=10)
class Uniform(WeightedPool):
    """Every member with the same weight: what every other method has to beat."""

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return np.full(P.shape[1], 1.0 / P.shape[1])


@register_method(
    "majority", "majority of the members: the share whose likeliest class it is", order=15
)
class Majority(VotingPool):
    """Every member has one vote, for its likeliest class; the shares of votes are the distribution.

    Where several classes of a member are equally likely, its vote is divided between them. Of sets,
    each label is voted on. A class without a vote has probability 0, which cross-entropy punishes.
    """

    find_weights = Uniform.find_weights

    def predict_proba(self, predictions: Any) -> Floats:
        votes = _votes(*self._with_weight(predictions))
        return np.asarray(self.scale_.from_rows(votes, len(self.classes_)))


@register_method("best-single", "the member with the lowest CE on dev", order=20)
class BestSingle(WeightedPool):
    """The member with the lowest cross-entropy; of equals, the first by name."""

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return _best(P, q, 1)


@register_method(
    "top-5", "majority vote (F1) and mean (CE, MD, BS) of the five best on dev", order=30
)
class Top5(VotingPool):
    """The vote, and the mean, of the five members with the lowest cross-entropy.

    The paper takes the figures of its Top-5 Voting from earlier work and does not say what "best"
    means. With few items several members share the same F1, so we go by cross-entropy.
    """

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return _best(P, q, 5)


@register_method("greedy", "forward selection with replacement, as AutoGluon does it", order=60)
class Greedy(WeightedPool):
    """Greedy forward selection with replacement (Caruana et al. 2004), with AutoGluon's rules.

    In each of 100 rounds the member joins that lowers the cross-entropy of the mean most; its share
    of the joins is its weight. Losses count to six decimals, of equals a member that is in already
    goes first, and the rounds after the lowest loss are dropped. Where AutoGluon breaks a tie at
    random, the first by name wins.
    """

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        items, members, _ = P.shape
        total = np.zeros_like(P[:, 0])
        joined: list[int] = []
        losses: list[float] = []
        for _ in range(ROUNDS if members > 1 else 1):
            mean = (total[:, None] + P) / (len(joined) + 1)
            logs = np.log(np.clip(mean, CLIP, None))
            member_ce = np.round(-np.einsum("nkc,nc->k", logs, q) / items, DECIMALS)
            equal = np.flatnonzero(member_ce == member_ce.min())
            inside = [k for k in equal if k in joined]
            best = int(inside[0] if inside else equal[0])
            joined.append(best)
            losses.append(float(member_ce[best]))
            total = total + P[:, best]
        selected = joined[: int(np.argmin(losses)) + 1]
        return np.bincount(selected, minlength=members) / len(selected)


@register_method("linear-pool", "the linear pool with the lowest CE on dev", order=70)
class LinearPool(WeightedPool):
    """Log-score-optimal weights of the weighted mean."""

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        settings = Objective(f1=0.0, reg=0.0).resolve(self.pool)
        data = FitData.from_arrays(P, q, y)
        return solve_exact(data, settings, all_terms=False).weights


@register_method("log-pool", "the logarithmic pool with the lowest CE on dev", order=80)
class LogPool(LinearPool):
    """Log-score-optimal weights of the normalised weighted geometric mean."""

    pool = "log"


# --- EDO itself -----------------------------------------------------------------------------------

register_method("edo", "EDO as in edo fit: shrunk towards uniform by cross-validation", order=100)(
    EDOEnsemble
)


class SortedEnsemble(EDOEnsemble):
    """Sorts items and members by name first: gumbel's mini-batches make their order matter."""

    def fit(self, predictions: Any, annotations: Any = None) -> EDOEnsemble:
        members, labels = align_inputs(predictions, annotations)
        members = in_order(members)
        return self._fit_sorted(members, labels.align(members.rows))

    def _fit_sorted(self, predictions: Predictions, annotations: Annotations) -> EDOEnsemble:
        return super().fit(predictions, annotations)


_FIXED = "EDO as in the paper's ablations: all λ = 1, class weights"
register_method("edo-paper-fixed", _FIXED, order=90)(partial(SortedEnsemble, "paper-fixed"))


@register_method(
    "edo-paper",
    "EDO as the paper's search finds it: 50 trials, lowest CE (ordinal scales: RPS)",
    order=95,
)
class EDOPaper(SortedEnsemble):
    """Fifty trials of NSGA-II over the paper's space, compared in-sample as in the paper; the
    lowest CE (on an ordinal scale: RPS) on the front wins."""

    trials = 50

    def _fit_sorted(self, predictions: Predictions, annotations: Annotations) -> EDOEnsemble:
        from edokit.analysis.search import search

        self.search_ = search(
            predictions,
            annotations,
            trials=self.trials,
            space="paper",
            folds=0,
            random_state=self.random_state,
            ties=self.ties,
        )
        return self._keep(self.search_.ensemble.fitted_)
