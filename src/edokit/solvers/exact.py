"""The optimum on the simplex, with a certificate of its quality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._types import Bools, Floats, Ints
from edokit.fitdata.data import FitData
from edokit.objective.loss import (
    Expansion,
    InMemoryTerm,
    ItemTerm,
    JointObjective,
    PoolTerm,
    Quadratic,
    pool_terms,
)
from edokit.objective.pools import one_thread, spread
from edokit.objective.settings import CE, TERMS, ObjectiveSettings, Pool, Shape
from edokit.objective.summaries import Problem, rank_members
from edokit.solvers import Certificate, Solution

TOLERANCE = 1e-9  # the gap at which a descent stops
SMALLEST_WEIGHT = 1e-6  # weights below this are zero
_STEPS = 100  # Newton steps of a descent, at most
_FEW_MEMBERS = 20  # up to this many, a descent starts from every vertex
_SAMPLE = 1024  # items of the first sample, which yields starts
_LARGER = 32  # growth from one sample to the next
_BEST_VERTICES = 5  # with more members, the lowest vertices to start from
_BEST_OPTIMA = 3  # local optima of a sample to start from on more items
# Limits of the quadratic solvers.
_EXCHANGES = 30
_PATIENCE = 3  # exchanges in a row without fewer members on the wrong side
_INTERIOR_STEPS = 60
_TOLERANCE = 1e-13
_SHORT_OF_EDGE = 0.995  # fraction of the way to the boundary that a step may go
# A predicted decrease below this is lost in the rounding of the objective.
_ROUNDING = 1e-14
_SMOOTHINGS = (0.1, 0.01, 0.001)
# How declared shapes are checked: items, pairs of weights, and rounding that is allowed for.
_CHECKED_ITEMS = 256
_CHECKED_PAIRS = 16
_DECLARED = 1e-9


def solve_exact(
    data: FitData,
    settings: ObjectiveSettings,
    *,
    max_members: int | None = None,
    all_terms: bool = True,
) -> Solution:
    """The best weights on the simplex, with a certificate of how good they are.

    Whether the objective is convex follows from the declared shapes of its terms, and of matrices
    from their eigenvalues. If so, the certificate's gap bounds what is left to gain. Else, as for
    suppress, the result is the best of all vertices and of descents from every vertex (of more than
    twenty members: from the five lowest), from the uniform weights and from the optimum without the
    terms that are not convex. ``ce="random"`` is solved in expectation, which is ``ce="all"``.

    Parameters
    ----------
    data : FitData
        Predictions and labels, in memory or in shards.
    settings : ObjectiveSettings
        The objective.
    max_members : int, optional
        Only this many members, those with the lowest cross-entropy, may have weight; all by
        default.
    all_terms : bool, default=True
        Whether the solution has every term. False skips the distances between members where the
        objective does not use them, and ranks where all members compete.

    Returns
    -------
    Solution
        Weights, size, terms and certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit.fitdata.data import FitData
    >>> from edokit.objective.settings import Objective
    >>> P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> data = FitData.from_arrays(P, np.eye(2), np.array([0, 1]))
    >>> solution = solve_exact(data, Objective().resolve())
    >>> solution.weights.round(2)
    array([1., 0.])
    """
    settings = in_expectation(settings)
    problem, ranked = _competing_problem(data, settings, max_members, all_terms)
    members = len(ranked)
    candidates = ranked[:max_members]
    # The matrix products are too small for threads.
    with one_thread():
        objective = JointObjective(problem, settings)
        check_shapes(objective)
        if data.is_sampled and pool_terms(settings):
            # From the optimum of the sample, a few passes over all items are enough.
            starts = local_optima(objective, [])[:_BEST_OPTIMA]
            passes = streamed_terms(data, settings, candidates)
            objective = JointObjective(problem, settings, passes)
            for name in objective.item_terms:
                passes[name].evaluate_at(starts)
        else:
            # Optima of growing samples are starts, so that few steps see all items.
            starts = []
            sample_size = _SAMPLE
            while problem.items >= 2 * sample_size:
                sample = problem.take(spread(problem.items, problem.items // sample_size))
                starts = local_optima(JointObjective(sample, settings), starts)[:_BEST_OPTIMA]
                sample_size *= _LARGER
        v, certificate = optimum(objective, starts)
        terms, slope = terms_and_gradient(objective, v)
    if len(candidates) < members:
        certificate = replace(
            certificate,
            reason=f"among the {len(candidates)} of {members} members that compete,"
            f" {certificate.reason}",
            among=tuple(data.members[k] for k in candidates),
        )
    weights, ce_gradient = np.zeros((2, members))
    weights[candidates] = v
    ce_gradient[candidates] = slope
    return Solution(
        weights=weights,
        size=int((v >= SMALLEST_WEIGHT).sum()),
        terms=terms,
        order=np.concatenate(
            [candidates[np.argsort(-v, kind="stable")], ranked[len(candidates) :]]
        ),
        ce_gradient=ce_gradient,
        certificate=certificate,
    )


def solve_path(
    data: FitData,
    settings: ObjectiveSettings,
    lambdas: Sequence[float],
    *,
    max_members: int | None = None,
) -> Floats:
    """[L, K] the weights that `solve_exact` finds for each ``lambda_reg``, in memory.

    The largest comes first, each next one starts at the weights before; infinity gives uniform
    weights.
    """
    settings = in_expectation(settings)
    problem, ranked = _competing_problem(data, settings, max_members, False)
    path = np.zeros((len(lambdas), len(ranked)))
    v = np.full(problem.members, 1.0 / problem.members)
    with one_thread():
        ce = {"ce_weight": JointObjective(problem, settings).ce}
        for k in np.argsort(lambdas, kind="stable")[::-1]:
            if math.isfinite(lambdas[k]):
                penalised = replace(settings, reg=lambdas[k])
                v = local_optima(JointObjective(problem, penalised, ce), [v])[0]
            path[k, ranked[:max_members]] = v
    return path


def _competing_problem(
    data: FitData, settings: ObjectiveSettings, max_members: int | None, all_terms: bool
) -> tuple[Problem, Ints]:
    """The problem of the members that may have weight, and the ranking of all members."""
    with_items = bool(pool_terms(settings))
    members = np.arange(len(data.members))
    unlimited = max_members is None or max_members >= len(members)
    ranked = members
    if all_terms or not unlimited:
        ranked = rank_members(data.summaries())
    candidates: Ints | None = ranked[:max_members]
    if np.array_equal(ranked[:max_members], members):
        candidates = None
    problem = data.problem(settings, all_terms=all_terms, with_items=with_items, members=candidates)
    return problem, ranked


def evaluate_weights(
    data: FitData, settings: ObjectiveSettings, v: Floats
) -> tuple[dict[str, float], Floats]:
    """Terms of the loss over all items, and the gradient of its cross-entropy, at weights v [K]."""
    settings = in_expectation(settings)
    terms = {}
    if data.is_sampled:
        terms = streamed_terms(data, settings, np.arange(len(data.members)))
    problem = data.problem(settings, with_items=not data.is_sampled)
    return terms_and_gradient(JointObjective(problem, settings, terms), v)


def terms_and_gradient(objective: JointObjective, v: Floats) -> tuple[dict[str, float], Floats]:
    """The terms of the loss at v [K], and the gradient [K] of its cross-entropy."""
    terms = {name: float(value) for name, value in objective.terms(v).items()}
    return terms, objective.ce.at(v)[1]


def in_expectation(settings: ObjectiveSettings) -> ObjectiveSettings:
    """The expected objective: ``ce="random"`` is ``ce="all"`` in expectation."""
    if settings.ce is CE.RANDOM:
        return replace(settings, ce=CE.ALL)
    return settings


def optimum(objective: JointObjective, starts: list[Floats]) -> tuple[Floats, Certificate]:
    """The best weights [K] found, and their certificate."""
    shape = _shape(objective)
    if shape is Shape.CONCAVE:
        reason = "the objective is concave on the simplex: its lowest vertex is the optimum"
        return _vertices(objective)[0], Certificate(0.0, False, True, reason)
    v = _without_tiny_weights(objective, local_optima(objective, starts)[0])
    gap = _gap(objective, v)
    meanings = " and ".join(TERMS[name].meaning for name in objective.bent_terms)
    reason = (
        f"the objective is not convex because of {meanings}: the best local optimum found, every"
        " vertex considered"
    )
    if shape is Shape.CONVEX:
        reason = "the objective is convex: the gap bounds what is left"
    for name, term in objective.item_terms.items():
        if lost := term.term.slack:
            gap += objective.settings.signed_weight(name) * lost
            reason += f" (smoothing of {TERMS[name].name.upper()}, at most {lost:.2g}, included)"
    is_convex = shape is Shape.CONVEX
    return v, Certificate(gap, is_convex, is_convex, reason)


def local_optima(objective: JointObjective, starts: list[Floats]) -> list[Floats]:
    """The local optima that descents from the starts reach, best first.

    Without ``starts`` they begin at the uniform weights and, if the objective is not convex, at the
    lowest vertices and the optimum without the terms that are not convex.
    """
    uniform = np.full(objective.members, 1.0 / objective.members)
    if _shape(objective) is Shape.CONVEX:
        start = starts[0] if starts else uniform
        kinks = {
            name: term
            for name, term in objective.item_terms.items()
            if isinstance(term, InMemoryTerm) and term.term.slack
        }
        # Kinks are approached by smoothing them less and less.
        for smoothing in _SMOOTHINGS if kinks and not starts else ():
            softer = {name: term.softened(smoothing) for name, term in kinks.items()}
            terms = objective.all_terms | softer
            start = _descend(JointObjective(objective.problem, objective.settings, terms), start)
        return [_descend(objective, start)]
    vertices = _vertices(objective)
    if not starts:
        if objective.members <= _FEW_MEMBERS:
            n_vertices = objective.members
        else:
            n_vertices = _BEST_VERTICES
        weights: dict[str, Any] = dict.fromkeys(objective.bent_terms, 0.0)
        settings = replace(objective.settings, **weights)
        without = JointObjective(objective.problem, settings, objective.all_terms)
        starts = [uniform, _descend(without, uniform), *vertices[:n_vertices]]
    ends = [vertices[0], *(_descend(objective, start) for start in starts)]
    # An optimum reached from two starts is listed once.
    heights = {round(objective.value(end), 12): end for end in ends}
    return [heights[height] for height in sorted(heights)]


def _vertices(objective: JointObjective) -> list[Floats]:
    """The vertices of the simplex, each one member alone, best first."""
    corners = np.eye(objective.members)
    heights = np.array([objective.value(corner) for corner in corners])
    return [corners[k] for k in np.argsort(heights, kind="stable")]


def _shape(objective: JointObjective) -> Shape:
    """How the objective bends on the simplex, as far as declarations and eigenvalues can tell."""
    if objective.members == 1:
        return Shape.CONVEX
    matrices = objective.quadratic_terms
    of_matrices = {objective.shapes[name] for name in matrices}
    item_shapes = {shape for name, shape in objective.shapes.items() if name not in matrices}
    if not all(shape.is_convex for shape in of_matrices):
        # Of a sum of matrices the eigenvalues on the simplex decide.
        weights = {name: objective.settings.signed_weight(name) for name in matrices}
        of_matrices = {_matrix_shape(sum(weights[name] * matrices[name] for name in matrices))}
    curved = (of_matrices | item_shapes) - {Shape.LINEAR}
    if not curved or curved == {Shape.CONVEX}:
        return Shape.CONVEX
    return Shape.CONCAVE if curved == {Shape.CONCAVE} else Shape.NEITHER


def _matrix_shape(matrix: Floats, tolerance: float = 1e-12) -> Shape:
    """How vᵀMv bends on the simplex, by the eigenvalues of M there."""
    centre = np.eye(len(matrix)) - 1.0 / len(matrix)
    bends = np.linalg.eigvalsh(centre @ matrix @ centre)
    limit = tolerance * max(1.0, float(np.abs(bends).max()))
    # One eigenvalue, 0, belongs to the direction that leaves the simplex.
    if bends.max() <= limit:
        return Shape.LINEAR if bends.min() >= -limit else Shape.CONCAVE
    return Shape.CONVEX if bends.min() >= -limit else Shape.NEITHER


def check_shapes(objective: JointObjective) -> None:
    """Refuse a term whose declared shape is wrong on this problem: its certificate would be, too.

    Matrices are checked by their eigenvalues, terms over items at midpoints of random weights.
    """
    for name in objective.shapes:
        term = objective.all_terms[name]
        declared = TERMS[name].shape
        if declared is Shape.NEITHER:
            continue
        if isinstance(term, Quadratic):
            measured_shape = _matrix_shape(term.matrix, _DECLARED)
        elif isinstance(term, InMemoryTerm):
            measured_shape = _midpoint_shape(term.first_items(_CHECKED_ITEMS), objective.members)
        else:
            continue
        if measured_shape not in (declared, Shape.LINEAR):
            raise InputError(
                f"the term {TERMS[name].name!r} is declared {declared}, but on these data it is"
                f" {'not' if measured_shape is Shape.NEITHER else measured_shape}",
                f"declare its shape in TERMS; of a term that may bend either way it is"
                f" {Shape.NEITHER!r}",
                code="wrong-declaration",
            )


def _midpoint_shape(term: InMemoryTerm, members: int) -> Shape:
    """How a term bends between random weights, as far as their midpoints tell."""
    ends = np.random.default_rng(0).dirichlet(np.full(members, 0.3), size=(2, _CHECKED_PAIRS))
    values = term.value(ends)
    bends = values.mean(axis=0) - term.value(ends.mean(axis=0))
    limit = _DECLARED * max(1.0, float(np.abs(values).max()))
    if bends.max() <= limit:
        return Shape.LINEAR if bends.min() >= -limit else Shape.CONCAVE
    return Shape.CONVEX if bends.min() >= -limit else Shape.NEITHER


def _descend(objective: JointObjective, start: Floats) -> Floats:
    """Newton's steps on the simplex: each minimises the quadratic model there, exactly."""
    v = start
    value = objective.value(start)
    best = v
    smallest = np.inf
    for _ in range(_STEPS):
        slope = objective.slope(v)
        level = float(slope @ v)
        gap = level - float(slope.min())
        if gap < smallest:
            best = v
            smallest = gap
        if gap <= TOLERANCE:
            break
        # Members without weight that would not lower the loss stay out of the model.
        inside = np.flatnonzero((v > 0) | (slope < level))
        step = -v
        hessian, concave = objective.curvature(v, inside)
        if concave is not None and np.linalg.eigvalsh(_along_simplex(hessian + concave)).min() >= 0:
            hessian = hessian + concave
        linear = slope[inside] - hessian @ v[inside] + hessian[:, 0]
        step[inside] += minimize_on_simplex(_along_simplex(hessian), linear, support=v[inside] > 0)
        decrease = float(slope @ step)
        if -decrease > _ROUNDING * max(1.0, abs(value)):
            bends = bool(objective.bent_terms)
            v, value = _line_search(objective, v, value, step, decrease, double=bends)
        elif gap > smallest:
            break
        else:
            # Rounding hides the decrease; the quadratic model is accurate enough to follow here.
            v, value = _moved(objective, v, 1.0, step)
    return best


