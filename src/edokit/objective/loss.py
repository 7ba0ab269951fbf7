"""The terms of the joint loss, each one class, and their weighted sum.

A `PoolTerm` is a smooth function of the pool of each item. It says what is pooled and how the
function, its slope and its curvature follow; `OverItems`, the passes over shards, the mini-batches
of gumbel and torch's autograd all take it from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from array_api_compat import device

from edokit._errors import InputError
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
from edokit.objective.settings import CE, TERMS, Pool, Regularize, Settings
from edokit.objective.summaries import Problem

# Numbers of numpy arrays in one block: so few that they stay in the cache.
_BLOCK = 2**17
_REMEMBERED = 4  # weights whose values are known without another look at the items


# --- What looks at the items ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PoolTerm:
    """A smooth function of the pool of each item, added up over items.

    ``pooled`` [..., n, c] is the weighted mean of the members' `coordinates` [K, n, c], ``targets``
    [n, c] the same of the soft labels. A new term says what these are and has three formulas.
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

    def bent(self, rows: Array, pooled: Array, targets: Array) -> Array:
        """[K, n, c] rows whose products with one another are its Hessian in v, at one v."""
        raise NotImplementedError

    @property
    def slack(self) -> float:
        """By how much a mean over items can be below the true one; above 0 where kinks are
        smoothed."""
        return 0.0

    def softened(self, smoothing: float) -> PoolTerm:
        """The same, with kinks smoothed by this much, if it has any."""
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

    def bent(self, rows: Array, pooled: Array, targets: Array) -> Array:
        return rows * (namespace(pooled).sqrt(targets) / (pooled + EPSILON))


class LogCrossEntropy(CrossEntropy):
    """The same of a log pool: logarithms are pooled, φ is their softmax.

    The Hessian is that of the members' logarithms' covariances under each φ.
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

    def bent(self, rows: Array, pooled: Array, targets: Array) -> Array:
        xp, phi = namespace(pooled), softmax(pooled)
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

    def bent(self, rows: Array, pooled: Array, targets: Array) -> Array:
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
"""Terms beside the cross-entropy that look at the items, by field of `Objective`; each is made
with the steps of ordered classes (None for others)."""


def pool_terms(
    settings: Settings, alpha: Array | None = None, steps: Array | None = None
) -> dict[str, PoolTerm]:
    """The terms of these settings that look at the items, by field of `Objective`."""
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

    def hessian(self, v: Array, inside: Any) -> Array:
        """[k, k] at one v [K], among the members ``inside`` [k], which hold all weight."""
        raise NotImplementedError


class Linear(Term):
    """A term that is linear in v, such as the weighted mean of the members' own cross-entropies."""

    def __init__(self, slope: Array, offset: float = 0.0) -> None:
        self._slope, self._offset = slope, offset

    def at(self, v: Array) -> tuple[Array, Array]:
        xp = namespace(v, self._slope)
        return self._offset + xp.matmul(v, self._slope), xp.broadcast_to(self._slope, v.shape)

    def hessian(self, v: Array, inside: Any) -> Array:
        return np.zeros((len(inside), len(inside)))


class Quadratic(Term):
    """vᵀMv of a symmetric matrix."""

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix

    def at(self, v: Array) -> tuple[Array, Array]:
        xp = namespace(v, self._matrix)
        products = xp.matmul(v, self._matrix)
        return xp.sum(v * products, axis=-1), 2.0 * products

    def hessian(self, v: Array, inside: Any) -> Array:
        return 2.0 * self._matrix[np.ix_(inside, inside)]


class OverItems(Term):
    """A pool term on items in memory: ``rows`` [K, n·c] are pooled, ``targets`` [n, c]."""

    def __init__(self, term: PoolTerm, rows: Array, targets: Array) -> None:
        self.term, self.items = term, (rows, targets)
        self._count = max(1, targets.shape[0])
        self._known = lru_cache(_REMEMBERED)(lambda key: self._evaluate(np.frombuffer(key)))

    @classmethod
    def of(cls, term: PoolTerm, problem: Problem) -> OverItems:
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
        # The exact solver asks for one v more than once.
        is_single = v.ndim == 1 and isinstance(v, np.ndarray)
        return self._known(v.tobytes()) if is_single else self._evaluate(v)

    def hessian(self, v: Array, inside: Any) -> Array:
        total: Array = 0.0
        everyone = len(inside) == v.shape[0]
        for rows, targets in self._blocks():
            pooled = _pooled(v, rows, targets)
            part = rows if everyone else rows[inside]
            by_item = namespace(part).reshape(part, (part.shape[0], *targets.shape))
            bent = self.term.bent(by_item, pooled, targets)
            bent = namespace(bent).reshape(bent, part.shape)
            total = total + bent @ bent.T
        return total / self._count

    def softened(self, smoothing: float) -> OverItems:
        """The same with kinks smoothed by this much."""
        return OverItems(self.term.softened(smoothing), *self.items)

    def _evaluate(self, v: Array) -> tuple[Array, Array]:
        xp = namespace(v, self.items[0])
        value, gradient = xp.zeros_like(v[..., 0]), xp.zeros_like(v)
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


