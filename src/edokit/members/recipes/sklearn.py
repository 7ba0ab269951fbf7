"""Members that are any scikit-learn classifier or regressor, given as text, kept with skops."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.multioutput import MultiOutputClassifier
from threadpoolctl import threadpool_limits

from edokit._errors import InputError, option
from edokit._io.skops import read_estimator_file, write_estimator
from edokit._progress import Progress
from edokit._types import Bools, Floats, Ints
from edokit.members.arrays import read_arrays, write_arrays
from edokit.members.contexts import Context, Text, join_context, with_context
from edokit.members.recipe import (
    Annotators,
    Capabilities,
    Member,
    MemberData,
    OptionValues,
    warn_of_equal_targets,
)
from edokit.members.recipe_options import Range, check_values
from edokit.members.recipes._regression import over_all_classes
from edokit.members.recipes.linear import BLOCK_WEIGHTS, TfIdf, counts_of
from edokit.members.trust import code_in_file
from edokit.scales import NOMINAL, Scale

_FILE = "sklearn.npz"
_ESTIMATOR = "estimator.skops"
_ARRAYS = ("n_classes", "seen", "n", "estimator", "features", "pieces", "always", "columns", "idf")


@dataclass(eq=False)
class SklearnMember(Member):
    """A classifier given by import path and parameters, on TF-IDF features or on the texts.

    The points of an ordinal scale are treated as classes. For multi-label data, each label has its
    own classifier. A regressor learns the shares of all classes, or labels, at once.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of multi-label data.
    estimator : str
        Such as ``sklearn.naive_bayes.ComplementNB(alpha=0.3)``.
    features : {"tfidf", "texts"}, default="tfidf"
        The input of the estimator: sparse features or, for a pipeline that reads texts, the texts.
    pieces : int, default=0
        Number of pieces of texts, the most frequent ones, that are features; 0: all.
    allow : str, default=""
        Packages that you trust beside scikit-learn, separated by commas.
    """

    capabilities = Capabilities(multi_label=True, trust=True)

    n_classes: int
    _: KW_ONLY
    estimator: str = ""
    features: Literal["tfidf", "texts"] = "tfidf"
    pieces: Annotated[int, Range(0)] = 0
    allow: str = ""
    _fitted: Any = field(default=None, init=False, repr=False)
    _tfidf: TfIdf | None = field(default=None, init=False, repr=False)
    _n: int = field(default=0, init=False, repr=False)  # number of targets
    _target_kind: _ClassTargets | _LabelTargets = field(init=False, repr=False)
    # The classes, or labels, that the estimator learned.
    _seen: Ints = field(init=False, repr=False)
    # Which labels of multi-label data were in all targets; none for classes.
    _always: Bools = field(init=False, repr=False)
    _corpus: tuple[Text, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        check_values(self)
        self._new_estimator()

    @classmethod
    def checked_options(cls, options: OptionValues, source: str = "") -> OptionValues:
        """Options of which a file may not set ``allow``."""
        if source and options.get("allow"):
            raise code_in_file(source, "allow", str(options["allow"]))
        return dict(options)

    def _new_estimator(self) -> Any:
        packages = [name.strip() for name in self.allow.split(",") if name.strip()]
        return read_estimator(self.estimator, packages)

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> SklearnMember:
        """Learn from the targets of epoch 0; shares become weighted rows."""
        targets = data.targets(0)
        self._target_kind = _target_kind(data.scale)
        self._n = len(targets)
        texts = with_context(data.texts, data.context)
        self._corpus = data.corpus
        self._always = self._target_kind.always_chosen(targets)
        self._seen = np.flatnonzero(targets.any(axis=0) & ~self._always)
        self._fitted = self._new_estimator()
        if not is_regressor(self._fitted):
            self._fitted = self._target_kind.classifier(self._fitted)
        rows, answers, weights = self._learning_rows(targets)
        if self.features == "tfidf":
            counts = counts_of(texts, self._corpus)
            self._tfidf = TfIdf.fit(counts, BLOCK_WEIGHTS, pieces=self.pieces)
        if self._constant:
            warn_of_equal_targets(self._n)
            return self
        features = self._transform(texts)
        parameters = {}
        if (weights != 1).any():
            parameters[self._weight_parameter()] = weights
        seeds = [
            name
            for name, value in self._fitted.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        ]
        self._fitted.set_params(**dict.fromkeys(seeds, random_state))
        with threadpool_limits(1):
            try:
                self._fitted.fit(features[rows], answers, **parameters)
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"{self.estimator} must be able to learn from these features, but: {error}",
                    "choose another estimator, or put a transformation in front of it with"
                    " sklearn.pipeline.make_pipeline(…)",
                    code="invalid-estimators",
                ) from error
        return self

    def _learning_rows(self, targets: Floats) -> tuple[Ints, Any, Floats]:
        """The item of each row to learn from, the answer there, and the weight of the row."""
        if is_regressor(self._fitted):
            return np.arange(self._n), targets[:, self._seen], np.ones(self._n)
        return self._target_kind.learning_rows(targets, self._seen)

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]."""
        texts = with_context(texts, context)
        if self._constant:
            shares = np.ones((len(texts), len(self._seen)))
        else:
            shares = self._shares(texts)
        return self._target_kind.over_all(shares, self._seen, self._always, self._n)

    def _shares(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, P] of the classes, or labels, that the estimator learned."""
        features = self._transform(texts)
        if is_regressor(self._fitted):
            # No class is impossible: its share is at least what one more target of it would give.
            least = 1 / (self._n + self.n_classes)
            shares: Floats = np.clip(self._fitted.predict(features), least, 1 - least)
            shares = shares.reshape(len(texts), -1)
            return self._target_kind.scale.normalized(shares)
        return self._target_kind.shares(self._fitted.predict_proba(features))

    def save(self, folder: Path) -> None:
        """Write the estimator with skops, the rest as plain arrays."""
        arrays: dict[str, Any] = {
            name: np.array(value) for name, value in self.get_params().items()
        }
        arrays |= {"seen": self._seen, "n": np.array(self._n)}
        arrays |= self._target_kind.saved_arrays(self._always)
        if self._tfidf is not None:
            arrays |= {"columns": self._tfidf.columns, "idf": self._tfidf.idf}
        write_arrays(folder / _FILE, **arrays)
        if not self._constant:
            write_estimator(self._fitted, folder / _ESTIMATOR)

    @classmethod
    def load(cls, folder: Path, *, trust: Sequence[str] = ()) -> SklearnMember:
        """Read what ``save`` wrote; types of packages beside scikit-learn need your ``trust``."""
        arrays = read_arrays(folder / _FILE, _ARRAYS)
        member = cls.__new__(cls)
        member.n_classes = int(arrays["n_classes"])
        member.estimator = arrays["estimator"].item()
        member.features = arrays["features"].item()
        member.allow = ""
        member._seen = arrays["seen"]
        member._n = int(arrays["n"])
        member.pieces = int(arrays.get("pieces", 0))  # files of earlier builds hold none
        if "always" in arrays:
            member._target_kind = _LabelTargets()
            member._always = arrays["always"].astype(bool)
        else:
            member._target_kind = _ClassTargets()
            member._always = np.zeros(member.n_classes, dtype=bool)
        if member.features == "tfidf":
            weights = np.asarray(BLOCK_WEIGHTS, dtype=np.float32)
            member._tfidf = TfIdf(arrays["columns"], arrays["idf"], weights)
        if not member._constant:
            member._fitted = read_estimator_file(folder / _ESTIMATOR, trust)
        return member

    @property
    def _constant(self) -> bool:
        """Whether there is nothing to learn: all targets have one class, or the same labels."""
        return len(self._seen) < self._target_kind.fewest_learned

    def _transform(self, texts: Sequence[Text]) -> Any:
        if self._tfidf is not None:
            return self._tfidf.transform(counts_of(texts, self._corpus))
        return np.array([join_context(text) for text in texts], dtype=object)

    def _weight_parameter(self) -> str:
        """The parameter of the estimator's fit that takes the weights of rows."""
        from sklearn.pipeline import Pipeline
        from sklearn.utils.validation import has_fit_parameter

        model = self._fitted
        prefix = ""
        if isinstance(model, MultiOutputClassifier):
            model = model.estimator
        while isinstance(model, Pipeline):
            name, model = model.steps[-1]
            prefix += f"{name}__"
        if not has_fit_parameter(model, "sample_weight"):
            raise InputError(
                f"shares need an estimator that takes weights, but {type(model).__name__} does not",
                "choose the supervision random-select or majority",
                code="unsupported-weights",
            )
        return f"{prefix}sample_weight"


