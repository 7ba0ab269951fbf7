"""The constant answer: the same distribution for every item."""

from __future__ import annotations

import numpy as np

from edokit._types import Floats, Strings
from edokit.analysis.compare.method import (
    ItemLabels,
    MemberPredictions,
    PredictedLabels,
    check_fitted,
    register_method,
)
from edokit.analysis.scores.result import CONSTANT
from edokit.analysis.scores.statistics import constant_label, constant_of_annotations
from edokit.annotations.core import Annotations, Ties
from edokit.ensemble.fitted import Constant
from edokit.fitdata.inputs import align_inputs


@register_method(CONSTANT, "the same shares and the majority class for every item", order=5)
class ConstantAnswer:
    """The mean soft label of the items that it was fitted on, whatever the members predict."""

    constant_: Constant
    classes_: Strings

    def __init__(self, *, random_state: int = 0, ties: Ties = "first") -> None:
        self.random_state = random_state
        self.ties = ties

    def fit(self, predictions: MemberPredictions, annotations: ItemLabels) -> ConstantAnswer:
        """Take the shares of these items."""
        _, labels = align_inputs(predictions, annotations)
        return self.take_shares(labels, "fit")

    def take_shares(self, labels: Annotations, source: str) -> ConstantAnswer:
        """Take the shares of these annotations, of whichever items."""
        self.constant_ = constant_of_annotations(
            labels, source, ties=self.ties, random_state=self.random_state
        )
        self.classes_ = np.array(labels.classes, dtype=object)
        return self

    def predict_proba(self, predictions: MemberPredictions) -> Floats:
        """The shares, once per item [N, C]."""
        check_fitted(self, "constant_")
        return np.tile(self.constant_.shares, (_count(predictions), 1))

    def predict(self, predictions: MemberPredictions) -> PredictedLabels:
        """The majority class, once per item [N]; or the labels that most items have [N, L]."""
        check_fitted(self, "constant_")
        hard = constant_label(self.constant_, _count(predictions))
        if hard.ndim > 1:  # 1 for each chosen label [N, L]
            return hard
        return np.asarray(self.classes_[hard])


def _count(predictions: MemberPredictions) -> int:
    """Number of items."""
    return len(predictions)  # type: ignore[arg-type]
