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
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edokit._types import Codes, Floats
from edokit.analysis.compare.method import VotingPool, register_method
from edokit.annotations.core import Ties
from edokit.metrics.formulas import CLIP

if TYPE_CHECKING:
    import optuna

TERMS = ("alpha", "beta", "gamma", "mu")
"""The factors of the loss, as Optuna names them."""
CROSSOVER = 0.7
"""Probability with which a coordinate of a trial point is that of the mutant."""
MUTATION = (0.5, 1.0)
"""Range of the factor of the difference between two points, drawn once a generation."""
TOLERANCE = 1e-6
"""The search ends where losses deviate by less than this share of their mean."""
COLUMNS = 512
"""Columns of the probabilities that are averaged at a time; they stay in the cache."""


@register_method("wel", "Weak Ensemble Learning as published", order=40, slow=True)
class WEL(VotingPool):
    """Differential evolution within an Optuna search, on the published loss."""

    squash = True  # the loss has sigmoid(CE) in place of the CE, as published

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

    def _search(self, study: optuna.Study, P: Floats, q: Floats, y: Codes) -> Floats:
        """The weights of the best trial."""
        members = P.shape[1]
        best = np.full(members, 1.0 / members)
        lowest = np.inf
        for number in range(self.trials):
            trial = study.ask()
            alpha, beta, gamma, mu = (
                trial.suggest_float(name, 1e-6, 1.0, log=True) for name in TERMS
            )
            factors = LossFactors(alpha, beta, gamma, mu)
            order = np.random.default_rng([self.random_state, number]).permutation(members)
            loss = WELLoss(P[:, order], q, y, factors, self.squash)
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
                lowest = score
                best = np.zeros(members)
                best[order] = weights
        return best

    def criterion(self, loss: WELLoss, weights: Floats, value: float) -> float:
        """The value by which trials are compared: the loss, although each has other factors."""
        return value


@register_method(
    "wel-ce", "WEL with the CE itself in the loss and in the choice", order=50, slow=True
)
class WELCE(WEL):
    """The loss has the CE itself, and the trial with the lowest CE on dev wins."""

    squash = False

    def criterion(self, loss: WELLoss, weights: Floats, value: float) -> float:
        """The CE of the weights."""
        ce, _ = loss.distances(weights[None, :])
        return float(ce[0])


@dataclass(frozen=True)
class LossFactors:
    """The factors of F1, CE, MD and ‖w‖₂ in the published loss."""

    alpha: float
    beta: float
    gamma: float
    mu: float


class WELLoss:
    """The published loss, of S points at once.

    A point [K + 1] has a weight per member and, last, how many of the first members are kept.
    """

    # Single precision halves the time of millions of evaluations and is exact enough to rank.
    precision: type[np.floating] = np.float32

    def __init__(self, P: Floats, q: Floats, y: Codes, factors: LossFactors, squash: bool) -> None:
        self.factors = factors
        self.squash = squash
        items, members, classes = P.shape
        self.items = items
        rows = np.maximum(P, CLIP).transpose(1, 0, 2).reshape(members, -1)  # [K, N·C]
        self.rows = rows.astype(self.precision)
        self.targets = q.ravel().astype(self.precision)
        # The label of each item and its members' votes; U items that differ in them [U, 1 + K].
        ballots = np.column_stack([y, P.argmax(axis=2)])
        ballots, counts = np.unique(ballots, axis=0, return_counts=True)
        # Votes [C, K, U] for the correct class, then for the others. With two classes, the votes
        # for the correct one are enough.
        counted_classes = classes if classes > 2 else 1
        class_order = (ballots[:, :1] + np.arange(counted_classes)) % classes
        is_vote = ballots[:, 1:, None] == class_order[:, None]
        self.votes = is_vote.transpose(2, 1, 0).astype(self.precision)
        self.counts = counts.astype(self.precision)

    def __call__(self, points: Floats) -> Floats:
        factors = self.factors
        weights = _weights(points)
        norms = np.sqrt(np.einsum("sk,sk->s", weights, weights))
        ce, md = self.distances(weights)
        if self.squash:
            ce = 1.0 / (1.0 + np.exp(-ce))
        lost = self.lost_votes(weights)
        total: Floats = (
            factors.alpha * (lost - 1.0)
            + factors.beta * ce
            + factors.gamma * md
            + factors.mu * norms
        )
        return total

    def lost_votes(self, weights: Floats) -> Floats:
        """The share [S] of items that the vote under weights [S, K] is wrong about."""
        votes = (
            weights.astype(self.precision) @ self.votes
        )  # [C, S, U], or [1, S, U] for two classes
        correct_votes = votes[0]
        if len(votes) == 1:
            best_other = 1 - correct_votes
        else:
            best_other = votes[1:].max(axis=0)
        lead = correct_votes - best_other
        lost: Floats = (lead <= 0).astype(self.precision) @ self.counts / self.items
        return lost

    def distances(self, weights: Floats) -> tuple[Floats, Floats]:
        """CE and MD of the mean under weights [S, K]: [S] each."""
        ce = np.zeros(len(weights))
        md = np.zeros(len(weights))
        single = weights.astype(self.precision)
        for start in range(0, len(self.targets), COLUMNS):
            targets = self.targets[start : start + COLUMNS]
            mean = single @ self.rows[:, start : start + COLUMNS]
            md += np.abs(mean - targets).sum(axis=1)
            ce -= np.log(mean, out=mean) @ targets
        return ce / self.items, md / self.items


