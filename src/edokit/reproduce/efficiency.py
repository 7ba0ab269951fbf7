"""What it costs: seconds of a search, of a fit, and of the members."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from edokit._io.markup import Cell, Table
from edokit.reproduce import paper
from edokit.reproduce.fixed import PAPERS_POOL, Configuration, by_exact, by_gumbel
from edokit.reproduce.searches import run_search
from edokit.reproduce.section import Section
from edokit.reproduce.study import DATASETS, Missing, Pool, Study

NAME = "efficiency"


def efficiency(study: Study) -> Section:
    """Measured here, beside what the paper says."""
    rows: list[list[Cell]] = []
    settings = [Configuration("mean", "f1+ce", "preserve").settings()]
    for dataset in DATASETS:
        members = study.pool(dataset, PAPERS_POOL)
        if isinstance(members, Missing):
            continue
        drawn = members.drawn(0)
        fit = _seconds(by_gumbel, drawn, settings, 0)
        exact = _seconds(by_exact, drawn, settings, 0)
        search = _seconds(run_search, drawn, 0, "mean", "preserve", study.trials)
        rows.append(
            [
                dataset,
                len(drawn.fit.items),
                fit,
                exact,
                search,
                search / study.trials,
                _training(study, members),
            ]
        )
    told = paper.row("efficiency", figure="one step of the ensemble optimisation")
    assert told is not None
    return Section(
        NAME,
        "Efficiency",
        {
            "efficiency": Table(
                "Seconds on the machine that wrote this table (one core)",
                [
                    "dataset",
                    "items",
                    "one fit, gumbel",
                    "one fit, exact",
                    f"search, {study.trials} trials",
                    "per trial",
                    "training a member (from the manifest)",
                ],
                rows,
                notes=[
                    f"The paper: below {told['value']:.0f} seconds per step of the ensemble"
                    " optimisation; it gives no total."
                ],
                digits=3,
            )
        },
    )


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def _training(study: Study, members: Pool) -> float | None:
    """Mean seconds of training one member, where a manifest tells."""
    assert study.predictions is not None
    manifest = study.predictions / members.dataset / members.name / "manifest.json"
    try:
        told = json.loads(manifest.read_text(encoding="utf-8"))["members"]
        return float(sum(one["seconds"] for one in told) / len(told))
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        return None