class _ClassTargets:
    """Targets with one class per item: what scikit-learn learns, and its answers."""

    scale = NOMINAL  # the points of an ordinal scale are treated as classes
    fewest_learned = 2
    """Number of classes in the targets below which there is nothing to learn."""

    def always_chosen(self, targets: Floats) -> Bools:
        """No class [C] is given without being learned."""
        return np.zeros(targets.shape[1], dtype=bool)

    def classifier(self, estimator: Any) -> Any:
        """The estimator, which learns all classes at once."""
        return estimator

    def learning_rows(self, targets: Floats, seen: Ints) -> tuple[Ints, Ints, Floats]:
        """A row for each class of an item, weighted by its share: item, class and weight."""
        rows, classes = np.nonzero(targets)
        return rows, classes, targets[rows, classes]

    def shares(self, probabilities: Any) -> Floats:
        """Probabilities [N, P] as the classifier returns them."""
        return np.asarray(probabilities)

    def over_all(self, shares: Floats, seen: Ints, always: Bools, n_targets: int) -> Floats:
        """Probabilities [N, C] of all classes from those of the ``seen`` ones [N, P]."""
        return over_all_classes(shares, seen, len(always), n_targets)

    def saved_arrays(self, always: Bools) -> dict[str, Ints]:
        """Arrays of a saved member that only members with these targets have."""
        return {}


