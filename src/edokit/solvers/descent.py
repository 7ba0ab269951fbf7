"""Gradient descent on weights and size logits, for S seeds with R configurations each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from edokit.objective import CE, EPSILON, Pool
from edokit.solvers.adam import Adam
from edokit.solvers.batches import Batches, Block
from edokit.solvers.draws import Draws

Floats: TypeAlias = NDArray[np.float64]

# As in effective_weights: members further below the best are lifted to exp(-600), still positive.
_LOWEST_LOGIT = -600.0


@dataclass(frozen=True, eq=False)
class Columns:
    """What differs between configurations, each [S, R, 1]."""

    lambda_f1: Floats
    lambda_ce: Floats
    lambda_div: Floats
    """With the sign s."""
    lambda_reg: Floats
    on_raw: Floats
    """1 where the squared norm is of the raw weights w, 0 where of v."""
    learning_rate: Floats
    temperature: Floats
    temperature_decay: Floats
    min_temperature: Floats

    def temperature_in(self, epoch: int) -> Floats:
        """[S, R, 1] temperature of the Gumbel-Softmax, epochs counted from 0."""
        cooled = self.temperature * np.exp(-self.temperature_decay * epoch)
        return np.maximum(self.min_temperature, cooled)  # T_e


@dataclass(frozen=True, eq=False)
class Path:
    """The parameters after each epoch, and the temperature in it."""

    theta: Floats
    """[E, S, R, K]"""
    pi: Floats
    """[E, S, R, M]"""
    temperature: Floats
    """[E, S, R, 1]"""


def descend(
    batches: Batches,
    draws: Sequence[Draws],
    columns: Columns,
    *,
    members: int,
    min_members: int,
    epochs: int,
    ce: CE,
    pool: Pool,
) -> Path:
    """Learn weights of ``members`` members and a size between ``min_members`` and all of them."""
    seeds, rows, _ = columns.learning_rate.shape
    sizes = members - min_members + 1
    steps = _Steps(columns, members, min_members, ce, pool)
    temperatures = np.stack([columns.temperature_in(epoch) for epoch in range(epochs)])
    parameters = np.zeros((seeds, rows, members + sizes))  # θ, then π
    adam = Adam(parameters, columns.learning_rate)
    after = np.empty((epochs, *parameters.shape))
    for epoch, temperature in enumerate(temperatures):
        for block in batches.epoch(draws, sizes):
            for b in range(len(block.factors)):
                adam.step(steps.gradient(parameters, block, b, temperature))
        after[epoch] = parameters
    return Path(after[..., :members], after[..., members:], temperatures)


class _Steps:
    """The gradient of one mini-batch's loss in θ and π.

    The formulas are those of ``joint_loss``, ``effective_weights_vjp`` and ``softmax_vjp``, put
    together so that a step takes few array operations: at this size their number is the time.
    """

    def __init__(
        self, columns: Columns, members: int, min_members: int, ce: CE, pool: Pool
    ) -> None:
        self._columns = columns
        self._members = members
        self._ce = ce
        self._pool = pool
        self._minus_lambda_ce = -columns.lambda_ce
        self._twice_div = 2.0 * columns.lambda_div
        self._twice_reg = 2.0 * columns.lambda_reg * (1.0 - columns.on_raw)
        self._twice_raw = 2.0 * columns.lambda_reg * columns.on_raw
        self._any_raw = bool(columns.on_raw.any())
        kept = np.tri(members)[min_members - 1 :]
        self._kept = kept  # [M, K] 1 where a size keeps a member
        self._kept_by = np.ascontiguousarray(kept.T)
        self._left = np.empty((0, 0, 0))

    def gradient(self, parameters: Floats, block: Block, b: int, temperature: Floats) -> Floats:
        """[S, R, K + M] at ``parameters``, for step b of the block."""
        members = self._members
        theta, pi = parameters[..., :members], parameters[..., members:]
        w = theta - theta.max(axis=-1, keepdims=True)
        np.maximum(w, _LOWEST_LOGIT, out=w)
        np.exp(w, out=w)  # not normalised: only ratios of w enter v
        sizes = (pi + block.size_noise[b]) / temperature  # z / T_e
        sizes -= sizes.max(axis=-1, keepdims=True)
        np.exp(sizes, out=sizes)
        sizes /= sizes.sum(axis=-1, keepdims=True)  # k̃
        sums = w @ self._kept_by
        shares = sizes / sums
        v = w * (shares @ self._kept)
        in_v = self._in_v(v, block, b, temperature)
        means = (w * in_v) @ self._kept_by
        means /= sums
        gradient = np.empty_like(parameters)
        in_theta, in_pi = gradient[..., :members], gradient[..., members:]
        shares *= means
        np.multiply(v, in_v, out=in_theta)
        in_theta -= w * (shares @ self._kept)
        np.multiply(sizes, means, out=in_pi)
        in_pi -= sizes * in_pi.sum(axis=-1, keepdims=True)
        in_pi /= temperature
        if self._any_raw:
            w /= w.sum(axis=-1, keepdims=True)
            square = w * w
            in_theta += self._twice_raw * (square - w * square.sum(axis=-1, keepdims=True))
        return gradient

    def _in_v(self, v: Floats, block: Block, b: int, temperature: Floats) -> Floats:
        """[S, R, K] gradient in v."""
        members, factors = self._members, block.factors[b]
        left = self._left_side(v.shape[:2], factors.shape[1])
        np.multiply(v, self._twice_div, out=left[..., :members])
        if self._ce is CE.MEAN:
            self._pooled(v, block, b, out=left[..., members + 1 :])
        in_v: Floats = left @ factors
        in_v += self._twice_reg * v
        if block.losses is not None and block.member_noise is not None:
            drawn = _drawn(v, block.losses[b], block.member_noise[b], temperature)
            in_v += self._columns.lambda_ce * drawn
        return in_v

    def _left_side(self, batch: tuple[int, ...], length: int) -> Floats:
        """[S, R, F] what a step's factors are multiplied with; its constant columns are set."""
        if self._left.shape != (*batch, length):
            self._left = np.empty((*batch, length))
            self._left[..., self._members] = -self._columns.lambda_f1[..., 0]
            if self._ce is CE.ALL:
                self._left[..., self._members + 1] = self._columns.lambda_ce[..., 0]
        return self._left

    def _pooled(self, v: Floats, block: Block, b: int, out: Floats) -> None:
        """λ_CE times the slope of the pool's cross-entropy in what is pooled, [S, R, n·C]."""
        targets = block.targets[b]
        rows = block.factors[b][:, self._members + 1 :]
        pooled: Floats = v @ rows.swapaxes(-1, -2)
        by_item = pooled.reshape(*pooled.shape[:2], *targets.shape[2:])
        if self._pool is Pool.LOG:
            by_item -= by_item.max(axis=-1, keepdims=True)
            np.exp(by_item, out=by_item)
            by_item *= targets.sum(axis=-1, keepdims=True) / by_item.sum(axis=-1, keepdims=True)
            np.subtract(targets, by_item, out=by_item)
        else:
            by_item += EPSILON
            np.divide(targets, by_item, out=by_item)
        np.multiply(pooled, self._minus_lambda_ce, out=out)


def _drawn(v: Floats, losses: Floats, noise: Floats, temperature: Floats) -> Floats:
    """[S, R, K] straight-through slope of the loss of one member drawn per item; see ce_random.

    Members come first, in losses and noise [K, S, 1, n] too: sums over them are then fast.
    """
    likely = v + EPSILON
    soft = np.moveaxis(np.log(likely), -1, 0)[..., None] + noise
    soft /= temperature
    soft -= soft.max(axis=0)
    np.exp(soft, out=soft)
    soft /= soft.sum(axis=0)
    lost = soft * losses
    soft *= lost.sum(axis=0)
    lost -= soft
    slope: Floats = np.moveaxis(lost.sum(axis=-1), 0, -1) / likely
    slope /= temperature
    return slope
