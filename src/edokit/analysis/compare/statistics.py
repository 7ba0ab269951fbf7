"""Fit every method on dev, and evaluate it on test or by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edokit._errors import EDOError, EDOWarning, InputError, examples
from edokit._progress import Progress
from edokit._types import Codes, Floats, Ints
from edokit.analysis.compare.method import (
    Method,
    WeightedPool,
    check_order,
    make_method,
)
from edokit.analysis.compare.methods.constant import ConstantAnswer
from edokit.analysis.compare.options import CompareOptions
from edokit.analysis.compare.samples import Samples, deal_folds
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Score
from edokit.analysis.scores.statistics import metrics_by_item, only_label
from edokit.analysis.sequential import holm
from edokit.annotations.core import Annotations
from edokit.ensemble.estimator import EDOEnsemble
from edokit.metrics import METRIC, bootstrap, compute_metrics
from edokit.metrics.paired_metrics import paired_metric_test
from edokit.metrics.resampling import Resampling
from edokit.predictions.core import Predictions
from edokit.scales import Scale

# Methods that learn nothing from labels, so that there is nothing to cross-validate.
_LABEL_FREE = (UNIFORM, "majority")


@dataclass(frozen=True)
class Candidate:
    """A method to fit, and the predictions of its members on dev and on test."""

    name: str
    description: str
    method: str
    dev: Predictions
    test: Predictions


@dataclass(frozen=True)
class MethodFit:
    """A fitted method: its score before the tests, and its answers to the test items.

    The method is that of the first seed, as are its ``probabilities`` [N, C]; ``answers`` are those
    of each seed. ``losses`` are metrics by item [N], means over the seeds.
    """

    score: Score
    method: Method
    answers: Sequence[MethodAnswers]
    losses: dict[str, Floats]

    @property
    def probabilities(self) -> Floats:
        return self.answers[0].probabilities


@dataclass(frozen=True)
class _Targets:
    """Soft labels [N, C] and hard labels of the items that methods are evaluated on."""

    soft: Floats
    hard: Codes

    @classmethod
    def from_annotations(cls, annotations: Annotations, options: CompareOptions) -> _Targets:
        hard = annotations.hard_labels(ties=options.ties, random_state=options.random_state)
        return cls(np.asarray(annotations.soft_labels), np.asarray(hard))


@dataclass(frozen=True)
class MethodAnswers:
    """What a method answers: probabilities [N, C], and its hard labels as codes."""

    probabilities: Floats
    hard: Ints

    @classmethod
    def from_method(cls, method: Method, pool: Predictions, scale: Scale) -> MethodAnswers:
        probabilities = method.predict_proba(pool)
        labels = method.predict(pool)
        check_order(pool, probabilities, "the result of predict_proba")
        check_order(pool, labels, "the result of predict")
        unknown = scale.unknown_labels(labels, pool.classes)
        if unknown:
            raise InputError(
                f"the result of predict has the labels {examples(unknown)}, which are not among the"
                f" classes {examples(pool.classes, 20)}",
                "return names of classes: np.asarray(predictions.classes)[codes]",
                code="invalid-plugin",
            )
        return cls(probabilities, scale.codes(labels, pool.classes))

    def metrics(self, labels: _Targets, scale: Scale, names: Sequence[str]) -> dict[str, Floats]:
        """Metrics by item [N]."""
        return metrics_by_item(
            self.probabilities, self.hard, labels.soft, labels.hard, scale, names
        )


def fit_methods(
    candidates: Sequence[Candidate],
    data: Samples,
    options: CompareOptions,
    metrics: Sequence[str],
    progress: Progress,
) -> tuple[list[MethodFit], dict[str, str]]:
    """Fit each method on dev and evaluate it on dev and test by ``metrics``, means over items.

    Also returned is why methods, by name, could not be fitted.
    """
    dev_targets = _Targets.from_annotations(data.dev_labels, options)
    test_targets = _Targets.from_annotations(data.test_labels, options)
    fits: list[MethodFit] = []
    failures: dict[str, str] = {}
    for number, candidate in enumerate(candidates):
        progress(number, len(candidates), candidate.name)
        try:
            fit = _fit_method(candidate, data, options, metrics, dev_targets, test_targets)
            fits.append(_with_more_seeds(fit, candidate, data, options, metrics, test_targets))
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
    metrics: Sequence[str],
    dev_targets: _Targets,
    test_targets: _Targets,
) -> MethodFit:
    """Fit one method with the first seed, and evaluate it."""
    start = time.perf_counter()
    method = make_method(candidate.method, random_state=options.random_state, ties=options.ties)
    learns_from_dev = candidate.method not in _LABEL_FREE
    if data.train_labels is not None and isinstance(method, ConstantAnswer):
        method.take_shares(data.train_labels, "train")
        learns_from_dev = False
    else:
        method.fit(candidate.dev, data.dev_labels)
    seconds = time.perf_counter() - start
    if data.train_labels is not None and isinstance(method, EDOEnsemble):
        # The page of the ensemble shows the constant answer that it records.
        constant = ConstantAnswer(random_state=options.random_state, ties=options.ties)
        constant.take_shares(data.train_labels, "train")
        method._keep(replace(method.fitted_, constant=constant.constant_))

    dev_answers = MethodAnswers.from_method(method, candidate.dev, data.scale)
    if data.folds is not None and learns_from_dev:
        test_answers = _cross_validate(candidate, data, data.folds, options)
    else:
        test_answers = MethodAnswers.from_method(method, candidate.test, data.scale)
    dev_metrics = dev_answers.metrics(dev_targets, data.scale, metrics)
    size, weights = _member_weights(method)
    score = Score(
        candidate.name,
        candidate.description,
        dev={metric: float(values.mean()) for metric, values in dev_metrics.items()},
        size=size,
        weights=weights,
        seconds=seconds,
        only_label=only_label(test_answers.hard, data.classes),
    )
    losses = test_answers.metrics(test_targets, data.scale, metrics)
    return MethodFit(score, method, [test_answers], losses)


def _with_more_seeds(
    fit: MethodFit,
    candidate: Candidate,
    data: Samples,
    options: CompareOptions,
    metrics: Sequence[str],
    test_targets: _Targets,
) -> MethodFit:
    """The fit, with the answers of the same method fitted with each further seed."""
    if options.seeds == 1:
        return fit
    answers = list(fit.answers)
    for number in range(1, options.seeds):
        seed_options = replace(options, random_state=options.random_state + number)
        answers.append(_answers_of_seed(fit, candidate, data, seed_options))
    by_seed = [seed_answers.metrics(test_targets, data.scale, metrics) for seed_answers in answers]
    losses: dict[str, Floats] = {}
    deviations: dict[str, float] = {}
    for metric in metrics:
        values = np.stack([seed_metrics[metric] for seed_metrics in by_seed])  # [S, N]
        losses[metric] = values.mean(axis=0)
        deviations[metric] = float(values.mean(axis=1).std(ddof=1))
    score = replace(fit.score, seed_deviations=deviations)
    return replace(fit, score=score, answers=answers, losses=losses)


def _answers_of_seed(
    fit: MethodFit, candidate: Candidate, data: Samples, options: CompareOptions
) -> MethodAnswers:
    """The answers of the method to the test items, fitted with the seed of these options."""
    if data.train_labels is not None and isinstance(fit.method, ConstantAnswer):
        return fit.answers[0]
    with warnings.catch_warnings():
        # The fit with the first seed has warned already.
        warnings.simplefilter("ignore", EDOWarning)
        if data.folds is not None and candidate.method not in _LABEL_FREE:
            folds = deal_folds(data.dev_labels, options)
            return _cross_validate(candidate, data, folds, options)
        method = make_method(candidate.method, random_state=options.random_state, ties=options.ties)
        method.fit(candidate.dev, data.dev_labels)
    return MethodAnswers.from_method(method, candidate.test, data.scale)


def _member_weights(method: Method) -> tuple[int | None, dict[str, float] | None]:
    """Number of members with weight, and the weights; None for a method that weighs none."""
    if not isinstance(method, WeightedPool | EDOEnsemble):
        return None, None
    weights = dict(zip(method.members_, method.weights_.tolist(), strict=True))
    return method.size_, weights


def _cross_validate(
    candidate: Candidate, data: Samples, folds: Ints, options: CompareOptions
) -> MethodAnswers:
    """The answers of a method to the items of each fold, fitted on the other folds."""
    pool = candidate.dev
    probabilities: list[Floats] = []
    hard: list[Ints] = []
    answered: list[Ints] = []
    for fold in range(int(folds.max()) + 1):
        held_out = np.flatnonzero(folds == fold)
        fit_rows = np.flatnonzero(folds != fold)
        method = make_method(candidate.method, random_state=options.random_state, ties=options.ties)
        with warnings.catch_warnings():
            # The fit on all items has warned already.
            warnings.simplefilter("ignore", EDOWarning)
            method.fit(pool.take(fit_rows), data.dev_labels.take(fit_rows))
        answers = MethodAnswers.from_method(method, pool.take(held_out), data.scale)
        probabilities.append(answers.probabilities)
        hard.append(answers.hard)
        answered.append(held_out)
    # From the order of the folds back to that of the items.
    order = np.argsort(np.concatenate(answered))
    return MethodAnswers(np.concatenate(probabilities)[order], np.concatenate(hard)[order])


# --- Metrics that are not means over items, and corrected tests -----------------------------------


def score_whole_metrics(
    scores: Sequence[Score],
    fits: Sequence[MethodFit],
    metrics: Sequence[str],
    labels: Annotations,
    options: CompareOptions,
    clusters: Ints | None,
) -> list[Score]:
    """Add metrics that are not means over items, such as macro-F1 and the ECE, to the scores.

    The answers of several seeds are concatenated; those to the same item are resampled together.
    """
    if not metrics:
        return list(scores)
    targets = _Targets.from_annotations(labels, options)
    n_seeds = len(fits[0].answers)
    if n_seeds > 1:
        if clusters is None:
            clusters = np.arange(len(targets.soft))
        clusters = np.tile(clusters, n_seeds)
    q = np.concatenate([targets.soft] * n_seeds)
    y = np.concatenate([targets.hard] * n_seeds)
    resampling = Resampling(options.samples, options.level, options.random_state, clusters)
    completed = list(scores)
    for metric in metrics:
        answers = {fit.score.name: _answers_for(metric, fit.answers, labels) for fit in fits}
        for position, fit in enumerate(fits):
            score = _with_whole_metric(
                completed[position], metric, answers, q, y, labels.scale, resampling
            )
            if n_seeds > 1:
                deviation = _seed_deviation(metric, fit, targets, labels)
                if deviation is not None:
                    deviations = {**score.seed_deviations, metric: deviation}
                    score = replace(score, seed_deviations=deviations)
            completed[position] = score
    return completed


def _answers_for(
    metric: str, answers_by_seed: Sequence[MethodAnswers], labels: Annotations
) -> Floats:
    """What a metric is computed from: probabilities or hard labels of all seeds [S·N, C]."""
    if not METRIC[metric].hard:
        return np.concatenate([np.asarray(answers.probabilities) for answers in answers_by_seed])
    hard = np.concatenate([np.asarray(answers.hard) for answers in answers_by_seed])
    return labels.scale.indicators(hard, len(labels.classes)).astype(np.float64)


def _with_whole_metric(
    score: Score,
    metric: str,
    answers: dict[str, Floats],
    q: Floats,
    y: Codes,
    scale: Scale,
    resampling: Resampling,
) -> Score:
    """A score with one more metric, its interval and its tests; without it where it is undefined.

    ``answers`` are those of all methods by name.
    """
    p = answers[score.name]
    value = compute_metrics(p, q, y, metrics=[metric], scale=scale)[metric]
    if value is None:
        return score
    score = replace(score, metrics={**score.metrics, metric: value})
    if not score.intervals:
        return score
    interval = bootstrap(
        p,
        q,
        y,
        metrics=[metric],
        scale=scale,
        clusters=resampling.clusters,
        samples=resampling.samples,
        level=resampling.level,
        random_state=resampling.random_state,
    )[metric]
    if interval.low is not None and interval.high is not None:
        ends = (interval.low, interval.high)
        score = replace(score, intervals={**score.intervals, metric: ends})
    against = dict(score.against)
    if score.name != UNIFORM:
        test = paired_metric_test(metric, p, answers[UNIFORM], q, y, scale, resampling)
        if test is not None:
            against[metric] = test
    against_constant = dict(score.against_constant)
    if score.name != CONSTANT:
        test = paired_metric_test(metric, p, answers[CONSTANT], q, y, scale, resampling)
        if test is not None:
            against_constant[metric] = test
    return replace(score, against=against, against_constant=against_constant)


def _seed_deviation(
    metric: str, fit: MethodFit, targets: _Targets, labels: Annotations
) -> float | None:
    """The standard deviation of a metric over the seeds; None where it is undefined."""
    values: list[float] = []
    for answers in fit.answers:
        p = _answers_for(metric, [answers], labels)
        metrics = compute_metrics(
            p, targets.soft, targets.hard, metrics=[metric], scale=labels.scale
        )
        value = metrics[metric]
        if value is None:
            return None
        values.append(value)
    return float(np.std(values, ddof=1))


def correct_tests(scores: Sequence[Score], metrics: Sequence[str]) -> list[Score]:
    """The scores with p-values against ``uniform``, corrected by Holm's procedure.

    The family of tests are all those of a table with these metrics.
    """
    tested: list[tuple[int, str]] = []
    p_values: list[float] = []
    for position, score in enumerate(scores):
        for metric in metrics:
            if metric in score.against:
                tested.append((position, metric))
                p_values.append(score.against[metric].p_value)
    adjusted = dict(zip(tested, holm(np.array(p_values)).tolist(), strict=True))
    corrected: list[Score] = []
    for position, score in enumerate(scores):
        against = dict(score.against)
        for metric in against:
            if (position, metric) in adjusted:
                against[metric] = replace(against[metric], p_adjusted=adjusted[position, metric])
        corrected.append(replace(score, against=against))
    return corrected
