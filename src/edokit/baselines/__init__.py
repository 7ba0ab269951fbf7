"""EDO and what it is compared with: methods by name, and all of them side by side."""

from edokit.baselines import wel  # noqa: F401  (enters its methods into the registry)
from edokit.baselines.compare import Comparison, compare
from edokit.baselines.methods import (
    Method,
    VotingPool,
    WeightedPool,
    make_method,
    method_names,
    register_method,
)
from edokit.baselines.scores import Score

__all__ = [
    "Comparison",
    "Method",
    "Score",
    "VotingPool",
    "WeightedPool",
    "compare",
    "make_method",
    "method_names",
    "register_method",
]
