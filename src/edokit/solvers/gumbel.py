"""The paper's algorithm: weights and size by Adam, sizes drawn from a Gumbel-Softmax."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.fitdata import FitData
from edokit.objective import (
    Loss,
    Pool,
    Problem,
    Settings,
    effective_weights,
    joint_loss,
    rank_members,
    softmax,
)
from edokit.solvers.batches import Batches
from edokit.solvers.descent import Path, descend
from edokit.solvers.exact import expected, solution_at
from edokit.solvers.options import GumbelSettings, Run, as_runs, batches_of, columns_of
from edokit.solvers.solution import Solution, Trajectory

TERMS = ("f1", "ce", "div", "reg", "total")
# Size logits closer than this share of one step are a tie, which the smaller size wins: rounding
# must not decide.
_TIE = 1e-3
# Multiplications of one evaluation on all items: so few that a product stays on one thread, since
# on a busy machine threads that wait for each other cost more than they save.
_BLOCK = 2**18


def solve_gumbel(
    data: FitData,
    settings: Settings | Sequence[Settings],
    options: GumbelSettings | Sequence[GumbelSettings] | None = None,
    *,
    random_state: int | Sequence[int] = 0,
    order: str = "ce",
    keep: bool = False,
    trajectory: bool = True,
) -> list[Solution]:
    """A solution per configuration, all learned side by side.

    ``settings``, ``options`` and ``random_state`` are one for all configurations, or one per
    configuration. A solution depends on its own, not on its companions'; configurations of one
    seed see the same mini-batches and noise. Of data larger than memory the weights are learned
    from ``data.sample``; ranks and terms are of all items, trajectories of the sample.

    Parameters
    ----------
    data : FitData
        Predictions and labels, in memory or in shards.
    settings : Settings or sequence of Settings
        The objectives.
    options : GumbelSettings or sequence of GumbelSettings, optional
        How to search; the paper's settings by default.
    random_state : int or sequence of int, default=0
        Seeds of the mini-batches and of the noise.
    order : {"ce", "given"}, default="ce"
        How members are ranked: by their own cross-entropy, or as they are.
    keep : bool, default=False
        Keep the mini-batches in memory, if they are few, for calls with the same seeds.
    trajectory : bool, default=True
        Whether solutions tell how the fit went; without it they take a little less time.

    Returns
    -------
    list of Solution
        In the order of the configurations.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit.fitdata import FitData
    >>> from edokit.objective import Settings
    >>> P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
    >>> data = FitData.from_arrays(P, np.eye(2), np.array([0, 1]))
    >>> [solution] = solve_gumbel(data, Settings())
    >>> solution.size
    1
    """
    runs = as_runs(settings, options or GumbelSettings(), random_state)
    ready = data.prepared.get(("gumbel", order))
    if ready is None:
        ready = data.prepared[("gumbel", order)] = _Prepared(data, order)
    solutions: dict[int, Solution] = {}
    for batch in batches_of(runs):
        how, columns = batch[0][0].options, columns_of(batch)
        problem, batches = ready.batches(batch[0][0])
        path = descend(
            batches.epochs(
                how.epochs,
                [alike[0].seed for alike in batch],
                problem.members - how.min_members + 1,
                pooled=columns.pooled > 0,
                drawn=columns.drawn > 0,
                keep=keep,
            ),
            columns,
            members=problem.members,
            min_members=how.min_members,
            pool=problem.pool,
        )
        flat = [run for alike in batch for run in alike]
        found = _solutions(path, flat, problem, ready.ranks, trajectory)
        solutions.update(zip((run.place for run in flat), found, strict=True))
    if data.is_sampled:
        _take_terms_of_all(data, runs, solutions)
    return [solutions[place] for place in range(len(runs))]


class _Prepared:
    """What calls on the same data have in common."""

    def __init__(self, data: FitData, order: str) -> None:
        self._data = data
        self.ranks: Ints = rank_members(data.summaries(), order)
        self._batches: dict[tuple[Hashable, ...], tuple[Problem, Batches]] = {}

    def batches(self, run: Run) -> tuple[Problem, Batches]:
        """The members that can be kept, as a problem and as mini-batches."""
        candidates = _candidates(run.options, len(self.ranks))
        kind = (run.settings.class_weights, run.settings.pool)
        key = (*kind, candidates, run.options.batch_size)
        if key not in self._batches:
            kept = self.ranks[:candidates]
            problem = self._data.problem(run.settings).select(kept)
            P, _, y = self._data.sample
            batches = Batches(P[:, kept], y.astype(np.int64), problem, run.options.batch_size)
            self._batches[key] = problem, batches
        return self._batches[key]


def _take_terms_of_all(data: FitData, runs: list[Run], solutions: dict[int, Solution]) -> None:
    """Terms over all items in place of the sample's; those that share a pool share a pass."""
    together: dict[tuple[bool, Pool, str], list[Run]] = {}
    for run in runs:
        chosen = run.settings
        key = (chosen.class_weights, chosen.pool, str(expected(chosen).ce))
        together.setdefault(key, []).append(run)
    for alike in together.values():
        weights = [solutions[run.place].weights for run in alike]
        # The pass depends on pool and class weights alone; the terms are then those of each run.
        found = solution_at(data, [run.settings for run in alike], weights)
        for run, (terms, slope) in zip(alike, found, strict=True):
            solutions[run.place] = replace(solutions[run.place], terms=terms, ce_gradient=slope)


