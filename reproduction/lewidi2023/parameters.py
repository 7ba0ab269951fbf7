"""The paper's parameter table (appendix H), and what the searches chose for each parameter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edokit import SearchSpace
from edokit._errors import counted
from edokit._io.markup import Cell, Table
from edokit.objective.settings import (
    FLAT_NAMES,
    GumbelSteps,
    preset_objective,
    preset_solver,
)
from reproduction import paper
from reproduction.lewidi2023.configurations import (
    PAPERS_POOL,
    SIGNS,
    VARIANTS,
    VARIED,
    chosen,
    searched,
)
from reproduction.lewidi2023.study import DATASETS, Missing, Study
from reproduction.section import Section

OBJECTIVE_FIELDS = {flat_name: field for field, flat_name in FLAT_NAMES.items()}
"""Fields of `Objective` by the names that search spaces and the command line use."""


def parameters(study: Study) -> Section:
    """Every parameter of the paper's table beside ours; with data, what the searches chose."""
    rows: list[list[Cell]] = []
    for printed in paper.rows("parameters"):
        name = printed["parameter"]
        rows.append(
            [
                name,
                printed["symbol"],
                printed["role"],
                printed["kind"],
                printed_range(printed),
                space_range(name),
                setting_text(printed["ablations"]),
                preset_value(name, "paper-fixed"),
                preset_value(name, "default"),
            ]
        )
    tables = {
        "parameters": Table(
            "Parameters of EDO: learned or given, ours beside the paper's",
            [
                "parameter",
                "symbol",
                "role",
                "kind",
                "range, paper",
                "range, SearchSpace.paper()",
                "ablations, paper",
                "ablations, paper-fixed",
                "default of edokit",
            ],
            rows,
            notes=[
                "Learned: by gradient descent. Annealed: it follows from T₀ and γ. Searched: a"
                " trial of the search draws it. Chosen on dev: by the lowest CE on the Pareto"
                " front. Of K_min the paper gives no value. The defaults from K_min on are those"
                " of the gumbel solver; of them, the default solver (exact) has K_max alone."
            ],
        )
    }
    choices = chosen_rows(study)
    if choices:
        tables["parameters-chosen"] = Table(
            "What the searches chose: median over seeds, with the smallest and largest",
            ["dataset", *VARIED, "size K*", "signs", "kinds of CE"],
            choices,
            notes=[
                "The trial with the lowest dev CE of each seed, of six searches (three kinds of CE,"
                f" both signs) of {counted(study.trials, 'trial')} each, on random-select members."
                " The paper does not print what its searches chose."
            ],
        )
    return Section("parameters", "Parameters", tables)


def printed_range(printed: paper.Row) -> str | None:
    """The range that the paper's text gives for a parameter."""
    low = printed["low"]
    high = printed["high"]
    if printed["scale"] == "either":
        return f"{low:g} or +{high:g}"
    if low is None and high is not None:
        return setting_text(high)
    if low is None:
        return None
    return range_text(low, high, printed["scale"] == "log")


def space_range(name: str) -> str | None:
    """The range of a parameter in `SearchSpace.paper`."""
    space = SearchSpace.paper().to_dict()
    if name not in space:
        return None
    value = space[name]
    if isinstance(value, dict):
        return range_text(value["low"], value["high"], value["log"])
    if isinstance(value, list):
        return " or ".join(value)
    return setting_text(value)


def range_text(low: float, high: float, log: bool) -> str:
    """Both ends of a range, and whether it is on a log scale."""
    text = f"{low:g} to {high:g}"
    if log:
        text += ", log scale"
    return text


def preset_value(name: str, preset: str) -> str | None:
    """The value of a parameter in a preset with the gumbel solver."""
    if name in OBJECTIVE_FIELDS:
        return setting_text(getattr(preset_objective(preset), OBJECTIVE_FIELDS[name]))
    if name in GumbelSteps.__dataclass_fields__:
        value = getattr(preset_solver(preset, "gumbel"), name)
        if name == "max_members" and value is None:
            return "all members"
        return setting_text(value)
    return None


def setting_text(value: object) -> str | None:
    """A number in the fewest digits, or a text unchanged."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return f"{value:g}"
    return str(value)


def chosen_rows(study: Study) -> list[list[Cell]]:
    """A row for each dataset: what the searches of all seeds chose."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        trials = searched(study, dataset, PAPERS_POOL)
        if isinstance(trials, Missing):
            continue
        best = [chosen(trials, seed) for seed in range(study.seeds)]
        cells: list[Cell] = [dataset]
        for name in VARIED:
            cells.append(spread_text([trial.settings[name] for trial in best]))
        cells.append(spread_text([trial.size for trial in best]))
        cells.append(counts_text(SIGNS, [trial.diversity for trial in best]))
        cells.append(counts_text(VARIANTS, [trial.variant for trial in best]))
        rows.append(cells)
    return rows


def spread_text(values: Sequence[float]) -> str:
    """The median with the smallest and the largest value."""
    return f"{np.median(values):.2g} [{min(values):.2g}, {max(values):.2g}]"


def counts_text(names: Sequence[str], values: Sequence[str]) -> str:
    """How often each name is among the values, without those that never are."""
    counts = [f"{values.count(name)} {name}" for name in names if name in values]
    return ", ".join(counts)
