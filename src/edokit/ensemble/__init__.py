"""`EDOEnsemble` for predictions, `EDOClassifier` for scikit-learn models."""

from typing import TYPE_CHECKING

from edokit._package import lazy_names
from edokit.ensemble.answers import Answer
from edokit.ensemble.fitted import Reason
from edokit.ensemble.inputs import OPTION_NAMES, from_flat

if TYPE_CHECKING:
    from edokit.ensemble.classifier import EDOClassifier, soft_score
    from edokit.ensemble.estimator import EDOEnsemble, fit
    from edokit.ensemble.pooled import Pooled
    from edokit.ensemble.reviews import (
        Review,
        compare_panels,
        predict_to_file,
        review,
        write_review,
    )
    from edokit.ensemble.trade_off import TradeOff

__all__ = [
    "OPTION_NAMES",
    "Answer",
    "EDOClassifier",
    "EDOEnsemble",
    "Pooled",
    "Reason",
    "Review",
    "TradeOff",
    "compare_panels",
    "fit",
    "from_flat",
    "predict_to_file",
    "review",
    "soft_score",
    "write_review",
]
# What a fit does without, and what needs scikit-learn, which takes a second to import.
__getattr__ = lazy_names(
    __name__,
    {
        "classifier": ("EDOClassifier", "soft_score"),
        "estimator": ("EDOEnsemble", "fit"),
        "pooled": ("Pooled",),
        "reviews": ("Review", "compare_panels", "predict_to_file", "review", "write_review"),
        "trade_off": ("TradeOff",),
    },
)
