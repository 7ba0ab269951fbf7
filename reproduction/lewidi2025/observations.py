"""What the tables on dev show, in sentences whose figures are computed from their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edokit._types import Floats
from reproduction.lewidi2025.study import CONSTANT, KNOWN, Row, chosen, interval

Tables = Mapping[str, Mapping[str, Sequence[Row]]]
"""Rows of tasks A and B, by dataset."""
POOL = "annotators"
"""The pool of members that learned annotators; it also has anonymous answers."""


def observations(tables: Tables) -> Iterator[str]:
    """Sentences about constant answers, known annotators and objectives."""
    yield _against_constant(tables)
    yield _with_the_same_step(tables)
    yield from _known_annotators(tables)
    for objective in ("W1", "RPS"):
        sentence = _against_ce(tables, objective)
        if sentence is not None:
            yield sentence


def _against_constant(tables: Tables) -> str:
    """The chosen rows less the constant answers, and where they are not clearly below."""
    parts = []
    unclear = []
    for dataset, tasks in tables.items():
        for task in ("A", "B"):
            constant = next(row for row in tasks[task] if row.pool == CONSTANT)
            gap = chosen(tasks[task]).score - constant.score
            parts.append(f"{dataset} {task} {_shown(gap)}")
            if interval(gap)[1] >= 0:
                unclear.append(f"{dataset} {task}")
    verdict = "all are clearly below"
    if unclear:
        verdict = f"not clearly below it: {', '.join(unclear)}"
    return f"Chosen row less constant answer, with 95 % intervals: {'; '.join(parts)}; {verdict}."


def _with_the_same_step(tables: Tables) -> str:
    """The constant answer made for the metric of task A, beside the chosen row."""
    parts = []
    for dataset, tasks in tables.items():
        stepped = next(row for row in tasks["A"] if row.pool == CONSTANT and row.answer_for)
        parts.append(f"{dataset} {stepped.mean:.4f} (chosen {chosen(tasks['A']).mean:.4f})")
    return f"A constant answer made for the metric, as chosen rows are, has {', '.join(parts)}."


def _known_annotators(tables: Tables) -> Iterator[str]:
    """Uniform means of answers for the annotators of an item, less the anonymous ones."""
    for task in ("A", "B"):
        parts = []
        for dataset, tasks in tables.items():
            uniform = {
                row.pool: row.score
                for row in tasks[task]
                if row.method == "uniform" and row.answer_for is None
            }
            if POOL in uniform and POOL + KNOWN in uniform:
                parts.append(f"{dataset} {_shown(uniform[POOL + KNOWN] - uniform[POOL])}")
        if parts:
            yield (
                f"Knowing the annotators changes task {task} (uniform mean of the pool"
                f" `{POOL}`) by {'; '.join(parts)}."
            )


def _against_ce(tables: Tables, objective: str) -> str | None:
    """How weights learned by an objective score in task A, less those learned by CE."""
    gaps: list[Floats] = []
    for tasks in tables.values():
        score_by_row = {
            (row.pool, row.method): row.score for row in tasks["A"] if not row.answer_for
        }
        gaps += [
            score - score_by_row[pool, "EDO, CE"]
            for (pool, method), score in score_by_row.items()
            if method == f"EDO, {objective}"
        ]
    if not gaps:
        return None
    lower = [gap for gap in gaps if gap.mean() < 0]
    higher = [gap for gap in gaps if gap.mean() > 0]
    return (
        f"{objective} as the objective has a lower task A score than CE on {len(lower)} of"
        f" {len(gaps)} pools of ordinal datasets, {sum(interval(gap)[1] < 0 for gap in lower)} of"
        f" them with 0 outside the interval, and a higher one on {len(higher)},"
        f" {sum(interval(gap)[0] > 0 for gap in higher)} of them with 0 outside."
    )


def _shown(gap: Floats) -> str:
    low, high = interval(gap)
    return f"{gap.mean():+.4f} [{low:+.4f}, {high:+.4f}]"
