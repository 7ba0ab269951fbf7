"""Regularised regressions from features to probabilities, on every answer scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from edokit._errors import InputError, one_of, warn
from edokit._types import Floats
from edokit.scales import NOMINAL, Scale

LOSSES = ("ce", "rps")
"""Cross-entropy, or the ranked probability score of ordered classes."""
LINKS = ("softmax", "cumulative")
"""Weights per class, or one score and a threshold between neighbouring classes."""
LABELS = "labels"
"""The link of sets: each label has a probability of its own."""
MOST_CLASSES = 10_000
"""Classes of a member; a file that claims more is damaged."""
_STEPS = 2000
_TRIES = 200
_LEAST = 1e-12


@dataclass(frozen=True)
class Logistic:
    """A fitted regression over C classes, of which it saw P, or over C labels of sets."""

    weights: npt.NDArray[Any]
    """Weights [P, F]; [1, F] where it saw two classes, [0, F] where it saw one, and [1, F] with the
    cumulative link."""
    intercepts: npt.NDArray[Any]
    """One for each row of weights; with the cumulative link P − 1 thresholds."""
    seen: npt.NDArray[np.int64]
    """The classes it saw [P]."""
    n_classes: int
    """C."""
    n_targets: int
    """N, of which it learned."""
    link: str = LINKS[0]
    """How scores become probabilities."""

    arrays_needed: ClassVar = {
        "weights": "f RF",
        "intercepts": "f I",
        "seen": "i P",
        "n_classes": "i",
        "n_targets": "i",
    }

    @classmethod
    def fit(
        cls,
        features: Any,
        targets: Floats,
        strength: float,
        scale: Scale = NOMINAL,
        *,
        loss: str = LOSSES[0],
        link: str = LINKS[0],
    ) -> Logistic:
        """Learn from features [N, F] and targets [N, C]; a small strength means simple weights.

        A row of shares counts as several rows with one class each, weighted by the shares. A class
        that never occurs gets the probability 1 / (N + C), as if it had been seen once more; if
        only one class occurs, the answer is the same for every item. Each label of sets has a
        regression of its own.
        """
        # Members train side by side; threads of their own would only slow each other down.
        with threadpool_limits(1):
            if scale.is_multi_label:
                found = cls._of_labels(features, targets, strength)
            else:
                found = cls._of_classes(features, targets, strength, loss, link, scale.steps)
        kept = {name: getattr(found, name).astype(np.float32) for name in ("weights", "intercepts")}
        return replace(found, **kept)

    @classmethod
    def _of_classes(
        cls,
        features: Any,
        targets: Floats,
        strength: float,
        loss: str = LOSSES[0],
        link: str = LINKS[0],
        steps: Floats | None = None,
    ) -> Logistic:
        n, c = targets.shape
        rows, classes = np.nonzero(targets)
        seen = np.unique(classes)
        if len(seen) == 1:
            warn(f"all {n} targets name one class: this member predicts the same for every text")
            nothing = np.zeros((0, features.shape[1]))
            return cls(nothing, nothing[:, 0], seen, c, n)
        if link == "cumulative":
            below = np.cumsum(targets[:, seen].mean(axis=0))[:-1]
            start = cls(
                np.zeros((1, features.shape[1])), np.log(below / (1 - below)), seen, c, n, link
            )
        else:
            model = LogisticRegression(C=strength, solver="newton-cg", max_iter=_STEPS)
            if len(rows) == n and bool((targets[rows, classes] == 1).all()):
                model.fit(features, classes)
            else:
                model.fit(features[rows], classes, sample_weight=targets[rows, classes])
            start = cls(model.coef_, model.intercept_, seen, c, n)
            if loss == "ce":
                return start
        places = np.arange(c) if steps is None else np.append(0, np.cumsum(steps))
        own_steps = np.diff(places[seen])
        return start._minimised(
            features, targets[:, seen], strength, loss, own_steps / own_steps.mean()
        )

    @classmethod
    def _of_labels(cls, features: Any, targets: Floats, strength: float) -> Logistic:
        n, c = targets.shape
        weights, intercepts = np.zeros((c, features.shape[1])), np.zeros(c)
        for k, chosen in enumerate(targets.T):
            if 0 < chosen.sum() < n:
                pair = np.column_stack([1 - chosen, chosen])
                one = cls._of_classes(features, pair, strength)
                weights[k], intercepts[k] = one.weights[0], one.intercepts[0]
            else:
                # As if it had been chosen, or left out, once more.
                intercepts[k] = np.log(n + 1) * (1 if chosen.any() else -1)
        if not weights.any():
            warn(f"all {n} targets name one set: this member predicts the same for every text")
        return cls(weights, intercepts, np.arange(c), c, n, LABELS)

    def _minimised(
        self, features: Any, targets: Floats, strength: float, loss: str, steps: Floats
    ) -> Logistic:
        """The regression with the lowest penalised loss, found from here."""
        shape, size = self.weights.shape, self.weights.size
        cumulative = self.link == "cumulative"

        def at(parameters: Floats) -> Logistic:
            rest = parameters[size:]
            if cumulative:
                rest = np.cumsum(np.append(rest[0], np.exp(rest[1:])))
            return replace(self, weights=parameters[:size].reshape(shape), intercepts=rest)

        def value(parameters: Floats) -> tuple[float, Floats]:
            model = at(parameters)
            p = model._shares(features)
            if loss == "ce":
                kept = np.maximum(p, _LEAST)
                total, slope = -(targets * np.log(kept)).sum(), -targets / kept
            else:
                apart = np.cumsum(p - targets, axis=1)[:, :-1]
                total = (steps * apart**2).sum()
                slope = np.zeros_like(p)
                slope[:, :-1] = np.cumsum((2 * steps * apart)[:, ::-1], axis=1)[:, ::-1]
            if cumulative:
                below = np.cumsum(p, axis=1)[:, :-1]
                of_thresholds = (slope[:, :-1] - slope[:, 1:]) * below * (1 - below)
                of_scores = -of_thresholds.sum(axis=1, keepdims=True)
                each = np.cumsum(of_thresholds.sum(axis=0)[::-1])[::-1]
                rest = each * np.append(1.0, np.exp(parameters[size + 1 :]))
            else:
                of_scores = p * (slope - (p * slope).sum(axis=1, keepdims=True))
                of_scores = of_scores[:, -shape[0] :]
                rest = of_scores.sum(axis=0)
            weights = model.weights
            gradient = np.asarray(features.T @ of_scores).T + weights / strength
            total += (weights**2).sum() / (2 * strength)
            return float(total), np.concatenate([gradient.ravel(), rest])

        rest = self.intercepts
        if cumulative:
            rest = np.append(rest[0], np.log(np.diff(rest)))
        start = np.concatenate([self.weights.ravel(), rest])
        return at(
            minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": _TRIES}).x
        )

    def predict(self, features: Any) -> Floats:
        """Probabilities [N, C]."""
        shares = self._shares(features)
        if self.link == LABELS:
            return shares
        return over_all_classes(shares, self.seen, self.n_classes, self.n_targets)

    def _shares(self, features: Any) -> Floats:
        """Probabilities [N, P] of the classes it saw, or of labels."""
        n, p = features.shape[0], len(self.seen)
        scores = np.asarray(features @ self.weights.T.astype(np.float64))
        if self.link == LABELS:
            chosen: Floats = expit(scores + self.intercepts)
            return chosen
        if self.link == "cumulative":
            below = expit(self.intercepts - scores)
            return np.diff(below, axis=1, prepend=0.0, append=1.0)
        logits = np.zeros((n, p))
        if p > 1:
            logits[:, -len(self.weights) :] = scores + self.intercepts
        shares: Floats = softmax(logits, axis=1)
        return shares

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Logistic:
        """From what ``arrays`` gave, kept in a file; refused where it does not fit together."""
        link = str(arrays.get("link", LINKS[0]))
        seen = check_seen(path, arrays["seen"], int(arrays["n_classes"]))
        rows, intercepts = len(arrays["weights"]), len(arrays["intercepts"])
        expected = {
            LABELS: (len(seen), len(seen)),
            "cumulative": (1, len(seen) - 1),
            "softmax": ({1: 0, 2: 1}.get(len(seen), len(seen)),) * 2,
        }
        if (rows, intercepts) != expected.get(link):
            raise InputError(
                f"{path} is damaged: it has {rows} rows of weights and {intercepts} intercepts for"
                f" {len(seen)} classes",
                "train the member again",
            )
        sizes = {name: int(arrays[name]) for name in ("n_classes", "n_targets")}
        return cls(arrays["weights"], arrays["intercepts"], arrays["seen"], **sizes, link=link)


def check_loss(loss: str, link: str, scale: Scale | None = None) -> None:
    """Refuse a loss or link that is unknown, or that needs an order which a scale has not."""
    one_of("loss", loss, LOSSES)
    one_of("link", link, LINKS)
    for name, value, plain in (("loss", loss, LOSSES[0]), ("link", link, LINKS[0])):
        if value != plain and scale is not None and scale.positions is None:
            raise InputError(
                f"{name}={value!r} is for ordered classes, but the answer scale is {scale}",
                f"declare it with scale='ordinal', or choose {name}={plain!r}",
                parameters=("scale",),
            )


def check_seen(path: Path, seen: npt.NDArray[Any], n_classes: int) -> npt.NDArray[Any]:
    """The classes that a member saw; refused where they are not among its classes."""
    fits = len(seen) and (np.diff(seen.astype(np.int64)) > 0).all() and seen[-1] < n_classes
    if not fits or n_classes > MOST_CLASSES:
        raise InputError(
            f"{path} is damaged: it saw classes that are not among its {n_classes}",
            "train the member again",
        )
    return seen


def over_all_classes(shares: Floats, seen: Any, n_classes: int, n_targets: int) -> Floats:
    """Probabilities [N, C] from shares [N, P] of the classes that were seen among N targets."""
    unseen = 1.0 / (n_targets + n_classes)
    probabilities = np.full((len(shares), n_classes), unseen)
    probabilities[:, seen] = shares * (1 - unseen * (n_classes - len(seen)))
    return probabilities
