"""Looking for structure once: in the answers as given, or as shuffled."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._types import Ints
from edokit.diagnose.alike import FEWEST_CONTESTED, Found, Meetings, contrast, find_groups
from edokit.diagnose.answers import Answers
from edokit.diagnose.leaning import Leanings, leanings, without_leanings


@dataclass(frozen=True, eq=False)
class Design:
    """Who answered what, and the declared groups: what stays when answers are shuffled."""

    leanings: Leanings
    meetings: Meetings
    declared: Ints | None
    """The declared group of each annotator [A], -1 for none; None where groups are looked for."""
    count: int
    """How many declared groups there are."""
    within: float
    """Mean variance of the answers to an item."""

    @classmethod
    def of(
        cls,
        answers: Answers,
        declared: Ints | None = None,
        count: int = 0,
        fewest: int = FEWEST_CONTESTED,
    ) -> Design:
        """The design of these answers."""
        several = answers.per_item >= 2
        spread = answers.scatter[several] / (answers.per_item[several] - 1)
        return cls(
            Leanings.of(answers),
            Meetings.of(answers, fewest),
            declared,
            count,
            float(spread.mean()) if several.any() else float("nan"),
        )


@dataclass(frozen=True, eq=False)
class Look:
    """What one look at the answers finds."""

    leaning: float
    """Variance of the annotators' leanings."""
    groups: Found
    """Who goes with whom, leanings taken out."""


def look(answers: Answers, design: Design) -> Look:
    """Leanings and groups of these answers."""
    leaning = design.leanings.variance(answers)
    own = leanings(answers, leaning, design.within)
    excess = design.meetings.excess(answers, without_leanings(answers, own))
    if design.declared is None:
        return Look(leaning, find_groups(design.meetings, excess))
    return Look(leaning, contrast(design.meetings, excess, design.declared, design.count))
