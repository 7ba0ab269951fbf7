"""The benchmark table, the paper's best figures against ours, and sharper predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control, norm

from edokit._errors import counted
from edokit._io.markup import Cell, Table
from edokit._types import Floats
from edokit.metrics import MAIN_METRICS
from reproduction import paper
from reproduction.lewidi2023.configurations import chosen, pooled, searched, searched_outcome
from reproduction.lewidi2023.methods import (
    POWERS,
    HeldOut,
    constant_outcome,
    held_out_ce,
    method_outcome,
    method_predictions,
    single_outcome,
)
from reproduction.lewidi2023.paper_checks import unsquashed
from reproduction.lewidi2023.study import DATASETS, EVERYTHING, Missing, Study
from reproduction.outcomes import HEADS, Effect, Outcome, effect
from reproduction.section import Section, difference, signed

SEARCHED = "searched"
SINGLE = "single"


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    label: str
    pool: str
    method: str
    printed: str | None = None
    """The name of the row in the paper."""

    def outcome(self, study: Study, dataset: str) -> Outcome | Missing:
        """The scores on a dataset."""
        if self.method == SEARCHED:
            return searched_outcome(study, dataset, self.pool)
        if self.method == SINGLE:
            return single_outcome(study, dataset, self.pool)
        return method_outcome(study, dataset, self.pool, self.method)

    def predicted(self, study: Study, dataset: str) -> tuple[list[Floats], list[int]] | Missing:
        """The probabilities for the test items [N, C] and the size, seed by seed."""
        members = study.pool(dataset, self.pool)
        if isinstance(members, Missing):
            return members
        if self.method == SINGLE:
            names = members.test.members[: study.seeds]
            return [members.select([name]).test.uniform for name in names], [1] * len(names)
        if self.method == SEARCHED:
            trials = searched(study, dataset, self.pool)
            if isinstance(trials, Missing):
                return trials
            best = [chosen(trials, seed) for seed in range(study.seeds)]
            pools = [pooled(members.sampled(trial.seed), trial.weights)[1] for trial in best]
            return [pool.probabilities for pool in pools], [trial.size for trial in best]
        predictions = method_predictions(study, dataset, self.pool, self.method)
        if isinstance(predictions, Missing):
            return predictions
        probabilities = [test.probabilities for _, test, _ in predictions]
        return probabilities, [size for *_, size in predictions]


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
    Line("uniform mean", "random-select", "uniform"),
    Line("best single member", "random-select", "best-single"),
    Line("greedy selection", "random-select", "greedy"),
    Line("linear pool", "random-select", "linear-pool"),
    Line("log pool", "random-select", "log-pool"),
    Line("EDO, fixed settings", "random-select", "edo-paper-fixed"),
    Line("EDO, default", "random-select", "edo"),
    Line("uniform mean", "soft-ce", "uniform"),
    Line("EDO, default", "soft-ce", "edo"),
    Line("EDO, default", "per-annotator", "edo"),
    Line("uniform mean", "mixed", "uniform"),
    Line("EDO, default", "mixed", "edo"),
    Line("uniform mean", "cross-fitted", "uniform"),
    Line("EDO, default", "cross-fitted", "edo"),
    Line("uniform mean", EVERYTHING, "uniform"),
    Line("EDO, default", EVERYTHING, "edo"),
    Line("EDO, groups", EVERYTHING, "edo-groups"),
    Line("EDO, groups, log pool", EVERYTHING, "edo-groups-log"),
)
"""More rows, for orientation."""


def benchmark(study: Study) -> Section:
    """A table per dataset with spreads and the paper's figures, and all of it at a glance."""
    tables = {"benchmark": _glance(study)}
    values = {}
    for dataset in DATASETS:
        tables[f"benchmark-{dataset}"] = _dataset_table(study, dataset)
        values[dataset] = _dataset_values(study, dataset)
    return Section("benchmark", "Benchmark table", tables, values={"rows": values})


def _dataset_values(study: Study, dataset: str) -> list[dict[str, str | float]]:
    """The scores of every method with their spreads, ready for JSON."""
    values: list[dict[str, str | float]] = []
    for line in (*PAPERS, *OURS):
        outcome = line.outcome(study, dataset)
        if isinstance(outcome, Missing):
            continue
        spreads = {f"{metric}_spread": outcome.spread(metric) for metric in MAIN_METRICS}
        values.append({"row": line.label, "pool": line.pool, **outcome.means(), **spreads})
    return values


