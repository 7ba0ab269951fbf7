"""The cross-entropies of a pool and its members: value and gradient for many weights at once.

Every function takes weights v [T, K] and returns the values [T] and the gradients in v [T, K].
"""

from __future__ import annotations

from edokit._errors import InputError
from edokit.objective.arrays import EPSILON, Array, device_of, namespace, without_gradient
from edokit.objective.problem import Problem
from edokit.objective.settings import Pool
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
