"""Search: NSGA-II over the objective's settings, the Pareto front, and a choice from it."""

from typing import TYPE_CHECKING

from edokit._lazy import lazy_names
from edokit.tuning.options import SearchOptions
from edokit.tuning.space import Choice, Range, SearchSpace
from edokit.tuning.trials import RULES, Correlation, ParetoFront, SearchTrial, correlations

if TYPE_CHECKING:
    from edokit.tuning.api import search
    from edokit.tuning.result import SearchResult

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
__getattr__ = lazy_names(__name__, {"api": ("search",), "result": ("SearchResult",)})
