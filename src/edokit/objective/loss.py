"""The terms of the joint loss, one class each, and their weighted sum.

A `PoolTerm` has the formulas of a smooth function of the pool of each item: value, slope and
Hessian. A `Term` is a function of the weights: `InMemoryTerm` sums a `PoolTerm` over arrays, and
the exact solver's `StreamedTerm` over shards. `JointObjective` is the weighted sum of all terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from array_api_compat import device

from edokit._errors import InputError, option
from edokit._types import Ints
from edokit.objective.pools import (
    EPSILON,
    Additive,
    Array,
    cumulative,
    double,
    like,
    log_probabilities,
    member_rows,
    namespace,
    slices,
    softmax,
    without_gradient,
)
from edokit.objective.settings import CE, TERMS, ObjectiveSettings, Pool, Shape
from edokit.objective.summaries import Problem

_BLOCK = 2**17
"""Most numbers of numpy arrays in one block, so that it stays in the processor's cache."""
_CACHED_EVALUATIONS = 4
"""Number of weight vectors whose value and gradient a term keeps."""


# --- Formulas of the pool of each item ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PoolTerm:
    """A smooth function of the pool of each item, summed over items.

    Each term says by `coordinates` what a pool averages: the probabilities themselves or, for
    example, their logarithms. ``pooled`` [..., n, c] is the weighted mean of the members'
    coordinates [K, n, c], and ``targets`` [n, c] is what the soft labels become. A new term defines
    these and the three formulas.
    """

    def coordinates(self, P: Array) -> Array:
        """[..., c] the numbers that are averaged, from probabilities [..., C]."""
        return P

    def targets(self, q: Array) -> Array:
        """[n, c] what ``pooled`` is compared with, from soft labels [n, C]."""
        return q

    def value(self, pooled: Array, targets: Array) -> Array:
        """[...] the sum over items."""
        raise NotImplementedError

    def slope(self, pooled: Array, targets: Array) -> Array:
        """[..., n, c] the gradient of the value with respect to ``pooled``."""
        raise NotImplementedError

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        """[K, n, c] a matrix F of K rows, so that FFᵀ is the Hessian with respect to one v.

        ``rows`` [K, n, c] are the members' coordinates. A term that is not convex returns the
        factor of a convex approximation, if only zeros.
        """
        raise NotImplementedError

    @property
    def slack(self) -> float:
        """Most by which smoothing lowers the mean over items; 0 if nothing is smoothed."""
        return 0.0

    def softened(self, smoothing: float) -> PoolTerm:
        """The term with this smoothing; a term that is smooth by itself is returned unchanged."""
        return self


@dataclass(frozen=True, eq=False)
class CrossEntropy(PoolTerm):
    """−Σ_c α_c q_c ln(φ_c + ε) of a linear pool φ; ``alpha`` [C] are class weights, or None."""

    alpha: Array = None

    def targets(self, q: Array) -> Array:
        if self.alpha is None:
            return q
        return q * self.alpha

    def value(self, pooled: Array, targets: Array) -> Array:
        return -_dot(namespace(pooled).log(pooled + EPSILON), targets)

    def slope(self, pooled: Array, targets: Array) -> Array:
        return -targets / (pooled + EPSILON)

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        return rows * (namespace(pooled).sqrt(targets) / (pooled + EPSILON))


class LogCrossEntropy(CrossEntropy):
    """Cross-entropy of a log pool φ, the softmax of the averaged logarithms.

    The Hessian is the covariance of the members' logarithms under each φ.
    """

    def coordinates(self, P: Array) -> Array:
        return log_probabilities(P)

    def value(self, pooled: Array, targets: Array) -> Array:
        xp = namespace(pooled)
        highest = without_gradient(xp.max(pooled, axis=-1, keepdims=True))
        sums = xp.sum(xp.exp(pooled - highest), axis=-1, keepdims=True)
        return -_dot(pooled - highest - xp.log(sums), targets)

    def slope(self, pooled: Array, targets: Array) -> Array:
        return softmax(pooled) * namespace(pooled).sum(targets, axis=-1, keepdims=True) - targets

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        xp = namespace(pooled)
        phi = softmax(pooled)
        centred = rows - xp.sum(rows * phi, axis=-1, keepdims=True)
        return centred * xp.sqrt(xp.sum(targets, axis=-1, keepdims=True) * phi)


