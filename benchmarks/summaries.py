"""How fast are the summaries, measured against plain numpy over the same memory?

    python benchmarks/summaries.py --items 10000000

Prints one Markdown table per dtype: best time of several interleaved rounds, and the ratio that
``benchmarks/README.md`` speaks of.
"""

from __future__ import annotations

import argparse
import platform
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from edokit.objective.summaries import Summaries


def problem(
    items: int, members: int, classes: int, dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random predictions [N, K, C], soft labels [N, C] and hard labels [N]."""
    rng = np.random.default_rng(0)
    P = np.empty((items, members, classes), dtype)
    q = np.empty((items, classes), dtype)
    for start in range(0, items, 100_000):
        for part in (P[start : start + 100_000], q[start : start + 100_000]):
            part[...] = rng.random(part.shape, dtype) + 0.01
            part /= part.sum(axis=-1, keepdims=True)
    return P, q, rng.integers(0, classes, items)


def best_times(tasks: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of each task; rounds are interleaved so that all meet the same machine."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def extra_memory(task: Callable[[], object]) -> int:
    """Most bytes that the task holds beside its input."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(items: int, members: int, classes: int, dtype: str, rounds: int) -> None:
    """Print times and memory for predictions of one type."""
    P, q, y = problem(items, members, classes, dtype)
    input_bytes = P.nbytes + q.nbytes + y.nbytes
    extra = extra_memory(lambda: Summaries.from_arrays(P, q, y))
    logs = np.empty_like(P)
    best = best_times(
        {
            "sum": lambda: np.sum(P),
            "t and D": lambda: Summaries.from_arrays(P, q, y, log_losses=False),
            "log": lambda: np.log(P, out=logs),
            "logs of a": lambda: Summaries.from_arrays(P, q, y, distances=False),
            "all": lambda: Summaries.from_arrays(P, q, y),
        },
        rounds,
    )
    sum_and_log = best["sum"] + best["log"]
    print(f"\n{items:,} items x {members} members x {classes} classes, {dtype}\n")
    print("| what | seconds | against | seconds | ratio |")
    print("|---|---|---|---|---|")
    for name, numpy_code, base in (
        ("t and D", "np.sum(P)", best["sum"]),
        ("logs of a", "np.log(P, out=...)", best["log"]),
        ("all", "np.sum(P) and np.log(P, out=...)", sum_and_log),
    ):
        ratio = best[name] / base
        print(f"| {name} | {best[name]:.3f} | {numpy_code} | {base:.3f} | {ratio:.2f} |")
    memory_ratio = (input_bytes + extra) / input_bytes
    print(f"\nPeak memory, input included: {memory_ratio:.3f} times the input.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "float64", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    dtypes = [arguments.dtype]
    if arguments.dtype == "both":
        dtypes = ["float32", "float64"]
    for dtype in dtypes:
        measure(arguments.items, arguments.members, arguments.classes, dtype, arguments.rounds)


if __name__ == "__main__":
    main()
