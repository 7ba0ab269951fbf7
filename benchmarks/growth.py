"""How fast is one pass over predictions as they grow, beside what the memory and the disk allow?

    python benchmarks/growth.py                       # up to 10⁷ items: some minutes, 3 GB of disk
    python benchmarks/growth.py --most 100000000      # up to 10⁸: 10 GB of memory, 25 GB of disk

Writes its tables and a figure into ``benchmarks/RESULTS.md``. Ten members, two classes, float32.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
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

from edokit.objective import kernels
from edokit.objective.kernels import block_sums

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
MEMBERS, CLASSES = 10, 2
PARTS_OF = 1_000_000  # items whose first pass is taken apart
LOG_BLOCK = 1_000_000  # items whose logarithms np.log writes into the same memory


class Task(NamedTuple):
    """What a row of the first table has, and against what."""

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


def one_fit(folder: Path, cores: int, rounds: int) -> dict[str, Any]:
    """Seconds of the first pass (checked, matched, cached, summed) and of each later one, and of
    reading the same bytes; before that, of the start: libraries are imported, workers begin."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    from edokit.fitdata import FitData

    def opened(where: Path) -> Any:
        places = where / "predictions", where / "annotations"
        return FitData.open(*places, jobs=cores, scratch=folder / "scratch")

    start = time.perf_counter()
    with opened(folder.with_name("warm")):
        found = {"start": time.perf_counter() - start}
    took: dict[str, list[float]] = {"plain": [], "first": [], "later": []}
    for _ in range(rounds):
        took["plain"].append(plain_read(folder))
        start = time.perf_counter()
        with opened(folder) as data:
            took["first"].append(time.perf_counter() - start)
            v = np.full((1, len(data.members)), 1 / len(data.members))
            start = time.perf_counter()
            data.curvatures(v)
            took["later"].append(time.perf_counter() - start)
    return found | {name: min(each) for name, each in took.items()}


def first_pass(folder: Path, cores: set[int]) -> float:
    """Seconds of a first pass on these cores."""
    os.sched_setaffinity(0, cores)
    from edokit.fitdata import FitData

    start = time.perf_counter()
    places = folder / "predictions", folder / "annotations"
    with FitData.open(*places, jobs=1, scratch=folder / "scratch"):
        return time.perf_counter() - start


def apart(folder: Path, rounds: int) -> float:
    """How many times as fast two processes are as one, each with half of the shards and a core to
    itself, and nothing in common but the memory: what two workers can reach."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    halves = [folder.with_name(f"half-{core}") for core in cores]
    for name in ("predictions", "annotations"):
        files = sorted((folder / name).iterdir())
        middle = len(files) // 2
        for half, some in zip(halves, (files[:middle], files[middle:]), strict=True):
            (half / name).mkdir(parents=True)
            for file in some:
                (half / name / file.name).symlink_to(file)
    tasks = [(half, {core}) for half, core in zip(halves, cores, strict=True)]
    alone, both = [], []
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for _ in range(rounds + 1):
            alone.append([pool.apply(first_pass, task) for task in tasks])
            both.append(max(pool.starmap(first_pass, tasks, chunksize=1)))
    # In the first round libraries were imported.
    return sum(map(min, zip(*alone[1:], strict=True))) / min(both[1:])


WHOLE = ("reading the bytes", "everything else", "the first pass")
LIMITS = (
    "Parquet decoded (Arrow)",
    "checksums (zlib)",
    "logarithms, hits and distances of all pairs (compiled)",
    "cache written",
)
"""Parts that only another library, or less data, would shorten."""


class Stopwatch:
    """Adds up what functions take while they run, less what those that they call take."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}
        self._inner = [0.0]

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **options: Any) -> Any:
            start = time.perf_counter()
            self._inner.append(0.0)
            try:
                return function(*given, **options)
            finally:
                took = time.perf_counter() - start
                self.took[part] = self.took.get(part, 0.0) + took - self._inner.pop()
                self._inner[-1] += took

        return timed

    def watch(self, part: str, owner: Any, name: str) -> None:
        """Put a watch on a function, wherever it was imported, or on a method of a class."""
        function = getattr(owner, name)
        timed = self.around(part, function)
        for module in [owner, *sys.modules.values()]:
            if getattr(module, name, None) is function:
                setattr(module, name, timed)


