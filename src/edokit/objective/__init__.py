"""The joint loss, what it needs to know of the data, and the weights it is a function of."""

from edokit.objective.loss import Curvature, Loss, curvature_sums, joint_loss, w1_curvature
from edokit.objective.pools import (
    EPSILON,
    average_groups,
    effective_weights,
    fit_temperature,
    group_names,
    log_probabilities,
    pool,
    sharpen,
    softmax,
    spread_weights,
)
from edokit.objective.settings import (
    CE,
    PRESETS,
    Diversity,
    Objective,
    Pool,
    Regularize,
    Settings,
    preset,
)
from edokit.objective.summaries import Problem, Summaries, rank_members

__all__ = [
    "CE",
    "EPSILON",
    "PRESETS",
    "Curvature",
    "Diversity",
    "Loss",
    "Objective",
    "Pool",
    "Problem",
    "Regularize",
    "Settings",
    "Summaries",
    "average_groups",
    "curvature_sums",
    "effective_weights",
    "fit_temperature",
    "group_names",
    "joint_loss",
    "log_probabilities",
    "pool",
    "preset",
    "rank_members",
    "sharpen",
    "softmax",
    "spread_weights",
    "w1_curvature",
]
