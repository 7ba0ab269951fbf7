"""A fitted ensemble: what it knows of itself, and what it says of items."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from edokit._types import Floats, Strings
from edokit.ensemble.inputs import as_predictions, together, with_weight
from edokit.ensemble.pooled import Pooled, spread_items
from edokit.ensemble.recalibrate import sharpen
from edokit.metrics import ce
from edokit.objective import average_groups, group_names, pool
from edokit.predictions import Predictions
from edokit.solvers import Certificate, Trajectory


class FittedEnsemble:
    """What `EDOEnsemble` has and can do once it is fitted."""

    weights_: Floats
    """Weight of each member [K], on the simplex."""
    size_: int
    """How many members are kept (K*); with groups, how many groups."""
    members_: tuple[str, ...]
    """Names of the members, in the order of the weights."""
    classes_: Strings
    """Names of the classes, in the order of the probabilities."""
    objective_: dict[str, float]
    """Each term of the loss on the fit data (f1, ce, div, reg) and the total."""
    trajectory_: Trajectory | None
    """Loss, terms, temperature and size distribution after each epoch; None for exact."""
    certificate_: Certificate | None
    """How far the weights can be from the best ones; None for gumbel."""
    groups_: tuple[str, ...] | None
    """The group of each member, where groups were averaged first."""
    group_weights_: Floats | None
    """Weight of each group, in order of first appearance."""
    temperature_: float
    """Applied after pooling; 1 without recalibration."""
    metrics_: dict[str, float | None]
    """F1, CE, MD, BS and more of the pool on the fit data (not held out)."""
    member_ce_: Floats
    """Cross-entropy of each member alone on the fit data [K]."""
    settings_: dict[str, Any]
    """Every choice that was made, the preset's filled in."""
    n_items_: int
    """Items in the fit data."""
    data_: dict[str, Any]
    """Annotators, annotations and hard labels by class in the fit data."""

    _reasons: list[str]

    def describe(self, predictions: Any) -> Pooled:
        """Pooled probabilities with the entropy and the spread of the members, item by item."""
        named = self._known(predictions)
        P = np.asarray(named.probabilities, dtype=np.float64)
        weights = self._weights_of(named.members)
        pooled = sharpen(self._pooled(P, named.members), self.temperature_)
        return Pooled(named.items, named.classes, pooled, spread_items(P, weights))

    def predict_proba(self, predictions: Any) -> Floats:
        """Pooled probabilities [N, C] of predictions (or an array [N, K, C])."""
        return self.describe(predictions).probabilities

    def predict(self, predictions: Any) -> Strings:
        """The likeliest class of each item [N]."""
        return self.describe(predictions).labels

    def score(self, predictions: Any, annotations: Any) -> float:
        """Minus the cross-entropy to people's answers: higher is better."""
        named, people = together(self._known(predictions), annotations)
        return -ce(self.predict_proba(named), people.soft_labels)

    def needed_members(self) -> list[str]:
        """The members that carry weight: all that predicting needs."""
        self._check_fitted()
        return [name for name, w in zip(self.members_, self.weights_, strict=True) if w > 0]

    def explain(self) -> list[str]:
        """One sentence per member, heaviest first: its weight, and why it has it."""
        self._check_fitted()
        return list(self._reasons)

    def summary(self) -> dict[str, Any]:
        """Weights by member, size, terms of the loss and certificate, ready for JSON."""
        self._check_fitted()
        certificate = self.certificate_
        return {
            "weights": dict(zip(self.members_, self.weights_.tolist(), strict=True)),
            "size": self.size_,
            "objective": dict(self.objective_),
            "certificate": None if certificate is None else asdict(certificate),
            "temperature": self.temperature_,
            "metrics": dict(self.metrics_),
        }

    def _known(self, predictions: Any) -> Predictions:
        """Predictions of the members that carry weight, classes as fitted."""
        self._check_fitted()
        given = as_predictions(predictions, self.members_)
        if not isinstance(predictions, Predictions):
            given = Predictions(
                given.probabilities, given.items, given.members, tuple(self.classes_)
            ).named()
        kept = with_weight(given, self.needed_members())
        return kept.order_classes(tuple(self.classes_))

    def _weights_of(self, members: tuple[str, ...]) -> Floats:
        position = {name: k for k, name in enumerate(self.members_)}
        return self.weights_[[position[name] for name in members]]

    def _pooled(self, P: Floats, members: tuple[str, ...] | None = None) -> Floats:
        """The pool [N, C] of these members (all, unless named), before any temperature."""
        weights = self.weights_ if members is None else self._weights_of(members)
        if self.groups_ is not None and self.settings_["pool"] == "log":
            # A log pool of groups is not a log pool of members: average each group first.
            by_name = dict(zip(self.members_, self.groups_, strict=True))
            groups = [by_name[name] for name in (members or self.members_)]
            P = average_groups(P, groups)
            assert self.group_weights_ is not None
            order = group_names(self.groups_)
            weights = self.group_weights_[[order.index(name) for name in group_names(groups)]]
        pooled: Floats = pool(P, weights, str(self.settings_["pool"]))
        return pooled

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError("this EDOEnsemble must be fitted first, but is not; call fit")
