"""Search: NSGA-II over the objective's settings, the Pareto front, and a choice from it."""

from edokit.tuning.api import search
from edokit.tuning.result import SearchResult
from edokit.tuning.space import Choice, Range, SearchSpace
from edokit.tuning.trials import RULES, Correlation, ParetoFront, SearchTrial, correlations

__all__ = [
    "RULES",
    "Choice",
    "Correlation",
    "ParetoFront",
    "Range",
    "SearchResult",
    "SearchSpace",
    "SearchTrial",
    "correlations",
    "search",
]
