"""`EDOEnsemble` for predictions, `EDOClassifier` for scikit-learn models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edokit.ensemble._fit import PARAMETERS, PRESETS
from edokit.ensemble.answers import Answer
from edokit.ensemble.files import (
    compare_panels,
    fit,
    fit_record,
    load_ensemble,
    predict_to_file,
)
from edokit.ensemble.fitted import Pooled, Reason
from edokit.ensemble.review import Review, review, write_review
from edokit.ensemble.trade_off import TradeOff

if TYPE_CHECKING:
    from edokit.ensemble.classifier import EDOClassifier, soft_score
    from edokit.ensemble.estimator import EDOEnsemble

__all__ = [
    "PARAMETERS",
    "PRESETS",
    "Answer",
    "EDOClassifier",
    "EDOEnsemble",
    "Pooled",
    "Reason",
    "Review",
    "TradeOff",
    "compare_panels",
    "fit",
    "fit_record",
    "load_ensemble",
    "predict_to_file",
    "review",
    "soft_score",
    "write_review",
]
# What needs scikit-learn, which takes a second to import.
_HOME = {"EDOClassifier": "classifier", "soft_score": "classifier", "EDOEnsemble": "estimator"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"edokit.ensemble.{_HOME[name]}"), name)
    raise AttributeError(f"module 'edokit.ensemble' has no attribute {name!r}")
