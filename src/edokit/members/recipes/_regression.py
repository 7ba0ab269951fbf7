"""Regularised regressions from features to probabilities, and members that are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from edokit._progress import Progress
from edokit._types import Floats, Ints, Reals
from edokit.annotator_effects import AnnotatorEffects
from edokit.members.arrays import NamedArrays
from edokit.members.contexts import Context, Text, distinct_texts, with_context
from edokit.members.recipe import (
    Annotators,
    Capabilities,
    Member,
    MemberData,
    RetiredOption,
    warn_of_equal_targets,
)
from edokit.members.recipe_options import Range, check_values
from edokit.scales import NOMINAL, Scale, unordered_scale

Features: TypeAlias = "Reals | sparse.csr_matrix"
"""Features of texts [N, F]."""
# The links, as files name them: a softmax over the classes, or a sigmoid for each label.
CLASSES = "softmax"
LABELS = "labels"
_STEPS = 2000
# At scikit-learn's 1e-4, probabilities from an encoder's vectors are off by up to 0.02.
_DENSE_TOLERANCE = 1e-6
# Made once, since finding the libraries takes as long as a regression.
_threads = cache(ThreadpoolController)


@dataclass(frozen=True)
class Logistic:
    """A fitted regression over C classes, of which P are in its targets, or over C labels.

    Attributes
    ----------
    weights : ndarray of shape (P, F)
        Weights of the features; [1, F] if P is 2, and [0, F] if P is 1.
    intercepts : ndarray
        One for each row of weights.
    seen : ndarray of int of shape (P,)
        The classes in its targets.
    n_classes, n_targets : int
        C, and the number of targets.
    link : str
        How scores become probabilities: ``CLASSES`` or ``LABELS``.
    """

    weights: Reals
    intercepts: Reals
    seen: Ints
    n_classes: int
    n_targets: int
    link: str = CLASSES

    @classmethod
    def fit(
        cls, features: Features, targets: Floats, strength: float, scale: Scale = NOMINAL
    ) -> Logistic:
        """Learn targets [N, C] from features [N, F], in double precision.

        The smaller the strength, the stronger the regularisation. A row of shares counts as several
        rows with one class each, weighted by the shares. A class that never occurs gets the
        probability 1 / (N + C), as if each class had been added once; if only one class occurs, the
        answer is the same for every item. For multi-label data, each label has its own regression.
        """
        if scale.is_multi_label:
            return cls._fit_labels(features, targets, strength)
        n, c = targets.shape
        seen_classes = np.flatnonzero(targets.any(axis=0))
        if len(seen_classes) == 1:
            warn_of_equal_targets(n)
            return cls(np.zeros((0, features.shape[1])), np.zeros(0), seen_classes, c, n)
        weights, intercepts = _optimum(features, targets[:, seen_classes], strength)
        return cls(weights, intercepts, seen_classes, c, n)

    @classmethod
    def _fit_labels(cls, features: Features, targets: Floats, strength: float) -> Logistic:
        n, c = targets.shape
        weights = np.zeros((c, features.shape[1]))
        # A label that was always, or never, chosen: as if there were one more target of each kind.
        intercepts = np.log(n + 1) * np.where(targets.any(axis=0), 1.0, -1.0)
        is_varied = targets.any(axis=0) & (targets < 1).any(axis=0)
        for label in np.flatnonzero(is_varied):
            choices = targets[:, label]
            shares = np.column_stack([1 - choices, choices])
            label_weights, label_intercepts = _optimum(features, shares, strength)
            weights[label] = label_weights[0]
            intercepts[label] = label_intercepts[0]
        if not is_varied.any():
            warn_of_equal_targets(n)
        return cls(weights, intercepts, np.arange(c), c, n, LABELS)

    def rounded(self) -> Logistic:
        """The same in single precision, in which it is saved."""
        return replace(
            self,
            weights=self.weights.astype(np.float32),
            intercepts=self.intercepts.astype(np.float32),
        )

    def predict(self, features: Features) -> Floats:
        """Probabilities [N, C]."""
        scores = np.asarray(features @ self.weights.T.astype(np.float64))
        if self.link == LABELS:
            probabilities: Floats = expit(scores + self.intercepts)
            return probabilities
        logits = np.zeros((len(scores), len(self.seen)))
        if len(self.seen) > 1:
            # Of two classes, the first has the logit 0.
            logits[:, -len(self.weights) :] = scores + self.intercepts
        shares = softmax(logits, axis=1)
        return over_all_classes(shares, self.seen, self.n_classes, self.n_targets)


RETIRED = (
    RetiredOption(
        "annotators",
        "leave it out: ensembles learn how people differ on top of any members (`edo run`, `edo"
        " fit`); the recipes nearest and transformer still have this option",
    ),
)
# What is saved of a member: its regression and, by earlier versions, effects of annotators.
_LOGISTIC = tuple(part.name for part in fields(Logistic))
ARRAYS = (*_LOGISTIC, "annotators", "effects")


def _optimum(features: Features, shares: Floats, strength: float) -> tuple[Floats, Floats]:
    """Weights [R, F] and intercepts [R] of the softmax link; R is 1 for two classes."""
    rows, classes = np.nonzero(shares)
    tolerance = {} if sparse.issparse(features) else {"tol": _DENSE_TOLERANCE}
    model = LogisticRegression(C=strength, solver="newton-cg", max_iter=_STEPS, **tolerance)
    # Members train side by side, one thread each; more would slow each other down.
    with _threads().limit(limits=1):
        model.fit(features[rows], classes, sample_weight=shares[rows, classes])
    return model.coef_, model.intercept_


def over_all_classes(shares: Floats, seen: Ints, n_classes: int, n_targets: int) -> Floats:
    """Probabilities [N, C] from shares [N, P] of the ``seen`` classes.

    The others get what they would have if each class had been added once to the targets.
    """
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
        Number of classes, or of labels of multi-label data.
    strength : float, default=5
        Inverse strength of the regularisation, like ``C`` of scikit-learn.
    context : float
        Weight of the context, relative to the text.

    Notes
    -----
    Members of earlier versions may have learned effects of annotators (option ``annotators``).
    They are read and answer for these annotators as they did.
    """

    capabilities = Capabilities(multi_label=True, retired=RETIRED)

    n_classes: int
    _: KW_ONLY
    strength: Annotated[float, Range(0, above=True)] = 5.0
    context: Annotated[float, Range(0)] = 0.4
    _model: Logistic = field(init=False, repr=False)
    _scale: Scale = field(default=NOMINAL, init=False, repr=False)
    _effects: AnnotatorEffects | None = field(default=None, init=False, repr=False)
    _corpus: tuple[Text, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        check_values(self)

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators whose effects a member of an earlier version has learned."""
        if self._effects is None:
            return ()
        return self._effects.annotators

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> ClassifierMember:
        """Fit the targets of epoch 0; the optimum is unique, so ``random_state`` plays no part."""
        self._corpus = data.corpus
        self._scale = data.scale
        self._effects = None
        features = self._fit_features(with_context(data.texts, data.context))
        targets = data.targets(0)
        self._model = Logistic.fit(features, targets, self.strength, data.scale).rounded()
        return self

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        distinct, rows = distinct_texts(with_context(texts, context))
        anonymous = self._model.predict(self._features(distinct))[rows]
        if annotators is None or self._effects is None:
            return anonymous
        return self._effects.predict(anonymous, annotators, self._scale)

    def _features(self, texts: Sequence[Text]) -> Features:
        """Features [N, F]."""
        raise NotImplementedError

    def _fit_features(self, texts: Sequence[Text]) -> Features:
        """Features [N, F] of the texts that it learns from."""
        return self._features(texts)

    def _arrays(self) -> NamedArrays:
        """The arrays of regression and effects, by name, to be saved."""
        arrays = {name: np.asarray(value) for name, value in vars(self._model).items()}
        if self._effects is not None:
            arrays["annotators"] = np.array(self._effects.annotators)
            arrays["effects"] = self._effects.effects
        return arrays

    def _take_arrays(self, arrays: NamedArrays) -> None:
        """Restore regression and effects from what ``_arrays`` returned."""
        parameters: dict[str, Any] = {}
        for name in _LOGISTIC:
            array = arrays[name]
            parameters[name] = array if array.ndim else array.item()
        self._model = Logistic(**parameters)
        # For effects, an ordinal scale is like a nominal one.
        self._scale = unordered_scale(self._model.link == LABELS)
        if "effects" in arrays:
            annotators = tuple(arrays["annotators"].tolist())
            self._effects = AnnotatorEffects(annotators, arrays["effects"])
