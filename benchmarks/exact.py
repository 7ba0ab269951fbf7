"""How long does the exact solver take, and how good is its certificate, as problems grow?

    python benchmarks/exact.py            the solver alone, by objective
    python benchmarks/exact.py --public   what users call, beside the solver and beside SLSQP;
                                          written into RESULTS.md

Seconds stand beside the time that one pass over the same predictions takes (building the problem),
since only ratios mean something on another machine. The public call, ``EDOEnsemble().fit(P, q)``,
checks the arrays, chooses λ_Reg by cross-validation, and computes reasons and held-out answers;
with λ_Reg given (``reg=0.03``), it solves what SLSQP of scipy (ftol 1e-10, gradient written out) is
given. All times are those of the processor on one thread, the best of five that take turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from results import machine, write_section
from threadpoolctl import threadpool_limits

from edokit import EDOEnsemble
from edokit._types import Floats, Ints
from edokit.fitdata.data import FitData
from edokit.objective.settings import Objective
from edokit.solvers.exact import solve_exact

SIZES = [(1_104, 10, 2), (10_000, 50, 2), (5_000, 20, 11), (100_000, 20, 2), (100_000, 200, 2)]
T = TypeVar("T")
PUBLIC_SIZES = [
    (1_000, 5, 2),
    (1_000, 100, 2),
    (10_000, 20, 2),
    (100_000, 5, 2),
    (100_000, 100, 2),
    (1_000_000, 5, 2),
]
SETTINGS = {
    "default": Objective().resolve(),
    "preserve 0.1": Objective(div=0.1).resolve(),
    "suppress 0.1": Objective(div=0.1, diversity="suppress").resolve(),
}


def pool(items: int, members: int, classes: int) -> tuple[Floats, Floats, Ints]:
    """Members that see the same leaning of each item through more or less noise."""
    rng = np.random.default_rng(0)
    leaning = rng.normal(size=(items, classes)) * 1.5
    noise = rng.normal(size=(items, members, classes)) * rng.uniform(0.3, 2, (1, members, 1))
    P = _softmax(leaning[:, None] + noise)
    q = rng.multinomial(5, _softmax(leaning)) / 5.0
    return P, q, q.argmax(axis=1)


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def timed(work: Callable[[], T], rounds: int = 1) -> tuple[float, T]:
    """The least time of the process in several rounds, and the last result."""
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def in_turns(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least time of the process for each, one after the other in every round."""
    best = dict.fromkeys(works, np.inf)
    for _ in range(rounds):
        for name, work in works.items():
            seconds, _ = timed(work)
            best[name] = min(best[name], seconds)
    return best


def solver() -> None:
    """Print a row per size and objective, for the solver alone."""
    print(
        "| items × members × classes | objective | solve / build | solve (s) | size | certificate |"
    )
    print("|---|---|---|---|---|---|")
    for shape in SIZES:
        data = pool(*shape)
        fit = FitData.from_arrays(*data)
        build, _ = timed(lambda fit=fit: fit.problem(SETTINGS["default"]))
        for name, settings in SETTINGS.items():
            solve, solution = timed(lambda fit=fit, s=settings: solve_exact(fit, s))
            certificate = solution.certificate
            kind = "best vertex or local optimum"
            if certificate.convex:
                kind = f"gap {certificate.gap:.0e}"
            print(
                f"| {shape[0]:,} × {shape[1]} × {shape[2]} | {name} | {solve / build:.1f} |"
                f" {solve:.2f} | {solution.size} | {kind} |",
                flush=True,
            )


def public() -> None:
    """Measure the public call for every size, and write the section."""
    from peers_methods import Data, slsqp

    warnings.simplefilter("ignore")
    settings = SETTINGS["default"]
    fixed = EDOEnsemble(objective=Objective(reg=0.03))
    lines = [
        "| items × members × classes | fit (s) | fit, reg given (s) | solver (s) | fit / solver |"
        " reg given / solver | SLSQP (s) | reg given / SLSQP | fit / SLSQP |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    to_solver = []
    ahead = []
    for shape in PUBLIC_SIZES:
        P, q, y = pool(*shape)
        fixed.fit(P, q)  # imports and the draw of items, which is kept, are not counted
        works = {
            "fit": lambda P=P, q=q: EDOEnsemble().fit(P, q),
            "given": lambda P=P, q=q: fixed.fit(P, q),
            "solver": lambda P=P, q=q, y=y: solve_exact(FitData.from_arrays(P, q, y), settings),
            "slsqp": lambda P=P, q=q, y=y: slsqp(settings)(Data(P, q, y)),
        }
        seconds = in_turns(works, 5)
        size = f"{shape[0]:,} × {shape[1]} × {shape[2]}"
        to_solver.append(seconds["given"] / seconds["solver"])
        if seconds["slsqp"] < seconds["given"]:
            ahead.append(f"{size} ({seconds['given'] / seconds['slsqp']:.2f})")
        cells = [
            f"{seconds['fit']:.3f}",
            f"{seconds['given']:.3f}",
            f"{seconds['solver']:.3f}",
            f"{seconds['fit'] / seconds['solver']:.1f}",
            f"{seconds['given'] / seconds['solver']:.1f}",
            f"{seconds['slsqp']:.3f}",
            f"{seconds['given'] / seconds['slsqp']:.2f}",
            f"{seconds['fit'] / seconds['slsqp']:.2f}",
        ]
        lines.append(f"| {size} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    wins = len(PUBLIC_SIZES) - len(ahead)
    verdicts = [
        f"- `EDOEnsemble(objective=Objective(reg=0.03)).fit(P, q)` takes {min(to_solver):.1f} to"
        f" {max(to_solver):.1f} times its solver, {to_solver[-1]:.1f} times on a million items.",
        f"- It is faster than SLSQP by hand on {wins} of {len(PUBLIC_SIZES)}. SLSQP is ahead on:"
        f" {', '.join(ahead) or 'none'}.",
    ]
    text = "\n\n".join(
        [
            "    python benchmarks/exact.py --public",
            machine("numpy", "scipy", "scikit-learn"),
            "\n".join(verdicts),
            "Seconds of the processor on one thread, the best of five that take turns. *Fit*:"
            " `EDOEnsemble().fit(P, q)`, which checks the arrays, chooses λ_Reg by"
            " cross-validation, and computes reasons and held-out answers (metrics are computed"
            " when they are first read). *Reg given*: the same without the cross-validation of"
            " λ_Reg; it solves what SLSQP solves (scipy, ftol 1e-10, gradient written out), which"
            " checks nothing and computes nothing else.",
            "\n".join(lines),
        ]
    )
    write_section("The public fit (`exact.py --public`)", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--public", action="store_true", help="time what users call")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.public:
            public()
        else:
            solver()


if __name__ == "__main__":
    main()
