"""The joint loss: its terms, its value and its gradient, for one or many configurations.

The cross-entropy of a pool takes ``rows`` [K, n·C], what is pooled (probabilities, or their
logarithms for a log pool), and ``targets`` [n, C], the soft labels times the class weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

# Numbers of P in one block: of numpy arrays so few that they stay in the cache, of tensors enough
# for a fast product.
_CACHED = 2**16
_BLOCK = 2**19


@dataclass(frozen=True, eq=False)
class Loss:
    """The joint loss and its terms before weighting; each [] for one v, [T] for a batch."""

    terms: dict[str, Array]
    """``f1`` (1 − soft micro-F1), ``ce`` (in the chosen variant), ``reg`` (squared norm of the
    weights), those of `Problem.matrices` (``div``, without sign; ``rps``), ``w1`` (smoothed by
    `SMOOTHING`) where it is weighed, and the weighted sum, ``total``."""
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
    variants = [c.ce for c in configurations]
    ce, ce_gradient = _cross_entropy(v, problem, variants, noise, temperature)
    # Each term [T] with its gradient [T, K].
    terms = {
        "f1": (1.0 - xp.matmul(v, problem.hit_rates), -problem.hit_rates),
        "ce": (ce, ce_gradient),
        "reg": (
            xp.sum(on_effective * v * v + on_raw * raw * raw, axis=1),
            2.0 * on_effective * v,
        ),
        **{name: _quadratic(v, matrix) for name, matrix in problem.matrices.items()},
    }
    if any(c.w1 for c in configurations):
        w1, slope = smooth_w1(v, *problem.scale_rows, problem.steps)
        terms["w1"] = w1 / problem.items, slope / problem.items
    total, gradient = xp.zeros_like(ce), xp.zeros_like(v)
    for name, (value, slope) in terms.items():
        total, gradient = total + weights[name][:, 0] * value, gradient + weights[name] * slope

    def result(part: Array) -> Array:
        return part if is_batch else part[0, ...]

    return Loss(
        {name: result(value) for name, (value, _) in terms.items()} | {"total": result(total)},
        result(gradient),
        result(ce_gradient),
        result(2.0 * weights["reg"] * on_raw * raw),
    )


def _quadratic(v: Array, matrix: Array) -> tuple[Array, Array]:
    """[T] vᵀMv of a symmetric matrix, and its gradients [T, K]."""
    xp = namespace(v, matrix)
    products = xp.matmul(v, matrix)
    return xp.sum(v * products, axis=1), 2.0 * products


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
        else:
            terms = (ce_mean if kind is CE.MEAN else ce_all)(v, problem)
        chosen_by = like([variant is kind for variant in variants], v)
        value, gradient = value + chosen_by * terms[0], gradient + chosen_by[:, None] * terms[1]
    return value, gradient


def ce_mean(v: Array, problem: Problem) -> tuple[Array, Array]:
    """Cross-entropy of the pool, −mean_i Σ_c α_c q_ic ln(φ_ic + ε), and its gradient in v."""
    rows, targets, kind = problem.rows, problem.targets, problem.pool
    value, gradient = pool_ce(rows, targets, pool_rows(v, rows, targets, kind), kind)
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


SMOOTHING = 1e-4
"""δ: where cumulative shares differ by x, Wasserstein-1 counts √(x² + δ²) − δ of a step, at most δ
less than |x|."""


def smooth_w1(
    v: Array, rows: Array, labels: Array, steps: Array, smoothing: float = SMOOTHING
) -> tuple[Array, Array]:
    """Sums [...] of smoothed Wasserstein-1 distances under v [..., K], and gradients [..., K].

    ``rows`` [K, n·(C − 1)] and ``labels`` [n·(C − 1)]: cumulative shares of ordered classes.
    """
    gaps, roots, widths = _w1_parts(v, rows, labels, steps, smoothing)
    return (roots - smoothing) @ widths, (gaps / roots * widths) @ rows.T


def _w1_parts(
    v: Array, rows: Array, labels: Array, steps: Array, smoothing: float
) -> tuple[Array, Array, Array]:
    """[..., n·(C − 1)] differences of cumulative shares and their smoothed sizes, and steps."""
    xp = namespace(v, rows)
    gaps = v @ rows - labels
    widths = xp.tile(steps, (labels.shape[0] // steps.shape[0],))
    return gaps, xp.sqrt(gaps * gaps + smoothing**2), widths


def w1_hessian(
    v: Array, rows: Array, labels: Array, steps: Array, smoothing: float = SMOOTHING
) -> Array:
    """[K, K] Hessian of `smooth_w1` at one v."""
    _, roots, widths = _w1_parts(v, rows, labels, steps, smoothing)
    scaled = rows * (smoothing * namespace(rows).sqrt(widths / roots) / roots)
    return scaled @ scaled.T


def pool_rows(v: Array, rows: Array, targets: Array, kind: Pool) -> Array:
    """φ + ε of a linear pool [..., n·C], ln φ of a log pool [..., n, C] under v [..., K]."""
    scores = v @ rows
    if kind is Pool.LINEAR:
        return scores + EPSILON
    xp = namespace(v, rows)
    scores = xp.reshape(scores, (*v.shape[:-1], *targets.shape))
    top = without_gradient(xp.max(scores, axis=-1, keepdims=True))
    return scores - top - xp.log(xp.sum(xp.exp(scores - top), axis=-1, keepdims=True))


def pool_ce(rows: Array, targets: Array, pooled: Array, kind: Pool) -> tuple[Array, Array]:
    """Sums −Σ t ln φ [...] at what `pool_rows` gives, and their gradients in v [..., K]."""
    xp = namespace(rows, pooled)
    if kind is Pool.LINEAR:
        flat = xp.reshape(targets, (-1,))
        return -(xp.log(pooled) @ flat), -((flat / pooled) @ rows.T)
    residual = xp.exp(pooled) * xp.sum(targets, axis=1, keepdims=True) - targets
    flat = xp.reshape(residual, (*residual.shape[:-2], -1))
    return -xp.sum(pooled * targets, axis=(-2, -1)), flat @ rows.T


def pool_hessian(
    rows: Array, targets: Array, pooled: Array, kind: Pool, memory: Array | None = None
) -> Array:
    """[K, K] their Hessian at one φ; ``memory`` in the shape of rows (numpy) is overwritten.

    Linear: Σ t · p pᵀ / φ². Log: the covariances of the members' logarithms under each φ_i.
    """
    xp = namespace(rows, pooled)
    if kind is Pool.LINEAR:
        root = xp.sqrt(xp.reshape(targets, (-1,))) / pooled
        scaled = rows * root if memory is None else np.multiply(rows, root, out=memory)
    else:
        phi = xp.exp(pooled)
        mass = xp.sum(targets, axis=1, keepdims=True)
        by_item = xp.reshape(rows, (rows.shape[0], *targets.shape))
        centred = by_item - xp.sum(by_item * phi, axis=2, keepdims=True)
        scaled = xp.reshape(centred * xp.sqrt(mass * phi), (rows.shape[0], -1))
    return scaled @ scaled.T


@dataclass(frozen=True, eq=False)
class Curvature(Additive):
    """A cross-entropy at one v, summed over items in float64. ``a + b`` joins two shards."""

    items: int  # n, the number of items
    value: Array  # []
    gradient: Array  # [K]
    hessian: Array  # [K, K]

    def select(self, members: Array) -> Curvature:
        """Of these members (positions), in this order; they must hold all weight."""
        hessian = self.hessian[members, :][:, members]
        return Curvature(self.items, self.value, self.gradient[members], hessian)


def w1_curvature(P: Array, q: Array, v: Array, steps: Array, smoothing: float) -> Curvature:
    """Smoothed Wasserstein-1 of the pool of P [N, K, C] under v [K], gradient and Hessian."""
    xp, (items, members, classes) = namespace(P), P.shape
    v, steps = double(v), like(steps, P)
    total = [like(np.zeros(shape), P) for shape in ((), (members,), (members, members))]
    for s in slices(items, max(1, _BLOCK // (members * classes))):
        rows = xp.permute_dims(cumulative(P[s, ...]), (1, 0, 2))
        arguments = (
            v,
            xp.reshape(rows, (members, -1)),
            xp.reshape(cumulative(q[s, ...]), (-1,)),
            steps,
        )
        sums = *smooth_w1(*arguments, smoothing), w1_hessian(*arguments, smoothing)
        total = [a + b for a, b in zip(total, sums, strict=True)]
    return Curvature(int(items), *total)


def curvature_sums(
    P: Array, q: Array, v: Array, alpha: Array | None = None, pool: Pool | str = Pool.LINEAR
) -> Curvature:
    """Cross-entropy of the pool of P [N, K, C] under v [K] with its gradient and Hessian.

    q are the soft labels [N, C], ``alpha`` the class weights [C] or None.
    """
    items, members, classes = P.shape
    kind, on_numpy = Pool(pool), isinstance(P, np.ndarray)
    v = double(v)
    total = [like(np.zeros(shape), P) for shape in ((), (members,), (members, members))]
    step = max(1, min(items, (_CACHED if on_numpy else _BLOCK) // (members * classes)))
    # Fresh memory for every block would cost more than what is done in it.
    memory = np.empty((2, members, step * classes)) if on_numpy else None
    for s in slices(items, step):
        length = (s.stop - s.start) * classes
        out = scaled = None
        if memory is not None:
            out, scaled = memory if length == memory.shape[2] else np.empty((2, members, length))
        rows = member_rows(P[s, ...], out)
        targets = double(q[s, ...]) if alpha is None else double(q[s, ...]) * double(alpha)
        if kind is Pool.LOG:
            rows = log_probabilities(rows)
        pooled = pool_rows(v, rows, targets, kind)
        value, gradient = pool_ce(rows, targets, pooled, kind)
        hessian = pool_hessian(rows, targets, pooled, kind, scaled)
        total = [a + b for a, b in zip(total, (value, gradient, hessian), strict=True)]
    return Curvature(int(items), *total)