def parts(folder: Path, rounds: int) -> dict[str, float]:
    """Seconds of each part of a first pass, on one core."""
    import zlib

    import pyarrow.parquet as pq

    import edokit._names
    from edokit.annotations import long_table
    from edokit.fitdata import cache
    from edokit.predictions import core, files

    one = {min(os.sched_getaffinity(0))}
    whole = Stopwatch()
    for part, owner, names in (
        (LIMITS[0], pq.ParquetFile, ("read",)),
        (LIMITS[1], zlib, ("crc32",)),
        (LIMITS[2], kernels, ("block_sums",)),
        ("probabilities checked", core, ("checked",)),
        ("labels checked, matched, made hard", long_table, ("from_long_table",)),
        ("labels checked, matched, made hard", cache.CachedShard, ("write_labels",)),
        ("rows in order, ids as numbers", edokit._names, ("encode", "_rising_numbers")),
        ("rows in order, ids as numbers", files, ("_in_order", "from_long_table")),
        (LIMITS[3], cache.CachedShard, ("_save",)),
    ):
        for name in names:
            whole.watch(part, owner, name)
    found: list[dict[str, float]] = []
    for _ in range(rounds + 1):
        whole.took.clear()
        took = first_pass(folder, one)
        rest = took - sum(whole.took.values())
        found.append({**whole.took, WHOLE[1]: rest, WHOLE[2]: took})
    plain = min(plain_read(folder) for _ in range(rounds))
    return min(found[1:], key=lambda each: each[WHOLE[2]]) | {WHOLE[0]: plain}


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
    rounds = 3 if items <= 10_000_000 else 1
    with tempfile.TemporaryDirectory(prefix="edo-growth-", dir=where) as name:
        folder = Path(name) / "data"
        size = write_shards(folder, items, MEMBERS, annotators=0, kind=kind)
        write_shards(folder.with_name("warm"), 4, MEMBERS, annotators=0, kind=kind, per_shard=1)
        same = {"items": items, "kind": kind, "bytes": size}
        for turn in range(2):  # of both in turns, since the machine is not always as fast
            for cores in (1, 2):
                options = ["--cores", str(cores), "--rounds", str(rounds)]
                command = [sys.executable, __file__, "--one", str(folder), *options]
                reported, watch = watched(command)
                if not turn:
                    rows.append({**same, "cores": cores, "resident": 0, **reported})
                row = rows[cores - 1]
                row |= {name: min(each, row[name]) for name, each in reported.items()}
                row["resident"] = max(watch.most, row["resident"])
        if len(list((folder / "predictions").iterdir())) > 1:
            rows[-1]["apart"] = apart(folder, rounds)
        if items == PARTS_OF:
            command = [sys.executable, __file__, "--parts", str(folder), "--rounds", "5"]
            rows[0]["parts"] = watched(command)[0]
    return rows


def disk_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| items | files | cores | first pass / reading the bytes (aim 25) | two workers against"
        " one (aim 1.8) | … two processes apart | start-up before it | million items a second,"
        " first pass | … a later pass | resident memory |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for before, row in zip([None, *rows], rows, strict=False):
        rates = [f"{row['items'] / row[name] / 1e6:.2f}" for name in ("first", "later")]
        faster = f"{before['first'] / row['first']:.2f}" if before and row["cores"] == 2 else ""
        limit = f"{row['apart']:.2f}" if "apart" in row else ""
        lines.append(
            f"| {row['items']:,} | {row['kind']}, {row['bytes'] / GIB:.2f} GiB | {row['cores']} |"
            f" {row['first'] / row['plain']:.1f} | {faster} | {limit} | {row['start']:.2f} s |"
            f" {rates[0]} | {rates[1]} | {row['resident'] / GIB:.2f} GiB |"
        )
    return lines


