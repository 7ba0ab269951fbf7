"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from edokit._errors import counted
from edokit.analysis.evaluate import EvaluateOptions, Evaluation
from edokit.analysis.evaluate import evaluate as evaluate_probabilities
from edokit.analysis.scores.result import Score
from edokit.analysis.scores.text import SHARES, difference, slice_table
from edokit.cli import console, options
from edokit.metrics import METRIC

_NOTES = {"multi-label": ["Of sets, micro-F1 is the share of labels that are right."]}
_CONSTANT = {"multi-label": "the labels that most of them have"}
"""The hard label of the constant answer, where it is no class."""
_ANNOTATORS = 10
"""Annotators that a terminal shows."""


@options.evaluated
@dataclass(frozen=True, kw_only=True)
class Scoring(EvaluateOptions):
    """The options of an evaluation as one types them."""

    by: options.By = None
    invalid: Annotated[Literal["error"], options.HIDDEN] = "error"


def evaluate(
    *,
    annotations: Path,
    probabilities: Path | None = None,
    ensemble: Path | None = None,
    predictions: Path | None = None,
    train: Annotated[options.TrainFiles, options.FLAT] = options.TrainFiles(),
    scoring: Annotated[Scoring, options.FLAT] = Scoring(),
    normalize: options.Normalize = False,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Compare probabilities with annotations: F1, CE, MD, BS and more, with intervals.

    On an ordinal scale also RPS, W1 and MAD, of sets exact match and label error. Beside each the
    best possible value and that of a constant answer, and a headline where they are not better
    than it.

    Parameters
    ----------
    annotations : Path
        Annotations of the same items (any source).
    probabilities : Path, optional
        A table with item and `p_<class>` columns; answers for each annotator have a column
        annotator, too (or are predictions of `edo score --annotators`).
    ensemble : Path, optional
        The ensemble that made them: it knows the constant answer to beat.
    predictions : Path, optional
        The members' predictions of these items: their uniform mean is shown, too; with --ensemble
        they are pooled, and --probabilities is not needed.
    """
    evaluation = evaluate_probabilities(
        probabilities,
        annotations,
        scoring,
        predictions=predictions,
        ensemble=ensemble,
        invalid="normalize" if normalize else "error",
        **options.keywords(train),
        **options.keywords(reading),
    )
    if json:
        console.print_json(evaluation.to_dict())
        return
    _print_metrics(evaluation, (probabilities or ensemble or annotations).name)
    name = probabilities.name if probabilities else "ensemble"
    hard = _CONSTANT.get(evaluation.scale.kind, "their majority class")
    note = f"constant: {SHARES[evaluation.constant.source]}, and {hard}."
    _print_scores("Beside a constant answer", evaluation.scores, "constant", note, name)
    if evaluation.pairs:
        labels = sum(row["n"] for row in evaluation.annotators)
        title = f"Annotators' own labels: {counted(labels, 'label')}"
        note = "Resampled by item: the labels of an item belong together."
        _print_scores(title, evaluation.pairs, "anonymous", note)
        _print_annotators(evaluation)
    if evaluation.slices:
        console.print_tables(slice_table(evaluation.slices, evaluation.level, name))


def _print_metrics(evaluation: Evaluation, name: str) -> None:
    """All metrics, with the best possible values and those of a constant answer."""
    ends = {metric: (ends.low, ends.high) for metric, ends in evaluation.intervals.items()}
    console.print_records(
        f"{name}: {counted(evaluation.items, 'item')}",
        [
            {
                "metric": f"{METRIC[metric].title} {METRIC[metric].arrow}",
                "value": value,
                f"{evaluation.level:.0%} interval": ends.get(metric),
                "best possible": evaluation.best_possible[metric],
                "constant": evaluation.constant_metrics[metric],
            }
            for metric, value in evaluation.metrics.items()
        ],
        _NOTES.get(evaluation.scale.kind, []),
        evaluation.headline,
    )


def _print_scores(
    title: str, scores: Sequence[Score], against: str, note: str, name: str = ""
) -> None:
    """Methods with their metrics, and how far each is from another one in the headline metric."""
    column = f"Δ{METRIC[scores[0].headline].short} vs {against}"
    records = []
    for score in scores:
        tests = score.against_constant if against == "constant" else score.against
        metrics = {METRIC[metric].label: value for metric, value in score.metrics.items()}
        title_of = name if name and score is scores[0] else score.name
        change = difference(tests.get(score.headline)) or "–"
        records.append({"": title_of, **metrics, column: change})
    console.print_records(title, records, [note])


def _print_annotators(evaluation: Evaluation) -> None:
    """The annotators with the highest error."""
    ranked = sorted(evaluation.annotators, key=lambda row: -row["ce"])
    unlisted = counted(max(len(ranked) - _ANNOTATORS, 0), "annotator")
    console.print_records(
        "Error by annotator",
        [
            {
                "annotator": scores["annotator"],
                "labels": scores["n"],
                "error": scores["error"],
                "CE": scores["ce"],
                f"{evaluation.level:.0%} interval": scores.get("ce_interval"),
                "anonymous CE": scores.get("anonymous_ce"),
            }
            for scores in ranked[:_ANNOTATORS]
        ],
        [f"{unlisted} with a lower CE: see --json."] * (len(ranked) > _ANNOTATORS),
    )
