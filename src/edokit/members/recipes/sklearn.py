"""Members that are any scikit-learn classifier, given as text and kept with skops."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.multioutput import MultiOutputClassifier
from threadpoolctl import threadpool_limits

from edokit._errors import InputError, errors_in, one_of, option, warn
from edokit._io.skops import read_estimator_file, write_estimator
from edokit._types import Bools, Floats, Ints
from edokit.members.recipe import (
    Member,
    MemberData,
    Progress,
    Text,
    joined,
    read_arrays,
    write_arrays,
)
from edokit.members.recipes._regression import check_seen, over_all_classes
from edokit.members.recipes.linear import TextCounts, TfIdf, recall

_ARRAYS, _ESTIMATOR = "sklearn.npz", "estimator.skops"
_BLOCK_WEIGHTS = (0.5, 1.0, 0.2, 0.4)
FEATURES = ("tfidf", "texts")


class SklearnMember(Member):
    """A classifier given by import path and parameters, on TF-IDF features or on the texts.

    Points of a scale are classes to it; of sets each label gets a classifier of its own.
    """

    multi_label = True
    code_options = ("allow",)

    def __init__(
        self, n_classes: int, *, estimator: str = "", features: str = "tfidf", allow: str = ""
    ) -> None:
        """``estimator`` is written ``sklearn.naive_bayes.ComplementNB(alpha=0.3)``. It sees sparse
        ``tfidf`` features or, where it reads texts by itself, ``texts``. Names are taken from
        scikit-learn; ``allow`` names further packages that you trust, separated by commas."""
        one_of("features", features, FEATURES)
        self.n_classes, self.estimator, self.features = n_classes, estimator, features
        self.allow = tuple(name.strip() for name in allow.split(",") if name.strip())
        if not estimator:
            raise InputError(
                "the recipe 'sklearn' needs an estimator, but got none",
                f"choose {option('estimator', 'sklearn.naive_bayes.ComplementNB(alpha=0.3)')}",
            )
        self._fitted: Any = read_estimator(estimator, self.allow)
        self._tfidf: TfIdf | None = None
        self._seen = np.empty(0, dtype=np.int64)
        self._n, self._labels = 0, False
        self._always: Bools = _NEVER
        self._count: Any = recall

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> TextCounts | None:
        """Counts of all texts."""
        return TextCounts.of(texts) if options.get("features", "tfidf") == "tfidf" else None

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> SklearnMember:
        """Learn from the targets of epoch 0; shares become weighted rows."""
        targets = data.targets(0)
        self._labels, self._n = data.scale.is_multi_label, len(targets)
        self._count = data.shared or recall
        self._fitted = read_estimator(self.estimator, self.allow)
        if self._labels:
            rows, sets, weights = _sets_of(targets)
            self._always = np.asarray(sets.all(axis=0))
            self._seen = np.flatnonzero(sets.any(axis=0) & ~self._always)
            classes: Any = sets[:, self._seen].astype(np.int64)
            self._fitted = MultiOutputClassifier(self._fitted)
        else:
            rows, classes = np.nonzero(targets)
            weights = targets[rows, classes]
            self._seen = np.unique(classes)
        if self.features == "tfidf":
            self._tfidf = TfIdf.fit(self._count(data.texts), _BLOCK_WEIGHTS)
        if self._constant:
            answer = "set" if self._labels else "class"
            warn(f"all {self._n} targets name one {answer}: this member predicts it for every text")
            return self
        features = self._transform(data.texts)
        parameters = {} if (weights == 1).all() else {self._weight_parameter(): weights}
        seeds = [
            name
            for name, value in self._fitted.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        ]
        self._fitted.set_params(**dict.fromkeys(seeds, random_state))
        with threadpool_limits(1):
            try:
                self._fit_rows(features, rows, classes, parameters)
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"{self.estimator} must be able to learn from these features, but: {error}",
                    "choose another estimator, or put a transformation in front of it with"
                    " sklearn.pipeline.make_pipeline(…)",
                ) from error
        return self

    def _fit_rows(self, features: Any, rows: Any, classes: Any, parameters: dict[str, Any]) -> None:
        """Fit on these rows of the features, some of which may occur several times."""
        from sklearn.pipeline import Pipeline

        if not isinstance(features, list):
            self._fitted.fit(features[rows], classes, **parameters)
            return
        model = self._fitted
        is_pipeline = isinstance(model, Pipeline) and len(model.steps) > 1
        reader = model.steps[0][1] if is_pipeline and len(rows) > len(features) else None
        if reader is None or isinstance(reader, Pipeline):
            model.fit([features[i] for i in rows], classes, **parameters)
            return
        # How many texts hold a word is counted on each text once.
        tail = model[1:]
        tail.fit(reader.fit_transform(features)[rows], classes, **parameters)
        model.steps[1:] = tail.steps

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]."""
        if not self._n:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        if self._labels:
            # A label that was always, or never, chosen: as if it had not been once.
            once = 1 / (self._n + 2)
            shares = np.tile(np.where(self._always, 1 - once, once), (len(texts), 1))
            if not self._constant:
                labels = self._fitted.predict_proba(self._transform(texts))
                shares[:, self._seen] = np.column_stack([label[:, 1] for label in labels])
            return shares
        shares = np.ones((len(texts), 1))
        if not self._constant:
            shares = np.asarray(self._fitted.predict_proba(self._transform(texts)))
        return over_all_classes(shares, self._seen, self.n_classes, self._n)

    def save(self, folder: Path) -> None:
        """Write the estimator with skops, the rest as plain arrays."""
        arrays: dict[str, Any] = {
            "n_classes": np.array(self.n_classes),
            "seen": self._seen,
            "n": np.array(self._n),
            "estimator": np.array(self.estimator),
            "features": np.array(self.features),
            "allow": np.array(",".join(self.allow)),
        }
        if self._labels:
            arrays["always"] = self._always.astype(np.int64)
        if self._tfidf is not None:
            arrays |= {"columns": self._tfidf.columns, "idf": self._tfidf.idf}
        write_arrays(folder / _ARRAYS, **arrays)
        if not self._constant:
            write_estimator(self._fitted, folder / _ESTIMATOR)

    @classmethod
    def load(cls, folder: Path, *, trust: Sequence[str] = ()) -> SklearnMember:
        """Read what ``save`` wrote; types of packages beside scikit-learn need your ``trust``."""
        path = folder / _ARRAYS
        forms = {"n_classes": "i", "seen": "i P", "n": "i", "features": "t", "estimator": "t"}
        arrays = read_arrays(path, forms)
        with errors_in(path):
            one_of("features", str(arrays["features"]), FEATURES)
        labels = "always" in arrays
        if labels:
            arrays = read_arrays(path, {**forms, "always": "i C"})
        if not labels or len(arrays["seen"]):
            check_seen(path, arrays["seen"], int(arrays["n_classes"]))
        if labels and len(arrays["always"]) != int(arrays["n_classes"]):
            raise InputError(
                f"{path} is damaged: it has not {int(arrays['n_classes'])} labels",
                "train the member again",
            )
        member = cls.__new__(cls)
        member._labels = labels
        member._always = arrays["always"].astype(bool) if labels else _NEVER
        member.n_classes, member.allow = int(arrays["n_classes"]), ()
        member.estimator, member.features = str(arrays["estimator"]), str(arrays["features"])
        member._seen, member._n = arrays["seen"], int(arrays["n"])
        member._count, member._tfidf, member._fitted = recall, None, None
        if member.features == "tfidf":
            arrays = read_arrays(path, {"columns": "i F", "idf": "f F"})
            TfIdf.check(path, arrays)
            weights = np.asarray(_BLOCK_WEIGHTS, dtype=np.float32)
            member._tfidf = TfIdf(arrays["columns"], arrays["idf"], weights)
        if not member._constant:
            member._fitted = read_estimator_file(folder / _ESTIMATOR, trust)
        return member

    @property
    def _constant(self) -> bool:
        """Whether there was nothing to tell apart; of labels, whether none was chosen at times."""
        return len(self._seen) < (1 if self._labels else 2)

    def _transform(self, texts: Sequence[Text]) -> Any:
        if self._tfidf is not None:
            return self._tfidf.transform(self._count(texts))
        return list(map(joined, texts))

    def _weight_parameter(self) -> str:
        """The name of the weights of rows in its fit."""
        from sklearn.pipeline import Pipeline
        from sklearn.utils.validation import has_fit_parameter

        model, prefix = self._fitted, ""
        if isinstance(model, MultiOutputClassifier):
            model = model.estimator
        while isinstance(model, Pipeline):
            name, model = model.steps[-1]
            prefix += f"{name}__"
        if not has_fit_parameter(model, "sample_weight"):
            raise InputError(
                f"shares need an estimator that takes weights, but {type(model).__name__} does not",
                "choose the supervision random-select or majority",
            )
        return f"{prefix}sample_weight"


