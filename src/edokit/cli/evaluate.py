"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from edokit._errors import are, counted
from edokit.cli import console, options
from edokit.evaluation import EvaluateOptions, Evaluation
from edokit.evaluation import evaluate as evaluate_probabilities

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
        annotator, too, and `p_<class>` or label (or are predictions of `edo score --annotators`).
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
    _print_scores(evaluation, probabilities.name if probabilities else "ensemble")


def _print_scores(evaluation: Evaluation, name: str) -> None:
    """The probabilities beside other answers, by annotator and by slice."""
    _print_methods(evaluation, name)
    if evaluation.pairs:
        _print_pairs(evaluation)
        _print_annotators(evaluation)
    if evaluation.slices:
        from edokit.baselines.slices import slice_table

        console.print_tables(slice_table(evaluation.slices, evaluation.level, name))


def _print_official(evaluation: Evaluation) -> None:
    """The scores of a shared task, if one is named."""
    official = evaluation.official
    if official is None:
        return
    interval = f"{evaluation.level:.0%} interval"
    console.print_records(
        f"{official.scorer}: {counted(evaluation.items, 'item')}",
        [
            {
                "score": name,
                "value": value,
                interval: _ends(official.intervals.get(name)),
                "constant": official.constant[name],
            }
            for name, value in official.scores.items()
        ],
        [official.note],
    )


def _about_ties(evaluation: Evaluation) -> list[str]:
    """What evenly split items do to the accuracy."""
    if evaluation.f1_without_ties is None:
        return []
    return [
        f"{are(evaluation.ties, noun='item')} tied, and the order of classes decides their label:"
        f" without them the accuracy (F1) is {evaluation.f1_without_ties:.4f}."
    ]


def _print_metrics(evaluation: Evaluation, name: str) -> None:
    """All metrics, with the best possible values and those of a constant answer."""
    from edokit.metrics import METRIC

    _print_official(evaluation)
    intervals = {
        metric: (interval.low, interval.high) for metric, interval in evaluation.intervals.items()
    }
    records = []
    for metric, value in evaluation.metrics.items():
        records.append(
            {
                "metric": f"{METRIC[metric].title} {METRIC[metric].arrow}",
                "value": value,
                f"{evaluation.level:.0%} interval": _ends(intervals.get(metric)),
                "best possible": evaluation.best_possible[metric],
                "constant": evaluation.constant_metrics[metric],
            }
        )
    console.print_records(
        f"{name}: {counted(evaluation.items, 'item')}",
        records,
        [*_NOTES.get(evaluation.scale.kind, []), *_about_ties(evaluation)],
        evaluation.headline,
    )


def _scores(scores: Sequence[Any], against: str, name: str = "") -> list[dict[str, object]]:
    """Methods with their metrics, and how far each is from another one in the headline metric."""
    from edokit.baselines.scores import difference
    from edokit.metrics import METRIC

    judged = scores[0]
    records = []
    for score in scores:
        differences = score.against_constant if against == "constant" else score.against
        records.append(
            {"": name if name and score is judged else score.name}
            | {METRIC[metric].label: value for metric, value in score.metrics.items()}
            | {
                f"Δ{METRIC[judged.headline].short} vs {against}": difference(
                    differences.get(score.headline)
                )
                or "–"
            }
        )
    return records


def _print_methods(evaluation: Evaluation, name: str) -> None:
    """The probabilities beside the uniform mean and the constant."""
    from edokit.baselines.scores import SHARES

    hard = _CONSTANT.get(evaluation.scale.kind, "their majority class")
    console.print_records(
        "Beside a constant answer",
        _scores(evaluation.scores, "constant", name),
        [f"constant: {SHARES[evaluation.constant.source]}, and {hard}."],
    )


def _print_pairs(evaluation: Evaluation) -> None:
    """Answers for annotators on their own labels."""
    labels = sum(row["n"] for row in evaluation.annotators)
    console.print_records(
        f"Annotators' own labels: {counted(labels, 'label')}",
        _scores(evaluation.pairs, "anonymous"),
        ["Resampled by item: the labels of an item belong together."],
    )


def _print_annotators(evaluation: Evaluation) -> None:
    """The annotators with the highest error."""
    ranked = sorted(evaluation.annotators, key=lambda row: -row["ce"])
    note = "badly: CE clearly above that on all other labels."
    if len(ranked) > _ANNOTATORS:
        unlisted = counted(len(ranked) - _ANNOTATORS, "annotator")
        note += f" {unlisted} with a lower CE: see --json."
    console.print_records(
        "Error by annotator",
        [
            {
                "annotator": scores["annotator"],
                "labels": scores["n"],
                "error": scores["error"],
                "CE": scores["ce"],
                f"{evaluation.level:.0%} interval": _ends(scores.get("ce_interval")),
                "anonymous CE": scores.get("anonymous_ce"),
                "badly": "yes" if scores["served_badly"] else "",
            }
            for scores in ranked[:_ANNOTATORS]
        ],
        [note],
    )


def _ends(interval: tuple[float | None, float | None] | None) -> str | None:
    """An interval as ``low … high``."""
    if interval is None:
        return None
    return " … ".join("–" if end is None else f"{end:.4f}" for end in interval)