def paper_scores(method: str | None, dataset: str) -> dict[str, float] | None:
    """The scores of the paper's row with its CE un-squashed."""
    paper_row = _printed_row(method, dataset)
    if paper_row is None:
        return None
    scores = {metric: float(paper_row[metric]) for metric in MAIN_METRICS}
    return {**scores, "ce": unsquashed(paper_row["method"], scores["ce"])}


def printed_ce(method: str | None, dataset: str) -> float | None:
    """The CE of the paper's row as printed."""
    paper_row = _printed_row(method, dataset)
    if paper_row is None:
        return None
    return float(paper_row["ce"])


def _printed_row(method: str | None, dataset: str) -> paper.Row | None:
    if method is None:
        return None
    return paper.row("benchmark", method=method, dataset=dataset)


def annotator_limit(study: Study, dataset: str, pool: str) -> str:
    """A sentence on whether a per-annotator pool keeps to the paper's K ≤ min A_i on train.

    K is the number of members of one seed.
    """
    members = study.pool(dataset, pool)
    labels = study.labels(dataset, "train")
    if pool != "per-annotator" or isinstance(members, Missing) or isinstance(labels, Missing):
        return ""
    count = len(members.sampled(0).fit.members)
    fewest = int(labels.annotations.annotations_per_item.min())
    if count <= fewest:
        return f"K ≤ min A_i holds: {count} members, at least {fewest} annotators per item"
    return (
        f"K ≤ min A_i is switched off: {count} members, an item has {counted(fewest, 'annotator')}"
    )


def _glance(study: Study) -> Table:
    rows: list[list[Cell]] = []
    for line in (*PAPERS, *OURS):
        cells: list[Cell] = [line.label, line.pool]
        for dataset in DATASETS:
            outcome = line.outcome(study, dataset)
            if isinstance(outcome, Missing):
                cells += [None] * len(MAIN_METRICS)
            else:
                cells += _main_scores(outcome)
        if any(cell is not None for cell in cells[2:]):
            rows.append(cells)
    header = ["method", "pool"]
    for dataset in DATASETS:
        header += [f"{dataset} {HEADS[metric]}" for metric in MAIN_METRICS]
    return Table(
        "Our members: every method on every dataset (test, mean of the seeds)", header, rows
    )


def _dataset_table(study: Study, dataset: str) -> Table:
    rows: list[list[Cell]] = []
    for line in (*PAPERS, *OURS):
        outcome = line.outcome(study, dataset)
        printed_scores = paper_scores(line.printed, dataset)
        if isinstance(outcome, Missing) and printed_scores is None:
            continue
        cells: list[Cell] = [line.label, line.pool]
        for metric in MAIN_METRICS:
            mean: float | None = None
            spread: float | None = None
            if not isinstance(outcome, Missing):
                mean = outcome.mean(metric)
                spread = outcome.spread(metric)
            printed: float | None = None
            if printed_scores is not None:
                printed = printed_scores[metric]
            cells += [mean, spread, printed]
            if metric == "ce":
                cells.append(printed_ce(line.printed, dataset))
            cells.append(difference(mean, printed))
        if isinstance(outcome, Missing):
            cells.append(outcome.note)
        else:
            cells.append(annotator_limit(study, dataset, line.pool))
        rows.append(cells)
    header = ["method", "pool"]
    for metric in MAIN_METRICS:
        name = HEADS[metric]
        header += [name, f"{name} spread", f"{name} paper"]
        if metric == "ce":
            header.append(f"{name} paper, as printed")
        header.append(f"{name} difference")
    return Table(
        f"{dataset}: every method, ours beside the paper's (test)",
        [*header, "note"],
        rows,
        notes=[
            "Spread: standard deviation between seeds. CE paper: un-squashed where the paper"
            " printed a sigmoid (Soft-MD: presumably); the difference is to this one. EDO-Random"
            " and EDO-PerAnn: the lowest dev CE of six searches (three variants, both signs) of"
            f" {study.trials} trials each. Soft-CE and Soft-MD: single models."
        ],
    )


