"""Gradients of the weights in a direct form, as a reference for the Gumbel solver."""

from __future__ import annotations

from edokit.objective.pools import Array, namespace, softmax


def softmax_vjp(weights: Array, gradient: Array) -> Array:
    """Gradient in the logits, given ``weights = softmax(logits)`` and the gradient in them."""
    xp = namespace(weights)
    return weights * (gradient - xp.sum(weights * gradient, axis=-1, keepdims=True))


def effective_weights_vjp(
    theta: Array, sizes: Array, gradient: Array, min_members: int = 1
) -> tuple[Array, Array]:
    """Gradients in ``theta`` [..., K] and ``sizes`` [..., M], given the one in v [..., K]."""
    xp = namespace(theta)
    lowest = -600.0
    if theta.dtype == xp.float32:
        lowest = -80.0
    theta = theta - xp.max(theta, axis=-1, keepdims=True)
    w = softmax(xp.where(theta < lowest, xp.full_like(theta, lowest), theta))
    zeros = xp.zeros_like(theta)
    max_members = min_members - 1 + sizes.shape[-1]
    padded = [zeros[..., : min_members - 1], sizes, zeros[..., max_members:]]
    sums = xp.cumulative_sum(w, axis=-1)
    shares = xp.concat(padded, axis=-1) / sums
    # Mean of the gradient over the members that each size keeps.
    means = xp.cumulative_sum(gradient * w, axis=-1) / sums
    in_theta = w * (gradient * _sums_from_the_end(shares) - _sums_from_the_end(shares * means))
    return in_theta, means[..., min_members - 1 : max_members]


def _sums_from_the_end(values: Array) -> Array:
    xp = namespace(values)
    return xp.flip(xp.cumulative_sum(xp.flip(values, axis=-1), axis=-1), axis=-1)