def _pooled(v: Array, rows: Array, targets: Array) -> Array:
    """[..., n, c] of weights v [..., K]."""
    return namespace(v, rows).reshape(v @ rows, (*v.shape[:-1], *targets.shape))


@dataclass(frozen=True, eq=False)
class Curvature(Additive):
    """A term at one v, summed over items in float64. ``a + b`` joins two shards."""

    items: int  # n, the number of items
    value: Array  # []
    gradient: Array  # [K]
    hessian: Array  # [K, K]

    @classmethod
    def of(cls, term: PoolTerm, P: Array, q: Array, v: Array) -> Curvature:
        """Of the pool of P [N, K, C] under v [K], with soft labels q [N, C]."""
        (items, members, classes), xp = P.shape, namespace(P)
        rows = xp.reshape(member_rows(P), (members, items, classes))
        rows = xp.reshape(term.coordinates(rows), (members, -1))
        over, v = OverItems(term, rows, term.targets(double(q))), double(v)
        value, gradient = over.at(v)
        hessian = over.hessian(v, range(members)) + like(np.zeros((members, members)), P)
        return cls(items, items * value, items * gradient, items * hessian)


# --- Their sum ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Loss:
    """The joint loss and its terms before weighting; each [] for one v, [T] for a batch."""

    terms: dict[str, Array]
    """``f1`` (1 − soft micro-F1), ``ce`` (in the chosen variant), ``reg`` (squared norm of the
    weights), those of `Problem.matrices` (``div``, without sign; ``rps``), those of `SMOOTH_TERMS`
    that are weighed, and the weighted sum, ``total``."""
    gradient: Array
    """[..., K] of the total in v."""
    ce_gradient: Array
    """[..., K] of the cross-entropy alone, before weighting."""
    gradient_w: Array
    """[..., K] of the total in the raw weights w; zero unless the norm is taken of them."""

    @property
    def total(self) -> Array:
        """The joint loss."""
        return self.terms["total"]


def joint_loss(
    v: Array,
    problem: Problem,
    settings: Settings | Sequence[Settings],
    *,
    w: Array | None = None,
    noise: Array | None = None,
    temperature: Array | float = 1.0,
) -> Loss:
    """The joint loss at effective weights v [K], or [T, K] for T configurations at once.

    ``settings``: one for all rows of v, or one per row. ``w``: raw weights in the shape of v,
    needed by ``regularize="w"``. ``noise`` and ``temperature``: see ``ce_random``. On torch
    tensors autograd flows into v, w and the predictions; the gradients returned are the same.
    """
    is_batch = v.ndim == 2
    xp = namespace(v, problem.rows)
    v = v if is_batch else v[None, :]
    w = w if is_batch or w is None else w[None, :]
    configurations = [settings] if isinstance(settings, Settings) else list(settings)
    _check(v, w, problem, configurations)

    # [T, 1], or [1, 1] where all rows share their settings.
    weights = {
        term.name: like([c.signed_weight(name) for c in configurations], v)[:, None]
        for name, term in TERMS.items()
    }
    on_raw = like([c.regularize is Regularize.RAW for c in configurations], v)[:, None]
    raw, on_effective = xp.zeros_like(v) if w is None else w, 1.0 - on_raw
    norm = xp.sum(on_effective * v * v + on_raw * raw * raw, axis=1)
    terms = {
        "f1": Linear(-problem.hit_rates, 1.0).at(v),
        "ce": _cross_entropy(v, problem, [c.ce for c in configurations], noise, temperature),
        "reg": (norm, 2.0 * on_effective * v),
        **{name: Quadratic(matrix).at(v) for name, matrix in problem.matrices.items()},
    }
    for name, kind in SMOOTH_TERMS.items():
        if any(getattr(c, name) for c in configurations):
            terms[name] = OverItems.of(kind(problem.steps), problem).at(v)
    total, gradient = xp.zeros_like(norm), xp.zeros_like(v)
    for name, (value, slope) in terms.items():
        total, gradient = total + weights[name][:, 0] * value, gradient + weights[name] * slope

    def result(part: Array) -> Array:
        return part if is_batch else part[0, ...]

    return Loss(
        {name: result(value) for name, (value, _) in terms.items()} | {"total": result(total)},
        result(gradient),
        result(terms["ce"][1]),
        result(2.0 * weights["reg"] * on_raw * raw),
    )