class _LabelTargets:
    """Targets with any number of labels per item, each with its own classifier."""

    scale = Scale("multi-label")
    fewest_learned = 1
    """Number of labels that vary in the targets below which there is nothing to learn."""

    def always_chosen(self, targets: Floats) -> Bools:
        """Which labels [L] are in all targets, and so are not learned."""
        return np.asarray((targets == 1).all(axis=0))

    def classifier(self, estimator: Any) -> Any:
        """A copy of the estimator for each label."""
        return MultiOutputClassifier(estimator)

    def learning_rows(self, targets: Floats, seen: Ints) -> tuple[Ints, Ints, Floats]:
        """Rows with label sets, whose weighted shares are the targets: item, set and weight."""
        rows, sets, weights = _sets_of(targets)
        return rows, sets[:, seen].astype(np.int64), weights

    def shares(self, probabilities: Any) -> Floats:
        """Probabilities [N, P] that each label is chosen, from an array [N, 2] per label."""
        return np.column_stack([label[:, 1] for label in probabilities])

    def over_all(self, shares: Floats, seen: Ints, always: Bools, n_targets: int) -> Floats:
        """Probabilities [N, L] of all labels from those of the ``seen`` ones [N, P].

        A label that was always, or never, chosen gets what it would have if there were one more
        target of each kind.
        """
        least = 1 / (n_targets + 2)
        probabilities = np.tile(np.where(always, 1 - least, least), (len(shares), 1))
        probabilities[:, seen] = shares
        return probabilities

    def saved_arrays(self, always: Bools) -> dict[str, Ints]:
        """Which labels were in all targets: only members of multi-label data have this array."""
        return {"always": always.astype(np.int64)}


def _target_kind(scale: Scale) -> _ClassTargets | _LabelTargets:
    """The kind of targets that an answer scale has."""
    if scale.is_multi_label:
        return _LabelTargets()
    return _ClassTargets()


