"""What every method can do: learn from predictions and people's answers, and answer itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import NotFittedError

from edokit._types import Codes, Floats, Strings
from edokit.annotations import Ties
from edokit.ensemble.inputs import align_inputs, as_predictions, select_members
from edokit.metrics import ce_items
from edokit.objective import pool
from edokit.predictions import Predictions


class Method(Protocol):
    """Predictions in, one distribution per item out; `EDOEnsemble` is one of them."""

    def fit(self, predictions: Any, annotations: Any) -> Any:
        """Learn from predictions (or [N, K, C]) and what people said of the items; gives itself."""

    def predict_proba(self, predictions: Any) -> Floats:
        """Probabilities [N, C]."""

    def predict(self, predictions: Any) -> Strings:
        """The hard answer: one class per item [N]."""


class WeightedPool(ABC):
    """A method that weighs members: a subclass says how the weights are found (``learn``).

    Members and items are put in the order of their names first, so that the order of a file never
    changes a result.
    """

    pool = "linear"
    """How the members become one distribution."""
    weights_: Floats
    """Weight of each member [K], on the simplex."""
    members_: tuple[str, ...]
    """Names of the members, in the order of the weights."""
    classes_: Strings
    """Names of the classes, in the order of the probabilities."""

    def __init__(self, *, seed: int = 0, ties: Ties = "first") -> None:
        self.seed = seed
        self.ties = ties

    @abstractmethod
    def learn(self, P: Floats, q: Floats, y: Codes) -> Floats:
        """Weights [K] from P [N, K, C], soft labels q [N, C] and hard label codes y [N]."""

    def fit(self, predictions: Any, annotations: Any) -> WeightedPool:
        """Learn the weights."""
        named, people = align_inputs(as_predictions(predictions), annotations)
        named = in_order(named)
        people = people.align(named.items)
        P = np.asarray(named.probabilities, dtype=np.float64)
        y = people.hard_labels(ties=self.ties, random_state=self.seed)
        self.weights_ = self.learn(P, people.soft_labels, y)
        self.members_ = named.members
        self.classes_ = np.array(named.classes, dtype=object)
        return self

    @property
    def size_(self) -> int:
        """How many members carry weight."""
        return int((self.weights_ > 0).sum())

    def predict_proba(self, predictions: Any) -> Floats:
        """Pooled probabilities [N, C]."""
        P, weights = self._known(predictions)
        pooled: Floats = pool(P, weights, self.pool)
        return pooled

    def predict(self, predictions: Any) -> Strings:
        """The likeliest class of each item [N]."""
        likeliest = self.predict_proba(predictions).argmax(axis=1)
        chosen: Strings = self.classes_[likeliest]
        return chosen

    def _known(self, predictions: Any) -> tuple[Floats, Floats]:
        """P [N, k, C] and weights [k] of the members that carry weight, classes as fitted."""
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"{type(self).__name__} must be fitted first, but is not")
        if isinstance(predictions, Predictions):
            given = predictions
        else:
            array = as_predictions(predictions, self.members_).probabilities
            given = Predictions.from_arrays(
                array, layout="NKC", members=self.members_, classes=self.classes_
            )
        kept = np.flatnonzero(self.weights_ > 0)
        needed = [self.members_[k] for k in kept]
        given = select_members(given, needed).order_classes(self.classes_)
        return np.asarray(given.probabilities, dtype=np.float64), self.weights_[kept]


class Voting(WeightedPool):
    """A pool whose hard answer is a weighted vote of the members' own hard answers."""

    def predict(self, predictions: Any) -> Strings:
        """The class with most votes [N]; of equals, the likelier one."""
        P, weights = self._known(predictions)
        votes = np.eye(P.shape[2])[P.argmax(axis=2)].transpose(0, 2, 1) @ weights
        level = votes >= votes.max(axis=1, keepdims=True) - 1e-12
        likeliest = np.where(level, pool(P, weights, self.pool), -1.0)
        chosen: Strings = self.classes_[likeliest.argmax(axis=1)]
        return chosen


def in_order(predictions: Predictions) -> Predictions:
    """The same predictions with items and members in the order of their names."""
    by_item = np.argsort(predictions.items.astype(str), kind="stable")
    return predictions.take(by_item).select(sorted(predictions.members))


def member_ce(P: Floats, q: Floats) -> Floats:
    """Cross-entropy of each member alone [K]."""
    return np.array([ce_items(P[:, k], q).mean() for k in range(P.shape[1])])
