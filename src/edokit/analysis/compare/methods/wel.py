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
from edokit.analysis.compare.method import VotingPool, register_method
from edokit.annotations.core import Ties
from edokit.metrics.formulas import CLIP

Parts = npt.NDArray[np.floating]
TERMS = ("alpha", "beta", "gamma", "mu")
CROSSING = 0.7
MUTATION = (0.5, 1.0)
TOLERANCE = 1e-6
COLUMNS = 512


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

        from edokit.analysis.search.storage import quiet

        with quiet():
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self.random_state))
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
    """The published loss of many weights and sizes at once: [S, K + 1] in, [S] out."""

    # Single precision halves the time of millions of evaluations and is exact enough to rank.
    precision: type[np.floating] = np.float32

    def __init__(self, P: Floats, q: Floats, y: Codes, parts: list[float], squash: bool) -> None:
        self.parts, self.squash = parts, squash
        self.items, members, classes = P.shape
        rows = np.maximum(P, CLIP).transpose(1, 0, 2).reshape(members, -1)  # [K, N·C]
        self.rows, self.targets = rows.astype(self.precision), q.ravel().astype(self.precision)
        # Items with the same label and votes are one: [U, 1 + K].
        ballots = np.column_stack([y, P.argmax(axis=2)])
        ballots, counts = np.unique(ballots, axis=0, return_counts=True)
        # Votes [C, K, U] for the right class, then for the others; of two classes only the first.
        turned = (ballots[:, :1] + np.arange(classes if classes > 2 else 1)) % classes
        self.votes = (
            (ballots[:, 1:, None] == turned[:, None]).transpose(2, 1, 0).astype(self.precision)
        )
        self.counts = counts.astype(self.precision)

    def __call__(self, points: Floats) -> Floats:
        alpha, beta, gamma, mu = self.parts
        weights = _weights(points)
        norms = np.sqrt(np.einsum("sk,sk->s", weights, weights))
        ce, md = self.distances(weights)
        if self.squash:
            ce = 1.0 / (1.0 + np.exp(-ce))
        lost = self.lost_votes(weights)
        total: Floats = alpha * (lost - 1.0) + beta * ce + gamma * md + mu * norms
        return total

    def lost_votes(self, weights: Floats) -> Floats:
        """The share [S] of items that the vote under weights [S, K] is wrong about."""
        right, *wrong = weights.astype(self.precision) @ self.votes
        lead = right - (np.maximum.reduce(wrong) if wrong else 1 - right)
        lost: Floats = (lead <= 0).astype(self.precision) @ self.counts / self.items
        return lost

    def distances(self, weights: Floats) -> tuple[Floats, Floats]:
        """CE and MD of the mean under weights [S, K]: [S] each."""
        ce, md = np.zeros((2, len(weights)))
        single = weights.astype(self.precision)
        for start in range(0, len(self.targets), COLUMNS):
            targets = self.targets[start : start + COLUMNS]
            mean = single @ self.rows[:, start : start + COLUMNS]
            md += np.abs(mean - targets).sum(axis=1)
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
    loss: Callable[[Floats], Floats],
    low: Floats,
    high: Floats,
    rng: np.random.Generator,
    *,
    generations: int = 100,
    population: int = 15,
) -> tuple[Floats, float]:
    """The best point [D] found between ``low`` and ``high`` [D], and its loss.

    Differential evolution, a whole generation per call of ``loss``, which maps points [S, D] to
    [S]. As ``scipy.optimize.differential_evolution`` with ``strategy="best1bin"`` and its defaults,
    without the final polish. There are ``population`` points per dimension. It ends early when the
    losses of a generation differ by less than ``TOLERANCE`` of their mean.
    """
    dimensions = len(low)
    count = max(5, population * dimensions)
    # Points live in the unit box.
    points = rng.random((count, dimensions))
    losses = loss(low + points * (high - low))
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
        results = loss(low + tried * (high - low))
        better = results <= losses
        points[better], losses[better] = tried[better], results[better]
        if losses.std() <= TOLERANCE * abs(losses.mean()):
            break
    winner = losses.argmin()
    return low + points[winner] * (high - low), float(losses[winner])
