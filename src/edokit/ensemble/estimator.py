"""The ensemble: member weights and size, learned from predictions and people's answers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from edokit._errors import EDOWarning, one_of
from edokit.ensemble.fitted import FittedEnsemble
from edokit.ensemble.in_memory import fit_arrays
from edokit.ensemble.inputs import as_predictions, together
from edokit.ensemble.presets import choices, objective_of
from edokit.objective import spread_weights
from edokit.objective.sharded import LabelledShards
from edokit.predictions import Shards
from edokit.solvers import GumbelSettings, Solution

SEARCH = tuple(GumbelSettings.__dataclass_fields__)


class EDOEnsemble(FittedEnsemble, BaseEstimator):  # type: ignore[misc]
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
        ties: str = "first",
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
        chosen = self._choices()
        named, people = together(as_predictions(predictions), annotations)
        fit_arrays(self, chosen, named, people)
        return self

    def fit_shards(self, data: LabelledShards) -> EDOEnsemble:
        """Learn from data that do not fit into memory, in some passes over their shards.

        The exact solver finds what ``fit`` finds. The gumbel solver learns from a random sample
        (``data.sample``), with members ranked and results told for all items.
        """
        from edokit.ensemble.sharded import fit_shards

        fit_shards(self, data)
        return self

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
        from edokit.ensemble.given import with_weights

        return with_weights(weights, predictions, annotations, size=size, **parameters)

    def check(self) -> EDOEnsemble:
        """Itself, if its parameters go together; ``fit`` checks them, too."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)
            chosen = self._choices()
        objective_of(chosen)
        return self

    def _choices(self) -> dict[str, Any]:
        """Every choice, the preset's filled in."""
        chosen = choices(self.preset, self.get_params())
        if chosen["recalibrate"] is not None:
            one_of("recalibrate", chosen["recalibrate"], ["temperature", "none"])
        if chosen["recalibrate"] == "none":
            chosen["recalibrate"] = None
        return chosen

    def _keep(
        self,
        chosen: dict[str, Any],
        solution: Solution,
        members: tuple[str, ...],
        classes: tuple[str, ...],
        groups: tuple[str, ...] | None,
        data: dict[str, Any],
    ) -> None:
        """Take over what was learned, apart from what is measured on it."""
        self.settings_ = {**chosen, "order": self.order, "ties": self.ties}
        self.settings_["random_state"] = self.random_state
        self.classes_ = np.array(classes, dtype=object)
        self.members_ = members
        self.groups_ = groups
        self.group_weights_ = None if groups is None else solution.weights
        self.weights_ = (
            solution.weights if groups is None else spread_weights(solution.weights, groups)
        )
        self.size_ = solution.size
        self.objective_ = solution.terms
        self.trajectory_, self.certificate_ = solution.trajectory, solution.certificate
        self.data_ = data
        self.n_items_ = sum(data["hard_labels"].values())
        self.temperature_ = 1.0

    def _search_options(self, items: int, chosen: dict[str, Any]) -> GumbelSettings:
        """How gumbel searches; what the preset leaves open is filled in, and kept in ``chosen``."""
        thorough = GumbelSettings.thorough(
            items,
            batch_size=chosen["batch_size"],
            min_members=chosen["min_members"],
            max_members=chosen["max_members"],
        )
        for name in SEARCH:
            if chosen[name] is None:
                chosen[name] = getattr(thorough, name)
        return GumbelSettings(**{name: chosen[name] for name in SEARCH})

    def save(self, folder: str | Path) -> None:
        """Write ``ensemble.json`` and a card into a folder; nothing in it executes on load."""
        from edokit.ensemble.persistence import save_ensemble

        save_ensemble(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> EDOEnsemble:
        """Read what ``save`` wrote, by this or an older version."""
        from edokit.ensemble.persistence import load_ensemble

        return load_ensemble(folder)
