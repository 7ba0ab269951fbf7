"""The one fit path: data in memory or in shards, weights learned or given, in; a record out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edokit._errors import InputError, warn
from edokit._types import Floats
from edokit.ensemble.auto import decide
from edokit.ensemble.explain import explain
from edokit.ensemble.fitted import Fitted, on_simplex
from edokit.ensemble.presets import gumbel_settings, objective_of
from edokit.fitdata import FitData
from edokit.objective import Settings, fit_temperature, pool, spread_weights
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.solvers import Solution, solve_exact
from edokit.solvers.exact import solution_at

GIVEN = "given"
"""Name of the solver where weights come from elsewhere."""
_STEPS = 30  # of Newton's method in one dimension


def fit_ensemble(
    data: FitData, choices: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Fitted:
    """Learn weights and size.

    ``choices`` are the preset's with those of the user in their place; ``parameters`` the user's
    alone, None where the preset decides.
    """
    chosen = dict(choices)
    if chosen["preset"] == "auto":
        decide(data, chosen, parameters)
    units = data.grouped() if chosen["groups"] else data
    settings = objective_of(chosen)
    if chosen["max_members"] is None:
        chosen["max_members"] = len(units.members)
    order = chosen["order"]
    if chosen["solver"] == "exact":
        solution = solve_exact(units, settings, order=order, max_members=chosen["max_members"])
    else:
        from edokit.solvers import solve_gumbel

        learned_from = len(units.sample.y)
        if units.is_sampled:
            warn(
                f"the gumbel solver learned from a random sample of {learned_from} of {units.items}"
                " items; ranks, terms and metrics are of all (solver='exact' uses all)",
                parameters=("solver",),
            )
        search, seed = gumbel_settings(chosen, learned_from), chosen["random_state"]
        (solution,) = solve_gumbel(units, settings, search, random_state=seed, order=order)
    recalibrated = chosen["recalibrate"] is not None
    temperature = _temperature(units, solution.weights, settings.pool) if recalibrated else 1.0
    return _fitted(data, units, settings, solution, temperature, chosen, parameters)


def fit_given_weights(
    data: FitData,
    weights: Any,
    size: int | None,
    choices: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> Fitted:
    """The ensemble with these member weights [K], evaluated on the data."""
    chosen = {**choices, "solver": GIVEN}
    if chosen["groups"] or chosen["recalibrate"] is not None:
        raise InputError(
            "weights are given for members as they are, but groups or recalibrate is set",
            "leave both out",
            parameters=("groups", "recalibrate"),
        )
    v = np.asarray(weights, dtype=np.float64)
    if v.shape != (len(data.members),) or not on_simplex(v):
        raise InputError(
            f"weights must be one for each of the {len(data.members)} members, not negative and sum"
            f" to 1; these are {v.tolist()}",
            "divide them by their sum",
        )
    settings = objective_of(chosen)
    ((terms, ce_gradient),) = solution_at(data, [settings], [v])
    solution = Solution(
        weights=v,
        size=int((v > 0).sum()) if size is None else size,
        terms=terms,
        order=np.argsort(v == 0, kind="stable"),
        ce_gradient=ce_gradient,
    )
    return _fitted(data, data, settings, solution, 1.0, chosen, parameters)


def _fitted(
    data: FitData,
    units: FitData,
    settings: Settings,
    solution: Solution,
    temperature: float,
    chosen: dict[str, Any],
    parameters: Mapping[str, Any],
) -> Fitted:
    """The record: the solution, whose weights are of ``units``, and its value on the data."""
    groups = None if units is data else data.member_groups()
    weights = solution.weights
    (metrics,) = units.evaluate(weights, settings.pool, temperature)
    counts = data.counts
    hard = [int(count) for count in units.summaries().class_counts]
    limit = len(units.members) if chosen["solver"] == GIVEN else chosen["max_members"]
    return Fitted(
        members=data.members,
        groups=groups,
        classes=data.classes,
        weights=weights if groups is None else spread_weights(weights, groups),
        group_weights=None if groups is None else weights,
        size=solution.size,
        temperature=temperature,
        settings=chosen,
        parameters=dict(parameters),
        objective=solution.terms,
        certificate=solution.certificate,
        trajectory=solution.trajectory,
        metrics=metrics,
        member_ce=data.member_ce(),
        items=sum(hard),
        data={
            "annotators": 0 if counts is None else counts.annotators,
            "annotations": 0 if counts is None else counts.annotations,
            "hard_labels": dict(zip(data.classes, hard, strict=True)),
        },
        explanation=explain(units, solution, settings, limit),
    )


def _temperature(units: FitData, weights: Floats, kind: str) -> float:
    """The temperature with the lowest cross-entropy over all items.

    The sample's is where it starts. The cross-entropy is convex in 1/temperature.
    """
    sample = units.sample
    power = 1.0 / fit_temperature(np.asarray(pool(sample.P, weights, kind)), sample.q)
    low, high = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
    for _ in range(_STEPS if units.is_sampled else 0):
        sums = units.power_sums(weights, kind, power)
        slope, bend = sums[1] / units.items, sums[2] / units.items
        low, high = (power, high) if slope < 0 else (low, power)
        step = power - slope / bend if bend > 0 else (low + high) / 2
        moved = step if low < step < high else (low + high) / 2
        if abs(moved - power) < 1e-9:
            break
        power = moved
    return float(1.0 / power)
