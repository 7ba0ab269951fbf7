"""The optimum on the simplex, with a certificate of how good it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats
from edokit.objective import CE, Diversity, Problem, Regularize, Settings
from edokit.objective.arrays import one_thread
from edokit.solvers.in_memory import InMemory
from edokit.solvers.simplex_qp import minimize_on_simplex
from edokit.solvers.solution import Certificate, Solution

Ints = npt.NDArray[np.intp]

TOLERANCE = 1e-9
"""The gap at which a descent stops."""
SMALLEST = 1e-6
"""Weights below this are zero."""
_STEPS = 100
_FEW_MEMBERS = 20  # so many members, and a descent from every vertex is still cheap
_SAMPLE = 1024  # items to find a good start on
_LARGER = 32  # times as many for the next start
_BEST_VERTICES = 5  # of more members, the lowest vertices to descend from
BEST_ENDS = 3  # of the sample's local optima, those to descend from on all items
# A promised decrease below this is lost in the rounding of the objective.
_ROUNDING = 1e-14


class Objective(Protocol):
    """What a descent needs to know of the joint loss; data larger than memory can offer it too."""

    @property
    def members(self) -> int:
        """K."""

    def value(self, v: Floats) -> float:
        """The joint loss at v [K]."""

    def slope(self, v: Floats) -> Floats:
        """Its gradient [K]."""

    def curvature(
        self, v: Floats, inside: Ints, rough: bool = False
    ) -> tuple[Floats, Floats | None]:
        """The Hessian among the members ``inside`` [k], which hold all weight, in two parts: the
        convex one, and the diversity term where that is concave (else None): [k, k] each.
        ``rough``: a good guess is enough."""


def solve_exact(
    problem: Problem,
    settings: Settings,
    *,
    order: Sequence[int] | npt.NDArray[Any] | None = None,
    max_members: int | None = None,
) -> Solution:
    """The best weights over the first ``max_members`` members in ``order`` (best first).

    Preserve is convex: the certificate's gap bounds what is left to gain. Suppress is not: the
    result is the best of all vertices and of descents from every vertex (of more than twenty
    members: from the five lowest), from the uniform weights and from the optimum without the
    diversity term. ``ce="random"`` is solved in expectation, which is ``ce="all"``.
    """
    if settings.regularize is Regularize.RAW:
        raise InputError(
            "the exact solver penalises the effective weights, but got regularize='w'",
            "choose regularize='v', or solver='gumbel' for the paper's literal penalty",
        )
    if settings.ce is CE.RANDOM:
        settings = replace(settings, ce=CE.ALL)
    ranked = np.arange(problem.members) if order is None else np.asarray(order, dtype=np.int64)
    kept = ranked[:max_members]
    everyone = np.array_equal(kept, np.arange(problem.members))
    part = problem if everyone else problem.select(kept)
    # Many small products: threads would only wait for each other.
    with one_thread():
        objective, starts = InMemory(part, settings), _from_samples(part, settings)
        v, certificate = optimum(objective, part, settings, starts)
        terms = objective.terms(v)
    weights = np.zeros(problem.members)
    weights[kept] = v
    return Solution(
        weights=weights,
        size=int((v >= SMALLEST).sum()),
        terms=terms,
        order=np.concatenate([kept[np.argsort(-v, kind="stable")], ranked[len(kept) :]]),
        certificate=certificate,
    )


def _from_samples(problem: Problem, settings: Settings) -> list[Floats]:
    """Good starts: a few items tell nearly all; the many are then looked at a few times only."""
    starts: list[Floats] = []
    few = _SAMPLE
    while problem.items >= 2 * few:
        sample = problem.take(np.arange(0, problem.items, problem.items // few))
        starts = ends_of(InMemory(sample, settings), sample, settings, starts)[:BEST_ENDS]
        few *= _LARGER
    return starts


def optimum(
    objective: Objective, problem: Problem, settings: Settings, starts: list[Floats]
) -> tuple[Floats, Certificate]:
    """The best weights [K] found, and what is known of them."""
    shape = _shape(problem, settings)
    if shape == "concave":
        reason = "the objective is concave on the simplex: its lowest vertex is the optimum"
        return _vertices(objective)[0], Certificate(0.0, False, True, reason)
    v = _cleaned(objective, ends_of(objective, problem, settings, starts)[0])
    if shape == "convex":
        reason = "the objective is convex: the gap bounds what is left"
        return v, Certificate(_gap(objective, v), True, True, reason)
    reason = "suppress is not convex: the best local optimum found, every vertex considered"
    return v, Certificate(_gap(objective, v), False, False, reason)


def ends_of(
    objective: Objective, problem: Problem, settings: Settings, starts: list[Floats]
) -> list[Floats]:
    """Where descents from the starts end, best first; without starts, from well-chosen ones."""
    uniform = np.full(objective.members, 1.0 / objective.members)
    if _shape(problem, settings) == "convex":
        return [_descend(objective, starts[0] if starts else uniform)]
    vertices = _vertices(objective)
    if not starts:
        several = objective.members if objective.members <= _FEW_MEMBERS else _BEST_VERTICES
        without = InMemory(problem, replace(settings, lambda_div=0.0))
        starts = [uniform, _descend(without, uniform), *vertices[:several]]
    ends = [vertices[0], *(_descend(objective, start) for start in starts)]
    # The same end reached from two starts is one end.
    heights = {round(objective.value(end), 12): end for end in ends}
    return [heights[height] for height in sorted(heights)]


def _vertices(objective: Objective) -> list[Floats]:
    """One member alone, each member in turn, best first."""
    corners = np.eye(objective.members)
    heights = np.array([objective.value(corner) for corner in corners])
    return [corners[k] for k in np.argsort(heights, kind="stable")]


def _shape(problem: Problem, settings: Settings) -> str:
    """``convex``, ``concave`` (on the simplex), or ``neither`` for certain."""
    if problem.members == 1 or settings.lambda_div == 0:
        return "convex"
    if settings.diversity is Diversity.PRESERVE:
        return "convex"
    if settings.ce is CE.MEAN and settings.lambda_ce > 0:
        return "neither"
    # Without the pool's cross-entropy the objective is a quadratic; look at it on the simplex.
    quadratic = settings.lambda_div * problem.distances + settings.lambda_reg * np.eye(
        problem.members
    )
    centre = np.eye(problem.members) - 1.0 / problem.members
    bends = np.linalg.eigvalsh(centre @ quadratic @ centre)
    limit = 1e-12 * max(1.0, float(np.abs(bends).max()))
    # One eigenvalue, 0, belongs to the direction that leaves the simplex.
    if bends.max() <= limit:
        return "concave"
    return "convex" if bends.min() >= -limit else "neither"


def _descend(objective: Objective, start: Floats) -> Floats:
    """Newton's steps on the simplex: each minimises the quadratic model there, exactly."""
    v, value = start, objective.value(start)
    best, smallest, last, rough = v, np.inf, np.inf, True
    for _ in range(_STEPS):
        slope = objective.slope(v)
        level = float(slope @ v)
        gap = level - float(slope.min())
        if gap < smallest:
            best, smallest = v, gap
        if gap <= TOLERANCE:
            break
        # A rough model will do while it divides what is left by ten each time.
        rough, last = rough and gap < last / 10, gap
        # Members without weight that promise nothing stay out of the model.
        inside = np.flatnonzero((v > 0) | (slope < level))
        step = -v
        convex, concave = objective.curvature(v, inside, rough)
        step[inside] += _model_minimum(convex, concave, slope[inside], v[inside])
        decrease = float(slope @ step)
        if -decrease > _ROUNDING * max(1.0, abs(value)):
            bends = concave is not None
            v, value = _line_search(objective, v, value, step, decrease, double=bends)
        elif gap > smallest:
            break
        else:
            # Rounding hides the decrease; the model is as good as exact here, so follow it.
            v, value = _moved(objective, v, 1.0, step)
    return best


