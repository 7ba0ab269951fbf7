"""The paper's algorithm: weights and size by Adam, sizes drawn from a Gumbel-Softmax."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from edokit._errors import InputError, check_seed, option, warn
from edokit._types import Floats, Ints
from edokit.fitdata.data import FitData
from edokit.objective.loss import JointObjective, PoolTerm, pool_terms
from edokit.objective.pools import effective_weights, softmax
from edokit.objective.settings import CE, TERMS, GumbelSteps, ObjectiveSettings
from edokit.objective.summaries import Problem, rank_members
from edokit.solvers import Solution, Trajectory
from edokit.solvers.batches import Batches
from edokit.solvers.descent import Columns, descend
from edokit.solvers.exact import evaluate_weights, in_expectation, terms_and_ce_gradient

_OF_TRAJECTORY = ("f1", "ce", "div", "reg", "total")
# Size logits closer than this share of one step are a tie, which the smaller size wins: rounding
# must not decide.
_TIE = 1e-3


def warn_if_sampled(data: FitData) -> None:
    """Warn if data are larger than memory, so that weights are learned from a sample of them."""
    if data.is_sampled:
        warn(
            "the gumbel solver learns from a random sample of"
            f" {len(data.sample.y) // data.rows_per_item} of {len(data)} items; members are ranked"
            f" and evaluated on all ({option('solver', 'exact')} learns from all)"
        )


def solve_gumbel(
    data: FitData,
    settings: ObjectiveSettings | Sequence[ObjectiveSettings],
    options: GumbelSteps | Sequence[GumbelSteps] | None = None,
    *,
    random_state: int = 0,
    trajectory: bool = True,
) -> list[Solution]:
    """A solution per configuration, all learned side by side.

    A solution does not depend on the configurations beside it, and all see the same mini-batches
    and noise. If data are larger than memory, weights are learned from ``data.sample``: ranks and
    terms are then those of all items, and trajectories those of the sample.

    Parameters
    ----------
    data : FitData
        Predictions and labels, in memory or in shards.
    settings : ObjectiveSettings or sequence of ObjectiveSettings
        The objectives, one per configuration.
    options : GumbelSteps or sequence of GumbelSteps, optional
        How to search: likewise one per configuration, or one for all. The paper's settings by
        default.
    random_state : int, default=0
        Seed of the mini-batches and of the noise.
    trajectory : bool, default=True
        Whether solutions have a trajectory and, if weights are learned from a sample, terms of all
        items. A search needs neither.

    Returns
    -------
    list of Solution
        In the order of the configurations.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit.fitdata.data import FitData
    >>> from edokit.objective.settings import Objective
    >>> P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> data = FitData.from_arrays(P, np.eye(2), np.array([0, 1]))
    >>> [solution] = solve_gumbel(data, Objective().resolve())
    >>> solution.size
    1
    """
    check_seed(random_state)
    runs = _as_runs(settings, options or GumbelSteps())
    solutions: dict[int, Solution] = {}
    for stack in _stacks(runs):
        shared = stack[0].options
        columns = _columns(stack)
        problem, mini_batches, ranked = _prepare(data, stack[0])
        # The pool terms that some run of the stack weighs.
        terms: dict[str, PoolTerm] = {}
        for run in stack:
            problem.check_scale(run.settings)
            terms |= pool_terms(run.settings, steps=problem.steps)
        n_sizes = problem.members - shared.min_members + 1
        with_drawn = columns.n_drawn > 0
        path = descend(
            mini_batches.epochs(shared.epochs, random_state, n_sizes, terms, with_drawn=with_drawn),
            columns,
            problem=problem,
            terms=terms,
            min_members=shared.min_members,
        )
        stack_solutions = _solutions(path, stack, problem, ranked, trajectory)
        for run, solution in zip(stack, stack_solutions, strict=True):
            solutions[run.place] = solution
    if data.is_sampled and trajectory:
        for run in runs:
            solution = solutions[run.place]
            values, gradient = evaluate_weights(data, run.settings, solution.weights)
            solutions[run.place] = replace(solution, terms=values, ce_gradient=gradient)
    return [solutions[place] for place in range(len(runs))]


class _GumbelRun(NamedTuple):
    """One configuration, and its place in the call."""

    place: int
    settings: ObjectiveSettings
    options: GumbelSteps


def _as_runs(
    settings: ObjectiveSettings | Sequence[ObjectiveSettings],
    options: GumbelSteps | Sequence[GumbelSteps],
) -> list[_GumbelRun]:
    """One run per configuration; options that are given once are those of all."""
    if isinstance(settings, ObjectiveSettings):
        objectives = [settings]
    else:
        objectives = list(settings)
    if isinstance(options, GumbelSteps):
        options = [options] * len(objectives)
    pairs = zip(objectives, options, strict=True)
    return [_GumbelRun(place, *values) for place, values in enumerate(pairs)]


def _stacks(runs: Sequence[_GumbelRun]) -> list[list[_GumbelRun]]:
    """Stacks of runs that share arrays, each in the order of `Columns`."""
    stacks: dict[tuple[Hashable, ...], list[_GumbelRun]] = {}
    for run in runs:
        key = (run.settings.class_weights, run.settings.pool, *_shared_options(run.options))
        stacks.setdefault(key, []).append(run)
    for stack in stacks.values():
        stack.sort(key=lambda run: (CE.MEAN, CE.ALL, CE.RANDOM).index(run.settings.ce))
    return list(stacks.values())


def _shared_options(options: GumbelSteps) -> tuple[Hashable, ...]:
    """The options in which the runs of a stack agree, because shapes of arrays depend on them."""
    return (options.epochs, options.batch_size, options.min_members, options.max_members)


def _columns(stack: Sequence[_GumbelRun]) -> Columns:
    """The numbers in which the runs of a stack differ."""

    def column(number: Callable[[_GumbelRun], float]) -> Floats:
        return np.array([[number(run)] for run in stack], dtype=np.float64)

    kinds = [run.settings.ce for run in stack]
    return Columns(
        n_pooled=kinds.count(CE.MEAN),
        n_drawn=kinds.count(CE.RANDOM),
        lambdas={term: column(partial(_signed_weight, term)) for term in TERMS},
        learning_rate=column(lambda run: run.options.learning_rate),
        temperature=column(lambda run: run.options.temperature),
        temperature_decay=column(lambda run: run.options.temperature_decay),
        min_temperature=column(lambda run: run.options.min_temperature),
    )


def _signed_weight(term: str, run: _GumbelRun) -> float:
    return run.settings.signed_weight(term)


def _prepare(data: FitData, run: _GumbelRun) -> tuple[Problem, Batches, Ints]:
    """The competing members, as a problem and as mini-batches, and all members in rank order.

    Problem and mini-batches are kept with the data, for later calls.
    """
    settings = run.settings
    options = run.options
    ranked: Ints = rank_members(data.summaries())
    if options.min_members > len(ranked):
        raise InputError(
            f"{option('min_members', options.min_members)} is more than the {len(ranked)} members"
            " there are",
            "ask for fewer, or give more members",
            code="too-few-members",
        )
    candidates = ranked[: options.max_members]
    key = (
        "gumbel",
        settings.class_weights,
        settings.pool,
        len(candidates),
        options.batch_size,
    )
    if key not in data.prepared:
        problem = data.problem(settings).select(candidates)
        P, _, y = data.sample
        mini_batches = Batches(
            P[:, candidates].astype(np.float64, copy=False),
            y.astype(np.int64),
            problem,
            options.batch_size,
        )
        data.prepared[key] = problem, mini_batches
    problem, mini_batches = data.prepared[key]
    return problem, mini_batches, ranked


def _solutions(
    path: tuple[Floats, Floats, Floats],
    runs: Sequence[_GumbelRun],
    problem: Problem,
    ranked: Ints,
    trajectory: bool,
) -> list[Solution]:
    """A solution per run, made of what `descend` returns: θ, π and temperatures by epoch."""
    theta, pi, temperature = path
    min_members = runs[0].options.min_members
    margins = _TIE * np.array([[run.options.learning_rate] for run in runs])
    tied = pi[-1] >= pi[-1].max(axis=-1, keepdims=True) - margins
    best_sizes = min_members + np.argmax(tied, axis=-1)  # K*, the smallest of those tied
    in_ensemble = np.arange(problem.members) < best_sizes[:, None]
    final = softmax(np.where(in_ensemble, theta[-1], -np.inf))
    solutions = []
    for r, run in enumerate(runs):
        terms, ce_gradient = terms_and_ce_gradient(_objective(problem, run), final[r])
        solution = Solution(
            weights=_as_given(final[r], ranked),
            size=int(best_sizes[r]),
            terms=terms,
            order=ranked.copy(),
            ce_gradient=_as_given(ce_gradient, ranked),
        )
        if trajectory:
            history = _trajectory(
                theta[:, r].copy(), pi[:, r].copy(), temperature[:, r], run, problem, ranked
            )
            solution = replace(solution, trajectory=history)
        solutions.append(solution)
    return solutions


def _trajectory(
    theta: Floats, pi: Floats, temperature: Floats, run: _GumbelRun, problem: Problem, ranked: Ints
) -> Trajectory:
    """What the logits [E, K] and [E, M] of one run mean after each epoch."""
    sizes = softmax(pi)
    averaged = effective_weights(theta, sizes, run.options.min_members)
    losses = _objective(problem, run).terms(averaged)
    return Trajectory(
        **{name: losses[name] for name in _OF_TRAJECTORY},
        temperature=temperature,
        sizes=sizes,
        weights=_as_given(averaged, ranked),
        theta=theta,
        pi=pi,
    )


def _objective(problem: Problem, run: _GumbelRun) -> JointObjective:
    """The joint loss of a run over all items, without draws."""
    return JointObjective(problem, in_expectation(run.settings))


def _as_given(values: Floats, ranked: Ints) -> Floats:
    """Values [..., n] of the n best members -> [..., K] of all as they were given, 0 elsewhere.

    ``ranked`` [K] are the positions of the members in rank order.
    """
    as_given = np.zeros((*values.shape[:-1], len(ranked)))
    as_given[..., ranked[: values.shape[-1]]] = values
    return as_given
