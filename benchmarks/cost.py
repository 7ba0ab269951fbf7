"""What do many more items cost, and does the estimate hold where it can be tested?

    python benchmarks/cost.py
    python benchmarks/cost.py --pipeline    # from texts to an evaluated ensemble; a figure
    python benchmarks/cost.py --gpu         # of that, only what RESULTS.md has of a GPU

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

from results import FILE as RESULTS
from results import machine, rewrite, save_figure
from shard_files import CLASSES, write_shards

from edokit import EDOEnsemble
from edokit.fitdata.data import FitData

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cost.md"
MEMBERS = 50
SMALL = 1_000_000
MORE = 4_000_000
WANTED = 1_000_000_000
MOST = 1.15  # how far two workers may be above the estimate
BYTES = 4  # of a float32 probability
MARKS = ("<!-- written by benchmarks/cost.py -->", "<!-- end -->")


@dataclass(frozen=True)
class Run:
    """A fit over shards: seconds of the first pass, of the others together, and their number."""

    items: int
    workers: int
    first_seconds: float
    later_seconds: float
    passes: int

    @property
    def seconds(self) -> float:
        return self.first_seconds + self.later_seconds


@dataclass(frozen=True)
class Rates:
    """Seconds of one worker per item, in the first pass and in each later one.

    The first pass reads, checks, matches, caches and sums up.
    """

    first_pass: float
    later_pass: float

    @classmethod
    def from_run(cls, run: Run) -> Rates:
        later_pass = run.later_seconds / run.items / run.passes
        return cls(run.first_seconds / run.items, later_pass)

    def seconds(self, items: int, passes: int, workers: int) -> float:
        """Estimated seconds, if shards are divided evenly and the work on their sums is free."""
        return items * (self.first_pass + passes * self.later_pass) / workers


def fitted(folder: Path, items: int, workers: int) -> Run:
    """A fit on the workers of a Dask cluster on this machine."""
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
        engine = cluster.scheduler_address.replace("tcp://", "dask://")

        def open_data(data_folder: Path) -> FitData:
            return FitData.open(
                data_folder / "predictions",
                data_folder / "annotations",
                engine=engine,
                scratch=folder / "scratch",
            )

        # The workers import what they need before the clock starts.
        with open_data(folder / "warm") as small_data:
            EDOEnsemble().fit(small_data)
        start = time.perf_counter()
        data = stack.enter_context(open_data(folder))
        first_seconds = time.perf_counter() - start
        before = data.passes
        EDOEnsemble().fit(data)
        return Run(
            items,
            workers,
            first_seconds,
            time.perf_counter() - start - first_seconds,
            data.passes - before,
        )


def span(seconds: float) -> str:
    """A duration in a unit of which it has at least two."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def page(one: Run, two: Run, rates: Rates) -> str:
    """The rates of one worker, the test of the estimate with two, and estimates for more."""
    estimated = rates.seconds(two.items, two.passes, 2)
    ratio = two.seconds / estimated
    verdict = "reached" if ratio <= MOST else "missed"
    item_bytes = MEMBERS * CLASSES * BYTES
    first_megabytes = item_bytes / rates.first_pass / 1e6
    later_megabytes = item_bytes / rates.later_pass / 1e6
    lines = [
        MARKS[0],
        machine("numpy", "dask"),
        "",
        f"Measured, one Dask worker with one core, {one.items:,} items × {MEMBERS} members"
        f" × {CLASSES} classes:",
        "",
        "| | seconds for a million items | MB a second |",
        "|---|---|---|",
        f"| first pass | {1e6 * rates.first_pass:.2f} | {first_megabytes:.0f} |",
        f"| each later pass | {1e6 * rates.later_pass:.2f} | {later_megabytes:.0f} |",
        "",
        f"Tried, two workers, {two.items:,} items ({two.passes} passes after the first): estimated"
        f" {estimated:.1f} s, took {two.seconds:.1f} s. At most {MOST} times the estimate:"
        f" {verdict} ({ratio:.2f}).",
        "",
        f"Estimated from these rates, {WANTED:,} items × {MEMBERS} members, as many passes,"
        f" {WANTED * item_bytes / 1e9:.0f} GB of probabilities and as much for the cache:",
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
        first_round = rates.seconds(WANTED, 0, workers)
        all_rounds = rates.seconds(WANTED, two.passes, workers)
        further_rounds = all_rounds - first_round
        lines.append(
            f"| {name} | {span(first_round)} | {span(further_rounds)} | {span(all_rounds)} |"
        )
    return "\n".join([*lines, MARKS[1]])


POOL = 10
TRIED = (10_000, 1_000_000)
SIZES = (*TRIED, 100_000_000)
LEARNED = 4_000
"""Texts that members are trained on; more of them are estimated."""
FORWARD = 3
"""A training step is a forward pass and a backward one of twice the work."""
COMMANDS = "core: `edo fit`, `edo predict` and `edo evaluate`"
PIPELINE = ("<!-- written by benchmarks/cost.py --pipeline -->", "<!-- end of the pipeline -->")


def command(*words: object) -> float:
    """Seconds of the processor that an `edo` command takes, start-up included."""
    import os
    import resource
    import subprocess
    import sys

    code = "from edokit.cli import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(folder: Path, items: int) -> dict[str, float]:
    """Seconds of each command from the members' predictions to an evaluation."""
    import pyarrow.parquet as pq

    write_shards(folder, items, POOL)
    predictions = folder / "predictions"
    annotations = folder / "annotations"
    pq.write_table(pq.read_table(annotations), folder / "annotations.parquet")
    ensemble = folder / "ensemble"
    pooled = folder / "pooled.parquet"
    prediction_flags = ("--predictions", predictions)
    fit = ("fit", *prediction_flags, "--annotations", annotations, "--out", ensemble, "--stream")
    labels = ("--annotations", folder / "annotations.parquet")
    return {
        "`edo fit`": command(*fit, "--jobs", 1),
        "`edo predict`": command("predict", ensemble, *prediction_flags, "--out", pooled),
        "`edo evaluate`": command("evaluate", "--probabilities", pooled, *labels),
    }


def linear_seconds() -> float:
    """Seconds of the processor in which a pool of `linear` members learns from one text."""
    from training import made_up, our_linear

    texts, labels = made_up(LEARNED)
    start = time.process_time()
    our_linear(texts, labels, argparse.Namespace())
    return (time.process_time() - start) / LEARNED


def gpu_rates() -> dict[str, tuple[str, float]]:
    """By recipe, the GPU and its seconds of a pool for one text, from ``RESULTS.md``."""
    text = RESULTS.read_text(encoding="utf-8")
    figures = {}
    row = r"^\| `{}` \| (NVIDIA[^|]*?) \| ([\d,]+) \|"
    for recipe in ("encoder", "transformer"):
        if match := re.search(row.format(recipe), text, re.MULTILINE):
            figures[recipe] = match[1], POOL / float(match[2].replace(",", ""))
    pool = re.search(r"^## Training a pool on one GPU.*?(?=^## |\Z)", text, re.M | re.S)
    if pool:
        default_row = r"^(NVIDIA.*?)\. .*?^\| [^|]*\(default\) \| \d+ \| ([\d,]+) \|"
        if match := re.search(default_row, pool[0], re.M | re.S):
            figures["transformer"] = match[1], POOL / float(match[2].replace(",", ""))
    return figures


def core_minutes(where: Path) -> dict[str, list[float]]:
    """Minutes of a core for members without a GPU, and for the commands, measured."""
    runs = {}
    for items in TRIED:
        with tempfile.TemporaryDirectory(prefix="edo-cost-", dir=where) as name:
            runs[items] = commands(Path(name) / "data", items)
        print(items, runs[items], flush=True)
    fewest, most_tried = TRIED
    linear = linear_seconds()
    minutes = {"core: ten `linear` members trained": [n * linear / 60 for n in SIZES]}
    minutes_of_commands = []
    for step, at_few in runs[fewest].items():
        at_many = runs[most_tried][step]
        # What does not grow, such as start-up, is in both.
        extrapolated = at_many + (at_many - at_few) / (most_tried - fewest) * (
            SIZES[-1] - most_tried
        )
        minutes[f"core: {step}"] = [at_few / 60, at_many / 60, extrapolated / 60]
        minutes_of_commands.append(minutes[f"core: {step}"])
    minutes[COMMANDS] = [sum(values) for values in zip(*minutes_of_commands, strict=True)]
    return minutes


def minutes_on_page() -> dict[str, list[float]]:
    """Minutes of a core as they are printed on the page."""
    minutes = {}
    rows = re.findall(r"^\| (core: .*?) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    for name, row in rows:
        minutes[name] = [float(re.sub("[≈ ,]", "", cell)) for cell in row.split("|")]
    return minutes


def pipeline(core: dict[str, list[float]], on: str) -> None:
    """Minutes of a GPU for a pool of ten, and of a core, on this machine, for everything else."""
    minutes: dict[str, list[float]] = {}
    gpu = gpu_rates()
    named_rates = {
        "encoder": "GPU: ten `encoder` members trained, items embedded once",
        "transformer": "GPU: ten `transformer` members, an epoch",
    }
    for recipe, (_, seconds) in gpu.items():
        minutes[named_rates[recipe]] = [items * seconds / 60 for items in SIZES]
    if "transformer" in gpu:
        seconds = gpu["transformer"][1] / FORWARD
        minutes["GPU: ten `transformer` members predict"] = [n * seconds / 60 for n in SIZES]
    minutes |= core
    gpu_names = [name for name, _ in gpu.values()] or ["none"]
    lines = [
        PIPELINE[0],
        f"{on} GPU: {gpu_names[0]}.",
        "",
        "| minutes | " + " | ".join(f"{size:,} items" for size in SIZES) + " |",
        "|---|---|---|---|",
    ]
    for name, values in minutes.items():
        cells = [
            minutes_cell(value, measured(name, size))
            for size, value in zip(SIZES, values, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "![Minutes against items](images/cost.svg)", PIPELINE[1]]
    text = "\n".join(lines)
    print(text)
    draw(minutes)
    rewrite(PAGE, PIPELINE, text)


def minutes_cell(minutes: float, is_measured: bool) -> str:
    """Minutes in a cell of the table; estimates are marked."""
    mark = "" if is_measured else "≈ "
    if minutes >= 10:
        return f"{mark}{minutes:,.0f}"
    return f"{mark}{minutes:.2g}"


def measured(name: str, items: int) -> bool:
    """Whether a number of the table was measured, not estimated."""
    return items in TRIED and name.startswith("core: `edo")


def draw(minutes: dict[str, list[float]]) -> None:
    """Draw the minutes of the main steps against the number of items."""
    import altair as alt

    rows = []
    for name, values in minutes.items():
        if not (name.startswith("GPU") or "linear" in name or name == COMMANDS):
            continue
        for size, value in zip(SIZES, values, strict=True):
            rows.append(
                {
                    "items": size,
                    "minutes": value,
                    "step": name.replace("`", ""),
                    "device": name.split()[0],
                    "measured": measured(name, size),
                }
            )
    steps = alt.Legend(orient="bottom", columns=2, labelLimit=400, title=None)
    lines = (
        alt.Chart(alt.Data(values=rows))
        .encode(
            alt.X("items:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=SIZES, format="~s")),
            alt.Y("minutes:Q", scale=alt.Scale(type="log"), title="minutes of a GPU, or of a core"),
            alt.Color("step:N", legend=steps),
        )
        .properties(width=560, height=280)
    )
    # Lines may coincide: those of a core are drawn later and are thinner.
    gpu = lines.transform_filter("(datum.device == 'GPU') == true")
    core = lines.transform_filter("(datum.device == 'GPU') == false")
    dots = lines.mark_point(filled=True, size=60).encode(
        fillOpacity=alt.condition("datum.measured", alt.value(1), alt.value(0.15))
    )
    chart = gpu.mark_line(strokeWidth=3.5) + core.mark_line(strokeDash=[5, 3]) + dots
    save_figure(chart, "cost", PAGE.parent / "images")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=SMALL, help="items of one worker")
    parser.add_argument("--more", type=int, default=MORE, help="items of two")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--pipeline", action="store_true", help="from texts to an evaluation")
    parser.add_argument("--gpu", action="store_true", help="of --pipeline, the GPU's rows alone")
    arguments = parser.parse_args()
    if arguments.pipeline:
        pipeline(core_minutes(arguments.folder), machine("numpy", "pyarrow"))
        return
    if arguments.gpu:
        section = PAGE.read_text(encoding="utf-8").split(PIPELINE[0])[1]
        pipeline(minutes_on_page(), section.split(" GPU: ")[0].strip())
        return
    runs = []
    for items, workers in ((arguments.small, 1), (arguments.more, 2)):
        with tempfile.TemporaryDirectory(prefix="edo-cost-", dir=arguments.folder) as name:
            folder = Path(name) / "data"
            write_shards(folder, items, MEMBERS, annotators=0)
            write_shards(folder / "warm", 2_000, MEMBERS, annotators=0, per_shard=250)
            runs.append(fitted(folder, items, workers))
            print(runs[-1], flush=True)
    text = page(*runs, Rates.from_run(runs[0]))
    print(text)
    rewrite(PAGE, MARKS, text)


if __name__ == "__main__":
    main()
