"""The paper's algorithm: weights and size by Adam, sizes drawn from a Gumbel-Softmax."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
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
from edokit.solvers.exact import evaluate_weights, in_expectation, terms_and_gradient

_OF_TRAJECTORY = ("f1", "ce", "div", "reg", "total")
# Runs that differ in these can't share arrays.
_SHAPE = attrgetter("epochs", "batch_size", "min_members", "max_members")
# Size logits closer than this share of one step are a tie, which the smaller size wins: rounding
# must not decide.
_TIE = 1e-3


def warn_if_sampled(data: FitData) -> None:
    """Warn that data larger than memory are learned from by a sample."""
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

    ``settings`` and ``options`` are one for all configurations, or one per configuration. A
    solution depends on its own, not on its companions'; all see the same mini-batches and noise.
    Of data larger than memory the weights are learned from ``data.sample``; ranks and terms are of
    all items, trajectories of the sample.

    Parameters
    ----------
    data : FitData
        Predictions and labels, in memory or in shards.
    settings : ObjectiveSettings or sequence of ObjectiveSettings
        The objectives.
    options : GumbelSteps or sequence of GumbelSteps, optional
        How to search; the paper's settings by default.
    random_state : int, default=0
        Seed of the mini-batches and of the noise.
    trajectory : bool, default=True
        Whether solutions tell how the fit went, and have terms of all items where weights are
        learned from a sample; a search needs neither.

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
    for batch in _batches(runs):
        steering = batch[0].options
        columns = _columns(batch)
        problem, batches, ranks = _prepare(data, batch[0])
        terms: dict[str, PoolTerm] = {}
        for run in batch:
            problem.check_scale(run.settings)
            terms |= pool_terms(run.settings, steps=problem.steps)
        sizes = problem.members - steering.min_members + 1
        with_drawn = columns.n_drawn > 0
        path = descend(
            batches.epochs(steering.epochs, random_state, sizes, terms, with_drawn=with_drawn),
            columns,
            problem=problem,
            terms=terms,
            min_members=steering.min_members,
        )
        batch_solutions = _solutions(path, batch, problem, ranks, trajectory)
        solutions.update(zip((run.place for run in batch), batch_solutions, strict=True))
    if data.is_sampled and trajectory:
        for run in runs:
            solution = solutions[run.place]
            values, slope = evaluate_weights(data, run.settings, solution.weights)
            solutions[run.place] = replace(solution, terms=values, ce_gradient=slope)
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
    """One run per configuration; what is given once serves all."""
    if isinstance(settings, ObjectiveSettings):
        objectives = [settings]
    else:
        objectives = list(settings)
    if isinstance(options, GumbelSteps):
        options = [options] * len(objectives)
    pairs = zip(objectives, options, strict=True)
    return [_GumbelRun(place, *values) for place, values in enumerate(pairs)]


def _batches(runs: Sequence[_GumbelRun]) -> list[list[_GumbelRun]]:
    """Runs that can share arrays, in the order of `Columns`."""
    batches: dict[tuple[Hashable, ...], list[_GumbelRun]] = {}
    for run in runs:
        key = (run.settings.class_weights, run.settings.pool, *_SHAPE(run.options))
        batches.setdefault(key, []).append(run)
    for batch in batches.values():
        batch.sort(key=lambda run: (CE.MEAN, CE.ALL, CE.RANDOM).index(run.settings.ce))
    return list(batches.values())


def _columns(batch: Sequence[_GumbelRun]) -> Columns:
    """The numbers in which the runs of a batch differ."""

    def column(number: Callable[[_GumbelRun], float]) -> Floats:
        return np.array([[number(run)] for run in batch], dtype=np.float64)

    kinds = [run.settings.ce for run in batch]
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
    """The members that can be kept, as a problem and as mini-batches, and the ranks of all.

    Calls on the same data share them.
    """
    settings = run.settings
    options = run.options
    ranks: Ints = rank_members(data.summaries())
    if options.min_members > len(ranks):
        raise InputError(
            f"{option('min_members', options.min_members)} is more than the {len(ranks)} members"
            " there are",
            "ask for fewer, or give more members",
            code="too-few-members",
        )
    candidates = ranks[: options.max_members]
    steering = (len(candidates), options.batch_size)
    key = ("gumbel", settings.class_weights, settings.pool, *steering)
    if key not in data.prepared:
        problem = data.problem(settings).select(candidates)
        P, _, y = data.sample
        batches = Batches(
            P[:, candidates].astype(np.float64, copy=False),
            y.astype(np.int64),
            problem,
            options.batch_size,
        )
        data.prepared[key] = problem, batches
    return *data.prepared[key], ranks


def _solutions(
    path: tuple[Floats, Floats, Floats],
    runs: Sequence[_GumbelRun],
    problem: Problem,
    ranks: Ints,
    trajectory: bool,
) -> list[Solution]:
    """Of what `descend` returns: θ, π and temperatures by epoch."""
    theta, pi, temperature = path
    least = runs[0].options.min_members
    tie = _TIE * np.array([[run.options.learning_rate] for run in runs])
    best = least + np.argmax(pi[-1] >= pi[-1].max(axis=-1, keepdims=True) - tie, axis=-1)  # K*
    in_ensemble = np.arange(problem.members) < best[:, None]
    final = softmax(np.where(in_ensemble, theta[-1], -np.inf))
    solutions = []
    for t, run in enumerate(runs):
        terms, slope = terms_and_gradient(_objective(problem, run), final[t])
        solution = Solution(
            weights=_as_given(final[t], ranks),
            size=int(best[t]),
            terms=terms,
            order=ranks.copy(),
            ce_gradient=_as_given(slope, ranks),
        )
        if trajectory:
            logits = theta[:, t].copy(), pi[:, t].copy()
            history = _trajectory(*logits, temperature[:, t], run, problem, ranks)
            solution = replace(solution, trajectory=history)
        solutions.append(solution)
    return solutions


def _trajectory(
    theta: Floats, pi: Floats, temperature: Floats, run: _GumbelRun, problem: Problem, ranks: Ints
) -> Trajectory:
    """What the logits [E, K] and [E, M] of one run mean after each epoch."""
    sizes = softmax(pi)
    averaged = effective_weights(theta, sizes, run.options.min_members)
    losses = _objective(problem, run).terms(averaged)
    return Trajectory(
        **{name: losses[name] for name in _OF_TRAJECTORY},
        temperature=temperature,
        sizes=sizes,
        weights=_as_given(averaged, ranks),
        theta=theta,
        pi=pi,
    )


def _objective(problem: Problem, run: _GumbelRun) -> JointObjective:
    """The joint loss of a run over all items, without draws."""
    return JointObjective(problem, in_expectation(run.settings))


def _as_given(ranked: Floats, ranks: Ints) -> Floats:
    """[..., candidates] by rank -> [..., K] as the members were given, the rest without weight."""
    weights = np.zeros((*ranked.shape[:-1], len(ranks)))
    weights[..., ranks[: ranked.shape[-1]]] = ranked
    return weights
