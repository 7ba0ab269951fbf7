"""How long does the exact solver take, and how good is its certificate, as problems grow?

    python benchmarks/exact.py

Seconds stand beside the time that one pass over the same predictions takes (building the problem),
since only ratios mean something on another machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from edokit.fitdata.data import FitData
from edokit.objective.settings import Objective
from edokit.solvers.exact import solve_exact

SIZES = [(1_104, 10, 2), (10_000, 50, 2), (5_000, 20, 11), (100_000, 20, 2), (100_000, 200, 2)]
SETTINGS = {
    "default": Objective().resolve(),
    "preserve 0.1": Objective(div=0.1).resolve(),
    "suppress 0.1": Objective(div=0.1, diversity="suppress").resolve(),
}


def pool(items: int, members: int, classes: int) -> tuple[Any, Any, Any]:
    """Members that see the same leaning of each item through more or less noise."""
    rng = np.random.default_rng(0)
    leaning = rng.normal(size=(items, classes)) * 1.5
    noise = rng.normal(size=(items, members, classes)) * rng.uniform(0.3, 2, (1, members, 1))
    P, q = (_softmax(scores) for scores in (leaning[:, None] + noise, leaning))
    q = rng.multinomial(5, q) / 5.0
    return P, q, q.argmax(axis=1)


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> None:
    print(
        "| items × members × classes | objective | solve / build | solve (s) | size | certificate |"
    )
    print("|---|---|---|---|---|---|")
    for shape in SIZES:
        data = pool(*shape)
        fit = FitData.from_arrays(*data)
        build, _ = timed(lambda fit=fit: fit.problem(Objective().resolve()))
        for name, settings in SETTINGS.items():
            solve, solution = timed(lambda fit=fit, s=settings: solve_exact(fit, s))
            proof = solution.certificate
            kind = f"gap {proof.gap:.0e}" if proof.convex else "best vertex or local optimum"
            print(
                f"| {shape[0]:,} × {shape[1]} × {shape[2]} | {name} | {solve / build:.1f} |"
                f" {solve:.2f} | {solution.size} | {kind} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