def _model_minimum(convex: Floats, concave: Floats | None, slope: Floats, v: Floats) -> Floats:
    """Where the quadratic model around v is lowest on the simplex."""
    hessian = convex if concave is None else convex + concave
    if concave is not None and np.linalg.eigvalsh(_along(hessian)).min() < 0:
        hessian = convex
    linear = slope - hessian @ v + hessian[:, 0]
    return minimize_on_simplex(_along(hessian), linear, support=v > 0)


def _along(hessian: Floats) -> Floats:
    """A quadratic that equals xᵀHx on the simplex up to linear terms.

    It is positive semidefinite if H is so along the simplex, whatever H does across it, where
    the diversity term makes it indefinite.
    """
    along: Floats = hessian - hessian[:, :1] - hessian[:1, :] + hessian[0, 0]
    return along


def _line_search(
    objective: Objective,
    v: Floats,
    value: float,
    step: Floats,
    decrease: float,
    *,
    double: bool,
) -> tuple[Floats, float]:
    """Halve the step until the objective falls as the slope promises, or double it while it falls.

    Doubling (where ``double``) is for concave terms: a convex model is too cautious for them.
    """
    length, edge = 1.0, _to_the_edge(v, step)
    while length > 1e-12:
        moved, lower = _moved(objective, v, length, step)
        if lower <= value + 1e-4 * length * decrease:
            break
        length /= 2
    else:
        return v, value
    while double and 1.0 <= length < edge:
        length = min(2 * length, edge)
        further, lowest = _moved(objective, v, length, step)
        if lowest >= lower:
            break
        moved, lower = further, lowest
    return moved, lower


