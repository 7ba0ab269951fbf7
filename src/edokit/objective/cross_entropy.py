"""Cross-entropies of a pool and its members: values, gradients and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edokit._errors import InputError
from edokit.objective.arrays import (
    EPSILON,
    Array,
    device_of,
    double,
    like,
    members_first,
    namespace,
    slices,
    without_gradient,
)
from edokit.objective.problem import Problem, turn
from edokit.objective.settings import CE, Pool, Regularize, Settings
from edokit.objective.weights import softmax


def ce_mean(v: Array, problem: Problem) -> tuple[Array, Array]:
    """Cross-entropy of the pool: −mean_i Σ_c α_c q_ic ln(φ_ic + ε)."""
    if problem.pool is Pool.LOG:
        return _ce_log_pool(v, problem)
    xp = namespace(v, problem.rows)
    targets = xp.reshape(problem.targets, (-1,))
    pooled = xp.matmul(v, problem.rows) + EPSILON  # φ, [T, N·C]
    value = -xp.matmul(xp.log(pooled), targets) / problem.items
    gradient = -xp.matmul(targets / pooled, problem.rows.T) / problem.items
    return value, gradient


def _ce_log_pool(v: Array, problem: Problem) -> tuple[Array, Array]:
    """Cross-entropy of φ ∝ Π_k (p_k + ε)^v_k: linear in v, plus a log-sum-exp per item."""
    xp = namespace(v, problem.rows)
    scores = xp.reshape(xp.matmul(v, problem.rows), (-1, *problem.targets.shape))
    log_pooled = scores - log_sum_exp(scores)
    value = -xp.sum(log_pooled * problem.targets, axis=(1, 2)) / problem.items
    mass = xp.sum(problem.targets, axis=1, keepdims=True)
    residual = xp.exp(log_pooled) * mass - problem.targets
    flat = xp.reshape(residual, (v.shape[0], -1))
    return value, xp.matmul(flat, problem.rows.T) / problem.items


def ce_all(v: Array, problem: Problem) -> tuple[Array, Array]:
    """Weighted mean of the members' own cross-entropies: a·v."""
    xp = namespace(v, problem.member_ce)
    return xp.matmul(v, problem.member_ce), xp.broadcast_to(problem.member_ce, v.shape)


def ce_random(
    v: Array, problem: Problem, noise: Array | None, temperature: Array | float = 1.0
) -> tuple[Array, Array]:
    """Cross-entropy of one member per item, drawn with probabilities v.

    The draw is argmax_k ln(v_k + ε) + noise_ik, with ``noise`` [N, K] or [T, N, K] from the
    Gumbel distribution. The gradient is the straight-through one: that of the softmax at
    ``temperature`` (one, or [T]) in place of the argmax.
    """
    xp = namespace(v, problem.rows)
    if noise is None or tuple(noise.shape[-2:]) != (problem.items, problem.members):
        raise InputError(
            "ce='random' draws a member per item and needs Gumbel noise of shape "
            f"({problem.items}, {problem.members}), but got "
            f"{'none' if noise is None else tuple(noise.shape)}",
            "pass noise=rng.gumbel(size=(items, members))",
        )
    logits = xp.log(v + EPSILON)[:, None, :] + noise
    if not isinstance(temperature, int | float):
        temperature = temperature[:, None, None]
    soft = softmax(logits / temperature)
    best = xp.argmax(logits, axis=-1)
    places = xp.arange(problem.members, dtype=best.dtype, device=device_of(best))
    hard = xp.astype(best[..., None] == places, v.dtype)
    losses = problem.item_losses
    drawn = hard + (soft - without_gradient(soft))
    value = xp.sum(drawn * losses, axis=(1, 2)) / problem.items
    mean_loss = xp.sum(soft * losses, axis=2, keepdims=True)
    slope = xp.sum(soft * (losses - mean_loss) / temperature, axis=1)
    return value, slope / ((v + EPSILON) * problem.items)


def log_sum_exp(scores: Array) -> Array:
    """ln Σ exp over the last axis, which stays as an axis of length one."""
    xp = namespace(scores)
    top = without_gradient(xp.max(scores, axis=-1, keepdims=True))
    return top + xp.log(xp.sum(xp.exp(scores - top), axis=-1, keepdims=True))


# Numbers of P that are looked at in one go: enough for a fast product, little beside P.
_BLOCK = 2**19
# And so many that what is done with them stays in the cache.
_CACHED = 2**16


@dataclass(frozen=True, eq=False)
class Curvature:
    """A cross-entropy at one v, summed over items in float64. ``a + b`` joins two shards."""

    items: int
    """N, the number of items."""
    value: Array
    """[]"""
    gradient: Array
    """[K]"""
    hessian: Array
    """[K, K]"""

    def __add__(self, other: Curvature) -> Curvature:
        if not isinstance(other, Curvature):
            return NotImplemented
        return Curvature(
            self.items + other.items,
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )

    def select(self, members: Array) -> Curvature:
        """Of these members (positions), in this order; they must hold all weight."""
        hessian = self.hessian[members, :][:, members]
        return Curvature(self.items, self.value, self.gradient[members], hessian)

    def __radd__(self, other: object) -> Curvature:
        # sum(shards) starts at 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented


def ce_mean_sums(P: Array, q: Array, alpha: Array | None, v: Array) -> Curvature:
    """Sums of −Σ_c α_c q_ic ln(φ_ic + ε) of the linear pool of P [N, K, C] under v [K].

    q are the soft labels [N, C], ``alpha`` the class weights [C] or None.
    """
    if isinstance(P, np.ndarray):
        return _linear_sums(P, q, alpha, v)
    return _item_blocks(_linear_pool, P, q, alpha, v)


