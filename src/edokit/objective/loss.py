"""The terms of the joint loss, each one class, and their weighted sum.

A `PoolTerm` holds the formulas of a smooth function of the pool of each item: value, slope and
Hessian. A `Term` is a function of the weights: `InMemoryTerm` sums a `PoolTerm` over arrays, the
exact solver's `StreamedTerm` over shards. `JointObjective` is the weighted sum of all terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from array_api_compat import device

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

# Numbers of numpy arrays in one block: so few that they stay in the cache.
_BLOCK = 2**17
_REMEMBERED = 4  # weights whose values are cached


# --- Formulas of the pool of each item ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PoolTerm:
    """A smooth function of the pool of each item, added up over items.

    ``pooled`` [..., n, c] is the weighted mean of the members' `coordinates` [K, n, c], ``targets``
    [n, c] those of the soft labels. A new term defines these and three formulas.
    """

    def coordinates(self, P: Array) -> Array:
        """[..., C] probabilities -> [..., c] what is pooled."""
        return P

    def targets(self, q: Array) -> Array:
        """[n, C] soft labels -> [n, c]."""
        return q

    def value(self, pooled: Array, targets: Array) -> Array:
        """[...] the sum over items."""
        raise NotImplementedError

    def slope(self, pooled: Array, targets: Array) -> Array:
        """[..., n, c] its gradient in what is pooled."""
        raise NotImplementedError

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        """[K, n, c] a matrix F of K rows whose product FFᵀ is the Hessian in v, at one v.

        Of a term that is not convex, the Hessian of a convex approximation; 0 · rows will do.
        """
        raise NotImplementedError

    @property
    def slack(self) -> float:
        """How far smoothed kinks can lower the mean over items; 0 for a term without kinks."""
        return 0.0

    def softened(self, smoothing: float) -> PoolTerm:
        """The term with kinks, if it has any, smoothed by this much."""
        return self


@dataclass(frozen=True, eq=False)
class CrossEntropy(PoolTerm):
    """−Σ_c α_c q_c ln(φ_c + ε) of a linear pool φ; ``alpha`` [C] are class weights, or None."""

    alpha: Array = None

    def targets(self, q: Array) -> Array:
        return q if self.alpha is None else q * self.alpha

    def value(self, pooled: Array, targets: Array) -> Array:
        return -_dot(namespace(pooled).log(pooled + EPSILON), targets)

    def slope(self, pooled: Array, targets: Array) -> Array:
        return -targets / (pooled + EPSILON)

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        return rows * (namespace(pooled).sqrt(targets) / (pooled + EPSILON))


class LogCrossEntropy(CrossEntropy):
    """Cross-entropy of a log pool: logarithms are pooled, φ is their softmax.

    The Hessian is the covariance of the members' logarithms under each φ.
    """

    def coordinates(self, P: Array) -> Array:
        return log_probabilities(P)

    def value(self, pooled: Array, targets: Array) -> Array:
        xp = namespace(pooled)
        top = without_gradient(xp.max(pooled, axis=-1, keepdims=True))
        sums = xp.sum(xp.exp(pooled - top), axis=-1, keepdims=True)
        return -_dot(pooled - top - xp.log(sums), targets)

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
SMOOTHING = 1e-4
"""δ: where cumulative shares differ by x, Wasserstein-1 counts √(x² + δ²) − δ of a step, at most δ
less than |x|."""


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
        widths = like(self.steps, pooled) + 0.0 * targets
        return _dot(self._roots(pooled - targets) - self.smoothing, widths)

    def slope(self, pooled: Array, targets: Array) -> Array:
        gaps = pooled - targets
        return gaps / self._roots(gaps) * like(self.steps, pooled)

    def hessian_factor(self, rows: Array, pooled: Array, targets: Array) -> Array:
        roots = self._roots(pooled - targets)
        widths = like(self.steps, pooled)
        return rows * (self.smoothing * namespace(rows).sqrt(widths / roots) / roots)

    def _roots(self, gaps: Array) -> Array:
        return namespace(gaps).sqrt(gaps * gaps + self.smoothing**2)

    @property
    def slack(self) -> float:
        return self.smoothing * float(sum(self.steps))

    def softened(self, smoothing: float) -> PoolTerm:
        return replace(self, smoothing=smoothing)


SMOOTH_TERMS = {"w1": Wasserstein}
"""Pool terms beside the cross-entropy, by field of `Objective`; each is constructed with the steps
of ordered classes (None for others)."""


def pool_terms(
    settings: ObjectiveSettings, alpha: Array | None = None, steps: Array | None = None
) -> dict[str, PoolTerm]:
    """The pool terms of these settings, by field of `Objective`."""
    terms: dict[str, PoolTerm] = {}
    if settings.ce is CE.MEAN:
        terms["ce_weight"] = CROSS_ENTROPY[settings.pool](alpha)
    return terms | {
        name: kind(steps) for name, kind in SMOOTH_TERMS.items() if getattr(settings, name)
    }


def _dot(values: Array, weights: Array) -> Array:
    """[..., n, c] -> [...] the sum over items and classes, weighted."""
    xp = namespace(values)
    flat = xp.reshape(values, (*values.shape[:-2], -1))
    return xp.matmul(flat, xp.reshape(weights, (-1,)))


# --- Terms as functions of the weights ------------------------------------------------------------


class Term:
    """A term of the joint loss as a function of weights v on the simplex, a mean over items."""

    def at(self, v: Array) -> tuple[Array, Array]:
        """Values [...] at v [..., K], and gradients [..., K]."""
        raise NotImplementedError

    def value(self, v: Array) -> Array:
        """The values alone."""
        return self.at(v)[0]

    def hessian(self, v: Array, inside: Ints) -> Array:
        """[k, k] at one v [K], among the members ``inside`` [k], which hold all weight."""
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
    """vᵀMv of a symmetric matrix."""

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
    """A pool term summed over items."""

    term: PoolTerm


class InMemoryTerm(ItemTerm):
    """A pool term on items in memory: ``rows`` [K, n·c] are pooled, ``targets`` [n, c]."""

    def __init__(self, term: PoolTerm, rows: Array, targets: Array) -> None:
        self.term = term
        self.items = (rows, targets)
        self._count = max(1, targets.shape[0])
        # A plain dict: a cached method would refer to the term, and so keep the items of every
        # shard in memory until the garbage collector looks for cycles.
        self._evaluations: dict[bytes, tuple[Array, Array]] = {}

    @classmethod
    def from_problem(cls, term: PoolTerm, problem: Problem) -> InMemoryTerm:
        """The term on the items of a problem, which holds rows and targets of cross-entropies."""
        if isinstance(term, CrossEntropy):
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
        self._evaluations[key] = evaluation  # the latest is the last
        if len(self._evaluations) > _REMEMBERED:
            del self._evaluations[next(iter(self._evaluations))]
        return evaluation

    def hessian(self, v: Array, inside: Ints) -> Array:
        total: Array = 0.0
        everyone = len(inside) == v.shape[0]
        for rows, targets in self._blocks():
            pooled = _pooled(v, rows, targets)
            part = rows if everyone else rows[inside]
            by_item = namespace(part).reshape(part, (part.shape[0], *targets.shape))
            factor = self.term.hessian_factor(by_item, pooled, targets)
            factor = namespace(factor).reshape(factor, part.shape)
            total = total + factor @ factor.T
        return total / self._count

    def first_items(self, count: int) -> InMemoryTerm:
        """The term on the first items alone."""
        rows, targets = self.items
        return InMemoryTerm(self.term, rows[:, : count * targets.shape[1]], targets[:count])

    def softened(self, smoothing: float) -> InMemoryTerm:
        """The term with kinks smoothed by this much."""
        return InMemoryTerm(self.term.softened(smoothing), *self.items)

    def _evaluate(self, v: Array) -> tuple[Array, Array]:
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
        rows, targets = self.items
        count, width = targets.shape
        step = max(1, _BLOCK // (rows.shape[0] * width))
        for s in slices(count, step if isinstance(rows, np.ndarray) else max(1, count)):
            yield rows[:, s.start * width : s.stop * width], targets[s, ...]


class DrawnMember(Term):
    """Cross-entropy of one member per item, drawn with probabilities v.

    The draw is argmax_k ln(v_k + ε) + noise_ik, with ``noise`` [..., N, K] from the Gumbel
    distribution. The gradient is the straight-through one: that of the softmax at ``temperature``
    (one, or [..., 1, 1]) in place of the argmax.
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
    """[..., n, c] of weights v [..., K]."""
    return namespace(v, rows).reshape(v @ rows, (*v.shape[:-1], *targets.shape))


