"""EDO and what it is compared with: methods by name, and all of them side by side."""

from typing import TYPE_CHECKING

from edokit._package import lazy_names
from edokit.baselines.scores import Score

if TYPE_CHECKING:
    from edokit.baselines.comparison import CompareOptions, Comparison, compare
    from edokit.baselines.methods import (
        Method,
        VotingPool,
        WeightedPool,
        make_method,
        method_names,
        register_method,
    )

__all__ = [
    "CompareOptions",
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
# What needs scikit-learn, which takes a second to import.
__getattr__ = lazy_names(
    __name__,
    {
        "comparison": ("CompareOptions", "Comparison", "compare"),
        "methods": (
            "Method",
            "VotingPool",
            "WeightedPool",
            "make_method",
            "method_names",
            "register_method",
        ),
    },
)
