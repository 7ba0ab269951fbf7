"""What do far more items cost, and does the estimate hold where it can be tried?

    python benchmarks/cost.py

Measures one worker on small data, estimates what two workers of a Dask cluster need for more,
runs that, and writes the tables of ``docs/cost.md``.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results import machine
from shard_files import CLASSES, write_shards

from edokit import EDOEnsemble
from edokit.fitdata import FitData

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cost.md"
MEMBERS = 50
SMALL, MORE = 400_000, 2_000_000
WANTED = 1_000_000_000
MOST = 1.15  # how far two workers may be above the estimate
BYTES = 4  # of a float32 probability
MARKS = ("<!-- written by benchmarks/cost.py -->", "<!-- end -->")


@dataclass(frozen=True)
class Run:
    """A fit over shards: how long the first pass took, the others together, and how many."""

    items: int
    workers: int
    first: float
    later: float
    passes: int

    @property
    def seconds(self) -> float:
        return self.first + self.later


@dataclass(frozen=True)
class Rates:
    """Seconds of one worker per item: to read, check, match, cache and sum up; and per pass."""

    first: float
    later: float

    @classmethod
    def of(cls, run: Run) -> Rates:
        return cls(run.first / run.items, run.later / run.items / run.passes)

    def seconds(self, items: int, passes: int, workers: int) -> float:
        """Shards are shared out evenly, and what is done with their sums costs nothing."""
        return items * (self.first + passes * self.later) / workers


def fitted(folder: Path, items: int, workers: int) -> Run:
    """A fit on one worker, or more, of a Dask cluster on this machine."""
    from distributed import LocalCluster

    with ExitStack() as stack:
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
        )
        options: dict[str, Any] = {
            "engine": cluster.scheduler_address.replace("tcp://", "dask://"),
            "scratch": folder / "scratch",
        }
        places = folder / "predictions", folder / "annotations"
        # The workers import what they need before the clock starts.
        with FitData.open(*(place.parent / "warm" / place.name for place in places), **options):
            pass
        start = time.perf_counter()
        data = stack.enter_context(FitData.open(*places, **options))
        first = time.perf_counter() - start
        before = data.passes
        EDOEnsemble().fit(data)
        return Run(items, workers, first, time.perf_counter() - start - first, data.passes - before)


def span(seconds: float) -> str:
    """In words that a person would use."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def page(one: Run, two: Run, rates: Rates) -> str:
    estimated = rates.seconds(two.items, two.passes, 2)
    ratio = two.seconds / estimated
    rate = MEMBERS * CLASSES * BYTES
    lines = [
        MARKS[0],
        machine("numpy", "numba", "dask"),
        "",
        f"Measured, one Dask worker with one core, {one.items:,} items × {MEMBERS} members"
        f" × {CLASSES} classes:",
        "",
        "| | seconds for a million items | MB a second |",
        "|---|---|---|",
        f"| first pass | {1e6 * rates.first:.2f} | {rate / rates.first / 1e6:.0f} |",
        f"| each later pass | {1e6 * rates.later:.2f} | {rate / rates.later / 1e6:.0f} |",
        "",
        f"Tried, two workers, {two.items:,} items ({two.passes} passes after the first): estimated"
        f" {estimated:.1f} s, took {two.seconds:.1f} s. At most {MOST} times the estimate:"
        f" {'reached' if ratio <= MOST else 'missed'} ({ratio:.2f}).",
        "",
        f"Estimated from these rates, {WANTED:,} items × {MEMBERS} members, as many passes,"
        f" {WANTED * rate / 1e9:.0f} GB of probabilities and as much for the cache:",
        "",
        "| | first pass | later passes | together |",
        "|---|---|---|---|",
    ]
    places = (
        ("one machine, one core", 1),
        ("one machine, two cores", 2),
        ("Dask, 16 workers of one core", 16),
    )
    for name, workers in places:
        first = rates.seconds(WANTED, 0, workers)
        whole = rates.seconds(WANTED, two.passes, workers)
        lines.append(f"| {name} | {span(first)} | {span(whole - first)} | {span(whole)} |")
    return "\n".join([*lines, MARKS[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=SMALL, help="items of one worker")
    parser.add_argument("--more", type=int, default=MORE, help="items of two")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    asked = parser.parse_args()
    runs = []
    for items, workers in ((asked.small, 1), (asked.more, 2)):
        with tempfile.TemporaryDirectory(prefix="edo-cost-", dir=asked.folder) as name:
            folder = Path(name) / "data"
            write_shards(folder, items, MEMBERS, annotators=0)
            write_shards(folder / "warm", 1_000 * workers, MEMBERS, annotators=0)
            runs.append(fitted(folder, items, workers))
            print(runs[-1], flush=True)
    text = page(*runs, Rates.of(runs[0]))
    print(text)
    before = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1])
    PAGE.write_text(re.sub(pattern, lambda _: text, before, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
