"""The joint loss: its terms, its value and its gradient, for one or many configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats
from edokit.objective.arrays import (
    EPSILON,
    Array,
    device_of,
    like,
    namespace,
    without_gradient,
)
from edokit.objective.cross_entropy import linear_ce, linear_pool, log_ce, log_pool
from edokit.objective.problem import Problem
from edokit.objective.settings import CE, Pool, Regularize, Settings
from edokit.objective.weights import softmax


@dataclass(frozen=True, eq=False)
class Configurations:
    """The settings of T configurations, column by column; build it once for a long loop."""

    lambda_f1: Floats
    lambda_ce: Floats
    lambda_div: Floats
    """[T] with the sign s."""
    lambda_reg: Floats
    on_raw: Floats
    """[T] 1 where the squared norm is of the raw weights w, 0 where of v."""
    ce: tuple[CE, ...]
    class_weights: frozenset[bool]
    pools: frozenset[Pool]

    @classmethod
    def of(cls, settings: Settings | Sequence[Settings]) -> Configurations:
        """Of one configuration, or of several in this order."""
        rows = [settings] if isinstance(settings, Settings) else list(settings)
        return cls(
            np.asarray([row.lambda_f1 for row in rows], dtype=np.float64),
            np.asarray([row.lambda_ce for row in rows], dtype=np.float64),
            np.asarray([row.diversity.sign * row.lambda_div for row in rows], dtype=np.float64),
            np.asarray([row.lambda_reg for row in rows], dtype=np.float64),
            np.asarray([row.regularize is Regularize.RAW for row in rows], dtype=np.float64),
            tuple(row.ce for row in rows),
            frozenset(row.class_weights for row in rows),
            frozenset(row.pool for row in rows),
        )


@dataclass(frozen=True, eq=False)
class Loss:
    """The joint loss and its terms before weighting; each [] for one v, [T] for a batch."""

    total: Array
    f1: Array
    """1 − soft micro-F1."""
    ce: Array
    """Cross-entropy, in the chosen variant."""
    div: Array
    """Mean pairwise disagreement, without sign; NaN if the problem was made without distances."""
    reg: Array
    """Squared norm of the weights."""
    gradient: Array
    """[..., K] of the total in v."""
    ce_gradient: Array
    """[..., K] of the cross-entropy alone, before weighting."""
    gradient_w: Array
    """[..., K] of the total in the raw weights w; zero unless the norm is taken of them."""


def joint_loss(
    v: Array,
    problem: Problem,
    settings: Settings | Sequence[Settings] | Configurations,
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
    many = v.ndim == 2
    xp = namespace(v, problem.rows)
    v = v if many else v[None, :]
    w = w if many or w is None else w[None, :]
    chosen = settings if isinstance(settings, Configurations) else Configurations.of(settings)
    _check(v, w, problem, chosen)
    lambda_f1, lambda_ce, lambda_div, lambda_reg, on_raw = (
        like(column, v)
        for column in (
            chosen.lambda_f1,
            chosen.lambda_ce,
            chosen.lambda_div,
            chosen.lambda_reg,
            chosen.on_raw,
        )
    )
    f1 = 1.0 - xp.matmul(v, problem.hit_rates)
    ce, ce_gradient = _cross_entropy(v, problem, chosen.ce, noise, temperature)
    if problem.distances is None:
        to_others, div = xp.zeros_like(v), xp.full_like(f1, xp.nan)
    else:
        to_others = xp.matmul(v, problem.distances)
        div = xp.sum(v * to_others, axis=1)
    raw = xp.zeros_like(v) if w is None else w
    on_effective = 1.0 - on_raw
    reg = on_effective * xp.sum(v * v, axis=1) + on_raw * xp.sum(raw * raw, axis=1)
    gradient = (
        lambda_ce[:, None] * ce_gradient
        - lambda_f1[:, None] * problem.hit_rates
        + 2.0 * lambda_div[:, None] * to_others
        + 2.0 * (lambda_reg * on_effective)[:, None] * v
    )
    gradient_w = 2.0 * (lambda_reg * on_raw)[:, None] * raw
    total = lambda_f1 * f1 + lambda_ce * ce + lambda_reg * reg
    if problem.distances is not None:
        total = total + lambda_div * div
    parts = (total, f1, ce, div, reg, gradient, ce_gradient, gradient_w)
    return Loss(*(part if many else part[0, ...] for part in parts))


def _cross_entropy(
    v: Array,
    problem: Problem,
    variants: tuple[CE, ...],
    noise: Array | None,
    temperature: Array | float,
) -> tuple[Array, Array]:
    """Each row of v under its own variant: values [T], gradients [T, K]."""
    xp = namespace(v, problem.rows)
    if len(set(variants)) == 1:
        return _variant(variants[0], v, problem, noise, temperature)
    values, gradients, order = [], [], []
    for variant in dict.fromkeys(variants):
        rows = [t for t, own in enumerate(variants) if own is variant]
        value, gradient = _variant(
            variant,
            v[rows, :],
            problem,
            noise if noise is None or noise.ndim == 2 else noise[rows, ...],
            temperature if isinstance(temperature, int | float) else temperature[rows],
        )
        values.append(value)
        gradients.append(gradient)
        order.extend(rows)
    back = np.argsort(order).tolist()
    return xp.concat(values, axis=0)[back], xp.concat(gradients, axis=0)[back, :]


def _variant(
    variant: CE, v: Array, problem: Problem, noise: Array | None, temperature: Array | float
) -> tuple[Array, Array]:
    if variant is CE.MEAN:
        return ce_mean(v, problem)
    if variant is CE.ALL:
        return ce_all(v, problem)
    return ce_random(v, problem, noise, temperature)


def ce_mean(v: Array, problem: Problem) -> tuple[Array, Array]:
    """Cross-entropy of the pool, −mean_i Σ_c α_c q_ic ln(φ_ic + ε), and its gradient in v."""
    rows, targets = problem.rows, problem.targets
    if problem.pool is Pool.LOG:
        value, gradient = log_ce(rows, targets, log_pool(v, rows, targets.shape[1]))
    else:
        flat = namespace(rows).reshape(targets, (-1,))
        value, gradient = linear_ce(rows, flat, linear_pool(v, rows))
    return value / problem.items, gradient / problem.items


def ce_all(v: Array, problem: Problem) -> tuple[Array, Array]:
    """Weighted mean of the members' own cross-entropies, a·v, and its gradient in v."""
    xp = namespace(v, problem.member_ce)
    return xp.matmul(v, problem.member_ce), xp.broadcast_to(problem.member_ce, v.shape)


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
        given = "none was given" if noise is None else f"this has shape {tuple(noise.shape)}"
        raise InputError(
            "ce='random' draws a member per item and needs Gumbel noise of shape"
            f" ({problem.items}, {problem.members}); {given}",
            "pass noise=rng.gumbel(size=(items, members))",
        )
    logits = xp.log(v + EPSILON)[:, None, :] + noise
    if not isinstance(temperature, int | float):
        temperature = temperature[:, None, None]
    soft = softmax(logits / temperature)
    best = xp.argmax(logits, axis=-1)
    positions = xp.arange(problem.members, dtype=best.dtype, device=device_of(best))
    hard = xp.astype(best[..., None] == positions, v.dtype)
    losses = problem.item_losses
    drawn = hard + (soft - without_gradient(soft))
    value = xp.sum(drawn * losses, axis=(1, 2)) / problem.items
    mean_loss = xp.sum(soft * losses, axis=2, keepdims=True)
    slope = xp.sum(soft * (losses - mean_loss) / temperature, axis=1)
    return value, slope / ((v + EPSILON) * problem.items)


def _check(v: Array, w: Array | None, problem: Problem, chosen: Configurations) -> None:
    count = len(chosen.ce)
    if v.shape[1] != problem.members or count not in (1, v.shape[0]):
        raise InputError(
            f"{count} configurations of {problem.members} members need weights of shape "
            f"({count}, {problem.members}), but got {tuple(v.shape)}",
            "give one row of weights per configuration",
        )
    if chosen.class_weights != {problem.class_weights} or chosen.pools != {problem.pool}:
        raise InputError(
            "settings and problem must agree on class_weights and pool, but the problem has "
            f"class_weights={problem.class_weights}, pool={str(problem.pool)!r}",
            "build one Problem per choice of class weights and pool",
        )
    alone = any(variant is not CE.MEAN for variant in chosen.ce)
    if (problem.distances is None and chosen.lambda_div.any()) or (
        problem.member_ce is None and alone and chosen.lambda_ce.any()
    ):
        raise InputError(
            "these settings weigh a term that the problem was made without",
            "build the problem with Problem.from_arrays",
        )
    if w is None and chosen.on_raw.any():
        raise InputError(
            "regularize='w' needs the raw weights, but got none",
            "pass w, or choose regularize='v'",
        )
