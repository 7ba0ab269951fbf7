"""Regularised regressions from features to probabilities, on every answer scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

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
_HALVES = 40
_LEAST = 1e-12
_GRADIENT = 1e-8
"""The largest gradient at an optimum, per target; scikit-learn's default is 1e-4."""
_CELLS = 1 << 22
"""Scores of regressions that are found side by side."""
_SMALL = 1 << 23
"""Features of regressions that one thread finds."""
_FEW = 4
"""Regressions over fewer than one in so many rows are found on their own."""


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
    def fit_each(
        cls,
        features: Any,
        tasks: Sequence[Task],
        strength: float,
        scale: Scale = NOMINAL,
        *,
        loss: str = LOSSES[0],
        link: str = LINKS[0],
    ) -> list[Logistic]:
        """A regression, in double precision, for each of several targets over the same features.

        A small strength means simple weights. A row of shares counts as several rows with one class
        each, weighted by the shares. A class that never occurs gets the probability 1 / (N + C), as
        if it had been seen once more; if only one class occurs, the answer is the same for every
        item. Each label of sets has a regression of its own.
        """
        given = [cls._given(targets, scale, link) for _, targets, _ in tasks]
        problems = [
            (rows, own, None if start is None else start._row(k))
            for (rows, _, start), each in zip(tasks, given, strict=True)
            for k, own in each.items()
        ]
        optima = iter(_optima(features, problems, strength))
        found = []
        for (rows, targets, _), each in zip(tasks, given, strict=True):
            own = {k: next(optima) for k in each}
            if scale.is_multi_label:
                found.append(cls._of_labels(targets, own, features.shape[1]))
            else:
                model = cls._of_classes(targets, own, features.shape[1], link)
                if len(model.seen) > 1 and (loss, link) != (LOSSES[0], LINKS[0]):
                    model = model._minimised(features[rows], targets, strength, loss, scale.steps)
                found.append(model)
        return found

    @staticmethod
    def _given(targets: Floats, scale: Scale, link: str) -> dict[int, Floats]:
        """Targets of the regressions with the softmax link that it takes: all of whose classes
        occur; of sets by label."""
        if scale.is_multi_label:
            pairs = enumerate(np.stack([1 - targets, targets], axis=2).transpose(1, 0, 2))
            return {k: pair for k, pair in pairs if pair.any(axis=0).all()}
        seen = targets.any(axis=0)
        return {0: targets[:, seen]} if seen.sum() > 1 and link == LINKS[0] else {}

    @classmethod
    def _of_classes(
        cls, targets: Floats, optima: Mapping[int, Optimum], size: int, link: str
    ) -> Logistic:
        n, c = targets.shape
        seen = np.flatnonzero(targets.any(axis=0))
        if len(seen) == 1:
            warn(f"all {n} targets name one class: this member predicts the same for every text")
            return cls(np.zeros((0, size)), np.zeros(0), seen, c, n)
        if link == "cumulative":
            below = np.cumsum(targets[:, seen].mean(axis=0))[:-1]
            return cls(np.zeros((1, size)), np.log(below / (1 - below)), seen, c, n, link)
        return cls(*optima[0], seen, c, n)

    @classmethod
    def _of_labels(cls, targets: Floats, optima: Mapping[int, Optimum], size: int) -> Logistic:
        n, c = targets.shape
        weights = np.zeros((c, size))
        # As if it had been chosen, or left out, once more.
        intercepts = np.log(n + 1) * np.where(targets.any(axis=0), 1.0, -1.0)
        for k, optimum in optima.items():
            weights[k], intercepts[k] = (part[0] for part in optimum)
        if not weights.any():
            warn(f"all {n} targets name one set: this member predicts the same for every text")
        return cls(weights, intercepts, np.arange(c), c, n, LABELS)

    def _row(self, label: int) -> Optimum:
        """Weights and intercepts; of sets those of a label."""
        rows = slice(label, label + 1) if self.link == LABELS else slice(None)
        return self.weights[rows], self.intercepts[rows]

    def rounded(self) -> Logistic:
        """In single precision, as it is kept."""
        kept = {name: getattr(self, name).astype(np.float32) for name in ("weights", "intercepts")}
        return replace(self, **kept)

    def _minimised(
        self, features: Any, targets: Floats, strength: float, loss: str, steps: Floats | None
    ) -> Logistic:
        """The regression with the lowest penalised loss, found from here."""
        places = np.arange(self.n_classes) if steps is None else np.append(0, np.cumsum(steps))
        steps, targets = np.diff(places[self.seen]), targets[:, self.seen]
        steps = steps / steps.mean()
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
        # Members train side by side; threads of their own would only slow each other down.
        with _threads().limit(limits=1):
            how: dict[str, Any] = {"method": "L-BFGS-B", "options": {"maxiter": _TRIES}}
            return at(minimize(value, start, jac=True, **how).x)

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


