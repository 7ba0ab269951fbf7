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

import numpy as np
import numpy.typing as npt

from edokit._types import Codes, Floats
from edokit.annotations import Ties
from edokit.baselines.methods import VotingPool, register_method

Singles = npt.NDArray[np.float32]
TERMS = ("alpha", "beta", "gamma", "mu")
CROSSING = 0.7
MUTATION = (0.5, 1.0)


@register_method("wel", "Weak Ensemble Learning as published", order=40, slow=True)
class WEL(VotingPool):
    """Differential evolution within an Optuna search, on the published loss."""

    squash = True
    """Whether the loss holds sigmoid(CE) instead of the CE, as published."""

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

        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self.random_state))
        finally:
            optuna.logging.set_verbosity(before)
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
        return float(loss.terms(weights[None, :])[1][0])


class _Loss:
    """The published loss of many weights and sizes at once: [S, K + 1] in, [S] out."""

    def __init__(self, P: Floats, q: Floats, y: Codes, parts: list[float], squash: bool) -> None:
        self.parts, self.squash = parts, squash
        # Single precision halves the time of millions of evaluations and is exact enough to rank;
        # the last class is one minus the others.
        self.rows = _by_class(P)[:-1]
        self.targets = np.ascontiguousarray(q.T, dtype=np.float32)
        votes = _by_class(np.eye(P.shape[2])[P.argmax(axis=2)])
        self.hits = votes[y, :, np.arange(len(y))].T.copy()
        self.votes = votes if P.shape[2] > 2 else None

    def __call__(self, points: Floats) -> Floats:
        weights = _weights(points)
        f1, ce, md = self.terms(weights)
        alpha, beta, gamma, mu = self.parts
        if self.squash:
            ce = 1.0 / (1.0 + np.exp(-ce))
        norms = np.sqrt((weights**2).sum(axis=1))
        total: Floats = -alpha * f1 + beta * ce + gamma * md + mu * norms
        return total

    def terms(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """F1 of the vote, CE and MD of the mean under weights [S, K]: [S] each."""
        single = weights.astype(np.float32)
        count, items = len(weights), self.targets.shape[1]
        ce, md = np.zeros(count), np.zeros(count)
        last = np.ones((count, items), dtype=np.float32)
        for rows, targets in zip(self.rows, self.targets, strict=False):
            mean = single @ rows
            last -= mean
            _add(ce, md, mean, targets)
        _add(ce, md, last, self.targets[-1])
        hits = single @ self.hits
        if self.votes is None:
            won = hits > 0.5
        else:
            won = hits >= np.max([single @ votes for votes in self.votes], axis=0)
        f1: Floats = won.sum(axis=1) / items
        return f1, ce / items, md / items


def _add(ce: Floats, md: Floats, mean: Singles, targets: Singles) -> None:
    """Add one class, [S, N] against [N], to the sums [S]."""
    md += np.abs(mean - targets).sum(axis=1)
    np.maximum(mean, 1e-12, out=mean)
    ce -= np.log(mean, out=mean) @ targets


def _weights(points: Floats) -> Floats:
    """Weights [S, K] on the simplex from points [S, K + 1]: the first ``size`` members share."""
    raw, members = points[:, :-1], points.shape[1] - 1
    size = np.clip(np.round(points[:, -1:]), 1, members)
    inside = np.arange(members) < size
    kept = np.where(inside, raw, 0.0)
    total = kept.sum(axis=1, keepdims=True)
    shared: Floats = np.where(total > 0, kept / np.where(total > 0, total, 1.0), inside / size)
    return shared


def _by_class(P: Floats) -> Singles:
    """[N, K, C] as [C, K, N]."""
    rows: Singles = np.ascontiguousarray(P.transpose(2, 1, 0), dtype=np.float32)
    return rows


def evolve(
    loss: Callable[[Floats], Floats],
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
    [S]: ``scipy.optimize.differential_evolution`` with ``strategy="best1bin"`` and its defaults,
    without the final polish. There are ``population`` points per dimension. It ends early when the
    losses of a generation differ by less than ``tolerance`` of their mean.
    """
    dimensions = len(low)
    count = max(5, population * dimensions)
    # Points live in the unit box.
    points = rng.random((count, dimensions))
    losses = loss(low + points * (high - low))
    for _ in range(generations):
        best = points[losses.argmin()]
        # Two others for each point, all three different.
        own = np.arange(count)
        first = (own + rng.integers(1, count, size=count)) % count
        second = rng.integers(count - 2, size=count)
        second += second >= np.minimum(own, first)
        second += second >= np.maximum(own, first)
        mutants = best + rng.uniform(*MUTATION) * (points[first] - points[second])
        crossed = rng.random((count, dimensions)) < CROSSING
        crossed[own, rng.integers(dimensions, size=count)] = True
        tried = np.where(crossed, mutants, points)
        outside = (tried < 0) | (tried > 1)
        tried[outside] = rng.random(int(outside.sum()))
        found = loss(low + tried * (high - low))
        better = found <= losses
        points[better], losses[better] = tried[better], found[better]
        if losses.std() <= tolerance * abs(losses.mean()):
            break
    winner = losses.argmin()
    return low + points[winner] * (high - low), float(losses[winner])