@dataclass(frozen=True, eq=False)
class Expansion(Additive):
    """Value, gradient and Hessian of a term at one v: sums over items. ``a + b`` joins shards."""

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
    """The joint loss of a problem; ``terms`` override its terms of the same names."""

    def __init__(
        self, problem: Problem, settings: ObjectiveSettings, terms: Mapping[str, Term] | None = None
    ) -> None:
        problem.check_scale(settings)
        self.problem = problem
        self.settings = settings
        self.members = problem.members
        replacements = dict(terms or {})
        if settings.ce is CE.MEAN:
            ce = {}
        else:
            ce = {"ce_weight": Linear(problem.member_ce)}
        over_items = {
            name: InMemoryTerm.from_problem(term, problem)
            for name, term in pool_terms(settings, steps=problem.steps).items()
            if name not in replacements
        }
        self.all_terms: dict[str, Term] = {
            "f1": Linear(-problem.summaries.hit_rates, 1.0),
            **ce,
            **over_items,
            **{name: Quadratic(matrix) for name, matrix in problem.summaries.matrices.items()},
            "reg": SquaredNorm(),
            **replacements,
        }
        weights = {name: settings.signed_weight(name) for name in self.all_terms}
        self._weights = {name: weight for name, weight in weights.items() if weight}

    @property
    def ce(self) -> Term:
        """The cross-entropy."""
        return self.all_terms["ce_weight"]

    @property
    def item_terms(self) -> dict[str, ItemTerm]:
        """The terms over items that have a weight."""
        terms = ((name, self.all_terms[name]) for name in self._weights)
        return {name: term for name, term in terms if isinstance(term, ItemTerm)}

    @property
    def quadratic_terms(self) -> dict[str, Array]:
        """The matrices M [K, K] of the terms vᵀMv that have a weight."""
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
        """How each term that has a weight bends, by its declaration and with its sign."""
        shapes: dict[str, Shape] = {}
        for name, weight in self._weights.items():
            if isinstance(self.all_terms[name], Linear):
                shapes[name] = Shape.LINEAR
            else:
                shapes[name] = TERMS[name].shape.times(weight)
        return shapes

    @cached_property
    def bent_terms(self) -> list[str]:
        """The terms that are not convex."""
        return [name for name, shape in self.shapes.items() if not shape.is_convex]

    def value(self, v: Array) -> Array:
        """The joint loss at v [..., K]."""
        return sum(weight * self.all_terms[n].value(v) for n, weight in self._weights.items())

    def slope(self, v: Array) -> Array:
        """Its gradient [..., K]."""
        return sum(self.slopes(v).values(), namespace(v).zeros_like(v))

    def slopes(self, v: Array) -> dict[str, Array]:
        """The gradient [..., K] of each term that has a weight, times that weight."""
        return {
            name: weight * self.all_terms[name].at(v)[1] for name, weight in self._weights.items()
        }

    def curvature(self, v: Array, inside: Ints) -> tuple[Array, Array | None]:
        """Its Hessian [k, k] among the members ``inside`` [k], which hold all weight.

        In two parts: the convex one, and that of matrix terms that are not convex, None without
        them.
        """
        hessians = {
            name: weight * self.all_terms[name].hessian(v, inside)
            for name, weight in self._weights.items()
        }
        convex = np.zeros((len(inside), len(inside)))
        bent = None
        for name, hessian in hessians.items():
            if name in self.bent_terms and isinstance(self.all_terms[name], Quadratic):
                bent = hessian if bent is None else bent + hessian
            else:
                convex = convex + hessian
        return convex, bent

    def terms(self, v: Array) -> dict[str, Array]:
        """The terms at v [..., K] before weighting, and the total; no ``div`` without distances."""
        terms = {name: term.value(v) for name, term in self.all_terms.items()}
        values = {"f1": terms.pop("f1"), "ce": terms.pop("ce_weight"), **terms}
        return {**values, "total": self.value(v)}