_threads = cache(ThreadpoolController)
"""Looked for once: that takes as long as a regression."""
Optimum = tuple[Floats, Floats]
"""Weights [R, F] and intercepts [R]; R is 1 for two classes."""
Task = tuple[Any, Floats, Logistic | None]
"""Rows of the features (a row may occur twice), their targets [n, C], and where to start."""
Problem = tuple[Any, Floats, Optimum | None]
"""The same with targets [n, P], all of whose classes occur, and the softmax link."""


def _optima(features: Any, problems: Sequence[Problem], strength: float) -> list[Optimum]:
    """The optimum of each problem, as `LogisticRegression` finds it; over dense features all
    problems that have most of the rows at once."""
    if sparse.issparse(features):
        table: Any = features
        return [_sparse(table[rows], targets, strength) for rows, targets, _ in problems]
    n, gram = len(features), _Gram(features)
    every = np.arange(n)
    found: list[Any] = [None] * len(problems)
    batches: list[list[int]] = []
    for p in dict.fromkeys(targets.shape[1] for _, targets, _ in problems):
        own = [k for k, (_, targets, _) in enumerate(problems) if targets.shape[1] == p]
        many = [k for k in own if _FEW * len(problems[k][1]) >= n]
        size = max(1, _CELLS // (n * p))
        batches += [many[k : k + size] for k in range(0, len(many), size)]
        batches += [[k] for k in own if k not in many]
    for batch in batches:
        rows, targets, _ = problems[batch[0]]
        if len(batch) == 1:
            every_row = isinstance(rows, slice) and rows == slice(None)
            over = gram if every_row else _Gram(features[rows])
            wide = targets.T[None]
        else:
            over, wide = gram, np.zeros((len(batch), targets.shape[1], n))
            for b, k in enumerate(batch):
                np.add.at(wide[b].T, every[problems[k][0]], problems[k][1])
        starts = [problems[k][2] for k in batch]
        # Threads wait for one another longer than small products take.
        with _threads().limit(limits=1 if features.size < _SMALL else None):
            for k, optimum in zip(batch, _newton(over, wide, strength, starts), strict=True):
                found[k] = optimum
    return found


def _sparse(features: Any, targets: Floats, strength: float) -> Optimum:
    """The optimum by scikit-learn."""
    rows, classes = np.nonzero(targets)
    model = LogisticRegression(C=strength, solver="newton-cg", max_iter=_STEPS)
    with _threads().limit(limits=1):
        if len(rows) == len(targets) and bool((targets[rows, classes] == 1).all()):
            model.fit(features, classes)
        else:
            model.fit(features[rows], classes, sample_weight=targets[rows, classes])
    return model.coef_, model.intercept_


class _Gram:
    """Features X [N, F] less their means, and what approximates the Hessian of every regression
    over them: the factor of XᵀX with a ridge."""

    def __init__(self, features: Floats) -> None:
        self.features, self.mean = features, features.mean(axis=0)
        self._ridge = np.inf
        self._factor: Any = None

    @cached_property
    def _products(self) -> Floats:
        products: Floats = self.features.T @ self.features
        # What rounding may take away: without it, features that depend on others have no factor.
        noise = sum(self.features.shape) * np.finfo(float).eps * products.diagonal().max(initial=0)
        products -= len(self.features) * np.outer(self.mean, self.mean)
        products.flat[:: len(products) + 1] += noise
        return products

    @cached_property
    def _squares(self) -> Floats:
        squares = np.einsum("nf,nf->f", self.features, self.features)
        own: Floats = np.maximum(squares - len(self.features) * self.mean**2, 0.0)
        return own

    def times(self, change: Floats) -> Floats:
        """Scores […, N] of weights and, at the end, an intercept […, F + 1]."""
        flat = change.reshape(-1, change.shape[-1])
        scores = flat[:, :-1] @ self.features.T
        scores += (flat[:, -1] - flat[:, :-1] @ self.mean)[:, None]
        return scores.reshape(*change.shape[:-1], -1)

    def back(self, of_scores: Floats) -> Floats:
        """The gradient […, F + 1] from that of the scores […, N]."""
        flat = of_scores.reshape(-1, of_scores.shape[-1])
        total = flat.sum(axis=1, keepdims=True)
        gradient = np.hstack([flat @ self.features - total * self.mean, total])
        return gradient.reshape(*of_scores.shape[:-1], -1)

    def solve(self, gradient: Floats, curvature: Floats, penalty: float) -> Floats:
        """About the inverse Hessian times a gradient […, F + 1], given the sums […] of the second
        derivatives by the scores."""
        n, size = self.features.shape
        flat = gradient.reshape(-1, size + 1)
        each = np.maximum(curvature.reshape(-1, 1), np.finfo(float).tiny)
        if n < size:
            # To factorise would take longer than the steps that it saves.
            weights = flat[:, :-1] / (each / n * self._squares + penalty)
        else:
            typical = float(np.exp(np.log(each).mean())) / n
            ridge = penalty / typical
            if not 0.7 < ridge / self._ridge < 1.5:
                self._ridge = ridge
                ridged = self._products + ridge * np.eye(size)
                self._factor = cho_factor(ridged, overwrite_a=True, check_finite=False)
            weights = cho_solve(self._factor, flat[:, :-1].T, check_finite=False).T / typical
        return np.hstack([weights, flat[:, -1:] / each]).reshape(gradient.shape)


def _newton(
    gram: _Gram, targets: Floats, strength: float, starts: Sequence[Optimum | None]
) -> list[Optimum]:
    """The optima of B regressions side by side, from targets [B, P, N].

    Newton's method, its steps by conjugate gradients: products with the features, which take most
    of the time, are those of all regressions at once.
    """
    mass = targets.sum(axis=1, keepdims=True)
    two = targets.shape[1] == 2
    targets = targets[:, 1:] if two else targets
    enough = _GRADIENT * mass.sum(axis=(1, 2))
    at = np.zeros((*targets.shape[:2], gram.features.shape[1] + 1))
    for b, start in enumerate(starts):
        if start is not None:
            at[b, :, :-1], at[b, :, -1] = start[0], start[1] + start[0] @ gram.mean
            enough[b] *= 10  # what was an optimum stays one, whatever the rounding
    penalty = np.full(at.shape[2], 1 / strength)
    penalty[-1] = 0.0

    def values(scores: Floats, at: Floats) -> Floats:
        total = np.logaddexp(0, scores) if two else logsumexp(scores, axis=1, keepdims=True)
        value: Floats = _dot(mass, total) - _dot(targets, scores) + _dot(penalty * at, at) / 2
        return value

    scores = gram.times(at)
    value, first = values(scores, at), None
    for _ in range(_STEPS):
        p = expit(scores) if two else softmax(scores, axis=1)
        expected = mass * p
        gradient = gram.back(expected - targets) + penalty * at
        active = np.abs(gradient).max(axis=(1, 2)) > enough
        if not active.any():
            break
        norm = np.sqrt(_dot(gradient, gradient))
        first = norm if first is None else first
        close = norm * np.minimum(0.5, np.sqrt(norm / np.maximum(first, norm)))
        curvature = (expected * (1 - p)).sum(axis=2)
        # Conjugate gradients for the Newton step.
        step, moved, rest = np.zeros_like(at), np.zeros_like(scores), -gradient
        direction = gram.solve(rest, curvature, 1 / strength)
        size = _dot(rest, direction)
        for _ in range(_TRIES):
            going = active & (np.sqrt(_dot(rest, rest)) > close)
            if not going.any():
                break
            along = gram.times(direction)
            bent = expected * along
            bent -= p * (bent if two else bent.sum(axis=1, keepdims=True))
            hessian = gram.back(bent) + penalty * direction
            length = np.where(going, size, 0) / np.where(going, _dot(direction, hessian), 1)
            length = length[:, None, None]
            step += length * direction
            moved += length * along
            rest -= length * hessian
            solved = gram.solve(rest, curvature, 1 / strength)
            before, size = np.where(going, size, 1), _dot(rest, solved)
            direction = solved + (size / before)[:, None, None] * direction
        # As much of it as lowers the loss.
        part, slope = active.astype(float), _dot(gradient, step)
        for _ in range(_HALVES):
            whole = part[:, None, None]
            tried, tried_scores = at + whole * step, scores + whole * moved
            found = values(tried_scores, tried)
            above = found > value + 1e-4 * part * slope + 1e-12 * np.abs(value)
            if not above.any():
                break
            part[above] /= 2
        at, scores, value = tried, tried_scores, found
    intercepts = at[:, :, -1] - at[:, :, :-1] @ gram.mean
    return list(zip(at[:, :, :-1], intercepts, strict=True))


def _dot(one: Floats, other: Floats) -> Floats:
    """Products [B] of arrays [B, …]."""
    product: Floats = np.einsum("brn,brn->b", one, other)
    return product


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
