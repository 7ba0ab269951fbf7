"""What learned weights lose without some members: learned again, and judged on held-out items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edokit._types import Floats
from edokit.annotations.core import Annotations
from edokit.ensemble._fit import as_fit_data, choose_lambda_reg
from edokit.ensemble.answers import FOLDS, MAX_ITEMS
from edokit.ensemble.fitted import CLEARLY
from edokit.ensemble.inputs import Options
from edokit.fitdata.data import FitData, pooled
from edokit.metrics import headline_metric, item_values
from edokit.predictions.core import Predictions
from edokit.solvers.exact import SMALLEST_WEIGHT, solve_exact

# Differences that rounding alone may make.
_ROUNDING = 1e-9
FREE = 0.01
"""A member is free to drop if the loss grows by at most this share of it, interval included."""


@dataclass(frozen=True)
class Reduced:
    """A pool without some members, beside the pool with all of them."""

    members: tuple[str, ...]
    """Members that carry weight."""
    loss: float
    """Mean over items of ``ce``, on an ordinal scale ``rps``."""
    difference: float
    """Its loss less that with all members, mean over items."""
    error: float
    """Standard error of this difference, paired by item."""

    @classmethod
    def of(cls, members: Sequence[str], losses: Floats, all_losses: Floats) -> Reduced:
        """From the losses by item [N], without some members and with all of them."""
        differences = losses - all_losses
        error = float(differences.std() / np.sqrt(max(len(losses) - 1, 1)))
        return cls(tuple(members), float(losses.mean()), float(differences.mean()), error)

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval of the difference."""
        return self.difference - CLEARLY * self.error, self.difference + CLEARLY * self.error

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``free`` (worse by 1 % of the loss at most) or ``unclear``."""
        low, high = self.interval
        if high <= FREE * (self.loss - self.difference):
            return "better" if high < -_ROUNDING else "free"
        return "worse" if low > 0 else "unclear"


class LearnedPool:
    """Weights of members, learned with the default objective, and again without some of them.

    Losses are held out: each item's is that of weights that were learned without its fold. With
    few items they are in-sample.
    """

    def __init__(self, jury: Predictions, labelled: Annotations, random_state: int) -> None:
        options = Options.of({"ties": "random", "random_state": random_state})
        data = as_fit_data(jury, labelled, options)
        penalty, _ = choose_lambda_reg(data, options.settings, random_state=random_state)
        self.settings = replace(options.settings, reg=penalty)
        self.data = data.draw(MAX_ITEMS)
        self.folds = [(self.data, self.data)]
        if self.data.items >= 2 * FOLDS:
            self.folds = self.data.folds(FOLDS, random_state)
        self.metric = headline_metric(data.scale)
        self.all_losses = self._losses(range(len(data.members)))
        self.weights, self.whole = self.without()

    def without(self, *dropped: int) -> tuple[Floats, Reduced]:
        """The weights [K] without the members at these positions, and what that loses."""
        competing = [k for k in range(len(self.data.members)) if k not in dropped]
        weights = np.zeros(len(self.data.members))
        weights[competing] = self._solve(self.data.select(competing))
        members = [self.data.members[k] for k in np.flatnonzero(weights >= SMALLEST_WEIGHT)]
        return weights, Reduced.of(members, self._losses(competing), self.all_losses)

    def path(self) -> list[Reduced]:
        """From all members to one: at each step the one goes whose weight brings least."""
        dropped: list[int] = []
        weights, reduced, path = self.weights, self.whole, [self.whole]
        while len(reduced.members) > 1:
            dropped.append(self._least_needed(weights))
            weights, reduced = self.without(*dropped)
            path.append(reduced)
        return path

    def _losses(self, competing: Sequence[int]) -> Floats:
        """The loss of each item, of weights that these members have without its fold."""
        item_losses, losses = item_values(self.data.scale)[self.metric], []
        for train, fold in self.folds:
            weights = self._solve(train.select(competing))
            rows = pooled(fold.select(competing).sample.P, weights, "linear", 1.0)
            losses.append(item_losses(*fold.per_item(rows)))
        return np.concatenate(losses)

    def _solve(self, data: FitData) -> Floats:
        return solve_exact(data, self.settings, all_terms=False).weights

    def _least_needed(self, weights: Floats) -> int:
        """The member without which the others' weights, renormalised, lose least.

        That is enough to rank members.
        """
        heavy = np.flatnonzero(weights >= SMALLEST_WEIGHT)
        candidates = np.tile(weights, (len(heavy) + 1, 1))
        candidates[np.arange(len(heavy)), heavy] = 0.0
        candidates /= candidates.sum(axis=1, keepdims=True)
        scores = self.data.evaluate(candidates, "linear")
        losses = np.array([score[self.metric] for score in scores], dtype=np.float64)
        # Among members that are not missed, the first goes.
        return int(heavy[np.argmin(np.maximum(losses[:-1] - losses[-1], 0.0))])
