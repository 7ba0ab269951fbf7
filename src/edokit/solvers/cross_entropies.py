"""The two kinds of cross-entropy that need the items of a mini-batch, and their slopes."""

from __future__ import annotations

import numpy as np

from edokit._types import Floats
from edokit.objective import EPSILON, Pool
from edokit.solvers.batches import Block

# Below this temperature the powers of a draw leave the range of numbers; scores stay in it.
_COLD = 0.05


class Pooled:
    """λ_CE times the cross-entropy of the pool, for the first configurations of each seed."""

    def __init__(self, lambda_ce: Floats, count: int, pool: Pool) -> None:
        """Of ``lambda_ce`` [S, R, 1] the first ``count`` of each seed."""
        self._minus = -lambda_ce[:, :count]
        self._count, self._pool = count, pool
        self._rows: Floats
        self._targets: Floats
        self._wanted: Floats

    def lay_out(self, block: Block, part: slice) -> None:
        """Get ready for some steps of a block."""
        assert block.rows is not None
        self._rows = block.rows[part]
        self._targets = block.targets[part]
        flat = self._targets.reshape(*self._targets.shape[:3], -1)
        self._wanted = flat * self._minus

    def add_slope(self, v: Floats, slopes: Floats, b: int) -> None:
        """Add the gradient in v [S, R, K] to ``slopes``, for step b of those laid out."""
        count, rows = self._count, self._rows[b]
        if len(v) == 1 and self._pool is Pool.LINEAR:
            # One seed: plain matrices are faster than stacks of them.
            pooled = np.dot(v[0, :count], rows[0].T)
            np.divide(self._wanted[b, 0], pooled, out=pooled)
            slopes[0, :count] += np.dot(pooled, rows[0])
            return
        pooled = v[:, :count] @ rows.swapaxes(-1, -2)
        if self._pool is Pool.LINEAR:
            np.divide(self._wanted[b], pooled, out=pooled)
        else:
            pooled = self._apart(pooled, b)
        slopes[:, :count] += pooled @ rows

    def _apart(self, scores: Floats, b: int) -> Floats:
        """−λ_CE (q − φ Σ q) [S, R, n·C] of a log pool with these scores."""
        targets = self._targets[b]
        phi = scores.reshape(*scores.shape[:2], *targets.shape[2:])
        phi -= phi.max(axis=-1, keepdims=True)
        np.exp(phi, out=phi)
        phi *= targets.sum(axis=-1, keepdims=True) / phi.sum(axis=-1, keepdims=True)
        np.subtract(targets, phi, out=phi)
        phi *= self._minus[..., None]
        return phi.reshape(scores.shape)


class Drawn:
    """λ_CE times the loss of one member drawn per item, for the last configurations of each seed.

    The slope is the straight-through one of ``ce_random``.
    """

    def __init__(self, lambda_ce: Floats, count: int) -> None:
        """Of ``lambda_ce`` [S, R, 1] the last ``count`` of each seed."""
        self._lambda_ce = lambda_ce[:, -count:]
        self._count = count
        self._temperature: Floats
        self._scale: Floats
        self._powers: Floats
        self._noise: Floats
        self._losses: Floats
        self._cold = False

    def lay_out(self, block: Block, part: slice, temperature: Floats) -> None:
        """Get ready for some steps of a block, at this temperature [S, R, 1]."""
        assert block.member_noise is not None
        assert block.losses is not None
        self._noise, self._losses = block.member_noise[part], block.losses[part]
        # Whole arrays, since those that broadcast take three times as long.
        whole = np.ones(self._noise.shape[-1])
        self._temperature = temperature[:, -self._count :] * whole
        self._scale = self._lambda_ce / self._temperature
        self._cold = bool(self._temperature.min() < _COLD)
        if self._cold:
            return
        # e^{(ln v + g) / T} = v^{1/T} · e^{g/T}, and the second factor is known beforehand: [B, S,
        # R, 2n, K], first alone, then times the losses.
        steps, seeds, _, items, members = self._noise.shape
        powers = np.empty((steps, seeds, self._count, 2 * items, members))
        alone = powers[..., :items, :]
        np.divide(self._noise, self._temperature[:, :, None], out=alone)
        np.exp(alone, out=alone)
        np.multiply(alone, self._losses, out=powers[..., items:, :])
        self._powers = powers

    def add_slope(self, v: Floats, slopes: Floats, b: int) -> None:
        """Add the gradient in v [S, R, K] to ``slopes``, for step b of those laid out."""
        likely = v[:, -self._count :] + EPSILON
        scores = np.log(likely)
        scores /= self._temperature
        slope = self._by_scores(scores, b) if self._cold else self._by_powers(scores, b)
        slope *= self._scale
        slope /= likely
        slopes[:, -self._count :] += slope

    def _by_powers(self, scores: Floats, b: int) -> Floats:
        """[S, R, K] Σ_i share_ik (loss_ik − Σ_l share_il loss_il), the shares being softmaxes."""
        powers = self._powers[b]
        items = powers.shape[-2] // 2
        raised = np.exp(scores, out=scores)
        totals = (powers @ raised[..., None])[..., 0]
        factors = np.empty_like(totals)
        alone, lost = totals[..., :items], totals[..., items:]
        inverse = np.divide(1.0, alone, out=factors[..., items:])
        lost *= inverse
        lost *= inverse
        np.negative(lost, out=factors[..., :items])
        slope: Floats = (factors[..., None, :] @ powers)[..., 0, :]
        slope *= raised
        return slope

    def _by_scores(self, scores: Floats, b: int) -> Floats:
        """The same, safe at any temperature."""
        shares = self._noise[b] / self._temperature[:, :, None] + scores[:, :, None]
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        lost = shares * self._losses[b]
        shares *= lost.sum(axis=-1, keepdims=True)
        lost -= shares
        slope: Floats = lost.sum(axis=-2)
        return slope