def _along_simplex(hessian: Floats) -> Floats:
    """A quadratic that equals xᵀHx on the simplex up to linear terms.

    It is positive semidefinite if H is so along the simplex, whatever H does across it, where
    the diversity term makes it indefinite.
    """
    return np.asarray(hessian - hessian[:, :1] - hessian[:1, :] + hessian[0, 0])


def _line_search(
    objective: JointObjective,
    v: Floats,
    value: float,
    step: Floats,
    decrease: float,
    *,
    double: bool,
) -> tuple[Floats, float]:
    """Halve the step until the objective falls enough (Armijo's rule), or double it while it falls.

    Doubling (where ``double``) is for concave terms, for which a convex model steps too short.
    """
    length = 1.0
    edge = _to_the_edge(v, step)
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
        moved = further
        lower = lowest
    return moved, lower


def _moved(
    objective: JointObjective, v: Floats, length: float, step: Floats
) -> tuple[Floats, float]:
    moved = np.maximum(v + length * step, 0.0)
    moved /= moved.sum()
    return moved, objective.value(moved)


def _gap(objective: JointObjective, v: Floats) -> float:
    """∇f(v)·v − min_k ∇f(v)_k, at least 0."""
    slope = objective.slope(v)
    return max(0.0, float(slope @ v - slope.min()))


