"""The result of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypedDict

from edokit._errors import counted
from edokit._io.markup import Table
from edokit._package import notebook_html
from edokit.metrics import Interval

UNIFORM = "uniform"
CONSTANT = "constant"
ENSEMBLE = "ensemble"
ALL = "all"
# The share of annotators that a candidate must win against to pass.
PASS_RATE = 0.5

Verdict = Literal["worse", "unclear", "free", "better"]


class Dropped(TypedDict):
    """What the uniform mean loses without a member."""

    difference: float
    interval: tuple[float, float]
    verdict: Verdict


class MemberRow(TypedDict):
    """A member of the jury."""

    member: str
    loss: float
    correlation: float | None
    correlation_interval: list[float | None]
    uniform: Dropped


class StratumRow(TypedDict):
    """Agreement on the items whose votes are divided in the same way, as in ``2:1``."""

    stratum: str | None
    items: int
    agreement: float
    human: float
    best: float
    above_human: float
    interval: tuple[float, float] | None


class JudgeRow(TypedDict):
    """The single answers of a judge beside the annotators' labels."""

    judge: str
    labels: int
    agreement: Interval
    cohen_kappa: Interval


class ConfusionRow(TypedDict):
    """How often a judge gives each answer where annotators gave one label."""

    judge: str
    question: str | None
    human: str
    answers: dict[str, int]


class AnnotatorRow(TypedDict):
    """A candidate beside one annotator."""

    annotator: str
    items: int
    advantage: float
    human_advantage: float
    p: float
    wins: bool


class CandidateRow(TypedDict):
    """The alternative annotator test of a candidate."""

    candidate: str
    winning_rate: float
    advantage: float
    interval: tuple[float, float]
    passes: bool
    annotators: list[AnnotatorRow]


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found about a jury, as `edokit.audit` returns it.

    Attributes
    ----------
    items, annotators : int
        Numbers of items and annotators.
    metric : str
        The loss in which members are compared: ``ce``, on an ordinal scale ``rps``.
    level : float
        Level of the intervals.
    judges : Interval or None
        The effective number of independent judges: the number of judges with independent errors
        whose uniform mean has the same error as that of these members; from 1 to the number of
        members. Estimate and ends are None if the error is zero. None for a jury of one.
    judges_limit : float or None
        The number of judges that infinitely many members of this kind would count as, by the
        estimate of ``judges``; None if it is unbounded.
    correlation : float or None
        The mean correlation of the errors of two members against the human distribution, over
        all pairs of ``correlations``.
    correlations : dict of str to dict
        The correlation of the errors of each pair of members, given that all count as the
        estimated number of judges; None if the error of a member does not exceed the noise of the
        labels.
    members : list of dict
        For each ``member``, its ``loss``, the mean ``correlation`` of its errors with those of the
        others (``correlation_interval``: as the ends of ``judges`` imply), and how much the loss of
        the uniform mean grows without it (``uniform``): ``difference``, ``interval`` and
        ``verdict`` ("free": by 1 % at most, interval included).
    strata : list of dict
        By division of votes (``stratum``: ``3:0``, ``2:1`` …) and for all items, how much the
        jury's answer (``agreement``), another annotator (``human``) and the best single answer
        (``best``) agree with an annotator, and by how much the jury agrees more than another
        annotator (``above_human``) with its interval.
    judges_and_people : list of dict
        For each ``judge`` (every member, and their uniform mean), ``agreement`` and
        ``cohen_kappa`` of its single answers with all ``labels`` of annotators, with intervals over
        items; on an ordinal scale with quadratic weights, for multi-label data the mean over
        labels. Empty where annotators gave probabilities.
    people : Interval or None
        The mean Cohen's kappa of two annotators, beside those of the judges; None for
        probabilities.
    confusion : list of dict
        For each judge and each label that annotators gave (``human``), how often the judge gave
        each of the ``answers``; for multi-label data one table per label (``question``).
    replacement : list of dict
        With ``replace``, for each candidate the ``winning_rate``, ``advantage`` (the mean
        probability that it is as good as the annotator who is left out, or better) with
        ``interval``, whether it ``passes``, and a row for each annotator.
    epsilon : float
        The margin of the replacement test.
    """

    items: int
    annotators: int
    metric: str
    level: float
    judges: Interval | None = None
    judges_limit: float | None = None
    correlation: float | None = None
    correlations: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    members: Sequence[MemberRow] = ()
    strata: Sequence[StratumRow] = ()
    judges_and_people: Sequence[JudgeRow] = ()
    people: Interval | None = None
    confusion: Sequence[ConfusionRow] = ()
    replacement: Sequence[CandidateRow] = ()
    epsilon: float = 0.1

    def __repr__(self) -> str:
        judges = ""
        if self.judges is not None and self.judges.estimate is not None:
            judges = f", {self.judges.estimate:.1f} judges"
        members = counted(len(self.members), "member")
        return f"Audit({counted(self.items, 'item')}, {members}{judges})"

    def _repr_html_(self) -> str:
        """The answers in sentences and the tables behind them, in a notebook."""
        return notebook_html("audit_html", self)

    @property
    def headline(self) -> list[str]:
        """The answers in sentences."""
        from edokit.analysis.audit.text import headline

        return headline(self)

    def tables(self) -> list[Table]:
        """Return what a terminal and a page show.

        Returns
        -------
        list of Table
            Members, strata of agreement, judges beside annotators, the confusion of the uniform
            mean, and candidates, as far as there are some.
        """
        from edokit.analysis.audit.text import tables

        return tables(self)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as ``edo audit --json`` prints it.

        Returns
        -------
        dict
            The attributes, and ``headline``.
        """
        return {**asdict(self), "headline": self.headline}
