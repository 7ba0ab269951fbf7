"""The solvers on data that do not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edokit._types import Floats
from edokit.fitdata.passes import Groups, units_of
from edokit.fitdata.sharded import LabelledShards
from edokit.objective import (
    CE,
    Curvature,
    Diversity,
    Pool,
    Problem,
    Regularize,
    Settings,
    Summaries,
    joint_hessian,
    joint_loss,
    rank_members,
)
from edokit.solvers.exact import BEST_ENDS, SMALLEST, ends_of, optimum, solve_exact
from edokit.solvers.gumbel import solve_gumbel
from edokit.solvers.in_memory import InMemory
from edokit.solvers.options import GumbelSettings
from edokit.solvers.solution import Solution

Ints: TypeAlias = NDArray[np.intp]
TERMS = ("f1", "ce", "div", "reg", "total")


class OverShards:
    """The joint loss of some units (members or groups); its cross-entropy is a pass over shards.

    One pass gives value, gradient and Hessian; what is known of a place is not asked for again.
    """

    def __init__(
        self, data: LabelledShards, settings: Settings, units: Ints, groups: Groups = None
    ) -> None:
        self._data, self._settings, self._units, self._groups = data, settings, units, groups
        sums = data.summaries(groups)
        self.lean = lean_problem(sums.select(units), settings)
        self._alpha = sums.class_weights(data.classes) if settings.class_weights else None
        # Everything but the cross-entropy of the pool follows from the summaries.
        self._rest = replace(settings, lambda_ce=0.0, ce=CE.ALL, regularize=Regularize.EFFECTIVE)
        self._concave = settings.diversity is Diversity.SUPPRESS
        self._known: dict[bytes, Curvature] = {}
        self.members = len(units)
        self._everyone = self.members == sums.members

    def value(self, v: Floats) -> float:
        """The joint loss at v [K]."""
        rest = float(joint_loss(v, self.lean, self._rest).total)
        if self._settings.lambda_ce == 0:
            return rest
        return rest + self._settings.lambda_ce * self.cross_entropy(v)

    def slope(self, v: Floats) -> Floats:
        """Its gradient [K]."""
        gradient: Floats = joint_loss(v, self.lean, self._rest).gradient
        if self._settings.lambda_ce == 0:
            return gradient
        return gradient + self._settings.lambda_ce * self.ce_gradient(v)

    def curvature(
        self, v: Floats, inside: Ints, rough: bool = False
    ) -> tuple[Floats, Floats | None]:
        """Its Hessian among the members ``inside``: the convex part, and the concave one if any.

        Never rough: the pass that gave the value gave the whole Hessian too.
        """
        convex = replace(self._rest, lambda_div=0.0) if self._concave else self._rest
        among = np.ix_(inside, inside)
        hessian: Floats = joint_hessian(v, self.lean, convex)[among]
        if self._settings.lambda_ce > 0:
            at = self._at(v)
            hessian = hessian + self._settings.lambda_ce * at.hessian[among] / at.items
        if not self._concave or self._settings.lambda_div == 0:
            return hessian, None
        return hessian, 2.0 * self._settings.lambda_div * self.lean.distances[among]

    def cross_entropy(self, v: Floats) -> float:
        """Of the pool."""
        corner = np.flatnonzero(v == 1.0)
        if len(corner) and self._settings.pool is Pool.LINEAR:
            # A single member's pool is the member itself.
            return float(self.lean.member_ce[corner[0]])
        at = self._at(v)
        return float(at.value) / at.items

    def ce_gradient(self, v: Floats) -> Floats:
        """[K] of the pool's cross-entropy."""
        at = self._at(v)
        gradient: Floats = at.gradient / at.items
        return gradient

    def look_at(self, several: Sequence[Floats]) -> None:
        """Know these places [T, K] after one pass."""
        new = [v for v in several if v.tobytes() not in self._known]
        if not new:
            return
        weights = np.array(new)
        back = None
        if self._everyone:
            # Weights are put in the members' order, which costs less than the other way round.
            back = self._units
            weights = np.zeros_like(weights)
            weights[:, back] = new
        found = self._data.curvatures(
            weights,
            units=None if self._everyone else self._units,
            alpha=self._alpha,
            kind=self._settings.pool,
            groups=self._groups,
        )
        for v, at in zip(new, found, strict=True):
            self._known[v.tobytes()] = at if back is None else at.select(back)

    def terms(self, v: Floats) -> dict[str, float]:
        """The terms of the loss and the total, at v [K]."""
        if self._settings.ce is CE.ALL:
            loss = joint_loss(v, self.lean, replace(self._rest, lambda_ce=self._settings.lambda_ce))
            return {name: float(getattr(loss, name)) for name in TERMS}
        loss = joint_loss(v, self.lean, self._rest)
        terms = {name: float(getattr(loss, name)) for name in TERMS}
        terms["ce"] = self.cross_entropy(v)
        terms["total"] += self._settings.lambda_ce * terms["ce"]
        return terms

    def _at(self, v: Floats) -> Curvature:
        self.look_at([v])
        return self._known[v.tobytes()]


