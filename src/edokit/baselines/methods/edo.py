"""EDO itself: settled on dev, in our default, in the paper's fixed setting, by its search."""

from __future__ import annotations

from typing import Any

from edokit._types import Floats, Strings
from edokit.annotations import Ties
from edokit.baselines.method import in_order
from edokit.baselines.registry import method
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.inputs import align_inputs, as_predictions


@method("edo-default", "EDO with its default objective", place=98)
def edo_default(*, seed: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """`EDOEnsemble` with the preset ``default``: one objective for all data."""
    return EDOEnsemble("default", random_state=seed, ties=ties)


@method("edo", "EDO, the kind of pool settled on dev", place=100)
def edo(*, seed: int = 0, ties: Ties = "first") -> EDOEnsemble:
    """`EDOEnsemble` with the preset ``auto``: the default objective unless cross-fitting on dev
    finds another pool, groups, a smaller penalty or a temperature better."""
    return EDOEnsemble("auto", random_state=seed, ties=ties)


class _Paper:
    """An ensemble that gumbel found: items and members are put in order first, since mini-batches
    make its result depend on the order of the items."""

    ensemble_: EDOEnsemble

    def __init__(self, *, seed: int = 0, ties: Ties = "first") -> None:
        self.seed = seed
        self.ties = ties

    def fit(self, predictions: Any, annotations: Any) -> _Paper:
        named, people = align_inputs(as_predictions(predictions), annotations)
        named = in_order(named)
        self.ensemble_ = self._found(named, people.align(named.items))
        return self

    def _found(self, predictions: Any, annotations: Any) -> EDOEnsemble:
        raise NotImplementedError

    def predict_proba(self, predictions: Any) -> Floats:
        return self._fitted().predict_proba(predictions)

    def predict(self, predictions: Any) -> Strings:
        return self._fitted().predict(predictions)

    def _fitted(self) -> EDOEnsemble:
        # One that is not fitted says so itself.
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


@method("edo-paper-fixed", "EDO as in the paper's ablations: all λ = 1, class weights", place=90)
class EDOPaperFixed(_Paper):
    """The preset ``paper-fixed``."""

    def _found(self, predictions: Any, annotations: Any) -> EDOEnsemble:
        fixed = EDOEnsemble("paper-fixed", random_state=self.seed, ties=self.ties)
        return fixed.fit(predictions, annotations)


@method("edo-paper", "EDO as the paper's search finds it: 50 trials, lowest CE", place=95)
class EDOPaper(_Paper):
    """Fifty trials of NSGA-II over the paper's space, judged on the items that they learn from, as
    in the paper; the lowest CE on the front wins."""

    trials = 50

    def _found(self, predictions: Any, annotations: Any) -> EDOEnsemble:
        from edokit.search import search

        found = search(
            predictions,
            annotations,
            trials=self.trials,
            folds=0,
            choose="lowest-ce",
            seed=self.seed,
            ties=self.ties,
        )
        return found.ensemble
