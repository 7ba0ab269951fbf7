"""Fit every method on dev, and evaluate it on test or by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edokit._errors import EDOError, EDOWarning
from edokit._progress import Progress
from edokit._types import Codes, Floats, Ints
from edokit.analysis.compare.method import Method, WeightedPool, make_method
from edokit.analysis.compare.methods.constant import ConstantAnswer
from edokit.analysis.compare.options import CompareOptions
from edokit.analysis.compare.samples import Samples
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Score
from edokit.analysis.scores.statistics import item_metrics, only_label
from edokit.annotations.core import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.predictions.core import Predictions
from edokit.scales import Scale

# Methods that learn nothing from labels: cross-validated they are the same.
_UNFITTED = (UNIFORM, "majority")


@dataclass(frozen=True)
class Candidate:
    """A method to fit, and the predictions of its members on dev and on test."""

    name: str
    about: str
    method: str
    dev: Predictions
    test: Predictions


@dataclass(frozen=True)
class MethodFit:
    """A fitted method: its score before the tests, and its answers to the test items.

    ``probabilities`` are [N, C], ``losses`` the main metrics by item [N].
    """

    score: Score
    method: Method
    probabilities: Floats
    losses: dict[str, Floats]


@dataclass(frozen=True)
class _TestLabels:
    """Soft labels [N, C] and hard labels of some items."""

    soft: Floats
    hard: Codes

    @classmethod
    def from_annotations(cls, annotations: Annotations, options: CompareOptions) -> _TestLabels:
        hard = annotations.hard_labels(ties=options.ties, random_state=options.random_state)
        return cls(np.asarray(annotations.soft_labels), np.asarray(hard))


@dataclass(frozen=True)
class _MethodAnswers:
    """What a method answers: probabilities [N, C] and codes of its hard labels."""

    probabilities: Floats
    hard: Ints

    @classmethod
    def from_method(cls, method: Method, pool: Predictions, scale: Scale) -> _MethodAnswers:
        probabilities = method.predict_proba(pool)
        hard = scale.codes(method.predict(pool), pool.classes)
        return cls(probabilities, hard)

    def metrics(self, labels: _TestLabels, scale: Scale) -> dict[str, Floats]:
        """The main metrics by item [N]."""
        return item_metrics(self.probabilities, self.hard, labels.soft, labels.hard, scale)


def fit_methods(
    candidates: Sequence[Candidate], data: Samples, options: CompareOptions, progress: Progress
) -> tuple[list[MethodFit], dict[str, str]]:
    """Fit each method on dev and evaluate it on dev and test; why some could not be fitted."""
    dev_labels = _TestLabels.from_annotations(data.dev_labels, options)
    test_labels = _TestLabels.from_annotations(data.test_labels, options)
    fits: list[MethodFit] = []
    failures: dict[str, str] = {}
    for number, candidate in enumerate(candidates):
        progress(number, len(candidates), candidate.name)
        try:
            fits.append(_fit_method(candidate, data, options, dev_labels, test_labels))
        except EDOError as error:
            if candidate.method in (CONSTANT, UNIFORM):
                raise
            # The results of the other methods are kept.
            failures[candidate.name] = error.message
    progress(len(candidates), len(candidates), "done")
    return fits, failures


def _fit_method(
    candidate: Candidate,
    data: Samples,
    options: CompareOptions,
    dev_labels: _TestLabels,
    test_labels: _TestLabels,
) -> MethodFit:
    """Fit one method, and evaluate it."""
    start = time.perf_counter()
    method = make_method(candidate.method, random_state=options.random_state, ties=options.ties)
    has_train_shares = data.train_labels is not None and isinstance(method, ConstantAnswer)
    if data.train_labels is not None and isinstance(method, ConstantAnswer):
        method.take_shares(data.train_labels, "train")
    else:
        method.fit(candidate.dev, data.dev_labels)
    seconds = time.perf_counter() - start
    if data.train_labels is not None and isinstance(method, EDOEnsemble):
        # The page of the ensemble shows the constant answer that it records.
        constant = ConstantAnswer(random_state=options.random_state, ties=options.ties)
        constant.take_shares(data.train_labels, "train")
        method._keep(replace(method.fitted_, constant=constant.constant_))

    dev_answers = _MethodAnswers.from_method(method, candidate.dev, data.scale)
    is_fitted = not has_train_shares and candidate.method not in _UNFITTED
    if data.folds is not None and is_fitted:
        test_answers = _cross_validate(candidate, data, data.folds, options)
    else:
        test_answers = _MethodAnswers.from_method(method, candidate.test, data.scale)
    dev_metrics = dev_answers.metrics(dev_labels, data.scale)
    size, weights = _member_weights(method)
    score = Score(
        candidate.name,
        candidate.about,
        dev={metric: float(values.mean()) for metric, values in dev_metrics.items()},
        size=size,
        weights=weights,
        seconds=seconds,
        only_label=only_label(test_answers.hard, data.classes),
    )
    losses = test_answers.metrics(test_labels, data.scale)
    return MethodFit(score, method, test_answers.probabilities, losses)


def _member_weights(method: Method) -> tuple[int | None, dict[str, float] | None]:
    """Size and weights, for a method that weighs members."""
    if not isinstance(method, WeightedPool | EDOEnsemble):
        return None, None
    weights = dict(zip(method.members_, method.weights_.tolist(), strict=True))
    return method.size_, weights


def _cross_validate(
    candidate: Candidate, data: Samples, folds: Ints, options: CompareOptions
) -> _MethodAnswers:
    """The answers of a method to the items of each fold, fitted on the other folds."""
    pool = candidate.dev
    probabilities: list[Floats] = []
    hard: list[Ints] = []
    for fold in range(int(folds.max()) + 1):
        held_out = np.flatnonzero(folds == fold)
        fit_rows = np.flatnonzero(folds != fold)
        method = make_method(candidate.method, random_state=options.random_state, ties=options.ties)
        with warnings.catch_warnings():
            # The fit on all items has warned already.
            warnings.simplefilter("ignore", EDOWarning)
            method.fit(pool.take(fit_rows), data.dev_labels.take(fit_rows))
        answers = _MethodAnswers.from_method(method, pool.take(held_out), data.scale)
        probabilities.append(answers.probabilities)
        hard.append(answers.hard)
    # The answers are in the order of folds; this is the way back.
    order = np.argsort(np.argsort(folds, kind="stable"))
    return _MethodAnswers(np.concatenate(probabilities)[order], np.concatenate(hard)[order])
