"""The paper's algorithm: weights and size by Adam, sizes drawn from a Gumbel-Softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edokit.errors import InputError
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
from edokit.solvers.draws import Draws
from edokit.solvers.gumbel_settings import GumbelSettings
from edokit.solvers.runs import Run, as_runs, batches_of, columns_of
from edokit.solvers.solution import Solution
from edokit.solvers.trajectory import Trajectory

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

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
    runs = as_runs(settings, options or GumbelSettings(), seeds)
    summaries = Summaries.from_arrays(P, q, y)
    ranks = rank_members(summaries, order)
    P, q, y = P.astype(np.float64)[:, ranks], q.astype(np.float64), y.astype(np.int64)
    ranked = summaries.select(ranks)
    problems: dict[tuple[bool, Pool], Problem] = {}
    solutions: dict[int, Solution] = {}
    for batch in batches_of(runs):
        chosen, how = batch[0][0].settings, batch[0][0].options
        kind = (chosen.class_weights, chosen.pool)
        if kind not in problems:
            problems[kind] = Problem.from_arrays(
                P, q, y, class_weights=kind[0], pool=kind[1], summaries=ranked
            )
        candidates = _candidates(how, len(ranks))
        problem = problems[kind].select(np.arange(candidates))
        path = descend(
            Batches(P[:, :candidates], y, problem, chosen.ce, how.batch_size),
            [Draws(alike[0].seed) for alike in batch],
            columns_of(batch),
            members=candidates,
            min_members=how.min_members,
            epochs=how.epochs,
            ce=chosen.ce,
            pool=chosen.pool,
        )
        flat = [run for alike in batch for run in alike]
        for run, solution in zip(flat, _solutions(path, flat, problem, ranks), strict=True):
            solutions[run.place] = solution
    return [solutions[place] for place in range(len(runs))]


def _candidates(options: GumbelSettings, members: int) -> int:
    """The members that can be kept."""
    if options.min_members > members:
        raise InputError(
            f"min_members must be at most the number of members, {members}, but got "
            f"{options.min_members}",
            "ask for fewer, or give more members",
        )
    return min(options.max_members, members)


def _solutions(path: Path, runs: Sequence[Run], problem: Problem, ranks: Ints) -> list[Solution]:
    epochs, count = len(path.theta), len(runs)
    theta = path.theta.reshape(epochs, count, -1)
    pi = path.pi.reshape(epochs, count, -1)
    temperature = path.temperature.reshape(epochs, count)
    settings = [_expected(run.settings) for run in runs]
    least = runs[0].options.min_members
    sizes = softmax(pi)
    averaged = effective_weights(theta, sizes, least)
    raw = softmax(theta)
    course = [_losses(v, w, problem, settings) for v, w in zip(averaged, raw, strict=True)]
    tie = _TIE * np.array([[run.options.learning_rate] for run in runs])
    best = least + np.argmax(pi[-1] >= pi[-1].max(axis=-1, keepdims=True) - tie, axis=-1)  # K*
    kept = np.arange(problem.members) < best[:, None]
    final = softmax(np.where(kept, theta[-1], -np.inf))
    ends = _losses(final, final, problem, settings)
    solutions = []
    for t in range(count):
        losses = {name: np.array([at[name][t] for at in course]) for name in TERMS}
        solutions.append(
            Solution(
                weights=_as_given(final[t], ranks),
                size=int(best[t]),
                terms={name: float(ends[name][t]) for name in TERMS},
                order=ranks.copy(),
                trajectory=Trajectory(
                    **losses,
                    temperature=temperature[:, t],
                    sizes=sizes[:, t],
                    weights=_as_given(averaged[:, t], ranks),
                    theta=theta[:, t].copy(),
                    pi=pi[:, t].copy(),
                ),
            )
        )
    return solutions


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