def disk_verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """What the largest size of each kind says of the aims."""
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        one, two = [row for row in rows if row["kind"] == kind][-2:]
        ratio, faster = one["first"] / one["plain"], one["first"] / two["first"]
        lines.append(
            f"- The first pass over {kind} at most 25 times reading the bytes, on one core:"
            f" {'reached' if ratio <= 25 else 'missed'} ({ratio:.1f} with {one['items']:,}"
            f" items{_library_share(kind, rows)})."
        )
        lines.append(
            f"- Two workers at least 1.8 times one, {kind}:"
            f" {'reached' if faster >= 1.8 else 'missed'} ({faster:.2f}; two processes with nothing"
            f" in common but the memory: {two.get('apart', 0):.2f})."
        )
    return lines


def _library_share(kind: str, rows: list[dict[str, Any]]) -> str:
    """What of a first pass `LIMITS` take, in words."""
    for row in rows:
        if row["kind"] == kind and "parts" in row:
            times = sum(row["parts"].get(part, 0) for part in LIMITS) / row["parts"][WHOLE[0]]
            return f"; libraries, arithmetic and the disk alone take {times:.1f}, see below"
    return ""


def parts_table(rows: list[dict[str, Any]]) -> list[str]:
    """What each part of the first pass takes, in times of reading the bytes."""
    found = {row["kind"]: row["parts"] for row in rows if "parts" in row}
    if not found:
        return []
    names = dict.fromkeys(name for each in found.values() for name in each)
    names = [name for name in names if name not in WHOLE]
    lines = [f"| {PARTS_OF:,} items | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for name in (*LIMITS, *(name for name in names if name not in LIMITS), *WHOLE[1:]):
        ratios = [each.get(name, 0) / each[WHOLE[0]] for each in found.values()]
        lines.append(f"| {name} | {' | '.join(f'{r:.1f}' if r else '' for r in ratios)} |")
        if name == LIMITS[-1]:
            sums = [sum(each.get(one, 0) for one in LIMITS) for each in found.values()]
            shown = [
                f"{n / each[WHOLE[0]]:.1f}" for n, each in zip(sums, found.values(), strict=True)
            ]
            lines.append(f"| *together* | {' | '.join(shown)} |")
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
    parser.add_argument("--parts", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, default=1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one_fit(asked.one, asked.cores, asked.rounds)))
        return
    if asked.parts:
        print(json.dumps(parts(asked.parts, asked.rounds)))
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
        *disk_verdicts(disk),
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
        " checked, matched by item id, cached as plain arrays (predictions in .npz files are such"
        " already) and summed up. *A later pass*:"
        " value, gradient and Hessian of the cross-entropy. Reading the bytes: the same files read"
        " and thrown away (from the page cache, where they are), by the same process. *Start-up*:"
        " a pass over four items, in which libraries are imported and workers begin, before the"
        " clock starts. *Two processes apart*: each has half of the shards and a core to itself,"
        " against one after the other; where that is below two, the cores wait for the memory."
        " Memory is that of all processes together.",
        "",
        *disk_table(disk),
        "",
        "What the first pass consists of: seconds inside of these functions while it runs on one"
        " core, in times of reading the bytes. Reading is a copy from the page cache at the speed"
        " of the memory; every logarithm, every distance, every checksum and every written byte"
        " takes more than that. Of Parquet, Arrow enters each id into a hash table. *Everything"
        " else* is reading .npz files, and what Python takes for each file.",
        "",
        *parts_table(disk),
        "",
        f"![Items a second against items](figures/{figure.name})",
    ]
    write_section("One pass over predictions as they grow (`growth.py`)", "\n".join(text))


if __name__ == "__main__":
    main()
