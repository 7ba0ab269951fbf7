"""The result of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypedDict

from edokit._errors import counted
from edokit._io.markup import Table


class CurveRow(TypedDict):
    """What one number of annotators per item buys; values are ``[estimate, low, high]``."""

    annotators: int
    items: int
    soft_label: dict[str, list[float]]
    comparison: dict[str, list[float]]
    model: dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class Plan:
    """What annotators and items buy, as `edokit.plan` returns it.

    Attributes
    ----------
    items, labels : int
        Of the pilot.
    scale : str
        The kind of the answer scale.
    metric : str
        The loss of a model: ``ce``, on an ordinal scale ``rps``.
    budget, price, item_price : float
    level, power : float
    curve : list of dict
        For each number of ``annotators`` per item: the ``items`` that the budget buys,
        ``soft_label`` (the error of their soft label against the distribution of all annotators
        who could be asked), ``model`` (the loss of a model trained on these soft labels, against
        soft labels of as many annotators as in the pilot) and ``comparison``
        (the smallest difference between two models that a test on these items shows with this
        power), each by metric as ``[estimate, low, high]``; empty where it could not be planned.
    best : dict of str to list of int
        For ``model`` and ``comparison`` (in ``metric``), the best number of annotators, then those
        that are not clearly worse.
    compared : list of str
        The two models of the comparison.
    notes : list of str
        What could not be planned, and why.
    """

    items: int
    labels: int
    scale: str
    metric: str
    budget: float
    price: float
    item_price: float
    level: float
    power: float
    curve: Sequence[CurveRow]
    best: Mapping[str, Sequence[int]] = field(default_factory=dict)
    compared: Sequence[str] = ()
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"Plan({counted(self.items, 'item')}, {counted(self.labels, 'label')}, {self.best})"

    @property
    def headline(self) -> list[str]:
        """The decision in sentences."""
        from edokit.analysis.plan.text import headline

        return headline(self)

    def tables(self) -> list[Table]:
        """Return what a terminal and a page show.

        Returns
        -------
        list of Table
            The error of the soft label, and what the budget buys.
        """
        from edokit.analysis.plan.text import tables

        return tables(self)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as ``edo plan --json`` prints it.

        Returns
        -------
        dict
            The attributes, and ``headline``.
        """
        return {**asdict(self), "headline": self.headline}
