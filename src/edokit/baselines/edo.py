"""EDO itself: settled on dev, our default, the paper's fixed setting, the paper's search."""

from __future__ import annotations

from typing import Any

from edokit._types import Floats, Strings
from edokit.annotations import Ties
from edokit.baselines.methods import in_order, register_method
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.inputs import align_inputs, as_predictions


@register_method("edo-default", "EDO with its default objective", order=98)
def edo_default(*, random_state: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """`EDOEnsemble` with the preset ``default``: one objective for all data."""
    return EDOEnsemble("default", random_state=random_state, ties=ties)


@register_method("edo", "EDO, the kind of pool settled on dev", order=100)
def edo(*, random_state: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """`EDOEnsemble` with the preset ``auto``: the default objective unless cross-fitting on dev
    finds another pool, groups, a smaller penalty or a temperature better."""
    return EDOEnsemble("auto", random_state=random_state, ties=ties)


@register_method(
    "edo-paper-fixed", "EDO as in the paper's ablations: all λ = 1, class weights", order=90
)
class EDOPaperFixed:
    """The preset ``paper-fixed``.

    Items and members are sorted by name first, since mini-batches make the result of gumbel depend
    on their order.
    """

    ensemble_: EDOEnsemble

    def __init__(self, *, random_state: int = 0, ties: Ties = "first") -> None:
        self.random_state = random_state
        self.ties = ties

    def fit(self, predictions: Any, annotations: Any) -> EDOPaperFixed:
        """Fit the ensemble."""
        named, people = align_inputs(as_predictions(predictions), annotations)
        named = in_order(named)
        self.ensemble_ = self._fit_ensemble(named, people.align(named.items))
        return self

    def _fit_ensemble(self, predictions: Any, annotations: Any) -> EDOEnsemble:
        fixed = EDOEnsemble("paper-fixed", random_state=self.random_state, ties=self.ties)
        return fixed.fit(predictions, annotations)

    def predict_proba(self, predictions: Any) -> Floats:
        """Pooled probabilities [N, C]."""
        return self._fitted().predict_proba(predictions)

    def predict(self, predictions: Any) -> Strings:
        """The most probable class of each item [N]."""
        return self._fitted().predict(predictions)

    def _fitted(self) -> EDOEnsemble:
        # One that is not fitted raises NotFittedError itself.
        return self.ensemble_ if hasattr(self, "ensemble_") else EDOEnsemble()

    @property
    def weights_(self) -> Floats:
        """Weight of each member [K]."""
        return self.ensemble_.weights_

    @property
    def members_(self) -> tuple[str, ...]:
        """Names of the members, in the order of the weights."""
        return self.ensemble_.members_

    @property
    def size_(self) -> int:
        """How many members are kept."""
        return self.ensemble_.size_


@register_method("edo-paper", "EDO as the paper's search finds it: 50 trials, lowest CE", order=95)
class EDOPaper(EDOPaperFixed):
    """Fifty trials of NSGA-II over the paper's space, compared in-sample as in the paper; the
    lowest CE on the front wins."""

    trials = 50

    def _fit_ensemble(self, predictions: Any, annotations: Any) -> EDOEnsemble:
        from edokit.search import search

        found = search(
            predictions,
            annotations,
            trials=self.trials,
            folds=0,
            choose="lowest-ce",
            seed=self.random_state,
            ties=self.ties,
        )
        return found.ensemble
