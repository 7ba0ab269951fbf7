"""Regularised regressions from features to probabilities, on every answer scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from edokit._errors import InputError, one_of, option, warn
from edokit._types import Floats
from edokit.scales import NOMINAL, Scale

LOSSES = ("ce", "rps")  # cross-entropy, or the ranked probability score of ordered classes
LINKS = ("softmax", "cumulative")  # weights per class, or one score and thresholds between classes
LABELS = "labels"  # the link of sets: each label has a probability of its own
MOST_CLASSES = 10_000  # of a member; a file that claims more is damaged
_STEPS = 2000
_LBFGS_STEPS = 200
_LEAST = 1e-12
# At scikit-learn's 1e-4, probabilities from an encoder's vectors are off by up to 0.02.
_DENSE_TOLERANCE = 1e-6
# Looked for once: that takes as long as a regression.
_threads = cache(ThreadpoolController)


@dataclass(frozen=True)
class Logistic:
    """A fitted regression over C classes, of which it saw P, or over C labels of sets.

    Attributes
    ----------
    weights : ndarray of shape (P, F)
        [1, F] where it saw two classes, [0, F] where it saw one, [1, F] with the cumulative link.
    intercepts : ndarray
        One for each row of weights; with the cumulative link P − 1 thresholds.
    seen : ndarray of shape (P,)
        The classes it saw.
    n_classes, n_targets : int
        C, and the number of targets that it learned from.
    link : str
        How scores become probabilities.
    """

    weights: npt.NDArray[Any]
    intercepts: npt.NDArray[Any]
    seen: npt.NDArray[np.int64]
    n_classes: int
    n_targets: int
    link: str = LINKS[0]

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
        """Learn targets [N, C] from features [N, F], in double precision.

        A small strength means simple weights. A row of shares counts as several rows with one class
        each, weighted by the shares. A class that never occurs gets the probability 1 / (N + C), as
        if it had been seen once more; if only one class occurs, the answer is the same for every
        item. Each label of sets has a regression of its own.
        """
        if scale.is_multi_label:
            return cls._fit_labels(features, targets, strength)
        (n, c), size = targets.shape, features.shape[1]
        seen = np.flatnonzero(targets.any(axis=0))
        if len(seen) == 1:
            warn(f"all {n} targets name one class: this member predicts the same for every text")
            return cls(np.zeros((0, size)), np.zeros(0), seen, c, n)
        shares = targets[:, seen]
        if link == "cumulative":
            below = np.cumsum(shares.mean(axis=0))[:-1]
            model = cls(np.zeros((1, size)), np.log(below / (1 - below)), seen, c, n, link)
        else:
            model = cls(*_optimum(features, shares, strength), seen, c, n)
        if (loss, link) == (LOSSES[0], LINKS[0]):
            return model
        positions = np.arange(c) if scale.steps is None else np.append(0, np.cumsum(scale.steps))
        steps = np.diff(positions[seen])
        return _minimised(model, features, shares, strength, loss, steps / steps.mean())

    @classmethod
    def _fit_labels(cls, features: Any, targets: Floats, strength: float) -> Logistic:
        n, c = targets.shape
        weights = np.zeros((c, features.shape[1]))
        # As if it had been chosen, or left out, once more.
        intercepts = np.log(n + 1) * np.where(targets.any(axis=0), 1.0, -1.0)
        for label, choices in enumerate(targets.T):
            if choices.any() and (choices < 1).any():
                shares = np.column_stack([1 - choices, choices])
                rows = _optimum(features, shares, strength)
                weights[label], intercepts[label] = rows[0][0], rows[1][0]
        if not weights.any():
            warn(f"all {n} targets name one set: this member predicts the same for every text")
        return cls(weights, intercepts, np.arange(c), c, n, LABELS)

    def rounded(self) -> Logistic:
        """In single precision, as it is saved."""
        names = ("weights", "intercepts")
        return replace(self, **{name: getattr(self, name).astype(np.float32) for name in names})

    def predict(self, features: Any) -> Floats:
        """Probabilities [N, C]."""
        shares = self.shares(features)
        if self.link == LABELS:
            return shares
        return over_all_classes(shares, self.seen, self.n_classes, self.n_targets)

    def shares(self, features: Any) -> Floats:
        """Probabilities [N, P] of the classes it saw, or of labels."""
        scores = np.asarray(features @ self.weights.T.astype(np.float64))
        if self.link == LABELS:
            labels: Floats = expit(scores + self.intercepts)
            return labels
        if self.link == "cumulative":
            below = expit(self.intercepts - scores)
            return np.diff(below, axis=1, prepend=0.0, append=1.0)
        logits = np.zeros((len(scores), len(self.seen)))
        if len(self.seen) > 1:
            logits[:, -len(self.weights) :] = scores + self.intercepts
        classes: Floats = softmax(logits, axis=1)
        return classes

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Logistic:
        """From what ``arrays`` returned, read from a file; refused where it does not fit."""
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


def _optimum(features: Any, shares: Floats, strength: float) -> tuple[Floats, Floats]:
    """Weights [R, F] and intercepts [R] of the softmax link; R is 1 for two classes."""
    rows, classes = np.nonzero(shares)
    weights = shares[rows, classes]
    tolerance = {} if sparse.issparse(features) else {"tol": _DENSE_TOLERANCE}
    model = LogisticRegression(C=strength, solver="newton-cg", max_iter=_STEPS, **tolerance)
    # Members train side by side; threads of their own would only slow each other down.
    with _threads().limit(limits=1):
        if len(rows) == len(shares) and bool((weights == 1).all()):
            model.fit(features, classes)
        else:
            model.fit(features[rows], classes, sample_weight=weights)
    return model.coef_, model.intercept_


def _minimised(
    start: Logistic, features: Any, shares: Floats, strength: float, loss: str, steps: Floats
) -> Logistic:
    """The regression with the lowest penalised loss, found by L-BFGS from a start."""
    shape, size = start.weights.shape, start.weights.size
    cumulative = start.link == "cumulative"

    def model_at(parameters: Floats) -> Logistic:
        weights, intercepts = parameters[:size].reshape(shape), parameters[size:]
        if cumulative:  # the first threshold, and the logarithms of the gaps between them
            intercepts = np.cumsum(np.append(intercepts[0], np.exp(intercepts[1:])))
        return replace(start, weights=weights, intercepts=intercepts)

    def value_and_gradient(parameters: Floats) -> tuple[float, Floats]:
        model = model_at(parameters)
        p = model.shares(features)
        total, slope = _loss_and_slope(loss, p, shares, steps)
        if cumulative:
            below = np.cumsum(p, axis=1)[:, :-1]
            of_thresholds = (slope[:, :-1] - slope[:, 1:]) * below * (1 - below)
            of_scores = -of_thresholds.sum(axis=1, keepdims=True)
            of_intercepts = np.cumsum(of_thresholds.sum(axis=0)[::-1])[::-1]
            of_intercepts = of_intercepts * np.append(1.0, np.exp(parameters[size + 1 :]))
        else:
            of_scores = p * (slope - (p * slope).sum(axis=1, keepdims=True))
            of_scores = of_scores[:, -shape[0] :]
            of_intercepts = of_scores.sum(axis=0)
        of_weights = np.asarray(features.T @ of_scores).T + model.weights / strength
        total += (model.weights**2).sum() / (2 * strength)
        return total, np.concatenate([of_weights.ravel(), of_intercepts])

    intercepts = start.intercepts
    if cumulative:
        intercepts = np.append(intercepts[0], np.log(np.diff(intercepts)))
    parameters = np.concatenate([start.weights.ravel(), intercepts])
    with _threads().limit(limits=1):
        result = minimize(
            value_and_gradient,
            parameters,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _LBFGS_STEPS},
        )
    return model_at(result.x)


def _loss_and_slope(loss: str, p: Floats, shares: Floats, steps: Floats) -> tuple[float, Floats]:
    """The loss of probabilities [N, P] to shares, and its derivatives by the probabilities."""
    if loss == "ce":
        positive = np.maximum(p, _LEAST)
        return -float((shares * np.log(positive)).sum()), -shares / positive
    gaps = np.cumsum(p - shares, axis=1)[:, :-1]
    slope = np.zeros_like(p)
    slope[:, :-1] = np.cumsum((2 * steps * gaps)[:, ::-1], axis=1)[:, ::-1]
    return float((steps * gaps**2).sum()), slope


def check_loss(loss: str, link: str, scale: Scale | None = None) -> None:
    """Refuse a loss or link that is unknown, or that needs an order which a scale has not."""
    one_of("loss", loss, LOSSES)
    one_of("link", link, LINKS)
    for name, value, default in (("loss", loss, LOSSES[0]), ("link", link, LINKS[0])):
        if value != default and scale is not None and scale.positions is None:
            raise InputError(
                f"{name}={value!r} is for ordered classes, but the answer scale is {scale}",
                f"declare it with {option('scale', 'ordinal')}, or choose {name}={default!r}",
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
