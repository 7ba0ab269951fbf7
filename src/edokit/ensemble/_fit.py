"""From choices to an ensemble: presets, and the one fit path for data in memory and in shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from edokit._errors import InputError, check_seed, one_of, warn
from edokit._types import Floats
from edokit.ensemble._regularization import choose_lambda_reg
from edokit.ensemble.fitted import Constant, Fitted, explain, on_simplex
from edokit.ensemble.inputs import align_inputs, as_predictions, class_labels
from edokit.fitdata import FitData
from edokit.objective import PRESETS as OBJECTIVES
from edokit.objective import Settings, fit_temperature, pool, spread_weights
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.objective.settings import SCALE_TERMS
from edokit.predictions import Shards
from edokit.solvers import GumbelSettings, Solution, solve_exact
from edokit.solvers.exact import solution_at

GIVEN = "given"
"""Name of the solver where weights come from elsewhere."""
_STEPS = 30  # of Newton's method in one dimension


def fit_inputs(predictions: Any, annotations: Any, parameters: Mapping[str, Any]) -> Fitted:
    """What `EDOEnsemble.fit` learns with these parameters, all of ``PARAMETERS``."""
    chosen = choices(parameters["preset"], parameters)
    objective_of(chosen)  # refuses values before anything is read
    if isinstance(predictions, Shards):
        how = {name: parameters[name] for name in ("ties", "random_state")}
        with FitData.open(predictions, annotations, **how) as shards:
            return fit_ensemble(shards, chosen, parameters)
    fitted = fit_ensemble(as_fit_data(predictions, annotations, parameters), chosen, parameters)
    return with_labels(fitted, annotations)


def as_fit_data(predictions: Any, annotations: Any, parameters: Mapping[str, Any]) -> FitData:
    """Predictions and annotations in memory, matched by item; or data that are ready."""
    if isinstance(predictions, FitData):
        return predictions
    named, labels = align_inputs(as_predictions(predictions), annotations)
    how = {name: parameters[name] for name in ("ties", "random_state")}
    return FitData.from_predictions(named, labels, **how)


def with_labels(fitted: Fitted, annotations: Any) -> Fitted:
    """With the class labels as these annotations write them."""
    if annotations is None:
        return fitted
    return replace(fitted, labels=class_labels(annotations, fitted.classes))


def fit_ensemble(
    data: FitData, choices: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Fitted:
    """Learn weights and size.

    ``choices`` are the preset's with those of the user in their place; ``parameters`` the user's
    alone, None where the preset decides.
    """
    chosen = dict(choices)
    units = data.grouped() if chosen["groups"] else data
    if chosen["max_members"] is None:
        chosen["max_members"] = len(units.members)
    order = chosen["order"]
    if chosen["lambda_reg"] is None:
        chosen["lambda_reg"], chosen["lambda_reg_choice"] = choose_lambda_reg(
            units,
            objective_of(chosen),
            order=order,
            max_members=chosen["max_members"],
            random_state=chosen["random_state"],
        )
    settings = objective_of(chosen)
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
    chosen["lambda_reg"] = settings.lambda_reg
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
    sums = units.summaries()
    hard = [int(count) for count in sums.class_counts]
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
        constant=Constant.of(np.asarray(sums.soft_counts), np.asarray(hard)),
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


GUMBEL_ONLY = [name for name in GumbelSettings.__dataclass_fields__ if name != "max_members"]

# What the paper fixes outside the objective: its ablations' values, ten epochs, up to ten members.
_PAPER = {
    "solver": "gumbel",
    "groups": False,
    "min_members": 1,
    "max_members": 10,
    "epochs": 10,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "temperature": 0.5,
    "temperature_decay": 0.05,
    "min_temperature": 0.1,
    "recalibrate": None,
}
# None: as many members as there are; and where gumbel is asked for, as many steps, as large and as
# hot as they need to be to come close to the optimum (`GumbelSettings.thorough`).
_OURS = {
    **_PAPER,
    "solver": "exact",
    "max_members": None,
    "epochs": None,
    "learning_rate": None,
    "temperature": None,
    "temperature_decay": None,
}


def _terms(preset: str) -> dict[str, Any]:
    """The objective's part of a preset, as far as it needs no ordered classes."""
    terms = asdict(OBJECTIVES[preset])
    return {name: value for name, value in terms.items() if name not in SCALE_TERMS}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Without a penalty: it is chosen on the data (`edokit.ensemble._regularization`).
    "default": {**_OURS, **_terms("default"), "lambda_reg": None},
    "paper-fixed": {**_PAPER, **_terms("paper-fixed")},
    "paper": {**_PAPER, **_terms("paper")},
}
"""Every choice under every preset; a parameter that is given wins over its preset."""
PARAMETERS: Mapping[str, Any] = {
    **dict.fromkeys(PRESETS["default"]),
    "preset": "default",
    "order": "ce",
    "ties": "first",
    "random_state": 0,
}
"""The parameters of `EDOEnsemble` with their defaults; None where the preset decides."""


