"""The same objective on torch tensors: how close to the memory's speed is a GPU?

    python benchmarks/gpu.py --device cuda --json gpu.json     # twice, in two processes
    python benchmarks/gpu.py --write gpu.json                  # into RESULTS.md

Every row is measured against one sum over the same tensor, which reads the memory once, and
against the arithmetic: what the instructions alone would take on all cores of the GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from edokit.objective import Problem, Settings, Summaries, joint_loss

SIZES = ((100_000, 10, 2), (1_000_000, 10, 2), (10_000_000, 10, 2), (100_000_000, 10, 2))
CORNERS = (
    (1_000_000, 10, 20),
    (1_000_000, 50, 2),
    (10_000_000, 50, 2),
    (1_000_000, 50, 20),
    (100_000, 200, 2),
    (1_000_000, 200, 2),
)
BAR = 0.25
"""The share of the memory's speed that summaries should reach."""
PER_NUMBER = 23
"""Instructions a number of P besides the distances, counted in the loop of the compiled kernel for
ten members and two classes (548 for 20 numbers, 90 of them for 45 distances): 15 of them are the
logarithm. Of more classes, which share no labels, they are 25."""


def problem(items: int, members: int, classes: int, device: str) -> tuple[Any, Any, Any]:
    """Random float32 predictions [N, K, C], soft labels [N, C] and hard labels [N]."""
    torch.manual_seed(0)
    P = torch.rand(items, members, classes, device=device).add_(0.01)
    P /= P.sum(-1, keepdim=True)
    q = torch.rand(items, classes, device=device).add_(0.01)
    q /= q.sum(-1, keepdim=True)
    return P, q, torch.randint(0, classes, (items,), device=device)


def seconds(task: Callable[[], object], device: str) -> float:
    """The shortest of ten times, or of as many as fit into a tenth of a second; the device's
    queue is emptied before and after."""
    took: list[float] = []
    while len(took) < 10 or sum(took) < 0.1:
        _wait(device)
        start = time.perf_counter()
        task()
        _wait(device)
        took.append(time.perf_counter() - start)
    return min(took)


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
        **on_gpu(lambda: Summaries.from_arrays(P, q, y), device),
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


def on_gpu(task: Callable[[], object], device: str) -> dict[str, float]:
    """What the GPU itself computes and copies in a call: seconds, and how many times."""
    if not device.startswith("cuda"):
        return {}
    watch: Any = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    with watch:
        task()
        _wait(device)
    events = [one for one in watch.key_averages() if one.self_device_time_total]
    took = sum(one.self_device_time_total for one in events) / 1e6
    return {"gpu": took, "launches": sum(one.count for one in events)} if took else {}


def instructions_a_second(device: str) -> float | None:
    """What all cores of a GPU can start: 128 lanes a multiprocessor at its highest clock."""
    if not device.startswith("cuda"):
        return None
    asked = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    megahertz = float(subprocess.check_output(asked, text=True).split()[0])
    return 128 * torch.cuda.get_device_properties(device).multi_processor_count * megahertz * 1e6


def ceiling(row: dict[str, Any], speed: float) -> float:
    """The share of the memory's speed at which arithmetic alone would keep all cores busy.

    A distance takes two instructions, subtract and add; of two classes one is enough.
    """
    members, classes = row["members"], row["classes"]
    distances = members * (members - 1) * (1 if classes == 2 else classes)
    took = row["items"] * (distances + PER_NUMBER * members * classes) / speed
    return min(1.0, row["sum"] / took)


def verdict(share: float) -> str:
    if share >= BAR:
        return f"reached ({share / BAR:.1f} times)"
    return f"missed by {100 * (BAR - share):.1f} points"


