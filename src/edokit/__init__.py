"""EDO: learning from people who disagree.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edokit._version import __version__

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.baselines import compare
    from edokit.datasets import read_annotations, write_annotations
    from edokit.datasets.simulate import simulate
    from edokit.diagnosis import diagnose
    from edokit.ensemble import EDOClassifier, EDOEnsemble
    from edokit.evaluation import evaluate
    from edokit.predictions import Predictions, read_predictions, write_predictions
    from edokit.tuning import SearchResult, SearchSpace, search

_HOME = {
    "Annotations": "edokit.annotations",
    "EDOClassifier": "edokit.ensemble",
    "EDOEnsemble": "edokit.ensemble",
    "Predictions": "edokit.predictions",
    "SearchResult": "edokit.tuning",
    "SearchSpace": "edokit.tuning",
    "compare": "edokit.baselines",
    "diagnose": "edokit.diagnosis",
    "evaluate": "edokit.evaluation",
    "read_annotations": "edokit.datasets",
    "read_predictions": "edokit.predictions",
    "search": "edokit.tuning",
    "simulate": "edokit.datasets.simulate",
    "write_annotations": "edokit.datasets",
    "write_predictions": "edokit.predictions",
}

__all__ = [
    "Annotations",
    "EDOClassifier",
    "EDOEnsemble",
    "Predictions",
    "SearchResult",
    "SearchSpace",
    "__version__",
    "compare",
    "diagnose",
    "evaluate",
    "read_annotations",
    "read_predictions",
    "search",
    "simulate",
    "write_annotations",
    "write_predictions",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'edokit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
