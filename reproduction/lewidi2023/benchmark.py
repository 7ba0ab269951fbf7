"""The benchmark table, the paper's best figures against ours, and sharper predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from reproduction.outcomes import HEADS, Outcome, effect
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
    """Its name in the paper."""

    def outcome(self, study: Study, dataset: str) -> Outcome | Missing:
        """Its scores on a dataset."""
        if self.method == SEARCHED:
            return searched_outcome(study, dataset, self.pool)
        if self.method == SINGLE:
            return single_outcome(study, dataset, self.pool)
        return method_outcome(study, dataset, self.pool, self.method)

    def predicted(self, study: Study, dataset: str) -> tuple[list[Floats], list[int]] | Missing:
        """Its probabilities for the test items [N, C] and its size, seed by seed."""
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
        return [test.probabilities for _, test, _ in predictions], [
            size for *_, size in predictions
        ]


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
    for dataset in DATASETS:
        tables[f"benchmark-{dataset}"] = _dataset_table(study, dataset)
    values = {
        dataset: [
            {
                "row": line.label,
                "pool": line.pool,
                **{m: outcome.mean(m) for m in MAIN_METRICS},
                **{f"{m}_spread": outcome.spread(m) for m in MAIN_METRICS},
            }
            for line in (*PAPERS, *OURS)
            if isinstance(outcome := line.outcome(study, dataset), Outcome)
        ]
        for dataset in DATASETS
    }
    return Section("benchmark", "Benchmark table", tables, values={"rows": values})


def paper_scores(method: str | None, dataset: str) -> dict[str, float] | None:
    """The paper's row with its CE un-squashed."""
    paper_row = None if method is None else paper.row("benchmark", method=method, dataset=dataset)
    if paper_row is None:
        return None
    scores = {m: float(paper_row[m]) for m in MAIN_METRICS}
    return {**scores, "ce": unsquashed(paper_row["method"], scores["ce"])}


def printed_ce(method: str | None, dataset: str) -> float | None:
    """The CE of the paper's row as it is printed there."""
    paper_row = None if method is None else paper.row("benchmark", method=method, dataset=dataset)
    return None if paper_row is None else float(paper_row["ce"])


def annotator_limit(study: Study, dataset: str, pool: str) -> str:
    """Whether a per-annotator pool keeps to the paper's K ≤ min A_i on train, in words."""
    members = study.pool(dataset, pool)
    labels = study.labels(dataset, "train")
    if pool != "per-annotator" or isinstance(members, Missing) or isinstance(labels, Missing):
        return ""
    count = len(members.test.members)
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
            cells += [
                None if isinstance(outcome, Missing) else outcome.mean(m) for m in MAIN_METRICS
            ]
        if any(cell is not None for cell in cells[2:]):
            rows.append(cells)
    header = ["method", "pool", *(f"{d} {HEADS[m]}" for d in DATASETS for m in MAIN_METRICS)]
    return Table(
        "Our members: every method on every dataset (test, mean of the seeds)", header, rows
    )


def _dataset_table(study: Study, dataset: str) -> Table:
    rows: list[list[Cell]] = []
    for line in (*PAPERS, *OURS):
        outcome = line.outcome(study, dataset)
        theirs = paper_scores(line.printed, dataset)
        if isinstance(outcome, Missing) and theirs is None:
            continue
        cells: list[Cell] = [line.label, line.pool]
        for metric in MAIN_METRICS:
            mean: float | None = None
            spread: float | None = None
            if not isinstance(outcome, Missing):
                mean = outcome.mean(metric)
                spread = outcome.spread(metric)
            score = None if theirs is None else theirs[metric]
            cells += [mean, spread, score]
            if metric == "ce":
                cells.append(printed_ce(line.printed, dataset))
            cells.append(difference(mean, score))
        if isinstance(outcome, Missing):
            cells.append(f"not available: {outcome.reason}")
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
    """Its CE on held-out parts of the development data."""
    outcome: Outcome
    by_dev: Chosen | None = None
    """The row that the items of dev alone would have chosen, where it is another one."""

    @property
    def name(self) -> str:
        """Method and pool."""
        return f"{self.method} on {self.pool}"


BETTER = "clearly better"
WORSE = "clearly worse"
UNDECIDED = "undecided"
_MARKS = {BETTER: " ▲", WORSE: " ▼", UNDECIDED: ""}


