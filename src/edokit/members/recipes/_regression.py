"""Regularised regressions from features to probabilities, and members that are one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from edokit._errors import EDOWarning, InputError, warn
from edokit._types import Floats
from edokit.annotator_effects import AnnotatorEffects
from edokit.members.recipe import (
    Member,
    MemberData,
    Text,
    distinct_texts,
    known_labels,
    read_arrays,
    uses_attributes,
    with_context,
)
from edokit.members.recipes._ranges import Range, check_ranges
from edokit.scales import NOMINAL, Scale

# The links: weights per class, a probability of its own for each label of sets, or one score and
# thresholds between classes (of members that earlier versions trained).
CLASSES, LABELS, CUMULATIVE = "softmax", "labels", "cumulative"
MOST_CLASSES = 10_000  # of a member; a file that claims more is damaged
_STEPS = 2000
# At scikit-learn's 1e-4, probabilities from an encoder's vectors are off by up to 0.02.
_DENSE_TOLERANCE = 1e-6
_FOLDS = 5
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
    link: str = CLASSES

    arrays_needed: ClassVar = {
        "weights": "f RF",
        "intercepts": "f I",
        "seen": "i P",
        "n_classes": "i",
        "n_targets": "i",
    }

    @classmethod
    def fit(
        cls, features: Any, targets: Floats, strength: float, scale: Scale = NOMINAL
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
        return cls(*_optimum(features, targets[:, seen], strength), seen, c, n)

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
        if self.link == CUMULATIVE:
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
        link = str(arrays.get("link", CLASSES))
        seen = check_seen(path, arrays["seen"], int(arrays["n_classes"]))
        rows, intercepts = len(arrays["weights"]), len(arrays["intercepts"])
        expected = {
            LABELS: (len(seen), len(seen)),
            CUMULATIVE: (1, len(seen) - 1),
            CLASSES: ({1: 0, 2: 1}.get(len(seen), len(seen)),) * 2,
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


@dataclass(eq=False)
class ClassifierMember(Member):
    """A member that is a regression on features of texts.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of sets.
    strength : float, default=5
        How freely weights may grow.
    context : float
        What a context counts against the text itself.
    annotators : bool, default=False
        Learn how each annotator differs from the anonymous answer.
    """

    multi_label = True
    _ranges: ClassVar = {"strength": Range(0, above=True), "context": Range(0)}

    n_classes: int
    _: KW_ONLY
    strength: float = 5.0
    context: float = 0.4
    annotators: bool = False
    _model: Logistic | None = field(default=None, init=False, repr=False)
    _scale: Scale = field(default=NOMINAL, init=False, repr=False)
    _effects: AnnotatorEffects | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_ranges(self, self._ranges)

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators whose effects it has learned."""
        return () if self._effects is None else self._effects.annotators

    def predict_proba(
        self,
        texts: Sequence[Text],
        context: Sequence[str] | None = None,
        annotators: Sequence[Iterable[str]] | None = None,
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        if self._model is None:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        distinct, rows = distinct_texts(with_context(texts, context))
        anonymous = self._model.predict(self._features(distinct))[rows]
        if annotators is None or self._effects is None:
            return anonymous
        return self._effects.predict(anonymous, annotators, self._scale)

    def _features(self, texts: Sequence[Text]) -> Any:
        """Features [N, F]."""
        raise NotImplementedError

    def _learn(self, features: Any, data: MemberData) -> None:
        """Learn from the features [N, F] of the texts and the targets of epoch 0.

        Effects of annotators are learned from their labels and from anonymous answers that have
        not seen the item: in sample, these are too sure of the labels that they were fitted to.
        """
        targets, scale = data.targets(0), data.scale

        def fit_rows(rows: Any) -> Logistic:
            return Logistic.fit(features[rows], targets[rows], self.strength, scale).rounded()

        self._model, self._scale, self._effects = fit_rows(slice(None)), data.scale, None
        if not self.annotators:
            return
        annotations = known_labels(data)
        held_out = self._model.predict(features)
        n = len(held_out)
        folds = np.random.default_rng(n).permutation(n) % _FOLDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # reported of all targets above
            for fold in range(_FOLDS if n > _FOLDS else 0):
                inside = folds == fold
                held_out[inside] = fit_rows(np.flatnonzero(~inside)).predict(features[inside])
        self._effects = AnnotatorEffects.fit(held_out, annotations, data.scale)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Regression and effects by name."""
        assert self._model is not None
        arrays = self._model.arrays()
        if self._effects is not None:
            arrays["annotators"] = np.array(self._effects.annotators)
            arrays["effects"] = self._effects.effects
        return arrays

    def _take_arrays(self, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take what ``_arrays`` returned, read from a file; refused where it does not fit."""
        self._model = Logistic.of(path, arrays)
        # Effects need to know of a scale whether labels are on their own, and nothing else.
        self._scale = Scale("multi-label") if self._model.link == LABELS else NOMINAL
        if "effects" not in arrays:
            return
        if "rows_of_annotators" in arrays:
            raise uses_attributes(path)
        arrays = read_arrays(path, {"annotators": "t A", "effects": "f AE"})
        annotators, effects = tuple(arrays["annotators"].tolist()), arrays["effects"]
        if effects.shape[1] != self.n_classes + 1:
            raise InputError(
                f"{path} is damaged: its annotators' effects are not of {self.n_classes} classes",
                "train the member again",
            )
        self._effects = AnnotatorEffects(annotators, effects)