def _check(v: Array, w: Array | None, problem: Problem, configurations: Sequence[Settings]) -> None:
    count = len(configurations)
    if v.shape[1] != problem.members or count not in (1, v.shape[0]):
        raise InputError(
            f"{count} configurations of {problem.members} members need weights of shape "
            f"({count}, {problem.members}), but got {tuple(v.shape)}",
            "give one row of weights per configuration",
        )
    made_for = (problem.class_weights, problem.pool)
    for settings in configurations:
        if (settings.class_weights, settings.pool) != made_for:
            raise InputError(
                "settings and problem must agree on class_weights and pool, but the problem has "
                f"class_weights={problem.class_weights}, pool={str(problem.pool)!r}",
                "build one Problem per choice of class weights and pool",
            )
        problem.check_scale(settings)
        weighs_members = settings.ce is not CE.MEAN and settings.ce_weight
        if ("div" not in problem.matrices and settings.div) or (
            problem.member_ce is None and weighs_members
        ):
            raise InputError(
                "these settings weigh a term that the problem was made without",
                "build the problem with Problem.from_arrays",
            )
        if w is None and settings.regularize is Regularize.RAW:
            raise InputError(
                "regularize='w' needs the raw weights, but got none",
                "pass w, or choose regularize='v'",
            )


def _cross_entropy(
    v: Array,
    problem: Problem,
    variants: Sequence[CE],
    noise: Array | None,
    temperature: Array | float,
) -> tuple[Array, Array]:
    """Each row of v under its own variant: values [T], gradients [T, K]."""
    xp = namespace(v, problem.rows)
    value, gradient = xp.zeros_like(v[:, 0]), xp.zeros_like(v)
    for kind in dict.fromkeys(variants):
        if kind is CE.RANDOM:
            terms = ce_random(v, problem, noise, temperature)
        elif kind is CE.ALL:
            terms = Linear(problem.member_ce).at(v)
        else:
            terms = OverItems.of(CROSS_ENTROPY[problem.pool](), problem).at(v)
        chosen_by = like([variant is kind for variant in variants], v)
        value, gradient = value + chosen_by * terms[0], gradient + chosen_by[:, None] * terms[1]
    return value, gradient


def ce_random(
    v: Array, problem: Problem, noise: Array | None, temperature: Array | float = 1.0
) -> tuple[Array, Array]:
    """Cross-entropy of one member per item, drawn with probabilities v [T, K], and its gradient.

    The draw is argmax_k ln(v_k + ε) + noise_ik, with ``noise`` [N, K] or [T, N, K] from the
    Gumbel distribution. The gradient is the straight-through one: that of the softmax at
    ``temperature`` (one, or [T]) in place of the argmax.
    """
    xp = namespace(v, problem.rows)
    if noise is None or tuple(noise.shape[-2:]) != (problem.items, problem.members):
        received = "none was given" if noise is None else f"this has shape {tuple(noise.shape)}"
        raise InputError(
            "ce='random' draws a member per item and needs Gumbel noise of shape"
            f" ({problem.items}, {problem.members}); {received}",
            "pass noise=rng.gumbel(size=(items, members))",
        )
    logits = xp.log(v + EPSILON)[:, None, :] + noise
    if not isinstance(temperature, int | float):
        temperature = temperature[:, None, None]
    soft = softmax(logits / temperature)
    best = xp.argmax(logits, axis=-1)
    positions = xp.arange(problem.members, dtype=best.dtype, device=device(best))
    hard = xp.astype(best[..., None] == positions, v.dtype)
    losses = problem.item_losses
    draws = hard + (soft - without_gradient(soft))
    value = xp.sum(draws * losses, axis=(1, 2)) / problem.items
    mean_loss = xp.sum(soft * losses, axis=2, keepdims=True)
    slope = xp.sum(soft * (losses - mean_loss) / temperature, axis=1)
    return value, slope / ((v + EPSILON) * problem.items)
