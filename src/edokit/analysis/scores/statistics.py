"""The statistics of scores: metrics by item, their means, intervals and paired tests."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import EDOWarning
from edokit._types import Codes, Floats, Ints
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Score, lowest_score
from edokit.ensemble.fitted import Constant
from edokit.metrics import METRIC, PairedTest, headline_metric, item_values, main_metrics
from edokit.metrics.checks import checked_p_q
from edokit.metrics.mean_intervals import FEWEST_UNITS
from edokit.metrics.resampling import Resampling, intervals_and_tests, unit_count
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations, Ties
    from edokit.ensemble.estimator import EDOEnsemble


def metrics_by_item(
    p: Floats,
    hard: Ints | Codes,
    q: Floats,
    y: Ints | Codes,
    scale: Scale = NOMINAL,
    names: Sequence[str] | None = None,
) -> dict[str, Floats]:
    """Values of these metrics (the main ones if None) item by item [N].

    ``p`` are predicted probabilities and ``hard`` their hard labels, ``q`` and ``y`` the soft and
    hard labels of the annotators.
    """
    probabilities, soft_labels = checked_p_q(np.asarray(p), np.asarray(q), scale)
    indicators = scale.indicators(hard, soft_labels.shape[1]).astype(np.float64)
    formulas = item_values(scale)
    if names is None:
        names = main_metrics(scale)
    metrics: dict[str, Floats] = {}
    for name in names:
        answers = indicators if METRIC[name].hard else probabilities
        metrics[name] = formulas[name](answers, soft_labels, y)
    return metrics


def score_methods(
    scores: Sequence[Score],
    losses: Mapping[str, Mapping[str, Floats]],
    reference: str,
    resampling: Resampling,
    scale: Scale = NOMINAL,
    metrics: Sequence[str] | None = None,
) -> list[Score]:
    """The scores with these metrics (the main ones if None), means of ``losses[name][metric]`` [N].

    They have intervals and tests where there are enough items, or groups of items.
    """
    if metrics is None:
        metrics = main_metrics(scale)
    ranking_metric = headline_metric(scale)
    evaluated: list[Score] = []
    for score in scores:
        means = {metric: float(losses[score.name][metric].mean()) for metric in metrics}
        evaluated.append(replace(score, metrics=means, headline_metric=ranking_metric))
    items = len(next(iter(losses.values()))[ranking_metric])
    if resampling.samples == 0 or unit_count(items, resampling.clusters) < FEWEST_UNITS:
        return evaluated

    names = [score.name for score in evaluated]
    lowest = lowest_score(evaluated).name
    comparisons = _comparisons(names, metrics, reference, lowest, ranking_metric)
    values = {}
    for name in names:
        for metric in metrics:
            values[name, metric] = losses[name][metric]
    pairs = []
    for name, rival, metric in comparisons:
        pairs.append(((name, metric), (rival, metric)))
    ends, tests = intervals_and_tests(values, pairs, resampling)
    by_comparison = dict(zip(comparisons, tests, strict=True))

    tested: list[Score] = []
    for score in evaluated:
        against: dict[str, PairedTest] = {}
        against_constant: dict[str, PairedTest] = {}
        for metric in metrics:
            if (score.name, reference, metric) in by_comparison:
                against[metric] = by_comparison[score.name, reference, metric]
            if (score.name, CONSTANT, metric) in by_comparison:
                against_constant[metric] = by_comparison[score.name, CONSTANT, metric]
        tested.append(
            replace(
                score,
                intervals={metric: ends[score.name, metric] for metric in metrics},
                against=against,
                against_constant=against_constant,
                above_lowest=by_comparison.get((score.name, lowest, ranking_metric)),
            )
        )
    return tested


def _comparisons(
    names: Sequence[str], metrics: Sequence[str], reference: str, lowest: str, ranking_metric: str
) -> list[tuple[str, str, str]]:
    """(method, rival, metric) of all paired tests.

    All metrics are tested against the reference and the constant answer, and the metric that ranks
    methods against the lowest. No test is there twice if the lowest is one of the other two.
    """
    # A dictionary keeps the order of its keys, and each key once.
    comparisons: dict[tuple[str, str, str], None] = {}
    for rival in (reference, CONSTANT):
        if rival not in names:
            continue
        for name in names:
            for metric in metrics:
                if name != rival:
                    comparisons[name, rival, metric] = None
    for name in names:
        if name != lowest:
            comparisons[name, lowest, ranking_metric] = None
    return list(comparisons)


def score_answers(
    answers: Mapping[str, Floats],
    constant: Constant,
    labels: Annotations,
    y: Ints | Codes,
    resampling: Resampling,
    reference: str = UNIFORM,
) -> tuple[list[Score], dict[str, dict[str, Floats]]]:
    """The scores of these answers [N, C] and, after them, of the constant; their losses by item."""
    q = np.asarray(labels.soft_labels)
    scale = labels.scale
    hard = {name: scale.hard(p) for name, p in answers.items()}
    hard[CONSTANT] = constant_label(constant, len(q))
    probabilities = {**answers, CONSTANT: np.tile(constant.shares, (len(q), 1))}
    losses: dict[str, dict[str, Floats]] = {}
    scores: list[Score] = []
    for name, p in probabilities.items():
        losses[name] = metrics_by_item(p, hard[name], q, y, scale)
        scores.append(Score(name, only_label=only_label(hard[name], labels.classes)))
    return score_methods(scores, losses, reference, resampling, scale), losses


def find_constant(ensemble: EDOEnsemble | None, labels: Annotations, y: Ints | Codes) -> Constant:
    """The constant answer that an ensemble recorded; without an ensemble, that of these items."""
    if ensemble is not None:
        return ensemble.constant_.with_classes(ensemble.fitted_.classes, labels.classes)
    return constant_answer(labels.soft_labels, y, labels.scale, "items")


def constant_answer(q: Floats, y: Ints | Codes, scale: Scale, source: str) -> Constant:
    """The mean soft label and the majority class; for multi-label data, of each label."""
    hard = scale.indicators(y, q.shape[1]).astype(np.int64)
    return Constant.from_totals(scale.totals(q), scale.totals(hard), source)


def constant_of_annotations(
    labels: Annotations, source: str, *, ties: Ties = "first", random_state: int = 0
) -> Constant:
    """The constant answer that has the shares of these annotations."""
    with warnings.catch_warnings():
        # The majority class hardly depends on ties.
        warnings.simplefilter("ignore", EDOWarning)
        hard = labels.hard_labels(ties=ties, random_state=random_state)
    return constant_answer(labels.soft_labels, hard, labels.scale, source)


def constant_label(constant: Constant, items: int) -> Codes:
    """The hard label of the constant answer for every item: [N], or [N, L] for multi-label data."""
    label = np.asarray(constant.label, dtype=np.int32)
    return np.repeat(label[None], items, axis=0)


def only_label(hard: Ints | Codes, classes: Sequence[str]) -> str | None:
    """The hard label of all items, if they share one; a single item shows nothing."""
    if len(hard) < 2 or (hard != hard[0]).any():
        return None
    if hard.ndim == 1:
        return str(classes[hard[0]])
    return ", ".join(np.asarray(classes)[hard[0].astype(bool)]) or "none"