def bars(study: Study) -> Section:
    """Our row beside the uniform mean of its members, a constant answer and the paper's best."""
    rows: list[list[Cell]] = []
    candidates: list[list[Cell]] = []
    values: dict[str, dict[str, Any]] = {}
    p_values: dict[tuple[str, str], float] = {}
    for dataset in DATASETS:
        best = best_printed(dataset)
        choice_of_method = choice(study, dataset)
        if isinstance(choice_of_method, Missing):
            rows.append(
                [dataset, f"not available: {choice_of_method.reason}", *[None] * len(MAIN_METRICS)]
            )
            continue
        uniform = method_outcome(study, dataset, choice_of_method.pool, "uniform")
        constant = constant_outcome(study, dataset)
        assert isinstance(uniform, Outcome)
        assert isinstance(constant, Outcome)
        marks = against_paper(choice_of_method.outcome, best)
        p_values |= {
            (dataset, m): p for m, p in paper_p_values(choice_of_method.outcome, best).items()
        }
        rows.append(
            [
                dataset,
                choice_of_method.name,
                *(_measured(choice_of_method.outcome, m, marks[m]) for m in marks),
            ]
        )
        for name, dataset_values in (
            ("… uniform mean of the same members", uniform),
            ("… constant answer: shares of train", constant),
        ):
            rows.append(["", name, *(dataset_values.mean(m) for m in MAIN_METRICS)])
        if choice_of_method.by_dev is not None:
            name = f"… {choice_of_method.by_dev.name}, by the rule before"
            rows.append(
                ["", name, *(choice_of_method.by_dev.outcome.mean(m) for m in MAIN_METRICS)]
            )
        rows.append(["", "… the paper's best, column by column", *(best[m] for m in MAIN_METRICS)])
        gain = effect(choice_of_method.outcome, uniform, "ce")
        values[dataset] = {
            "row": choice_of_method.name,
            "held_out_ce": choice_of_method.held_out.ce,
            "held_out_items": choice_of_method.held_out.items,
            **{m: choice_of_method.outcome.mean(m) for m in MAIN_METRICS},
            "intervals": {m: choice_of_method.outcome.interval(m) for m in MAIN_METRICS},
            "against_paper": marks,
            "uniform": {m: uniform.mean(m) for m in MAIN_METRICS},
            "ce_less_uniform": [gain.value, gain.low, gain.high],
            "constant": {m: constant.mean(m) for m in MAIN_METRICS},
            "paper": best,
        }
        for (pool, method), score in sorted(
            held_out_ce(study, dataset, candidates_of(study, dataset), METHODS).items(),
            key=lambda pair: (-pair[1].items, pair[1].ce),
        ):
            outcome = method_outcome(study, dataset, pool, method)
            assert isinstance(outcome, Outcome)
            candidates.append(
                [
                    dataset,
                    pool,
                    method,
                    *score[:3],
                    *(outcome.mean(metric) for metric in MAIN_METRICS),
                ]
            )
    all_marks = [mark for entry in values.values() for mark in entry["against_paper"].values()]
    counted = ", ".join(f"{all_marks.count(mark)} {mark}" for mark in _MARKS)
    significant = discoveries(p_values)
    corrected = [
        values[dataset]["against_paper"][metric] for dataset, metric in sorted(significant)
    ]
    counted += (
        "; corrected for so many comparisons (false discovery rate of 5 %)"
        f" {corrected.count(BETTER)} {BETTER}, {corrected.count(WORSE)} {WORSE}"
    )
    return Section(
        "bars",
        "The paper's best figures against ours",
        {
            "bars": Table(
                "One row of ours per dataset, chosen on dev, the uniform mean of its members,"
                " a constant answer and the best of the paper's table (test, mean of the seeds)",
                ["dataset", "row", *(HEADS[m] for m in MAIN_METRICS)],
                rows,
                notes=[
                    "In brackets 95 % intervals over test items. ▲ and ▼: the paper's figure is"
                    f" outside, ours is better or worse. Of {len(all_marks)} cells against the"
                    f" paper: {counted}.",
                    *(
                        f"{dataset}: CE less that of the uniform mean"
                        f" {_change(*dataset_values['ce_less_uniform'])}."
                        for dataset, dataset_values in values.items()
                    ),
                    "The row is the one with the lowest CE on held-out fifths of dev. Pools that"
                    " were cross-fitted are told apart by all items of train and dev, and the best"
                    " of them is held against the others on dev; this second sentence was added"
                    " after test results of ArMIS were known. Where the paper's table prints"
                    " sigmoid(CE), its CE is un-squashed. Members are not the paper's.",
                ],
            ),
            "bars-candidates": Table(
                "The rows that dev chose from: most held-out items first, then lowest CE",
                [
                    *("dataset", "pool", "method", "held-out items", "held-out CE", "on dev"),
                    *(HEADS[m] for m in MAIN_METRICS),
                ],
                candidates,
            ),
        },
        values={"bars": values},
    )


