"""Search: NSGA-II over the objective's settings, the Pareto front, and a choice from it."""

from edokit.search.api import search
from edokit.search.front import RULES, ParetoFront
from edokit.search.result import SearchResult
from edokit.search.space import Choice, Range, SearchSpace
from edokit.search.trials import Correlation, SearchTrial, correlations

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
