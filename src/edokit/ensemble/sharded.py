"""An ensemble learned from data that do not fit into memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import warn
from edokit._types import Floats
from edokit.ensemble.auto import decide
from edokit.ensemble.explain import explain
from edokit.ensemble.fitted import Fitted
from edokit.ensemble.inputs import named_groups
from edokit.ensemble.presets import gumbel_settings, objective_of
from edokit.ensemble.recalibrate import HIGHEST, LOWEST, fit_temperature, power_sums, sharpen
from edokit.fitdata.passes import Groups, ce_sums, units_of
from edokit.fitdata.sharded import LabelledShards
from edokit.metrics import MetricSums
from edokit.objective import CE, Settings, group_names, pool
from edokit.solvers import solve_exact_shards, solve_gumbel_shards
from edokit.solvers.sharded import lean_problem

_STEPS = 30  # of Newton's method in one dimension


def fit_shards(
    choices: Mapping[str, Any], parameters: Mapping[str, Any], data: LabelledShards
) -> Fitted:
    """Fit on all items of the shards; ``choices`` and ``parameters`` as for `fit_arrays`."""
    chosen = dict(choices)
    seed, order = chosen["random_state"], chosen["order"]
    if chosen["preset"] == "auto":
        known = data.groups is not None or chosen["groups"]
        names = named_groups(data.members, data.groups) if known else None
        decide(chosen, parameters, *data.sample, names, seed=seed)
    groups = named_groups(data.members, data.groups) if chosen["groups"] else None
    settings = objective_of(chosen)
    sums = data.summaries(groups)
    if chosen["max_members"] is None:
        chosen["max_members"] = sums.members
    most = chosen["max_members"]
    if chosen["solver"] == "gumbel":
        sampled = len(data.sample.y)
        if sampled < data.items:
            warn(
                f"the gumbel solver learned from a random sample of {sampled} of {data.items}"
                " items; ranks, terms and metrics are of all (solver='exact' uses all)"
            )
        (solution,) = solve_gumbel_shards(
            data,
            [settings],
            [gumbel_settings(chosen, sampled)],
            seeds=seed,
            groups=groups,
            order=order,
        )
    else:
        solution = solve_exact_shards(data, settings, groups=groups, order=order, max_members=most)
    told = data.told
    pooled = (solution.weights, str(settings.pool), groups)
    temperature = 1.0 if chosen["recalibrate"] is None else _temperature(data, *pooled)
    metrics, slope = _judge(data, settings, *pooled, temperature)
    # With its slope known, the cross-entropy of the pool is as good as a linear term.
    problem = lean_problem(sums, settings)
    if settings.ce is CE.MEAN:
        problem = replace(problem, member_ce=slope)
    units = list(data.members) if groups is None else group_names(groups)
    linear = replace(settings, ce=CE.ALL)
    counts = [int(count) for count in sums.class_counts]
    return Fitted.from_solution(
        solution,
        groups=groups,
        members=data.members,
        classes=data.classes,
        settings=chosen,
        parameters=dict(parameters),
        temperature=temperature,
        metrics=metrics,
        member_ce=np.asarray(data.summaries().member_ce()),
        items=sum(counts),
        data={
            "annotators": 0 if told is None else len(told.annotators),
            "annotations": 0 if told is None else told.annotations,
            "hard_labels": dict(zip(data.classes, counts, strict=True)),
        },
        explanation=explain(units, solution, problem, sums.member_ce(), linear, most),
    )


def _judge(
    data: LabelledShards,
    settings: Settings,
    weights: Floats,
    kind: str,
    groups: Groups,
    temperature: float,
) -> tuple[dict[str, float | None], Floats]:
    """The metrics of the pool, and the slope of its cross-entropy in the weights; one pass."""
    sums = data.summaries(groups)
    alpha = sums.class_weights(data.classes) if settings.class_weights else None
    metrics, at = data.total(_judged, weights, kind, groups, temperature, alpha, what="judging")
    return metrics.values(), at.gradient / at.items


def _temperature(data: LabelledShards, weights: Floats, kind: str, groups: Groups) -> float:
    """The temperature with the lowest cross-entropy over all items.

    The sample's is where it starts. The cross-entropy is convex in 1/temperature.
    """
    drawn = data.sample
    power = 1.0 / fit_temperature(pool(units_of(drawn.P, groups), weights, kind), drawn.q)
    low, high = 1.0 / HIGHEST, 1.0 / LOWEST
    for _ in range(_STEPS):
        (sums,) = data.total(_powers, weights, kind, groups, power, what="recalibrating")
        slope, bend = sums[1] / data.items, sums[2] / data.items
        low, high = (power, high) if slope < 0 else (low, power)
        step = power - slope / bend if bend > 0 else (low + high) / 2
        moved = step if low < step < high else (low + high) / 2
        if abs(moved - power) < 1e-9:
            break
        power = moved
    return float(1.0 / power)


def _judged(
    P: Floats,
    q: Floats,
    y: npt.NDArray[Any],
    weights: Floats,
    kind: str,
    groups: Groups,
    temperature: float,
    alpha: Floats | None,
) -> list[Any]:
    units = units_of(P, groups)
    pooled = sharpen(np.asarray(pool(units, weights, kind)), temperature)
    return [MetricSums.of(pooled, q, y), ce_sums(units, q, alpha, weights, kind)]


def _powers(
    P: Floats,
    q: Floats,
    y: npt.NDArray[Any],
    weights: Floats,
    kind: str,
    groups: Groups,
    power: float,
) -> list[Floats]:
    return [power_sums(np.asarray(pool(units_of(P, groups), weights, kind)), q, power)]
