"""How fast is the Gumbel solver, and how far do its settings get?

    python benchmarks/gumbel.py              # against the literal PyTorch loop; needs torch
    python benchmarks/gumbel.py --defaults   # the paper's settings and ours, against the optimum

Prints Markdown tables; ``benchmarks/README.md`` says how to read them.
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from gumbel_pools import KINDS, MEMBERS, Pool, make_pool
from seconds import timed

from edokit.datasets.simulate.regimes import REGIMES
from edokit.fitdata.data import FitData
from edokit.objective.loss import joint_loss
from edokit.objective.pools import softmax
from edokit.objective.settings import PRESETS, Gumbel, GumbelSteps, Objective, ObjectiveSettings
from edokit.objective.summaries import Problem, Summaries
from edokit.solvers import Solution
from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel

SEEDS = tuple(range(20))


def paper_space(count: int, ce: str) -> tuple[list[ObjectiveSettings], list[GumbelSteps]]:
    """Configurations drawn from the paper's search space."""
    rng = np.random.default_rng(0)
    settings = []
    options = []
    for _ in range(count):
        f1, of_ce, div = rng.random(3)
        sign = rng.choice(["preserve", "suppress"])
        reg = 10 ** rng.uniform(-5, -2)
        rate = 10 ** rng.uniform(-5, -3)
        settings.append(
            Objective(
                f1=f1,
                ce_weight=of_ce,
                div=div,
                reg=reg,
                diversity=sign,
                ce=ce,
                class_weights=True,
            ).resolve()
        )
        options.append(
            GumbelSteps(
                learning_rate=rate,
                temperature=rng.uniform(0.1, 1.0),
                temperature_decay=rng.uniform(0.01, 0.2),
            )
        )
    return settings, options


def total(weights: Sequence[float], pool: Pool, settings: ObjectiveSettings) -> float:
    """The joint loss at these weights over all items (``random`` in expectation)."""
    compared_settings = replace(settings, ce="all") if settings.ce == "random" else settings
    problem = Problem.from_arrays(*pool, class_weights=settings.class_weights)
    return float(joint_loss(np.asarray(weights), problem, compared_settings).total)


def speed(count: int, rounds: int) -> None:
    """Time and results beside those of the literal loop."""
    import torch
    from gumbel_literal import OwnNoise, SharedNoise, fit_literally

    # With steps this small more threads only slow PyTorch down.
    torch.set_num_threads(1)
    pool = make_pool("crowd", "graded")
    alpha = Summaries.from_arrays(*pool).class_weights()
    labels = np.eye(pool.q.shape[1])[pool.y]
    exact = [torch.from_numpy(part) for part in (pool.P, pool.q, labels, alpha)]
    single_precision = [part.float() for part in exact]
    items, members, classes = pool.P.shape
    print(
        f"{count} configurations × {GumbelSteps().epochs} epochs, {items} items × {members} "
        f"members × {classes} classes; {platform.machine()}, numpy {np.__version__}, "
        f"torch {torch.__version__}\n"
    )
    print("Seconds and ratios: on the clock / of the processor.\n")
    print(
        "| CE | literal loop | edokit | times faster | largest weight difference, shared draws "
        "| mean loss difference, own draws |"
    )
    print("|---|---|---|---|---|---|")
    for ce in ("mean", "all", "random"):
        settings, options = paper_space(count, ce)
        pairs = list(zip(settings, options, strict=True))
        seeds = list(range(1, count + 1))
        ours, _ = timed(
            lambda s=settings, o=options: solve_gumbel(FitData.from_arrays(*pool), s, o), rounds
        )
        data = FitData.from_arrays(*pool)
        found = [
            solve_gumbel(data, *own, random_state=seed)[0]
            for own, seed in zip(pairs, seeds, strict=True)
        ]
        theirs, literal = timed(
            lambda p=pairs: [
                fit_literally(*single_precision, *own, OwnNoise(t)) for t, own in enumerate(p)
            ]
        )
        apart = [
            solution.terms["total"] - total(weights, pool, own)
            for solution, own, (weights, _) in zip(found, settings, literal, strict=True)
        ]
        error = np.std(apart, ddof=1) / np.sqrt(count)
        shared = [
            fit_literally(*exact, *own, SharedNoise(seed, own[1].batch_size))[0]
            for own, seed in zip(pairs, seeds, strict=True)
        ]
        largest = max(
            np.abs(solution.weights - weights).max()
            for solution, weights in zip(found, shared, strict=True)
        )
        print(
            f"| {ce} | {theirs} | {ours} | {theirs.times(ours)} "
            f"| {largest:.0e} | {np.mean(apart):+.4f} ± {1.96 * error:.4f} |"
        )


