"""What is odd about the paper's numbers: each check is computed from its figures or the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from edokit._io.markup import Table
from edokit.reproduce import checks_data, checks_paper
from edokit.reproduce.check import Check
from edokit.reproduce.section import Section
from edokit.reproduce.study import Study

NAME = "checks"


@dataclass(frozen=True)
class _Entry:
    name: str
    run: Callable[[Study], Check]


CHECKS = (
    _Entry("squashed-ce", checks_data.squashed_ce),
    _Entry("reductions", checks_paper.reductions),
    _Entry("correlated-reductions", checks_paper.correlated_reductions),
    _Entry("zero-diversity", checks_paper.zero_diversity),
    _Entry("mixed-variants", checks_paper.mixed_variants),
    _Entry("averages", checks_paper.averages),
    _Entry("distance-bounds", checks_paper.distance_bounds),
    _Entry("qualitative-figures", checks_paper.qualitative_figures),
    _Entry("majority-class", checks_data.majority_class),
    _Entry("uniform-worse-than-constant", checks_data.implied_uniform),
    _Entry("one-random-generation", checks_paper.one_generation),
    _Entry("annotators-per-item", checks_data.annotators_per_item),
    _Entry("near-duplicates", checks_data.near_duplicates),
)


def checks(study: Study) -> Section:
    """All checks, a sentence and a table each."""
    found = {entry.name: entry.run(study) for entry in CHECKS}
    summary = Table(
        "Checks of the paper's own numbers",
        ["check", "question", "answer", "what was found"],
        [[name, one.question, one.answer, one.finding] for name, one in found.items()],
    )
    tables = {"checks": summary}
    for name, one in found.items():
        if one.table is not None:
            tables[f"check-{name}"] = replace(one.table, title=f"{name}: {one.table.title}")
    return Section(
        NAME,
        "Checks of the paper's own numbers",
        tables,
        [f"{one.question} {one.answer.capitalize()}. {one.finding}" for one in found.values()],
        {
            "checks": {
                name: {"question": one.question, "holds": one.holds, "finding": one.finding}
                for name, one in found.items()
            }
        },
    )
