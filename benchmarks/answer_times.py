"""Is answering quicker than before: one text, and 256 at once?

    git archive 50a361e9 | tar -x -C BEFORE
    python benchmarks/answer_times.py --before BEFORE/src            # a section of RESULTS.md

Both sources train the pool of `edo run --quality fast` on the same simulated items and answer for
the same new texts in Python, each in processes of its own, in turns. That commit is the last one
before packed trees, and before members shared the pieces of a text; it also needs the package
krippendorff. Processor time on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from results import machine, write_section

ITEMS = 1000
MANY = 256
CALLS = 9
TEXTS = "texts.json"
ROUNDS = 2
ONE_TEXT_AIM = 6.0
ONE_TEXT_BEFORE = 22.0
"""Milliseconds."""
RATE_AIM = 1.5
NOW = Path(__file__).resolve().parent.parent / "src"


def median_milliseconds(call: Callable[[int], object], times: int) -> float:
    """Median processor milliseconds of calls, which get their number."""
    values = []
    for number in range(times):
        before = time.process_time()
        call(number)
        values.append(1000 * (time.process_time() - before))
    return statistics.median(values)


def measure(folder: Path) -> dict[str, float]:
    """Processor milliseconds of one text and of many, after training a run in a new folder."""
    import edokit

    simulated = edokit.simulate("two-camps", items=(ITEMS, 1, 1), random_state=0)
    table = replace(simulated.annotations.split("train"), splits=None)
    if not (folder / "report.html").exists():
        edokit.run(table, folder, jobs=1, quality="fast")
    bundle = edokit.Run.load(folder).bundle
    # No text is asked for twice: pieces of texts that were seen lately are in a cache.
    texts = json.loads((folder.parent / TEXTS).read_text(encoding="utf-8"))
    bundle.describe(texts[:MANY])
    single = texts[MANY:]
    return {
        "one": median_milliseconds(lambda k: bundle.describe(single[k : k + 1]), 40),
        "many": median_milliseconds(
            lambda k: bundle.describe(texts[(k + 1) * MANY : (k + 2) * MANY]), CALLS
        ),
    }


def in_own_process(source: Path, folder: Path) -> dict[str, float]:
    """What `measure` returns with the package of a source folder."""
    # What else is on the path stays there, such as a package that only the earlier source needs.
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    milliseconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return milliseconds


def main() -> None:
    """Measure both sources in turns, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="the folder src of the earlier commit")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    from training import made_up  # needs the present source

    rounds: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
    with tempfile.TemporaryDirectory() as place:
        texts = made_up(MANY * (CALLS + 1))[0]
        (Path(place) / TEXTS).write_text(json.dumps(texts), encoding="utf-8")
        for _ in range(ROUNDS):
            for name, source in (("before", arguments.before), ("now", NOW)):
                rounds[name].append(in_own_process(source, Path(place) / name))
                print(name, rounds[name][-1], flush=True)
    text = section(least(rounds["before"]), least(rounds["now"]))
    print(text)
    write_section("Answering before and now (`answer_times.py`)", text)


def least(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The least milliseconds of one text and of many."""
    return {size: min(milliseconds[size] for milliseconds in rounds) for size in ("one", "many")}


def section(before: dict[str, float], now: dict[str, float]) -> str:
    """The milliseconds of both sources as a section in Markdown."""
    share = now["one"] / before["one"]
    aim = ONE_TEXT_AIM / ONE_TEXT_BEFORE
    rate = before["many"] / now["many"]
    lines = [
        "    python benchmarks/answer_times.py --before BEFORE/src",
        "",
        f"- One text in {ONE_TEXT_AIM:g} of the {ONE_TEXT_BEFORE:g} ms that it took on an idle"
        f" machine, {aim:.0%}: {_verdict(share <= aim)} ({share:.0%}). In milliseconds of this run,"
        f" at most {ONE_TEXT_AIM:g}: {_verdict(now['one'] <= ONE_TEXT_AIM)} ({now['one']:.1f}).",
        f"- {MANY} texts at {RATE_AIM:g} times the rate of commit 50a361e9:"
        f" {_verdict(rate >= RATE_AIM)} ({rate:.1f} times).",
        "",
        f"What `edo run --quality fast` made of {ITEMS:,} simulated items answers in Python"
        " (`Bundle.describe`: probabilities, entropy, familiarity). Processor milliseconds on one"
        f" core, medians of calls with new texts of 5 to 60 words, the best of {ROUNDS} rounds in"
        " turns, beside much other work.",
        "",
        f"| | one text, ms | {MANY} texts, ms | texts a second |",
        "|---|---|---|---|",
    ]
    for label, milliseconds in (("commit 50a361e9", before), ("now", now)):
        rate = 1000 * MANY / milliseconds["many"]
        lines.append(
            f"| {label} | {milliseconds['one']:.1f} | {milliseconds['many']:.0f} | {rate:,.0f} |"
        )
    return "\n".join([*lines, "", machine("numpy", "scikit-learn")])


def _verdict(is_reached: bool) -> str:
    if is_reached:
        return "reached"
    return "missed"


if __name__ == "__main__":
    main()
