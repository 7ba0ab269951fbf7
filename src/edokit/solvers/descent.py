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

# As in effective_weights: members further below the best are lifted to exp(-600), still positive.
_LOWEST_LOGIT = -600.0
# Logits below this need no care before they are exponentiated, and products of two neither.
_TAME = 250.0
# Numbers that are laid out for some steps at a time.
_STEPS_BLOCK = 2**18
# Adam's decay rates and its smallest denominator, and how many learning rates a step is at most.
_MEAN_DECAY = 0.9  # β₁
_SQUARE_DECAY = 0.999  # β₂
_TINY = 1e-8
_FURTHEST = (1 - _MEAN_DECAY) / math.sqrt(1 - _SQUARE_DECAY)


class Columns(NamedTuple):
    """What differs between configurations, each [R, 1].

    Configurations are sorted: ``n_pooled`` of them with ``ce="mean"``, those with ``"all"``, and at
    the end ``n_drawn`` with ``"random"``.
    """

    n_pooled: int
    n_drawn: int
    weights: dict[str, Floats]  # λ of each term, that of div with the sign s
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
    steps = _NewtonSteps(columns, problem, terms, min_members)
    after = []
    for epoch, blocks in enumerate(epochs):
        cooled = columns.temperature * np.exp(-columns.temperature_decay * epoch)
        temperature = np.maximum(columns.min_temperature, cooled)  # T_e
        for block in blocks:
            for part in slices(len(block.linear), steps.at_a_time(block)):
                steps.take(block, part, temperature)
        after.append((steps.theta.copy(), steps.pi.copy(), temperature.reshape(-1)))
    theta, pi, temperatures = map(np.stack, zip(*after, strict=True))
    return theta, pi, temperatures


