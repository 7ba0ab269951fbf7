"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edokit._errors import counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.evaluation import Evaluation


_ANNOTATORS = 10
"""Annotators that a terminal shows."""


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is computed.

    Parameters
    ----------
    scorer : str, optional
        Also the official scores of a shared task: lewidi2023, lewidi2025-a (soft labels) or
        lewidi2025-b (the answer of each annotator).
    """

    by: options.By = None
    scorer: str | None = None
    ties: options.Ties = "first"
    samples: options.Bootstrap = 1000
    level: options.Level = 0.95
    random_state: Annotated[int, Parameter(help="Seed of the bootstrap and of random ties.")] = 0


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
        A table with item and p_<class> columns; answers for each annotator have a column annotator,
        too, and p_<class> or label (or are predictions of `edo score --annotators`).
    ensemble : Path, optional
        The ensemble that made them: it knows the constant answer to beat.
    predictions : Path, optional
        The members' predictions of these items: their uniform mean is shown, too; with --ensemble
        they are pooled, and --probabilities is not needed.
    """
    from edokit.evaluation import evaluate as evaluate_probabilities

    settings = options.keywords(scoring)
    if options.given_flags(train):
        settings["train_annotations"] = reading.annotations(
            train.train_annotations or annotations, train.train_split or []
        )
    evaluation = evaluate_probabilities(
        probabilities,
        reading.annotations(annotations),
        predictions=predictions,
        ensemble=ensemble,
        invalid="normalize" if normalize else "error",
        **settings,
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


def _interval_header(evaluation: Evaluation) -> list[str]:
    return [f"{evaluation.level:.0%} interval"] if evaluation.intervals else []


def _print_official(evaluation: Evaluation) -> None:
    """The scores of a shared task, if one is named."""
    official = evaluation.official
    if official is None:
        return
    rows = []
    for name, value in official.scores.items():
        interval = [_ends(*official.intervals[name])] if evaluation.intervals else []
        rows.append([name, _number(value), *interval, _number(official.constant[name])])
    console.print_table(
        f"{official.scorer}: {counted(evaluation.items, 'item')}",
        ["score", "value", *_interval_header(evaluation), "constant"],
        rows,
        [official.note],
    )


def _print_metrics(evaluation: Evaluation, name: str) -> None:
    """All metrics, with the best possible values and those of a constant answer."""
    from edokit.metrics import METRIC

    _print_official(evaluation)
    intervals = evaluation.intervals
    rows = []
    for metric, value in evaluation.metrics.items():
        ends = [_ends(intervals[metric].low, intervals[metric].high)] if intervals else []
        best, constant = evaluation.best_possible[metric], evaluation.constant_metrics[metric]
        title = f"{METRIC[metric].title} {METRIC[metric].arrow}"
        rows.append([title, _number(value), *ends, _number(best), _number(constant)])
    sets = ["Of sets, micro-F1 is the share of labels that are right."]
    console.print_table(
        f"{name}: {counted(evaluation.items, 'item')}",
        ["metric", "value", *_interval_header(evaluation), "best possible", "constant"],
        rows,
        sets if evaluation.scale.is_multi_label else [],
        evaluation.headline,
    )


def _print_methods(evaluation: Evaluation, name: str) -> None:
    """The probabilities beside the uniform mean and the constant."""
    from edokit.baselines.scores import SHARES, difference
    from edokit.metrics import METRIC

    judged = evaluation.scores[0]
    rows = [
        [
            name if score is judged else score.name,
            *map(_number, score.metrics.values()),
            difference(score.against_constant.get(score.headline)) or "–",
        ]
        for score in evaluation.scores
    ]
    labels = [METRIC[metric].label for metric in judged.metrics]
    hard = "their majority class"
    if evaluation.scale.is_multi_label:
        hard = "the labels that most of them have"
    console.print_table(
        "Beside a constant answer",
        ["", *labels, f"Δ{METRIC[judged.headline].short} vs constant"],
        rows,
        [f"constant: {SHARES[evaluation.constant.source]}, and {hard}."],
    )


def _print_pairs(evaluation: Evaluation) -> None:
    """Answers for annotators on their own labels."""
    from edokit.baselines.scores import difference
    from edokit.metrics import METRIC

    judged = evaluation.pairs[0]
    labels = sum(row["n"] for row in evaluation.annotators)
    console.print_table(
        f"Annotators' own labels: {counted(labels, 'label')}",
        [
            "",
            *(METRIC[metric].label for metric in judged.metrics),
            f"Δ{METRIC[judged.headline].short} vs anonymous",
        ],
        [
            [
                score.name,
                *map(_number, score.metrics.values()),
                difference(score.against.get(score.headline)) or "–",
            ]
            for score in evaluation.pairs
        ],
        ["Resampled by item: the labels of an item belong together."],
    )


def _print_annotators(evaluation: Evaluation) -> None:
    """The annotators with the highest error."""
    ranked = sorted(evaluation.annotators, key=lambda row: -row["ce"])
    anonymous = ["anonymous CE"] if "anonymous_ce" in ranked[0] else []
    rows = []
    for scores in ranked[:_ANNOTATORS]:
        ends = scores.get("ce_interval")
        row = [scores["annotator"], str(scores["n"]), _number(scores["error"])]
        row += [_number(scores["ce"]), _ends(*ends) if ends else "–"]
        row += [_number(scores["anonymous_ce"])] if anonymous else []
        rows.append([*row, "yes" if scores["served_badly"] else ""])
    unlisted = len(ranked) - len(rows)
    note = "badly: CE clearly above that on all other labels."
    if unlisted:
        note += f" {counted(unlisted, 'annotator')} with a lower CE: see --json."
    interval = f"{evaluation.level:.0%} interval"
    console.print_table(
        "Error by annotator",
        ["annotator", "labels", "error", "CE", interval, *anonymous, "badly"],
        rows,
        [note],
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _ends(low: float | None, high: float | None) -> str:
    return f"{_number(low)} … {_number(high)}"