def defaults(seed: int) -> None:
    """The paper's settings and the thorough ones, seed by seed, against the optimum."""
    print(
        f"{len(SEEDS)} seeds, pools of {MEMBERS} members. Gap: joint loss above the optimum's, "
        "mean (smallest–largest). Movement: max |w − 1/K| of w = softmax(θ), mean. Kept: members "
        "with at least 5 % of the weight, mean."
    )
    for name in ("paper-fixed", "default"):
        settings = PRESETS[name].resolve()
        print(f"\nPreset `{name}`\n")
        print(
            "| people | pool | items | gap, uniform | paper: movement | paper: K* (seeds) "
            "| paper: gap | thorough: K* (seeds) | thorough: kept | thorough: gap | optimum: kept |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        gaps: list[list[float]] = [[], [], []]
        for regime in REGIMES:
            for kind in KINDS:
                row = compare(make_pool(regime, kind, seed), settings)
                for kept, own in zip(gaps, row[1], strict=True):
                    kept.extend(own)
                print(f"| {regime} | {kind} | {row[0]}")
        means = [f"{np.mean(own):.4f}" for own in gaps]
        print(f"| all | | | {means[0]} | | | {means[1]} | | | {means[2]} | |")


def compare(pool: Pool, settings: ObjectiveSettings) -> tuple[str, list[list[float]]]:
    """The cells of one pool, and its gaps: uniform, the paper's settings, the thorough ones."""
    problem = Problem.from_arrays(*pool, class_weights=settings.class_weights)
    best = solve_exact(FitData.from_arrays(*pool), settings, max_members=MEMBERS)
    optimum = best.terms["total"]
    uniform = float(joint_loss(np.full(MEMBERS, 1 / MEMBERS), problem, settings).total) - optimum
    data = FitData.from_arrays(*pool)
    paper, thorough = (
        [solve_gumbel(data, settings, options, random_state=seed)[0] for seed in SEEDS]
        for options in (GumbelSteps(), Gumbel().resolve(problem.items))
    )
    moved = np.mean([np.abs(theta_weights(own) - 1 / MEMBERS).max() for own in paper])
    gaps = [[own.terms["total"] - optimum for own in found] for found in (paper, thorough)]
    kept = np.mean([(own.weights >= 0.05).sum() for own in thorough])
    cells = (
        f"{problem.items} | {uniform:.4f} | {moved:.3f} | {sizes(paper)} | {spread(gaps[0])} "
        f"| {sizes(thorough)} | {kept:.1f} | {spread(gaps[1])} | {(best.weights >= 0.05).sum()} |"
    )
    return cells, [[uniform], *gaps]


def theta_weights(solution: Solution) -> np.ndarray:
    """[K] learned weights before a size is chosen."""
    assert solution.trajectory is not None
    return np.asarray(softmax(solution.trajectory.theta[-1]))


def spread(values: Sequence[float]) -> str:
    """Mean and range."""
    return f"{np.mean(values):.4f} ({min(values):.4f}–{max(values):.4f})"


def sizes(found: Sequence[Solution]) -> str:
    """How many seeds chose which size."""
    return ", ".join(f"{k} ({n})" for k, n in sorted(Counter(s.size for s in found).items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--defaults", action="store_true", help="compare settings, not speed")
    parser.add_argument("--seed", type=int, default=1, help="of the simulations of --defaults")
    parser.add_argument("--configurations", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5, help="of edokit; the median counts")
    arguments = parser.parse_args()
    if arguments.defaults:
        defaults(arguments.seed)
    else:
        speed(arguments.configurations, arguments.rounds)


if __name__ == "__main__":
    main()
