"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from edokit._errors import counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.annotations import Ties
    from edokit.evaluation import Evaluation


_ANNOTATORS = 10
"""Annotators that a terminal shows."""


@options.reads(options.SPLIT, options.LABELS)
def evaluate(
    annotations: Annotated[Path, typer.Option(help="Annotations of the same items (any source).")],
    probabilities: Annotated[
        Path | None,
        typer.Option(
            help="A table with item and p_<class> columns; answers for each annotator have a column"
            " annotator, too, and p_<class> or label (or are predictions of `edo score"
            " --annotators`)."
        ),
    ] = None,
    ensemble: Annotated[
        Path | None,
        typer.Option(help="The ensemble that made them: it knows the constant answer to beat."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="The members' predictions of these items: their uniform mean is shown, too; with"
            " --ensemble they are pooled, and --probabilities is not needed."
        ),
    ] = None,
    train_annotations: options.TrainAnnotations = None,
    train_split: options.TrainSplit = None,
    by: options.By = None,
    scorer: Annotated[
        str | None,
        typer.Option(
            help="Also the official scores of a shared task: lewidi2023, lewidi2025-a (soft labels)"
            " or lewidi2025-b (the answer of each annotator)."
        ),
    ] = None,
    ties: options.Ties = "first",
    normalize: options.Normalize = False,
    bootstrap: options.Bootstrap = 1000,
    level: options.Level = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of random ties.")] = 0,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Compare probabilities with annotations: F1, CE, MD, BS and more, with intervals.

    On an ordinal scale also RPS, W1 and MAD, of sets exact match and label error. Beside each the
    best possible value and that of a constant answer, and a headline where they are not better
    than it.
    """
    from edokit.evaluation import evaluate as evaluate_probabilities

    train = None
    if train_annotations is not None or train_split is not None:
        train = reading.annotations(
            train_annotations or annotations, options.names(train_split) or []
        )
    found = evaluate_probabilities(
        probabilities,
        reading.annotations(annotations),
        predictions=predictions,
        ensemble=ensemble,
        train_annotations=train,
        by=by,
        scorer=scorer,  # type: ignore[arg-type]  # checked there
        invalid="normalize" if normalize else "error",
        ties=cast("Ties", ties),
        samples=bootstrap,
        level=level,
        random_state=seed,
    )
    if json:
        console.print_json(found.to_dict())
        return
    from edokit.metrics import METRIC

    intervals = found.intervals
    rows = [
        [
            f"{METRIC[name].title} {METRIC[name].arrow}",
            _number(value),
            *([_ends(intervals[name].low, intervals[name].high)] if intervals else []),
            _number(found.best_possible[name]),
            _number(found.constant_metrics[name]),
        ]
        for name, value in found.metrics.items()
    ]
    ends = [f"{level:.0%} interval"] if intervals else []
    if found.official is not None:
        official = found.official
        console.print_table(
            f"{official.scorer}: {counted(found.items, 'item')}",
            ["score", "value", *ends, "constant"],
            [
                [
                    name,
                    _number(value),
                    *([_ends(*official.intervals[name])] if intervals else []),
                    _number(official.constant[name]),
                ]
                for name, value in official.scores.items()
            ],
            [official.note],
        )
    console.print_table(
        f"{(probabilities or ensemble or annotations).name}: {counted(found.items, 'item')}",
        ["metric", "value", *ends, "best possible", "constant"],
        rows,
        ["Of sets, micro-F1 is the share of labels that are right."]
        if found.scale.is_multi_label
        else [],
        found.headline,
    )
    _show_others(found, (probabilities or Path("ensemble")).name)


def _show_others(found: Evaluation, name: str) -> None:
    """The probabilities beside the uniform mean and the constant, and by slice."""
    from edokit.baselines.scores import SHARES, difference
    from edokit.baselines.slices import slice_table
    from edokit.metrics import METRIC

    first = found.scores[0]
    rows = [
        [
            name if score is first else score.name,
            *map(_number, score.metrics.values()),
            difference(score.against_constant.get(score.headline)) or "–",
        ]
        for score in found.scores
    ]
    labels = [METRIC[metric].label for metric in first.metrics]
    hard = "their majority class"
    if found.scale.is_multi_label:
        hard = "the labels that most of them have"
    console.print_table(
        "Beside a constant answer",
        ["", *labels, f"Δ{METRIC[first.headline].short} vs constant"],
        rows,
        [f"constant: {SHARES[found.constant.source]}, and {hard}."],
    )
    if found.pairs:
        _show_annotators(found)
    if found.slices:
        table = slice_table(found.slices, found.level, name)
        console.print_table(table.title, table.header, table.shown(), table.notes)


def _show_annotators(found: Evaluation) -> None:
    """Answers for annotators on their own labels, and the annotators with the highest error."""
    from edokit.baselines.scores import difference
    from edokit.metrics import METRIC

    first = found.pairs[0]
    name = METRIC[first.headline].short
    console.print_table(
        f"Annotators' own labels: {counted(sum(one['n'] for one in found.annotators), 'label')}",
        ["", *(METRIC[metric].label for metric in first.metrics), f"Δ{name} vs anonymous"],
        [
            [
                score.name,
                *map(_number, score.metrics.values()),
                difference(score.against.get(score.headline)) or "–",
            ]
            for score in found.pairs
        ],
        ["Resampled by item: the labels of an item belong together."],
    )
    ranked = sorted(found.annotators, key=lambda one: -one["ce"])
    anonymous = ["anonymous CE"] if "anonymous_ce" in ranked[0] else []
    rows = []
    for one in ranked[:_ANNOTATORS]:
        ends = one.get("ce_interval")
        row = [one["annotator"], str(one["n"]), _number(one["error"]), _number(one["ce"])]
        row += [
            _ends(*ends) if ends else "–",
            *([_number(one["anonymous_ce"])] if anonymous else []),
        ]
        rows.append([*row, "yes" if one["served_badly"] else ""])
    left = len(ranked) - len(rows)
    console.print_table(
        "Error by annotator",
        ["annotator", "labels", "error", "CE", f"{found.level:.0%} interval", *anonymous, "badly"],
        rows,
        [
            "badly: CE clearly above that on all other labels."
            + (f" {counted(left, 'annotator')} with a lower CE: see --json." if left else "")
        ],
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _ends(low: float | None, high: float | None) -> str:
    return f"{_number(low)} … {_number(high)}"
