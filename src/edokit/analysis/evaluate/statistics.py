"""The statistics of an evaluation: metrics, intervals, and errors by annotator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from edokit._types import Codes, Floats
from edokit.analysis.evaluate.answers import EvaluatedAnswers
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.evaluate.result import ANONYMOUS, KNOWN, AnnotatorErrors, Evaluation
from edokit.analysis.scores.result import Score
from edokit.analysis.scores.slices import FEWEST_ITEMS, SliceItems, score_slices
from edokit.analysis.scores.statistics import constant_label, score_answers
from edokit.annotations.core import Annotations, Ties
from edokit.annotator_effects import label_shares
from edokit.datasets.item_groups import item_clusters
from edokit.ensemble.fitted import Constant
from edokit.metrics import METRIC, Interval, best_possible, bootstrap, compute_metrics, metrics_of
from edokit.metrics.compute import annotation_errors
from edokit.metrics.resampling import Resampling


def evaluate_answers(
    answers: EvaluatedAnswers,
    y: Codes,
    constant: Constant,
    slices: Mapping[str, SliceItems],
    options: EvaluateOptions,
    subject: str,
) -> Evaluation:
    """The evaluation of these answers; ``y`` are the hard labels."""
    labels = answers.labels
    p = answers.probabilities
    q = np.asarray(labels.soft_labels)
    y = np.asarray(y)
    scale = labels.scale
    clusters = item_clusters(labels)
    resampling = Resampling(options.samples, options.level, options.random_state, clusters)
    scores, losses = score_answers(answers.by_name, constant, labels, y, resampling)
    intervals: dict[str, Interval] = {}
    annotator_level = None
    if options.samples:
        intervals = bootstrap(
            p,
            q,
            y,
            scale=scale,
            clusters=clusters,
            samples=options.samples,
            level=options.level,
            random_state=options.random_state,
        )
        annotator_level = options.level
    return Evaluation(
        items=len(q),
        metrics=compute_metrics(p, q, y, scale=scale),
        ties=int(labels.tied.sum()),
        best_possible=best_possible(q, y, scale=scale),
        constant_metrics=_constant_metrics(constant, labels, y),
        level=options.level,
        intervals=intervals,
        annotators=_errors_by_annotator(answers, annotator_level),
        scores=tuple(scores),
        constant=constant,
        slices=score_slices(slices, scores, losses, labels, resampling),
        subject=subject,
        scale=scale,
        pairs=_score_pairs(answers, constant, options.ties, resampling),
    )


def _constant_metrics(constant: Constant, labels: Annotations, y: Codes) -> dict[str, float | None]:
    """The metrics of the constant answer; those of hard labels are of its hard label."""
    q = np.asarray(labels.soft_labels)
    scale = labels.scale
    shares = np.tile(constant.shares, (len(q), 1))
    metrics = compute_metrics(shares, q, y, scale=scale)
    hard_metrics = [name for name in metrics_of(scale) if METRIC[name].hard]
    hard = scale.indicators(constant_label(constant, len(q)), q.shape[1]).astype(np.float64)
    metrics.update(compute_metrics(hard, q, y, metrics=hard_metrics, scale=scale))
    return metrics


def _score_pairs(
    answers: EvaluatedAnswers, constant: Constant, ties: Ties, resampling: Resampling
) -> tuple[Score, ...]:
    """Scores of answers for annotators on their own labels, beside the anonymous answers."""
    if answers.by_annotator is None:
        return ()
    pairs = answers.labels.pairs()
    by_name = {KNOWN: answers.by_annotator}
    if ANONYMOUS in answers.by_name:
        # Of each pair, the anonymous answer to its item.
        item_positions = answers.labels.rows.positions(pairs.rows.by_item())
        pair_positions = item_positions[pairs.rows.item_codes]
        by_name[ANONYMOUS] = answers.by_name[ANONYMOUS][pair_positions]
    y = pairs.hard_labels(ties=ties, random_state=resampling.random_state)
    by_item = replace(resampling, clusters=item_clusters(pairs))
    scores, _ = score_answers(by_name, constant, pairs, y, by_item, ANONYMOUS)
    return tuple(scores)


def _errors_by_annotation(answers: EvaluatedAnswers) -> pd.DataFrame:
    """CE and error on each annotation [M], and those of anonymous answers where there are some."""
    labels = answers.labels
    shares = label_shares(labels, len(labels.classes))

    def errors(p: Floats, rows: Codes) -> tuple[Floats, Floats]:
        return annotation_errors(p, rows, shares, labels.scale)

    columns: dict[str, Floats] = {}
    if answers.by_annotator is None:
        columns["ce"], columns["error"] = errors(answers.probabilities, labels.item_codes)
        return pd.DataFrame(columns)
    pair_rows = labels.pairs().item_codes
    columns["ce"], columns["error"] = errors(answers.by_annotator, pair_rows)
    if ANONYMOUS in answers.by_name:
        anonymous = errors(answers.by_name[ANONYMOUS], labels.item_codes)
        columns["anonymous_ce"], columns["anonymous_error"] = anonymous
    return pd.DataFrame(columns)


def _errors_by_annotator(answers: EvaluatedAnswers, level: float | None) -> list[AnnotatorErrors]:
    """CE and error of each annotator; with a level, also intervals of both.

    These are t intervals over the annotator's labels, since there may be too many annotators to
    resample the labels of each.
    """
    labels = answers.labels
    # By code, as several annotators may have the same name.
    by_annotator = _errors_by_annotation(answers).groupby(labels.annotator_codes)
    counts = by_annotator.size().to_numpy()
    means = by_annotator.mean()
    names = labels.annotators[means.index].tolist()
    columns = {str(name): values.tolist() for name, values in means.items()}
    rows: list[AnnotatorErrors] = []
    for k, name in enumerate(names):
        row = AnnotatorErrors(
            annotator=name,
            n=int(counts[k]),
            ce=columns["ce"][k],
            error=columns["error"][k],
        )
        if "anonymous_ce" in columns:
            row["anonymous_ce"] = columns["anonymous_ce"][k]
            row["anonymous_error"] = columns["anonymous_error"][k]
        rows.append(row)
    if level is None:
        return rows

    from scipy.special import stdtrit  # Student's t

    quantiles = stdtrit(np.maximum(counts - 1, 1), (1 + level) / 2)
    variances = by_annotator.var().div(counts, axis=0)  # of the means
    ends: dict[str, list[list[float]]] = {}
    for column in ("ce", "error"):
        centres = means[column].to_numpy()
        half_widths = quantiles * np.sqrt(variances[column].to_numpy())
        ends[column] = np.stack([centres - half_widths, centres + half_widths], axis=1).tolist()
    for k, row in enumerate(rows):
        has_enough = row["n"] >= FEWEST_ITEMS
        row["ce_interval"] = ends["ce"][k] if has_enough else None
        row["error_interval"] = ends["error"][k] if has_enough else None
    return rows