def against_paper(found: Outcome, best: dict[str, float]) -> dict[str, str]:
    """By metric, whether the paper's figure is outside our interval, and on which side."""
    marks = {}
    for metric in MAIN_METRICS:
        low, high = found.interval(metric)
        if low <= best[metric] <= high:
            marks[metric] = UNDECIDED
        else:
            marks[metric] = BETTER if (best[metric] < low) == (metric == "f1") else WORSE
    return marks


def paper_p_values(found: Outcome, best: dict[str, float]) -> dict[str, float]:
    """By metric, the p-value of our mean over test items being the paper's figure."""
    items = found.items.mean(axis=0)
    errors = items.std(axis=1, ddof=1) / np.sqrt(items.shape[1])
    gaps = np.abs(items.mean(axis=1) - [best[metric] for metric in MAIN_METRICS])
    # Items that are all the same leave no doubt.
    z = np.divide(gaps, errors, out=np.where(gaps > 0, np.inf, 0.0), where=errors > 0)
    return dict(zip(MAIN_METRICS, (2 * norm.sf(z)).tolist(), strict=True))


def discoveries(p_values: Mapping[tuple[str, str], float]) -> set[tuple[str, str]]:
    """The comparisons that stay clear at a false discovery rate of 5 % (Benjamini–Hochberg)."""
    adjusted: Any = false_discovery_control(list(p_values.values())) if p_values else []
    return {key for key, p in zip(p_values, adjusted, strict=True) if p <= 0.05}


def _measured(found: Outcome, metric: str, mark: str) -> str:
    low, high = found.interval(metric)
    return f"{found.mean(metric):.4f} [{low:.3f}, {high:.3f}]{_MARKS[mark]}"


def _change(value: float, low: float, high: float) -> str:
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"


def candidates_of(study: Study, dataset: str) -> list[str]:
    """All pools that are there, and all of them joined."""
    return [*study.pools[dataset], EVERYTHING]


def best_printed(dataset: str) -> dict[str, float]:
    """The best of each column, CE un-squashed."""
    paper_lines = [paper_scores(line.printed, dataset) for line in PAPERS]
    rows = [row for row in paper_lines if row is not None]
    return {m: (max if m == "f1" else min)(row[m] for row in rows) for m in MAIN_METRICS}


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
    finalists = [
        min((k for k in scores if scores[k].items == most_items), key=lambda k: scores[k].ce)
    ]
    if fewer := [k for k in scores if scores[k].items < most_items]:
        finalists.append(min(fewer, key=lambda k: scores[k].dev_ce))
    key = min(finalists, key=lambda k: scores[k].dev_ce)
    by_dev = min(scores, key=lambda k: scores[k].dev_ce)

    def row(pool: str, method: str, other: Chosen | None) -> Chosen:
        outcome = method_outcome(study, dataset, pool, method)
        assert isinstance(outcome, Outcome)
        return Chosen(pool, method, scores[pool, method], outcome, other)

    return row(*key, None if by_dev == key else row(*by_dev, None))


def trade(study: Study) -> Section:
    """The chosen row of each dataset with its odds to several powers."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        chosen_row = choice(study, dataset)
        if isinstance(chosen_row, Missing):
            continue
        held_out = chosen_row.held_out
        for at, power in enumerate(POWERS):
            sharpened_outcome = sharpened(study, dataset, chosen_row, power)
            chosen_on_dev = ", chosen" if power == held_out.power else ""
            rows.append(
                [
                    dataset,
                    f"{chosen_row.method} on {chosen_row.pool}",
                    power,
                    *held_out.sharpened[at, :3].tolist(),
                    ("yes" if held_out.front[at] else "no") + chosen_on_dev,
                    *(sharpened_outcome.mean(m) for m in MAIN_METRICS),
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
