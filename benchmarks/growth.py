"""How fast is one pass over predictions as they grow, beside reading the bytes?

    python benchmarks/growth.py                       # up to 10⁷ items: some minutes, 3 GB of disk
    python benchmarks/growth.py --most 100000000      # up to 10⁸: 25 GB of disk

Writes its table into ``benchmarks/RESULTS.md``. Ten members, two classes, float32.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from results import machine, write_section
from shard_files import write_shards
from watch import GIB, watched

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
MEMBERS = 10
CLASSES = 2
AIM = 60.0
"""The most times that the first pass may take as long as reading the bytes."""


def measure_passes(folder: Path, rounds: int) -> dict[str, float]:
    """Processor seconds of the first pass (checked, matched, cached, summed), of a later one, and
    of reading the same bytes. A pass over four items goes before: libraries are imported."""
    from edokit.fitdata.data import FitData

    def open_data(data_folder: Path) -> FitData:
        return FitData.open(
            data_folder / "predictions",
            data_folder / "annotations",
            jobs=1,
            scratch=folder / "scratch",
        )

    open_data(folder.with_name("warm")).close()
    seconds: dict[str, list[float]] = {"plain": [], "first": [], "later": []}
    for _ in range(rounds):
        seconds["plain"].append(plain_read(folder))
        start = time.process_time()
        with open_data(folder) as data:
            seconds["first"].append(time.process_time() - start)
            v = np.full((1, len(data.members)), 1 / len(data.members))
            start = time.process_time()
            data.expansions(v)
            seconds["later"].append(time.process_time() - start)
    return {name: min(times) for name, times in seconds.items()}


def plain_read(folder: Path) -> float:
    """Seconds to read the same bytes, and do nothing with them."""
    buffer = bytearray(2**22)
    start = time.process_time()
    for file in sorted(folder.rglob("part-*")):
        with file.open("rb", buffering=0) as opened:
            while opened.readinto(buffer):
                pass
    return time.process_time() - start


def table_row(items: int, kind: str, parent: Path) -> dict[str, Any]:
    """The seconds and the memory of one size, measured in a process of its own."""
    rounds = 3 if items <= 10_000_000 else 1
    with tempfile.TemporaryDirectory(prefix="edo-growth-", dir=parent) as name:
        folder = Path(name) / "data"
        size = write_shards(folder, items, MEMBERS, annotators=0, kind=kind)
        write_shards(folder.with_name("warm"), 4, MEMBERS, annotators=0, kind=kind, per_shard=1)
        command = [sys.executable, __file__, "--folder-of-shards", str(folder)]
        seconds, watch = watched([*command, "--rounds", str(rounds)])
    return {"items": items, "kind": kind, "bytes": size, "resident": watch.most, **seconds}


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"| items | files | first pass / reading the bytes (aim {AIM:g}) | million items a"
        " second, first pass | … a later pass | resident memory |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        rates = [f"{row['items'] / row[name] / 1e6:.2f}" for name in ("first", "later")]
        lines.append(
            f"| {row['items']:,} | {row['kind']}, {row['bytes'] / GIB:.2f} GiB |"
            f" {row['first'] / row['plain']:.1f} | {rates[0]} | {rates[1]} |"
            f" {row['resident'] / GIB:.2f} GiB |"
        )
    return lines


def verdict(rows: list[dict[str, Any]]) -> str:
    ratio = max(row["first"] / row["plain"] for row in rows if row["items"] >= 1_000_000)
    word = "reached" if ratio <= AIM else "missed"
    return (
        f"- The first pass takes at most {AIM:g} times reading the bytes, from a million items on:"
        f" {word} ({ratio:.1f})."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--folder-of-shards", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder_of_shards:
        seconds = measure_passes(arguments.folder_of_shards, arguments.rounds)
        print(json.dumps(seconds))
        return
    rows = []
    for items in SIZES:
        if items > arguments.most:
            continue
        kinds = ["npz"]
        if items <= 10_000_000:
            # Parquet files have the same numbers; the largest size is read once.
            kinds.append("parquet")
        for kind in kinds:
            rows.append(table_row(items, kind, arguments.folder))
            print(table(rows)[-1], flush=True)
    text = [
        f"    python benchmarks/growth.py --most {arguments.most}",
        "",
        machine("numpy", "pyarrow", "pandas"),
        "",
        verdict(rows),
        "",
        "Shards of 100,000 items with a file of soft labels each. *First pass*: everything is"
        " checked, matched by item id, cached as plain arrays (predictions in .npz files are such"
        " already) and summed up. *A later pass*: value, gradient and Hessian of the cross-entropy."
        " Reading the bytes: the same files read and thrown away (from the page cache, where they"
        " are), by the same process. Time is that of one processor.",
        "",
        *table(rows),
    ]
    write_section("One pass over predictions as they grow (`growth.py`)", "\n".join(text))


if __name__ == "__main__":
    main()