def _sets_of(targets: Floats) -> tuple[Ints, Bools, Floats]:
    """Rows with label sets whose weighted shares are the targets [N, L].

    An item with the shares .2 and .6 of two labels becomes three rows: both labels with weight .2,
    the second alone with .4, and none with .4. Returns the item of each row, whether each label is
    chosen, and the weights.
    """
    levels = np.sort(np.column_stack([targets, np.ones(len(targets))]), axis=1)
    weights = np.diff(levels, axis=1, prepend=0.0)
    rows, places = np.nonzero(weights > 0)
    return rows, targets[rows] >= levels[rows, places][:, None], weights[rows, places]


# Modules whose functions may be called to make an estimator, such as `make_pipeline`.
_FACTORIES = ("sklearn.pipeline", "sklearn.compose")


def read_estimator(text: str, allowed: Collection[str] = ()) -> Any:
    """The unfitted estimator of a text such as ``sklearn.svm.SVC(probability=True)``.

    Nothing else is evaluated: only names of scikit-learn and of the ``allowed`` packages, calls of
    estimators, and plain values.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name | ast.Attribute):
            tree = ast.Call(tree, [], [])
        estimator = _evaluate(tree, {"sklearn", *allowed})
        is_estimator = isinstance(estimator, BaseEstimator)
        learns_shares = is_estimator and is_regressor(estimator)
        if not learns_shares and not hasattr(type(estimator), "predict_proba"):
            raise ValueError(
                f"{type(estimator).__name__} gives no probabilities, as it does inside"
                " sklearn.calibration.CalibratedClassifierCV(…)"
            )
    except Exception as error:  # whatever parsing, imports and estimators raise
        raise InputError(
            f"{option('estimator')} must be an import path with parameters, but in {text!r}:"
            f" {error}",
            "write for example sklearn.naive_bayes.ComplementNB(alpha=0.3); name other packages"
            f" that you trust with {option('allow', 'PACKAGE')}",
            code="invalid-estimators",
        ) from error
    return estimator


def _evaluate(node: ast.AST, packages: Collection[str]) -> Any:
    """A plain value, a public name of a package, or an estimator that is made by a call."""
    if isinstance(node, ast.List | ast.Tuple):
        values = [_evaluate(element, packages) for element in node.elts]
        if isinstance(node, ast.List):
            return values
        return tuple(values)
    if isinstance(node, ast.Name | ast.Attribute):
        return _find_name(ast.unparse(node), packages)
    if not isinstance(node, ast.Call):
        try:
            return ast.literal_eval(node)
        except ValueError as error:
            raise ValueError(f"{ast.unparse(node)!r} is not a plain value") from error
    factory = _find_name(ast.unparse(node.func), packages)
    is_estimator = isinstance(factory, type) and hasattr(factory, "get_params")
    if not is_estimator and getattr(factory, "__module__", "") not in _FACTORIES:
        raise ValueError(f"{ast.unparse(node.func)} is not an estimator")
    arguments = [_evaluate(argument, packages) for argument in node.args]
    keywords = {str(word.arg or "**"): _evaluate(word.value, packages) for word in node.keywords}
    return factory(*arguments, **keywords)


def _find_name(path: str, packages: Collection[str]) -> Any:
    """What a dotted path names, without running anything but imports of allowed packages."""
    package, *names = path.split(".")
    if not names or not all(n.isidentifier() and not n.startswith("_") for n in (package, *names)):
        raise ValueError(f"{path} is not a public name")
    if package not in packages:
        raise ValueError(f"{package} is not among the packages {', '.join(sorted(packages))}")
    target = getattr(import_module(".".join([package, *names[:-1]])), names[-1])
    # What a module has imported from elsewhere may be anything.
    origin = str(getattr(target, "__module__", None) or package).partition(".")[0]
    if isinstance(target, ModuleType) or origin not in packages:
        raise ValueError(f"{path} is not a name of {package} itself")
    return target
