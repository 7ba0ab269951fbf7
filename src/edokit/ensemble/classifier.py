"""scikit-learn classifiers in, an ensemble that answers like people out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted, validate_data

from edokit._errors import InputError, one_of
from edokit._types import Floats
from edokit.annotations import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.explain import Reason
from edokit.ensemble.inputs import answers_of
from edokit.predictions import Predictions

SUPERVISION = ("random-select", "majority")


class EDOClassifier(ClassifierMixin, _BaseComposition, BaseEstimator):  # type: ignore[misc]
    """Pool scikit-learn classifiers so that their probabilities match several annotators' answers.

    ``estimators``: a list of (name, classifier). ``y`` may be labels [N], labels per annotator
    [N, A] with gaps (None, NaN or the value ``missing``), soft labels [N, C], or `Annotations`.
    Each classifier learns from one answer per item, drawn anew for each (``random-select``) or
    the majority's; weights are learned on ``cv``-fold out-of-fold predictions, then every
    classifier is fitted on all items. With ``prefit`` the classifiers are taken as they are and
    only the weights are learned, so give items that they were not fitted on. ``ensemble`` holds
    the parameters of the pool: an `EDOEnsemble`, or None for its defaults.
    """

    classes_: npt.NDArray[Any]
    """Class labels, as they came in y."""
    ensemble_: EDOEnsemble
    """The fitted pool: its weights, size, certificate and explanation."""
    estimators_: list[Any]
    """The fitted classifiers."""

    def __init__(
        self,
        estimators: Any = None,
        *,
        ensemble: EDOEnsemble | None = None,
        prefit: bool = False,
        cv: int = 5,
        supervision: str = "random-select",
        missing: Any = None,
        random_state: int = 0,
    ) -> None:
        self.estimators = estimators
        self.ensemble = ensemble
        self.prefit = prefit
        self.cv = cv
        self.supervision = supervision
        self.missing = missing
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, those of the classifiers as ``name__parameter``."""
        found: dict[str, Any] = self._get_params("estimators", deep=deep)
        return found

    def set_params(self, **params: Any) -> EDOClassifier:
        """Set parameters by name, those of the classifiers as ``name__parameter``."""
        self._set_params("estimators", **params)
        return self

    def fit(self, X: Any, y: Any) -> EDOClassifier:
        """Fit the classifiers and learn their weights."""
        one_of("supervision", self.supervision, SUPERVISION)
        named = self._named()
        if not isinstance(y, Annotations) and y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        # Texts in a list or an array are fine if the classifiers (pipelines, say) take them.
        if _is_tabular(X):
            X = self._validated(X, reset=True)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        people, self.classes_ = answers_of(y, rows, self.missing)
        if len(self.classes_) < 2:
            raise InputError(
                "a classifier needs at least two classes in y, but y holds one class",
                "give items with different answers",
            )
        if self.prefit:
            for _, estimator in named:
                check_is_fitted(estimator)
            self.estimators_ = [estimator for _, estimator in named]
            held_out = np.stack([self._columns(e, X) for e in self.estimators_], axis=1)
        else:
            held_out = self._out_of_fold(X, people, [estimator for _, estimator in named])
            self.estimators_ = [
                clone(e).fit(X, self._labels(self._targets(people, k)))
                for k, (_, e) in enumerate(named)
            ]
        pool = EDOEnsemble() if self.ensemble is None else clone(self.ensemble)
        self._classes = people.classes
        self.ensemble_ = pool.fit(self._predictions(held_out, people.items), people)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Pooled probabilities [N, C]."""
        check_is_fitted(self, "ensemble_")
        if _is_tabular(X) and hasattr(self, "n_features_in_"):
            X = self._validated(X, reset=False)
        answers = np.stack([self._columns(e, X) for e in self.estimators_], axis=1)
        return self.ensemble_.predict_proba(self._predictions(answers, None))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each item [N]."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        chosen: npt.NDArray[Any] = self.classes_[likeliest]
        return chosen

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of items whose hard label is the likeliest class (micro-F1)."""
        predicted = self.predict_proba(X).argmax(axis=1)
        people, classes = answers_of(y, len(predicted), self.missing)
        hard = classes[people.hard_labels(ties="first")]
        right = self.classes_[predicted] == hard
        return float(np.average(right, weights=sample_weight))

    @property
    def weights_(self) -> Floats:
        """Weight of each classifier [K]."""
        return self.ensemble_.weights_

    @property
    def size_(self) -> int:
        """How many classifiers carry weight."""
        return self.ensemble_.size_

    def explain(self) -> list[Reason]:
        """Why each classifier has its weight, heaviest first."""
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.explain()

    def _validated(self, X: Any, reset: bool) -> Any:
        takes = self.__sklearn_tags__().input_tags
        finite = not takes.allow_nan
        return validate_data(
            self,
            X,
            accept_sparse=takes.sparse,
            ensure_all_finite=finite,
            dtype=None,
            reset=reset,
        )

    def _named(self) -> list[tuple[str, Any]]:
        if not self.estimators:
            raise InputError(
                "EDOClassifier needs at least one classifier, but got none",
                'give estimators=[("lr", LogisticRegression()), …]',
            )
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in _listed(self.estimators)):
            raise InputError(
                "estimators must be a list of (name, classifier), but got"
                f" {type(self.estimators).__name__}",
                'give estimators=[("lr", LogisticRegression()), …]',
            )
        for name, estimator in self.estimators:
            if not hasattr(estimator, "predict_proba"):
                raise InputError(
                    f"every classifier must have predict_proba, but {name!r}"
                    f" ({type(estimator).__name__}) has none",
                    "wrap it in CalibratedClassifierCV",
                )
        return list(self.estimators)

    def _out_of_fold(self, X: Any, people: Annotations, estimators: list[Any]) -> Floats:
        """[N, K, C] what each classifier says of items that it did not learn from."""
        rows = len(people.items)
        answers = np.zeros((rows, len(estimators), len(people.classes)))
        folds = KFold(min(self.cv, rows), shuffle=True, random_state=self.random_state)
        for learn, judge in folds.split(np.zeros(rows)):
            for k, estimator in enumerate(estimators):
                targets = self._targets(people, k)[learn]
                fitted = clone(estimator).fit(_rows(X, learn), self._labels(targets))
                answers[judge, k] = self._columns(fitted, _rows(X, judge))
        return answers

    def _targets(self, people: Annotations, member: int) -> npt.NDArray[np.int32]:
        """The class that member learns for each item [N]."""
        seed = [self.random_state, member]
        if self.supervision == "majority":
            return people.hard_labels(ties="random", random_state=self.random_state)
        draws = np.random.default_rng(seed).random(len(people.items))
        shares = people.soft_labels.cumsum(axis=1)
        targets: npt.NDArray[np.int32] = np.sum(
            draws[:, None] >= shares[:, :-1], axis=1, dtype=np.int32
        )
        return targets

    def _labels(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        return self.classes_[codes]

    def _columns(self, estimator: Any, X: Any) -> Floats:
        """[N, C] in our order of classes; 0 for a class that the classifier never saw."""
        given = estimator.predict_proba(X)
        known = list(estimator.classes_)
        columns = np.zeros((given.shape[0], len(self.classes_)))
        for c, label in enumerate(self.classes_):
            if label in known:
                columns[:, c] = given[:, known.index(label)]
        total = columns.sum(axis=1, keepdims=True)
        return np.where(total > 0, columns / np.where(total > 0, total, 1), 1 / columns.shape[1])

    def _predictions(self, answers: Floats, items: Any) -> Predictions:
        return Predictions.from_arrays(
            answers,
            items=items,
            members=[name for name, _ in self.estimators],
            classes=self._classes,
            layout="NKC",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        parts = [get_tags(estimator).input_tags for _, estimator in self.estimators or []]
        tags.input_tags.sparse = all(part.sparse for part in parts)
        tags.input_tags.allow_nan = all(part.allow_nan for part in parts)
        tags.target_tags.required = True
        return tags


def _listed(estimators: Any) -> list[Any]:
    return list(estimators) if isinstance(estimators, list | tuple) else [None]


def _is_tabular(X: Any) -> bool:
    """Numbers in rows and columns; texts in a list are left to the classifiers."""
    if isinstance(X, list | tuple):
        return not (X and isinstance(X[0], str))
    return not (getattr(X, "ndim", 2) == 1 and getattr(X, "dtype", None) == np.dtype(object))


def _rows(X: Any, positions: npt.NDArray[Any]) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[positions]
    if hasattr(X, "shape"):
        return X[positions]
    return [X[i] for i in positions]