def table(
    rows: list[dict[str, Any]], speed: float | None, again: dict[tuple[int, ...], Any]
) -> list[str]:
    lines = [
        "| items | members | classes | one sum, GB/s | summaries, ms | on the GPU, ms (launches)"
        f" | million items a second | share of the memory's speed | again | {100 * BAR:.0f} %"
        " | arithmetic's ceiling | × one log | loss and slope, ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        took, second = row["summaries"], again.get(size_of(row), {})
        top = f"{100 * ceiling(row, speed):.0f} %" if speed else "·"
        slope = f"{1e3 * row['loss and slope']:.2f}" if "loss and slope" in row else "·"
        seen = row if "gpu" in row else second
        gpu = f"{1e3 * seen['gpu']:.2f} ({seen['launches']})" if "gpu" in seen else "·"
        share = f"{100 * second['sum'] / second['summaries']:.1f} %" if second else "·"
        lines.append(
            f"| {row['items']:,} | {row['members']} | {row['classes']}"
            f" | {row['gigabytes'] / row['sum']:.0f} | {1e3 * took:.2f} | {gpu}"
            f" | {row['items'] / took / 1e6:,.0f} | {100 * row['sum'] / took:.1f} % | {share}"
            f" | {verdict(row['sum'] / took)} | {top} | {took / row['log']:.1f} | {slope} |"
        )
    return lines


def size_of(row: dict[str, Any]) -> tuple[int, ...]:
    return row["items"], row["members"], row["classes"]


def write(file: Path) -> None:
    """The section of RESULTS.md."""
    from results import write_section

    found = json.loads(file.read_text())
    again = {size_of(row): row for row in found["again"]}
    text = [
        "    python benchmarks/gpu.py --device cuda --json gpu.json",
        "",
        f"Machine: {found['device']}, torch {found['torch']}, Triton {found['triton']}, float32.",
        "",
        "*One sum* reads the predictions once: the speed of the memory. *Summaries*"
        " (`Summaries.from_arrays` with all its checks) are t, D and the logarithms behind a, from"
        " tensors on the device to sums in float64; ten members make 45 distances a class of an"
        " item, fifty 1,225. *On the GPU*: what its kernels and copies take of that, by the"
        " profiler; the rest is the host's, which checks, launches and waits, and hardly depends"
        " on the number of items. *Again*: the share in another process on the same machine."
        " *Arithmetic's ceiling*: the share that the instructions alone would"
        f" allow if no core ever waited, two for each distance and {PER_NUMBER} for each number"
        " (15 of them its logarithm); all numbers of more than twelve members go through twice,"
        " since not all of their pairs fit into the registers. *Loss and slope*: joint loss and its"
        " gradient by autograd, in float64; `·` where it would not fit, or was not measured.",
        "",
        *_verdicts(found["rows"]),
        *_of_the_host(found["rows"], again),
        "",
        *table(found["rows"], found["instructions"], again),
    ]
    write_section("The objective on a GPU (`gpu.py`)", "\n".join(text))


def _verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """A line for ten members, which the bar is for, and one for more."""
    lines = []
    for name, chosen in (
        ("ten members", [row for row in rows if row["members"] == 10]),
        ("more members", [row for row in rows if row["members"] > 10]),
    ):
        shares = [row["sum"] / row["summaries"] for row in chosen]
        done = [row for row in chosen if row["sum"] / row["summaries"] >= BAR]
        if shares:
            sizes = ", ".join(" × ".join(f"{n:,}" for n in size_of(row)) for row in done)
            lines.append(
                f"- {100 * BAR:.0f} % of the memory's speed, {name}: {len(done)} of {len(shares)}"
                f" rows reach it{f' ({sizes})' * bool(done)}; {100 * min(shares):.0f} to"
                f" {100 * max(shares):.0f} %."
            )
    return lines


def _of_the_host(rows: list[dict[str, Any]], again: dict[tuple[int, ...], Any]) -> list[str]:
    """Rows of ten members whose kernels are fast enough, but not the host around them."""
    parts = []
    for row in rows:
        seen = row if "gpu" in row else again.get(size_of(row), {})
        missed = row["members"] == 10 and row["sum"] / row["summaries"] < BAR
        if missed and "gpu" in seen and seen["sum"] / seen["gpu"] >= BAR:
            parts.append(
                f"{row['items']:,} × {row['classes']} classes: {1e3 * seen['gpu']:.2f} of"
                f" {1e3 * seen['summaries']:.2f} ms{'' if seen is row else ' (*again*)'} are the"
                " GPU's, which alone would be"
                f" {100 * seen['sum'] / seen['gpu']:.0f} %"
            )
    return [f"- Ten members that wait for the host: {'; '.join(parts)}."] * bool(parts)


def _again(device: str, most: int) -> list[dict[str, Any]]:
    """The same rows, measured by another process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "again.json"
        options = ["--once", "--device", device, "--most", str(most), "--json", str(file)]
        subprocess.run([sys.executable, __file__, *options], check=True, stdout=subprocess.DEVNULL)
        rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"]
    return rows


def _triton_version() -> str | None:
    try:
        import triton
    except ImportError:
        return None
    return str(triton.__version__)


def main() -> None:
    """Print a table; keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--most", type=int, default=100_000_000, help="Leave larger ones out.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--once", action="store_true", help="Not again in another process.")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.write:
        write(given.write)
        return
    name = torch.cuda.get_device_name() if given.device.startswith("cuda") else "CPU"
    sizes = [size for size in (*SIZES, *CORNERS) if size[0] <= given.most]
    speed = instructions_a_second(given.device)
    rows = [measure(*size, given.device) for size in sizes]
    again = [] if given.once else _again(given.device, given.most)
    seen = {size_of(row): row for row in again}
    print("\n".join((*_verdicts(rows), "", *table(rows, speed, seen))))
    if given.json:
        found = {
            "device": name,
            "torch": torch.__version__,
            "triton": _triton_version(),
            "instructions": speed,
            "rows": rows,
            "again": again,
        }
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
