"""How fast, and in how much memory, do annotations become labels?

    python benchmarks/annotations.py                        # 10 million annotations
    python benchmarks/annotations.py --annotations 1000000  # a quick look

Writes one long table as CSV and as Parquet, and reads each in a process of its own: once with
pyarrow alone, once with edokit up to soft labels, entropy, coverage and hard labels. Prints a
Markdown table of ratios; ``benchmarks/README.md`` says how to read it.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PER_ITEM = 5
PEOPLE = 100_000
CLASSES = 3
MEGABYTE = 1 << 20


def make(annotations: int, folder: Path) -> None:
    """Five annotators per item, all different; ids and classes as text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    items = np.repeat(np.arange(annotations // PER_ITEM), PER_ITEM)
    place = np.tile(np.arange(PER_ITEM), annotations // PER_ITEM)
    room = PEOPLE // PER_ITEM
    table = pa.table(
        {
            "item": pa.array(items).cast(pa.string()),
            "annotator": pa.array(place * room + rng.integers(0, room, len(items))).cast("string"),
            "label": pa.array(rng.integers(0, CLASSES, len(items))).cast(pa.string()),
        }
    )
    pyarrow.csv.write_csv(table, folder / "annotations.csv")
    pyarrow.parquet.write_table(table, folder / "annotations.parquet")


def read_plain(path: Path) -> dict[str, float]:
    """pyarrow alone."""
    import pyarrow.csv
    import pyarrow.parquet

    before = peak()
    start = time.perf_counter()
    if path.suffix == ".csv":
        table = pyarrow.csv.read_csv(path)
    else:
        table = pyarrow.parquet.read_table(path)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": peak() - before, "table": table.nbytes / MEGABYTE}


def read_edokit(path: Path) -> dict[str, float]:
    """The file, the annotations, and all that is derived from them."""
    import warnings

    from edokit._io.tables import read_table
    from edokit.annotations import long_table
    from edokit.annotations.core import Annotations

    assert long_table
    warnings.simplefilter("ignore")
    before = peak()
    start = time.perf_counter()
    table = read_table(path)
    read = time.perf_counter() - start
    people = Annotations.from_table(table)
    built = time.perf_counter() - start - read
    _ = people.soft_labels, people.entropy, people.coverage, people.hard_labels()
    seconds = time.perf_counter() - start
    return {"read": read, "built": built, "seconds": seconds, "memory": peak() - before}


def peak() -> float:
    """The most memory that this process has held, in megabytes."""
    peak_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":  # bytes there, kilobytes elsewhere
        return peak_memory / MEGABYTE
    return peak_memory / 1024


def in_a_process(*words: object) -> dict[str, float]:
    """The numbers that this file prints when it is run with these arguments."""
    command = [sys.executable, __file__, *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout or "{}")
    return result


def best(path: Path, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """The least of each number, of pyarrow and of edokit, which take turns."""
    plain_runs = []
    edokit_runs = []
    for _ in range(rounds):
        plain_runs.append(in_a_process("--task", "plain", "--path", path))
        edokit_runs.append(in_a_process("--task", "edokit", "--path", path))
    return least(plain_runs), least(edokit_runs)


def least(runs: list[dict[str, float]]) -> dict[str, float]:
    """The least of each number over several runs."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def compare(annotations: int, rounds: int) -> None:
    import pyarrow

    print(
        f"{annotations:,} annotations of {annotations // PER_ITEM:,} items by {PEOPLE:,} people in"
        f" {CLASSES} classes; best of {rounds}; pyarrow {pyarrow.__version__}, Python"
        f" {platform.python_version()}.\n"
    )
    print("| file | pyarrow reads | edokit reads | builds | to all labels | time | memory |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        in_a_process("--task", "make", "--path", folder, "--annotations", annotations)
        for path in sorted(Path(folder).iterdir()):
            plain_times, ours = best(path, rounds)
            print(
                f"| {path.suffix[1:]} | {plain_times['seconds']:.2f} s,"
                f" {plain_times['table']:.0f} MB | {ours['read']:.2f} s | {ours['built']:.2f} s"
                f" | {ours['seconds']:.2f} s, {ours['memory']:.0f} MB"
                f" | ×{ours['seconds'] / plain_times['seconds']:.1f}"
                f" | ×{ours['memory'] / plain_times['table']:.1f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annotations", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", choices=["make", "plain", "edokit"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task == "make":
        make(options.annotations, options.path)
    elif options.task == "plain":
        print(json.dumps(read_plain(options.path)))
    elif options.task == "edokit":
        print(json.dumps(read_edokit(options.path)))
    else:
        compare(options.annotations, options.rounds)


if __name__ == "__main__":
    main()
