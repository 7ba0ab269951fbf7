"""Does a fit on more data than memory stay within it, and find the same weights?

    python benchmarks/larger_than_memory.py                   # 50 million items, some 10 GB of disk
    python benchmarks/larger_than_memory.py --items 1000000   # a fiftieth of it

Members' probabilities (float32) and three annotators' answers per item are written as shards, then
`edo fit --stream` runs on them in a process of its own, first alone, then with two workers. Memory
is what the process and its workers have resident together, looked at twenty times a second (pages
that they share count twice); time is that of the processors, whatever else they do meanwhile. The
same command on a million items, once in memory and once by shards, shows whether both find the
same. The files are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib import Parallel, delayed

MEMBERS, CLASSES, ANNOTATORS = 10, 2, 3
PER_SHARD = 100_000
GIB = 2**30


def write_shard(folder: Path, number: int, items: int) -> None:
    """Members that see each item's leaning through more or less noise, and three people who do."""
    rng = np.random.default_rng([7, number])
    ids = np.arange(number * PER_SHARD, number * PER_SHARD + items)
    leaning = rng.normal(size=(items, 1)) * 1.5
    noise = rng.normal(size=(items, MEMBERS)) * np.linspace(0.4, 2.0, MEMBERS)
    yes = (1 / (1 + np.exp(-(leaning + noise)))).astype(np.float32)
    np.savez(
        folder / "predictions" / f"part-{number:05d}.npz",
        probabilities=np.stack([1 - yes, yes], axis=2),
        items=ids,
        members=np.array([f"member-{k}" for k in range(MEMBERS)]),
        classes=np.array(["0", "1"]),
    )
    answers = rng.random((items, ANNOTATORS)) < 1 / (1 + np.exp(-leaning))
    people = rng.integers(500, size=(items, 1)) + np.arange(ANNOTATORS)
    table = pa.table(
        {
            "item": np.repeat(ids, ANNOTATORS),
            "annotator": people.ravel(),
            "label": answers.ravel().astype(np.int8),
        }
    )
    pq.write_table(table, folder / "annotations" / f"part-{number:05d}.parquet")


def generate(folder: Path, items: int) -> None:
    for name in ("predictions", "annotations"):
        (folder / name).mkdir(parents=True)
    sizes = [min(PER_SHARD, items - start) for start in range(0, items, PER_SHARD)]
    Parallel(n_jobs=2)(delayed(write_shard)(folder, n, size) for n, size in enumerate(sizes))


class Watch:
    """What a process and all that it started take together."""

    def __init__(self) -> None:
        self.most = 0
        """Bytes resident at the worst moment."""
        self._ticks: dict[int, int] = {}

    @property
    def minutes(self) -> float:
        """Of all processors."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK") / 60

    def look(self, pid: int) -> None:
        self.most = max(self.most, self._resident(pid))

    def _resident(self, pid: int) -> int:
        try:
            process = Path(f"/proc/{pid}")
            pages = int((process / "statm").read_text().split()[1])
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            self._ticks[pid] = int(fields[11]) + int(fields[12])
            tasks = list((process / "task").iterdir())
            children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(self._resident, children))


def fit(folder: Path, *options: str) -> tuple[dict[str, Any], Watch]:
    """What `edo fit` prints, and what it takes."""
    command = [sys.executable, "-c", "from edokit.cli import main; main()", "fit"]
    command += ["--predictions", str(folder / "predictions"), "--json"]
    command += ["--annotations", str(folder / "annotations"), "--out", str(folder / "ensemble")]
    command += ["--scratch", str(folder / "scratch"), *options]
    watch = Watch()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            watch.look(running.pid)
            time.sleep(0.05)
        assert running.stdout is not None
        printed = running.stdout.read()
    if running.returncode:
        raise SystemExit(running.returncode)
    return json.loads(printed), watch


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of two fits' weights."""
    return max(abs(one["weights"][name] - other["weights"][name]) for name in one["weights"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edo-large-", dir=wanted.folder) as name:
        folder = Path(name)
        small = folder / "small"
        few = min(wanted.items, 10 * PER_SHARD)
        generate(small, few)
        here, in_memory = fit(small, "--no-stream")
        there, by_shard = fit(small, "--stream", "--jobs", "1")
        shutil.rmtree(small)
        large = folder / "large"
        generate(large, wanted.items)
        size = sum(file.stat().st_size for file in large.rglob("*.*"))
        print(
            f"{wanted.items:,} items × {MEMBERS} members × {CLASSES} classes,"
            f" {size / GIB:.1f} GiB on disk, shards of {PER_SHARD:,} items\n",
            flush=True,
        )
        print("| workers | peak resident memory | processor minutes | gap of the certificate |")
        print("|---|---|---|---|")
        for jobs in (1, 2):
            found, watch = fit(large, "--stream", "--jobs", str(jobs))
            print(
                f"| {jobs} | {watch.most / GIB:.2f} GiB | {watch.minutes:.1f} |"
                f" {found['certificate']['gap']:.0e} |",
                flush=True,
            )
        print(
            f"\n{few:,} items in memory ({in_memory.most / GIB:.2f} GiB)"
            f" and by shards ({by_shard.most / GIB:.2f} GiB): weights differ by at most"
            f" {apart(here, there):.0e}, the joint loss by"
            f" {abs(here['objective']['total'] - there['objective']['total']):.0e}."
        )


if __name__ == "__main__":
    main()
