"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from edokit._errors import counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.annotations import Ties


@options.reads(options.SPLIT, options.LABELS)
def evaluate(
    probabilities: Annotated[
        Path,
        typer.Option(help="A table with item and p_<class> columns.", show_default=False),
    ],
    annotations: Annotated[
        Path, typer.Option(help="Annotations of the same items (any source).", show_default=False)
    ],
    ties: options.Ties = "first",
    normalize: options.Normalize = False,
    bootstrap: options.Bootstrap = 1000,
    level: options.Level = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of random ties.")] = 0,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Compare probabilities with annotations: F1, CE, MD, BS and more, with intervals."""
    from edokit.evaluation import evaluate as evaluate_probabilities

    result = evaluate_probabilities(
        probabilities,
        reading.annotations(annotations),
        invalid="normalize" if normalize else "error",
        ties=cast("Ties", ties),
        samples=bootstrap,
        level=level,
        random_state=seed,
    ).to_dict()
    if json:
        console.print_json(result)
        return
    intervals = result.get("intervals", {})
    rows = [
        [label, _number(result[key]), *([_interval(intervals[key])] if intervals else [])]
        for key, label in LABELS.items()
        if key in result
    ]
    console.print_table(
        f"{probabilities.name}: {counted(result['items'], 'item')}",
        ["metric", "value", *([f"{level:.0%} interval"] if intervals else [])],
        rows,
        [f"The lowest possible CE on these annotations is {_number(result['ce_floor'])}."],
    )


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


def _interval(bounds: list[float | None] | None) -> str:
    return "" if not bounds else f"{_number(bounds[0])} … {_number(bounds[1])}"
