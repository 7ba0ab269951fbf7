"""Weak Ensemble Learning (WEL), the paper's predecessor, and its differential evolution.

As its authors' code does it: differential evolution over member weights in [0, 1] and a size
(members are in random order, the first ones are kept) minimises
−α·F1 + β·sigmoid(CE) + γ·MD + μ·‖w‖₂; Optuna draws α, β, γ and μ from [10⁻⁶, 1] on a log scale,
fifty times, and the lowest loss wins. The hard label is a weighted vote of the members' hard
labels. Since the loss itself is compared between trials, and α = 1 with the other three near 0 is
the lowest of all, what is chosen is in effect F1 alone.

Two things differ. There, the random order is drawn anew at every evaluation, so that the resulting
weights were never evaluated on the members they are used for; here it is drawn once per trial. And
the result is not polished by a gradient method, which has nothing to go by on F1's steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._types import Codes, Floats
from edokit.annotations import Ties
from edokit.baselines.methods import VotingPool, register_method
from edokit.metrics._arrays import CLIP

Parts = npt.NDArray[np.floating]
TERMS = ("alpha", "beta", "gamma", "mu")
CROSSING = 0.7
MUTATION = (0.5, 1.0)
CLOSE, COLUMNS = 128, 512
TANGENTS = 8
# Far above the rounding of single precision: which points win doesn't depend on the bound.
SLACK = 2e-6


@register_method("wel", "Weak Ensemble Learning as published", order=40, slow=True)
class WEL(VotingPool):
    """Differential evolution within an Optuna search, on the published loss."""

    squash = True  # the loss holds sigmoid(CE) instead of the CE, as published

    def __init__(
        self,
        *,
        trials: int = 50,
        generations: int = 100,
        population: int = 15,
        random_state: int = 0,
        ties: Ties = "first",
    ) -> None:
        super().__init__(random_state=random_state, ties=ties)
        self.trials = trials
        self.generations = generations
        self.population = population

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        members = P.shape[1]
        if members == 1:
            return np.ones(1)
        import optuna
        from threadpoolctl import threadpool_limits

        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self.random_state))
        finally:
            optuna.logging.set_verbosity(before)
        # Its products are small: threads would wait for one another.
        with threadpool_limits(1):
            return self._search(study, P, q, y)

    def _search(self, study: Any, P: Floats, q: Floats, y: Codes) -> Floats:
        """The weights of the best trial."""
        members = P.shape[1]
        best, lowest = np.full(members, 1.0 / members), np.inf
        for number in range(self.trials):
            trial = study.ask()
            parts = [trial.suggest_float(name, 1e-6, 1.0, log=True) for name in TERMS]
            order = np.random.default_rng([self.random_state, number]).permutation(members)
            loss = _Loss(P[:, order], q, y, parts, self.squash)
            point, value = evolve(
                loss,
                np.append(np.zeros(members), 1.0),
                np.append(np.ones(members), float(members)),
                np.random.default_rng([self.random_state, number, 1]),
                generations=self.generations,
                population=self.population,
            )
            weights = _weights(point[None, :])[0]
            study.tell(trial, value)
            score = self.criterion(loss, weights, value)
            if score < lowest:
                best, lowest = np.zeros(members), score
                best[order] = weights
        return best

    def criterion(self, loss: _Loss, weights: Floats, value: float) -> float:
        """What the trials are compared by: the loss, whatever the weights of its terms."""
        return value


@register_method(
    "wel-ce", "WEL with the CE itself in the loss and in the choice", order=50, slow=True
)
class WELCE(WEL):
    """The loss holds the CE itself, and the trial with the lowest CE on dev wins."""

    squash = False

    def criterion(self, loss: _Loss, weights: Floats, value: float) -> float:
        return float(loss.distances(weights[None, :])[0][0])


class _Loss:
    """The published loss of many weights and sizes at once: [S, K + 1] in, [S] out.

    Most points of an evolution are not better than what they would replace, and to know that takes
    little. CE and MD are convex, so neither is below its tangents at earlier weights. And votes
    that are clear at the best weights so far stay as they are under similar ones.
    """

    # Single precision halves the time of millions of evaluations and is exact enough to rank.
    precision: type[np.floating] = np.float32

    def __init__(self, P: Floats, q: Floats, y: Codes, parts: list[float], squash: bool) -> None:
        self.parts, self.squash = parts, squash
        self.items, members, classes = P.shape
        # Clipped here, every mean is at least as large, and the CE convex. [K, N·C].
        rows = np.maximum(P, CLIP).transpose(1, 0, 2).reshape(members, -1)
        self.rows, self.targets = rows.astype(self.precision), q.ravel().astype(self.precision)
        # Items with the same label and votes are one: [U, 1 + K].
        ballots = np.column_stack([y, P.argmax(axis=2)])
        ballots, counts = np.unique(ballots, axis=0, return_counts=True)
        # Votes [C, K, U] for the right class, then for the others; of two classes only the first.
        turned = (ballots[:, :1] + np.arange(classes if classes > 2 else 1)) % classes
        self.votes = (
            (ballots[:, 1:, None] == turned[:, None]).transpose(2, 1, 0).astype(self.precision)
        )
        self.counts = counts / self.precision(self.items)
        self.floors = np.zeros((2, 0, members))
        self.weights, self.lowest = np.full((1, members), np.nan), np.inf
        self.look_from(np.full(members, 1.0 / members))

    def __call__(self, points: Floats, limits: Floats) -> Floats:
        """Losses [S]; infinite where they are above ``limits`` [S], the losses so far."""
        weights = _weights(points)
        norms = np.sqrt(np.einsum("sk,sk->s", weights, weights))
        floors = self.floors.reshape(-1, weights.shape[1]) @ weights.T
        ce, md = floors.reshape(2, -1, len(weights)).max(axis=1)
        room = limits - self.total(0.0, ce, md, norms) + SLACK * sum(self.parts)
        lost = self.lost_votes(weights, room / self.parts[0])
        # Other sizes and points may mean the same weights: as good, whatever the rounding.
        is_same = (weights == self.weights).all(axis=1)
        losses = np.where(is_same, limits, np.inf)
        remaining = np.flatnonzero((self.parts[0] * lost <= room) & ~is_same)
        losses[remaining] = self.total(
            lost[remaining], *self.distances(weights[remaining]), norms[remaining]
        )
        self.weights = np.where((losses <= limits)[:, None], weights, self.weights)
        best = int(losses.argmin())
        if losses[best] < self.lowest:
            self.lowest = losses[best]
            self.look_from(weights[best])
        return losses

    def total(self, lost: Floats | float, ce: Floats, md: Floats, norms: Floats) -> Floats:
        """The loss, where the share ``lost`` of the votes is wrong: 1 − F1."""
        alpha, beta, gamma, mu = self.parts
        if self.squash:
            ce = 1.0 / (1.0 + np.exp(-ce))
        total: Floats = alpha * (lost - 1.0) + beta * ce + gamma * md + mu * norms
        return total

    def look_from(self, weights: Floats) -> None:
        """Bounds from these weights: tangents, and the votes in order of how close they are."""
        self.center = weights
        mean = weights @ self.rows
        signs = np.sign(mean - self.targets)
        # Since weights sum to one, weights @ this [K, 2] are CE and MD here, and below elsewhere.
        ce = self.targets @ (1.0 - np.log(mean)) - self.rows @ (self.targets / mean)
        md = self.rows @ signs - self.targets @ signs
        newest = np.stack([ce, md])[:, None] / self.items
        self.floors = np.concatenate([self.floors[:, 1 - TANGENTS :], newest], axis=1)
        lead = self.lead(weights.astype(self.precision), self.votes)
        order = np.argsort(np.abs(lead))
        self.votes, self.counts, lead = self.votes[:, :, order], self.counts[order], lead[order]
        starts = np.arange(0, len(lead), CLOSE)
        self.clear = np.abs(lead[starts])
        wrong = np.add.reduceat(self.counts * (lead <= 0), starts)
        self.wrong = np.append(np.cumsum(wrong[::-1])[::-1], 0.0)

    def lead(self, weights: Parts, votes: Parts) -> Parts:
        """By how much the right class is ahead of the strongest other."""
        right, *wrong = weights @ votes
        lead: Parts = right - (np.maximum.reduce(wrong) if wrong else 1 - right)
        return lead

    def lost_votes(self, weights: Floats, most: Floats) -> Floats:
        """The share [S] of items that the vote under weights [S, K] is wrong about; where it is
        above ``most`` [S], at least that."""
        # Moving weights of L1 norm r from some members to others moves no lead by more than r.
        reach = np.abs(weights - self.center).sum(axis=1) + SLACK
        blocks = np.searchsorted(self.clear, reach)
        lost: Floats = self.wrong[blocks]
        looked = np.flatnonzero((blocks > 0) & (lost <= most))
        single = self.used(weights[looked])
        for number in range(blocks.max()):
            columns = slice(number * CLOSE, (number + 1) * CLOSE)
            lead = self.lead(single, self.votes[:, : single.shape[1], columns])
            lost[looked] += (lead <= 0).astype(self.precision) @ self.counts[columns]
            on = (blocks[looked] > number + 1) & (lost[looked] <= most[looked])
            looked, single = looked[on], single[on]
        return lost

    def used(self, weights: Floats) -> Parts:
        """Weights [S, K] without the members at the end that none of them uses."""
        columns = np.flatnonzero(weights.any(axis=0))
        return weights[:, : columns[-1] + 1 if len(columns) else 0].astype(self.precision)

    def distances(self, weights: Floats) -> tuple[Floats, Floats]:
        """CE and MD of the mean under weights [S, K]: [S] each."""
        ce, md = np.zeros((2, len(weights)))
        single, ones = self.used(weights), np.ones(COLUMNS, dtype=self.precision)
        for start in range(0, len(self.targets) if len(weights) else 0, COLUMNS):
            targets = self.targets[start : start + COLUMNS]
            mean = single @ self.rows[: single.shape[1], start : start + COLUMNS]
            differences = mean - targets
            md += np.abs(differences, out=differences) @ ones[: len(targets)]
            ce -= np.log(mean, out=mean) @ targets
        return ce / self.items, md / self.items


def _weights(points: Floats) -> Floats:
    """Weights [S, K] on the simplex from points [S, K + 1]: the first ``size`` members share."""
    raw, members = points[:, :-1], points.shape[1] - 1
    size = np.clip(np.round(points[:, -1:]), 1, members)
    inside = np.arange(members) < size
    shared: Floats = raw * inside
    nothing = ~shared.any(axis=1)
    shared[nothing] = inside[nothing]
    shared /= shared.sum(axis=1, keepdims=True)
    return shared


def evolve(
    loss: Callable[[Floats, Floats], Floats],
    low: Floats,
    high: Floats,
    rng: np.random.Generator,
    *,
    generations: int = 100,
    population: int = 15,
    tolerance: float = 1e-6,
) -> tuple[Floats, float]:
    """The best point [D] found between ``low`` and ``high`` [D], and its loss.

    Differential evolution, a whole generation per call of ``loss``, which maps points [S, D] to
    [S]; of a point above its limit [S], the second argument, any number above it will do. As
    ``scipy.optimize.differential_evolution`` with ``strategy="best1bin"`` and its defaults,
    without the final polish. There are ``population`` points per dimension. It ends early when the
    losses of a generation differ by less than ``tolerance`` of their mean.
    """
    dimensions = len(low)
    count = max(5, population * dimensions)
    # Points live in the unit box.
    points = rng.random((count, dimensions))
    losses = loss(low + points * (high - low), np.full(count, np.inf))
    donors = np.empty_like(points)
    for _ in range(generations):
        best = points[losses.argmin()]
        # Two others for each point, all three different.
        rows = np.arange(count)
        partners = (rows + rng.integers(1, count, size=count)) % count
        second = rng.integers(count - 2, size=count)
        second += second >= np.minimum(rows, partners)
        second += second >= np.maximum(rows, partners)
        tried = points[partners]
        tried -= points[second]
        tried *= rng.uniform(*MUTATION)
        tried += best
        crossed = rng.random(out=donors) < CROSSING
        crossed[rows, rng.integers(dimensions, size=count)] = True
        tried = np.where(crossed, tried, points)
        outside = (tried < 0) | (tried > 1)
        np.place(tried, outside, rng.random(np.count_nonzero(outside)))
        results = loss(low + tried * (high - low), losses)
        better = results <= losses
        points[better], losses[better] = tried[better], results[better]
        if losses.std() <= tolerance * abs(losses.mean()):
            break
    winner = losses.argmin()
    return low + points[winner] * (high - low), float(losses[winner])