def _without_tiny_weights(objective: JointObjective, v: Floats) -> Floats:
    """The optimum with tiny weights set to zero, unless that widens the gap."""
    small = v < SMALLEST_WEIGHT
    if not small.any():
        return v
    clean = np.where(small, 0.0, v)
    clean = _within_support(objective, clean / clean.sum())
    if _gap(objective, clean) <= max(TOLERANCE, _gap(objective, v)):
        return clean
    return v


def _within_support(objective: JointObjective, v: Floats) -> Floats:
    """Refine v by Newton's steps among the members that have weight."""
    inside = np.flatnonzero(v > 0)
    count = len(inside)
    for _ in range(3):
        slope = objective.slope(v)[inside]
        if np.ptp(slope) < 1e-14:
            break
        system = np.ones((count + 1, count + 1))
        convex, concave = objective.curvature(v, inside)
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


def minimize_on_simplex(hessian: Floats, linear: Floats, support: Bools | None = None) -> Floats:
    """The x [K] on the simplex that minimises ½·xᵀHx + c·x; H [K, K] is semidefinite along it.

    ``support`` [K] guesses which x are above zero. An active-set method solves most problems; the
    others (H singular, say) go to an interior-point method.
    """
    if len(linear) == 1:
        return np.ones(1)
    # Scaled to order one, so that tolerance and starting point do not depend on units.
    scale = max(float(np.abs(hessian).max()), float(linear.max() - linear.min()), 1e-300)
    h = hessian / scale
    c = (linear - linear.min()) / scale
    x = _active_set(h, c, np.ones(len(c), bool) if support is None else support.copy())
    if x is None:
        x = _interior_point(h, c)
    return np.asarray(x / x.sum())


