"""`EDOEnsemble` for predictions, `EDOClassifier` for scikit-learn models."""

from edokit.ensemble._fit import PRESETS
from edokit.ensemble.classifier import EDOClassifier, soft_score
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.files import fit, load, load_ensemble, predict_to_file, save_ensemble
from edokit.ensemble.fitted import Pooled, Reason
from edokit.ensemble.review import Review, review, write_review

__all__ = [
    "PRESETS",
    "EDOClassifier",
    "EDOEnsemble",
    "Pooled",
    "Reason",
    "Review",
    "fit",
    "load",
    "load_ensemble",
    "predict_to_file",
    "review",
    "save_ensemble",
    "soft_score",
    "write_review",
]
