"""The result of an estimate of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypedDict

from edokit._errors import counted
from edokit._io.markup import Table

Basis = Literal["labels", "fit", "answers"]


class Share(TypedDict):
    """A share with its interval, whose ends are None if its error can't be estimated."""

    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class SampleGap:
    """The mean answer for a class to labelled texts, and to all, which differ by more than chance.

    Attributes
    ----------
    name : str
        The class.
    labelled, everything : float
        The mean answer to the labelled texts, and to all texts.
    """

    name: str
    labelled: float
    everything: float


class Expected(TypedDict):
    """The mean expected point with its interval."""

    expected: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Shares:
    """The shares of the classes among some texts.

    Attributes
    ----------
    texts, labelled : int
        How many texts, and how many of them have labels.
    shares : dict of str to Share
        By class; for multi-label data the share of texts with each label.
    expected : Expected or None
        On an ordinal scale, the mean point.
    labels_worth : float or None
        How many times as many labels it would take without the answers for an interval as narrow.
        Only where the basis is ``labels``.
    basis : {"labels", "fit", "answers"}
        What the intervals are made from: ``labels`` of these texts; labels of other texts with such
        answers (``fit``), which are those of the fit, or, for a slice with too few labels, all
        labelled texts; nothing but ``answers``, without intervals.
    column, value : str or None
        The texts with this value in this column; None for all texts.
    """

    texts: int
    labelled: int
    shares: Mapping[str, Share]
    expected: Expected | None
    labels_worth: float | None
    basis: Basis
    column: str | None = None
    value: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Estimate:
    """Shares among many texts, as `edokit.estimate` returns them.

    Attributes
    ----------
    total : Shares
        Shares among all texts.
    slices : tuple of Shares
        Shares among the texts with each value of a column.
    classes : tuple of str
    scale : str
        The kind of the answer scale.
    level : float
        Level of the intervals.
    panel : str or None
        The people whose judgement is estimated; None for everybody.
    fit_texts : int or None
        How many of the labelled texts were in the fit; None if this is not known.
    sample_gap : SampleGap or None
        A class in whose answers the labelled texts do not look like a random sample of all texts.
    """

    total: Shares
    slices: tuple[Shares, ...]
    classes: tuple[str, ...]
    scale: str
    level: float
    panel: str | None = None
    fit_texts: int | None = None
    sample_gap: SampleGap | None = None

    @property
    def shares(self) -> Mapping[str, Share]:
        """The share of each class among all texts."""
        return self.total.shares

    @property
    def labels_worth(self) -> float | None:
        """How many times as many labels it would take without the answers."""
        return self.total.labels_worth

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}={row['share']:.4f}" for name, row in self.shares.items())
        return f"Estimate({counted(self.total.texts, 'text')}, {listed})"

    @property
    def headline(self) -> Sequence[str]:
        """The answer in sentences."""
        from edokit.analysis.estimate.text import headline

        return headline(self)

    @property
    def notes(self) -> list[str]:
        """What the shares assume, and what speaks against it, in sentences."""
        from edokit.analysis.estimate.text import notes

        return notes(self)

    def tables(self) -> list[Table]:
        """Return what a terminal shows.

        Returns
        -------
        list of Table
            The shares among all texts, and those of each slice.
        """
        from edokit.analysis.estimate.text import tables

        return tables(self)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as ``edo estimate --json`` prints it.

        Returns
        -------
        dict
            The attributes of `Shares` for all texts, then ``slices``, ``classes``, ``scale``,
            ``level``, ``panel``, ``headline`` and ``notes``.
        """
        return {
            **self.total.to_dict(),
            "slices": [part.to_dict() for part in self.slices],
            "classes": list(self.classes),
            "scale": self.scale,
            "level": self.level,
            "panel": self.panel,
            "headline": list(self.headline),
            "notes": self.notes,
        }
