"""The ensemble: member weights and size, learned from predictions and people's answers."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from edokit._errors import EDOWarning
from edokit._types import Floats, Strings
from edokit.annotations import Ties
from edokit.ensemble.explain import Reason
from edokit.ensemble.fitted import Fitted, Pooled, spread_items
from edokit.ensemble.in_memory import fit_arrays, with_weights
from edokit.ensemble.inputs import as_predictions, together, with_weight
from edokit.ensemble.presets import choices, objective_of
from edokit.ensemble.recalibrate import sharpen
from edokit.fitdata.sharded import LabelledShards
from edokit.metrics import ce
from edokit.predictions import Predictions, Shards


class EDOEnsemble(BaseEstimator):  # type: ignore[misc]
    """Learn which of K members to trust, and how many, so that the pool answers like people do.

    A parameter that is None takes the value of the ``preset``: ``default``, ``auto`` (pool, groups,
    penalty and temperature settled on the fit data by cross-fitting), ``paper-fixed`` (the paper's
    ablations) or ``paper`` (what the paper's search starts from).

    Parameters in plain words: ``solver`` exact or gumbel; ``ce`` mean, all or random;
    ``diversity`` preserve or suppress; ``pool`` linear or log; ``groups`` averages the members of
    a group first and learns weights between groups; ``lambda_f1``, ``lambda_ce``, ``lambda_div``,
    ``lambda_reg`` weigh the terms; ``class_weights`` weighs classes by inverse frequency;
    ``min_members`` (gumbel) and ``max_members`` bound the size, members ranked by ``order``
    (``ce`` or ``given``); ``epochs``, ``batch_size``, ``learning_rate``, ``temperature``,
    ``temperature_decay``, ``min_temperature`` steer gumbel; ``recalibrate="temperature"`` fits a
    temperature after pooling; ``ties`` settles hard labels of evenly split items.
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        solver: str | None = None,
        ce: str | None = None,
        diversity: str | None = None,
        pool: str | None = None,
        groups: bool | None = None,
        lambda_f1: float | None = None,
        lambda_ce: float | None = None,
        lambda_div: float | None = None,
        lambda_reg: float | None = None,
        class_weights: bool | None = None,
        regularize: str | None = None,
        min_members: int | None = None,
        max_members: int | None = None,
        order: str = "ce",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        temperature: float | None = None,
        temperature_decay: float | None = None,
        min_temperature: float | None = None,
        recalibrate: str | None = None,
        ties: Ties = "first",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.solver = solver
        self.ce = ce
        self.diversity = diversity
        self.pool = pool
        self.groups = groups
        self.lambda_f1 = lambda_f1
        self.lambda_ce = lambda_ce
        self.lambda_div = lambda_div
        self.lambda_reg = lambda_reg
        self.class_weights = class_weights
        self.regularize = regularize
        self.min_members = min_members
        self.max_members = max_members
        self.order = order
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.temperature = temperature
        self.temperature_decay = temperature_decay
        self.min_temperature = min_temperature
        self.recalibrate = recalibrate
        self.ties = ties
        self.random_state = random_state

    def fit(self, predictions: Any, annotations: Any = None) -> EDOEnsemble:
        """Learn weights and size from predictions (or [N, K, C]) and what people said of the items.

        ``annotations``: `Annotations`, matched by item id, or an array with one row per item:
        labels [N], labels per annotator [N, A] with gaps, or soft labels [N, C]. `Shards` of
        predictions are never all in memory; see ``fit_shards``.
        """
        if isinstance(predictions, LabelledShards):
            return self.fit_shards(predictions)
        if isinstance(predictions, Shards):
            self.check()
            with LabelledShards.open(
                predictions, annotations, ties=self.ties, seed=self.random_state
            ) as data:
                return self.fit_shards(data)
        choices = self._choices()
        named, people = together(as_predictions(predictions), annotations)
        return self._keep(fit_arrays(choices, self.get_params(), named, people))

    def fit_shards(self, data: LabelledShards) -> EDOEnsemble:
        """Learn from data that do not fit into memory, in some passes over their shards.

        The exact solver finds what ``fit`` finds. The gumbel solver learns from a random sample
        (``data.sample``), with members ranked and results told for all items.
        """
        from edokit.ensemble.sharded import fit_shards

        return self._keep(fit_shards(self._choices(), self.get_params(), data))

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        predictions: Any,
        annotations: Any,
        *,
        size: int | None = None,
        **parameters: Any,
    ) -> EDOEnsemble:
        """The ensemble with these weights [K], judged on predictions and what people said.

        For weights that were learned elsewhere, as end to end. ``metrics_`` and ``objective_``
        are then of the data given here, and ``parameters`` say which objective and pool.
        """
        ensemble = cls(**{**parameters, "order": "given"})
        choices = ensemble._choices()
        named, people = together(as_predictions(predictions), annotations)
        return ensemble._keep(
            with_weights(weights, size, choices, ensemble.get_params(), named, people)
        )

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> EDOEnsemble:
        """The estimator with the parameters and results of a fit; it may come from a file."""
        known = cls._get_param_names()
        given = {name: value for name, value in fitted.parameters.items() if name in known}
        return cls(**given)._keep(fitted)

    def check(self) -> EDOEnsemble:
        """Itself, if its parameters go together; ``fit`` checks them, too."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)
            chosen = self._choices()
        objective_of(chosen)
        return self

    def _choices(self) -> dict[str, Any]:
        """Every choice, the preset's filled in."""
        return choices(self.preset, self.get_params())

    def _keep(self, fitted: Fitted) -> EDOEnsemble:
        """Take over what a fit found: the only place that sets fitted attributes."""
        self.fitted_ = fitted
        self.members_ = fitted.members
        self.classes_: Strings = np.array(fitted.classes, dtype=object)
        self.groups_ = fitted.groups
        self.weights_ = fitted.weights
        self.group_weights_ = fitted.group_weights
        self.size_ = fitted.size
        self.temperature_ = fitted.temperature
        self.settings_ = fitted.settings
        self.objective_ = fitted.objective
        self.metrics_ = fitted.metrics
        self.member_ce_ = fitted.member_ce
        self.certificate_ = fitted.certificate
        self.trajectory_ = fitted.trajectory
        self.n_items_ = fitted.items
        self.data_ = fitted.data
        return self

    def save(self, folder: str | Path) -> None:
        """Write ``ensemble.json`` and a card into a folder; nothing in it executes on load."""
        from edokit.ensemble.persistence import save_ensemble

        save_ensemble(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> EDOEnsemble:
        """Read what ``save`` wrote, by this or an older version."""
        from edokit.ensemble.persistence import load_ensemble

        return load_ensemble(folder)

    def describe(self, predictions: Any) -> Pooled:
        """Pooled probabilities with the entropy and the spread of the members, item by item."""
        named = self._known(predictions)
        P = np.asarray(named.probabilities, dtype=np.float64)
        fitted = self.fitted_
        pooled = sharpen(fitted.pool_members(P, named.members), fitted.temperature)
        spread = spread_items(P, fitted.weights_of(named.members))
        return Pooled(named.items, named.classes, pooled, spread)

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
        return self.fitted_.needed_members

    def explain(self) -> list[Reason]:
        """Why each member has its weight, heaviest first; ``print`` gives a sentence for each."""
        self._check_fitted()
        return list(self.fitted_.explanation)

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
        classes = self.fitted_.classes
        given = as_predictions(predictions, self.members_)
        if not isinstance(predictions, Predictions):
            given = Predictions(given.probabilities, given.items, given.members, classes).named()
        return with_weight(given, self.fitted_.needed_members).order_classes(classes)

    def _check_fitted(self) -> None:
        if not hasattr(self, "fitted_"):
            raise NotFittedError("this EDOEnsemble must be fitted first, but is not; call fit")
