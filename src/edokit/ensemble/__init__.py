"""What people import: `EDOEnsemble` for predictions, `EDOClassifier` for scikit-learn models."""

from edokit.ensemble.classifier import EDOClassifier, soft_score
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.persistence import load_ensemble, save_ensemble
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.presets import PRESETS

__all__ = [
    "PRESETS",
    "EDOClassifier",
    "EDOEnsemble",
    "Pooled",
    "load_ensemble",
    "save_ensemble",
    "soft_score",
]
