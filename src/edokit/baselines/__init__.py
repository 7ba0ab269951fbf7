"""EDO and what it is compared with: methods by name, and all of them side by side."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edokit.baselines.scores import Score

if TYPE_CHECKING:
    from edokit.baselines.comparison import Comparison, compare
    from edokit.baselines.methods import (
        Method,
        VotingPool,
        WeightedPool,
        make_method,
        method_names,
        register_method,
    )

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


def __getattr__(name: str) -> Any:
    # What needs scikit-learn, which takes a second to import.
    if name not in __all__:
        raise AttributeError(f"module 'edokit.baselines' has no attribute {name!r}")
    home = "comparison" if name in ("Comparison", "compare") else "methods"
    return getattr(import_module(f"edokit.baselines.{home}"), name)
