"""`python -m reproduction lewidi2023`: all tables, and the page that sums them up."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edokit._errors import InputError, one_of
from edokit._io.atomic import whole_file
from reproduction.lewidi2023.ablations import ce_variants, diversity, weighting
from reproduction.lewidi2023.annotators import annotators
from reproduction.lewidi2023.benchmark import bars, benchmark, trade
from reproduction.lewidi2023.checks import checks
from reproduction.lewidi2023.disagreement import disagreement
from reproduction.lewidi2023.findings import findings
from reproduction.lewidi2023.items import dataset_statistics, near_duplicates, qualitative
from reproduction.lewidi2023.parameters import parameters
from reproduction.lewidi2023.searches import efficiency, heat_maps, sizes, stability
from reproduction.lewidi2023.study import DATASETS, Study, find_data, find_predictions
from reproduction.lewidi2023.train import plans_for, train_pools
from reproduction.section import Section

HELP = "The EDO paper's tables, ours beside the paper's, and checks of the paper's numbers."
TABLES: Mapping[str, Callable[[Study], Section]] = {
    "checks": checks,
    "datasets": dataset_statistics,
    "disagreement": disagreement,
    "ce-variants": ce_variants,
    "diversity": diversity,
    "weighting": weighting,
    "sizes": sizes,
    "heat-maps": heat_maps,
    "benchmark": benchmark,
    "stability": stability,
    "bars": bars,
    "trade": trade,
    "annotators": annotators,
    "near-duplicates": near_duplicates,
    "qualitative": qualitative,
    "parameters": parameters,
    "efficiency": efficiency,
    "findings": findings,
}
"""By name, in the order of the page."""
WITHOUT_DATA = ("checks", "parameters")
"""Tables that need the paper's figures alone."""
_FOR_TRAINING = ("dataset", "recipe", "backbone", "option", "protocol", "device")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this task."""
    add = parser.add_argument
    add("--table", action="append", help=f"only this table (repeatable): {', '.join(TABLES)}")
    add("--data", type=Path, help="LeWiDi 2023 folder; else EDO_LEWIDI2023, else ./lewidi2023")
    add("--predictions", type=Path, help="members' predictions; else benchmarks/lewidi2023")
    add("--out", type=Path, help="folder for tables (Markdown, CSV, LaTeX), figures, RESULTS.md")
    add("--results", type=Path, help="write the page that sums it up to this file")
    add("--seeds", type=_at_least_one, default=5, help="seeds: members and solver (default 5)")
    add("--trials", type=_at_least_one, default=50, help="trials of each search (default 50)")
    add("--jobs", type=_at_least_one, help="processes; else one per core")
    add("--train", action="store_true", help="train the members from scratch first (needs --out)")
    add("--dataset", action="append", help="train members of this dataset only (repeatable)")
    add("--recipe", help="train with linear, encoder or transformer; else as committed")
    add("--backbone", help="hub id or folder for encoder and transformer")
    add("--members", type=_at_least_one, default=20, help="members of a trained pool (default 20)")
    add("--option", action="append", metavar="KEY=VALUE", help="an option of the recipe")
    add("--protocol", help="train as here (ours, the default) or as the paper does (paper)")
    add("--device", help="where to train, e.g. cpu or cuda")
    add("--json", action="store_true", help="print one JSON object")


def run(given: argparse.Namespace, typed: Sequence[str]) -> None:
    """Train if asked, make the tables, write and print them."""
    data = find_data(given.data)
    predictions = None
    if not (given.train and given.predictions is None and (given.recipe or given.protocol)):
        predictions = find_predictions(given.predictions)
    if given.train:
        predictions = _train(given, data, predictions)
    else:
        for name in _FOR_TRAINING:
            if getattr(given, name):
                raise InputError(
                    f"--{name} is an option of training, and --train is missing",
                    f"add --train, or leave out --{name}",
                    code="missing-option",
                )
    jobs = given.jobs or os.cpu_count() or 1
    study = Study(data, predictions, given.seeds, _progress, jobs, given.trials)
    sections = reproduce(study, given.table, out=given.out)
    _progress("")
    written = [path for path in (given.results, given.out and given.out / "RESULTS.md") if path]
    for path in written:
        with whole_file(path) as temporary:
            page = results_page(sections, study, shlex.join(typed))
            temporary.write_text(page, encoding="utf-8")
    if given.json:
        _print_json(sections, study, written)
    else:
        _print_text(sections, written)


def reproduce(
    study: Study, tables: Sequence[str] | None = None, *, out: Path | None = None
) -> list[Section]:
    """The sections of these names (default: all); with ``out`` their tables and figures."""
    table_names = list(tables or TABLES)
    for name in table_names:
        one_of("the table", name, TABLES)
    if not set(table_names) <= set(WITHOUT_DATA):
        _check(study)
    sections = []
    for name in table_names:
        section = TABLES[name](study)
        if out is not None:
            section.write(out / "tables")
        sections.append(section)
    return sections


def _check(study: Study) -> None:
    if study.data is None:
        raise InputError(
            "the LeWiDi 2023 data is neither in EDO_LEWIDI2023 nor in ./lewidi2023",
            "get it with `edo data get lewidi2023`, or say where it is with --data DIR (the checks"
            " of the paper's own numbers need no data: --table checks)",
            code="missing-data",
        )
    if study.predictions is None:
        raise InputError(
            "there are no members' predictions in benchmarks/lewidi2023",
            "run inside a clone, say where they are with --predictions DIR, or train some: --train",
            code="missing-predictions",
        )


def results_page(sections: Sequence[Section], study: Study, command: str) -> str:
    """All results on one Markdown page, findings first."""
    lines = [
        "# LeWiDi 2023: what came out",
        "",
        f"Written by `{command}`; do not edit. {study.seeds} seeds: each is {_members_of(study)}"
        " and the solver's seed. Test scores; everything is fitted and"
        " chosen on dev, or, where members were cross-fitted, on their out-of-fold predictions of"
        " train and dev.",
        "",
        *(f"- {name}: {', '.join(study.pools[name]) or 'no members'}" for name in DATASETS),
        "",
    ]
    findings_section = next((section for section in sections if section.name == "findings"), None)
    if findings_section is not None:
        lines += [
            f"## {findings_section.title}",
            "",
            f"{findings_section.words[0]} {findings_section.words[1]}",
            "",
        ]
        for finding in findings_section.values["findings"]:
            lines.append(
                f"- *{finding['paper']}* **{finding['verdict'].capitalize()}**"
                f" ({finding['supported']} of {finding['cases']} cases). {finding['here']}"
            )
        lines += ["", "Beyond the paper's findings:", ""]
        lines += [f"- {sentence}" for sentence in findings_section.values["beyond"]]
        lines.append("")
    for section in sections:
        if section is findings_section:
            continue
        lines += [f"## {section.title}", ""]
        if section.name == "checks":
            lines += [f"- {sentence}" for sentence in section.words]
            lines.append("")
        for name, table in section.tables.items():
            if name != "checks":
                lines += [table.markdown().rstrip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def _members_of(study: Study) -> str:
    """The members of a seed, in words."""
    if study.has_members_for_each_seed:
        return "ten members that were trained for it alone (per annotator as many as K ≤ min A_i)"
    return "half of a pool's members (ten of twenty)"


def _train(given: argparse.Namespace, data: Path | None, predictions: Path | None) -> Path:
    if data is None or given.out is None:
        missing = "--out"
        if data is None:
            missing = "--data (or ./lewidi2023)"
        raise InputError(
            f"training needs the data and a folder for the members; {missing} is missing",
            "add it",
            code="missing-option",
        )
    plans = plans_for(
        data,
        predictions,
        datasets=given.dataset,
        recipe=given.recipe,
        backbone=given.backbone,
        members=given.members,
        options=_pairs(given.option),
        protocol=given.protocol or "ours",
    )
    return train_pools(
        data,
        plans,
        given.out,
        device=given.device,
        jobs=given.jobs,
        progress=lambda done, total, task: _progress(f"training {task}"),
    )


def _pairs(given: Sequence[str] | None) -> dict[str, str]:
    """``["KEY=VALUE"]`` as a dictionary."""
    pairs = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise InputError(
                f"--option {text} is not of the form KEY=VALUE",
                "write KEY=VALUE",
                code="malformed-option",
            )
        pairs[key] = value
    return pairs


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _progress(step: str) -> None:
    """Show the current step on stderr if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{step}")
        sys.stderr.flush()


def _print_json(sections: Sequence[Section], study: Study, written: Sequence[Path]) -> None:
    record = {
        "benchmark": "lewidi2023",
        "seeds": study.seeds,
        "pools": study.pools,
        "sections": {section.name: section.to_dict() for section in sections},
        "written": [str(path) for path in written],
    }
    sys.stdout.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def _print_text(sections: Sequence[Section], written: Sequence[Path]) -> None:
    lines = []
    for section in sections:
        lines += [f"\n# {section.title}", *(f"- {sentence}" for sentence in section.words)]
        for name, table in section.tables.items():
            if name not in ("checks", "findings"):
                lines.append("\n" + table.markdown().rstrip())
    lines += [f"written: {path}" for path in written]
    sys.stdout.write("\n".join(lines) + "\n")