def lean_problem(sums: Summaries, settings: Settings) -> Problem:
    """What summaries alone know of a problem: enough for every term but the pool's CE."""
    return Problem(
        sums.hit_rates,
        sums.mean_distances,
        sums.member_ce(settings.class_weights),
        np.zeros((sums.members, 0)),
        np.zeros((0, sums.classes)),
        settings.class_weights,
        settings.pool,
    )


def solve_exact_shards(
    data: LabelledShards,
    settings: Settings,
    *,
    groups: Groups = None,
    order: str = "ce",
    max_members: int | None = None,
) -> Solution:
    """What ``solve_exact`` finds, over all shards.

    The optimum of a sample is where it starts; from there some passes over the shards are enough.
    With ``ce="all"`` (or ``"random"``, in expectation) the summaries are.
    """
    sums = data.summaries(groups)
    ranks = rank_members(sums, order)
    if settings.ce is CE.RANDOM:
        settings = replace(settings, ce=CE.ALL)
    if settings.ce is CE.ALL or settings.regularize is Regularize.RAW:
        lean = lean_problem(sums, settings)
        return solve_exact(lean, settings, order=ranks, max_members=max_members)
    kept = ranks[:max_members]
    objective = OverShards(data, settings, kept, groups)
    drawn = data.sample
    sample = Problem.from_arrays(
        units_of(drawn.P, groups)[:, kept],
        drawn.q,
        drawn.y,
        class_weights=settings.class_weights,
        pool=settings.pool,
        summaries=sums.select(kept),
    )
    starts = ends_of(InMemory(sample, settings), sample, settings, [])[:BEST_ENDS]
    if settings.lambda_ce > 0:
        objective.look_at(starts)
    v, certificate = optimum(objective, sample, settings, starts)
    weights = np.zeros(len(ranks))
    weights[kept] = v
    return Solution(
        weights=weights,
        size=int((v >= SMALLEST).sum()),
        terms=objective.terms(v),
        order=np.concatenate([kept[np.argsort(-v, kind="stable")], ranks[len(kept) :]]),
        certificate=certificate,
    )


def solve_gumbel_shards(
    data: LabelledShards,
    settings: Sequence[Settings],
    options: Sequence[GumbelSettings],
    *,
    seeds: int | Sequence[int] = 0,
    groups: Groups = None,
    order: str = "ce",
) -> list[Solution]:
    """What ``solve_gumbel`` finds on the sample; members are ranked by all items, and the terms of
    each solution are those of all items. Trajectories are the sample's.
    """
    ranks = rank_members(data.summaries(groups), order)
    drawn = data.sample
    P = units_of(drawn.P, groups)[:, ranks]
    found = solve_gumbel(P, drawn.q, drawn.y, settings, options, seeds=seeds, order="given")
    if data.items == len(drawn.y):
        return [_as_given(solution, ranks, solution.terms) for solution in found]
    placed = [_as_given(solution, ranks, {}) for solution in found]
    return [
        replace(solution, terms=terms)
        for solution, terms in zip(
            placed, _terms(data, settings, [s.weights for s in placed], groups), strict=True
        )
    ]


def _terms(
    data: LabelledShards, settings: Sequence[Settings], weights: list[Floats], groups: Groups
) -> list[dict[str, float]]:
    """Of each solution over all items; those that share an objective's pool share a pass."""
    everyone = np.arange(data.summaries(groups).members)
    objectives: list[OverShards] = []
    for each in settings:
        expected = replace(each, ce=CE.ALL) if each.ce is CE.RANDOM else each
        objectives.append(OverShards(data, expected, everyone, groups))
    together: dict[tuple[bool, Pool], list[int]] = {}
    for place, each in enumerate(settings):
        if each.ce is CE.MEAN:
            together.setdefault((each.class_weights, each.pool), []).append(place)
    for places in together.values():
        first = objectives[places[0]]
        first.look_at([weights[place] for place in places])
        for place in places[1:]:
            objectives[place]._known = first._known
    return [objective.terms(v) for objective, v in zip(objectives, weights, strict=True)]


def _as_given(solution: Solution, ranks: Ints, terms: dict[str, float]) -> Solution:
    """A solution for members in the order of ``ranks``, for members as they were given."""

    def moved(weights: Any) -> Any:
        given = np.zeros_like(weights)
        given[..., ranks] = weights
        return given

    trajectory = solution.trajectory
    if trajectory is not None:
        trajectory = replace(trajectory, weights=moved(trajectory.weights))
    return replace(
        solution,
        weights=moved(solution.weights),
        order=ranks[solution.order],
        terms=terms,
        trajectory=trajectory,
    )