class _NewtonSteps:
    """Adam on θ [R, K] and π [R, M], which lie one after the other in one array.

    The formulas are those of ``joint_loss`` and of the gradients of its weights, put together so
    that a step takes few array operations: at this size their number is the time, and operations on
    whole arrays of one shape take a third of the time of those that broadcast.
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
        sizes = members - min_members + 1
        self._shape = (runs, members, sizes)
        self._parameters, self.theta, self.pi = self._array()
        rates, rates_of_theta, rates_of_pi = self._array()
        rates_of_theta[:] = rates_of_pi[:] = columns.learning_rate
        self._rates = rates
        self._taken = 0
        self._mean = np.zeros_like(rates)
        self._square = np.zeros_like(rates)
        self._largest_rate = float(rates.max())
        weights = columns.weights
        self._twice_div = self._full(2.0 * weights["div"])
        self._twice_reg = self._full(2.0 * weights["reg"])
        # What the linear terms are multiplied with: −λ_F1, and λ_CE where the members' own count.
        lambda_ce = weights["ce_weight"]
        member_ce = lambda_ce.copy()
        member_ce[: columns.n_pooled] = member_ce[runs - columns.n_drawn :] = 0.0
        self._linear = np.concatenate([-weights["f1"], member_ce], axis=1)
        # Terms with items in them: each lays out some steps, then adds its slope.
        self._of_items: list[PooledLoss | Drawn] = [
            PooledLoss(name, term, weights[name], columns.n_pooled if name == "ce_weight" else runs)
            for name, term in terms.items()
        ]
        if columns.n_drawn:
            self._of_items.append(Drawn(lambda_ce, columns.n_drawn))
        self._per_item = 2 * members if columns.n_drawn else int(problem.targets.shape[1])
        # Other quadratic terms than div are of all items at every step.
        self._quadratic = [
            (self._full(2.0 * weights[term]), matrix)
            for term, matrix in problem.summaries.matrices.items()
            if term != "div" and weights[term].any()
        ]
        self._kept = np.tri(members)[min_members - 1 :]  # [M, K] 1 where a size keeps a member
        self._kept_by = np.ascontiguousarray(self._kept.T)
        self._everything = np.ones((sizes, sizes))  # a product with it is the sum, in each column
        # Memory that every step uses again.
        self._powers, self._w, self._sizes = self._array()
        self._slopes, self._in_theta, self._in_pi = self._array()
        self._colder, of_theta, self._colder_pi = self._array()
        of_theta.fill(1.0)
        self._sums = np.empty((runs, sizes))
        self._shares = np.empty((runs, sizes))
        self._from_w = np.empty((runs, members))
        self._v = np.empty((runs, members))

    def _array(self) -> tuple[Floats, Floats, Floats]:
        """An array, its part [R, K] and its part [R, M]."""
        runs, members, sizes = self._shape
        array = np.zeros(runs * (members + sizes))
        middle = runs * members
        return array, array[:middle].reshape(runs, members), array[middle:].reshape(runs, sizes)

    def _full(self, column: Floats) -> Floats:
        """[R, 1] -> [R, K]"""
        return np.repeat(column, self._shape[1], axis=1)

    def at_a_time(self, block: Block) -> int:
        numbers = self._shape[0] * int(block.counts.max()) * self._per_item
        return max(1, _STEPS_BLOCK // int(numbers))

    def take(self, block: Block, part: slice, temperature: Floats) -> None:
        """Take some steps of a block."""
        self._colder_pi[:] = 1.0 / temperature
        noise = block.size_noise[part] / temperature
        noise -= noise.max(axis=-1, keepdims=True)
        linear = self._linear @ block.linear[part]
        distances = block.distances[part]
        for term in self._of_items:
            term.lay_out(block, part, temperature)
        # Far from zero, logits are brought back before they are exponentiated.
        reach = _FURTHEST * self._largest_rate * len(noise)
        furthest = float(((np.abs(self._parameters) + reach) * self._colder).max())
        wild = not furthest < _TAME
        for b in range(len(noise)):
            v = self._weigh(noise[b], wild)
            self._move(self._gradient(self._in_v(v, distances[b], linear[b], b)))

    def _weigh(self, noise: Floats, wild: bool) -> Floats:
        """[R, K] effective weights v; their parts are left in place."""
        w = self._w
        sizes = self._sizes
        shares = self._shares
        np.multiply(self._parameters, self._colder, out=self._powers)
        sizes += noise
        if wild:
            w -= w.max(axis=-1, keepdims=True)
            np.maximum(w, _LOWEST_LOGIT, out=w)
            sizes -= sizes.max(axis=-1, keepdims=True)
        np.exp(self._powers, out=self._powers)  # w is not normalised: only its ratios enter v
        np.dot(w, self._kept_by, out=self._sums)
        np.dot(sizes, self._everything, out=shares)
        sizes /= shares  # k̃
        np.divide(sizes, self._sums, out=shares)
        np.dot(shares, self._kept, out=self._from_w)
        return np.multiply(w, self._from_w, out=self._v)

    def _in_v(self, v: Floats, distances: Floats, linear: Floats, b: int) -> Floats:
        """[R, K] gradient in v, for step b of those laid out."""
        in_v: Floats = np.dot(v * self._twice_div, distances)
        in_v += linear
        in_v += self._twice_reg * v
        for twice, matrix in self._quadratic:
            in_v += twice * np.dot(v, matrix)
        for term in self._of_items:
            term.add_slope(v, in_v, b)
        return in_v

    def _gradient(self, in_v: Floats) -> Floats:
        """The gradient in θ and π, one after the other."""
        w = self._w
        sizes = self._sizes
        shares = self._shares
        in_theta = self._in_theta
        in_pi = self._in_pi
        means = np.dot(np.multiply(w, in_v, out=in_theta), self._kept_by)
        means /= self._sums
        shares *= means
        np.multiply(self._from_w, in_v, out=in_theta)
        in_theta -= np.dot(shares, self._kept)
        in_theta *= w
        np.multiply(sizes, means, out=in_pi)
        means -= np.dot(in_pi, self._everything)
        np.multiply(sizes, means, out=in_pi)
        in_pi *= self._colder_pi
        return self._slopes

    def _move(self, gradient: Floats) -> None:
        """One step of Adam, which uses the gradient as scratch memory.

        The running means are kept without their factors 1 − β, which are applied at the end.
        """
        self._taken += 1
        mean = self._mean
        square = self._square
        mean *= _MEAN_DECAY
        mean += gradient
        np.multiply(gradient, gradient, out=gradient)
        square *= _SQUARE_DECAY
        square += gradient
        # Both averages start at zero; dividing by these takes that bias out again.
        mean_share = 1.0 - _MEAN_DECAY**self._taken
        square_share = math.sqrt(1.0 - _SQUARE_DECAY**self._taken)
        scale = np.sqrt(square, out=gradient)
        scale += _TINY * square_share / math.sqrt(1.0 - _SQUARE_DECAY)
        np.divide(mean, scale, out=scale)
        scale *= self._rates
        scale *= _FURTHEST * square_share / mean_share
        self._parameters -= scale


# Below this temperature the powers of a draw may leave the range of numbers; scores stay in it.
_COLD = 0.06


class PooledLoss:
    """A pool term times its weights [R, 1], for the first ``count`` configurations."""

    def __init__(self, name: str, term: PoolTerm, weights: Floats, count: int) -> None:
        self._name = name
        self._term = term
        self._count = count
        self._weights = weights[:count, :, None]

    def lay_out(self, block: Block, part: slice, temperature: Floats) -> None:
        """Get ready for some steps of a block."""
        rows, self._targets = (values[part] for values in block.pooled[self._name])
        self._rows = rows
        self._columns = rows.swapaxes(-1, -2)
        self._factors = self._weights / block.counts[part, None, None, None]

    def add_slope(self, v: Floats, slopes: Floats, b: int) -> None:
        """Add the gradient in v [R, K] to ``slopes``, for step b of those laid out."""
        targets = self._targets[b]
        pooled = v[: self._count] @ self._columns[b]
        slope = self._term.slope(pooled.reshape(len(pooled), *targets.shape[1:]), targets)
        slope *= self._factors[b]
        slopes[: self._count] += slope.reshape(pooled.shape) @ self._rows[b]


class Drawn:
    """λ_CE [R, 1] times the loss of one member drawn per item, for the last configurations.

    The slope is the straight-through one of ``ce_random``.
    """

    def __init__(self, lambda_ce: Floats, count: int) -> None:
        self._lambda_ce = lambda_ce[-count:]
        self._count = count

    def lay_out(self, block: Block, part: slice, temperature: Floats) -> None:
        """Get ready for some steps of a block, at this temperature [R, 1]."""
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
        # e^{(ln v + g) / T} = v^{1/T} · e^{g/T}, and the second factor is known beforehand: [2, B,
        # R, n, K], first alone, then times the losses. Long axes: short ones take three times as
        # long.
        self._powers = np.empty((2, steps, self._count, items, members))
        powers, lost = self._powers.reshape(2, steps, self._count, -1)
        np.divide(self._noise.reshape(steps, 1, -1), temperature, out=powers)
        np.exp(powers, out=powers)
        np.multiply(powers, self._losses.reshape(steps, 1, -1), out=lost)

    def add_slope(self, v: Floats, slopes: Floats, b: int) -> None:
        """Add the gradient in v [R, K] to ``slopes``, for step b of those laid out."""
        likely = v[-self._count :] + EPSILON
        scores = np.log(likely)
        scores /= self._temperature
        if self._cold:
            slope = self._by_scores(scores, b)
        else:
            slope = self._by_powers(scores, b)
        slope *= self._scale
        slope /= likely
        slopes[-self._count :] += slope

    def _by_powers(self, scores: Floats, b: int) -> Floats:
        """[R, K] Σ_i share_ik (loss_ik − Σ_l share_il loss_il), the shares being softmaxes."""
        powers = self._powers[:, b]
        raised = np.exp(scores, out=scores)
        sums, lost = (powers @ raised[..., None])[..., 0]
        inverse = np.divide(1.0, sums, out=sums)
        lost *= inverse
        lost *= inverse
        slope: Floats = inverse[..., None, :] @ powers[1]
        slope -= lost[..., None, :] @ powers[0]
        return slope[..., 0, :] * raised

    def _by_scores(self, scores: Floats, b: int) -> Floats:
        """The same, safe at any temperature."""
        shares = self._noise[b] / self._temperature[:, None] + scores[:, None]
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        lost = shares * self._losses[b]
        shares *= lost.sum(axis=-1, keepdims=True)
        lost -= shares
        return np.asarray(lost.sum(axis=-2))
