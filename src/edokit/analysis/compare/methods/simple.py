"""Methods that learn no weights but choose members: all of them, the best, the best five."""

from __future__ import annotations

import numpy as np

from edokit._types import Codes, Floats
from edokit.analysis.compare.method import (
    MemberPredictions,
    VotingPool,
    WeightedPool,
    best_members,
    register_method,
    vote_shares,
)
from edokit.analysis.scores.result import UNIFORM


@register_method(UNIFORM, "the uniform mean of all members", order=10)
class Uniform(WeightedPool):
    """Every member with the same weight: what every other method has to beat."""

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return np.full(P.shape[1], 1.0 / P.shape[1])


@register_method(
    "majority", "majority of the members: the share whose likeliest class it is", order=15
)
class Majority(VotingPool):
    """Every member has one vote, for its likeliest class; the shares of votes are the distribution.

    Where several classes of a member are equally likely, its vote is divided between them. For
    multi-label data, each label is voted on. A class without a vote has probability 0, which
    cross-entropy punishes.
    """

    find_weights = Uniform.find_weights

    def predict_proba(self, predictions: MemberPredictions) -> Floats:
        P, weights = self._weighted_members(predictions)
        votes = vote_shares(P, weights)
        return np.asarray(self.scale_.from_rows(votes, len(self.classes_)))


@register_method("best-single", "the member with the lowest CE on dev", order=20)
class BestSingle(WeightedPool):
    """The member with the lowest cross-entropy; of equals, the first by name."""

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return best_members(P, q, 1)


@register_method(
    "top-5", "majority vote (F1) and mean (CE, MD, BS) of the five best on dev", order=30
)
class Top5(VotingPool):
    """The vote, and the mean, of the five members with the lowest cross-entropy.

    The paper takes the figures of its Top-5 Voting from earlier work and does not say what "best"
    means. With few items several members share the same F1, so we go by cross-entropy.
    """

    def find_weights(self, P: Floats, q: Floats, y: Codes) -> Floats:
        return best_members(P, q, 5)
