"""The options of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edokit._errors import check_number

ANNOTATORS = (1, 2, 3, 4, 5, 7, 10, 15, 20)


@dataclass(frozen=True)
class PlanOptions:
    """Costs of annotation, and samples and intervals of the plan.

    Parameters
    ----------
    budget : float, default=None
        What may be spent; by default what the labels of the pilot cost.
    price : float, default=1
        Price of one label.
    item_price : float, default=0
        Price of one item, however many annotators label it.
    annotators : sequence of int, default=(1, 2, 3, 4, 5, 7, 10, 15, 20)
        Numbers of annotators per item to compare.
    train : bool, default=True
        Whether a model (TF-IDF) is trained on parts of the pilot, if it has texts.
    power : float, default=0.8
        Probability with which a comparison is to show a difference.
    samples : int, default=100
        Bootstrap samples of the pilot's items.
    level : float, default=0.95
        Level of the intervals and of the comparison.
    random_state : int, default=0
        Seed of the simulated labels, and of the parts of the pilot that models are trained on.

    Examples
    --------
    >>> from edokit.analysis.plan.options import PlanOptions
    >>> PlanOptions(budget=500, price=0.1).items(5)
    1000
    """

    budget: float | None = None
    price: float = 1.0
    item_price: float = 0.0
    annotators: Sequence[int] = ANNOTATORS
    train: bool = True
    power: float = 0.8
    samples: int = 100
    level: float = 0.95
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("price", self.price, 0, above=True)
        check_number("item_price", self.item_price, 0)
        check_number("samples", self.samples, 50, whole=True)
        check_number("power", self.power, 0.5, 0.999)
        check_number("level", self.level, 0.5, 0.9999)
        for count in self.annotators:
            check_number("annotators", count, 1, whole=True)

    def items(self, annotators: int) -> int:
        """Return how many items the budget buys with this many annotators each."""
        return int((self.budget or 0.0) / (self.price * annotators + self.item_price))
