"""Every method side by side: what EDO is compared with, by name, and the comparison itself."""

from edokit.baselines.compare import Comparison, compare
from edokit.baselines.method import Method, Voting, WeightedPool
from edokit.baselines.registry import make_method, method, method_names
from edokit.baselines.scores import Score

__all__ = [
    "Comparison",
    "Method",
    "Score",
    "Voting",
    "WeightedPool",
    "compare",
    "make_method",
    "method",
    "method_names",
]