def log_pool_sums(logs: Array, q: Array, alpha: Array | None, v: Array) -> Curvature:
    """The same for the log pool; ``logs`` [N, K, C] are ``log_probabilities(P)``."""
    return _item_blocks(_log_pool, logs, q, alpha, v)


def joint_hessian(v: Array, problem: Problem, settings: Settings) -> Array:
    """[K, K] Hessian of the joint loss in v [K], for ``ce="mean"`` or ``"all"``."""
    if settings.ce is CE.RANDOM or settings.regularize is Regularize.RAW:
        raise InputError(
            "the Hessian in v exists for ce='mean' or 'all' with regularize='v', but got "
            f"ce={str(settings.ce)!r}, regularize={str(settings.regularize)!r}",
            "use the gumbel solver for these settings",
        )
    xp = namespace(v, problem.rows)
    diversity = settings.diversity.sign * settings.lambda_div
    hessian = (
        2.0
        * settings.lambda_reg
        * xp.eye(problem.members, dtype=problem.rows.dtype, device=device_of(problem.rows))
    )
    if diversity:
        hessian = hessian + 2.0 * diversity * problem.distances
    if settings.ce is CE.ALL or settings.lambda_ce == 0:
        return hessian
    block = _log_pool if problem.pool is Pool.LOG else _linear_pool
    classes = problem.targets.shape[1]
    step = max(1, _BLOCK // (problem.members * classes))
    for s in slices(problem.items, step):
        rows = problem.rows[:, s.start * classes : s.stop * classes]
        part = block(rows, problem.targets[s, ...], v)[2]
        hessian = hessian + part * (settings.lambda_ce / problem.items)
    return hessian


_Block = Callable[[Array, Array, Array], tuple[Array, Array, Array]]


def _item_blocks(block: _Block, P: Array, q: Array, alpha: Array | None, v: Array) -> Curvature:
    xp = namespace(P, v)
    members, classes = P.shape[1], P.shape[2]
    v = double(v)
    weights = like([1.0] * classes, P) if alpha is None else double(alpha)
    value, gradient = like(0.0, P), like([0.0] * members, P)
    hessian = like([[0.0] * members] * members, P)
    for s in slices(P.shape[0], max(1, _BLOCK // (members * classes))):
        rows = xp.reshape(double(members_first(P[s, ...])), (members, -1))
        parts = block(rows, double(q[s, ...]) * weights, v)
        value, gradient, hessian = value + parts[0], gradient + parts[1], hessian + parts[2]
    return Curvature(int(P.shape[0]), value, gradient, hessian)


def _linear_sums(P: Array, q: Array, alpha: Array | None, v: Array) -> Curvature:
    """Of numpy arrays: ``_linear_pool`` block by block, always in the same memory."""
    items, members, classes = P.shape
    v = double(v)
    value, gradient, hessian = np.zeros(()), np.zeros(members), np.zeros((members, members))
    step = max(1, min(items, _CACHED // (members * classes)))
    # Fresh memory for every block would cost more than what is done in it.
    whole = np.empty((2, members, step * classes))
    for s in slices(items, step):
        length = (s.stop - s.start) * classes
        rows, scaled = whole if length == whole.shape[2] else np.empty((2, members, length))
        turn(P[s], rows)
        targets = double(q[s])
        parts = _linear_pool(rows, targets if alpha is None else targets * alpha, v, scaled)
        value, gradient, hessian = value + parts[0], gradient + parts[1], hessian + parts[2]
    return Curvature(items, value, gradient, hessian)


def _linear_pool(
    rows: Array, targets: Array, v: Array, memory: Array | None = None
) -> tuple[Array, Array, Array]:
    """Of rows [K, N·C] and targets [N, C]; the Hessian is Σ α q · p pᵀ / φ².

    ``memory`` in the shape of rows (numpy only) is written over instead of asking for more.
    """
    xp = namespace(rows, v)
    flat = xp.reshape(targets, (-1,))
    pooled = xp.matmul(v, rows) + EPSILON
    root = xp.sqrt(flat) / pooled
    scaled = rows * root if memory is None else np.multiply(rows, root, out=memory)
    return (
        -xp.sum(flat * xp.log(pooled)),
        -xp.matmul(rows, flat / pooled),
        xp.matmul(scaled, scaled.T),
    )


def _log_pool(rows: Array, targets: Array, v: Array) -> tuple[Array, Array, Array]:
    """Of logarithms [K, N·C]; the Hessian adds up the covariances of the logs under each φ_i."""
    xp = namespace(rows, v)
    scores = xp.reshape(xp.matmul(v, rows), targets.shape)
    log_pooled = scores - log_sum_exp(scores)
    mass = xp.sum(targets, axis=1, keepdims=True)
    pooled = xp.exp(log_pooled)
    by_item = xp.reshape(rows, (rows.shape[0], *targets.shape))
    centred = by_item - xp.sum(by_item * pooled, axis=2, keepdims=True)
    scaled = xp.reshape(centred * xp.sqrt(mass * pooled), (rows.shape[0], -1))
    return (
        -xp.sum(targets * log_pooled),
        xp.matmul(rows, xp.reshape(mass * pooled - targets, (-1,))),
        xp.matmul(scaled, scaled.T),
    )
