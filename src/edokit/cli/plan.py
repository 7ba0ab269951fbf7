"""`edo plan`: how many annotators an item needs, and how many items, from a pilot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from edokit.analysis.plan.options import ANNOTATORS, PlanOptions
from edokit.cli import console, options


@dataclass(frozen=True, kw_only=True)
class PlanFlags:
    """Costs of annotation, and samples and intervals of the plan.

    Parameters
    ----------
    budget : float, optional
        What may be spent; by default what the labels of the pilot cost.
    price : float
        Price of one label.
    item_price : float
        Price of one item, however many annotators label it.
    annotators : sequence of int
        Numbers of annotators per item to compare.
    train : bool
        Whether a model (TF-IDF) is trained on parts of the pilot, if it has texts.
    power : float
        Probability with which a comparison is to show a difference.
    samples : int
        Bootstrap samples of the pilot.
    level : float
        Level of the intervals and of the comparison.
    random_state : int
        Seed of the simulated labels, and of the parts of the pilot that models are trained on.
    """

    budget: float | None = None
    price: float = 1.0
    item_price: float = 0.0
    annotators: Annotated[Any, options.parser(options.whole_numbers, "NUMBERS")] = ANNOTATORS
    train: Annotated[bool, options.TWO_SIDED] = True
    power: float = 0.8
    samples: int = 100
    level: float = 0.95
    random_state: int = 0

    def to_options(self) -> PlanOptions:
        """Return the options of the plan."""
        return PlanOptions(
            budget=self.budget,
            price=self.price,
            item_price=self.item_price,
            annotators=self.annotators,
            train=self.train,
            power=self.power,
            samples=self.samples,
            level=self.level,
            random_state=self.random_state,
        )


def plan(
    annotations: options.AnnotationsSource,
    /,
    *,
    predictions: Path | None = None,
    flags: Annotated[PlanFlags, options.FLAT] = PlanFlags(),
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

    result = make_plan(
        annotations, flags.to_options(), predictions=predictions, **options.given_arguments(reading)
    )
    console.print_answer(result, json)
