"""Gradient descent on weights and size logits, for R configurations side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from edokit._types import Floats
from edokit.objective.loss import PoolTerm
from edokit.objective.pools import EPSILON, slices
from edokit.objective.summaries import Problem
from edokit.solvers.batches import Block

# As in `effective_weights`: logits of weights further below the highest one are raised to this
# distance from it, where their exponential is still positive.
_LOWEST_LOGIT = -600.0
# Logits closer to zero than this are exponentiated as they are: their exponentials, and products of
# two of these, stay in the range of numbers.
_TAME = 250.0
# Losses over items are prepared for several steps at once, with at most this many numbers.
_STEPS_BLOCK = 2**18
# β₁, Adam's decay rate of the running mean of the gradients.
_MEAN_DECAY = 0.9
# β₂, its decay rate of the running mean of their squares.
_SQUARE_DECAY = 0.999
# ε, which Adam adds to its denominator.
_TINY = 1e-8
# (1 − β₁) / √(1 − β₂): the factors 1 − β that `_move` leaves out of its running means. It is also
# how many learning rates one step can be at most.
_FURTHEST = (1 - _MEAN_DECAY) / math.sqrt(1 - _SQUARE_DECAY)
# Below this temperature the powers of a draw may leave the range of numbers; scores stay in it.
_COLD = 0.06


class Columns(NamedTuple):
    """What differs between R configurations; every array is [R, 1].

    Configurations are sorted by ``ce``: ``n_pooled`` of them with ``"mean"`` come first, those with
    ``"all"`` follow, and ``n_drawn`` with ``"random"`` are at the end.
    """

    n_pooled: int
    n_drawn: int
    lambdas: dict[str, Floats]  # λ of each term, that of div with the sign s
    learning_rate: Floats
    temperature: Floats
    temperature_decay: Floats
    min_temperature: Floats


def descend(
    epochs: Iterable[Iterable[Block]],
    columns: Columns,
    *,
    problem: Problem,
    terms: Mapping[str, PoolTerm],
    min_members: int,
) -> tuple[Floats, Floats, Floats]:
    """Learn weights of the problem's members and a size between ``min_members`` and all of them.

    ``terms`` are the pool terms that some configuration weighs. Returns θ [E, R, K] and
    π [E, R, M] after each epoch, and the temperature in it [E, R].
    """
    steps = _AdamSteps(columns, problem, terms, min_members)
    after = []
    for epoch, blocks in enumerate(epochs):
        cooled = columns.temperature * np.exp(-columns.temperature_decay * epoch)
        temperature = np.maximum(columns.min_temperature, cooled)  # T_e
        for block in blocks:
            for part in slices(len(block.linear), steps.at_a_time(block)):
                steps.take_steps(block, part, temperature)
        after.append((steps.theta.copy(), steps.pi.copy(), temperature.reshape(-1)))
    theta, pi, temperatures = map(np.stack, zip(*after, strict=True))
    return theta, pi, temperatures


class _AdamSteps:
    """Adam on θ [R, K] and π [R, M], which lie one after the other in one array.

    The formulas are those of ``joint_loss`` and of the gradient of its weights, written with few
    array operations: the arrays are so small that the number of operations determines the time. An
    operation on arrays of one shape takes a third of the time of one that broadcasts, so columns
    [R, 1] are repeated to full shape.
    """

    def __init__(
        self,
        columns: Columns,
        problem: Problem,
        terms: Mapping[str, PoolTerm],
        min_members: int,
    ) -> None:
        runs = len(columns.learning_rate)
        members = problem.members
        n_sizes = members - min_members + 1
        self._shape = (runs, members, n_sizes)
        self._parameters, self.theta, self.pi = self._array()
        rates, rates_of_theta, rates_of_pi = self._array()
        rates_of_theta[:] = columns.learning_rate
        rates_of_pi[:] = columns.learning_rate
        self._rates = rates
        self._taken = 0
        self._mean = np.zeros_like(rates)
        self._square = np.zeros_like(rates)
        self._largest_rate = float(rates.max())
        lambdas = columns.lambdas
        lambda_ce = lambdas["ce_weight"]
        self._twice_div = self._full(2.0 * lambdas["div"])
        self._twice_reg = self._full(2.0 * lambdas["reg"])
        # Factors of the linear terms: only with ce="all" do the members' own cross-entropies count.
        lambda_all = lambda_ce.copy()
        lambda_all[: columns.n_pooled] = 0.0
        lambda_all[runs - columns.n_drawn :] = 0.0
        self._linear = np.concatenate([-lambdas["f1"], lambda_all], axis=1)
        # Losses over items: each prepares some steps, then adds its slope at every one of them.
        self._item_losses: list[PooledLoss | DrawnLoss] = []
        for name, term in terms.items():
            if name == "ce_weight":
                count = columns.n_pooled
            else:
                count = runs
            self._item_losses.append(PooledLoss(name, term, lambdas[name], count))
        if columns.n_drawn:
            self._item_losses.append(DrawnLoss(lambda_ce, columns.n_drawn))
        # Numbers that a prepared step holds per configuration and item.
        if columns.n_drawn:
            self._per_item = 2 * members
        else:
            self._per_item = int(problem.targets.shape[1])
        # Other quadratic terms than div are of all items at every step.
        self._quadratic = [
            (self._full(2.0 * lambdas[term]), matrix)
            for term, matrix in problem.summaries.matrices.items()
            if term != "div" and lambdas[term].any()
        ]
        self._kept = np.tri(members)[min_members - 1 :]  # [M, K] 1 where a size keeps a member
        self._kept_by = np.ascontiguousarray(self._kept.T)
        # A product with this matrix of ones is the sum over sizes, repeated for each size.
        self._everything = np.ones((n_sizes, n_sizes))
        # 1 for θ and 1/T for π.
        self._colder, colder_theta, self._colder_pi = self._array()
        colder_theta.fill(1.0)
        # Buffers that every step overwrites. First the powers of both kinds of logits: w_k = e^θ_k,
        # and the size probabilities k̃_j once they are normalised.
        self._powers, self._w, self._sizes = self._array()
        self._sums = np.empty((runs, n_sizes))  # S_j = Σ_{l ≤ j} w_l
        self._shares = np.empty((runs, n_sizes))  # s_j = k̃_j / S_j
        self._from_w = np.empty((runs, members))  # f_k = Σ_{j ≥ k} s_j
        self._v = np.empty((runs, members))  # v_k = w_k · f_k
        self._slopes, self._in_theta, self._in_pi = self._array()  # the gradient in θ and π

    def _array(self) -> tuple[Floats, Floats, Floats]:
        """A flat array of zeros, and views of its parts for θ [R, K] and π [R, M]."""
        runs, members, n_sizes = self._shape
        array = np.zeros(runs * (members + n_sizes))
        middle = runs * members
        return array, array[:middle].reshape(runs, members), array[middle:].reshape(runs, n_sizes)

    def _full(self, column: Floats) -> Floats:
        """[R, 1] -> [R, K]"""
        return np.repeat(column, self._shape[1], axis=1)

    def at_a_time(self, block: Block) -> int:
        """How many steps of the block are prepared at once."""
        numbers = self._shape[0] * int(block.counts.max()) * self._per_item
        return max(1, _STEPS_BLOCK // int(numbers))

    def take_steps(self, block: Block, part: slice, temperature: Floats) -> None:
        """Take the steps ``part`` of a block, at this temperature [R, 1]."""
        self._colder_pi[:] = 1.0 / temperature
        noise = block.size_noise[part] / temperature
        # The softmax stays the same, and no noise is above zero, where it could overflow.
        noise -= noise.max(axis=-1, keepdims=True)
        linear = self._linear @ block.linear[part]
        distances = block.distances[part]
        for loss in self._item_losses:
            loss.lay_out(block, part, temperature)
        # How far from zero a logit can get during these steps, θ as it is and π divided by T.
        reach = _FURTHEST * self._largest_rate * len(noise)
        bounds = (np.abs(self._parameters) + reach) * self._colder
        wild = not float(bounds.max()) < _TAME  # true of NaN, too
        for b in range(len(noise)):
            v = self._weigh(noise[b], wild)
            in_v = self._in_v(v, distances[b], linear[b], b)
            gradient = self._gradient(in_v)
            self._move(gradient)

    def _weigh(self, noise: Floats, wild: bool) -> Floats:
        """[R, K] effective weights v, from θ and from π with this noise [R, M], divided by T.

        ``wild`` logits may be far from zero: they are shifted before they are exponentiated. What v
        is made of stays in its buffers, for the gradient.
        """
        w = self._w
        sizes = self._sizes
        shares = self._shares
        # For now, w and sizes hold logits: θ, and (π + noise) / T.
        np.multiply(self._parameters, self._colder, out=self._powers)
        sizes += noise
        if wild:
            w -= w.max(axis=-1, keepdims=True)
            np.maximum(w, _LOWEST_LOGIT, out=w)
            sizes -= sizes.max(axis=-1, keepdims=True)
        np.exp(self._powers, out=self._powers)  # w is not normalised: only its ratios enter v
        np.dot(w, self._kept_by, out=self._sums)
        np.dot(sizes, self._everything, out=shares)  # here the sum of the sizes' powers
        sizes /= shares  # k̃
        np.divide(sizes, self._sums, out=shares)
        np.dot(shares, self._kept, out=self._from_w)
        return np.multiply(w, self._from_w, out=self._v)

    def _in_v(self, v: Floats, distances: Floats, linear: Floats, b: int) -> Floats:
        """[R, K] gradient of the loss in v, at prepared step b."""
        in_v: Floats = np.dot(v * self._twice_div, distances)
        in_v += linear
        in_v += self._twice_reg * v
        for twice, matrix in self._quadratic:
            in_v += twice * np.dot(v, matrix)
        for loss in self._item_losses:
            loss.add_slope(v, in_v, b)
        return in_v

    def _gradient(self, in_v: Floats) -> Floats:
        """The gradient in θ and π, one after the other.

        With g the gradient in v and m_j = Σ_{l ≤ j} w_l g_l / S_j: in θ_k it is
        w_k (f_k g_k − Σ_{j ≥ k} s_j m_j), in π_j it is k̃_j (m_j − Σ_i k̃_i m_i) / T.
        """
        w = self._w
        sizes = self._sizes
        shares = self._shares
        in_theta = self._in_theta
        in_pi = self._in_pi
        np.multiply(w, in_v, out=in_theta)  # here w_l g_l
        means = np.dot(in_theta, self._kept_by)
        means /= self._sums  # m_j
        shares *= means  # now s_j m_j
        np.multiply(self._from_w, in_v, out=in_theta)
        in_theta -= np.dot(shares, self._kept)
        in_theta *= w
        np.multiply(sizes, means, out=in_pi)  # here k̃_j m_j
        means -= np.dot(in_pi, self._everything)  # now m_j − Σ_i k̃_i m_i
        np.multiply(sizes, means, out=in_pi)
        in_pi *= self._colder_pi
        return self._slopes

    def _move(self, gradient: Floats) -> None:
        """Take one step of Adam; the memory of the gradient is used for the step.

        The running means are kept without their factors 1 − β, which are applied at the end.
        """
        self._taken += 1
        mean = self._mean
        square = self._square
        mean *= _MEAN_DECAY
        mean += gradient
        squared_gradient = np.multiply(gradient, gradient, out=gradient)
        square *= _SQUARE_DECAY
        square += squared_gradient
        # Both running means start at zero; division by these removes that bias.
        mean_share = 1.0 - _MEAN_DECAY**self._taken
        square_share = math.sqrt(1.0 - _SQUARE_DECAY**self._taken)
        denominator = np.sqrt(square, out=gradient)
        denominator += _TINY * square_share / math.sqrt(1.0 - _SQUARE_DECAY)
        step = np.divide(mean, denominator, out=denominator)
        step *= self._rates
        step *= _FURTHEST * square_share / mean_share
        self._parameters -= step


class PooledLoss:
    """A pool term times its λ [R, 1], for the first ``count`` configurations."""

    def __init__(self, name: str, term: PoolTerm, lambdas: Floats, count: int) -> None:
        self._name = name
        self._term = term
        self._count = count
        self._lambdas = lambdas[:count, :, None]

    def lay_out(self, block: Block, part: slice, temperature: Floats) -> None:
        """Prepare what `add_slope` needs at the steps ``part`` of a block."""
        rows, targets = block.pooled[self._name]
        self._rows = rows[part]
        self._targets = targets[part]
        self._columns = self._rows.swapaxes(-1, -2)
        self._factors = self._lambdas / block.counts[part, None, None, None]

    def add_slope(self, v: Floats, slopes: Floats, b: int) -> None:
        """Add the gradient in v [R, K] to ``slopes``, at prepared step b."""
        targets = self._targets[b]
        pooled = v[: self._count] @ self._columns[b]  # [R, n·c]
        by_item = pooled.reshape(len(pooled), *targets.shape[1:])
        slope = self._term.slope(by_item, targets)
        slope *= self._factors[b]
        slopes[: self._count] += slope.reshape(pooled.shape) @ self._rows[b]


class DrawnLoss:
    """λ_CE [R, 1] times the loss of one member drawn per item.

    It belongs to the last ``count`` configurations, those with ``ce="random"``. The slope is the
    straight-through one of `DrawnMember`.
    """

    def __init__(self, lambda_ce: Floats, count: int) -> None:
        self._lambda_ce = lambda_ce[-count:]
        self._count = count

    def lay_out(self, block: Block, part: slice, temperature: Floats) -> None:
        """Prepare what `add_slope` needs at the steps ``part`` of a block, at this temperature."""
        assert block.member_noise is not None
        assert block.losses is not None
        self._noise = block.member_noise[part]
        self._losses = block.losses[part]
        steps, _, items, members = self._noise.shape
        temperature = temperature[-self._count :]
        self._temperature = np.repeat(temperature, members, axis=1)
        self._scale = self._lambda_ce / self._temperature
        self._cold = bool(temperature.min() < _COLD)
        if self._cold:
            return
        # With g the noise, e^{(ln v + g)/T} = v^{1/T}·e^{g/T}. The second factor does not depend on
        # v: it is computed here for all steps, alone and times the losses.
        self._powers = np.empty((2, steps, self._count, items, members))
        # Items and members are one axis here: operations on short axes take three times as long.
        powers, lost = self._powers.reshape(2, steps, self._count, -1)
        np.divide(self._noise.reshape(steps, 1, -1), temperature, out=powers)
        np.exp(powers, out=powers)
        np.multiply(powers, self._losses.reshape(steps, 1, -1), out=lost)

    def add_slope(self, v: Floats, slopes: Floats, b: int) -> None:
        """Add the gradient in v [R, K] to ``slopes``, at prepared step b."""
        shifted = v[-self._count :] + EPSILON
        scores = np.log(shifted)
        scores /= self._temperature
        if self._cold:
            slope = self._by_scores(scores, b)
        else:
            slope = self._by_powers(scores, b)
        slope *= self._scale
        slope /= shifted
        slopes[-self._count :] += slope

    def _by_powers(self, scores: Floats, b: int) -> Floats:
        """[R, K] Σ_i share_ik (loss_ik − Σ_l share_il loss_il), the shares being softmaxes."""
        powers = self._powers[:, b]
        raised = np.exp(scores, out=scores)  # v^{1/T}
        sums, lost = (powers @ raised[..., None])[..., 0]
        inverse = np.divide(1.0, sums, out=sums)
        lost *= inverse  # Σ_l share_il loss_il, the mean loss of item i
        lost *= inverse  # and the factor that turns the powers beside it, below, into shares
        slope: Floats = inverse[..., None, :] @ powers[1]
        slope -= lost[..., None, :] @ powers[0]
        return slope[..., 0, :] * raised

    def _by_scores(self, scores: Floats, b: int) -> Floats:
        """The same as `_by_powers`, from scores that stay in range at any temperature."""
        shares = self._noise[b] / self._temperature[:, None] + scores[:, None]
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        lost = shares * self._losses[b]
        shares *= lost.sum(axis=-1, keepdims=True)
        lost -= shares
        return np.asarray(lost.sum(axis=-2))
