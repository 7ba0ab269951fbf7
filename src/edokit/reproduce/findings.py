"""The paper's findings one by one: what it says, what we measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable

from edokit._io.markup import Table
from edokit.reproduce import findings_benchmark, findings_objective
from edokit.reproduce.finding import FAILS, HOLDS, OPEN, PARTLY, Finding
from edokit.reproduce.section import Section
from edokit.reproduce.study import Study

NAME = "findings"
FINDINGS: tuple[Callable[[Study], Finding], ...] = (
    findings_objective.sign,
    findings_objective.diversity,
    findings_objective.weights,
    findings_objective.size,
    findings_objective.variants,
    findings_objective.heat_maps,
    findings_benchmark.lowest,
    findings_benchmark.reductions,
    findings_benchmark.per_annotator,
    findings_benchmark.stable,
)


def findings(study: Study) -> Section:
    """All of them, in plain words."""
    listed = [find(study) for find in FINDINGS]
    more = findings_benchmark.beyond(study)
    counts = {v: sum(one.verdict == v for one in listed) for v in (HOLDS, PARTLY, FAILS, OPEN)}
    return Section(
        NAME,
        "Which findings hold",
        {
            "findings": Table(
                "The paper's findings and ours",
                ["the paper says", "verdict", "what was measured here"],
                [[one.paper_says, one.verdict, one.here] for one in listed],
            )
        },
        [
            f"{len(listed)} findings: " + ", ".join(f"{n} × {v}" for v, n in counts.items()) + ".",
            *(f"{one.paper_says} {one.verdict.capitalize()}. {one.here}" for one in listed),
            *more,
        ],
        {
            "findings": [
                {"paper": one.paper_says, "verdict": one.verdict, "here": one.here}
                for one in listed
            ],
            "beyond": more,
        },
    )
