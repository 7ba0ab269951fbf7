"""How fast is one pass over predictions as they grow, beside what the memory and the disk allow?

    python benchmarks/growth.py                       # up to 10⁷ items: some minutes, 3 GB of disk
    python benchmarks/growth.py --most 100000000      # up to 10⁸: 10 GB of memory, 25 GB of disk

Writes its tables and a figure into ``benchmarks/RESULTS.md``. Ten members, two classes, float32.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from results import machine, save_figure, write_section
from shard_files import write_shards
from summaries import best_times, problem
from watch import GIB, watched

from edokit.objective.kernels import block_sums

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
MEMBERS, CLASSES = 10, 2
LOG_BLOCK = 1_000_000  # items whose logarithms np.log writes into the same memory


class Task(NamedTuple):
    """What stands in a row of the first table, and against what."""

    name: str
    against: str
    aim: float


TASKS = (Task("t and D", "np.sum(P)", 3.0), Task("logs of a", "np.log(P)", 2.0))


def in_memory(items: int, rounds: int) -> dict[str, float]:
    """Seconds of each task on one and two threads, and of plain numpy over the same array."""
    P, q, y = problem(items, MEMBERS, CLASSES, "float32")
    logs = np.empty_like(P[:LOG_BLOCK])

    def log() -> None:
        for start in range(0, items, LOG_BLOCK):
            part = P[start : start + LOG_BLOCK]
            np.log(part, out=logs[: len(part)])

    tasks: dict[str, Callable[[], object]] = {"np.sum(P)": lambda: np.sum(P), "np.log(P)": log}
    for threads in (1, 2):
        tasks[f"t and D, {threads}"] = lambda t=threads: block_sums(P, None, y, t)
        tasks[f"logs of a, {threads}"] = lambda t=threads: block_sums(P, q, None, t)
        tasks[f"all, {threads}"] = lambda t=threads: block_sums(P, q, y, t)
    return best_times(tasks, rounds)


def memory_table(found: dict[int, dict[str, float]]) -> list[str]:
    lines = [
        "| items | t and D / `np.sum` (aim 3) | logs / `np.log` (aim 2) | two cores against one: t"
        " and D (aim 1.7) | … logs | million items a second, all sums, one core | … two |",
        "|---|---|---|---|---|---|---|",
    ]
    for items, took in found.items():
        cells = [f"{took[f'{t.name}, 1'] / took[t.against]:.2f}" for t in TASKS]
        cells += [f"{took[f'{t.name}, 1'] / took[f'{t.name}, 2']:.2f}" for t in TASKS]
        cells += [f"{items / took[f'all, {n}'] / 1e6:.0f}" for n in (1, 2)]
        lines.append(f"| {items:,} | {' | '.join(cells)} |")
    return lines


def verdicts(found: dict[int, dict[str, float]]) -> list[str]:
    """What the largest size says of the aims."""
    items, took = max(found.items())
    lines = []
    for task in TASKS:
        ratio = took[f"{task.name}, 1"] / took[task.against]
        word = "reached" if ratio <= task.aim else "missed"
        lines.append(
            f"- {task.name} within {task.aim:g} times one `{task.against}` on one core: {word}"
            f" ({ratio:.2f} with {items:,} items)."
        )
    ratios = [took[f"{task.name}, 1"] / took[f"{task.name}, 2"] for task in TASKS]
    word = "reached" if min(ratios) >= 1.7 else "missed"
    lines.append(
        f"- 1.7 times as fast on two cores: {word} (t and D {ratios[0]:.2f}, logs {ratios[1]:.2f})."
    )
    return lines


def one_fit(folder: Path, cores: int) -> dict[str, Any]:
    """Seconds of the first pass (checked, matched, cached, summed) and of each later one."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    from edokit.fitdata import FitData

    start = time.perf_counter()
    options: dict[str, Any] = {"jobs": cores, "scratch": folder / "scratch"}
    with FitData.open(folder / "predictions", folder / "annotations", **options) as data:
        first = time.perf_counter() - start
        v = np.full((1, len(data.members)), 1 / len(data.members))
        start = time.perf_counter()
        data.curvatures(v)
        return {"first": first, "later": time.perf_counter() - start}


