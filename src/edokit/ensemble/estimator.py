"""The ensemble: member weights and size, learned from predictions and people's answers."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from edokit.ensemble.auto import ITEMS, decide
from edokit.ensemble.explain import explain
from edokit.ensemble.inputs import as_predictions, together
from edokit.ensemble.pooled import Pooled, spread_items
from edokit.ensemble.presets import choices
from edokit.ensemble.recalibrate import fit_temperature, sharpen
from edokit.errors import EDOWarning, InputError, one_of
from edokit.ids import Strings
from edokit.metrics import ce, evaluate
from edokit.objective import (
    Problem,
    Settings,
    Summaries,
    average_groups,
    group_names,
    pool,
    rank_members,
    spread_weights,
)
from edokit.objective.sharded import LabelledShards
from edokit.predictions import Predictions, Shards
from edokit.solvers import (
    Certificate,
    GumbelSettings,
    Solution,
    Trajectory,
    solve_exact,
    solve_gumbel,
)

Floats = npt.NDArray[np.float64]
OBJECTIVE = tuple(Settings.__dataclass_fields__)
SEARCH = tuple(GumbelSettings.__dataclass_fields__)


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
        q = people.soft_labels
        y = people.hard_labels(ties=self.ties, seed=self.random_state)
        P = np.asarray(named.probabilities, dtype=np.float64)
        if self.preset == "auto":
            self._decide(chosen, named, P, q, y)
        groups = named_groups(named.members, named.groups) if chosen["groups"] else None
        units = P if groups is None else average_groups(P, groups)
        settings = Settings(**{name: chosen[name] for name in OBJECTIVE})
        if chosen["max_members"] is None:
            chosen["max_members"] = units.shape[1]
        # One pass over the items serves the solver and the explanation.
        sums = Summaries.from_arrays(units, q, y)
        problem = Problem.from_arrays(
            units,
            q,
            y,
            class_weights=settings.class_weights,
            pool=settings.pool,
            summaries=sums,
        )
        if chosen["solver"] == "gumbel":
            options = self._search_options(len(q), chosen)
            (solution,) = solve_gumbel(
                units, q, y, settings, options, seeds=self.random_state, order=self.order
            )
        else:
            ranks = rank_members(sums, self.order)
            most = chosen["max_members"]
            solution = solve_exact(problem, settings, order=ranks, max_members=most)

        hard = np.bincount(y, minlength=len(named.classes)).tolist()
        self._keep(
            chosen,
            solution,
            named.members,
            named.classes,
            groups,
            {
                "annotators": len(people.annotators),
                "annotations": len(people),
                "hard_labels": dict(zip(named.classes, hard, strict=True)),
            },
        )
        self.member_ce_ = np.array([ce(P[:, k], q) for k in range(P.shape[1])])
        pooled = self._pooled(P)
        if chosen["recalibrate"] is not None:
            self.temperature_ = fit_temperature(pooled, q)
            pooled = sharpen(pooled, self.temperature_)
        self.metrics_ = evaluate(pooled, q, y)
        names = list(named.members) if groups is None else group_names(groups)
        self._reasons = explain(
            names, solution, problem, sums.member_ce(), settings, chosen["max_members"]
        )
        return self

    def _decide(
        self,
        chosen: dict[str, Any],
        named: Predictions,
        P: Floats,
        q: Floats,
        y: npt.NDArray[Any],
    ) -> None:
        """Settle what the preset ``auto`` leaves open."""
        known = named.groups is not None or chosen["groups"]
        groups = named_groups(named.members, named.groups) if known else None
        rows = np.arange(len(q))
        if len(q) <= ITEMS:
            # Folds by name, so that the order of the items does not matter.
            rows = np.argsort(named.items.astype(str), kind="stable")
        decide(chosen, self.get_params(), P[rows], q[rows], y[rows], groups, seed=self.random_state)

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
        Settings(**{name: chosen[name] for name in OBJECTIVE})
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

    def save(self, folder: str | Path) -> None:
        """Write ``ensemble.json`` and a card into a folder; nothing in it executes on load."""
        from edokit.ensemble.persistence import save_ensemble

        save_ensemble(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> EDOEnsemble:
        """Read what ``save`` wrote, by this or an older version."""
        from edokit.ensemble.persistence import load_ensemble

        return load_ensemble(folder)

    def _known(self, predictions: Any) -> Predictions:
        """Predictions of the members that carry weight, classes as fitted."""
        self._check_fitted()
        given = as_predictions(predictions, self.members_)
        if not isinstance(predictions, Predictions):
            given = Predictions(
                given.probabilities, given.items, given.members, tuple(self.classes_)
            ).named()
        needed = self.needed_members()
        missing = [name for name in needed if name not in given.members]
        if missing:
            raise InputError(
                f"predictions must hold the {len(needed)} members that carry weight, but"
                f" {len(missing)} are missing: {', '.join(map(repr, missing[:3]))}",
                "score the items with these members, too",
            )
        return given.select(needed).order_classes(tuple(self.classes_))

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


def named_groups(members: tuple[str, ...], groups: tuple[str, ...] | None) -> tuple[str, ...]:
    """The group of each member; one without a group is a group of its own."""
    if groups is None:
        raise InputError(
            "groups=True needs the group of each member, but these predictions have none",
            "name them (Predictions.grouped, `edo predictions join --group`), or leave groups out",
        )
    return tuple(group or f"member {name}" for name, group in zip(members, groups, strict=True))