CROSS_ENTROPY: dict[Pool, type[CrossEntropy]] = {
    Pool.LINEAR: CrossEntropy,
    Pool.LOG: LogCrossEntropy,
}
"""The cross-entropy of each kind of pool."""
SMOOTHING = 1e-4
"""δ: Wasserstein-1 replaces |x|, the difference of two cumulative shares, by √(x² + δ²) − δ.

This is smooth, and smaller than |x| by at most δ."""


@dataclass(frozen=True, eq=False)
class Wasserstein(PoolTerm):
    """Wasserstein-1 distance of ordered classes with these ``steps`` [C − 1] between them."""

    steps: Array
    smoothing: float = SMOOTHING

    def coordinates(self, P: Array) -> Array:
        return cumulative(P)

    def targets(self, q: Array) -> Array:
        return cumulative(q)

    def value(self, pooled: Array, targets: Array) -> Array:
        xp = namespace(pooled)
        distances = self._smoothed(pooled - targets) - self.smoothing
        return _dot(distances, xp.broadcast_to(like(self.steps, pooled), targets.shape))

    def slope(self, pooled: Array, targets: Array) -> Array:
        gaps = pooled - targets
        return gaps / self._smoothed(gaps) * like(self.steps, pooled)

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        roots = self._smoothed(pooled - targets)
        widths = like(self.steps, pooled)
        return rows * (self.smoothing * namespace(rows).sqrt(widths / roots) / roots)

    def _smoothed(self, gaps: Array) -> Array:
        """√(x² + δ²) of each gap x."""
        return namespace(gaps).sqrt(gaps * gaps + self.smoothing**2)

    @property
    def slack(self) -> float:
        return self.smoothing * float(sum(self.steps))

    def softened(self, smoothing: float) -> PoolTerm:
        return replace(self, smoothing=smoothing)


SMOOTH_TERMS = {"w1": Wasserstein}
"""Pool terms other than the cross-entropy, by field of `Objective`.

Each is constructed with the steps between ordered classes, or None without an order."""


def pool_terms(
    settings: ObjectiveSettings, alpha: Array | None = None, steps: Array | None = None
) -> dict[str, PoolTerm]:
    """The pool terms of these settings, by field of `Objective`."""
    terms: dict[str, PoolTerm] = {}
    if settings.ce is CE.MEAN:
        terms["ce_weight"] = CROSS_ENTROPY[settings.pool](alpha)
    for name, term_class in SMOOTH_TERMS.items():
        if not getattr(settings, name):
            continue
        if settings.pool is Pool.LOG:  # its items are logarithms of probabilities
            raise InputError(
                f"{option(TERMS[name].flat_name)} weighs a term of linear pools",
                f"choose {option('pool', 'linear')}, or leave the term out",
                code="conflicting-options",
            )
        terms[name] = term_class(steps)
    return terms


def _dot(values: Array, weights: Array) -> Array:
    """[...] the sum of values [..., n, c] over items and classes, weighted by [n, c]."""
    xp = namespace(values)
    flat = xp.reshape(values, (*values.shape[:-2], -1))
    return xp.matmul(flat, xp.reshape(weights, (-1,)))


# --- Terms as functions of the weights ------------------------------------------------------------


class Term:
    """A term of the joint loss as a function of weights v on the simplex, a mean over items."""

    def at(self, v: Array) -> tuple[Array, Array]:
        """The values [...] at v [..., K], and the gradients [..., K]."""
        raise NotImplementedError

    def value(self, v: Array) -> Array:
        """The values [...] at v [..., K]."""
        return self.at(v)[0]

    def hessian(self, v: Array, inside: Ints) -> Array:
        """[k, k] the Hessian at one v [K] for the members ``inside`` [k], which have all weight."""
        raise NotImplementedError


class Linear(Term):
    """A term that is linear in v, such as the weighted mean of the members' cross-entropies."""

    def __init__(self, slope: Array, offset: Array | float = 0.0) -> None:
        self._slope = slope
        self._offset = offset

    def at(self, v: Array) -> tuple[Array, Array]:
        xp = namespace(v, self._slope)
        return self._offset + xp.matmul(v, self._slope), xp.broadcast_to(self._slope, v.shape)

    def hessian(self, v: Array, inside: Ints) -> Array:
        return np.zeros((len(inside), len(inside)))


