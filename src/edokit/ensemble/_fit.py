"""From options and data to an ensemble: one path for data in memory and in shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edokit._errors import InputError, option, warn
from edokit._types import Floats
from edokit.ensemble._regularization import choose_lambda_reg
from edokit.ensemble.answers import ITEMS, fit_answers
from edokit.ensemble.fitted import Constant, Fitted, LabelFit, on_simplex
from edokit.ensemble.inputs import align_inputs, class_labels
from edokit.ensemble.options import PER_LABEL, Options
from edokit.ensemble.reasons import Reason, explain, over_labels
from edokit.fitdata import FitData
from edokit.fitdata.data import pooled
from edokit.objective import Settings, fit_temperature, pool, spread_weights
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.predictions import Shards
from edokit.scales import Declared, Scale, check_same_scale
from edokit.solvers import Exact, Solution, solve_exact
from edokit.solvers.exact import solution_at

GIVEN = "given"
"""Name of the solver where weights come from elsewhere."""
_STEPS = 30  # of Newton's method in one dimension
_COUNTS = Settings(div=0.0)  # needs no sums over pairs of members


def fit_inputs(predictions: Any, annotations: Any, parameters: Mapping[str, Any]) -> Fitted:
    """What `EDOEnsemble.fit` learns with these parameters."""
    options = Options.of(parameters)
    options.warn_of_idle()
    if isinstance(predictions, Shards):
        with FitData.open(predictions, annotations, **options.label_options) as shards:
            return fit_ensemble(shards, options, parameters)
    data = as_fit_data(predictions, annotations, options)
    return with_labels(fit_ensemble(data, options, parameters), annotations)


def as_fit_data(predictions: Any, annotations: Any, options: Options) -> FitData:
    """Predictions and annotations in memory, matched by item; or data that are ready."""
    if isinstance(predictions, FitData):
        if options.scale is not None:
            declared = Declared(options.scale).on(predictions.classes)
            check_same_scale(predictions.scale, "fit data", declared, "declaration")
        return predictions
    predictions, labels = align_inputs(predictions, annotations, options.scale)
    return FitData.from_predictions(
        predictions, labels, ties=options.ties, random_state=options.random_state
    )


def with_labels(fitted: Fitted, annotations: Any) -> Fitted:
    """With the class labels as these annotations write them."""
    if annotations is None:
        return fitted
    labels = class_labels(annotations, fitted.classes, scale=fitted.scale)
    return replace(fitted, labels=labels)


@dataclass(frozen=True)
class _Solved:
    """A solution, and the options with what was left open filled in."""

    options: Options
    solution: Solution
    penalty_choice: dict[str, Any] | None = None
    """How ``reg`` was chosen, where it was."""
    label_weights: Floats | None = None
    """[L, K] where each label has weights of its own."""

    @property
    def pool_weights(self) -> Floats:
        """The weights to pool with: [K], or [L, K]."""
        return self.solution.weights if self.label_weights is None else self.label_weights


def fit_ensemble(data: FitData, options: Options, parameters: Mapping[str, Any]) -> Fitted:
    """Learn weights and size; ``parameters`` are those of the estimator, to be kept."""
    units = data.grouped() if options.groups else data
    if options.label_weights == PER_LABEL:
        return _fit_labels(data, units, options, parameters)
    solved = _solve(units, options)
    temperature = 1.0
    if options.recalibrate is not None:
        temperature = _temperature(units, solved.solution.weights, solved.options.pool)
    return _fitted(data, units, solved, temperature, parameters)


def _solve(units: FitData, options: Options) -> _Solved:
    """The solution of the objective; what the options leave open is chosen on the data."""
    solver, penalty_choice = options.solver, None
    members = solver.max_members or len(units.members)
    if options.objective.reg is None:
        penalty, penalty_choice = choose_lambda_reg(
            units,
            options.settings,
            order=solver.order,
            max_members=members,
            random_state=options.random_state,
        )
        options = replace(options, objective=replace(options.objective, reg=penalty))
    if isinstance(solver, Exact):
        solver = replace(solver, max_members=members)
        solution = solve_exact(units, options.settings, order=solver.order, max_members=members)
    else:
        rows = len(units.sample.y)
        if units.is_sampled:
            warn(
                "the gumbel solver learned from a random sample of"
                f" {rows // units.rows_per_item} of {units.items} items; ranks, terms and metrics"
                f" are of all ({option('solver', 'exact')} uses all)"
            )
        solver = solver.resolve(rows, members)
        from edokit.solvers import solve_gumbel

        seed = options.random_state
        (solution,) = solve_gumbel(units, options.settings, solver, random_state=seed)
    return _Solved(replace(options, solver=solver), solution, penalty_choice)


def _fit_labels(
    data: FitData, units: FitData, options: Options, parameters: Mapping[str, Any]
) -> Fitted:
    """Sets of labels, each label with weights of its own."""
    if not units.labels:
        raise InputError(
            f"{option('label_weights', PER_LABEL)} is for sets of labels, but the scale is"
            f" {data.scale}",
            f"leave it out, or declare {option('scale', 'multi-label')}",
        )
    parts = units.per_label()
    solved = [_solve(part, options) for part in parts]
    solutions = [label.solution for label in solved]
    penalties = [label.options.settings.reg for label in solved]
    reasons = [
        _explain(part, label.solution, label.options)
        for part, label in zip(parts, solved, strict=True)
    ]
    label_weights = np.array([solution.weights for solution in solutions])
    mean = _mean_solution(solutions, label_weights.mean(axis=0))
    options = solved[-1].options  # what was left open is the same for all, but for the penalty
    penalty = float(f"{np.mean(penalties):.3g}")
    options = replace(options, objective=replace(options.objective, reg=penalty))
    temperature = 1.0
    if options.recalibrate is not None:
        sample = units.sample
        rows = pooled_rows(sample.P, label_weights, options.pool, 1.0)
        temperature = fit_temperature(rows, sample.q)
    mean_solved = _Solved(options, mean, label_weights=label_weights)
    fitted = _fitted(data, units, mean_solved, temperature, parameters)
    label_fits = {
        name: LabelFit(reg, solution.terms, solution.certificate)
        for name, reg, solution in zip(units.labels, penalties, solutions, strict=True)
    }
    explanation = over_labels(reasons, mean.weights, units)
    return replace(fitted, label_fits=label_fits, explanation=explanation)


def _mean_solution(solutions: Sequence[Solution], weights: Floats) -> Solution:
    """The mean over labels; its certificate is that with the largest gap."""
    certificates = [s.certificate for s in solutions if s.certificate is not None]
    terms = solutions[0].terms
    return Solution(
        weights=weights,
        size=max(int((weights > 0).sum()), *(solution.size for solution in solutions)),
        terms={name: float(np.mean([s.terms[name] for s in solutions])) for name in terms},
        order=solutions[0].order,
        ce_gradient=solutions[0].ce_gradient,
        certificate=max(certificates, key=lambda certificate: certificate.gap, default=None),
    )


def pooled_rows(P: Floats, weights: Floats, kind: str, temperature: float) -> Floats:
    """[n, C] the pool of rows P [n, K, C], with weights [K] or, per label, [L, K]."""
    if weights.ndim == 1:
        return pooled(P, weights, kind, temperature)
    rows, labels = np.empty((len(P), P.shape[2])), len(weights)
    for label, label_weights in enumerate(weights):
        rows[label::labels] = pooled(P[label::labels], label_weights, kind, temperature)
    return rows


def fit_given_weights(
    data: FitData,
    weights: Any,
    size: int | None,
    options: Options,
    parameters: Mapping[str, Any],
) -> Fitted:
    """The ensemble with these member weights [K], evaluated on the data."""
    unused = [name for name in ("groups", "recalibrate") if getattr(options, name)]
    unused += ["label_weights"] if options.label_weights == PER_LABEL else []
    if unused:
        raise InputError(
            f"weights are of members as they are, but {' and '.join(map(option, unused))} is set",
            "leave it out",
        )
    v = np.asarray(weights, dtype=np.float64)
    if not on_simplex(v, len(data.members)):
        raise InputError(
            f"weights must be one for each of the {len(data.members)} members, not negative and sum"
            f" to 1; these are {v.tolist()}",
            "divide them by their sum",
        )
    settings = options.settings
    options = replace(
        options,
        objective=replace(options.objective, reg=settings.reg),
        solver=replace(options.solver, order="given", max_members=None),
    )
    ((terms, ce_gradient),) = solution_at(data, [settings], [v])
    solution = Solution(
        weights=v,
        size=int((v > 0).sum()) if size is None else size,
        terms=terms,
        order=np.argsort(v == 0, kind="stable"),
        ce_gradient=ce_gradient,
    )
    fitted = _fitted(data, data, _Solved(options, solution), 1.0, parameters)
    return replace(fitted, settings={**fitted.settings, "solver": GIVEN})


def _explain(units: FitData, solution: Solution, options: Options) -> tuple[Reason, ...]:
    limit = options.solver.max_members or len(units.members)
    return explain(units, solution, options.settings, limit)


def _fitted(
    data: FitData,
    units: FitData,
    solved: _Solved,
    temperature: float,
    parameters: Mapping[str, Any],
) -> Fitted:
    """The record: the solution, whose weights are of ``units``, and its value on the data."""
    options, solution = solved.options, solved.solution
    scale_text = options.scale
    if isinstance(scale_text, Scale):  # files keep it as text
        scale_text = data.scale.to_text(data.classes)
    groups = None if units is data else data.member_groups()
    weights, pool_weights = solution.weights, solved.pool_weights
    if solved.label_weights is None:
        (metrics,) = units.evaluate(weights, options.pool, temperature)
        reasons = _explain(units, solution, options)
    else:
        reasons = ()  # those of each label
        rows = pooled_rows(units.sample.P, pool_weights, options.pool, temperature)
        metrics = units.metrics(rows)
    counts = data.counts
    shares, hard_counts = _label_counts(data)
    class_counts = hard_counts[:, 1] if data.labels else hard_counts
    sample = units.draw(ITEMS)  # the same of shards and of arrays
    sample_rows = pooled_rows(sample.sample.P, pool_weights, options.pool, temperature)
    settings = replace(options, scale=scale_text).to_flat()
    if scale_text is None:
        del settings["scale"]
    if solved.penalty_choice is not None:
        settings["lambda_reg_choice"] = solved.penalty_choice

    def by_member(unit_weights: Floats) -> Floats:
        return unit_weights if groups is None else np.asarray(spread_weights(unit_weights, groups))

    return Fitted(
        members=data.members,
        groups=groups,
        member_info=data.member_info,
        classes=data.classes,
        scale=data.scale,
        weights=by_member(weights),
        label_weights=None if solved.label_weights is None else by_member(solved.label_weights),
        group_weights=None if groups is None else weights,
        size=solution.size,
        temperature=temperature,
        settings=settings,
        parameters={**parameters, "scale": scale_text},
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
            "hard_labels": dict(zip(data.classes, map(int, class_counts), strict=True)),
        },
        explanation=reasons,
        constant=Constant.of(shares, hard_counts),
        answers=fit_answers(*sample.per_item(sample_rows), data.scale),
    )


def _label_counts(data: FitData) -> tuple[Floats, Floats]:
    """Summed soft labels and numbers of hard labels [C]; of sets without and with each [L, 2]."""
    if not data.labels:
        sums = data.summaries()
        return np.asarray(sums.soft_counts), np.asarray(sums.class_counts)
    parts = [part.summaries(_COUNTS) for part in data.per_label()]
    soft_counts = np.array([part.soft_counts for part in parts])
    return soft_counts, np.array([part.class_counts for part in parts])


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
