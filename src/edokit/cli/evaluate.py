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
    from edokit.metrics import Interval


@options.reads(options.SPLIT, options.LABELS)
def evaluate(
    annotations: Annotated[
        Path, typer.Option(help="Annotations of the same items (any source).", show_default=False)
    ],
    probabilities: Annotated[
        Path | None,
        typer.Option(help="A table with item and p_<class> columns.", show_default=False),
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

    Beside them a constant answer, and a headline where they are not better than it.
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
        invalid="normalize" if normalize else "error",
        ties=cast("Ties", ties),
        samples=bootstrap,
        level=level,
        random_state=seed,
    )
    if json:
        console.print_json(found.to_dict())
        return
    intervals, metrics = found.intervals, found.metrics
    rows = [
        [label, _number(metrics[key]), *([_interval(intervals[key])] if intervals else [])]
        for key, label in LABELS.items()
        if key in metrics
    ]
    console.print_table(
        f"{(probabilities or ensemble or annotations).name}: {counted(found.items, 'item')}",
        ["metric", "value", *([f"{level:.0%} interval"] if intervals else [])],
        rows,
        [f"The lowest possible CE on these annotations is {_number(found.ce_floor)}."],
        found.headline,
    )
    _show_others(found, (probabilities or Path("ensemble")).name)


def _show_others(found: Evaluation, name: str) -> None:
    """The probabilities beside the uniform mean and the constant, and by slice."""
    from edokit.baselines.scores import SHARES, difference
    from edokit.baselines.slices import slice_table

    rows = [
        [
            name if score is found.scores[0] else score.name,
            *(_number(getattr(score, metric)) for metric in ("f1", "ce", "md", "bs")),
            difference(score.against_constant.get("ce")) or "–",
        ]
        for score in found.scores
    ]
    console.print_table(
        "Beside a constant answer",
        ["", "F1 ↑", "CE ↓", "MD ↓", "BS ↓", "ΔCE vs constant"],
        rows,
        [f"constant: {SHARES[found.constant.source]}, and their majority class."],
    )
    if found.slices:
        table = slice_table(found.slices, found.level, name)
        console.print_table(table.title, table.header, table.shown(), table.notes)


LABELS = {
    "f1": "micro-F1 ↑",
    "macro_f1": "macro-F1 ↑",
    "ce": "cross-entropy ↓",
    "md": "Manhattan distance ↓",
    "bs": "Brier score ↓",
    "jsd": "Jensen–Shannon divergence ↓",
    "ece": "calibration error to shares ↓",
    "entropy_correlation": "entropy correlation ↑",
}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _interval(ends: Interval) -> str:
    return f"{_number(ends.low)} … {_number(ends.high)}"