def stored_parameters(fitted: Fitted) -> dict[str, Any]:
    """The parameters that a saved ensemble was fitted with, by the names of this version."""
    known = {name: value for name, value in fitted.parameters.items() if name in PARAMETERS}
    if known.get("preset") == "auto":  # of earlier versions
        known["preset"] = "default"
    if known.get("recalibrate") == "none":  # what could be asked of it
        known["recalibrate"] = None
    return {**PARAMETERS, **known}


def choices(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's choices, with those that were given (not None) in their place.

    Bounds that leave no size are refused; parameters without effect are warned of.
    """
    one_of("preset", preset, PRESETS)
    if given.get("random_state") is not None:
        check_seed(given["random_state"])
    chosen = dict(PRESETS[preset])
    chosen.update({name: value for name, value in given.items() if value is not None})
    one_of("solver", chosen["solver"], ("exact", "gumbel"))
    if chosen["recalibrate"] is not None:
        one_of("recalibrate", chosen["recalibrate"], ("temperature",))
    least, most = chosen["min_members"], chosen["max_members"]
    if least < 1 or (most is not None and most < least):
        raise InputError(
            f"no ensemble size lies between min_members={least} and max_members={most}",
            "leave them out to let every size from 1 on compete",
            parameters=("min_members", "max_members"),
        )
    if not any(chosen[name] for name in ("lambda_f1", "lambda_ce", "lambda_div", "lambda_reg")):
        raise InputError(
            "there is nothing to optimise: lambda_f1, lambda_ce, lambda_div and lambda_reg are all"
            " 0",
            "leave lambda_ce at 1",
            parameters=("lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
        )
    idle = [name for name in GUMBEL_ONLY if given.get(name) is not None]
    if idle and chosen["solver"] == "exact":
        warn(
            f"{', '.join(idle)}: only the gumbel solver uses this, the exact one does not",
            parameters=idle,
        )
    if given.get("diversity") is not None and chosen["lambda_div"] == 0:
        warn(
            "the diversity term has weight 0, so its direction has no effect; give lambda_div",
            parameters=("lambda_div",),
        )
    if chosen["ce"] == "random" and chosen["solver"] == "exact":
        warn(
            "the exact solver takes ce='random' in expectation, which is ce='all'",
            parameters=("ce",),
        )
    return chosen


def objective_of(chosen: Mapping[str, Any]) -> Settings:
    """The part of the choices that is the objective's; a penalty still to choose is left out."""
    names = Settings.__dataclass_fields__
    return Settings(**{name: chosen[name] for name in names if chosen.get(name) is not None})


def gumbel_settings(chosen: dict[str, Any], items: int) -> GumbelSettings:
    """How gumbel searches; what the preset leaves open is filled in, and kept in ``chosen``."""
    names = GumbelSettings.__dataclass_fields__
    settings = GumbelSettings.thorough(items, **{name: chosen[name] for name in names})
    chosen.update(asdict(settings))
    return settings
