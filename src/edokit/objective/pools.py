"""From members to one probability per class: pools, groups, and a temperature afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edokit._errors import InputError, one_of
from edokit._types import Floats
from edokit.objective.arrays import EPSILON, Array, device_of, like, namespace, slices

# Numbers of P that a pool looks at in one go; keeps the memory beside P small.
_BLOCK = 2**22


def log_probabilities(P: Array) -> Array:
    """ln(P + ε), in the shape of P."""
    return namespace(P).log(P + EPSILON)


def pool(P: Array, v: Array, kind: str = "linear") -> Array:
    """[N, C] pooled probabilities φ of P [N, K, C] under weights v [K] on the simplex.

    ``"linear"``: Σ_k v_k p_k. ``"log"``: proportional to Π_k (p_k + ε)^v_k, so that a single
    zero does not veto a class.
    """
    one_of("pool", kind, ("linear", "log"))
    items, members, classes = P.shape
    if tuple(v.shape) != (members,):
        raise InputError(
            f"weights of shape {tuple(v.shape)} are not one for each of the {members} members",
            "give the weights in the order of the members",
        )
    xp = namespace(P, v)
    v = xp.astype(v, P.dtype, copy=False)
    parts = [
        _linear(P[s, ...], v) if kind == "linear" else _logarithmic(P[s, ...], v)
        for s in slices(items, max(1, _BLOCK // (members * classes)))
    ]
    return xp.concat(parts, axis=0) if parts else P[:, 0, :]


def average_groups(P: Array, groups: Sequence[str]) -> Array:
    """[N, G, C] mean of the members of each group, groups in order of first appearance."""
    xp = namespace(P)
    if len(groups) != P.shape[1]:
        raise InputError(
            f"{len(groups)} groups are not one for each of the {P.shape[1]} members",
            "give one group name per member, in their order",
        )
    means = []
    for name in group_names(groups):
        inside = [k for k, group in enumerate(groups) if group == name]
        total = P[:, inside[0], :]
        for k in inside[1:]:
            total = total + P[:, k, :]
        means.append(total / len(inside))
    return xp.stack(means, axis=1)


def group_names(groups: Sequence[str]) -> list[str]:
    """The distinct groups, in order of first appearance."""
    return list(dict.fromkeys(groups))


def spread_weights(weights: Array, groups: Sequence[str]) -> Array:
    """[K] member weights that give the same linear pool as group weights [G]: equal shares.

    A log pool of groups has no such member weights: average the groups first.
    """
    xp = namespace(weights)
    names = group_names(groups)
    if weights.shape[-1] != len(names):
        raise InputError(
            f"{weights.shape[-1]} weights are not one for each of the {len(names)} groups",
            "give the weights in the order in which the groups first appear",
        )
    shares = np.zeros((len(names), len(groups)))
    for k, group in enumerate(groups):
        shares[names.index(group), k] = 1.0 / groups.count(group)
    return xp.matmul(weights, xp.astype(like(shares, weights), weights.dtype))


def _linear(P: Array, v: Array) -> Array:
    xp = namespace(P)
    items, members, classes = P.shape
    if classes > 8:
        return xp.matmul(v[None, None, :], P)[:, 0, :]
    # Few classes: N tiny products are slow, one long product with v ⊗ I is not.
    blocks = v[:, None, None] * xp.eye(classes, dtype=P.dtype, device=device_of(P))
    return xp.matmul(
        xp.reshape(P, (items, members * classes)), xp.reshape(blocks, (members * classes, classes))
    )


def _logarithmic(P: Array, v: Array) -> Array:
    xp = namespace(P)
    scores = _linear(log_probabilities(P), v)
    powers = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 20.0
"""Temperatures that are considered."""


def sharpen(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities [N, C] to the power 1/temperature, normalised; below 1 sharpens."""
    if temperature == 1.0:
        return probabilities
    logs = np.log(probabilities + EPSILON) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    sharpened: Floats = powers / powers.sum(axis=1, keepdims=True)
    return sharpened


def fit_temperature(probabilities: Floats, soft_labels: Floats) -> float:
    """The temperature with the lowest cross-entropy, between 1/20 and 20.

    The cross-entropy is convex in 1/temperature, so there is one lowest point.
    """
    from scipy.optimize import minimize_scalar

    logs = np.log(probabilities + EPSILON)

    def cross_entropy(power: float) -> float:
        scores = logs * power
        top = scores.max(axis=1, keepdims=True)
        norms = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        return float(np.mean(norms - (soft_labels * scores).sum(axis=1)))

    found = minimize_scalar(
        cross_entropy,
        bounds=(1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(1.0 / found.x)


def power_sums(probabilities: Floats, soft_labels: Floats, power: float) -> Floats:
    """[3] cross-entropy after sharpening to this power, its slope and its bend in the power.

    Summed over items, so that shards add up.
    """
    logs = np.log(probabilities + EPSILON)
    scores = logs * power
    top = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - top)
    norms = powers.sum(axis=1, keepdims=True)
    sharp = powers / norms
    mean = (sharp * logs).sum(axis=1)
    value = (top + np.log(norms)).sum() - (soft_labels * scores).sum()
    slope = mean.sum() - (soft_labels * logs).sum()
    bend = (sharp * logs**2).sum() - (mean**2).sum()
    return np.array([value, slope, bend])