def _moved(objective: Objective, v: Floats, length: float, step: Floats) -> tuple[Floats, float]:
    moved = np.maximum(v + length * step, 0.0)
    moved /= moved.sum()
    return moved, objective.value(moved)


def _to_the_edge(v: Floats, step: Floats) -> float:
    """How many steps lie between v and the edge of the simplex."""
    shrinking = step < 0
    return float((v[shrinking] / -step[shrinking]).min()) if shrinking.any() else 1.0


def _gap(objective: Objective, v: Floats) -> float:
    """∇f(v)·v − min_k ∇f(v)_k, at least 0."""
    slope = objective.slope(v)
    return max(0.0, float(slope @ v - slope.min()))


def _cleaned(objective: Objective, v: Floats) -> Floats:
    """The same optimum with tiny weights at zero, where that costs nothing."""
    small = v < SMALLEST
    if not small.any():
        return v
    clean = np.where(small, 0.0, v)
    clean = _within_support(objective, clean / clean.sum())
    return clean if _gap(objective, clean) <= max(TOLERANCE, _gap(objective, v)) else v


def _within_support(objective: Objective, v: Floats) -> Floats:
    """Newton's steps among the members that have weight, towards the last digits."""
    inside = np.flatnonzero(v > 0)
    count = len(inside)
    for _ in range(3):
        slope = objective.slope(v)[inside]
        if np.ptp(slope) < 1e-14:
            break
        system = np.ones((count + 1, count + 1))
        convex, concave = objective.curvature(v, inside, rough=True)
        system[:count, :count] = convex if concave is None else convex + concave
        system[count, count] = 0.0
        step = np.linalg.lstsq(system, np.append(-slope, 0.0), rcond=1e-12)[0][:count]
        moved = v.copy()
        moved[inside] += step
        moved /= moved.sum()
        if (moved < 0).any() or np.ptp(objective.slope(moved)[inside]) >= np.ptp(slope):
            break
        v = moved
    return v