_NEVER = np.zeros(0, dtype=bool)


def _sets_of(targets: Floats) -> tuple[Ints, Bools, Floats]:
    """Rows with whole sets of labels whose weighted shares are the targets [N, L].

    An item with the shares .2 and .6 of two labels is both with weight .2, the second alone with
    .4 and none with .4. Returns the item of each row, whether each label is chosen, and weights.
    """
    levels = np.sort(np.column_stack([targets, np.ones(len(targets))]), axis=1)
    weights = np.diff(levels, axis=1, prepend=0.0)
    rows, places = np.nonzero(weights > 0)
    return rows, targets[rows] >= levels[rows, places][:, None], weights[rows, places]


_FACTORIES = ("sklearn.pipeline", "sklearn.compose")
_EXAMPLE = "write for example sklearn.naive_bayes.ComplementNB(alpha=0.3)"


def read_estimator(text: str, allowed: Collection[str] = ()) -> Any:
    """The estimator, not fitted; ``allowed`` names packages beside scikit-learn."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        packages = {"sklearn", *allowed}
        estimator = _value(tree, packages)
        if isinstance(tree, ast.Name | ast.Attribute):
            estimator = _make(tree, packages, [], {})
        if not hasattr(estimator, "fit"):
            raise _WrongError("it has no fit")
        if not hasattr(type(estimator), "predict_proba"):
            raise _WrongError(
                f"{type(estimator).__name__} gives no probabilities",
                "put it into sklearn.calibration.CalibratedClassifierCV(…)",
            )
    except (SyntaxError, ValueError, RecursionError) as error:
        explained = isinstance(error, _WrongError)
        reason, hint = error.args if explained else (f"it can't be read: {error}", _EXAMPLE)
        raise InputError(
            f"{option('estimator')} must be an import path with parameters, but in {text!r}"
            f" {reason}",
            hint,
        ) from error
    return estimator


class _WrongError(ValueError):
    """What is wrong with the text of an estimator, and what to do about it."""

    def __init__(self, reason: object, hint: str = _EXAMPLE) -> None:
        super().__init__(reason, hint)


def _value(node: ast.AST, packages: Collection[str]) -> Any:
    if isinstance(node, ast.Call):
        if any(keyword.arg is None for keyword in node.keywords):
            raise _WrongError("** is not understood")
        arguments = [_value(argument, packages) for argument in node.args]
        keywords = {str(keyword.arg): _value(keyword.value, packages) for keyword in node.keywords}
        return _make(node.func, packages, arguments, keywords)
    if isinstance(node, ast.List | ast.Tuple):
        values = [_value(element, packages) for element in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.Name | ast.Attribute):
        return _find(node, packages)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError) as error:
        raise _WrongError(f"{ast.unparse(node)!r} is no plain value") from error


def _make(
    function: ast.AST, packages: Collection[str], arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    factory = _find(function, packages)
    is_estimator = isinstance(factory, type) and hasattr(factory, "get_params")
    is_function = getattr(factory, "__module__", "") in _FACTORIES and callable(factory)
    if not (is_estimator or is_function):
        raise _WrongError(f"{ast.unparse(function)} is no estimator")
    try:
        return factory(*arguments, **keywords)
    except TypeError as error:
        raise _WrongError(error) from error


def _find(node: ast.AST, packages: Collection[str]) -> Any:
    path = ast.unparse(node)
    parts = path.split(".")
    if not all(part.isidentifier() and not part.startswith("_") for part in parts):
        raise _WrongError(f"{path} is no public name")
    if parts[0] not in packages:
        raise _WrongError(
            f"{parts[0]} is not among the allowed packages {', '.join(sorted(packages))}",
            f"if you trust it, allow it with {option('allow', parts[0])}",
        )
    try:
        module = import_module(".".join(parts[:-1])) if len(parts) > 1 else None
        target = getattr(module, parts[-1])
    except (ImportError, AttributeError) as error:
        raise _WrongError(error) from error
    # What a module has imported from elsewhere may be anything.
    origin = str(getattr(target, "__module__", None) or parts[0]).partition(".")[0]
    if isinstance(target, ModuleType) or origin not in packages:
        raise _WrongError(f"{path} is not a name of {parts[0]} itself")
    return target