def _weights(points: Floats) -> Floats:
    """Weights [S, K] on the simplex from points [S, K + 1], whose last coordinate is the size.

    Members after the first ``size`` have no weight. Where the others have none either, they share
    it equally.
    """
    members = points.shape[1] - 1
    size = np.clip(np.round(points[:, -1:]), 1, members)
    is_kept = np.arange(members) < size
    weights: Floats = points[:, :-1] * is_kept
    is_zero = ~weights.any(axis=1)
    weights[is_zero] = is_kept[is_zero]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


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

    Differential evolution by the strategy ``best1bin`` of scipy's ``differential_evolution``, with
    its rates of mutation and crossover. A whole generation is one call of ``loss``, which maps
    points [S, D] to [S]; the first one is drawn uniformly, and the result is not polished. There
    are ``population`` points per dimension. The search ends early where the losses of a generation
    deviate by less than ``TOLERANCE`` of their mean.
    """
    dimensions = len(low)
    count = max(5, population * dimensions)
    # Points live in the unit box.
    points = rng.random((count, dimensions))
    losses = loss(low + points * (high - low))
    draws = np.empty_like(points)
    rows = np.arange(count)
    for _ in range(generations):
        best = points[losses.argmin()]
        # Two other points for each, all three different. The second is drawn among all but two, and
        # moved on past the point itself and past the first.
        first_rows = (rows + rng.integers(1, count, size=count)) % count
        second_rows = rng.integers(count - 2, size=count)
        second_rows += second_rows >= np.minimum(rows, first_rows)
        second_rows += second_rows >= np.maximum(rows, first_rows)
        trial_points = points[first_rows]
        trial_points -= points[second_rows]
        trial_points *= rng.uniform(*MUTATION)
        trial_points += best
        is_crossed = rng.random(out=draws) < CROSSOVER
        # At least one coordinate of each is that of the mutant.
        is_crossed[rows, rng.integers(dimensions, size=count)] = True
        trial_points = np.where(is_crossed, trial_points, points)
        is_outside = (trial_points < 0) | (trial_points > 1)
        np.place(trial_points, is_outside, rng.random(np.count_nonzero(is_outside)))
        trial_losses = loss(low + trial_points * (high - low))
        is_better = trial_losses <= losses
        points[is_better] = trial_points[is_better]
        losses[is_better] = trial_losses[is_better]
        if losses.std() <= TOLERANCE * abs(losses.mean()):
            break
    winner = losses.argmin()
    return low + points[winner] * (high - low), float(losses[winner])
