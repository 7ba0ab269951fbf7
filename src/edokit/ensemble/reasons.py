"""Why each member has its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from edokit._types import Floats
from edokit.fitdata import FitData
from edokit.objective import Regularize, Settings
from edokit.objective.settings import TERMS
from edokit.solvers import Solution
from edokit.solvers.objective import DataTerm, JointObjective, Linear

Kind = Literal[
    "kept",
    "dominant",
    "not_learned",
    "excluded_by_loss",
    "excluded_by_size",
    "beyond_max_members",
]
ZERO = 1e-6
"""Weights up to this count as none, as in the exact solver."""
DOMINANT = 0.6
"""Share of the weight above which a member has most of it."""
MEANINGS: Mapping[str | None, str] = {term.flat_name: term.meaning for term in TERMS.values()}
"""What the terms of the objective measure, by the flat names of their weights."""


@dataclass(frozen=True)
class Reason:
    """Why a member (or a group of members) has its weight; ``str`` makes a sentence of it."""

    member: str
    """Name of the member, or of the group where weights are learned between groups."""
    weight: float
    kind: Kind
    """``dominant`` (above 0.6), ``not_learned`` (gumbel's weights and sizes are as at the start) or
    ``kept`` for members with weight; for the others
    ``excluded_by_loss`` (weight would raise the loss), ``excluded_by_size`` (the size that gumbel
    chose), ``beyond_max_members`` (ranked too low)."""
    ce: float
    """Its own cross-entropy on the fit data."""
    rank: int
    """Rank by this cross-entropy; 1 is the best."""
    price: float | None = None
    """How much the loss would grow per unit of weight, where that excludes it."""
    term: str | None = None
    """Weight of the term that grows most: ``lambda_f1``, ``lambda_ce``, …"""
    term_change: float | None = None
    """How much that term grows per unit of weight."""
    limit: int | None = None
    """``max_members``, or the size that was chosen, where that excludes it."""

    @property
    def has_weight(self) -> bool:
        """Whether the member counts in the pool."""
        return self.kind in ("kept", "dominant", "not_learned")

    @property
    def detail(self) -> str:
        """The reason without name and weight."""
        quality = f"own cross-entropy {self.ce:.4f}, rank {self.rank}"
        if self.kind == "dominant":
            best = " as the best alone" if self.rank == 1 else ""
            return f"most of the weight{best}; {quality}"
        if self.kind == "not_learned":
            return f"{quality}; nothing was learned, weights are as at the start"
        if self.kind == "excluded_by_loss":
            price, change = self.price or 0.0, self.term_change or 0.0
            return (
                f"{quality}: with weight the loss would grow by {price:.4f} per unit, above all"
                f" through {MEANINGS.get(self.term, self.term)} ({change:+.4f})"
            )
        if self.kind == "excluded_by_size":
            return f"{quality}: the chosen size {self.limit} leaves it out"
        if self.kind == "beyond_max_members":
            return f"{quality}, beyond max_members={self.limit}"
        return quality

    def __str__(self) -> str:
        # A small weight must not read as none.
        number = f"{self.weight:.3f}" if self.weight >= 5e-4 else f"{self.weight:.1g}"
        weight = number if self.has_weight else "0"
        return f"{self.member}: weight {weight} ({self.detail})"

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def explain(
    units: FitData, solution: Solution, settings: Settings, max_members: int | None = None
) -> tuple[Reason, ...]:
    """One reason per member, or group of members, heaviest first."""
    weights, slopes = solution.weights, _slopes(units, solution, settings)
    changes = {name: slope - slope @ weights for name, slope in slopes.items()}
    prices = sum(changes.values(), np.zeros(len(weights)))
    within_limit = set(solution.order[:max_members].tolist())
    unlearned = solution.trajectory is not None and solution.trajectory.unlearned
    member_ce = units.member_ce()
    reasons = []
    for k in np.argsort(-weights, kind="stable"):
        kind: Kind = "excluded_by_size"
        details: dict[str, Any] = {}
        if weights[k] > ZERO:
            kind = "not_learned" if unlearned else _kind_with_weight(weights, k)
        elif k not in within_limit:
            kind, details = "beyond_max_members", {"limit": max_members}
        elif prices[k] > 0:
            worst = max(changes, key=lambda name: float(changes[name][k]))
            kind = "excluded_by_loss"
            details = {
                "price": float(prices[k]),
                "term": worst,
                "term_change": float(changes[worst][k]),
            }
        else:
            details = {"limit": solution.size}
        weight, ce = float(weights[k]), float(member_ce[k])
        reasons.append(Reason(units.members[k], weight, kind, ce, _rank(member_ce, k), **details))
    return tuple(reasons)


def _kind_with_weight(weights: Floats, k: int) -> Kind:
    return "dominant" if weights[k] > DOMINANT and len(weights) > 1 else "kept"


def _rank(member_ce: Floats, k: int) -> int:
    return int((member_ce < member_ce[k]).sum()) + 1


def _slopes(units: FitData, solution: Solution, settings: Settings) -> dict[str, Floats]:
    """[K] what each term gains per unit of each member's weight, by the name of its weight."""
    settings = replace(settings, regularize=Regularize.EFFECTIVE)
    everyone = np.arange(len(units.members))
    objective = JointObjective(
        units.problem(settings, with_items=False),
        settings,
        Linear(solution.ce_gradient),
        DataTerm.w1(units, everyone) if settings.w1 else None,
    )
    slopes = objective.slopes(solution.weights)
    return {TERMS[name].flat_name: slope for name, slope in slopes.items()}


def over_labels(
    reasons: Sequence[tuple[Reason, ...]], weights: Floats, units: FitData
) -> tuple[Reason, ...]:
    """One reason per member, heaviest first, where each label has weights of its own.

    ``reasons`` are those of each label, ``weights`` the means over labels [K]. A member without any
    has the reason of the label that it would raise the loss of least.
    """
    member_ce = units.member_ce()
    combined = []
    for k in np.argsort(-weights, kind="stable"):
        by_label = [r for label in reasons for r in label if r.member == units.members[k]]
        best = min(by_label, key=lambda reason: (-reason.weight, reason.price or 0.0))
        kind = _kind_with_weight(weights, k) if weights[k] > ZERO else best.kind
        ce, rank = float(member_ce[k]), _rank(member_ce, k)
        combined.append(replace(best, weight=float(weights[k]), kind=kind, ce=ce, rank=rank))
    return tuple(combined)
