"""`edo plan`: how many annotators an item needs, and how many items, from a pilot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from edokit.analysis.plan.options import ANNOTATORS, PlanOptions
from edokit.cli import console, options


@options.evaluated
@dataclass(frozen=True, kw_only=True)
class Planning(PlanOptions):
    """The options of a plan as one types them."""

    annotators: Annotated[Any, options.parser(options.whole_numbers, "NUMBERS")] = ANNOTATORS
    train: Annotated[bool, options.TWO_SIDED] = True


def plan(
    annotations: options.AnnotationsSource,
    /,
    *,
    predictions: Path | None = None,
    planning: Annotated[Planning, options.FLAT] = Planning(),
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Plan annotation from a pilot: annotators per item, items, and what a budget buys.

    Expected errors of soft labels, of a model trained on them, and of a comparison of two models.

    Parameters
    ----------
    predictions : Path, optional
        Answers of models to the items of the pilot: how large a difference between the two best a
        comparison can show.
    """
    from edokit.analysis.plan import plan as make_plan

    result = make_plan(annotations, planning, predictions=predictions, **options.keywords(reading))
    console.print_answer(result, json)
