"""Verdicts of `edo diagnose`: structure of the disagreement, and groups of people (`--by`)."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose import DESIGNS, rejections
from group_differences import SCALES, simulate

from coverage_scenarios.coverage_row import CoverageRow
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.result import value_of

LEVEL = 0.95
PERMUTATIONS = 200
RUNS_DIVISOR = 5
"""A table takes a second or more: a fifth of the runs."""


def diagnose(runs: int, seed: int) -> Iterator[CoverageRow]:
    """False alarms where there is no structure, and no difference between groups."""
    tables = max(runs // RUNS_DIVISOR, 1)
    shares = rejections(DESIGNS["6 annotators, all items"], 0.0, tables, PERMUTATIONS)
    yield CoverageRow(
        "disagreement is structured",
        "6 annotators, disagreement at random",
        "false alarms",
        1 - LEVEL,
        round(shares["any structure"] * tables),
        tables,
        size="300 items",
    )
    for kind in SCALES:
        name = "" if kind == "ordinal" else "c"
        n_shown = 0
        covered = 0
        for run in range(tables):
            annotations = simulate(kind, balanced=False, shift=0.0, seed=seed + run)
            comparison = compare_groups(annotations, ["gender"])
            woman = comparison.levels_of("gender")[1]
            n_shown += woman.differs == "yes"
            low = value_of(woman.low, name)
            high = value_of(woman.high, name)
            covered += low <= 0 <= high
        data = f"{kind}, 12 women and 48 men, no difference"
        yield CoverageRow("groups differ", data, "false alarms", 1 - LEVEL, n_shown, tables)
        yield CoverageRow("difference of groups", data, "covers", LEVEL, covered, tables)
