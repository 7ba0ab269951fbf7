"""Search: NSGA-II over the objective's settings, the Pareto front, and a choice from it."""

from typing import TYPE_CHECKING

from edokit._package import lazy_names
from edokit.tuning.space import RULES, Choice, Range, SearchOptions, SearchSpace
from edokit.tuning.trials import Correlation, ParetoFront, SearchTrial, correlations

if TYPE_CHECKING:
    from edokit.tuning.result import SearchResult, search

__all__ = [
    "RULES",
    "Choice",
    "Correlation",
    "ParetoFront",
    "Range",
    "SearchOptions",
    "SearchResult",
    "SearchSpace",
    "SearchTrial",
    "correlations",
    "search",
]
# What needs Optuna.
__getattr__ = lazy_names(__name__, {"result": ("SearchResult", "search")})
