"""The result of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from edokit._io.markup import Table

Verdict = Literal["pass", "fail", "too few"]


@dataclass(frozen=True)
class GateRow:
    """The losses of new items beside those of the items of the fit.

    Attributes
    ----------
    items, fit_items : int
        How many items are compared.
    verdict : {"pass", "fail", "too few"}
        ``fail``: the loss is clearly higher than on the items of the fit, corrected for all
        comparisons that were made; ``too few``: too few new items to compare.
    fit_loss, loss : float
        The mean loss on the items of the fit, and on the new ones.
    change, low, high : float or None
        The difference, positive where answers got worse, with its interval.
    p : float or None
        P-value of a one-sided test for a rise of the loss, corrected for all comparisons by Holm's
        procedure.
    detectable : float or None
        A rise of this size would have been found with a probability of 80 % or more.
    column, value : str or None
        The items compared: those with this value in this column, or all items if None. For the
        loss of one member, the column is ``"member"`` and the value its name.
    """

    items: int
    fit_items: int
    verdict: Verdict
    fit_loss: float
    loss: float
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    detectable: float | None = None
    column: str | None = None
    value: str | None = None

    @property
    def is_fall(self) -> bool:
        """Whether answers are clearly worse."""
        return self.verdict == "fail"


@dataclass(frozen=True)
class Gate:
    """Whether new labels are answered as well as those of the fit, as `edokit.gate` returns it.

    Attributes
    ----------
    gate : {"pass", "fail"}
        ``fail`` if all items together, or those of a slice, are clearly answered worse.
    metric : str
        The loss, to one annotator's label: ``ce``, on an ordinal scale ``rps``.
    level : float
        Level of the intervals.
    total : GateRow
        The comparison of all new items.
    slices : tuple of GateRow
        The comparison of the items with each value of a column.
    members : tuple of GateRow
        The comparison of each member, the one that got worse the most first. They do not decide.
    fit_texts : int
        How many new items have the text of an item of the fit.
    """

    gate: Literal["pass", "fail"]
    metric: str
    level: float
    total: GateRow
    slices: tuple[GateRow, ...] = ()
    members: tuple[GateRow, ...] = ()
    fit_texts: int = 0

    @property
    def passes(self) -> bool:
        """Whether no comparison that decides shows a clear fall."""
        return self.gate == "pass"

    def __repr__(self) -> str:
        return (
            f"Gate({self.gate}, {self.metric} {self.total.fit_loss:.4f} -> {self.total.loss:.4f})"
        )

    @property
    def headline(self) -> Sequence[str]:
        """The verdict in sentences."""
        from edokit.analysis.gate.text import headline

        return headline(self)

    @property
    def notes(self) -> list[str]:
        """Reasons to doubt the comparison, in sentences."""
        from edokit.analysis.gate.text import notes

        return notes(self)

    def tables(self) -> list[Table]:
        """Return what a terminal shows.

        Returns
        -------
        list of Table
            The comparison of all items and slices, and that of the members.
        """
        from edokit.analysis.gate.text import tables

        return tables(self)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as ``edo evaluate --gate --json`` prints it.

        Returns
        -------
        dict
            The attributes, those of ``total`` among them, and ``headline``.
        """
        return {
            "gate": self.gate,
            "metric": self.metric,
            "level": self.level,
            **asdict(self.total),
            "slices": [asdict(row) for row in self.slices],
            "members": [asdict(row) for row in self.members],
            "headline": list(self.headline),
            "notes": self.notes,
        }