class Quadratic(Term):
    """The quadratic form vᵀMv of a symmetric matrix."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def at(self, v: Array) -> tuple[Array, Array]:
        xp = namespace(v, self.matrix)
        products = xp.matmul(v, self.matrix)
        return xp.sum(v * products, axis=-1), 2.0 * products

    def hessian(self, v: Array, inside: Ints) -> Array:
        return 2.0 * self.matrix[np.ix_(inside, inside)]


class SquaredNorm(Term):
    """‖v‖₂²."""

    def at(self, v: Array) -> tuple[Array, Array]:
        return namespace(v).sum(v * v, axis=-1), 2.0 * v

    def hessian(self, v: Array, inside: Ints) -> Array:
        return 2.0 * np.eye(len(inside))


class ItemTerm(Term):
    """A term that is the mean of a pool term over items."""

    term: PoolTerm


class InMemoryTerm(ItemTerm):
    """A pool term on items in memory, from the members' coordinates ``rows`` [K, n·c].

    ``targets`` [n, c] are those that the pool term makes of the soft labels.
    """

    def __init__(self, term: PoolTerm, rows: Array, targets: Array) -> None:
        self.term = term
        self.items = (rows, targets)
        self._count = max(1, targets.shape[0])
        # A plain dict: a cached method would refer to this object, and so keep the items of every
        # shard in memory until the garbage collector finds the cycle.
        self._evaluations: dict[bytes, tuple[Array, Array]] = {}

    @classmethod
    def from_problem(cls, term: PoolTerm, problem: Problem) -> InMemoryTerm:
        """The term on the items of a problem."""
        if isinstance(term, CrossEntropy):  # its rows and targets are those of the problem
            return cls(term, problem.rows, problem.targets)
        if type(term) not in problem.coordinates:
            xp = namespace(problem.rows)
            rows = xp.reshape(problem.rows, (problem.members, *problem.targets.shape))
            rows = xp.reshape(term.coordinates(rows), (problem.members, -1))
            problem.coordinates[type(term)] = rows, term.targets(problem.soft_labels)
        return cls(term, *problem.coordinates[type(term)])

    def at(self, v: Array) -> tuple[Array, Array]:
        # The exact solver evaluates the same v several times.
        is_single = v.ndim == 1 and isinstance(v, np.ndarray)
        if not is_single:
            return self._evaluate(v)
        key = v.tobytes()
        evaluation = self._evaluations.pop(key, None)
        if evaluation is None:
            evaluation = self._evaluate(v)
        self._evaluations[key] = evaluation  # the most recent is the last
        if len(self._evaluations) > _CACHED_EVALUATIONS:
            oldest = next(iter(self._evaluations))
            del self._evaluations[oldest]
        return evaluation

    def hessian(self, v: Array, inside: Ints) -> Array:
        total: Array = 0.0
        are_all_inside = len(inside) == v.shape[0]
        for rows, targets in self._blocks():
            pooled = _pooled(v, rows, targets)
            if not are_all_inside:  # selecting copies the rows
                rows = rows[inside]
            by_item = namespace(rows).reshape(rows, (rows.shape[0], *targets.shape))
            factor = self.term.hessian_factor(by_item, pooled, targets)
            factor = namespace(factor).reshape(factor, rows.shape)
            total = total + factor @ factor.T
        return total / self._count

    def first_items(self, count: int) -> InMemoryTerm:
        """The term on this many items, the first ones."""
        rows, targets = self.items
        return InMemoryTerm(self.term, rows[:, : count * targets.shape[1]], targets[:count])

    def softened(self, smoothing: float) -> InMemoryTerm:
        """The term with this smoothing."""
        return InMemoryTerm(self.term.softened(smoothing), *self.items)

    def _evaluate(self, v: Array) -> tuple[Array, Array]:
        """The values and gradients at v, computed block by block."""
        xp = namespace(v, self.items[0])
        value = xp.zeros_like(v[..., 0])
        gradient = xp.zeros_like(v)
        for rows, targets in self._blocks():
            pooled = _pooled(v, rows, targets)
            slope = xp.reshape(self.term.slope(pooled, targets), (*v.shape[:-1], -1))
            value = value + self.term.value(pooled, targets)
            gradient = gradient + slope @ rows.T
        return value / self._count, gradient / self._count

    def _blocks(self) -> Iterator[tuple[Array, Array]]:
        """Rows and targets of a few items at a time; of tensors, those of all items at once."""
        rows, targets = self.items
        count, width = targets.shape
        block_length = max(1, count)
        if isinstance(rows, np.ndarray):
            block_length = max(1, _BLOCK // (rows.shape[0] * width))
        for s in slices(count, block_length):
            yield rows[:, s.start * width : s.stop * width], targets[s, ...]


class DrawnMember(Term):
    """Cross-entropy of one member per item, drawn with probabilities v.

    The draw is argmax_k ln(v_k + ε) + noise_ik, with ``noise`` [..., N, K] from the Gumbel
    distribution. The gradient is the straight-through gradient: that of the softmax at
    ``temperature`` (a number, or [..., 1, 1]) instead of the argmax.
    """

    def __init__(self, problem: Problem, noise: Array, temperature: Array | float = 1.0) -> None:
        self._problem = problem
        self._noise = noise
        self._temperature = temperature

    def at(self, v: Array) -> tuple[Array, Array]:
        problem = self._problem
        temperature = self._temperature
        xp = namespace(v, problem.rows)
        logits = xp.log(v + EPSILON)[..., None, :] + self._noise
        soft = softmax(logits / temperature)
        best = xp.argmax(logits, axis=-1)
        positions = xp.arange(problem.members, dtype=best.dtype, device=device(best))
        hard = xp.astype(best[..., None] == positions, v.dtype)
        losses = problem.item_losses
        draws = hard + (soft - without_gradient(soft))
        value = xp.sum(draws * losses, axis=(-2, -1)) / problem.items
        mean_loss = xp.sum(soft * losses, axis=-1, keepdims=True)
        slope = xp.sum(soft * (losses - mean_loss) / temperature, axis=-2)
        return value, slope / ((v + EPSILON) * problem.items)


def _pooled(v: Array, rows: Array, targets: Array) -> Array:
    """[..., n, c] the rows [K, n·c], averaged with weights v [..., K]."""
    return namespace(v, rows).reshape(v @ rows, (*v.shape[:-1], *targets.shape))


@dataclass(frozen=True, eq=False)
class Expansion(Additive):
    """Value, gradient and Hessian of a term at one v, as sums over items."""

    items: int  # n, the number of items
    value: Array  # []
    gradient: Array  # [K]
    hessian: Array  # [K, K]

    @classmethod
    def from_term(cls, term: PoolTerm, P: Array, q: Array, v: Array) -> Expansion:
        """Expand the term at v [K], for P [N, K, C] and soft labels q [N, C]."""
        items, members, classes = P.shape
        xp = namespace(P)
        rows = xp.reshape(member_rows(P), (members, items, classes))
        rows = xp.reshape(term.coordinates(rows), (members, -1))
        in_memory = InMemoryTerm(term, rows, term.targets(double(q)))
        v = double(v)
        value, gradient = in_memory.at(v)
        hessian = in_memory.hessian(v, np.arange(members)) + like(np.zeros((members, members)), P)
        return cls(items, items * value, items * gradient, items * hessian)


# --- Their sum ------------------------------------------------------------------------------------


class JointObjective:
    """The joint loss of a problem.

    ``terms`` replace the terms of the same names (fields of `Objective`).
    """

    def __init__(
        self, problem: Problem, settings: ObjectiveSettings, terms: Mapping[str, Term] | None = None
    ) -> None:
        problem.check_scale(settings)
        self.problem = problem
        self.settings = settings
        self.members = problem.members
        replacements = dict(terms or {})
        self.all_terms: dict[str, Term] = {"f1": Linear(-problem.summaries.hit_rates, 1.0)}
        if settings.ce is not CE.MEAN:
            self.all_terms["ce_weight"] = Linear(problem.member_ce)
        for name, pool_term in pool_terms(settings, steps=problem.steps).items():
            if name not in replacements:
                self.all_terms[name] = InMemoryTerm.from_problem(pool_term, problem)
        for name, matrix in problem.summaries.matrices.items():
            self.all_terms[name] = Quadratic(matrix)
        self.all_terms["reg"] = SquaredNorm()
        self.all_terms |= replacements
        self._weights: dict[str, float] = {}
        for name in self.all_terms:
            weight = settings.signed_weight(name)
            if weight:
                self._weights[name] = weight

    @property
    def ce(self) -> Term:
        """The cross-entropy."""
        return self.all_terms["ce_weight"]

    @property
    def item_terms(self) -> dict[str, ItemTerm]:
        """The terms with a weight that are means of a pool term over items."""
        terms: dict[str, ItemTerm] = {}
        for name in self._weights:
            term = self.all_terms[name]
            if isinstance(term, ItemTerm):
                terms[name] = term
        return terms

    @property
    def quadratic_terms(self) -> dict[str, Array]:
        """The matrices M [K, K] of the terms with a weight that are quadratic forms vᵀMv."""
        matrices: dict[str, Array] = {}
        for name in self._weights:
            term = self.all_terms[name]
            if isinstance(term, Quadratic):
                matrices[name] = term.matrix
            elif isinstance(term, SquaredNorm):
                matrices[name] = np.eye(self.members)
        return matrices

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each term with a weight, after multiplication with the weight."""
        shapes: dict[str, Shape] = {}
        for name, weight in self._weights.items():
            if isinstance(self.all_terms[name], Linear):
                shapes[name] = Shape.LINEAR
            else:
                shapes[name] = TERMS[name].shape.times(weight)
        return shapes

    @cached_property
    def non_convex_terms(self) -> list[str]:
        """Names of the terms with a weight that are not convex."""
        return [name for name, shape in self.shapes.items() if not shape.is_convex]

    def value(self, v: Array) -> Array:
        """The joint loss at v [..., K]."""
        return sum(weight * self.all_terms[name].value(v) for name, weight in self._weights.items())

    def slope(self, v: Array) -> Array:
        """The gradient [..., K] of the joint loss."""
        return sum(self.slopes(v).values(), namespace(v).zeros_like(v))

    def slopes(self, v: Array) -> dict[str, Array]:
        """The gradient [..., K] of each term that has a weight, times that weight."""
        return {
            name: weight * self.all_terms[name].at(v)[1] for name, weight in self._weights.items()
        }

    def curvature(self, v: Array, inside: Ints) -> tuple[Array, Array | None]:
        """The Hessian [k, k] for the members ``inside`` [k], which have all weight, in two parts.

        The second part is that of quadratic terms that are not convex, None if there are none; the
        first part is that of all other terms.
        """
        convex_part = np.zeros((len(inside), len(inside)))
        concave_part = None
        for name, weight in self._weights.items():
            term = self.all_terms[name]
            hessian = weight * term.hessian(v, inside)
            if name not in self.non_convex_terms or not isinstance(term, Quadratic):
                convex_part = convex_part + hessian
            elif concave_part is None:
                concave_part = hessian
            else:
                concave_part = concave_part + hessian
        return convex_part, concave_part

    def terms(self, v: Array) -> dict[str, Array]:
        """The terms at v [..., K] before weighting, and the total; no ``div`` without distances.

        Files list the terms in this order: F1, the cross-entropy, then the others.
        """
        values = {
            "f1": self.all_terms["f1"].value(v),
            "ce": self.all_terms["ce_weight"].value(v),
        }
        for name, term in self.all_terms.items():
            if name not in ("f1", "ce_weight"):
                values[name] = term.value(v)
        values["total"] = self.value(v)
        return values


