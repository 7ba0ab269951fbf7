"""EDOClassifier: scikit-learn classifiers, pooled to match several annotators' labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from edokit._errors import InputError, one_of
from edokit._names import as_name
from edokit._types import Codes, Floats, Ints
from edokit.annotations import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.explain import Reason
from edokit.ensemble.fitted import Pooled
from edokit.ensemble.inputs import as_annotations, class_labels, label_array
from edokit.metrics import ce
from edokit.predictions import Predictions

SupervisionName = Literal["random-select", "majority"]
_EXAMPLE = 'give estimators=[("lr", LogisticRegression()), …]'


class EDOClassifier(ClassifierMixin, _BaseComposition, BaseEstimator):  # type: ignore[misc]
    """Pool scikit-learn classifiers so that their probabilities match several annotators' labels.

    Every classifier is fitted on all items, and weights are learned on out-of-fold predictions.

    Parameters
    ----------
    estimators : list of (str, classifier)
        Names and classifiers; each classifier needs ``predict_proba``.
    ensemble : EDOEnsemble, default=None
        Parameters of the pool; None for those of ``EDOEnsemble()``.
    prefit : bool, default=False
        Take the classifiers as they are and learn the weights alone. Give ``fit`` items that the
        classifiers were not fitted on.
    cv : int, splitter or iterable, default=5
        Folds of the out-of-fold predictions: a number of shuffled folds, a scikit-learn splitter
        (which is given the hard labels), or pairs of index arrays (train, test). Every item is
        held out once.
    supervision : {"random-select", "majority"}, default="random-select"
        Label that a classifier learns for an item: one annotator's, sampled anew for each
        classifier, or the majority's.
    missing_values : object, default=None
        Value in ``y`` that stands for no label, besides None and NaN.
    n_jobs : int, default=None
        Classifiers fitted in parallel, as in scikit-learn; -1 uses all cores.
    random_state : int, default=0
        Seed of folds and sampled labels.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, of the type that ``y`` had.
    ensemble_ : EDOEnsemble
        The fitted pool: weights, size, certificate and explanation.
    estimators_ : list of classifiers
        The fitted classifiers.
    weights_ : ndarray of shape (K,)
        Weight of each classifier.
    size_ : int
        How many classifiers carry weight.
    n_features_in_, feature_names_in_
        As in scikit-learn, where X is a table.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from edokit import EDOClassifier
    >>> X, y = make_classification(100, random_state=0)
    >>> labels = np.column_stack([y, y, 1 - y])  # three annotators
    >>> members = [("lr", LogisticRegression()), ("constant", DummyClassifier())]
    >>> model = EDOClassifier(members, cv=3).fit(X, labels)
    >>> model.classes_
    array([0, 1])
    >>> model.predict_proba(X).shape
    (100, 2)
    """

    classes_: npt.NDArray[Any]
    ensemble_: EDOEnsemble
    estimators_: list[Any]

    def __init__(
        self,
        estimators: Any = None,
        *,
        ensemble: EDOEnsemble | None = None,
        prefit: bool = False,
        cv: Any = 5,
        supervision: SupervisionName = "random-select",
        missing_values: Any = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimators = estimators
        self.ensemble = ensemble
        self.prefit = prefit
        self.cv = cv
        self.supervision = supervision
        self.missing_values = missing_values
        self.n_jobs = n_jobs
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
        """Fit the classifiers and learn their weights.

        Parameters
        ----------
        X : table of shape (N, F), or N texts
            Features, or texts (list, array or pandas Series) for classifiers that take them.
        y : array or Annotations
            Labels (N,), labels per annotator (N, A) with gaps, soft labels (N, C), or Annotations
            whose items are in the order of the rows.

        Returns
        -------
        EDOClassifier
            The fitted classifier itself.

        Raises
        ------
        InputError
            If rows, classes or parameters do not go together.
        """
        one_of("supervision", self.supervision, get_args(SupervisionName))
        names, estimators = self._named()
        if y is None:
            raise InputError("requires y to be passed, but the target y is None", "give labels")
        if _is_table(X):
            X = self._validated(X, reset=True)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        people = as_annotations(y, rows, missing_values=self.missing_values)
        labels = class_labels(y, people.classes, missing_values=self.missing_values)
        self.classes_ = label_array(people.classes, labels)
        if len(self.classes_) < 2:
            raise InputError(
                "a classifier needs at least two classes in y, but y holds one class",
                "give items with different labels",
            )
        if self.prefit:
            for estimator in estimators:
                check_is_fitted(estimator)
            self.estimators_ = estimators
            held_out = self._member_probabilities(X)
        else:
            held_out = self._cross_fit(X, people, estimators)
        predictions = _predictions(held_out, names, people.classes, people.items)
        pool = EDOEnsemble() if self.ensemble is None else clone(self.ensemble)
        self.ensemble_ = pool.fit(predictions, people)
        return self

    def describe(self, X: Any) -> Pooled:
        """Pooled probabilities with their entropy and the spread of the classifiers.

        Parameters
        ----------
        X : table of shape (N, F), or N texts
            Items.

        Returns
        -------
        Pooled
            ``probabilities``, ``entropy``, ``spread`` and ``labels`` of the N items.
        """
        check_is_fitted(self, "ensemble_")
        if _is_table(X) and hasattr(self, "n_features_in_"):
            X = self._validated(X, reset=False)
        fitted = self.ensemble_.fitted_
        found = _predictions(self._member_probabilities(X), fitted.members, fitted.classes)
        return self.ensemble_.describe(found)

    def predict_proba(self, X: Any) -> Floats:
        """Pooled probabilities (N, C) of the items in X, columns in the order of ``classes_``."""
        return self.describe(X).probabilities

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each item in X, of the type that ``y`` had."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[likeliest]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of items whose hard label is the likeliest class (micro-F1).

        Parameters
        ----------
        X, y
            As in ``fit``; the hard label of several is their majority.
        sample_weight : array of shape (N,), default=None
            Weight of each item.

        Returns
        -------
        float
            Between 0 and 1; the same measure as ``EDOEnsemble.score``.
        """
        predicted = self.predict(X)
        people = as_annotations(y, len(predicted), missing_values=self.missing_values)
        labels = class_labels(y, people.classes, missing_values=self.missing_values)
        hard = label_array(people.classes, labels)[people.hard_labels(ties="first")]
        return float(np.average(predicted == hard, weights=sample_weight))

    def soft_score(self, X: Any, y: Any) -> float:
        """Minus the cross-entropy between soft labels and pool: higher is better."""
        return soft_score(self, X, y)

    @property
    def weights_(self) -> Floats:
        """Weight of each classifier [K]."""
        return self.ensemble_.weights_

    @property
    def size_(self) -> int:
        """How many classifiers carry weight."""
        return self.ensemble_.size_

    def explain(self) -> list[Reason]:
        """Why each classifier has its weight, heaviest first; see `EDOEnsemble.explain`."""
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.explain()

    def save(self, folder: str | Path) -> None:
        """Write the pool as JSON and the fitted classifiers with skops: no pickle.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist. Gets ``ensemble.json``, ``classifier.json``, a card and
            ``members/``. Of ``cv`` only a number of folds is kept.
        """
        from edokit.ensemble.persistence import save_classifier

        save_classifier(self, folder)

    @classmethod
    def load(cls, folder: str | Path, *, trust: Sequence[str] = ()) -> EDOClassifier:
        """Read what ``save`` wrote.

        Parameters
        ----------
        folder : str or Path
            Folder with ``classifier.json``.
        trust : sequence of str, default=()
            Packages, besides scikit-learn, whose classes may be loaded.

        Returns
        -------
        EDOClassifier
            The fitted classifier.

        Raises
        ------
        InputError
            If parts are missing or damaged, or hold classes that are not trusted.
        """
        from edokit.ensemble.persistence import load_classifier

        return load_classifier(folder, trust=trust)

    def _validated(self, X: Any, reset: bool) -> Any:
        takes = self.__sklearn_tags__().input_tags
        return validate_data(
            self,
            X,
            accept_sparse=takes.sparse,
            ensure_all_finite=not takes.allow_nan,
            dtype=None,
            reset=reset,
        )

    def _named(self) -> tuple[list[str], list[Any]]:
        if not self.estimators:
            raise InputError("EDOClassifier needs at least one classifier, but got none", _EXAMPLE)
        pairs: Any = self.estimators if isinstance(self.estimators, list | tuple) else [None]
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise InputError(
                "estimators must be a list of (name, classifier), but got"
                f" {type(self.estimators).__name__}",
                _EXAMPLE,
            )
        for name, estimator in pairs:
            if not hasattr(estimator, "predict_proba"):
                raise InputError(
                    f"every classifier must have predict_proba, but {name!r}"
                    f" ({type(estimator).__name__}) has none",
                    "wrap it in CalibratedClassifierCV",
                )
        return [name for name, _ in pairs], [estimator for _, estimator in pairs]

    def _cross_fit(self, X: Any, people: Annotations, estimators: list[Any]) -> Floats:
        """Fit every classifier on all items; [N, K, C] what it says of items when held out."""
        folds = self._folds(X, people)
        everything = np.arange(len(people.items))
        targets = [self.classes_[self._targets(people, k)] for k in range(len(estimators))]
        fits = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(estimator, X, targets[k], learn, held_out, self.classes_)
            for learn, held_out in [*folds, (everything, None)]
            for k, estimator in enumerate(estimators)
        )
        shape = (len(everything), len(estimators), len(self.classes_))
        probabilities = np.zeros(shape)
        for f, (_, held_out) in enumerate(folds):
            for k in range(len(estimators)):
                probabilities[held_out, k] = fits[f * len(estimators) + k]
        self.estimators_ = fits[len(folds) * len(estimators) :]
        return probabilities

    def _folds(self, X: Any, people: Annotations) -> list[tuple[Ints, Ints]]:
        rows = len(people.items)
        if isinstance(self.cv, int | np.integer):
            splitter = KFold(min(int(self.cv), rows), shuffle=True, random_state=self.random_state)
        elif hasattr(self.cv, "split") or isinstance(self.cv, Iterable):
            splitter = check_cv(self.cv)
        else:
            raise InputError(
                f"cv={self.cv!r} gives no folds",
                "give a number, a scikit-learn splitter or pairs of index arrays",
                parameters=("cv",),
            )
        hard = people.hard_labels(ties="random", random_state=self.random_state)
        folds = list(splitter.split(np.zeros((rows, 1)), hard))
        held_out = np.sort(np.concatenate([np.asarray(fold[1], dtype=int) for fold in folds]))
        if not np.array_equal(held_out, np.arange(rows)):
            raise InputError(
                f"cv={self.cv!r} does not hold out every one of the {rows} items once",
                "use a splitter that partitions the items, such as KFold or StratifiedKFold",
                parameters=("cv",),
            )
        return folds

    def _targets(self, people: Annotations, member: int) -> Codes:
        """The class that member learns for each item [N]."""
        seed = [self.random_state, member]
        if self.supervision == "majority":
            return people.hard_labels(ties="random", random_state=self.random_state)
        draws = np.random.default_rng(seed).random(len(people.items))
        shares = np.cumsum(people.soft_labels, axis=1)
        targets: Codes = np.sum(draws[:, None] >= shares[:, :-1], axis=1, dtype=np.int32)
        return targets

    def _member_probabilities(self, X: Any) -> Floats:
        """[N, K, C] of all fitted classifiers."""
        columns = [_probabilities(each, X, self.classes_) for each in self.estimators_]
        return np.stack(columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        parts = [get_tags(estimator).input_tags for _, estimator in self.estimators or []]
        tags.input_tags.sparse = all(part.sparse for part in parts)
        tags.input_tags.allow_nan = all(part.allow_nan for part in parts)
        tags.target_tags.required = True
        return tags


def soft_score(estimator: Any, X: Any, y: Any) -> float:
    """Minus the cross-entropy to soft labels, for ``GridSearchCV(scoring=soft_score)``.

    Parameters
    ----------
    estimator : classifier
        Any fitted classifier with ``predict_proba``.
    X, y
        Items, and labels in any form that `EDOClassifier.fit` takes.

    Returns
    -------
    float
        At most 0; higher is better.
    """
    p = estimator.predict_proba(X)
    marked = getattr(estimator, "missing_values", None)
    classes = tuple(map(as_name, estimator.classes_))
    people = as_annotations(y, len(p), classes, missing_values=marked)
    if people.classes != classes:
        people = people.with_classes(classes)
    return -ce(p, people.soft_labels)


def _fit(
    estimator: Any,
    X: Any,
    labels: npt.NDArray[Any],
    learn: Ints,
    held_out: Ints | None,
    classes: npt.NDArray[Any],
) -> Any:
    """The fitted classifier, or its probabilities of held-out rows."""
    everything = held_out is None
    fitted = clone(estimator).fit(X if everything else _rows(X, learn), labels[learn])
    return fitted if held_out is None else _probabilities(fitted, _rows(X, held_out), classes)


def _probabilities(estimator: Any, X: Any, classes: npt.NDArray[Any]) -> Floats:
    """[N, C] in this order of classes; 0 for a class that the classifier never saw."""
    found = estimator.predict_proba(X)
    known = list(estimator.classes_)
    columns = np.zeros((found.shape[0], len(classes)))
    for c, label in enumerate(classes):
        if label in known:
            columns[:, c] = found[:, known.index(label)]
    total = columns.sum(axis=1, keepdims=True)
    return np.where(total > 0, columns / np.where(total > 0, total, 1), 1 / columns.shape[1])


def _predictions(
    probabilities: Floats, members: Sequence[str], classes: Sequence[str], items: Any = None
) -> Predictions:
    return Predictions.from_arrays(
        probabilities, items=items, members=members, classes=classes, layout="NKC"
    )


def _is_table(X: Any) -> bool:
    """Numbers in rows and columns; texts in a list, array or Series are left to classifiers."""
    if isinstance(X, list | tuple):
        return not (X and isinstance(X[0], str))
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    return not (getattr(X, "ndim", 2) == 1 and kind in ("O", "U", "T"))


def _rows(X: Any, positions: Ints) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[positions]
    if hasattr(X, "shape"):
        return X[positions]
    return [X[i] for i in positions]
