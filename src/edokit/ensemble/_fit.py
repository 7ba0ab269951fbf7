"""From choices to an ensemble: presets, and the one fit path for data in memory and in shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from edokit._errors import InputError, check_seed, one_of, warn
from edokit._types import Floats
from edokit.ensemble._regularization import choose_lambda_reg
from edokit.ensemble.answers import ITEMS, fit_answers
from edokit.ensemble.fitted import (
    Constant,
    Fitted,
    LabelFit,
    explain,
    on_simplex,
    over_labels,
)
from edokit.ensemble.inputs import align_inputs, class_labels
from edokit.fitdata import FitData
from edokit.fitdata.data import pooled
from edokit.objective import PRESETS as OBJECTIVES
from edokit.objective import Settings, fit_temperature, pool, spread_weights
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.predictions import Shards
from edokit.scales import Declared, Scale, check_same_scale
from edokit.solvers import GumbelSettings, Solution, solve_exact
from edokit.solvers.exact import solution_at

GIVEN = "given"
"""Name of the solver where weights come from elsewhere."""
PER_LABEL = "per-label"
"""Each label of sets with weights of its own."""
_STEPS = 30  # of Newton's method in one dimension
_COUNTS = Settings(lambda_div=0.0)  # needs no sums over pairs of members


def fit_inputs(predictions: Any, annotations: Any, parameters: Mapping[str, Any]) -> Fitted:
    """What `EDOEnsemble.fit` learns with these parameters, all of ``PARAMETERS``."""
    chosen = choices(parameters["preset"], parameters)
    objective_of(chosen)  # refuses values before anything is read
    if isinstance(predictions, Shards):
        how = {name: parameters[name] for name in ("ties", "random_state", "scale")}
        with FitData.open(predictions, annotations, **how) as shards:
            return fit_ensemble(shards, chosen, parameters)
    fitted = fit_ensemble(as_fit_data(predictions, annotations, parameters), chosen, parameters)
    return with_labels(fitted, annotations)


def as_fit_data(predictions: Any, annotations: Any, parameters: Mapping[str, Any]) -> FitData:
    """Predictions and annotations in memory, matched by item; or data that are ready."""
    if isinstance(predictions, FitData):
        if parameters["scale"] is not None:
            declared = Declared(parameters["scale"]).on(predictions.classes)
            check_same_scale(predictions.scale, "fit data", declared, "declaration")
        return predictions
    named, labels = align_inputs(predictions, annotations, parameters["scale"])
    how = {name: parameters[name] for name in ("ties", "random_state")}
    return FitData.from_predictions(named, labels, **how)


def with_labels(fitted: Fitted, annotations: Any) -> Fitted:
    """With the class labels as these annotations write them."""
    if annotations is None:
        return fitted
    labels = class_labels(annotations, fitted.classes, scale=fitted.scale)
    return replace(fitted, labels=labels)


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
    if chosen["label_weights"] == PER_LABEL:
        return _fit_labels(data, units, chosen, parameters)
    settings, solution = _solve(units, chosen)
    recalibrated = chosen["recalibrate"] is not None
    temperature = _temperature(units, solution.weights, settings.pool) if recalibrated else 1.0
    return _fitted(data, units, settings, solution, temperature, chosen, parameters)


def _solve(units: FitData, chosen: dict[str, Any]) -> tuple[Settings, Solution]:
    """The objective and its solution; what was left open is chosen, and kept in ``chosen``."""
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
        return settings, solve_exact(
            units, settings, order=order, max_members=chosen["max_members"]
        )
    from edokit.solvers import solve_gumbel

    learned_from = len(units.sample.y)
    if units.is_sampled:
        warn(
            "the gumbel solver learned from a random sample of"
            f" {learned_from // units.rows_per_item} of {units.items}"
            " items; ranks, terms and metrics are of all (solver='exact' uses all)",
            parameters=("solver",),
        )
    search, seed = gumbel_settings(chosen, learned_from), chosen["random_state"]
    (solution,) = solve_gumbel(units, settings, search, random_state=seed, order=order)
    return settings, solution


def _fit_labels(
    data: FitData, units: FitData, chosen: dict[str, Any], parameters: Mapping[str, Any]
) -> Fitted:
    """Sets of labels, each label with weights of its own."""
    if not units.labels:
        raise InputError(
            f"label_weights={PER_LABEL!r} is for sets of labels, but the scale is {data.scale}",
            "leave it out, or declare scale='multi-label'",
            parameters=("label_weights", "scale"),
        )
    found, fits, reasons = [], {}, []
    for name, part in zip(units.labels, units.per_label(), strict=True):
        own = dict(chosen)
        settings, solution = _solve(part, own)
        found.append(solution)
        fits[name] = LabelFit(own["lambda_reg"], solution.terms, solution.certificate)
        reasons.append(explain(part, solution, settings, chosen["max_members"]))
    for name in GumbelSettings.__dataclass_fields__:
        chosen[name] = own[name]  # what was left open, the same for all
    each = np.array([solution.weights for solution in found])
    weights = each.mean(axis=0)
    certificates = [one.certificate for one in found if one.certificate is not None]
    together = Solution(
        weights=weights,
        size=max(int((weights > 0).sum()), *(one.size for one in found)),
        terms={key: float(np.mean([one.terms[key] for one in found])) for key in found[0].terms},
        order=found[0].order,
        ce_gradient=found[0].ce_gradient,
        certificate=max(certificates, key=lambda one: one.gap, default=None),
    )
    chosen["lambda_reg"] = float(f"{np.mean([fit.lambda_reg for fit in fits.values()]):.3g}")
    settings = objective_of(chosen)
    temperature = 1.0
    if chosen["recalibrate"] is not None:
        sample = units.sample
        temperature = fit_temperature(pooled_rows(sample.P, each, settings.pool, 1.0), sample.q)
    fitted = _fitted(data, units, settings, together, temperature, chosen, parameters, each)
    return replace(fitted, label_fits=fits, explanation=over_labels(reasons, weights, units))


def pooled_rows(P: Floats, weights: Floats, kind: str, temperature: float) -> Floats:
    """[n, C] the pool of rows P [n, K, C], with weights [K] or, per label, [L, K]."""
    if weights.ndim == 1:
        return pooled(P, weights, kind, temperature)
    rows = np.empty((len(P), P.shape[2]))
    for label, own in enumerate(weights):
        rows[label :: len(weights)] = pooled(P[label :: len(weights)], own, kind, temperature)
    return rows


def fit_given_weights(
    data: FitData,
    weights: Any,
    size: int | None,
    choices: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> Fitted:
    """The ensemble with these member weights [K], evaluated on the data."""
    chosen = {**choices, "solver": GIVEN}
    others = {"groups": None, "recalibrate": None, "label_weights": "shared"}
    asked = [name for name, usual in others.items() if (chosen[name] or usual) != usual]
    if asked:
        raise InputError(
            f"weights are given for members as they are, but {' and '.join(asked)} is set",
            "leave it out",
            parameters=asked,
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
    label_weights: Floats | None = None,
) -> Fitted:
    """The record: the solution, whose weights are of ``units``, and its value on the data."""
    if isinstance(parameters["scale"], Scale):  # files keep it as text
        parameters = {**parameters, "scale": data.scale.to_text(data.classes)}
    chosen |= {name: parameters[name] for name in ("scale",) if name in chosen}
    groups = None if units is data else data.member_groups()
    weights = solution.weights
    each = weights if label_weights is None else label_weights
    if label_weights is None:
        (metrics,) = units.evaluate(weights, settings.pool, temperature)
        limit = len(units.members) if chosen["solver"] == GIVEN else chosen["max_members"]
        reasons = explain(units, solution, settings, limit)
    else:
        reasons = ()
        metrics = units.metrics(pooled_rows(units.sample.P, each, settings.pool, temperature))
    counts = data.counts
    shares, hard = _label_counts(data)
    chosen_by = hard[:, 1] if data.labels else hard
    drawn = units.draw(ITEMS)  # the same of shards and of arrays
    made = pooled_rows(drawn.sample.P, each, settings.pool, temperature)

    def by_member(of_units: Floats) -> Floats:
        return of_units if groups is None else np.asarray(spread_weights(of_units, groups))

    return Fitted(
        members=data.members,
        groups=groups,
        member_info=data.member_info,
        classes=data.classes,
        scale=data.scale,
        weights=by_member(weights),
        label_weights=None if label_weights is None else by_member(label_weights),
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
        items=(items := data.distinct_items),
        pairs=data.items if items < data.items else None,
        data={
            "annotators": 0 if counts is None else counts.annotators,
            "annotations": 0 if counts is None else counts.annotations,
            "hard_labels": dict(zip(data.classes, map(int, chosen_by), strict=True)),
        },
        explanation=reasons,
        constant=Constant.of(shares, hard),
        answers=fit_answers(*drawn.per_item(made), data.scale),
    )


def _label_counts(data: FitData) -> tuple[Floats, Floats]:
    """Summed soft labels and numbers of hard labels [C]; of sets without and with each [L, 2]."""
    parts = data.per_label() if data.labels else [data]
    sums = [part.summaries(_COUNTS) if data.labels else part.summaries() for part in parts]
    found = [
        np.array([one.soft_counts for one in sums]),
        np.array([one.class_counts for one in sums]),
    ]
    shares, hard = found if data.labels else [each[0] for each in found]
    return shares, hard


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


PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Without a penalty: it is chosen on the data (`edokit.ensemble._regularization`).
    "default": {**_OURS, **asdict(OBJECTIVES["default"]), "lambda_reg": None},
    "paper-fixed": {**_PAPER, **asdict(OBJECTIVES["paper-fixed"])},
    "paper": {**_PAPER, **asdict(OBJECTIVES["paper"])},
}
"""Every choice under every preset; a parameter that is given wins over its preset."""
PARAMETERS: Mapping[str, Any] = {
    **dict.fromkeys(PRESETS["default"]),
    "preset": "default",
    "order": "ce",
    "ties": "first",
    "scale": None,
    "label_weights": "shared",
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
    one_of("label_weights", chosen.setdefault("label_weights", "shared"), ("shared", PER_LABEL))
    if chosen.get("scale") is not None:
        Declared(chosen["scale"])  # refuses what is no scale
    if chosen["recalibrate"] is not None:
        one_of("recalibrate", chosen["recalibrate"], ("temperature",))
    least, most = chosen["min_members"], chosen["max_members"]
    if least < 1 or (most is not None and most < least):
        raise InputError(
            f"no ensemble size lies between min_members={least} and max_members={most}",
            "leave them out to let every size from 1 on compete",
            parameters=("min_members", "max_members"),
        )
    terms = [name for name in Settings.__dataclass_fields__ if name.startswith("lambda_")]
    if not any(chosen[name] for name in terms):
        raise InputError(
            f"there is nothing to optimise: {', '.join(terms[:-1])} and {terms[-1]} are all 0",
            "leave lambda_ce at 1",
            parameters=terms,
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
