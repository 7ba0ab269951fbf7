"""The optimum on the simplex, with a certificate of its quality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._types import Bools, Floats, Ints, Reals
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
from edokit.objective.pools import one_thread, spaced_positions
from edokit.objective.settings import CE, TERMS, ObjectiveSettings, Pool, Shape
from edokit.objective.summaries import Problem, rank_members
from edokit.solvers import Certificate, Solution

TOLERANCE = 1e-9  # the gap at which a descent stops
SMALLEST_WEIGHT = 1e-6  # weights below this are zero
_STEPS = 100  # Newton steps of a descent, at most
_FEW_MEMBERS = 20  # up to this many, a descent starts from every vertex
_SAMPLE = 1024  # items of the first sample, which yields starts
_LARGER = 32  # growth from one sample to the next
_BEST_VERTICES = 5  # with more members, it starts from this many, those with the lowest loss
_BEST_OPTIMA = 3  # local optima of a sample to start from on more items
# Limits of the quadratic solvers.
_EXCHANGES = 30
_PATIENCE = 3  # exchanges in a row without fewer members on the wrong side
_INTERIOR_STEPS = 60
_QUADRATIC_TOLERANCE = 1e-13
_SHORT_OF_EDGE = 0.995  # fraction of the way to the boundary that a step may go
# A predicted decrease below this is lost in the rounding of the objective.
_ROUNDING = 1e-14
# Terms with kinks are first solved with the kinks smoothed by these widths, one after the other.
_SMOOTHINGS = (0.1, 0.01, 0.001)
# Declared shapes are checked on this many items, between this many pairs of weights. Bends up to
# the tolerance, relative to the values, are rounding.
_CHECKED_ITEMS = 256
_CHECKED_PAIRS = 16
_SHAPE_TOLERANCE = 1e-9


def solve_exact(
    data: FitData,
    settings: ObjectiveSettings,
    *,
    max_members: int | None = None,
    all_terms: bool = True,
) -> Solution:
    """The best weights on the simplex, with a certificate of how good they are.

    Whether the objective is convex follows from the declared shapes of its terms and from the
    eigenvalues of its matrices. If it is convex, the certificate's gap bounds what is left to gain.
    If it is concave, the lowest vertex is the optimum. Otherwise, which happens with
    ``diversity="suppress"``, the result is the best of all vertices and of several descents: from
    every vertex (of more than twenty members, from the five lowest), from the uniform weights, and
    from the optimum without the terms that are not convex. ``ce="random"`` is solved in
    expectation, which is ``ce="all"``.

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
        Whether the solution has every term. False leaves out what costs time: distances between
        members if the objective does not use them, and the ranking of members if all compete.

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
            streamed = streamed_terms(data, settings, candidates)
            objective = JointObjective(problem, settings, streamed)
            for name in objective.item_terms:
                streamed[name].evaluate_at(starts)
        else:
            # Optima of growing samples are starts, so that few steps see all items.
            starts = []
            sample_size = _SAMPLE
            while problem.items >= 2 * sample_size:
                sample = problem.take(spaced_positions(problem.items, problem.items // sample_size))
                starts = local_optima(JointObjective(sample, settings), starts)[:_BEST_OPTIMA]
                sample_size *= _LARGER
        v, certificate = optimum(objective, starts)
        terms, competing_gradient = terms_and_ce_gradient(objective, v)
    if len(candidates) < members:
        certificate = replace(
            certificate,
            reason=f"among the {len(candidates)} of {members} members that compete,"
            f" {certificate.reason}",
            among=tuple(data.members[k] for k in candidates),
        )
    weights = np.zeros(members)
    weights[candidates] = v
    ce_gradient = np.zeros(members)
    ce_gradient[candidates] = competing_gradient
    by_weight = candidates[np.argsort(-v, kind="stable")]
    return Solution(
        weights=weights,
        size=int((v >= SMALLEST_WEIGHT).sum()),
        terms=terms,
        order=np.concatenate([by_weight, ranked[len(candidates) :]]),
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
    """The weights [L, K] that `solve_exact` finds with each ``lambda_reg``, on data in memory.

    Rows are in the order of ``lambdas``. They are solved from the largest one on, each from the
    weights before; infinity gives uniform weights.
    """
    settings = in_expectation(settings)
    problem, ranked = _competing_problem(data, settings, max_members, False)
    path = np.zeros((len(lambdas), len(ranked)))
    v = np.full(problem.members, 1.0 / problem.members)
    with one_thread():
        # The cross-entropy does not depend on λ_Reg: all objectives share its cached values.
        ce = {"ce_weight": JointObjective(problem, settings).ce}
        for place in np.argsort(lambdas, kind="stable")[::-1]:
            if math.isfinite(lambdas[place]):
                penalised = replace(settings, reg=lambdas[place])
                v = local_optima(JointObjective(problem, penalised, ce), [v])[0]
            path[place, ranked[:max_members]] = v
    return path


def _competing_problem(
    data: FitData, settings: ObjectiveSettings, max_members: int | None, all_terms: bool
) -> tuple[Problem, Ints]:
    """The problem of the members that may have weight, and the ranking of all members."""
    with_items = bool(pool_terms(settings))
    members = np.arange(len(data.members))
    all_compete = max_members is None or max_members >= len(members)
    if all_compete and not all_terms:
        ranked = members
    else:
        ranked = rank_members(data.summaries())
    candidates: Ints | None = ranked[:max_members]
    if np.array_equal(ranked[:max_members], members):
        candidates = None  # all members as they were given: nothing to select
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
    return terms_and_ce_gradient(JointObjective(problem, settings, terms), v)


def terms_and_ce_gradient(objective: JointObjective, v: Floats) -> tuple[dict[str, float], Floats]:
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
        lowest = _vertices(objective)[0]
        reason = "the objective is concave on the simplex: its lowest vertex is the optimum"
        return lowest, Certificate(gap=0.0, convex=False, global_optimum=True, reason=reason)
    v = _without_tiny_weights(objective, local_optima(objective, starts)[0])
    gap = _gap(objective, v)
    is_convex = shape is Shape.CONVEX
    if is_convex:
        reason = "the objective is convex: the gap bounds what is left to gain"
    else:
        causes = " and ".join(TERMS[name].meaning for name in objective.non_convex_terms)
        reason = (
            f"the objective is not convex because of {causes}; the weights are the best of several"
            " local optima and of every member alone"
        )
    for name, term in objective.item_terms.items():
        slack = term.term.slack
        if slack:
            # The gap is of the smoothed term; its kinks can lower the loss by this much more.
            gap += objective.settings.signed_weight(name) * slack
            term_name = TERMS[name].name.upper()
            reason += f" (the gap includes the smoothing of {term_name}, at most {slack:.2g})"
    return v, Certificate(gap=gap, convex=is_convex, global_optimum=is_convex, reason=reason)


def local_optima(objective: JointObjective, starts: list[Floats]) -> list[Floats]:
    """The local optima that descents from ``starts`` reach, best first.

    A convex objective has one: its descent begins at the first start, or else at the uniform
    weights. For other objectives the lowest vertex is in the list, too. Without starts their
    descents begin at the uniform weights, at the optimum without the terms that are not convex, and
    at the lowest vertices.
    """
    uniform = np.full(objective.members, 1.0 / objective.members)
    if _shape(objective) is Shape.CONVEX:
        if starts:
            return [_descend(objective, starts[0])]
        start = uniform
        kinked_terms = {
            name: term
            for name, term in objective.item_terms.items()
            if isinstance(term, InMemoryTerm) and term.term.slack
        }
        if kinked_terms:
            # Kinks are approached by smoothing them less and less.
            for smoothing in _SMOOTHINGS:
                softer = {name: term.softened(smoothing) for name, term in kinked_terms.items()}
                terms = objective.all_terms | softer
                softened = JointObjective(objective.problem, objective.settings, terms)
                start = _descend(softened, start)
        return [_descend(objective, start)]
    vertices = _vertices(objective)
    if not starts:
        if objective.members <= _FEW_MEMBERS:
            n_vertices = objective.members
        else:
            n_vertices = _BEST_VERTICES
        no_weights: dict[str, Any] = dict.fromkeys(objective.non_convex_terms, 0.0)
        convex_settings = replace(objective.settings, **no_weights)
        convex_part = JointObjective(objective.problem, convex_settings, objective.all_terms)
        starts = [uniform, _descend(convex_part, uniform), *vertices[:n_vertices]]
    optima = [vertices[0], *(_descend(objective, start) for start in starts)]
    # By the loss, rounded, so that an optimum reached from two starts is listed once.
    by_height = {round(objective.value(v), 12): v for v in optima}
    return [by_height[height] for height in sorted(by_height)]


def _vertices(objective: JointObjective) -> list[Floats]:
    """The vertices of the simplex, each one member alone, best first."""
    vertices = np.eye(objective.members)
    heights = np.array([objective.value(vertex) for vertex in vertices])
    return [vertices[k] for k in np.argsort(heights, kind="stable")]


# --- How the objective bends ----------------------------------------------------------------------


def _shape(objective: JointObjective) -> Shape:
    """How the objective bends on the simplex, as far as declarations and eigenvalues can tell.

    A linear objective counts as convex.
    """
    if objective.members == 1:
        return Shape.CONVEX
    matrices = objective.quadratic_terms
    matrix_shapes = {objective.shapes[name] for name in matrices}
    other_shapes = {shape for name, shape in objective.shapes.items() if name not in matrices}
    if not all(shape.is_convex for shape in matrix_shapes):
        # A sum of matrices can be convex although one of them is not: its eigenvalues decide.
        weights = {name: objective.settings.signed_weight(name) for name in matrices}
        weighted_sum = sum(weights[name] * matrices[name] for name in matrices)
        matrix_shapes = {_matrix_shape(weighted_sum)}
    curved = (matrix_shapes | other_shapes) - {Shape.LINEAR}
    if not curved or curved == {Shape.CONVEX}:
        return Shape.CONVEX
    if curved == {Shape.CONCAVE}:
        return Shape.CONCAVE
    return Shape.NEITHER


def _matrix_shape(matrix: Floats, tolerance: float = 1e-12) -> Shape:
    """How vᵀMv bends on the simplex, by the eigenvalues of M there."""
    centre = np.eye(len(matrix)) - 1.0 / len(matrix)
    bends = np.linalg.eigvalsh(centre @ matrix @ centre)
    limit = tolerance * max(1.0, float(np.abs(bends).max()))
    # One eigenvalue, 0, belongs to the direction that leaves the simplex; it changes nothing here.
    return _shape_of(bends, limit)


def _shape_of(bends: Reals, limit: float) -> Shape:
    """The shape of a function that bends by these numbers, in as many directions.

    Above zero it bends upwards, below zero downwards; up to ``limit`` it counts as straight. NaN
    may be either.
    """
    bends_upwards = not bends.max() <= limit
    bends_downwards = not bends.min() >= -limit
    if bends_upwards and bends_downwards:
        return Shape.NEITHER
    if bends_upwards:
        return Shape.CONVEX
    if bends_downwards:
        return Shape.CONCAVE
    return Shape.LINEAR


def check_shapes(objective: JointObjective) -> None:
    """Raise an error if a term does not bend as declared, which would make certificates wrong.

    Matrices are checked by their eigenvalues, terms over items at midpoints of random weights, and
    their gradients by their values.
    """
    for name in objective.shapes:
        term = objective.all_terms[name]
        if isinstance(term, InMemoryTerm):
            term = term.first_items(_CHECKED_ITEMS)
        declared = TERMS[name].shape
        if declared is Shape.NEITHER:
            continue
        if isinstance(term, Quadratic):
            measured_shape = _matrix_shape(term.matrix, _SHAPE_TOLERANCE)
        elif isinstance(term, InMemoryTerm):
            measured_shape = _midpoint_shape(term, objective.members)
        else:
            continue
        if measured_shape not in (declared, Shape.LINEAR):
            if measured_shape is Shape.NEITHER:
                measured = "neither convex nor concave"
            else:
                measured = str(measured_shape)
            raise InputError(
                f"the term {TERMS[name].name!r} is declared {declared}, but on these data it is"
                f" {measured}",
                f"correct its shape in TERMS: {Shape.NEITHER!r} if it may bend either way",
                code="wrong-declaration",
            )
        if isinstance(term, InMemoryTerm):
            shape_by_slope = _tangent_shape(term, objective.members)
            if shape_by_slope not in (declared, Shape.LINEAR):
                raise InputError(
                    f"the slope of the term {TERMS[name].name!r} is not the derivative of its"
                    " value",
                    f"correct one of the two formulas of {type(term.term).__name__}",
                    code="wrong-declaration",
                )


def _midpoint_shape(term: InMemoryTerm, members: int) -> Shape:
    """How a term bends between pairs of random weights, judged by its values at their midpoints."""
    ends = np.random.default_rng(0).dirichlet(np.full(members, 0.3), size=(2, _CHECKED_PAIRS))
    values = term.value(ends)
    bends = values.mean(axis=0) - term.value(ends.mean(axis=0))
    limit = _SHAPE_TOLERANCE * max(1.0, float(np.abs(values).max()))
    return _shape_of(bends, limit)


def _tangent_shape(term: InMemoryTerm, members: int) -> Shape:
    """How a term bends between pairs of weights that are close, judged by its tangents at both.

    Along a convex function the tangent at the start rises too little, that at the end too much.
    """
    pairs = np.random.default_rng(1).dirichlet(np.full(members, 0.3), size=(2, _CHECKED_PAIRS))
    starts = pairs[0]
    ends = 0.9 * starts + 0.1 * pairs[1]
    start_values, start_slopes = term.at(starts)
    end_values, end_slopes = term.at(ends)
    rises = end_values - start_values
    start_rises = (start_slopes * (ends - starts)).sum(axis=-1)
    end_rises = (end_slopes * (ends - starts)).sum(axis=-1)
    bends = np.concatenate([rises - start_rises, end_rises - rises])
    largest = np.abs([start_values, end_values, start_rises, end_rises]).max()
    return _shape_of(bends, _SHAPE_TOLERANCE * max(1.0, float(largest)))


# --- Newton's method on the simplex ---------------------------------------------------------------


def _descend(objective: JointObjective, start: Floats) -> Floats:
    """The weights with the smallest gap on a descent from ``start``.

    Each of Newton's steps goes to the minimum that a quadratic model of the loss has on the
    simplex, as far as the loss itself falls.
    """
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
        convex, concave = objective.curvature(v, inside)
        hessian = convex
        if concave is not None:
            # The model must be convex: what is not counts only if the sum is convex all the same.
            total = convex + concave
            if np.linalg.eigvalsh(_along_simplex(total)).min() >= 0:
                hessian = total
        # The model is ½·xᵀHx + (∇f − Hv)·x. H's first column is the linear term that
        # `_along_simplex` leaves out.
        linear = slope[inside] - hessian @ v[inside] + hessian[:, 0]
        target = minimize_on_simplex(_along_simplex(hessian), linear, support=v[inside] > 0)
        step = -v
        step[inside] += target
        change = float(slope @ step)  # of the loss, to first order
        if -change > _ROUNDING * max(1.0, abs(value)):
            is_not_convex = bool(objective.non_convex_terms)
            v, value = _line_search(objective, v, value, step, change, double=is_not_convex)
        elif gap > smallest:
            break
        else:
            # Rounding hides the decrease; the quadratic model is accurate enough to follow here.
            v, value = _moved(objective, v, 1.0, step)
    return best


def _along_simplex(hessian: Floats) -> Floats:
    """The matrix A with xᵀAx = xᵀHx − 2·h·x + H₀₀ on the simplex, where h is H's first column.

    A is positive semidefinite if H is so in the directions along the simplex. H itself may be
    indefinite, because of the diversity term, in the direction across it.
    """
    return np.asarray(hessian - hessian[:, :1] - hessian[:1, :] + hessian[0, 0])


def _line_search(
    objective: JointObjective,
    v: Floats,
    value: float,
    step: Floats,
    change: float,
    *,
    double: bool,
) -> tuple[Floats, float]:
    """The weights that a step leads to, and their loss.

    The step is halved until the loss falls enough (Armijo's rule); ``change`` is what the whole
    step would change it by if it were linear. With ``double``, a whole step is doubled while the
    loss falls further: where terms are concave, a convex model steps too short.
    """
    length = 1.0
    edge = _to_the_edge(v, step)
    while length > 1e-12:
        moved, lower = _moved(objective, v, length, step)
        if lower <= value + 1e-4 * length * change:
            break
        length /= 2
    else:  # no length was short enough
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
    """The weights ``length`` steps from v, put back on the simplex, and their loss."""
    moved = np.maximum(v + length * step, 0.0)
    moved /= moved.sum()
    return moved, objective.value(moved)


def _gap(objective: JointObjective, v: Floats) -> float:
    """∇f(v)·v − min_k ∇f(v)_k, at least 0."""
    slope = objective.slope(v)
    return max(0.0, float(slope @ v - slope.min()))


def _without_tiny_weights(objective: JointObjective, v: Floats) -> Floats:
    """The optimum v with tiny weights set to zero; v itself if that widens the gap."""
    small = v < SMALLEST_WEIGHT
    if not small.any():
        return v
    clean = np.where(small, 0.0, v)
    clean = _within_support(objective, clean / clean.sum())
    if _gap(objective, clean) <= max(TOLERANCE, _gap(objective, v)):
        return clean
    return v


def _within_support(objective: JointObjective, v: Floats) -> Floats:
    """Refine v by Newton's steps among the members that have weight.

    At the optimum their slopes are equal. A step solves for the change of weights that makes them
    so, and for the common slope; the last row of the system says that the changes sum to zero.
    """
    inside = np.flatnonzero(v > 0)
    count = len(inside)
    for _ in range(3):
        slope = objective.slope(v)[inside]
        if np.ptp(slope) < 1e-14:
            break
        system = np.ones((count + 1, count + 1))
        convex, concave = objective.curvature(v, inside)
        if concave is None:
            system[:count, :count] = convex
        else:
            system[:count, :count] = convex + concave
        system[count, count] = 0.0
        step = np.linalg.lstsq(system, np.append(-slope, 0.0), rcond=1e-12)[0][:count]
        moved = v.copy()
        moved[inside] += step
        moved /= moved.sum()
        if (moved < 0).any() or np.ptp(objective.slope(moved)[inside]) >= np.ptp(slope):
            break
        v = moved
    return v


# --- Quadratic programs on the simplex ------------------------------------------------------------


def minimize_on_simplex(hessian: Floats, linear: Floats, support: Bools | None = None) -> Floats:
    """The x [K] on the simplex that minimises ½·xᵀHx + c·x.

    ``hessian`` H [K, K] is positive semidefinite along the simplex, ``linear`` is c [K], and
    ``support`` [K] a guess of which x are above zero. An active-set method solves most problems;
    those that it cannot solve (if H is singular, for example) are left to an interior-point method.
    """
    if len(linear) == 1:
        return np.ones(1)
    # Scaled to order one, so that tolerance and starting point do not depend on units.
    scale = max(float(np.abs(hessian).max()), float(linear.max() - linear.min()), 1e-300)
    h = hessian / scale
    c = (linear - linear.min()) / scale
    if support is None:
        inside = np.ones(len(c), dtype=bool)
    else:
        inside = support.copy()
    x = _active_set(h, c, inside)
    if x is None:
        x = _interior_point(h, c)
    return np.asarray(x / x.sum())


def _active_set(h: Floats, c: Floats, inside: Bools) -> Floats | None:
    """The minimum by an active-set method; None if it does not converge.

    Each round solves the problem among the members ``inside`` [K], without the condition x ≥ 0.
    Then all members on the wrong side change it at once: those with negative x leave, those that
    would lower the loss enter. ``inside`` is overwritten.
    """
    fewest = len(c) + 1
    patience = _PATIENCE
    for _ in range(_EXCHANGES):
        places = np.flatnonzero(inside)
        count = len(places)
        if count == 0:
            return None
        # The unknowns are x and the multiplier of Σx = 1, the condition in the last row.
        system = np.ones((count + 1, count + 1))
        if count == len(c):
            system[:count, :count] = h
        else:
            system[:count, :count] = h[places[:, None], places]
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
        wrong = np.where(inside, x < 0, slope < -_QUADRATIC_TOLERANCE)
        moving = int(wrong.sum())
        if moving == 0:
            # A nearly singular system may have been solved wrongly.
            is_flat = np.abs(slope[places]).max() < 1e2 * _QUADRATIC_TOLERANCE
            if is_flat and abs(x.sum() - 1) < 1e-9:
                return x
            return None
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
    """The minimum by Mehrotra's predictor-corrector method.

    It takes about twenty steps, each of which factors one K × K matrix.
    """
    from scipy.linalg.lapack import dpotrf, dpotrs

    k = len(c)
    x = np.full(k, 1.0 / k)
    slope = h @ x + c
    level = float(slope.min()) - 1.0  # the multiplier of Σx = 1
    z = slope - level  # the multiplier of each x ≥ 0
    for _ in range(_INTERIOR_STEPS):
        # How far x, z and level are from the three conditions of an optimum.
        off_dual = h @ x + c - level - z
        off_sum = 1.0 - x.sum()
        gap = float(x @ z) / k
        if (
            gap < _QUADRATIC_TOLERANCE
            and np.abs(off_dual).max() < _QUADRATIC_TOLERANCE
            and abs(off_sum) < _QUADRATIC_TOLERANCE
        ):
            break
        system = h.copy()
        system[np.diag_indices(k)] += z / x + 1e-15
        factor, failed = dpotrf(system, lower=1)
        if failed:
            break
        ones = dpotrs(factor, np.ones(k), lower=1)[0]

        # The predictor aims at x·z = 0. How far it gets sets the target of the corrector.
        target = np.zeros(k)
        for corrected in (False, True):
            # Newton's step towards x·z = target.
            unconstrained = dpotrs(factor, -off_dual + target / x - z, lower=1)[0]
            level_step = float((off_sum - unconstrained.sum()) / ones.sum())
            x_step = unconstrained + level_step * ones
            z_step = target / x - z - z / x * x_step
            along_x = min(1.0, _to_the_edge(x, x_step))
            along_z = min(1.0, _to_the_edge(z, z_step))
            if not corrected:
                predicted_gap = (x + along_x * x_step) @ (z + along_z * z_step) / k
                target = gap * (predicted_gap / gap) ** 3 - x_step * z_step
        along = _SHORT_OF_EDGE * min(along_x, along_z)
        x = x + along * x_step
        z = z + along * z_step
        level = level + along * level_step
    return np.asarray(np.maximum(x, 0.0))


def _to_the_edge(values: Floats, step: Floats) -> float:
    """How many times the step can be taken before a value falls below zero; infinity if always."""
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
        """Of the members at these positions.

        ``at_vertices`` [k] is the value of each of them alone, where it is known.
        """
        self._data = data
        self._members = members
        self.term = term
        self._at_vertices = at_vertices
        self._evaluations: dict[bytes, Expansion] = {}

    def value(self, v: Floats) -> float:
        # The value of a single member may be known without a pass over the data.
        only_member = np.flatnonzero(v == 1.0)
        if len(only_member) and self._at_vertices is not None:
            return float(self._at_vertices[only_member[0]])
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
    member_ce = sums.select(members).member_ce(alpha)
    # The linear pool of a single member is the member itself, so its cross-entropy is known.
    if settings.pool is Pool.LINEAR:
        at_vertices = {"ce_weight": member_ce}
    else:
        at_vertices = {}
    return {
        name: StreamedTerm(data, members, term, at_vertices.get(name))
        for name, term in terms.items()
    }
