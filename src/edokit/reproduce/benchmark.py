"""The benchmark table: every method, ours beside the paper's, CE un-squashed."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._io.markup import Cell, Table
from edokit._types import Floats
from edokit.reproduce import paper
from edokit.reproduce.checks_paper import unsquashed
from edokit.reproduce.effects import HEADS, METRICS, Outcome
from edokit.reproduce.fixed import pooled
from edokit.reproduce.methods import method_answers, method_outcome, single_outcome
from edokit.reproduce.searches import chosen, searched, searched_outcome
from edokit.reproduce.section import Section, difference
from edokit.reproduce.study import DATASETS, EVERYTHING, Missing, Study

NAME = "benchmark"
SEARCHED, SINGLE = "searched", "single"


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    label: str
    pool: str
    method: str
    printed: str | None = None
    """Its name in the paper."""

    def outcome(self, study: Study, dataset: str) -> Outcome | Missing:
        """Its scores on a dataset."""
        if self.method == SEARCHED:
            return searched_outcome(study, dataset, self.pool)
        if self.method == SINGLE:
            return single_outcome(study, dataset, self.pool)
        return method_outcome(study, dataset, self.pool, self.method)

    def answers(self, study: Study, dataset: str) -> tuple[list[Floats], list[int]] | Missing:
        """Its probabilities for the test items [N, C] and its size, seed by seed."""
        members = study.pool(dataset, self.pool)
        if isinstance(members, Missing):
            return members
        if self.method == SINGLE:
            names = members.test.members[: study.seeds]
            return [members.of([name]).test.uniform for name in names], [1] * len(names)
        if self.method == SEARCHED:
            trials = searched(study, dataset, self.pool)
            if isinstance(trials, Missing):
                return trials
            best = [chosen(trials, seed) for seed in range(study.seeds)]
            pools = [pooled(members.drawn(one.seed), one.weights)[1] for one in best]
            return [one.probabilities for one in pools], [one.size for one in best]
        found = method_answers(study, dataset, self.pool, self.method)
        if isinstance(found, Missing):
            return found
        return [test.probabilities for _, test, _ in found], [size for *_, size in found]


PAPERS = (
    Line("Soft-CE", "soft-ce", SINGLE, "Soft-CE"),
    Line("Soft-MD", "soft-md", SINGLE, "Soft-MD"),
    Line("Top-5 Voting", "random-select", "top-5", "Top-5 Voting"),
    Line("WEL", "random-select", "wel", "WEL"),
    Line("EDO-Random", "random-select", SEARCHED, "EDO-Random"),
    Line("EDO-PerAnn", "per-annotator", SEARCHED, "EDO-PerAnn"),
)
"""The paper's rows."""
OURS = (
    Line("WEL, CE in its loss", "random-select", "wel-ce"),
    Line("plain mean", "random-select", "uniform"),
    Line("best single member", "random-select", "best-single"),
    Line("greedy selection", "random-select", "greedy"),
    Line("linear pool", "random-select", "linear-pool"),
    Line("log pool", "random-select", "log-pool"),
    Line("EDO, fixed settings", "random-select", "edo-paper-fixed"),
    Line("EDO, settled on dev", "random-select", "edo"),
    Line("plain mean", "soft-ce", "uniform"),
    Line("EDO, settled on dev", "soft-ce", "edo"),
    Line("EDO, settled on dev", "per-annotator", "edo"),
    Line("plain mean", "mixed", "uniform"),
    Line("EDO, settled on dev", "mixed", "edo"),
    Line("plain mean", "cross-fitted", "uniform"),
    Line("EDO, settled on dev", "cross-fitted", "edo"),
    Line("plain mean", EVERYTHING, "uniform"),
    Line("EDO, settled on dev", EVERYTHING, "edo"),
    Line("EDO, groups", EVERYTHING, "edo-groups"),
    Line("EDO, groups, log pool", EVERYTHING, "edo-groups-log"),
)
"""More rows, for orientation."""


def benchmark(study: Study) -> Section:
    """A table per dataset with spreads and the paper's figures, and all of it at a glance."""
    tables = {"benchmark": _glance(study)}
    for dataset in DATASETS:
        tables[f"benchmark-{dataset}"] = _dataset_table(study, dataset)
    values = {
        dataset: [
            {
                "row": line.label,
                "pool": line.pool,
                **{m: found.mean(m) for m in METRICS},
                **{f"{m}_spread": found.spread(m) for m in METRICS},
            }
            for line in (*PAPERS, *OURS)
            if isinstance(found := line.outcome(study, dataset), Outcome)
        ]
        for dataset in DATASETS
    }
    return Section(NAME, "Benchmark table", tables, values={"rows": values})


def printed(method: str | None, dataset: str) -> dict[str, float] | None:
    """The paper's row, its CE un-squashed."""
    told = None if method is None else paper.row("benchmark", method=method, dataset=dataset)
    if told is None:
        return None
    scores = {m: float(told[m]) for m in METRICS}
    return {**scores, "ce": unsquashed(told["method"], scores["ce"])}


def _glance(study: Study) -> Table:
    rows: list[list[Cell]] = []
    for line in (*PAPERS, *OURS):
        cells: list[Cell] = [line.label, line.pool]
        for dataset in DATASETS:
            found = line.outcome(study, dataset)
            cells += [None if isinstance(found, Missing) else found.mean(m) for m in METRICS]
        if any(cell is not None for cell in cells[2:]):
            rows.append(cells)
    header = ["method", "pool", *(f"{d} {HEADS[m]}" for d in DATASETS for m in METRICS)]
    return Table(
        "Our members: every method on every dataset (test, mean of the seeds)", header, rows
    )


def _dataset_table(study: Study, dataset: str) -> Table:
    rows: list[list[Cell]] = []
    for line in (*PAPERS, *OURS):
        found = line.outcome(study, dataset)
        told = printed(line.printed, dataset)
        if isinstance(found, Missing) and told is None:
            continue
        cells: list[Cell] = [line.label, line.pool]
        for metric in METRICS:
            ours = None if isinstance(found, Missing) else found.mean(metric)
            theirs = None if told is None else told[metric]
            cells.append(ours)
            cells.append(None if isinstance(found, Missing) else found.spread(metric))
            cells += [theirs, difference(ours, theirs)]
        cells.append(f"not available: {found.reason}" if isinstance(found, Missing) else "")
        rows.append(cells)
    header = ["method", "pool"]
    for metric in METRICS:
        name = HEADS[metric]
        header += [name, f"{name} spread", f"{name} paper", f"{name} difference"]
    return Table(
        f"{dataset}: every method, ours beside the paper's (test)",
        [*header, "note"],
        rows,
        notes=[
            "Spread: standard deviation between seeds. The paper's CE is un-squashed where it"
            " printed a sigmoid (Soft-MD: presumably). EDO-Random and EDO-PerAnn: the lowest dev CE"
            f" of six searches (three variants, both signs) of {study.trials} trials each. Soft-CE"
            " and Soft-MD: single models."
        ],
    )
