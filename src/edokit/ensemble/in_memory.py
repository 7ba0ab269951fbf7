"""An ensemble learned from predictions in memory, or whose weights come from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats
from edokit.annotations import Annotations
from edokit.ensemble.auto import ITEMS, decide
from edokit.ensemble.explain import explain
from edokit.ensemble.fitted import Fitted, on_simplex
from edokit.ensemble.inputs import named_groups
from edokit.ensemble.presets import gumbel_settings, objective_of
from edokit.ensemble.recalibrate import fit_temperature, sharpen
from edokit.metrics import ce, compute_metrics
from edokit.objective import (
    CE,
    Problem,
    Regularize,
    Settings,
    Summaries,
    average_groups,
    group_names,
    joint_loss,
    pool,
    rank_members,
)
from edokit.predictions import Predictions
from edokit.solvers import Solution, solve_exact, solve_gumbel

GIVEN = "given"
"""Name of the solver where weights come from elsewhere."""
TERMS = ("f1", "ce", "div", "reg", "total")


def fit_arrays(
    choices: Mapping[str, Any],
    parameters: Mapping[str, Any],
    predictions: Predictions,
    annotations: Annotations,
) -> Fitted:
    """Fit on predictions and annotations of the same items in the same order.

    ``choices`` are the preset's with those of the user in their place, ``parameters`` the user's
    alone (None where the preset decides).
    """
    chosen = dict(choices)
    P, q, y = _arrays(predictions, annotations, chosen)
    if chosen["preset"] == "auto":
        _decide(chosen, parameters, predictions, P, q, y)
    groups = named_groups(predictions.members, predictions.groups) if chosen["groups"] else None
    units = P if groups is None else average_groups(P, groups)
    settings = objective_of(chosen)
    if chosen["max_members"] is None:
        chosen["max_members"] = units.shape[1]
    sums, problem = _problem(units, q, y, settings, predictions.classes)
    if chosen["solver"] == "gumbel":
        options = gumbel_settings(chosen, len(q))
        (solution,) = solve_gumbel(
            units,
            q,
            y,
            settings,
            options,
            seeds=chosen["random_state"],
            order=chosen["order"],
        )
    else:
        ranks = rank_members(sums, chosen["order"])
        most = chosen["max_members"]
        solution = solve_exact(problem, settings, order=ranks, max_members=most)

    pooled = np.asarray(pool(units, solution.weights, str(settings.pool)))
    temperature = 1.0
    if chosen["recalibrate"] is not None:
        temperature = fit_temperature(pooled, q)
        pooled = sharpen(pooled, temperature)
    names = list(predictions.members) if groups is None else group_names(groups)
    return Fitted.from_solution(
        solution,
        groups=groups,
        members=predictions.members,
        classes=predictions.classes,
        settings=chosen,
        parameters=dict(parameters),
        temperature=temperature,
        metrics=compute_metrics(pooled, q, y),
        member_ce=np.array([ce(P[:, k], q) for k in range(P.shape[1])]),
        items=len(q),
        data=_described(annotations, y),
        explanation=explain(
            names, solution, problem, sums.member_ce(), settings, chosen["max_members"]
        ),
    )


def with_weights(
    weights: Any,
    size: int | None,
    choices: Mapping[str, Any],
    parameters: Mapping[str, Any],
    predictions: Predictions,
    annotations: Annotations,
) -> Fitted:
    """The ensemble with these member weights [K], evaluated on predictions and annotations."""
    chosen = {**choices, "solver": GIVEN}
    if chosen["groups"] or chosen["recalibrate"] is not None:
        raise InputError(
            "weights are given for members as they are, but groups or recalibrate is set",
            "leave both out",
            parameters=("groups", "recalibrate"),
        )
    members = predictions.members
    v = np.asarray(weights, dtype=np.float64)
    if v.shape != (len(members),) or not on_simplex(v):
        raise InputError(
            f"weights must be one for each of the {len(members)} members, not negative and sum to"
            f" 1; these are {v.tolist()}",
            "divide them by their sum",
        )
    P, q, y = _arrays(predictions, annotations, chosen)
    settings = objective_of(chosen)
    # Nothing is sampled here, and there are no weights but these.
    variant = CE.ALL if settings.ce is CE.RANDOM else settings.ce
    settings = replace(settings, ce=variant, regularize=Regularize.EFFECTIVE)
    _, problem = _problem(P, q, y, settings, predictions.classes)
    loss = joint_loss(v, problem, settings)
    solution = Solution(
        weights=v,
        size=int((v > 0).sum()) if size is None else size,
        terms={name: float(getattr(loss, name)) for name in TERMS},
        order=np.argsort(v == 0, kind="stable"),
    )
    member_ce = np.array([ce(P[:, k], q) for k in range(len(v))])
    return Fitted.from_solution(
        solution,
        groups=None,
        members=members,
        classes=predictions.classes,
        settings=chosen,
        parameters=dict(parameters),
        metrics=compute_metrics(np.asarray(pool(P, v, str(settings.pool))), q, y),
        member_ce=member_ce,
        items=len(q),
        data=_described(annotations, y),
        explanation=explain(members, solution, problem, member_ce, settings, len(v)),
    )


def _arrays(
    predictions: Predictions, annotations: Annotations, chosen: Mapping[str, Any]
) -> tuple[Floats, Floats, npt.NDArray[Any]]:
    """Predictions P [N, K, C], soft labels q [N, C] and hard labels y [N]."""
    y = annotations.hard_labels(ties=chosen["ties"], random_state=chosen["random_state"])
    return np.asarray(predictions.probabilities, dtype=np.float64), annotations.soft_labels, y


def _problem(
    units: Floats,
    q: Floats,
    y: npt.NDArray[Any],
    settings: Settings,
    classes: tuple[str, ...],
) -> tuple[Summaries, Problem]:
    """One pass over the items, which serves the solver and the explanation."""
    sums, weighted = Summaries.from_arrays(units, q, y), settings.class_weights
    if weighted:
        sums.class_weights(classes)  # a class without items is refused by its name
    return sums, Problem.from_arrays(
        units, q, y, class_weights=weighted, pool=settings.pool, summaries=sums
    )


def _described(annotations: Annotations, y: npt.NDArray[Any]) -> dict[str, Any]:
    counts = np.bincount(y, minlength=len(annotations.classes)).tolist()
    return {
        "annotators": len(annotations.annotators),
        "annotations": len(annotations),
        "hard_labels": dict(zip(annotations.classes, counts, strict=True)),
    }


def _decide(
    chosen: dict[str, Any],
    parameters: Mapping[str, Any],
    predictions: Predictions,
    P: Floats,
    q: Floats,
    y: npt.NDArray[Any],
) -> None:
    """Settle what the preset ``auto`` leaves open."""
    known = predictions.groups is not None or chosen["groups"]
    groups = named_groups(predictions.members, predictions.groups) if known else None
    rows = np.arange(len(q))
    if len(q) <= ITEMS:
        # Folds by name, so that the order of the items does not matter.
        rows = np.argsort(predictions.items.astype(str), kind="stable")
    decide(chosen, parameters, P[rows], q[rows], y[rows], groups, seed=chosen["random_state"])
