"""The same objective on torch tensors: how close to the memory's speed is a GPU?

    python benchmarks/gpu.py --device cuda --json gpu.json

Every row is measured against one sum over the same tensor, which reads the memory once.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from edokit.objective import Problem, Settings, Summaries, joint_loss

SIZES = ((100_000, 10, 2), (1_000_000, 10, 2), (10_000_000, 10, 2), (100_000_000, 10, 2))
CORNERS = ((1_000_000, 50, 2), (1_000_000, 10, 20), (100_000, 200, 2))


def problem(items: int, members: int, classes: int, device: str) -> tuple[Any, Any, Any]:
    """Random float32 predictions [N, K, C], soft labels [N, C] and hard labels [N]."""
    torch.manual_seed(0)
    P = torch.rand(items, members, classes, device=device).add_(0.01)
    P /= P.sum(-1, keepdim=True)
    q = torch.rand(items, classes, device=device).add_(0.01)
    q /= q.sum(-1, keepdim=True)
    return P, q, torch.randint(0, classes, (items,), device=device)


def seconds(task: Callable[[], object], device: str, rounds: int = 5) -> float:
    """The shortest of several times, the device's queue emptied before and after."""
    best = float("inf")
    for _ in range(rounds):
        _wait(device)
        start = time.perf_counter()
        task()
        _wait(device)
        best = min(best, time.perf_counter() - start)
    return best


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def measure(items: int, members: int, classes: int, device: str) -> dict[str, Any]:
    """Times of one size."""
    P, q, y = problem(items, members, classes, device)
    size = P.numel() * P.element_size()
    once = seconds(lambda: P.sum(), device)
    sums = Summaries.from_arrays(P, q, y)
    found = {
        "items": items,
        "members": members,
        "classes": classes,
        "gigabytes": size / 1e9,
        "sum": once,
        "log": seconds(lambda: torch.log(P), device),
        "summaries": seconds(lambda: Summaries.from_arrays(P, q, y), device),
    }
    # The joint loss works in float64 and keeps what autograd needs.
    if items * members * classes <= 200_000_000:
        prepared = Problem.from_arrays(P, q, y, summaries=sums)
        v = torch.full((members,), 1 / members, dtype=torch.float64, device=device)
        v.requires_grad_(True)

        def value_and_slope() -> None:
            (slope,) = torch.autograd.grad(joint_loss(v, prepared, Settings()).total, v)
            assert bool(torch.isfinite(slope).all())

        found["loss and slope"] = seconds(value_and_slope, device)
    return found


def main() -> None:
    """Print a table; keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--most", type=int, default=100_000_000, help="Leave larger ones out.")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if given.device.startswith("cuda") else "CPU"
    rows = []
    print(f"{name}, torch {torch.__version__}, float32\n")
    print("| items | members | classes | one sum, GB/s | summaries, ms | × one sum | × one log |")
    print("|---|---|---|---|---|---|---|")
    for size in (*SIZES, *CORNERS):
        if size[0] > given.most:
            continue
        row = measure(*size, given.device)
        rows.append(row)
        print(
            f"| {row['items']:,} | {row['members']} | {row['classes']}"
            f" | {row['gigabytes'] / row['sum']:.0f} | {1e3 * row['summaries']:.2f}"
            f" | {row['summaries'] / row['sum']:.1f} | {row['summaries'] / row['log']:.1f} |"
        )
    if given.json:
        given.json.write_text(json.dumps({"device": name, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
