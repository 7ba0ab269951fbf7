"""`EDOClassifier`: scikit-learn classifiers, pooled to match several annotators' labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import KFold, check_cv, cross_val_predict
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from edokit._errors import InputError, local_path, one_of, option
from edokit._io.atomic import whole_file
from edokit._io.documents import Count, Document, write_json
from edokit._names import as_name
from edokit._types import ClassValues, Codes, Floats, Ints
from edokit.annotations.core import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Reason
from edokit.ensemble.persistence import FORMAT, read_saved, write_fitted
from edokit.ensemble.pooled import Pooled
from edokit.fitdata.arrays import as_annotations, class_labels, label_array
from edokit.fitdata.reading import LabelsLike
from edokit.item_array import ItemArray, Order
from edokit.metrics import ce
from edokit.predictions.core import Predictions
from edokit.rows import Rows, is_default_index, missing_ids
from edokit.runs.folder import output_folder
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from scipy.sparse import spmatrix
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags

Items: TypeAlias = (
    "Sequence[object] | npt.NDArray[np.generic] | pd.DataFrame | pd.Series | spmatrix"
)
"""The items that a classifier takes: a table of shape (N, F), or N texts."""


class Classifier(Protocol):
    """A scikit-learn classifier that predicts probabilities."""

    classes_: ClassValues

    def fit(self, X: Items, y: ClassValues, **arguments: Floats) -> Classifier:
        """Fit to labels ``y``; ``arguments`` are weights of rows."""

    def predict_proba(self, X: Items) -> Floats:
        """Probabilities [N, C]."""


SupervisionName = Literal["random-select", "soft", "majority"]
_FILE = "classifier.json"


class _Parameters(Document):
    """Parameters of `EDOClassifier` in ``classifier.json``, except estimators and ensemble."""

    prefit: bool
    cv: Annotated[int, Field(ge=2)] | None
    supervision: SupervisionName
    n_jobs: int | None
    random_state: Count | None


class ClassifierDocument(Document):
    """The content of ``classifier.json``."""

    classes: list[str | bool | int | float]
    parameters: _Parameters
    n_features_in: Count | None
    feature_names_in: list[str] | None


class _FitTask(NamedTuple):
    """What a classifier learns."""

    estimator: Classifier
    targets: ClassValues
    """The label of each row, or an indicator matrix for multi-label data."""
    weights: dict[str, Floats]
    """Weights of rows by argument of ``fit``; empty without weights."""


class EDOClassifier(ClassifierMixin, _BaseComposition, BaseEstimator):  # type: ignore[misc]
    """Pool scikit-learn classifiers so that their probabilities match several annotators' labels.

    Every classifier is fitted on all items, and weights are learned on out-of-fold predictions.

    ``cross_val_score``, ``GridSearchCV`` and similar tools accept a ``y`` with a column per
    annotator and gaps (None, NaN, pandas' NA, masked), as an array or a DataFrame. Their folds are
    then those of ``KFold``: scikit-learn stratifies only for estimators that declare to be
    classifiers, and this one does so only after a fit on labels without gaps. Shuffle items that
    are sorted by label.

    Parameters
    ----------
    estimators : list of (str, classifier)
        Names and classifiers; each classifier needs ``predict_proba``.
    ensemble : EDOEnsemble, default=None
        The ensemble that learns the weights; None for ``EDOEnsemble()``. Its ``scale`` is that of
        ``y``:
        ``EDOEnsemble(scale="ordinal:1,2,3")`` for points of an ordinal scale, ``"multi-label"`` for
        sets of labels.
    prefit : bool, default=False
        Whether the classifiers are fitted already, so that only the weights are learned. The items
        for ``fit`` must not be those that the classifiers were fitted on.
    cv : int, splitter or iterable, default=5
        Folds of the out-of-fold predictions: a number of shuffled folds, a scikit-learn splitter
        (which is given the hard labels), or pairs of index arrays (train, test). Every item is
        held out once.
    supervision : {"random-select", "soft", "majority"}, default="random-select"
        The label that a classifier learns for an item. ``random-select``: that of one annotator,
        drawn anew for each classifier. ``soft``: every label, weighted by the share of annotators
        who gave it; mostly the best, for classifiers whose ``fit`` takes ``sample_weight``.
        ``majority``: that of the majority.
    n_jobs : int, default=None
        Number of classifiers that are fitted in parallel, as in scikit-learn; -1 uses all cores.
    random_state : int, default=0
        Seed of folds and sampled labels.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, of the type that ``y`` had.
    ensemble_ : EDOEnsemble
        The fitted ensemble: weights, size, certificate and explanation.
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
    >>> labels = np.column_stack([y, y, np.roll(y, 1)])  # three annotators
    >>> members = [("lr", LogisticRegression()), ("constant", DummyClassifier())]
    >>> model = EDOClassifier(members, cv=3).fit(X, labels)
    >>> model.classes_
    array([0, 1])
    >>> model.predict_proba(X).shape
    (100, 2)
    """

    classes_: ClassValues
    ensemble_: EDOEnsemble
    estimators_: list[Classifier]
    _has_gaps = False  # whether annotators left items of the fit unlabelled

    def __init__(
        self,
        estimators: Sequence[tuple[str, Classifier]] | None = None,
        *,
        ensemble: EDOEnsemble | None = None,
        prefit: bool = False,
        cv: int | BaseCrossValidator | Iterable[tuple[Ints, Ints]] = 5,
        supervision: SupervisionName = "random-select",
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimators = estimators
        self.ensemble = ensemble
        self.prefit = prefit
        self.cv = cv
        self.supervision = supervision
        self.n_jobs = n_jobs
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, those of the classifiers as ``name__parameter``."""
        parameters = dict(self._get_params("estimators", deep=deep))
        if deep and self.ensemble is None:
            defaults = EDOEnsemble().get_params()
            parameters |= {f"ensemble__{name}": value for name, value in defaults.items()}
        return parameters

    def set_params(self, **params: object) -> EDOClassifier:
        """Set parameters by name, those of the classifiers as ``name__parameter``."""
        has_nested = any(name.startswith("ensemble__") for name in params)
        if has_nested and self.ensemble is None and "ensemble" not in params:
            self.ensemble = EDOEnsemble()
        self._set_params("estimators", **params)
        return self

    def fit(self, X: Items, y: LabelsLike, *, order: Order | None = None) -> EDOClassifier:
        """Fit the classifiers and learn their weights.

        Parameters
        ----------
        X : table of shape (N, F), or N texts
            Features, or texts (list, array or pandas Series) for classifiers that take them.
        y : array or Annotations
            Labels (N,), labels per annotator (N, A) with gaps, soft labels (N, C), or Annotations.
            For multi-label data, 0 or 1, or the share of annotators, for each label (N, L); the
            classifiers then take an indicator matrix, as scikit-learn's ``OneVsRestClassifier`` and
            forests do. Annotations are matched with the index of a pandas X by id.
        order : {"annotations"}, default=None
            Declares that the rows of an X without ids are in the order of the annotations' items.
            By default, an X without ids is an error if the annotations have ids.

        Returns
        -------
        EDOClassifier
            The fitted classifier itself.

        Raises
        ------
        InputError
            If rows, classes or parameters contradict each other.
        """
        names, estimators = self._checked_estimators()
        if y is None:
            # scikit-learn's check of estimators looks for these words.
            raise InputError(
                "requires y to be passed, but the target y is None",
                "give labels",
                code="missing-labels",
            )
        ids_of_rows = _item_ids(X)
        if _is_table(X):
            X = self._validated(X, reset=True)
        n_items = X.shape[0] if hasattr(X, "shape") else len(X)
        labels, self.classes_ = self._labels(y, n_items, ids_of_rows, order)
        self._has_gaps = len(labels) < n_items * len(labels.annotators)
        if len(labels.scale.row_classes(labels.classes)) < 2:
            raise InputError(
                "a classifier needs at least two classes in y, but y holds one class",
                "give items with different labels",
                code="too-few-classes",
            )
        if self.prefit:
            for estimator in estimators:
                check_is_fitted(estimator)
            self.estimators_ = estimators
            probabilities = self._member_probabilities(X, labels.scale)
        else:
            probabilities = self._cross_fit(X, labels, estimators)
        item_ids = None
        if labels.rows.has_ids:
            item_ids = labels.items
        predictions = Predictions.from_arrays(
            probabilities,
            items=item_ids,
            members=names,
            classes=labels.classes,
            layout="NKC",
            scale=labels.scale,
        )
        if self.ensemble is None:
            ensemble = EDOEnsemble()
        else:
            ensemble = clone(self.ensemble)
        self.ensemble_ = ensemble.fit(predictions, labels)
        return self

    def _checked_estimators(self) -> tuple[list[str], list[Classifier]]:
        """Return names and classifiers; refuse parameters that a fit can't use."""
        one_of("supervision", self.supervision, get_args(SupervisionName))
        entries: Sequence[tuple[str, Classifier]] = ()
        if isinstance(self.estimators, list | tuple):
            entries = self.estimators
        are_pairs = all(isinstance(entry, tuple) and len(entry) == 2 for entry in entries)
        if not entries or not are_pairs:
            raise InputError(
                "estimators must be a list of (name, classifier), with at least one classifier",
                'give estimators=[("lr", LogisticRegression()), …]',
                code="invalid-estimators",
            )
        for name, estimator in entries:
            if not hasattr(estimator, "predict_proba"):
                raise InputError(
                    f"every classifier must have predict_proba, but {name!r}"
                    f" ({type(estimator).__name__}) has none",
                    "wrap it in CalibratedClassifierCV",
                    code="invalid-estimators",
                )
        return [name for name, _ in entries], [estimator for _, estimator in entries]

    def describe(self, X: Items, *, answer_for: str | None = None) -> Pooled:
        """Pooled probabilities with their entropy and the spread of the classifiers.

        Parameters
        ----------
        X : table of shape (N, F), or N texts
            Items.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Also make ``answers`` for this metric; see `EDOEnsemble.predict_proba`.

        Returns
        -------
        Pooled
            ``probabilities``, ``entropy``, ``spread`` and ``labels`` of the N items.
        """
        check_is_fitted(self, "ensemble_")
        if _is_table(X) and hasattr(self, "n_features_in_"):
            X = self._validated(X, reset=False)
        probabilities = self._member_probabilities(X, self.ensemble_.scale_)
        return self.ensemble_.describe(probabilities, answer_for=answer_for)

    def predict_proba(self, X: Items, *, answer_for: str | None = None) -> Floats:
        """Pooled probabilities (N, C) of the items in X, with columns in the order of ``classes_``.

        With ``answer_for``, these are answers for this metric; see `EDOEnsemble.predict_proba`.
        """
        return self.describe(X, answer_for=answer_for).answer

    def predict(self, X: Items) -> ClassValues:
        """The likeliest class of each item in X, of the type that ``y`` had.

        For multi-label data, an indicator matrix (N, L): 1 for labels above one half.
        """
        check_is_fitted(self, "ensemble_")
        scale = self.ensemble_.scale_
        return scale.labels(scale.hard(self.predict_proba(X)), self.classes_)

    def score(
        self,
        X: Items,
        y: LabelsLike,
        sample_weight: Sequence[float] | Floats | None = None,
        *,
        order: Order | None = None,
    ) -> float:
        """Accuracy: the share of items whose hard label is the likeliest class (micro-F1).

        Parameters
        ----------
        X, y, order
            As in ``fit``. The hard label of an item is the label of most annotators; on a tie, the
            first of the tied classes.
        sample_weight : array of shape (N,), default=None
            Weight of each item.

        Returns
        -------
        float
            Between 0 and 1; the same measure as ``EDOEnsemble.score`` with ``ties="first"``.
        """
        predicted = self.predict(X)
        labelled, classes = self._labels(y, len(predicted), _item_ids(X), order)
        hard = labelled.hard_labels(ties="first")
        scale = labelled.scale
        is_correct = predicted == scale.labels(hard, classes)
        accuracies = scale.per_item(is_correct, len(is_correct))
        return float(np.average(accuracies, weights=sample_weight))

    def soft_score(self, X: Items, y: LabelsLike, *, order: Order | None = None) -> float:
        """Minus the cross-entropy between soft labels and pool: higher is better."""
        return soft_score(self, X, y, order=order)

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

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the ensemble as JSON and the fitted classifiers with skops: no pickle.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist. It gets ``ensemble.json``, ``classifier.json``, a card and
            ``members/``. A ``cv`` that is not a number of folds is not saved.
        overwrite : bool, default=False
            As in `EDOEnsemble.save`.
        """
        check_is_fitted(self, "ensemble_")
        with output_folder(local_path(folder), "ensemble", overwrite=overwrite):
            self._write(Path(folder))

    def _write(self, folder: Path) -> None:
        """Write all files into a folder that is locked."""
        from edokit._io.skops import write_estimator

        write_fitted(self.ensemble_.fitted_, folder)
        for k, estimator in enumerate(self.estimators_):
            with whole_file(folder / "members" / f"{k}.skops") as temporary:
                write_estimator(estimator, temporary)
        parameters = {name: getattr(self, name) for name in _Parameters.model_fields}
        if isinstance(self.cv, Integral):
            parameters["cv"] = int(self.cv)
        else:
            parameters["cv"] = 5  # a splitter can't be written as JSON, nor is it needed to predict
        feature_names = None
        if hasattr(self, "feature_names_in_"):
            feature_names = self.feature_names_in_.tolist()
        content = {
            "format": FORMAT,
            "kind": "edo-classifier",
            "classes": self.classes_.tolist(),
            "parameters": parameters,
            "n_features_in": getattr(self, "n_features_in_", None),
            "feature_names_in": feature_names,
        }
        write_json(content, folder / _FILE)

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
        from edokit._io.skops import read_estimator_file

        path = Path(folder) / _FILE
        if not path.exists():
            raise InputError(
                f"a classifier is a folder with {_FILE}, but {folder} has none",
                "make one with EDOClassifier.save",
                code="wrong-folder",
            )
        ensemble = EDOEnsemble.load(folder)
        document = read_saved(path, "classifier", ClassifierDocument)
        model = cls(**dict(document.parameters))
        labels = tuple(document.classes)
        classes = ensemble.fitted_.classes
        if tuple(map(as_name, labels)) != classes:
            raise InputError(
                f"{path}: classes are not those of its ensemble",
                "save it again",
                code="damaged-file",
            )
        model.classes_ = label_array(classes, labels)
        if document.n_features_in is not None:
            model.n_features_in_ = document.n_features_in
        if document.feature_names_in is not None:
            model.feature_names_in_ = np.array(document.feature_names_in, dtype=object)
        files = [Path(folder) / "members" / f"{k}.skops" for k in range(len(ensemble.members_))]
        model.estimators_ = [read_estimator_file(file, trust) for file in files]
        model.estimators = list(zip(ensemble.members_, model.estimators_, strict=True))
        model.ensemble = clone(ensemble)
        model.ensemble_ = ensemble
        return model

    def _labels(
        self, y: LabelsLike, n_items: int, item_ids: Rows | None, order: Order | None
    ) -> tuple[Annotations, ClassValues]:
        """Return the annotations in y, and their classes in the type of its labels."""
        scale = None
        if self.ensemble is not None:
            scale = self.ensemble.scale
        labelled = as_annotations(_labels_with_ids(y, item_ids), n_items, scale=scale)
        annotations = _aligned(labelled, item_ids, order)
        labels = class_labels(y, annotations)
        return annotations, label_array(annotations.classes, labels)

    def _validated(self, X: Items, reset: bool) -> Items:
        """Return X after scikit-learn's checks; ``reset`` stores the names of its columns."""
        input_tags = self.__sklearn_tags__().input_tags
        validated: Items = validate_data(
            self,
            X,
            accept_sparse=input_tags.sparse,
            ensure_all_finite=not input_tags.allow_nan,
            dtype=None,
            reset=reset,
        )
        return validated

    def _cross_fit(self, X: Items, labels: Annotations, estimators: list[Classifier]) -> Floats:
        """Fit every classifier on all items; return its held-out probabilities [N, K, C]."""
        hard_labels = labels.hard_labels("random", self.random_state)
        n_items = len(labels.items)
        cv = self.cv
        if isinstance(cv, Integral):
            cv = KFold(min(int(cv), n_items), shuffle=True, random_state=self.random_state)
        folds: list[Sequence[Ints]] = list(check_cv(cv).split(np.zeros((n_items, 1)), hard_labels))
        items, tasks = self._fit_tasks(labels, hard_labels, estimators)
        first_rows = np.unique(items, return_index=True)[1]
        has_several_rows_per_item = len(items) > n_items
        if has_several_rows_per_item:
            X = _safe_indexing(X, items)
            folds_of_items = folds
            folds = []
            for train, test in folds_of_items:
                train_rows = np.flatnonzero(np.isin(items, train))
                test_rows = np.flatnonzero(np.isin(items, test))
                folds.append((train_rows, test_rows))
        held_out = []
        for task in tasks:
            with warnings.catch_warnings():
                # A class that a fold lacks has probability 0 there.
                warnings.filterwarnings("ignore", "Number of classes in training fold")
                p = cross_val_predict(
                    task.estimator,
                    X,
                    task.targets,
                    params=task.weights,
                    cv=folds,
                    n_jobs=self.n_jobs,
                    method="predict_proba",
                )
            if has_several_rows_per_item:
                p = p[first_rows]  # the rows of an item have the same predictions
            learned_classes = _learned_classes(task.targets)
            held_out.append(_for_all_classes(p, learned_classes, self.classes_, labels.scale))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(clone(task.estimator).fit)(X, task.targets, **task.weights) for task in tasks
        )
        return np.stack(held_out, axis=1)

    def _fit_tasks(
        self, labels: Annotations, hard_labels: Codes, estimators: list[Classifier]
    ) -> tuple[Ints, list[_FitTask]]:
        """Return the item of each row to fit on [n], and what each classifier learns from them."""
        scale = labels.scale
        if self.supervision != "soft":
            tasks = []
            for k, estimator in enumerate(estimators):
                targets = scale.labels(self._target_codes(labels, hard_labels, k), self.classes_)
                tasks.append(_FitTask(estimator, targets, {}))
            return np.arange(len(labels.items)), tasks
        if scale.is_multi_label:
            raise InputError(
                f"{option('supervision', 'soft')} weights classes by shares, but y holds sets",
                f"choose {option('supervision', 'random-select')}",
                code="inapplicable-option",
            )
        # There is a row for each item and each class that an annotator of the item chose.
        items, codes = np.nonzero(labels.soft_labels)
        targets = scale.labels(codes.astype(np.int32), self.classes_)
        weights = labels.soft_labels[items, codes]
        tasks = []
        for estimator in estimators:
            tasks.append(_FitTask(estimator, targets, {_weight_name(estimator): weights}))
        return items, tasks

    def _target_codes(self, labels: Annotations, hard_labels: Codes, k: int) -> Codes:
        """Return the labels that classifier k learns: the majority's, or one drawn per item."""
        if self.supervision == "majority":
            return hard_labels
        # For multi-label data, each label is drawn independently.
        cumulative_shares = np.cumsum(labels.scale.rows(labels.soft_labels), axis=1)[:, :-1]
        draws = np.random.default_rng([self.random_state, k]).random((len(cumulative_shares), 1))
        codes = np.asarray((draws >= cumulative_shares).sum(axis=1), dtype=np.int32)
        return codes.reshape(hard_labels.shape)

    def _member_probabilities(self, X: Items, scale: Scale) -> Floats:
        """Return the probabilities [N, K, C] that all fitted classifiers predict."""
        columns = []
        for member in self.estimators_:
            p = member.predict_proba(X)
            columns.append(_for_all_classes(p, member.classes_, self.classes_, scale))
        return np.stack(columns, axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        input_tags = [get_tags(estimator).input_tags for _, estimator in self.estimators or []]
        tags.input_tags.sparse = all(member_tags.sparse for member_tags in input_tags)
        tags.input_tags.allow_nan = all(member_tags.allow_nan for member_tags in input_tags)
        tags.target_tags.required = True
        # cross_val_score and GridSearchCV stratify y for classifiers, and cannot do so if y has
        # gaps. Whether it has any is unknown before a fit.
        if not hasattr(self, "ensemble_") or self._has_gaps:
            tags.estimator_type = None
        return tags


def soft_score(
    estimator: Classifier, X: Items, y: LabelsLike, *, order: Order | None = None
) -> float:
    """Minus the cross-entropy to soft labels, for ``GridSearchCV(scoring=soft_score)``.

    Parameters
    ----------
    estimator : classifier
        Any fitted classifier with ``predict_proba``.
    X, y, order
        Items, and labels in any form that `EDOClassifier.fit` takes.

    Returns
    -------
    float
        At most 0; higher is better.
    """
    p = estimator.predict_proba(X)
    classes = tuple(map(as_name, estimator.classes_))
    scale = NOMINAL
    declared_scale = None
    if hasattr(estimator, "ensemble_"):
        scale = estimator.ensemble_.scale_
    if scale != NOMINAL:
        declared_scale = scale
    items = _item_ids(X)
    y = _labels_with_ids(y, items)
    labelled = as_annotations(y, len(p), classes, scale=declared_scale)
    labelled = _aligned(labelled, items, order)
    if labelled.classes != classes:
        labelled = labelled.with_classes(classes)
    return -ce(scale.rows(p), scale.rows(np.asarray(labelled.soft_labels)))


def _item_ids(X: Items) -> Rows | None:
    """Return the item ids in the index of a pandas table or series; None without ids."""
    index = getattr(X, "index", None)
    if not isinstance(index, pd.Index) or is_default_index(index):
        return None
    return Rows.from_names(index)


def _labels_with_ids(y: LabelsLike, items: Rows | None) -> LabelsLike:
    """Return the labels of a table with the ids of its index where these are the ids of X.

    A table with another index is matched by position, as in scikit-learn.
    """
    if not isinstance(y, pd.DataFrame | pd.Series) or is_default_index(y.index):
        return y
    values = y.to_numpy()
    if items is not None and {str(name) for name in y.index} == {*items.names}:
        return ItemArray(values, y.index)
    labels: LabelsLike = values
    return labels


def _aligned(labels: Annotations, items: Rows | None, order: Order | None) -> Annotations:
    """Return annotations in the order of X, matched by the ids ``items`` of its rows.

    Annotations without ids, and those whose ``order`` is declared, are matched by position: as in
    scikit-learn, the index of X is ignored if the labels are an array.
    """
    if order is not None:
        one_of("order", order, get_args(Order))
    if order is not None or not labels.rows.has_ids:
        return labels
    if items is None:
        hint = "give a pandas table with the ids as index"
        raise missing_ids("the rows of X", "the annotations", hint)
    return labels.align(items)


def _learned_classes(targets: ClassValues) -> ClassValues | list[ClassValues]:
    """Return the classes in labels [N]; for an indicator matrix [N, L], those of each column."""
    if targets.ndim == 1:
        return np.unique(targets)
    return [np.unique(column) for column in targets.T]


def _weight_name(estimator: Classifier) -> str:
    """Return the argument of ``fit`` for weights of rows; for a pipeline, that of its last step."""
    name = "sample_weight"
    final_step = estimator
    if hasattr(estimator, "steps"):
        step_name, final_step = estimator.steps[-1]
        name = f"{step_name}__sample_weight"
    if not has_fit_parameter(final_step, "sample_weight"):
        raise InputError(
            f"{option('supervision', 'soft')} needs classifiers whose fit takes sample_weight, but"
            f" that of {type(final_step).__name__} does not",
            f"choose {option('supervision', 'random-select')}, or another classifier",
            code="unsupported-weights",
        )
    return name


def _for_all_classes(
    probabilities: Floats | list[Floats],
    learned_classes: ClassValues | list[ClassValues],
    classes: ClassValues,
    scale: Scale,
) -> Floats:
    """Return a classifier's probabilities for all classes [N, C], 0 for those it has not learned.

    For multi-label data, return probabilities of labels [N, L], from such a matrix or, as forests
    predict, from an array [N, 2] per label.
    """
    if isinstance(probabilities, list):
        by_label = []
        for p, values in zip(probabilities, learned_classes, strict=True):
            if 1 in values:
                by_label.append(p[:, list(values).index(1)])
            else:
                by_label.append(np.zeros(len(p)))
        return np.stack(by_label, axis=1)
    if scale.is_multi_label:
        return np.asarray(probabilities, dtype=np.float64)
    learned = list(learned_classes)
    columns = np.zeros((probabilities.shape[0], len(classes)))
    for c, label in enumerate(classes):
        if label in learned:
            columns[:, c] = probabilities[:, learned.index(label)]
    total = columns.sum(axis=1, keepdims=True)
    normalized = columns / np.where(total > 0, total, 1)
    return np.where(total > 0, normalized, 1 / columns.shape[1])


def _is_table(X: Items) -> bool:
    """Return whether X is a table of features, which scikit-learn can check, and not N texts."""
    if isinstance(X, list | tuple):
        return not (X and isinstance(X[0], str))
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    return not (getattr(X, "ndim", 2) == 1 and kind in ("O", "U", "T"))
