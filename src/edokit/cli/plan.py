"""`edo plan`: how many annotators an item needs, and how many items, from a pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from edokit._errors import InputError
from edokit.cli import console, options
from edokit.planning import ANNOTATORS, PlanOptions


def _counts(texts: Sequence[str], option: str, form: str) -> tuple[int, ...]:
    """``["1,3,5"]`` as ``(1, 3, 5)``."""
    names = options.split_names(texts[-1])
    if not all(name.isdecimal() for name in names):
        raise InputError(f"{option} {texts[-1]} are not whole numbers", f"write {option} 1,3,5")
    return tuple(map(int, names))


@options.evaluated
@dataclass(frozen=True, kw_only=True)
class Planning(PlanOptions):
    """The options of a plan as one types them."""

    annotators: Annotated[Any, options.parser(_counts, "NUMBERS")] = ANNOTATORS
    train: Annotated[bool, options.TWO_SIDED] = True


def plan(
    annotations: options.Source,
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
    from edokit.planning import plan as make_plan

    result = make_plan(annotations, planning, predictions=predictions, **options.keywords(reading))
    console.print_answer(result, json)
