"""All tables, and the page that sums them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edokit._errors import InputError, one_of
from edokit.reproduce.bars import bars
from edokit.reproduce.benchmark import benchmark
from edokit.reproduce.ce_variants import ce_variants
from edokit.reproduce.checks import checks
from edokit.reproduce.dataset_statistics import dataset_statistics
from edokit.reproduce.diversity import diversity
from edokit.reproduce.efficiency import efficiency
from edokit.reproduce.findings import findings
from edokit.reproduce.heat_maps import heat_maps
from edokit.reproduce.near_duplicates import near_duplicates
from edokit.reproduce.qualitative import qualitative
from edokit.reproduce.section import Section
from edokit.reproduce.sizes import sizes
from edokit.reproduce.stability import stability
from edokit.reproduce.study import DATASETS, Study
from edokit.reproduce.trade import trade
from edokit.reproduce.weighting import weighting

TABLES: Mapping[str, Callable[[Study], Section]] = {
    "checks": checks,
    "datasets": dataset_statistics,
    "ce-variants": ce_variants,
    "diversity": diversity,
    "weighting": weighting,
    "sizes": sizes,
    "heat-maps": heat_maps,
    "benchmark": benchmark,
    "stability": stability,
    "bars": bars,
    "trade": trade,
    "near-duplicates": near_duplicates,
    "qualitative": qualitative,
    "efficiency": efficiency,
    "findings": findings,
}
"""By name, in the order of the page."""
WITHOUT_DATA = ("checks",)
"""What the paper's figures alone can tell."""


def reproduce(
    study: Study,
    tables: Sequence[str] | None = None,
    *,
    out: Path | None = None,
    done: Callable[[Section], None] = lambda section: None,
) -> list[Section]:
    """The sections of these names (all, unless told); with ``out`` their tables and figures."""
    wanted = list(tables or TABLES)
    for name in wanted:
        one_of("the table", name, TABLES)
    if not set(wanted) <= set(WITHOUT_DATA):
        _check(study)
    sections = []
    for name in wanted:
        section = TABLES[name](study)
        if out is not None:
            section.write(out / "tables")
        done(section)
        sections.append(section)
    return sections


def _check(study: Study) -> None:
    if study.data is None:
        raise InputError(
            "the tables need the LeWiDi 2023 data, but it is neither in EDO_LEWIDI2023 nor in"
            " ./lewidi2023",
            "get it with `edo data get lewidi2023`, or say where it is: --data DIR (the checks of"
            " the paper's own numbers need no data: --table checks)",
        )
    if study.predictions is None:
        raise InputError(
            "the tables need members' predictions, but there is no benchmarks/lewidi2023 here",
            "run inside a clone, say where they are with --predictions DIR, or train some: --train",
        )


def results_page(sections: Sequence[Section], study: Study, command: str) -> str:
    """Everything on one Markdown page, findings first."""
    by_name = {section.name: section for section in sections}
    lines = [
        "# LeWiDi 2023: what came out",
        "",
        f"Written by `{command}`; do not edit. {study.seeds} seeds: each is half of a pool's"
        " members (ten of twenty) and the solver's seed. Test scores; everything is fitted and"
        " chosen on dev, or, where members were cross-fitted, on their out-of-fold predictions of"
        " train and dev.",
        "",
        *_members(study),
        "",
    ]
    first = by_name.get("findings")
    if first is not None:
        lines += [f"## {first.title}", "", f"{first.words[0]}", ""]
        for one in first.values["findings"]:
            lines.append(f"- *{one['paper']}* **{one['verdict'].capitalize()}.** {one['here']}")
        lines += ["", "Beyond the paper's findings:", ""]
        lines += [f"- {sentence}" for sentence in first.values["beyond"]]
        lines.append("")
    for section in sections:
        if section is first:
            continue
        lines += [f"## {section.title}", ""]
        if section.name == "checks":
            lines += [f"- {sentence}" for sentence in section.words]
            lines.append("")
        for name, table in section.tables.items():
            if name != "checks":
                lines += [table.markdown().rstrip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def _members(study: Study) -> list[str]:
    """Which pools are there, and which are not."""
    lines = []
    for dataset in DATASETS:
        there = study.pools[dataset]
        lines.append(f"- {dataset}: {', '.join(there) if there else 'no members'}")
    return lines