@dataclass(frozen=True, eq=False)
class Loss:
    """The joint loss at weights v [..., K]."""

    objective: JointObjective
    v: Array

    @cached_property
    def terms(self) -> dict[str, Array]:
        """[...] before weighting: ``f1`` (1 − soft micro-F1), ``ce`` (in the chosen variant),
        ``reg`` (squared norm of the weights), those of `Summaries.matrices` (``div``, without sign;
        ``rps``), those of `SMOOTH_TERMS` that are weighed, and the weighted sum, ``total``."""
        return self.objective.terms(self.v)

    @property
    def total(self) -> Array:
        """The joint loss [...]."""
        return self.terms["total"]

    @property
    def gradient(self) -> Array:
        """[..., K] of the total in v."""
        return self.objective.slope(self.v)


def joint_loss(
    v: Array,
    problem: Problem,
    settings: ObjectiveSettings,
    *,
    noise: Array | None = None,
    temperature: Array | float = 1.0,
) -> Loss:
    """The joint loss at effective weights v [K], or at T of them [T, K].

    ``noise`` and ``temperature``: see `DrawnMember`, needed by ``ce="random"``. On torch tensors
    autograd flows into v and the predictions.
    """
    terms: dict[str, Term] = {}
    if settings.ce is CE.RANDOM:
        terms["ce_weight"] = DrawnMember(problem, noise, temperature)
    return Loss(JointObjective(problem, settings, terms), v)