METHODS = ("uniform", "linear-pool", "log-pool", "edo", "edo-log", "edo-groups", "edo-groups-log")


@dataclass(frozen=True)
class Chosen:
    """The row that the development data chose."""

    pool: str
    method: str
    held_out: HeldOut
    """Scores on held-out parts of the development data."""
    outcome: Outcome
    by_dev: Chosen | None = None
    """The row that the items of dev alone would have chosen, if it is a different one."""

    @property
    def name(self) -> str:
        """Method and pool."""
        return f"{self.method} on {self.pool}"


BETTER = "clearly better"
WORSE = "clearly worse"
UNDECIDED = "undecided"
_MARKS = {BETTER: " ▲", WORSE: " ▼", UNDECIDED: ""}


@dataclass(frozen=True)
class Comparison:
    """The chosen row of a dataset beside a uniform mean, a constant answer and the paper's best."""

    chosen: Chosen
    uniform: Outcome
    """Uniform mean of the same members."""
    constant: Outcome
    """The shares of train as the answer for every item."""
    paper: dict[str, float]
    """The best figure of each column of the paper's table."""

    @cached_property
    def marks(self) -> dict[str, str]:
        """By metric, how the chosen row compares with the paper."""
        return against_paper(self.chosen.outcome, self.paper)

    @cached_property
    def ce_less_uniform(self) -> Effect:
        """Test CE of the chosen row less that of the uniform mean."""
        return effect(self.chosen.outcome, self.uniform, "ce")

    def rows(self, dataset: str) -> list[list[Cell]]:
        """The rows of the table for this dataset."""
        outcome = self.chosen.outcome
        cells = [_measured(outcome, metric, mark) for metric, mark in self.marks.items()]
        rows: list[list[Cell]] = [
            [dataset, self.chosen.name, *cells],
            ["", "… uniform mean of the same members", *_main_scores(self.uniform)],
            ["", "… constant answer: shares of train", *_main_scores(self.constant)],
        ]
        by_dev = self.chosen.by_dev
        if by_dev is not None:
            rows.append(["", f"… {by_dev.name}, by the rule before", *_main_scores(by_dev.outcome)])
        best = [self.paper[metric] for metric in MAIN_METRICS]
        rows.append(["", "… the paper's best, column by column", *best])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        outcome = self.chosen.outcome
        gain = self.ce_less_uniform
        return {
            "row": self.chosen.name,
            "held_out_ce": self.chosen.held_out.ce,
            "held_out_items": self.chosen.held_out.items,
            **outcome.means(),
            "intervals": {metric: outcome.interval(metric) for metric in MAIN_METRICS},
            "against_paper": self.marks,
            "uniform": self.uniform.means(),
            "ce_less_uniform": [gain.value, gain.low, gain.high],
            "constant": self.constant.means(),
            "paper": self.paper,
        }


def compare(study: Study, dataset: str) -> Comparison | Missing:
    """The chosen row of a dataset beside what it has to beat."""
    chosen_row = choice(study, dataset)
    if isinstance(chosen_row, Missing):
        return chosen_row
    uniform = method_outcome(study, dataset, chosen_row.pool, "uniform")
    constant = constant_outcome(study, dataset)
    assert isinstance(uniform, Outcome)
    assert isinstance(constant, Outcome)
    return Comparison(chosen_row, uniform, constant, best_printed(dataset))


