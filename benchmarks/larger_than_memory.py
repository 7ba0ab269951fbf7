"""Does a fit on more data than memory stay within it, and find the same weights?

    python benchmarks/larger_than_memory.py                   # 50 million items, some 10 GB of disk
    python benchmarks/larger_than_memory.py --items 1000000   # a fiftieth of it

Members' probabilities (float32) and three annotators' answers per item are written as shards, then
`edo fit --stream` runs on them in a process of its own, first alone, then with two workers. Memory
is what the process and its workers have resident together, looked at twenty times a second (pages
that they share count twice); time is that of the processors, whatever else they do meanwhile. The
same command on a million items, once in memory and once by shards, shows whether both find the
same. The files are removed at the end. The run of 50 million writes its part of docs/scale.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from results import rewrite
from shard_files import CLASSES, PER_SHARD, write_shards
from watch import GIB, Watch, watched

MEMBERS = 10
ITEMS = 50_000_000
PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
MARKS = ("<!-- written by benchmarks/larger_than_memory.py -->", "<!-- end -->")


Fit = dict[str, Any]
"""What `edo fit --json` prints."""


def fit(folder: Path, *options: str) -> tuple[Fit, Watch]:
    """The output of `edo fit`, with its time and memory."""
    command = [sys.executable, "-c", "from edokit.cli import main; main()", "fit"]
    command += ["--predictions", str(folder / "predictions"), "--json"]
    command += ["--annotations", str(folder / "annotations"), "--out", str(folder / "ensemble")]
    command += ["--scratch", str(folder / "scratch"), *options]
    return watched(command)


def largest_difference(fit: Fit, other_fit: Fit) -> float:
    """The largest difference between the weights of two fits."""
    return max(abs(fit["weights"][name] - other_fit["weights"][name]) for name in fit["weights"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edo-large-", dir=arguments.folder) as name:
        folder = Path(name)
        small = folder / "small"
        few_items = min(arguments.items, 10 * PER_SHARD)
        write_shards(small, few_items, MEMBERS)
        in_memory_result, in_memory = fit(small, "--no-stream")
        streamed_result, by_shard = fit(small, "--stream", "--jobs", "1")
        shutil.rmtree(small)
        large = folder / "large"
        size = write_shards(large, arguments.items, MEMBERS)
        lines = [
            MARKS[0],
            f"{arguments.items:,} items × {MEMBERS} members × {CLASSES} classes,"
            f" {size / GIB:.1f} GiB on disk, shards of {PER_SHARD:,} items\n",
            "| workers | peak resident memory | processor minutes | gap of the certificate |",
            "|---|---|---|---|",
        ]
        for jobs in (1, 2):
            large_result, watch = fit(large, "--stream", "--jobs", str(jobs))
            lines.append(
                f"| {jobs} | {watch.most / GIB:.2f} GiB | {watch.minutes:.1f} |"
                f" {large_result['certificate']['gap']:.0e} |"
            )
        in_memory_loss = in_memory_result["objective"]["total"]
        streamed_loss = streamed_result["objective"]["total"]
        lines.append(
            f"\n{few_items:,} items in memory ({in_memory.most / GIB:.2f} GiB)"
            f" and by shards ({by_shard.most / GIB:.2f} GiB): weights differ by at most"
            f" {largest_difference(in_memory_result, streamed_result):.0e}, the joint loss by"
            f" {abs(in_memory_loss - streamed_loss):.0e}."
        )
    text = "\n".join([*lines, MARKS[1]])
    print(text)
    if arguments.items == ITEMS:
        rewrite(PAGE, MARKS, text)


if __name__ == "__main__":
    main()