def _candidates(options: GumbelSettings, members: int) -> int:
    """The members that can be kept."""
    if options.min_members > members:
        raise InputError(
            f"min_members={options.min_members} is more than the {members} members there are",
            "ask for fewer, or give more members",
            parameters=("min_members",),
        )
    return min(options.max_members, members)


def _solutions(
    path: Path, runs: Sequence[Run], problem: Problem, ranks: Ints, trajectory: bool
) -> list[Solution]:
    theta, pi = (part[-1].reshape(len(runs), -1) for part in (path.theta, path.pi))
    settings = [expected(run.settings) for run in runs]
    least = runs[0].options.min_members
    tie = _TIE * np.array([[run.options.learning_rate] for run in runs])
    best = least + np.argmax(pi >= pi.max(axis=-1, keepdims=True) - tie, axis=-1)  # K*
    kept = np.arange(problem.members) < best[:, None]
    final = softmax(np.where(kept, theta, -np.inf))
    ends = _losses(final, final, problem, settings)
    trajectories = _trajectories(path, runs, problem, ranks) if trajectory else [None] * len(runs)
    return [
        Solution(
            weights=_as_given(final[t], ranks),
            size=int(best[t]),
            terms={name: float(ends[name][t]) for name in TERMS},
            order=ranks.copy(),
            ce_gradient=_as_given(ends["ce_gradient"][t], ranks),
            trajectory=trajectories[t],
        )
        for t in range(len(runs))
    ]


def _trajectories(
    path: Path, runs: Sequence[Run], problem: Problem, ranks: Ints
) -> list[Trajectory | None]:
    """How each fit went."""
    epochs, count = len(path.theta), len(runs)
    theta = path.theta.reshape(epochs, count, -1)
    pi = path.pi.reshape(epochs, count, -1)
    temperature = path.temperature.reshape(epochs, count)
    settings = [expected(run.settings) for run in runs]
    sizes = softmax(pi)
    averaged = effective_weights(theta, sizes, runs[0].options.min_members)
    raw = softmax(theta)
    losses = [_losses(v, w, problem, settings) for v, w in zip(averaged, raw, strict=True)]
    return [
        Trajectory(
            **{name: np.array([at[name][t] for at in losses]) for name in TERMS},
            temperature=temperature[:, t],
            sizes=sizes[:, t],
            weights=_as_given(averaged[:, t], ranks),
            theta=theta[:, t].copy(),
            pi=pi[:, t].copy(),
        )
        for t in range(count)
    ]


def _losses(
    v: Floats, w: Floats, problem: Problem, settings: Sequence[Settings]
) -> dict[str, Floats]:
    """The terms [T] at v [T, K] over all items, a few configurations at a time."""
    length = max(1, _BLOCK // problem.rows.size)
    parts: list[Loss] = []
    for start in range(0, len(v), length):
        part = slice(start, start + length)
        parts.append(joint_loss(v[part], problem, settings[part], w=w[part]))
    names = (*TERMS, "ce_gradient")
    return {name: np.concatenate([getattr(loss, name) for loss in parts]) for name in names}


def _as_given(ranked: Floats, ranks: Ints) -> Floats:
    """[..., candidates] by rank -> [..., K] as the members were given, the rest without weight."""
    weights = np.zeros((*ranked.shape[:-1], len(ranks)))
    weights[..., ranks[: ranked.shape[-1]]] = ranked
    return weights