def _active_set(h: Floats, c: Floats, inside: Bools) -> Floats | None:
    """Solve among the members inside; negative ones leave and members that lower the loss enter.

    All of them at once, until none moves; None if that does not converge to a solution.
    """
    fewest = len(c) + 1
    patience = _PATIENCE
    for _ in range(_EXCHANGES):
        places = np.flatnonzero(inside)
        count = len(places)
        if count == 0:
            return None
        system = np.ones((count + 1, count + 1))
        system[:count, :count] = h if count == len(c) else h[places[:, None], places]
        system[count, count] = 0.0
        right_side = np.ones(count + 1)
        np.negative(c[places], out=right_side[:count])
        try:
            solved = np.linalg.solve(system, right_side)
        except np.linalg.LinAlgError:
            return None
        x = np.zeros(len(c))
        x[places] = solved[:count]
        slope = h @ x + c + solved[count]
        wrong = np.where(inside, x < 0, slope < -_TOLERANCE)
        moving = int(wrong.sum())
        if moving == 0:
            exact = np.abs(slope[places]).max() < 1e2 * _TOLERANCE
            return x if exact and abs(x.sum() - 1) < 1e-9 else None
        if moving < fewest:
            fewest = moving
            patience = _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            return None
        inside ^= wrong
    return None


