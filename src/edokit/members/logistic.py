"""Logistic regression that learns from shares as well as from classes, kept as plain arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from edokit._errors import EDOWarning
from edokit._types import Floats

_STEPS = 2000


@dataclass(frozen=True)
class Logistic:
    """A fitted regression over C classes, of which it saw P."""

    weights: npt.NDArray[np.float32]
    """Weights [P, F]; [1, F] where it saw two classes, [0, F] where it saw one."""
    intercepts: npt.NDArray[np.float32]
    """One for each row of weights."""
    seen: npt.NDArray[np.int64]
    """The classes it saw [P]."""
    n_classes: int
    """C."""
    n_targets: int
    """N, of which it learned."""

    @classmethod
    def fit(cls, features: Any, targets: Floats, strength: float) -> Logistic:
        """Learn from features [N, F] and targets [N, C]; a small strength means simple weights.

        A row of shares counts as several rows with one class each, weighted by the shares. A class
        that never occurs gets the probability 1 / (N + C), as if it had been seen once more; if
        only one class occurs, the answer is the same for every item.
        """
        n, c = targets.shape
        rows, classes = np.nonzero(targets)
        seen = np.unique(classes)
        if len(seen) == 1:
            warnings.warn(
                f"all {n} targets name one class: this member gives every text the same answer",
                EDOWarning,
                stacklevel=2,
            )
            nothing = np.zeros((0, features.shape[1]), dtype=np.float32)
            return cls(nothing, nothing[:, 0], seen, c, n)
        model = LogisticRegression(C=strength, solver="newton-cg", max_iter=_STEPS)
        plain = len(rows) == n and bool((targets[rows, classes] == 1).all())
        # Members train side by side; threads of their own would only stand in each other's way.
        with threadpool_limits(1):
            if plain:
                model.fit(features, classes)
            else:
                model.fit(features[rows], classes, sample_weight=targets[rows, classes])
        return cls(model.coef_.astype(np.float32), model.intercept_.astype(np.float32), seen, c, n)

    def predict(self, features: Any) -> Floats:
        """Probabilities [N, C]."""
        n = features.shape[0]
        logits = np.zeros((n, len(self.seen)))
        if len(self.seen) > 1:
            scores = np.asarray(features @ self.weights.T.astype(np.float64)) + self.intercepts
            logits[:, -len(self.weights) :] = scores
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return over_all_classes(shares, self.seen, self.n_classes, self.n_targets)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name."""
        return {
            "weights": self.weights,
            "intercepts": self.intercepts,
            "seen": self.seen,
            "n_classes": np.array(self.n_classes),
            "n_targets": np.array(self.n_targets),
        }

    @classmethod
    def of(cls, arrays: Any) -> Logistic:
        """From what ``arrays`` gave."""
        return cls(
            arrays["weights"],
            arrays["intercepts"],
            arrays["seen"],
            int(arrays["n_classes"]),
            int(arrays["n_targets"]),
        )


def over_all_classes(shares: Floats, seen: Any, n_classes: int, n_targets: int) -> Floats:
    """Probabilities [N, C] from shares [N, P] of the classes that were seen among N targets."""
    unseen = 1.0 / (n_targets + n_classes)
    probabilities = np.full((len(shares), n_classes), unseen)
    probabilities[:, seen] = shares * (1 - unseen * (n_classes - len(seen)))
    return probabilities