@dataclass(frozen=True, eq=False)
class Loss:
    """The joint loss at weights v [..., K]."""

    objective: JointObjective
    v: Array

    @cached_property
    def terms(self) -> dict[str, Array]:
        """The terms [...] before weighting, and ``total``, their weighted sum.

        ``f1`` is 1 − soft micro-F1, ``ce`` the chosen kind of cross-entropy, ``reg`` the squared
        norm of the weights. ``div`` (without its sign) and ``rps`` are there if `Summaries` has
        their matrices, the `SMOOTH_TERMS` if they have a weight.
        """
        return self.objective.terms(self.v)

    @property
    def total(self) -> Array:
        """The joint loss [...]."""
        return self.terms["total"]

    @property
    def gradient(self) -> Array:
        """The gradient [..., K] of the total with respect to v."""
        return self.objective.slope(self.v)


def joint_loss(
    v: Array,
    problem: Problem,
    settings: ObjectiveSettings,
    *,
    noise: Array | None = None,
    temperature: Array | float = 1.0,
) -> Loss:
    """The joint loss at effective weights v [K], or at T weight vectors [T, K].

    ``ce="random"`` needs ``noise`` and uses ``temperature``; see `DrawnMember`. For torch tensors,
    gradients flow into v and the predictions.
    """
    terms: dict[str, Term] = {}
    if settings.ce is CE.RANDOM:
        terms["ce_weight"] = DrawnMember(problem, noise, temperature)
    return Loss(JointObjective(problem, settings, terms), v)