def _interior_point(h: Floats, c: Floats) -> Floats:
    """Mehrotra's predictor-corrector method: about twenty steps of one K × K system each."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    k = len(c)
    x = np.full(k, 1.0 / k)
    slope = h @ x + c
    level = float(slope.min()) - 1.0
    z = slope - level  # the multiplier of each x ≥ 0
    for _ in range(_INTERIOR_STEPS):
        off_dual = h @ x + c - level - z
        off_sum = 1.0 - x.sum()
        gap = float(x @ z) / k
        if gap < _TOLERANCE and np.abs(off_dual).max() < _TOLERANCE and abs(off_sum) < _TOLERANCE:
            break
        system = h.copy()
        system[np.diag_indices(k)] += z / x + 1e-15
        factor, failed = dpotrf(system, lower=1)
        if failed:
            break
        ones = dpotrs(factor, np.ones(k), lower=1)[0]

        target = np.zeros(k)
        for corrected in (False, True):
            # Newton's step towards x·z = target.
            unconstrained = dpotrs(factor, -off_dual + target / x - z, lower=1)[0]
            level_step = float((off_sum - unconstrained.sum()) / ones.sum())
            x_step = unconstrained + level_step * ones
            z_step = target / x - z - z / x * x_step
            along_x, along_z = (min(1.0, _to_the_edge(*way)) for way in ((x, x_step), (z, z_step)))
            if not corrected:
                ahead = (x + along_x * x_step) @ (z + along_z * z_step) / k
                target = gap * (ahead / gap) ** 3 - x_step * z_step
        along = _SHORT_OF_EDGE * min(along_x, along_z)
        x = x + along * x_step
        z = z + along * z_step
        level = level + along * level_step
    return np.asarray(np.maximum(x, 0.0))


def _to_the_edge(values: Floats, step: Floats) -> float:
    """How many times the step fits before a value falls below zero."""
    shrinking = step < 0
    if shrinking.any():
        return float((values[shrinking] / -step[shrinking]).min())
    return math.inf


# --- Pool terms over all items, in passes over the data -------------------------------------------


class StreamedTerm(ItemTerm):
    """A pool term of all items, evaluated in passes over the data.

    One pass gives value, gradient and Hessian, which are cached by weights.
    """

    def __init__(
        self, data: FitData, members: Ints, term: PoolTerm, at_vertices: Floats | None = None
    ) -> None:
        """``members`` are positions; ``at_vertices`` [k] is the value of each member alone."""
        self._data = data
        self._members = members
        self.term = term
        self._at_vertices = at_vertices
        self._evaluations: dict[bytes, Expansion] = {}

    def value(self, v: Floats) -> float:
        vertex = np.flatnonzero(v == 1.0)
        if len(vertex) and self._at_vertices is not None:
            return float(self._at_vertices[vertex[0]])
        return float(self.at(v)[0])

    def at(self, v: Floats) -> tuple[float, Floats]:
        sums = self._expansion(v)
        return float(sums.value) / sums.items, np.asarray(sums.gradient / sums.items)

    def hessian(self, v: Floats, inside: Ints) -> Floats:
        sums = self._expansion(v)
        return np.asarray(sums.hessian[np.ix_(inside, inside)] / sums.items)

    def evaluate_at(self, weightings: Sequence[Floats]) -> None:
        """Evaluate the term at these weights [T, K] in one pass, for later use."""
        new = [v for v in weightings if v.tobytes() not in self._evaluations]
        if new:
            expansions = self._data.expansions(np.array(new), self._members, self.term)
            keys = (v.tobytes() for v in new)
            self._evaluations |= dict(zip(keys, expansions, strict=True))

    def _expansion(self, v: Floats) -> Expansion:
        self.evaluate_at([v])
        return self._evaluations[v.tobytes()]


def streamed_terms(
    data: FitData, settings: ObjectiveSettings, members: Ints
) -> dict[str, StreamedTerm]:
    """The pool terms of these settings, each evaluated in passes over all items."""
    sums = data.summaries()
    steps = data.scale.steps
    if settings.class_weights:
        alpha = sums.class_weights(data.row_classes)
    else:
        alpha = None
    terms = pool_terms(settings, alpha, steps)
    # A single member's linear pool is the member itself.
    member_ce = sums.select(members).member_ce(alpha)
    if settings.pool is Pool.LINEAR:
        at_vertices = {"ce_weight": member_ce}
    else:
        at_vertices = {}
    return {n: StreamedTerm(data, members, term, at_vertices.get(n)) for n, term in terms.items()}
