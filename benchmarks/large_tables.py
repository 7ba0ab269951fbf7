"""What does `edo run --quality fast` take on a large table: processor seconds and memory?

    python benchmarks/large_tables.py --annotations 2000 60000

Simulated annotations (about 8.6 of each item by 400 people, two classes) are written as a CSV, and
`edo run` is started on it as a command. Writes its table into ``benchmarks/RESULTS.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from results import machine, write_section
from watch import GIB, watched

PER_ITEM = {8: 3.0, 9: 4.0}
"""By number of annotations of an item: the share of such items, in sevenths."""
MEAN_PER_ITEM = 60 / 7
AIM_SECONDS = 120
AIM_ANNOTATIONS = 60_000
COMMAND = [sys.executable, "-c", "from edokit.cli import main; main()", "run"]


@dataclass(frozen=True)
class Measurement:
    """The time and memory of one run."""

    annotations: int
    items: int
    cpu_seconds: float
    wall_seconds: float
    memory: int


def measure(annotations: int, jobs: int, parent: Path) -> Measurement:
    """The time and memory of `edo run` on a table of about this many annotations."""
    from edokit.annotations.core import Annotations
    from edokit.datasets.read import write_annotations
    from edokit.datasets.simulate.regimes import REGIMES
    from edokit.datasets.simulate.simulation import simulate

    items = round(annotations / MEAN_PER_ITEM)
    regime = replace(REGIMES["crowd"], annotators=400, per_item=PER_ITEM)
    simulated: Annotations = simulate(regime, items=(items, 1, 1)).annotations.split("train")
    with tempfile.TemporaryDirectory(prefix="edo-large-", dir=parent) as name:
        folder = Path(name)
        write_annotations(simulated, folder / "annotations.csv")
        table = [str(folder / "annotations.csv"), "--out", str(folder / "run")]
        summary, watch = watched(
            [*COMMAND, *table, "--quality", "fast", "--jobs", str(jobs), "--json"]
        )
        if not (folder / "run" / "report.html").exists():
            raise SystemExit("the run made no page")
    return Measurement(
        annotations=len(simulated),
        items=len(simulated.rows),
        cpu_seconds=60 * watch.minutes,
        wall_seconds=float(summary["seconds"]),
        memory=watch.most,
    )


def lines(measurements: list[Measurement]) -> list[str]:
    """The measurements as a table in Markdown."""
    table = [
        "| annotations | items | processor seconds | milliseconds an annotation | seconds |"
        " resident memory |",
        "|---|---|---|---|---|---|",
    ]
    for row in measurements:
        table.append(
            f"| {row.annotations:,} | {row.items:,} | {row.cpu_seconds:.0f} |"
            f" {1000 * row.cpu_seconds / row.annotations:.1f} | {row.wall_seconds:.0f} |"
            f" {row.memory / GIB:.2f} GiB |"
        )
    return table


def verdicts(measurements: list[Measurement]) -> list[str]:
    """Whether the aim was reached, and how fast the time grows between the two largest tables."""
    sentences = []
    for row in measurements:
        if abs(row.annotations - AIM_ANNOTATIONS) <= AIM_ANNOTATIONS // 20:
            word = "reached" if row.cpu_seconds <= AIM_SECONDS else "missed"
            sentences.append(
                f"- {AIM_ANNOTATIONS:,} annotations in {AIM_SECONDS} processor seconds: {word}"
                f" ({row.cpu_seconds:.0f})."
            )
    if len(measurements) > 1:
        small, large = measurements[-2:]
        growth = math.log(large.cpu_seconds / small.cpu_seconds)
        exponent = growth / math.log(large.annotations / small.annotations)
        sentences.append(
            f"- From {small.annotations:,} to {large.annotations:,} annotations, processor time"
            f" grows with the power {exponent:.2f}."
        )
    return sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annotations", type=int, nargs="+", default=[AIM_ANNOTATIONS])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path("large-benchmark"))
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    arguments = parser.parse_args()
    sizes = sorted(arguments.annotations)
    measurements = []
    for size in sizes:
        file = arguments.cache / f"{size}-{arguments.jobs}.json"
        if not file.exists():
            arguments.cache.mkdir(parents=True, exist_ok=True)
            measurement = measure(size, arguments.jobs, arguments.folder)
            file.write_text(json.dumps(asdict(measurement)), encoding="utf-8")
        measurements.append(Measurement(**json.loads(file.read_text(encoding="utf-8"))))
        print(lines(measurements)[-1], flush=True)
    sizes_text = " ".join(map(str, sizes))
    text = [
        f"    python benchmarks/large_tables.py --annotations {sizes_text} --jobs {arguments.jobs}",
        "",
        machine("numpy", "scikit-learn", "pandas"),
        "",
        *verdicts(measurements),
        "",
        "`edo run --quality fast` as a command, from the CSV to page and bundle, on simulated"
        " annotations of short posts by 400 people. Processor seconds are those of all its"
        " processes and do not depend on what else runs on the machine as much as seconds do."
        " Pages of memory that processes share count for each.",
        "",
        *lines(measurements),
    ]
    write_section("Large tables (`large_tables.py`)", "\n".join(text))


if __name__ == "__main__":
    main()
