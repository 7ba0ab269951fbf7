"""EDO itself: as `edo fit` fits it, and as in the paper."""

from __future__ import annotations

from edokit.analysis.compare.method import EDO, register_method, sort_by_name
from edokit.annotations.core import Annotations, Ties
from edokit.ensemble.estimator import EDOEnsemble
from edokit.fitdata.inputs import align_inputs
from edokit.fitdata.reading import LabelsLike, PredictionsLike
from edokit.item_array import Order
from edokit.predictions.core import Predictions

register_method(EDO, "EDO as in edo fit: shrunk towards uniform by cross-validation", order=100)(
    EDOEnsemble
)


class SortedEnsemble(EDOEnsemble):
    """EDO on items and members sorted by name, so that the order of a file changes no result.

    The mini-batches of gumbel depend on the order.
    """

    def fit(
        self,
        predictions: PredictionsLike,
        annotations: LabelsLike = None,
        *,
        order: Order | None = None,
    ) -> EDOEnsemble:
        members, labels = align_inputs(predictions, annotations, order=order)
        members = sort_by_name(members)
        return self._fit_sorted(members, labels.align(members.rows))

    def _fit_sorted(self, predictions: Predictions, annotations: Annotations) -> EDOEnsemble:
        """Fit on sorted items and members."""
        return super().fit(predictions, annotations)


@register_method(
    "edo-paper-fixed", "EDO as in the paper's ablations: all λ = 1, class weights", order=90
)
def make_paper_fixed(*, random_state: int = 0, ties: Ties = "first") -> SortedEnsemble:
    """The preset of the ablations."""
    return SortedEnsemble("paper-fixed", random_state=random_state, ties=ties)


@register_method(
    "edo-paper",
    "EDO as the paper's search finds it: 50 trials, lowest CE (ordinal scales: RPS)",
    order=95,
)
class EDOPaper(SortedEnsemble):
    """The trial with the lowest CE (on an ordinal scale: RPS) on the front of the paper's search.

    Fifty trials of NSGA-II over the paper's space compete in-sample, as in the paper.
    """

    trials = 50

    def _fit_sorted(self, predictions: Predictions, annotations: Annotations) -> EDOEnsemble:
        from edokit.analysis.search import search

        self.search_ = search(
            predictions,
            annotations,
            trials=self.trials,
            space="paper",
            folds=0,
            random_state=self.random_state,
            ties=self.ties,
        )
        return self._keep(self.search_.ensemble.fitted_)
