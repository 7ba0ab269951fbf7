"""Sentences and the table made of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from edokit._errors import counted
from edokit._io.markup import Cell, Table
from edokit.analysis.compare.method import EDO
from edokit.analysis.compare.result import ComparedData, Comparison
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Score, lowest_score
from edokit.analysis.scores.text import SHARES, difference, headline_sentences
from edokit.metrics import METRIC


def headline(comparison: Comparison) -> list[str]:
    """Sentences where EDO (else the best method) is not better than the constant."""
    rivals = {score.name: score for score in comparison.scores if score.name != CONSTANT}
    score = rivals.get(EDO)
    if score is None:
        score = lowest_score(list(rivals.values()))
    return headline_sentences(
        score,
        comparison[CONSTANT],
        comparison.data.items["test"],
        subject=score.name,
        source=comparison.data.constant.source,
    )


def table(comparison: Comparison) -> Table:
    """The main metrics, and the CE (RPS) against constant and uniform, in 80 characters."""
    scores = comparison.scores
    data = comparison.data
    notes = [f"The lowest possible CE on these soft labels is {data.best_possible['ce']:.4f}."]
    rows: list[list[Cell]] = []
    if scores[0].intervals:
        columns = [f"Δ {CONSTANT}", f"Δ {UNIFORM}"]
        notes.append(_interval_note(comparison))
        for score in scores:
            rows.append(_tested_row(score))
    else:
        columns = ["size"]
        for score in scores:
            rows.append([score.name, *score.metrics.values(), score.size])
    notes.extend(_skipped_notes(comparison))
    labels = [METRIC[metric].label for metric in scores[0].metrics]
    header = ["method", *labels, *columns]
    return Table(_title(data, len(rows)), header, rows, notes, _best_cells(scores))


def _interval_note(comparison: Comparison) -> str:
    lowest = comparison.lowest
    short = METRIC[lowest.headline].short
    data = comparison.data
    return (
        f"Δ: {data.level:.0%} interval of the {short} less that of"
        f" {CONSTANT} ({SHARES[data.constant.source]}) and of the uniform mean."
        f" ≈: not significantly above the lowest {short}, {lowest.name}'s."
    )


def _skipped_notes(comparison: Comparison) -> list[str]:
    """A sentence per reason, with the methods that were left out for it."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in comparison.skipped.items():
        names_by_reason.setdefault(reason, []).append(name)
    return [f"Without {', '.join(names)}: {reason}." for reason, names in names_by_reason.items()]


def _title(data: ComparedData, methods: int) -> str:
    sizes: dict[str, str] = {}
    for split, count in data.items.items():
        sizes[split] = counted(count, "item")
        if data.rows != data.items:
            sizes[split] = f"{counted(data.rows[split], 'pair')} of {sizes[split]}"
    if data.folds is not None:
        return (
            f"{counted(methods, 'method')}, cross-validated on {sizes['dev']} in {data.folds} folds"
        )
    return f"{counted(methods, 'method')}, fitted on {sizes['dev']}, evaluated on {sizes['test']}"


def _best_cells(scores: Sequence[Score]) -> set[tuple[int, int]]:
    """Row and column of the best value of each metric, as it is shown."""
    cells: set[tuple[int, int]] = set()
    for column, metric in enumerate(scores[0].metrics, start=1):
        values = [round(score.metrics[metric], 4) for score in scores]
        best = max(values) if METRIC[metric].higher else min(values)
        for row, value in enumerate(values):
            if value == best:
                cells.add((row, column))
    return cells


def _tested_row(score: Score) -> list[Cell]:
    """The metrics, and the headline metric against constant and uniform mean."""
    cells: list[Cell] = [score.name, *score.metrics.values()]
    mark = "≈" if score.within_noise else " "
    column = 1 + list(score.metrics).index(score.headline)
    cells[column] = f"{score.headline_value:.4f}{mark}"
    cells.append(difference(score.against_constant.get(score.headline)))
    cells.append(difference(score.against.get(score.headline)))
    return cells