def bars(study: Study) -> Section:
    """Our row beside the uniform mean of its members, a constant answer and the paper's best."""
    rows: list[list[Cell]] = []
    candidates: list[list[Cell]] = []
    comparisons: dict[str, Comparison] = {}
    for dataset in DATASETS:
        comparison = compare(study, dataset)
        if isinstance(comparison, Missing):
            rows.append([dataset, comparison.note, *[None] * len(MAIN_METRICS)])
            continue
        comparisons[dataset] = comparison
        rows += comparison.rows(dataset)
        candidates += _candidate_rows(study, dataset)
    metric_heads = [HEADS[metric] for metric in MAIN_METRICS]
    notes = [
        "In brackets 95 % intervals over test items. ▲ and ▼: the paper's figure is outside, ours"
        f" is better or worse. {_counted_marks(comparisons)}"
    ]
    for dataset, comparison in comparisons.items():
        gain = comparison.ce_less_uniform
        change = _change(gain.value, gain.low, gain.high)
        notes.append(f"{dataset}: CE less that of the uniform mean {change}.")
    notes.append(
        "The row is the one with the lowest CE on held-out fifths of dev. Pools that were"
        " cross-fitted are told apart by all items of train and dev, and the best of them is held"
        " against the others on dev; this second sentence was added after test results of ArMIS"
        " were known. Where the paper's table prints sigmoid(CE), its CE is un-squashed. Members"
        " are not the paper's."
    )
    return Section(
        "bars",
        "The paper's best figures against ours",
        {
            "bars": Table(
                "One row of ours per dataset, chosen on dev, the uniform mean of its members,"
                " a constant answer and the best of the paper's table (test, mean of the seeds)",
                ["dataset", "row", *metric_heads],
                rows,
                notes=notes,
            ),
            "bars-candidates": Table(
                "The rows that dev chose from: most held-out items first, then lowest CE",
                [
                    *("dataset", "pool", "method", "held-out items", "held-out CE", "on dev"),
                    *metric_heads,
                ],
                candidates,
            ),
        },
        values={
            "bars": {dataset: comparison.to_dict() for dataset, comparison in comparisons.items()}
        },
    )


def _candidate_rows(study: Study, dataset: str) -> list[list[Cell]]:
    """The rows that dev chose from: most held-out items first, then lowest CE."""
    held_out = held_out_ce(study, dataset, candidates_of(study, dataset), METHODS)
    rows: list[list[Cell]] = []
    for pool, method in sorted(held_out, key=lambda key: (-held_out[key].items, held_out[key].ce)):
        scores = held_out[pool, method]
        outcome = method_outcome(study, dataset, pool, method)
        assert isinstance(outcome, Outcome)
        rows.append(
            [
                dataset,
                pool,
                method,
                scores.items,
                scores.ce,
                scores.dev_ce,
                *_main_scores(outcome),
            ]
        )
    return rows


def _counted_marks(comparisons: Mapping[str, Comparison]) -> str:
    """How many figures are better or worse than the paper's, also corrected for their number."""
    marks: list[str] = []
    p_values: dict[tuple[str, str], float] = {}
    for dataset, comparison in comparisons.items():
        marks += comparison.marks.values()
        by_metric = paper_p_values(comparison.chosen.outcome, comparison.paper)
        for metric, p_value in by_metric.items():
            p_values[dataset, metric] = p_value
    counts = ", ".join(f"{marks.count(mark)} {mark}" for mark in _MARKS)
    corrected = [comparisons[dataset].marks[metric] for dataset, metric in discoveries(p_values)]
    return (
        f"Of {len(marks)} cells against the paper: {counts}; corrected for the number of"
        f" comparisons (false discovery rate of 5 %) {corrected.count(BETTER)} {BETTER},"
        f" {corrected.count(WORSE)} {WORSE}."
    )


def _main_scores(outcome: Outcome) -> list[float]:
    """The scores of a row in the order of the columns."""
    return list(outcome.means().values())


def against_paper(outcome: Outcome, best: dict[str, float]) -> dict[str, str]:
    """By metric, whether the paper's figure is outside our interval, and on which side."""
    marks = {}
    for metric in MAIN_METRICS:
        low, high = outcome.interval(metric)
        higher_is_better = metric == "f1"
        if low <= best[metric] <= high:
            marks[metric] = UNDECIDED
        elif (best[metric] < low) == higher_is_better:
            marks[metric] = BETTER
        else:
            marks[metric] = WORSE
    return marks


def paper_p_values(outcome: Outcome, best: dict[str, float]) -> dict[str, float]:
    """By metric, the p-value of our mean over test items being the paper's figure."""
    items = outcome.items.mean(axis=0)
    errors = items.std(axis=1, ddof=1) / np.sqrt(items.shape[1])
    gaps = np.abs(items.mean(axis=1) - [best[metric] for metric in MAIN_METRICS])
    # Items that are all the same leave no doubt.
    z = np.divide(gaps, errors, out=np.where(gaps > 0, np.inf, 0.0), where=errors > 0)
    return dict(zip(MAIN_METRICS, (2 * norm.sf(z)).tolist(), strict=True))


