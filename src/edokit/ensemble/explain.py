"""Why a member has weight zero, or most of the weight: one small object per member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from edokit.fitdata import FitData
from edokit.objective import CE, Problem, Regularize, Settings, joint_loss
from edokit.solvers import Solution

Kind = Literal[
    "kept", "dominant", "excluded_by_loss", "excluded_by_size", "beyond_max_members", "excluded"
]
TERMS = {
    "lambda_f1": "missed hard labels",
    "lambda_ce": "the cross-entropy",
    "lambda_div": "the disagreement between members",
    "lambda_reg": "the penalty on large weights",
}
ZERO = 1e-6
"""Weights up to this count as none, as in the exact solver."""
DOMINANT = 0.6
"""Share of the weight above which a member has most of it."""
# Ensembles of the first build stored sentences alone.
_OLD_SENTENCES: Mapping[str, Kind] = {
    "beyond max_members": "beyond_max_members",
    "the loss would grow": "excluded_by_loss",
    "leaves it out": "excluded_by_size",
    "most of the weight": "dominant",
}


@dataclass(frozen=True)
class Reason:
    """Why a member (or a group of members) has its weight; ``str`` makes a sentence of it."""

    member: str
    """Name of the member, or of the group where weights are learned between groups."""
    weight: float
    kind: Kind
    """``dominant`` (above 0.6) or ``kept`` for members with weight; for the others
    ``excluded_by_loss`` (weight would raise the loss), ``excluded_by_size`` (the size that gumbel
    chose), ``beyond_max_members`` (ranked too low), ``excluded`` (not recorded)."""
    ce: float | None = None
    """Its own cross-entropy on the fit data."""
    rank: int | None = None
    """Rank by this cross-entropy; 1 is the best."""
    price: float | None = None
    """How much the loss would grow per unit of weight, where that excludes it."""
    term: str | None = None
    """Weight of the term that grows most: ``lambda_f1``, ``lambda_ce``, …"""
    term_change: float | None = None
    """How much that term grows per unit of weight."""
    limit: int | None = None
    """``max_members``, or the size that was chosen, where that excludes it."""
    text: str | None = None
    """The reason in words, of ensembles that stored nothing else."""

    @property
    def has_weight(self) -> bool:
        """Whether the member counts in the pool."""
        return self.kind in ("kept", "dominant")

    @property
    def detail(self) -> str:
        """The reason without name and weight."""
        if self.text is not None:
            return self.text
        alone = f"own cross-entropy {self.ce:.4f}, rank {self.rank}"
        if self.kind == "dominant":
            best = " as the best alone" if self.rank == 1 else ""
            return f"most of the weight{best}; {alone}"
        if self.kind == "excluded_by_loss":
            return (
                f"{alone}: with weight the loss would grow by {self.price:.4f} per unit, above all"
                f" through {TERMS[str(self.term)]} ({self.term_change:+.4f})"
            )
        if self.kind == "excluded_by_size":
            return f"{alone}: the chosen size {self.limit} leaves it out"
        if self.kind == "beyond_max_members":
            return f"{alone}, beyond max_members={self.limit}"
        return alone

    def __str__(self) -> str:
        # A small weight must not read as none.
        shown = f"{self.weight:.3f}" if self.weight >= 5e-4 else f"{self.weight:.1g}"
        weight = shown if self.has_weight else "0"
        return f"{self.member}: weight {weight} ({self.detail})"

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Reason:
        """The reason that ``to_dict`` described; anyone may have written the file."""
        reason = cls(**content)
        if reason.kind not in get_args(Kind) or (reason.term or "lambda_ce") not in TERMS:
            raise ValueError(f"there is no reason {reason.kind!r} with term {reason.term!r}")
        if not isinstance(reason.member, str) or not isinstance(reason.text or "", str):
            raise TypeError("names and reasons must be text")
        str(reason)  # a number that its kind needs may be missing, or none
        return reason

    @classmethod
    def from_sentence(cls, member: str, weight: float, sentence: str) -> Reason:
        """The reason in a sentence, as the first build stored it."""
        if not isinstance(sentence, str):
            raise TypeError(f"a reason must be text, but got {sentence!r}")
        text = sentence.removeprefix(f"{member}: weight {weight:.3f} ").removeprefix("(")
        text = text.replace("): ", ": ", 1) if "): " in text else text.removesuffix(")")
        kinds = (kind for words, kind in _OLD_SENTENCES.items() if words in text)
        kind: Kind = next(kinds, "excluded")
        if weight > ZERO:
            kind = "dominant" if kind == "dominant" else "kept"
        return cls(member, weight, kind, text=text)


def explain(
    units: FitData, solution: Solution, settings: Settings, max_members: int
) -> tuple[Reason, ...]:
    """One reason per member, or group of members, heaviest first."""
    sums, weights = units.summaries(), solution.weights
    own = sums.member_ce()
    problem = Problem.from_summaries(
        sums, class_weights=settings.class_weights, pool=settings.pool, classes=units.classes
    )
    # With its gradient known, the cross-entropy of the pool is as good as a linear term.
    problem = replace(problem, member_ce=solution.ce_gradient)
    silent: dict[str, Any] = {"ce": CE.ALL, "regularize": Regularize.EFFECTIVE}
    silent |= dict.fromkeys(TERMS, 0.0)
    slopes = {}  # what each term gains per unit of each member's weight [K]
    for name in TERMS:
        alone = replace(settings, **{**silent, name: getattr(settings, name)})
        slopes[name] = joint_loss(weights, problem, alone).gradient
    total = np.sum(list(slopes.values()), axis=0)
    prices = total - total @ weights
    reach = set(solution.order[:max_members].tolist())
    reasons = []
    for k in np.argsort(-weights, kind="stable"):
        kind: Kind = "kept"
        more: dict[str, Any] = {}
        if weights[k] > ZERO:
            kind = "dominant" if weights[k] > DOMINANT and len(weights) > 1 else "kept"
        elif k not in reach:
            kind, more = "beyond_max_members", {"limit": max_members}
        elif prices[k] > 0:
            changes = {name: float(slope[k] - slope @ weights) for name, slope in slopes.items()}
            term = max(changes, key=lambda name: changes[name])
            kind = "excluded_by_loss"
            more = {"price": float(prices[k]), "term": term, "term_change": changes[term]}
        else:
            kind, more = "excluded_by_size", {"limit": solution.size}
        rank = int((own < own[k]).sum()) + 1
        weight, ce = float(weights[k]), float(own[k])
        reasons.append(Reason(units.members[k], weight, kind, ce, rank, **more))
    return tuple(reasons)
