"""The fit: from configuration and data, in memory or in shards, to a `Fitted` ensemble.

λ_Reg shrinks the weights towards uniform weights, which matters with few items. It is chosen by
held-out cross-entropy. As that is noisy, no single value is picked: the penalty is the mean of all
values, weighted by their likelihood, and hence strong where the items say little
(``benchmarks/shrinkage.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from edokit._errors import InputError, counted, examples, option
from edokit._types import Floats, Ints
from edokit.config import FitConfig, settings_document
from edokit.ensemble.answers import FOLDS, MAX_ITEMS, fit_answers
from edokit.ensemble.fitted import GIVEN, Constant, Fitted, Reason, on_simplex
from edokit.ensemble.held_out import HeldOut
from edokit.ensemble.opposites import warn_of_opposites
from edokit.ensemble.people import PeopleEffects
from edokit.fitdata.data import AnnotationCounts, FitData, pooled
from edokit.metrics import ce_items
from edokit.objective.loss import JointObjective, Linear
from edokit.objective.pools import fit_temperature, pool, spread_weights
from edokit.objective.settings import (
    AUTO,
    TERMS,
    Exact,
    Gumbel,
    GumbelSteps,
    ObjectiveSettings,
)
from edokit.scales import Scale
from edokit.solvers import Solution
from edokit.solvers.exact import (
    SMALLEST_WEIGHT,
    evaluate_weights,
    solve_exact,
    solve_path,
    streamed_terms,
)

GRID = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
"""Values of λ_Reg to compare; infinity is the uniform mean."""
UNIFORM = 30.0
"""The finite λ_Reg that replaces infinity in a mean: its weights are nearly uniform."""
DOMINANT = 0.6
"""The weight above which a member is called dominant."""


@dataclass(frozen=True)
class _Solved:
    """A solution, with the options that it solves, where the fit has replaced every "auto"."""

    objective: ObjectiveSettings
    solver: Exact | Gumbel | GumbelSteps
    solution: Solution
    penalty_choice: dict[str, object] | None = None
    """How ``reg`` was chosen; None if it was given."""


def fit_ensemble(data: FitData, config: FitConfig, parameters: Mapping[str, object]) -> Fitted:
    """Fit an ensemble; ``parameters`` of the estimator are stored in the result."""
    if len(data.row_classes) < 2:
        raise InputError(
            f"an ensemble needs at least two classes, but the data have {examples(data.classes)}"
            " only",
            "name all classes, including those that nobody chose",
            code="too-few-classes",
        )
    check_annotator_limit(data, config, parameters.get("solver"))
    data = data.as_whole()
    # The "units" are what gets weights: members, or the means of groups of members.
    units = data
    if config.groups:
        units = data.grouped()
    solved = _solve(units, config)
    reasons = explain(units, solved.solution, solved.objective, solved.solver.max_members)
    temperature = 1.0
    if config.recalibrate is not None:
        rows = pooled(units.sample.P, solved.solution.weights, config.pool)
        temperature = fit_temperature(rows, units.sample.q)
    fitted = _fitted(data, units, config, solved, temperature, parameters, reasons)
    if data.layout.are_pairs:  # the members know the annotators already
        return fitted
    answers = held_out_answers(units, config, solved, temperature)
    people = None
    annotations = data.annotations
    if config.people and annotations is not None and len(annotations.annotators) > 1:
        people = PeopleEffects.fit(answers, annotations)
        warn_of_opposites(answers, annotations, people)
    return replace(fitted, people=people, held_out=HeldOut.from_fit(units.in_memory, answers))


def check_annotator_limit(data: FitData, config: FitConfig, solver: object) -> None:
    """Refuse more per-annotator members than the least annotated item has annotators.

    Nothing is refused if members are averaged in groups, or if the user gives a largest size:
    ``solver`` is the parameter of the estimator, and ``config.solver`` what the preset made of it.
    """
    is_given = isinstance(solver, Exact | Gumbel) and solver.max_members is not None
    if is_given or config.groups:
        return
    members = data.per_annotator_members
    if config.solver.max_members is not None:
        members = min(members, config.solver.max_members)
    fewest = data.fewest_annotators
    if members > fewest:
        raise InputError(
            f"{members} per-annotator members are more than the {counted(fewest, 'annotator')} of"
            " the least annotated item to fit on (the paper's K ≤ min A_i)",
            f"keep to this limit with {option('max_members', fewest)}, or let all members compete"
            f" with {option('max_members', members)}",
            code="too-many-members",
        )


def held_out_answers(
    units: FitData, config: FitConfig, solved: _Solved, temperature: float
) -> Floats:
    """The pool [N, C] for the items of the fit, by weights learned without the item if possible.

    The weights of the fit are used for all items with the gumbel solver, with many items (they
    hardly depend on a single one), with too few items for folds, and with class weights if a class
    has too few items for folds. For shards, the items are those of the sample in memory.
    """
    items = units.in_memory
    rows = pooled(items.sample.P, solved.solution.weights, config.pool, temperature)
    answers, _, _ = items.per_item(rows)
    is_cheap = isinstance(solved.solver, Exact) and units.n_items <= MAX_ITEMS
    if not is_cheap or units.n_items < 2 * FOLDS or items.n_fold_units < FOLDS:
        return answers
    folds = items.folds(FOLDS, config.seed)
    if solved.objective.class_weights:
        class_counts = np.bincount(items.sample.y)
        # Classes that nobody chose have no effect on the loss.
        has_rare_class = class_counts[class_counts > 0].min() < FOLDS
        if has_rare_class or _is_a_class_missing(folds, solved.objective):
            return answers
    answers = answers.copy()
    for train, fold in folds:
        (weights,) = solve_path(
            train,
            solved.objective,
            [solved.objective.reg],
            max_members=solved.solver.max_members,
        )
        rows = pooled(fold.sample.P, weights, config.pool, temperature)
        answers[fold.positions], _, _ = fold.per_item(rows)
    return answers


def _solve(units: FitData, config: FitConfig) -> _Solved:
    """Choose λ_Reg on the data if it is ``"auto"``, and solve the objective."""
    members = config.solver.max_members or len(units.members)
    objective = config.objective.resolve(config.pool)
    penalty_choice = None
    if config.objective.reg == AUTO:
        penalty, penalty_choice = choose_lambda_reg(
            units, objective, max_members=members, random_state=config.seed
        )
        objective = replace(objective, reg=penalty)
    if isinstance(config.solver, Exact):
        solution = solve_exact(units, objective, max_members=members)
        return _Solved(objective, Exact(members), solution, penalty_choice)
    from edokit.solvers.gumbel import solve_gumbel, warn_if_sampled

    warn_if_sampled(units)
    steps = config.solver.resolve(len(units.sample.y), members)
    (solution,) = solve_gumbel(units, objective, steps, random_state=config.seed)
    return _Solved(objective, steps, solution, penalty_choice)


def choose_lambda_reg(
    data: FitData,
    settings: ObjectiveSettings,
    *,
    max_members: int | None = None,
    random_state: int = 0,
) -> tuple[float, dict[str, Any]]:
    """λ_Reg, and how it was chosen, ready for JSON; `describe_lambda_reg` puts it into words.

    It is the geometric mean of the values in ``GRID``, each weighted by exp(−n·ΔCE/2), where n is
    the number of items and ΔCE the held-out cross-entropy minus the lowest one. The result is
    rounded to three digits.

    All values have equal weights if folds cannot compare them: with fewer than two items per fold,
    with fewer units to deal into folds (`FitData.n_fold_units`) than folds, and if class weights
    are undefined without one fold.
    """
    sampled = data.draw(MAX_ITEMS)
    n_items = len(sampled)
    can_compare = n_items >= 2 * FOLDS and sampled.n_fold_units >= FOLDS
    if settings.class_weights and 1 in np.bincount(sampled.sample.y):
        can_compare = False
    folds = []
    if can_compare:
        folds = sampled.folds(FOLDS, random_state)
    if settings.class_weights and _is_a_class_missing(folds, settings):
        can_compare = False
    if not can_compare:
        equal_shares = np.full(len(GRID), 1.0 / len(GRID))
        return _mean_penalty(equal_shares), {"items": n_items, "folds": None}

    losses = _held_out_losses(folds, settings, GRID, max_members)
    means = losses.mean(axis=1)
    shares = np.exp(-n_items * (means - means.min()) / 2)
    shares /= shares.sum()
    penalty = _mean_penalty(shares)
    (penalty_losses,) = _held_out_losses(folds, settings, [penalty], max_members)
    excess = losses[-1] - penalty_losses
    groups = None
    if sampled.layout.groups is not None:
        groups = np.concatenate([fold.layout.groups for _, fold in folds])
    compared: list[dict[str, object]] = []
    for value, ce, share in zip(GRID, means.tolist(), shares.tolist(), strict=True):
        name: float | str = value
        if math.isinf(value):
            name = "uniform"
        compared.append({"lambda_reg": name, "ce": ce, "share": share})
    return penalty, {
        "items": n_items,
        "folds": FOLDS,
        "ce": float(penalty_losses.mean()),
        "uniform_ce": float(means[-1]),
        "uniform_above": float(excess.mean()),
        "uniform_above_error": _standard_error(excess, groups),
        "compared": compared,
    }


def _mean_penalty(shares: Floats) -> float:
    """The geometric mean of the values in ``GRID`` with these shares, rounded to three digits."""
    logs = np.log([UNIFORM if math.isinf(value) else value for value in GRID])
    return float(f"{np.exp(shares @ logs):.3g}")


def _standard_error(values: Floats, groups: Ints | None) -> float:
    """The standard error of the mean; values with the same number in ``groups`` are dependent."""
    if groups is None:
        return float(values.std() / np.sqrt(len(values)))
    codes = np.unique(groups, return_inverse=True)[1]
    deviations = np.bincount(codes, values - values.mean())
    return float(np.sqrt(np.square(deviations).sum()) / len(values))


def _held_out_losses(
    folds: Sequence[tuple[FitData, FitData]],
    settings: ObjectiveSettings,
    penalties: Sequence[float],
    max_members: int | None,
) -> Floats:
    """[L, n] cross-entropy of every item by weights learned without its fold, for each λ_Reg."""
    losses_by_fold = []
    for train, fold in folds:
        P, q, _ = fold.sample
        fold_losses = []
        for weights in solve_path(train, settings, penalties, max_members=max_members):
            row_losses = ce_items(np.asarray(pool(P, weights, settings.pool)), q)
            fold_losses.append(fold.layout.item_means(row_losses))
        losses_by_fold.append(fold_losses)
    return np.concatenate(losses_by_fold, axis=1)


def _is_a_class_missing(
    folds: Sequence[tuple[FitData, FitData]], settings: ObjectiveSettings
) -> bool:
    """Whether class weights are undefined without one of the folds.

    Without it, annotators still chose some class, but no item has that class as its hard label.
    """
    return any(train.summaries(settings).classes_without_hard_label for train, _ in folds)


def fit_given_weights(
    data: FitData,
    weights: npt.ArrayLike,
    config: FitConfig,
    parameters: Mapping[str, object],
) -> Fitted:
    """The ensemble with these member weights [K], evaluated on the data."""
    if config.groups or config.recalibrate:
        raise InputError(
            f"weights from elsewhere are weights of members: {option('groups')} and"
            f" {option('recalibrate')} don't apply",
            "leave these options out",
            code="conflicting-options",
        )
    data = data.as_whole()
    v = np.asarray(weights, dtype=np.float64)
    if not on_simplex(v, len(data.members)):
        raise InputError(
            f"weights must be one for each of the {len(data.members)} members, not negative and sum"
            f" to 1; these are {v.tolist()}",
            "divide them by their sum",
            code="invalid-weights",
        )
    objective = config.objective.resolve(config.pool)
    terms, ce_gradient = evaluate_weights(data, objective, v)
    solution = Solution(
        weights=v,
        size=int((v > 0).sum()),
        terms=terms,
        order=np.argsort(v == 0, kind="stable"),
        ce_gradient=ce_gradient,
    )
    reasons = explain(data, solution, objective)
    solved = _Solved(objective, replace(config.solver, max_members=None), solution)
    fitted = _fitted(data, data, config, solved, 1.0, parameters, reasons)
    held_out = None
    if not data.layout.are_pairs:
        answers, _, _ = data.per_item(pooled(data.sample.P, v, config.pool))
        held_out = HeldOut.from_fit(data.in_memory, answers)
    settings = {**fitted.settings, "solver": GIVEN}
    return replace(fitted, settings=settings, held_out=held_out)


def _fitted(
    data: FitData,
    units: FitData,
    config: FitConfig,
    solved: _Solved,
    temperature: float,
    parameters: Mapping[str, Any],
    reasons: tuple[Reason, ...],
) -> Fitted:
    """The record of a solution; metrics, answers and constant are computed on the data."""
    solution = solved.solution
    weights = solution.weights
    declared_scale = config.declared_scale
    if isinstance(declared_scale, Scale):  # files store it as text
        declared_scale = data.scale.to_text(data.classes)
    groups = None
    group_weights = None
    member_weights = weights
    if units is not data:
        groups = data.member_groups()
        group_weights = weights
        member_weights = np.asarray(spread_weights(weights, groups))
    n_pairs = None
    if data.layout.are_pairs:
        n_pairs = len(data)
    metrics = units.evaluate(weights, config.pool, temperature)
    counts = data.counts or AnnotationCounts(annotations=0, annotators=0)
    shares, hard_counts = _label_counts(data)
    class_counts = hard_counts
    if data.labels:
        class_counts = hard_counts[:, 1]
    sample = units.draw(MAX_ITEMS)  # the same items for shards and for arrays
    sample_rows = pooled(sample.sample.P, weights, config.pool, temperature)
    settings = settings_document(
        config,
        solved.objective,
        solved.solver,
        preset=parameters["preset"],
        scale=declared_scale,
    )
    if solved.penalty_choice is not None:
        settings["lambda_reg_choice"] = solved.penalty_choice
    sample_groups = None
    if sample.layout.has_item_groups:
        sample_groups = sample.layout.groups
    answers = fit_answers(*sample.per_item(sample_rows), data.scale, groups=sample_groups)
    return Fitted(
        members=data.members,
        groups=groups,
        classes=data.classes,
        labels=data.class_labels,
        scale=data.scale,
        weights=member_weights,
        group_weights=group_weights,
        size=solution.size,
        temperature=temperature,
        settings=settings,
        parameters={**parameters, "scale": declared_scale},
        objective=solution.terms,
        certificate=solution.certificate,
        trajectory=solution.trajectory,
        metrics=metrics,
        member_ce=data.member_ce(),
        items=data.n_items,
        pairs=n_pairs,
        data={
            "annotators": counts.annotators,
            "annotations": counts.annotations,
            "hard_labels": dict(zip(data.classes, map(int, class_counts), strict=True)),
        },
        explanation=reasons,
        constant=Constant.from_totals(shares, hard_counts),
        answers=answers,
    )


def _label_counts(data: FitData) -> tuple[Floats, Floats]:
    """Sums of soft labels and counts of hard labels, both [C].

    For multi-label data both are [L, 2]: for each label, "not chosen" and "chosen".
    """
    if not data.labels:
        sums = data.summaries()
        return np.asarray(sums.soft_counts), np.asarray(sums.class_counts)
    parts = data.label_summaries()
    soft_counts = np.array([part.soft_counts for part in parts])
    return soft_counts, np.array([part.class_counts for part in parts])


# --- Why each member has its weight ---------------------------------------------------------------


def explain(
    units: FitData, solution: Solution, settings: ObjectiveSettings, max_members: int | None = None
) -> tuple[Reason, ...]:
    """One reason per member, or per group of members, in order of decreasing weight."""
    weights = solution.weights
    # How each term, and the loss, change per unit of weight that moves from the pool to a member.
    term_changes = {}
    for name, slope in _slopes(units, solution, settings).items():
        term_changes[name] = slope - slope @ weights
    loss_changes = sum(term_changes.values(), np.zeros(len(weights)))
    within_limit = set(solution.order[:max_members].tolist())
    is_unlearned = solution.trajectory is not None and solution.trajectory.unlearned
    member_ce = units.member_ce()
    ranks = rankdata(member_ce, "min")
    reasons = []
    for k in np.argsort(-weights, kind="stable"):
        reason = Reason(
            member=units.members[k],
            weight=float(weights[k]),
            kind="kept",
            ce=float(member_ce[k]),
            rank=int(ranks[k]),
        )
        if weights[k] >= SMALLEST_WEIGHT:
            if is_unlearned:
                reason = replace(reason, kind="not_learned")
            elif weights[k] > DOMINANT and len(weights) > 1:
                reason = replace(reason, kind="dominant")
        elif k not in within_limit:
            reason = replace(reason, kind="beyond_max_members", limit=max_members)
        elif loss_changes[k] > 0:
            changes = {name: float(change[k]) for name, change in term_changes.items()}
            worst_term = max(changes, key=lambda name: changes[name])
            reason = replace(
                reason,
                kind="excluded_by_loss",
                price=float(loss_changes[k]),
                term=worst_term,
                term_change=changes[worst_term],
            )
        else:
            reason = replace(reason, kind="excluded_by_size", limit=solution.size)
        reasons.append(reason)
    return tuple(reasons)


def _slopes(units: FitData, solution: Solution, settings: ObjectiveSettings) -> dict[str, Floats]:
    """The gradient [K] of each weighted term at the solution, by flat name of its weight."""
    terms = streamed_terms(units, settings, np.arange(len(units.members)))
    objective = JointObjective(
        units.problem(settings, with_items=False),
        settings,
        {**terms, "ce_weight": Linear(solution.ce_gradient)},
    )
    slopes = objective.slopes(solution.weights)
    return {TERMS[name].flat_name: slope for name, slope in slopes.items()}
