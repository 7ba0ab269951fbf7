"""The best of the paper's table, column by column, against one row of ours that dev chose."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._io.markup import Cell, Table
from edokit.reproduce.benchmark import PAPERS, printed
from edokit.reproduce.effects import HEADS, METRICS, Outcome
from edokit.reproduce.methods import HeldOut, held_out_ce, method_outcome
from edokit.reproduce.section import Section
from edokit.reproduce.study import DATASETS, EVERYTHING, Missing, Study

NAME = "bars"
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


def bars(study: Study) -> Section:
    """Per dataset and column: the paper's best, ours, and whether ours is better."""
    rows: list[list[Cell]] = []
    candidates: list[list[Cell]] = []
    values = {}
    for dataset in DATASETS:
        best = best_printed(dataset)
        found = choice(study, dataset)
        if isinstance(found, Missing):
            why = f"not available: {found.reason}"
            rows.append([dataset, why, *_cells(None, best), ""])
            continue
        rows.append([dataset, found.name, *_cells(found.outcome, best), _won(found.outcome, best)])
        values[dataset] = {
            "row": found.name,
            "held_out_ce": found.held_out.ce,
            "held_out_items": found.held_out.items,
            **{m: found.outcome.mean(m) for m in METRICS},
            "paper": best,
        }
        for (pool, method), score in sorted(
            held_out_ce(study, dataset, candidates_of(study, dataset), METHODS).items(),
            key=lambda pair: (-pair[1].items, pair[1].ce),
        ):
            one = method_outcome(study, dataset, pool, method)
            assert isinstance(one, Outcome)
            candidates.append(
                [dataset, pool, method, *score, *(one.mean(metric) for metric in METRICS)]
            )
    header = ["dataset", "our row"]
    for metric in METRICS:
        header += [HEADS[metric], f"{HEADS[metric]} spread", f"{HEADS[metric]} to beat"]
    return Section(
        NAME,
        "The paper's best figures against ours",
        {
            "bars": Table(
                "The best of the paper's benchmark table per column, against one row of ours"
                " chosen on dev (test, mean of the seeds)",
                [*header, "better in"],
                rows,
                notes=[
                    "The row is the one with the lowest CE on held-out fifths of dev. Pools that"
                    " were cross-fitted are told apart by all items of train and dev, and the best"
                    " of them is held against the others on dev. Where the paper's table prints"
                    " sigmoid(CE), the CE to beat is un-squashed. Members are not the paper's."
                ],
            ),
            "bars-candidates": Table(
                "The rows that dev chose from: most held-out items first, then lowest CE",
                [
                    *("dataset", "pool", "method", "held-out items", "held-out CE", "on dev"),
                    *(HEADS[m] for m in METRICS),
                ],
                candidates,
            ),
        },
        values={"bars": values},
    )


def candidates_of(study: Study, dataset: str) -> list[str]:
    """All pools that are there, and all of them joined."""
    return [*study.pools[dataset], EVERYTHING]


def best_printed(dataset: str) -> dict[str, float]:
    """The best of each column, CE un-squashed."""
    told = [printed(line.printed, dataset) for line in PAPERS]
    rows = [row for row in told if row is not None]
    return {m: (max if m == "f1" else min)(row[m] for row in rows) for m in METRICS}


def choice(study: Study, dataset: str) -> Chosen | Missing:
    """The row with the lowest CE on held-out items.

    Where members were cross-fitted, each item of train was held out as those of dev were, so such
    pools are told apart by all of them; the best of the others is held against the best of these
    on the items that both have, dev's.
    """
    people = study.people(dataset)
    if isinstance(people, Missing):
        return people
    scores = held_out_ce(study, dataset, candidates_of(study, dataset), METHODS)
    if not scores:
        return Missing(f"there are no predictions for {dataset}")
    most = max(score.items for score in scores.values())
    finalists = [min((k for k in scores if scores[k].items == most), key=lambda k: scores[k].ce)]
    if fewer := [k for k in scores if scores[k].items < most]:
        finalists.append(min(fewer, key=lambda k: scores[k].dev_ce))
    key = min(finalists, key=lambda k: scores[k].dev_ce)
    by_dev = min(scores, key=lambda k: scores[k].dev_ce)

    def row(pool: str, method: str, other: Chosen | None) -> Chosen:
        found = method_outcome(study, dataset, pool, method)
        assert isinstance(found, Outcome)
        return Chosen(pool, method, scores[pool, method], found, other)

    return row(*key, None if by_dev == key else row(*by_dev, None))


def _cells(found: Outcome | None, best: dict[str, float]) -> list[Cell]:
    cells: list[Cell] = []
    for metric in METRICS:
        cells.append(None if found is None else found.mean(metric))
        cells.append(None if found is None else found.spread(metric))
        cells.append(best[metric])
    return cells


def _won(found: Outcome, best: dict[str, float]) -> str:
    won = [
        HEADS[m]
        for m in METRICS
        if (found.mean(m) > best[m] if m == "f1" else found.mean(m) < best[m])
    ]
    return ", ".join(won) or "none"
