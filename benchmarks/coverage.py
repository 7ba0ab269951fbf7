"""Do intervals, tests and promises keep what they state? Nominal against measured coverage.

    python benchmarks/coverage.py                        all scenarios, the table on the terminal
    python benchmarks/coverage.py evaluate compare       some of them
    python benchmarks/coverage.py --write                also into docs/coverage.md
    python benchmarks/coverage.py --runs 100             quicker and less certain

A scenario simulates tables whose truth is known, has the product answer, and counts how often the
answer was right. To add one, write a function in `coverage_scenarios/` that takes a number of runs
and a seed and yields `CoverageRow`, and name it in `SCENARIOS`. `--write` replaces the rows of the
scenarios that ran, and leaves the others.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from coverage_scenarios import agreement, decisions, diagnosis, juries, metrics, pilots, shares
from coverage_scenarios.coverage_row import CoverageRow, table_line

from edokit import EDOWarning

Scenario = Callable[[int, int], Iterator[CoverageRow]]

SCENARIOS: dict[str, Scenario] = {
    "evaluate": metrics.evaluate,
    "compare": metrics.compare,
    "agreement": agreement.agreement,
    "compare --metrics": metrics.compare_metrics,
    "diagnose": diagnosis.diagnose,
    "plan": pilots.plan,
    "audit": juries.audit,
    "estimate": shares.estimate,
    "gate": shares.gate,
    "predict": decisions.predict,
}
"""What can be run, by name: the command or function that it checks, in the order of the table."""

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
BEGIN = "<!-- coverage: begin -->"
END = "<!-- coverage: end -->"
HEADER = [
    "| command | what is shown | simulated data | stated | measured | tables |",
    "|---|---|---|---|---|---|",
]


def scenario_lines(name: str, runs: int, seed: int) -> Iterator[str]:
    """The lines of a scenario; rows that differ in size alone share one."""
    for _, rows in groupby(SCENARIOS[name](runs, seed), key=lambda row: row.title):
        yield table_line(name, list(rows))


def write_page(lines: dict[str, list[str]]) -> None:
    """Put the rows of these scenarios into the page; those of other scenarios stay."""
    before, remainder = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table, after = remainder.split(END)
    by_name = {name: [] for name in SCENARIOS}
    for line in table.splitlines():
        if not line.startswith("| `"):
            continue
        name = line.split("`")[1]
        if name in by_name:
            by_name[name].append(line)
    by_name.update(lines)
    table_lines = list(HEADER)
    for coverage_rows in by_name.values():
        table_lines.extend(coverage_rows)
    PAGE.write_text("\n".join([before + BEGIN, *table_lines, END + after]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--runs", type=int, default=400, help="simulated tables of each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="put the rows into docs/coverage.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    names = arguments.names or list(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    print("\n".join(HEADER))
    for name in names:
        start = time.monotonic()
        lines: list[str] = []
        for line in scenario_lines(name, arguments.runs, arguments.seed):
            lines.append(line)
            print(line, flush=True)
        if arguments.write:
            write_page({name: lines})
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
