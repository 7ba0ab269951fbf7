"""An ensemble learned from predictions in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.annotations import Annotations
from edokit.ensemble.auto import ITEMS, decide
from edokit.ensemble.explain import explain
from edokit.ensemble.inputs import named_groups
from edokit.ensemble.presets import objective_of
from edokit.ensemble.recalibrate import fit_temperature, sharpen
from edokit.metrics import ce, evaluate
from edokit.objective import (
    Problem,
    Summaries,
    average_groups,
    group_names,
    rank_members,
)
from edokit.predictions import Predictions
from edokit.solvers import solve_exact, solve_gumbel

if TYPE_CHECKING:
    from edokit.ensemble.estimator import EDOEnsemble


def fit_arrays(
    ensemble: EDOEnsemble, chosen: dict[str, Any], named: Predictions, people: Annotations
) -> None:
    """Fit the ensemble on predictions and annotations of the same items in the same order."""
    q = people.soft_labels
    y = people.hard_labels(ties=ensemble.ties, seed=ensemble.random_state)
    P = np.asarray(named.probabilities, dtype=np.float64)
    if ensemble.preset == "auto":
        _decide(ensemble, chosen, named, P, q, y)
    groups = named_groups(named.members, named.groups) if chosen["groups"] else None
    units = P if groups is None else average_groups(P, groups)
    settings = objective_of(chosen)
    if chosen["max_members"] is None:
        chosen["max_members"] = units.shape[1]
    # One pass over the items serves the solver and the explanation.
    sums = Summaries.from_arrays(units, q, y)
    if settings.class_weights:
        sums.class_weights(named.classes)  # what has none is refused by its name
    problem = Problem.from_arrays(
        units,
        q,
        y,
        class_weights=settings.class_weights,
        pool=settings.pool,
        summaries=sums,
    )
    if chosen["solver"] == "gumbel":
        options = ensemble._search_options(len(q), chosen)
        (solution,) = solve_gumbel(
            units, q, y, settings, options, seeds=ensemble.random_state, order=ensemble.order
        )
    else:
        ranks = rank_members(sums, ensemble.order)
        most = chosen["max_members"]
        solution = solve_exact(problem, settings, order=ranks, max_members=most)

    hard = np.bincount(y, minlength=len(named.classes)).tolist()
    ensemble._keep(
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
    ensemble.member_ce_ = np.array([ce(P[:, k], q) for k in range(P.shape[1])])
    pooled = ensemble._pooled(P)
    if chosen["recalibrate"] is not None:
        ensemble.temperature_ = fit_temperature(pooled, q)
        pooled = sharpen(pooled, ensemble.temperature_)
    ensemble.metrics_ = evaluate(pooled, q, y)
    names = list(named.members) if groups is None else group_names(groups)
    ensemble._reasons = explain(
        names, solution, problem, sums.member_ce(), settings, chosen["max_members"]
    )


def _decide(
    ensemble: EDOEnsemble,
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
    decide(
        chosen, ensemble.get_params(), P[rows], q[rows], y[rows], groups, seed=ensemble.random_state
    )
