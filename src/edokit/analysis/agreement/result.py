"""The result of measuring agreement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np

from edokit._io.markup import Table
from edokit._types import Floats
from edokit.analysis.agreement.coefficients import WeightKind
from edokit.metrics import Interval

UNKNOWN = Interval(None, None, None)


class AnnotatorKappa(TypedDict):
    """Cohen's kappa of an annotator with the others, averaged over them."""

    annotator: str
    others: int
    cohen_kappa: Interval


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of annotators beyond chance, as `edokit.agreement` returns it.

    Each coefficient is an `Interval` of ``estimate``, ``low`` and ``high``, which are None where it
    is undefined. ``low`` and ``high`` are also None with fewer than ten items or groups of items,
    and if all items are alike; kappa and alpha need ten items with a label other than the most
    frequent one.

    Attributes
    ----------
    weights : {"nominal", "linear", "quadratic"}
        How much two different classes agree.
    level : float
        Level of the intervals.
    observed : Interval
        The mean agreement of two labels of an item, not corrected for chance.
    krippendorff_alpha, fleiss_kappa : Interval
    cohen_kappa : Interval
        The mean over pairs of annotators who share enough items.
    gwet_ac1, gwet_ac2 : Interval or None
        Gwet's coefficient: AC1 with nominal weights, AC2 with others; the other one is None.
    pairs : int
        Number of pairs of annotators behind ``cohen_kappa``.
    per_annotator : list of dict
        For each ``annotator``, ``cohen_kappa`` averaged over those who share enough items, and the
        number of these ``others``.
    per_item : ndarray of shape [N]
        The agreement of two labels of each item; NaN where there are fewer than two.
    alpha_by_label : list of float
        For multi-label data, Krippendorff's alpha of each label; None where it is undefined.
    reason : str or None
        Why coefficients are undefined.
    cohen_reason : str or None
        Why Cohen's kappa is undefined.
    """

    weights: WeightKind
    level: float
    observed: Interval
    krippendorff_alpha: Interval
    fleiss_kappa: Interval
    cohen_kappa: Interval
    gwet_ac1: Interval | None
    gwet_ac2: Interval | None
    pairs: int
    per_annotator: list[AnnotatorKappa]
    per_item: Floats
    alpha_by_label: list[float | None]
    reason: str | None
    cohen_reason: str | None

    def coefficients(self) -> dict[str, dict[str, float | None] | None]:
        """Return the coefficients by name, as ``edo diagnose --json`` has them in ``agreement``.

        Returns
        -------
        dict
        """
        values: dict[str, dict[str, float | None] | None] = {}
        names = ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa", "gwet_ac1", "gwet_ac2")
        for name in names:
            interval = getattr(self, name)
            values[name] = None
            if interval is not None:
                values[name] = asdict(interval)
        return values

    def to_table(self) -> Table:
        """Return the coefficients that are defined, with their intervals.

        Returns
        -------
        Table
        """
        from edokit.analysis.agreement.text import coefficient_table

        return coefficient_table(self.coefficients(), self.weights, self.level)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values.

        Returns
        -------
        dict
            The attributes; None instead of NaN.
        """
        content = asdict(self)
        content["per_item"] = [None if np.isnan(value) else value for value in self.per_item]
        return content

    def __repr__(self) -> str:
        parts = []
        for name, value in self.coefficients().items():
            if value is not None and value["estimate"] is not None:
                parts.append(f"{name}={value['estimate']:.3f}")
        return f"Agreement({', '.join(parts)})"