def discoveries(p_values: Mapping[tuple[str, str], float]) -> set[tuple[str, str]]:
    """The comparisons that stay clear at a false discovery rate of 5 % (Benjamini–Hochberg)."""
    if not p_values:
        return set()
    adjusted = false_discovery_control(list(p_values.values()))
    return {key for key, p in zip(p_values, adjusted, strict=True) if p <= 0.05}


def _measured(outcome: Outcome, metric: str, mark: str) -> str:
    low, high = outcome.interval(metric)
    return f"{outcome.mean(metric):.4f} [{low:.3f}, {high:.3f}]{_MARKS[mark]}"


def _change(value: float, low: float, high: float) -> str:
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"


def candidates_of(study: Study, dataset: str) -> list[str]:
    """The dataset's pools, and the pool that joins them."""
    return [*study.pools[dataset], EVERYTHING]


def best_printed(dataset: str) -> dict[str, float]:
    """The paper's best figure of each metric, CE un-squashed."""
    rows = [paper_scores(line.printed, dataset) for line in PAPERS]
    best = {}
    for metric in MAIN_METRICS:
        figures = [row[metric] for row in rows if row is not None]
        best[metric] = max(figures) if metric == "f1" else min(figures)
    return best


def choice(study: Study, dataset: str) -> Chosen | Missing:
    """The row with the lowest CE on held-out items.

    Where members were cross-fitted, each item of train was held out as those of dev were, so such
    pools are told apart by all of them; the best of the others is held against the best of these
    on the items that both have, dev's.
    """
    annotations = study.annotations(dataset)
    if isinstance(annotations, Missing):
        return annotations
    scores = held_out_ce(study, dataset, candidates_of(study, dataset), METHODS)
    if not scores:
        return Missing(f"there are no predictions for {dataset}")
    most_items = max(score.items for score in scores.values())
    with_most_items = [key for key in scores if scores[key].items == most_items]
    with_fewer_items = [key for key in scores if scores[key].items < most_items]
    finalists = [min(with_most_items, key=lambda key: scores[key].ce)]
    if with_fewer_items:
        finalists.append(min(with_fewer_items, key=lambda key: scores[key].dev_ce))
    best = min(finalists, key=lambda key: scores[key].dev_ce)
    best_on_dev = min(scores, key=lambda key: scores[key].dev_ce)

    def row(pool: str, method: str, by_dev: Chosen | None = None) -> Chosen:
        outcome = method_outcome(study, dataset, pool, method)
        assert isinstance(outcome, Outcome)
        return Chosen(pool, method, scores[pool, method], outcome, by_dev)

    if best_on_dev == best:
        return row(*best)
    return row(*best, by_dev=row(*best_on_dev))


def trade(study: Study) -> Section:
    """The chosen row of each dataset with its odds to several powers."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        chosen_row = choice(study, dataset)
        if isinstance(chosen_row, Missing):
            continue
        held_out = chosen_row.held_out
        for power, dev_scores, is_on_front in zip(
            POWERS, held_out.sharpened, held_out.front, strict=True
        ):
            on_front = "yes" if is_on_front else "no"
            if power == held_out.power:
                on_front += ", chosen"
            rows.append(
                [
                    dataset,
                    chosen_row.name,
                    power,
                    *dev_scores[:3].tolist(),
                    on_front,
                    *_main_scores(sharpened(study, dataset, chosen_row, power)),
                ]
            )
    return Section(
        "trade",
        "Sharpening: cross-entropy against Manhattan distance",
        {
            "trade": Table(
                "Odds of the chosen row to a power: what held-out fifths of dev choose",
                [
                    *("dataset", "row", "power", "dev F1", "dev CE", "dev MD", "on dev's front"),
                    *("F1", "CE", "MD", "BS"),
                ],
                rows,
                notes=[
                    "Power 1 is the row itself; a power of p is a temperature of 1/p after pooling."
                    " Figures of dev are of held-out fifths (of train, too, where members were"
                    " cross-fitted). Chosen is the lowest MD there among the powers whose CE is"
                    " within one standard error of the lowest."
                ],
            )
        },
    )


def sharpened(study: Study, dataset: str, row: Chosen, power: float) -> Outcome:
    """The row's scores with its odds to a power."""
    outcome = method_outcome(study, dataset, row.pool, row.method, power)
    assert isinstance(outcome, Outcome)
    return outcome
