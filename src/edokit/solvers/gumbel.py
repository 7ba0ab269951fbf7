"""The paper's algorithm: weights and size by Adam, sizes drawn from a Gumbel-Softmax."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.objective import (
    CE,
    Configurations,
    Loss,
    Pool,
    Problem,
    Settings,
    Summaries,
    effective_weights,
    joint_loss,
    rank_members,
    softmax,
)
from edokit.solvers.batches import Batches
from edokit.solvers.descent import Path, descend
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
    P: NDArray[Any],
    q: NDArray[Any],
    y: NDArray[Any],
    settings: Settings | Sequence[Settings],
    options: GumbelSettings | Sequence[GumbelSettings] | None = None,
    *,
    seeds: int | Sequence[int] = 0,
    order: str = "ce",
) -> list[Solution]:
    """A solution per configuration, of predictions P [N, K, C], soft labels q [N, C] and hard
    label codes y [N].

    ``settings``, ``options`` and ``seeds`` are one for all configurations, or one per
    configuration; all run side by side. A solution depends on its own settings, options and
    seed, not on its companions; configurations of one seed see the same mini-batches and noise.
    ``order``: how members are ranked, see ``rank_members``.
    """
    return GumbelSolver(P, q, y, order=order).solve(settings, options, seeds=seeds)


class GumbelSolver:
    """The solver on one set of fit data; what its calls have in common is computed once."""

    def __init__(
        self, P: NDArray[Any], q: NDArray[Any], y: NDArray[Any], *, order: str = "ce"
    ) -> None:
        """Of predictions P [N, K, C], soft labels q [N, C] and hard label codes y [N]."""
        summaries = Summaries.from_arrays(P, q, y)
        self._ranks = rank_members(summaries, order)
        self._P, self._q = P.astype(np.float64)[:, self._ranks], q.astype(np.float64)
        self._y = y.astype(np.int64)
        self._summaries = summaries.select(self._ranks)
        self._problems: dict[tuple[bool, Pool], Problem] = {}
        self._batches: dict[tuple[Hashable, ...], tuple[Problem, Batches]] = {}

    def solve(
        self,
        settings: Settings | Sequence[Settings],
        options: GumbelSettings | Sequence[GumbelSettings] | None = None,
        *,
        seeds: int | Sequence[int] = 0,
        keep: bool = False,
        trajectory: bool = True,
    ) -> list[Solution]:
        """A solution per configuration, as `solve_gumbel` gives it.

        ``keep`` the mini-batches in memory, if they are few, for calls with the same seeds. Without
        ``trajectory`` solutions have none, which is a little faster.
        """
        runs = as_runs(settings, options or GumbelSettings(), seeds)
        solutions: dict[int, Solution] = {}
        for batch in batches_of(runs):
            how, columns = batch[0][0].options, columns_of(batch)
            problem, batches = self._prepared(batch[0][0])
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
            found = _solutions(path, flat, problem, self._ranks, trajectory)
            solutions.update(zip((run.place for run in flat), found, strict=True))
        return [solutions[place] for place in range(len(runs))]

    def _prepared(self, run: Run) -> tuple[Problem, Batches]:
        """The members that can be kept, as a problem and as mini-batches."""
        candidates = _candidates(run.options, len(self._ranks))
        kind = (run.settings.class_weights, run.settings.pool)
        key = (*kind, candidates, run.options.batch_size)
        if key not in self._batches:
            if kind not in self._problems:
                self._problems[kind] = Problem.from_arrays(
                    self._P,
                    self._q,
                    self._y,
                    class_weights=kind[0],
                    pool=kind[1],
                    summaries=self._summaries,
                )
            problem = self._problems[kind].select(np.arange(candidates))
            batches = Batches(self._P[:, :candidates], self._y, problem, run.options.batch_size)
            self._batches[key] = problem, batches
        return self._batches[key]


def _candidates(options: GumbelSettings, members: int) -> int:
    """The members that can be kept."""
    if options.min_members > members:
        raise InputError(
            f"min_members must be at most the number of members, {members}, but got "
            f"{options.min_members}",
            "ask for fewer, or give more members",
        )
    return min(options.max_members, members)


def _solutions(
    path: Path, runs: Sequence[Run], problem: Problem, ranks: Ints, trajectory: bool
) -> list[Solution]:
    theta, pi = (part[-1].reshape(len(runs), -1) for part in (path.theta, path.pi))
    settings = [_expected(run.settings) for run in runs]
    least = runs[0].options.min_members
    tie = _TIE * np.array([[run.options.learning_rate] for run in runs])
    best = least + np.argmax(pi >= pi.max(axis=-1, keepdims=True) - tie, axis=-1)  # K*
    kept = np.arange(problem.members) < best[:, None]
    final = softmax(np.where(kept, theta, -np.inf))
    ends = _losses(final, final, problem, settings)
    course = _course(path, runs, problem, ranks) if trajectory else [None] * len(runs)
    return [
        Solution(
            weights=_as_given(final[t], ranks),
            size=int(best[t]),
            terms={name: float(ends[name][t]) for name in TERMS},
            order=ranks.copy(),
            trajectory=course[t],
        )
        for t in range(len(runs))
    ]


def _course(
    path: Path, runs: Sequence[Run], problem: Problem, ranks: Ints
) -> list[Trajectory | None]:
    """How each fit went."""
    epochs, count = len(path.theta), len(runs)
    theta = path.theta.reshape(epochs, count, -1)
    pi = path.pi.reshape(epochs, count, -1)
    temperature = path.temperature.reshape(epochs, count)
    settings = [_expected(run.settings) for run in runs]
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


def _expected(settings: Settings) -> Settings:
    """The same objective without a draw: ``random`` is ``all`` in expectation."""
    return replace(settings, ce=CE.ALL) if settings.ce is CE.RANDOM else settings


def _losses(
    v: Floats, w: Floats, problem: Problem, settings: Sequence[Settings]
) -> dict[str, Floats]:
    """The terms [T] at v [T, K] over all items, a few configurations at a time."""
    length = max(1, _BLOCK // problem.rows.size)
    parts: list[Loss] = []
    for start in range(0, len(v), length):
        part = slice(start, start + length)
        chosen = Configurations.of(settings[part])
        parts.append(joint_loss(v[part], problem, chosen, w=w[part]))
    return {name: np.concatenate([getattr(loss, name) for loss in parts]) for name in TERMS}


def _as_given(ranked: Floats, ranks: Ints) -> Floats:
    """[..., candidates] by rank -> [..., K] as the members were given, the rest without weight."""
    weights = np.zeros((*ranked.shape[:-1], len(ranks)))
    weights[..., ranks[: ranked.shape[-1]]] = ranked
    return weights
