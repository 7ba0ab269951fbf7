"""Cross-entropy of a pool as sums over items: value, gradient and Hessian in the weights.

Kernels take ``rows`` [K, n·C], what is pooled (probabilities, or their logarithms for a log pool),
and ``targets``, the soft labels times the class weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit.objective.arrays import (
    EPSILON,
    Array,
    double,
    like,
    member_rows,
    namespace,
    slices,
    without_gradient,
)
from edokit.objective.pools import log_probabilities
from edokit.objective.settings import Pool

# Numbers of P in one block: of numpy arrays so few that they stay in the cache, of tensors enough
# for a fast product.
_CACHED = 2**16
_BLOCK = 2**19


def linear_pool(v: Array, rows: Array) -> Array:
    """φ + ε of the linear pool, [..., n·C] for weights v [..., K]."""
    return namespace(v, rows).matmul(v, rows) + EPSILON


def linear_ce(rows: Array, targets: Array, pooled: Array) -> tuple[Array, Array]:
    """Sums −Σ t ln(φ + ε) [...] and their gradients [..., K]; ``targets`` [n·C]."""
    xp = namespace(rows, pooled)
    return -xp.matmul(xp.log(pooled), targets), -xp.matmul(targets / pooled, rows.T)


def linear_hessian(
    rows: Array, targets: Array, pooled: Array, memory: Array | None = None
) -> Array:
    """Σ t · p pᵀ / φ² [K, K] at one φ; ``memory`` in the shape of rows (numpy) is overwritten."""
    xp = namespace(rows, pooled)
    root = xp.sqrt(targets) / pooled
    scaled = rows * root if memory is None else np.multiply(rows, root, out=memory)
    return xp.matmul(scaled, scaled.T)


def log_pool(v: Array, rows: Array, classes: int) -> Array:
    """ln φ of the log pool, [..., n, C] for weights v [..., K]."""
    xp = namespace(v, rows)
    scores = xp.reshape(xp.matmul(v, rows), (*v.shape[:-1], -1, classes))
    top = without_gradient(xp.max(scores, axis=-1, keepdims=True))
    return scores - top - xp.log(xp.sum(xp.exp(scores - top), axis=-1, keepdims=True))


def log_ce(rows: Array, targets: Array, log_pooled: Array) -> tuple[Array, Array]:
    """Sums −Σ t ln φ [...] and their gradients [..., K]; ``targets`` [n, C]."""
    xp = namespace(rows, log_pooled)
    mass = xp.sum(targets, axis=1, keepdims=True)
    residual = xp.exp(log_pooled) * mass - targets
    flat = xp.reshape(residual, (*residual.shape[:-2], -1))
    return -xp.sum(log_pooled * targets, axis=(-2, -1)), xp.matmul(flat, rows.T)


def log_hessian(rows: Array, targets: Array, log_pooled: Array) -> Array:
    """[K, K] the covariances of the members' logarithms under each φ_i, summed up."""
    xp = namespace(rows, log_pooled)
    pooled = xp.exp(log_pooled)
    mass = xp.sum(targets, axis=1, keepdims=True)
    by_item = xp.reshape(rows, (rows.shape[0], *targets.shape))
    centred = by_item - xp.sum(by_item * pooled, axis=2, keepdims=True)
    scaled = xp.reshape(centred * xp.sqrt(mass * pooled), (rows.shape[0], -1))
    return xp.matmul(scaled, scaled.T)


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

    def __radd__(self, other: object) -> Curvature:
        # sum(shards) starts at 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def select(self, members: Array) -> Curvature:
        """Of these members (positions), in this order; they must hold all weight."""
        hessian = self.hessian[members, :][:, members]
        return Curvature(self.items, self.value, self.gradient[members], hessian)


def curvature_sums(
    P: Array, q: Array, v: Array, alpha: Array | None = None, pool: Pool | str = Pool.LINEAR
) -> Curvature:
    """Cross-entropy of the pool of P [N, K, C] under v [K] with its gradient and Hessian.

    q are the soft labels [N, C], ``alpha`` the class weights [C] or None.
    """
    items, members, classes = P.shape
    is_log, on_numpy = Pool(pool) is Pool.LOG, isinstance(P, np.ndarray)
    v = double(v)
    value, gradient = like(0.0, P), like([0.0] * members, P)
    hessian = like([[0.0] * members] * members, P)
    step = max(1, min(items, (_CACHED if on_numpy else _BLOCK) // (members * classes)))
    # Fresh memory for every block would cost more than what is done in it.
    whole = np.empty((2, members, step * classes)) if on_numpy else None
    for s in slices(items, step):
        length = (s.stop - s.start) * classes
        out = scaled = None
        if whole is not None:
            out, scaled = whole if length == whole.shape[2] else np.empty((2, members, length))
        rows = member_rows(P[s, ...], out)
        targets = double(q[s, ...]) if alpha is None else double(q[s, ...]) * double(alpha)
        if is_log:
            rows = log_probabilities(rows)
            log_pooled = log_pool(v, rows, classes)
            parts = (*log_ce(rows, targets, log_pooled), log_hessian(rows, targets, log_pooled))
        else:
            flat, pooled = namespace(q).reshape(targets, (-1,)), linear_pool(v, rows)
            parts = (*linear_ce(rows, flat, pooled), linear_hessian(rows, flat, pooled, scaled))
        value, gradient, hessian = value + parts[0], gradient + parts[1], hessian + parts[2]
    return Curvature(int(items), value, gradient, hessian)
