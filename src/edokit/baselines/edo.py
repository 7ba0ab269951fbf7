"""EDO itself: settled on dev, our default, the paper's fixed setting, the paper's search."""

from __future__ import annotations

from typing import Any

from edokit.annotations import Annotations, Ties
from edokit.baselines.methods import in_order, register_method
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.inputs import align_inputs, as_predictions
from edokit.predictions import Predictions


@register_method("edo-default", "EDO with its default objective", order=98)
def edo_default(*, random_state: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """`EDOEnsemble` with the preset ``default``: one objective for all data."""
    return EDOEnsemble("default", random_state=random_state, ties=ties)


@register_method("edo", "EDO, the kind of pool settled on dev", order=100)
def edo(*, random_state: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """`EDOEnsemble` with the preset ``auto``: the default objective unless cross-fitting on dev
    finds another pool, groups, a smaller penalty or a temperature better."""
    return EDOEnsemble("auto", random_state=random_state, ties=ties)


class SortedEnsemble(EDOEnsemble):
    """Sorts items and members by name first: gumbel's mini-batches make their order matter."""

    def fit(self, predictions: Any, annotations: Any = None) -> EDOEnsemble:
        named, labels = align_inputs(as_predictions(predictions), annotations)
        named = in_order(named)
        return self._fit_sorted(named, labels.align(named.items))

    def _fit_sorted(self, predictions: Predictions, annotations: Annotations) -> EDOEnsemble:
        return super().fit(predictions, annotations)


@register_method(
    "edo-paper-fixed", "EDO as in the paper's ablations: all λ = 1, class weights", order=90
)
def edo_paper_fixed(*, random_state: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """The preset ``paper-fixed``."""
    return SortedEnsemble("paper-fixed", random_state=random_state, ties=ties)


@register_method("edo-paper", "EDO as the paper's search finds it: 50 trials, lowest CE", order=95)
class EDOPaper(SortedEnsemble):
    """Fifty trials of NSGA-II over the paper's space, compared in-sample as in the paper; the
    lowest CE on the front wins."""

    trials = 50

    def _fit_sorted(self, predictions: Predictions, annotations: Annotations) -> EDOEnsemble:
        from edokit.tuning import search

        found = search(
            predictions,
            annotations,
            trials=self.trials,
            folds=0,
            choose="lowest-ce",
            seed=self.random_state,
            ties=self.ties,
        )
        return self._keep(found.ensemble.fitted_)
