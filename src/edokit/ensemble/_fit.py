"""The one fit path: data in memory or in shards, weights learned or given, in; a record out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from edokit._errors import InputError, warn
from edokit._types import Floats
from edokit.ensemble.auto import decide
from edokit.ensemble.explain import explain
from edokit.ensemble.fitted import Fitted, on_simplex
from edokit.ensemble.presets import gumbel_settings, objective_of
from edokit.fitdata import FitData
from edokit.fitdata.passes import add_powers
from edokit.objective import CE, Problem, Settings, fit_temperature, pool
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.solvers import Solution, solve_exact, solve_gumbel
from edokit.solvers.exact import solution_at

GIVEN = "given"
"""Name of the solver where weights come from elsewhere."""
_STEPS = 30  # of Newton's method in one dimension


def fit_ensemble(
    data: FitData, choices: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Fitted:
    """Learn weights and size.

    Parameters
    ----------
    data : FitData
        Predictions and labels, in memory or in shards.
    choices : mapping
        Every choice: the preset's, with those of the user in their place.
    parameters : mapping
        The user's alone; None where the preset decides.

    Returns
    -------
    Fitted
        What ``ensemble.json`` stores.
    """
    chosen = dict(choices)
    if chosen["preset"] == "auto":
        decide(data, chosen, parameters)
    units = data.grouped() if chosen["groups"] else data
    settings = objective_of(chosen)
    if chosen["max_members"] is None:
        chosen["max_members"] = len(units.members)
    solution = _solve(units, settings, chosen)
    temperature = 1.0
    if chosen["recalibrate"] is not None:
        temperature = _temperature(units, solution.weights, str(settings.pool))
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


def _solve(units: FitData, settings: Settings, chosen: dict[str, Any]) -> Solution:
    if chosen["solver"] == "exact":
        return solve_exact(
            units, settings, order=chosen["order"], max_members=chosen["max_members"]
        )
    learned_from = len(units.sample.y)
    if units.is_sampled:
        warn(
            f"the gumbel solver learned from a random sample of {learned_from} of {units.items}"
            " items; ranks, terms and metrics are of all (solver='exact' uses all)",
            parameters=("solver",),
        )
    (solution,) = solve_gumbel(
        units,
        settings,
        gumbel_settings(chosen, learned_from),
        random_state=chosen["random_state"],
        order=chosen["order"],
    )
    return solution


def _fitted(
    data: FitData,
    units: FitData,
    settings: Settings,
    solution: Solution,
    temperature: float,
    chosen: dict[str, Any],
    parameters: Mapping[str, Any],
) -> Fitted:
    """The record: the solution, and what it is worth on the data."""
    sums = units.summaries()
    # With its gradient known, the cross-entropy of the pool is as good as a linear term.
    problem = Problem.from_summaries(
        sums, class_weights=settings.class_weights, pool=settings.pool, classes=data.classes
    )
    problem = replace(problem, member_ce=solution.ce_gradient)
    linear = replace(settings, ce=CE.ALL)
    (metrics,) = units.evaluate(solution.weights, settings.pool, temperature)
    counts = data.counts
    hard = [int(count) for count in sums.class_counts]
    return Fitted.from_solution(
        solution,
        groups=None if units is data else data.member_groups(),
        members=data.members,
        classes=data.classes,
        settings=chosen,
        parameters=dict(parameters),
        temperature=temperature,
        metrics=metrics,
        member_ce=data.member_ce(),
        items=sum(hard),
        data={
            "annotators": 0 if counts is None else counts.annotators,
            "annotations": 0 if counts is None else counts.annotations,
            "hard_labels": dict(zip(data.classes, hard, strict=True)),
        },
        explanation=explain(
            units.members,
            solution,
            problem,
            sums.member_ce(),
            linear,
            len(units.members) if chosen["solver"] == GIVEN else chosen["max_members"],
        ),
    )


def _temperature(units: FitData, weights: Floats, kind: str) -> float:
    """The temperature with the lowest cross-entropy over all items.

    The sample's is where it starts. The cross-entropy is convex in 1/temperature.
    """
    sample = units.sample
    power = 1.0 / fit_temperature(np.asarray(pool(sample.P, weights, kind)), sample.q)
    low, high = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
    for _ in range(_STEPS if units.is_sampled else 0):
        (sums,) = units.total(add_powers, weights, kind, power, what="recalibrating")
        slope, bend = sums[1] / units.items, sums[2] / units.items
        low, high = (power, high) if slope < 0 else (low, power)
        step = power - slope / bend if bend > 0 else (low + high) / 2
        moved = step if low < step < high else (low + high) / 2
        if abs(moved - power) < 1e-9:
            break
        power = moved
    return float(1.0 / power)
