"""From parameters to effective weights: v on the simplex, and the way back for gradients."""

from __future__ import annotations

from edokit._errors import InputError
from edokit.objective.arrays import Array, namespace

# exp(-600) is still a positive float64. A member further below the best is lifted to it, so that
# a size whose members all vanish beside a later one keeps weights that add up to one.
_LOWEST_LOGIT = {"float64": -600.0, "float32": -80.0}


def softmax(logits: Array) -> Array:
    """exp(logits), normalised over the last axis."""
    xp = namespace(logits)
    powers = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def softmax_vjp(weights: Array, gradient: Array) -> Array:
    """Gradient in the logits, given ``weights = softmax(logits)`` and the gradient in them."""
    xp = namespace(weights)
    return weights * (gradient - xp.sum(weights * gradient, axis=-1, keepdims=True))


def effective_weights(theta: Array, sizes: Array, min_members: int = 1) -> Array:
    """[..., K] effective weights v, on the simplex.

    ``theta`` [..., K] are the logits of the members' weights, members in rank order; ``sizes``
    [..., M] is a distribution over the sizes min_members, min_members + 1, …: size j keeps the
    first j members, renormalised, and v averages over the sizes.
    """
    w, shares, _ = _shares(theta, sizes, min_members)
    return w * _sums_from_the_end(shares)  # v_k = w_k Σ_{j ≥ k} k̃_j / S_j


def effective_weights_vjp(
    theta: Array, sizes: Array, gradient: Array, min_members: int = 1
) -> tuple[Array, Array]:
    """Gradients in ``theta`` [..., K] and ``sizes`` [..., M], given the one in v [..., K]."""
    xp = namespace(theta)
    w, shares, sums = _shares(theta, sizes, min_members)
    # Mean of the gradient over the members that each size keeps.
    means = xp.cumulative_sum(gradient * w, axis=-1) / sums
    in_theta = w * (gradient * _sums_from_the_end(shares) - _sums_from_the_end(shares * means))
    last = min_members - 1 + sizes.shape[-1]
    return in_theta, means[..., min_members - 1 : last]


def _shares(theta: Array, sizes: Array, min_members: int) -> tuple[Array, Array, Array]:
    """w = softmax(theta), k̃_j / S_j and S_j = Σ_{l ≤ j} w_l, all [..., K] (k̃ is 0 elsewhere)."""
    xp = namespace(theta, sizes)
    members, count = theta.shape[-1], sizes.shape[-1]
    after = members - (min_members - 1 + count)
    if min_members < 1 or after < 0:
        raise InputError(
            f"sizes from {min_members} to {min_members - 1 + count} do not lie between 1 and the"
            f" {members} members",
            "choose min_members of at least 1 and at most as many sizes as there are members",
        )
    lowest = _LOWEST_LOGIT["float32" if theta.dtype == xp.float32 else "float64"]
    theta = theta - xp.max(theta, axis=-1, keepdims=True)
    w = softmax(xp.where(theta < lowest, xp.full_like(theta, lowest), theta))
    zeros = xp.zeros_like(theta)
    padded = xp.concat([zeros[..., : min_members - 1], sizes, zeros[..., :after]], axis=-1)
    sums = xp.cumulative_sum(w, axis=-1)
    return w, padded / sums, sums


def _sums_from_the_end(values: Array) -> Array:
    xp = namespace(values)
    return xp.flip(xp.cumulative_sum(xp.flip(values, axis=-1), axis=-1), axis=-1)
