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
    if settings.ce == "random":
        settings = replace(settings, ce="all")
    problem = Problem.from_arrays(*pool, class_weights=settings.class_weights)
    return float(joint_loss(np.asarray(weights), problem, settings).total)


def speed(count: int, rounds: int) -> None:
    """Print time and results beside those of the literal loop."""
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
        theirs, literal = timed(
            lambda p=pairs: [
                fit_literally(*single_precision, *pair, OwnNoise(t)) for t, pair in enumerate(p)
            ]
        )
        data = FitData.from_arrays(*pool)
        loss_gaps = []
        weight_gaps = []
        for number, (setting, option) in enumerate(pairs):
            seed = seeds[number]
            solution = solve_gumbel(data, setting, option, random_state=seed)[0]
            literal_weights, _ = literal[number]
            loss_gaps.append(solution.terms["total"] - total(literal_weights, pool, setting))
            shared_noise = SharedNoise(seed, option.batch_size)
            shared_weights, _ = fit_literally(*exact, setting, option, shared_noise)
            weight_gaps.append(np.abs(solution.weights - shared_weights).max())
        error = np.std(loss_gaps, ddof=1) / np.sqrt(count)
        print(
            f"| {ce} | {theirs} | {ours} | {theirs.times(ours)} "
            f"| {max(weight_gaps):.0e} | {np.mean(loss_gaps):+.4f} ± {1.96 * error:.4f} |"
        )


def defaults(seed: int) -> None:
    """Print the paper's settings and the thorough ones, seed by seed, against the optimum."""
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
                cells, pool_gaps = compare(make_pool(regime, kind, seed), settings)
                for all_gaps, new_gaps in zip(gaps, pool_gaps, strict=True):
                    all_gaps += new_gaps
                print(f"| {regime} | {kind} | {cells}")
        uniform, paper, thorough = (f"{np.mean(values):.4f}" for values in gaps)
        print(f"| all | | | {uniform} | | | {paper} | | | {thorough} | |")


def compare(pool: Pool, settings: ObjectiveSettings) -> tuple[str, list[list[float]]]:
    """The cells of one pool, and its gaps: uniform, the paper's settings, the thorough ones."""
    problem = Problem.from_arrays(*pool, class_weights=settings.class_weights)
    best = solve_exact(FitData.from_arrays(*pool), settings, max_members=MEMBERS)
    optimum = best.terms["total"]
    uniform = float(joint_loss(np.full(MEMBERS, 1 / MEMBERS), problem, settings).total) - optimum
    data = FitData.from_arrays(*pool)
    thorough_steps = Gumbel().resolve(problem.items)
    paper = [solve_gumbel(data, settings, GumbelSteps(), random_state=seed)[0] for seed in SEEDS]
    thorough = [
        solve_gumbel(data, settings, thorough_steps, random_state=seed)[0] for seed in SEEDS
    ]
    movements = [np.abs(theta_weights(solution) - 1 / MEMBERS).max() for solution in paper]
    paper_gaps = [solution.terms["total"] - optimum for solution in paper]
    thorough_gaps = [solution.terms["total"] - optimum for solution in thorough]
    kept_members = np.mean([(solution.weights >= 0.05).sum() for solution in thorough])
    cells = (
        f"{problem.items} | {uniform:.4f} | {np.mean(movements):.3f} | {sizes(paper)} "
        f"| {spread(paper_gaps)} | {sizes(thorough)} | {kept_members:.1f} "
        f"| {spread(thorough_gaps)} | {(best.weights >= 0.05).sum()} |"
    )
    return cells, [[uniform], paper_gaps, thorough_gaps]


def solutions(data: FitData, settings: ObjectiveSettings, steps: GumbelSteps) -> list[Solution]:
    """A solution for each seed."""
    return [solve_gumbel(data, settings, steps, random_state=seed)[0] for seed in SEEDS]


def theta_weights(solution: Solution) -> np.ndarray:
    """The learned weights [K] before a size is chosen."""
    assert solution.trajectory is not None
    return np.asarray(softmax(solution.trajectory.theta[-1]))


def spread(values: Sequence[float]) -> str:
    """Mean and range."""
    return f"{np.mean(values):.4f} ({min(values):.4f}–{max(values):.4f})"


def sizes(seed_solutions: Sequence[Solution]) -> str:
    """How many seeds chose each size."""
    counts = Counter(solution.size for solution in seed_solutions)
    return ", ".join(f"{size} ({count})" for size, count in sorted(counts.items()))


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