def plain_read(folder: Path) -> float:
    """Seconds to read the same bytes, and do nothing with them."""
    buffer = bytearray(2**22)
    start = time.perf_counter()
    for file in sorted(folder.rglob("part-*")):
        with file.open("rb", buffering=0) as opened:
            while opened.readinto(buffer):
                pass
    return time.perf_counter() - start


def disk_rows(items: int, kind: str, where: Path) -> list[dict[str, Any]]:
    """One row for one core, one for two."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="edo-growth-", dir=where) as name:
        folder = Path(name) / "data"
        size = write_shards(folder, items, MEMBERS, annotators=0, kind=kind)
        plain = min(plain_read(folder) for _ in range(2))
        for cores in (1, 2):
            command = [sys.executable, __file__, "--one", str(folder), "--cores", str(cores)]
            told, watch = watched(command)
            rows.append(
                {
                    "items": items,
                    "kind": kind,
                    "cores": cores,
                    "bytes": size,
                    "plain": plain,
                    "resident": watch.most,
                    **told,
                }
            )
    return rows


def disk_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| items | files | cores | first pass / reading the bytes | million items a second, first"
        " pass | … a later pass | resident memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        rates = [f"{row['items'] / row[name] / 1e6:.2f}" for name in ("first", "later")]
        lines.append(
            f"| {row['items']:,} | {row['kind']}, {row['bytes'] / GIB:.2f} GiB | {row['cores']} |"
            f" {row['first'] / row['plain']:.1f} | {rates[0]} | {rates[1]} |"
            f" {row['resident'] / GIB:.2f} GiB |"
        )
    return lines


def draw(memory: dict[int, dict[str, float]], disk: list[dict[str, Any]]) -> Path:
    """Items a second against items, both ways."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    sizes = list(memory)
    for cores, style in ((1, "--"), (2, "-")):
        rates = [items / memory[items][f"all, {cores}"] for items in sizes]
        axes.plot(sizes, rates, style, marker="o", color="#1f6feb", label=f"in memory, {cores}")
        for kind, colour in (("npz", "#b35900"), ("parquet", "#2d7d46")):
            mine = [row for row in disk if row["kind"] == kind and row["cores"] == cores]
            rates = [row["items"] / row["first"] for row in mine]
            label = f"{kind} from disk, {cores}"
            axes.plot(
                [r["items"] for r in mine], rates, style, marker="s", color=colour, label=label
            )
    axes.set(xscale="log", yscale="log", xlabel="items", ylabel="items a second")
    axes.set_title("One pass over predictions of ten members, one and two cores", fontsize=10)
    axes.legend(fontsize=8, ncols=2)
    axes.grid(alpha=0.3)
    return save_figure(figure, "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, default=1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one_fit(asked.one, asked.cores)))
        return
    sizes = [items for items in SIZES if items <= asked.most]
    memory = {items: in_memory(items, asked.rounds) for items in sizes}
    print("\n".join(memory_table(memory)), flush=True)
    disk = []
    for items in sizes:
        # Parquet holds the same numbers; the largest size is read once, as npz.
        for kind in ("npz", "parquet") if items <= 10_000_000 else ("npz",):
            disk += disk_rows(items, kind, asked.folder)
            print(disk_table(disk)[-1], flush=True)
    figure = draw(memory, disk)
    text = [
        f"    python benchmarks/growth.py --most {asked.most}",
        "",
        machine("numpy", "numba", "pyarrow"),
        "",
        *verdicts(memory),
        "",
        "### Summaries in memory",
        f"{MEMBERS} members, {CLASSES} classes, float32; best of {asked.rounds} rounds in turns."
        " `np.sum` reads the same array once, `np.log` writes its logarithms into memory that is"
        " there; both use one core.",
        "",
        *memory_table(memory),
        "",
        "### Summaries of shards on disk",
        "Shards of 100,000 items with a file of soft labels each. *First pass*: everything is"
        " checked, matched by item id, cached as plain arrays and summed up. *A later pass*:"
        " value, gradient and Hessian of the cross-entropy. Reading the bytes: the same files read"
        " and thrown away (from the page cache, where they are). Memory is that of all processes"
        " together.",
        "",
        *disk_table(disk),
        "",
        f"![Items a second against items](figures/{figure.name})",
    ]
    write_section("One pass over predictions as they grow (`growth.py`)", "\n".join(text))


if __name__ == "__main__":
    main()
