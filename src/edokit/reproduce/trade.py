"""Sharper answers trade cross-entropy for Manhattan distance: points to choose from."""

from __future__ import annotations

import numpy as np

from edokit._io.markup import Cell, Table
from edokit.reproduce.bars import Chosen, choice
from edokit.reproduce.effects import METRICS, Outcome
from edokit.reproduce.methods import method_outcome
from edokit.reproduce.section import Section
from edokit.reproduce.study import DATASETS, Missing, Study

NAME = "trade"
POWERS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)


def trade(study: Study) -> Section:
    """The chosen row of each dataset with its odds to several powers."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        found = choice(study, dataset)
        if isinstance(found, Missing):
            continue
        points = sharpened(study, dataset, found)
        front = on_front(points)
        for power, one in points.items():
            rows.append(
                [
                    dataset,
                    f"{found.method} on {found.pool}",
                    power,
                    *(one.mean(m, "fit") for m in ("f1", "ce", "md")),
                    "yes" if front[power] else "no",
                    *(one.mean(m) for m in METRICS),
                ]
            )
    return Section(
        NAME,
        "Sharpening: cross-entropy against Manhattan distance",
        {
            "trade": Table(
                "Odds of the chosen row to a power: a choice on the front of dev",
                [
                    *("dataset", "row", "power", "dev F1", "dev CE", "dev MD", "on dev's front"),
                    *("F1", "CE", "MD", "BS"),
                ],
                rows,
                notes=[
                    "Power 1 is the row itself; a power of p is a temperature of 1/p after pooling."
                ],
            )
        },
    )


def sharpened(study: Study, dataset: str, row: Chosen) -> dict[float, Outcome]:
    """The row's scores by power."""
    points = {}
    for power in POWERS:
        one = method_outcome(study, dataset, row.pool, row.method, power)
        assert isinstance(one, Outcome)
        points[power] = one
    return points


def on_front(points: dict[float, Outcome]) -> dict[float, bool]:
    """Whether no other point is as good on dev in F1, CE and MD and better in one."""
    values = np.array(
        [[-o.mean("f1", "fit"), o.mean("ce", "fit"), o.mean("md", "fit")] for o in points.values()]
    )
    kept = {}
    for at, power in enumerate(points):
        as_good = (values <= values[at]).all(axis=1)
        kept[power] = not (as_good & (values < values[at]).any(axis=1)).any()
    return kept
