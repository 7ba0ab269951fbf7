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


def item_metrics(
    p: Floats,
    hard: Ints | Codes,
    q: Floats,
    y: Ints | Codes,
    scale: Scale = NOMINAL,
    names: Sequence[str] | None = None,
) -> dict[str, Floats]:
    """Each main metric, or these, item by item [N].

    ``hard`` are the predicted hard labels, as ``y`` is.
    """
    predicted, soft = checked_p_q(np.asarray(p), np.asarray(q), scale)
    certain = scale.indicators(hard, soft.shape[1]).astype(np.float64)
    formulas = item_values(scale)
    metrics: dict[str, Floats] = {}
    for name in names or main_metrics(scale):
        answers = certain if METRIC[name].hard else predicted
        metrics[name] = formulas[name](answers, soft, y)
    return metrics


def score_methods(
    scores: Sequence[Score],
    losses: Mapping[str, Mapping[str, Floats]],
    reference: str,
    resampling: Resampling,
    scale: Scale = NOMINAL,
    metrics: Sequence[str] | None = None,
) -> list[Score]:
    """The scores with the main metrics, or these, from ``losses[name][metric]`` [N].

    With intervals and tests where there are enough items, or groups of items.
    """
    metrics = metrics or main_metrics(scale)
    headline = headline_metric(scale)
    evaluated: list[Score] = []
    for score in scores:
        means = {metric: float(losses[score.name][metric].mean()) for metric in metrics}
        evaluated.append(replace(score, metrics=means, headline=headline))
    items = len(next(iter(losses.values()))[headline])
    if resampling.samples == 0 or unit_count(items, resampling.clusters) < FEWEST_UNITS:
        return evaluated

    names = [score.name for score in evaluated]
    lowest = lowest_score(evaluated).name
    comparisons = _comparisons(names, metrics, reference, lowest, headline)
    by_method = {}
    for name in names:
        for metric in metrics:
            by_method[name, metric] = losses[name][metric]
    pairs = [((name, metric), (rival, metric)) for name, rival, metric in comparisons]
    ends, tests = intervals_and_tests(by_method, pairs, resampling)
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
                above_lowest=by_comparison.get((score.name, lowest, headline)),
            )
        )
    return tested


def _comparisons(
    names: Sequence[str], metrics: Sequence[str], reference: str, lowest: str, headline: str
) -> list[tuple[str, str, str]]:
    """(method, rival, metric) of all paired tests.

    Each is there once, although the constant, for one, may also be the lowest.
    """
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
            comparisons[name, lowest, headline] = None
    return list(comparisons)


def score_answers(
    answers: Mapping[str, Floats],
    constant: Constant,
    labels: Annotations,
    y: Ints | Codes,
    resampling: Resampling,
    reference: str = UNIFORM,
) -> tuple[list[Score], dict[str, dict[str, Floats]]]:
    """The scores of these answers [N, C] and, after them, of the constant; the metrics by item."""
    q = np.asarray(labels.soft_labels)
    scale = labels.scale
    hard = {name: scale.hard(p) for name, p in answers.items()}
    hard[CONSTANT] = constant_label(constant, len(q))
    probabilities = {**answers, CONSTANT: np.tile(constant.shares, (len(q), 1))}
    losses: dict[str, dict[str, Floats]] = {}
    scores: list[Score] = []
    for name, p in probabilities.items():
        losses[name] = item_metrics(p, hard[name], q, y, scale)
        scores.append(Score(name, only_label=only_label(hard[name], labels.classes)))
    return score_methods(scores, losses, reference, resampling, scale), losses


def constant_of(ensemble: EDOEnsemble | None, labels: Annotations, y: Ints | Codes) -> Constant:
    """The constant answer that an ensemble recorded, else that of these items."""
    if ensemble is not None:
        return ensemble.constant_.ordered(ensemble.fitted_.classes, labels.classes)
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
    repeats = (items,) + (1,) * label.ndim
    return np.tile(label, repeats)


def only_label(hard: Ints | Codes, classes: Sequence[str]) -> str | None:
    """The hard label of all items, if they share one; a single item shows nothing."""
    if len(hard) < 2 or (hard != hard[0]).any():
        return None
    if hard.ndim == 1:
        return str(classes[hard[0]])
    return ", ".join(np.asarray(classes)[hard[0].astype(bool)]) or "none"
