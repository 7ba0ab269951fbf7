"""Sentences and the table made of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edokit._errors import counted, listed, signed
from edokit._io.markup import Cell, Table
from edokit.analysis.compare.method import EDO
from edokit.analysis.compare.result import ComparedData, Comparison
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Score, lowest_score
from edokit.analysis.scores.text import SHARES, difference_interval, headline_sentences, short_ends
from edokit.metrics import METRIC, PairedTest

if TYPE_CHECKING:
    import pandas as pd


# Below, four decimals show nothing.
_SMALLEST_SHOWN = 0.00005


def headline(comparison: Comparison) -> list[str]:
    """Sentences where EDO, or without it the best method, is no better than the constant answer."""
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


def table(comparison: Comparison, *, with_deviations: bool = True) -> Table:
    """The metrics of each method; their deviations over seeds do not fit into 80 characters."""
    scores = comparison.scores
    data = comparison.data
    has_size = not scores[0].intervals
    notes = [f"The lowest possible CE on these soft labels is {data.best_possible['ce']:.4f}."]
    if data.seeds > 1:
        notes.append(_seeds_note(data, with_deviations))
    if scores[0].intervals:
        lowest = comparison.lowest
        short = METRIC[lowest.headline_metric].short
        notes.append(f"≈: not significantly above the lowest {short}, {lowest.name}'s.")
    notes.extend(_skipped_notes(comparison))
    rows: list[list[Cell]] = []
    marks: dict[tuple[int, int], str] = {}
    for number, score in enumerate(scores):
        row: list[Cell] = [score.name, *_value_cells(score, data, with_deviations)]
        if has_size:
            row.append(score.size)
        rows.append(row)
        if score.intervals and score.headline_metric in data.metrics:
            column = 1 + data.metrics.index(score.headline_metric)
            marks[number, column] = "≈" if score.within_noise else " "
    header = ["method", *_metric_labels(data)]
    if has_size:
        header.append("size")
    bold = _best_cells(scores, data.metrics)
    return Table(_title(data, len(rows)), header, rows, notes, bold, marks=marks)


def differences(comparison: Comparison) -> Table:
    """The headline metric against the uniform mean and the constant."""
    data = comparison.data
    metric = data.headline_metric
    short = METRIC[metric].short
    records: list[dict[str, Cell]] = []
    for score in comparison.scores:
        record: dict[str, Cell] = {"method": score.name}
        test = score.against.get(metric)
        record[f"Δ {UNIFORM}"] = _change(test)
        record[f"{100 * data.level:g}%"] = difference_interval(test)
        record["p"] = _p_text(test)
        constant_test = score.against_constant.get(metric)
        record[f"Δ {CONSTANT}"] = _change(constant_test)
        # A space, since the other interval has the same heading.
        record[f"{100 * data.level:g}% "] = difference_interval(constant_test)
        records.append(record)
    notes = [_interval_note(comparison), _p_note(comparison)]
    return Table.from_records(f"Differences in {short}", records, notes)


def paper_table(comparison: Comparison) -> Table:
    """All metrics with marks of significance, and the difference in the headline metric."""
    scores = comparison.scores
    data = comparison.data
    headline_name = data.headline_metric
    has_tests = bool(scores[0].intervals)
    rows: list[list[Cell]] = []
    marks: dict[tuple[int, int], str] = {}
    for number, score in enumerate(scores):
        row: list[Cell] = [score.name, *_value_cells(score, data, with_deviations=True)]
        if has_tests:
            test = score.against.get(headline_name)
            row.extend((_change_with_interval(test), _p_text(test)))
        rows.append(row)
        for column, metric in enumerate(data.metrics, start=1):
            mark = significance(score.against.get(metric), metric, data.level)
            if mark:
                marks[number, column] = mark
    header = ["method", *_metric_labels(data)]
    notes: list[str] = []
    if data.seeds > 1:
        notes.append(_seeds_note(data, with_deviations=True))
    if has_tests:
        short = METRIC[headline_name].short
        header.extend((f"Δ{short} [{100 * data.level:g}%]", "p"))
        notes.append(
            f"Δ: {short} less that of the uniform mean, with its {100 * data.level:g}% interval."
            f" *, †: significantly better, worse than the uniform mean (p ≤ {1 - data.level:.2g})."
        )
        notes.append(_p_note(comparison))
    bold = _best_cells(scores, data.metrics)
    return Table(_title(data, len(rows)), header, rows, notes, bold, marks=marks)


def significance(test: PairedTest | None, metric: str, level: float) -> str:
    """``*`` for significantly better than the other method, ``†`` for worse, else nothing."""
    if test is None:
        return ""
    p_value = test.p_value
    if test.p_adjusted is not None:
        p_value = test.p_adjusted
    if p_value > 1 - level or test.difference == 0:
        return ""
    is_better = (test.difference > 0) == METRIC[metric].higher
    return "*" if is_better else "†"


def frame(comparison: Comparison) -> pd.DataFrame:
    """A row per method and metric."""
    import pandas as pd

    records: list[dict[str, object]] = []
    for score in comparison.scores:
        for metric in comparison.data.metrics:
            low, high = score.intervals.get(metric, (None, None))
            record: dict[str, object] = {
                "method": score.name,
                "metric": metric,
                "value": score.metrics.get(metric),
                "low": low,
                "high": high,
                "seed_deviation": score.seed_deviations.get(metric),
            }
            record.update(_test_record("", score.against.get(metric)))
            record["p_adjusted"] = None
            if metric in score.against:
                record["p_adjusted"] = score.against[metric].p_adjusted
            record.update(_test_record("constant_", score.against_constant.get(metric)))
            records.append(record)
    numbers = [name for name in records[0] if name not in ("method", "metric")]
    return pd.DataFrame(records).astype(dict.fromkeys(numbers, "float64"))


def _test_record(prefix: str, test: PairedTest | None) -> dict[str, object]:
    """A test in columns whose names have a prefix; without a test, None in each."""
    values: list[float | None] = [None] * 4
    if test is not None:
        values = [test.difference, test.low, test.high, test.p_value]
    names = ("difference", "difference_low", "difference_high", "p_value")
    return {f"{prefix}{name}": value for name, value in zip(names, values, strict=True)}


def _metric_labels(data: ComparedData) -> list[str]:
    return [METRIC[metric].label for metric in data.metrics]


def _value_cells(score: Score, data: ComparedData, with_deviations: bool) -> list[Cell]:
    """The metrics of the table; where seeds differ, ``0.5557 ± 0.0012``."""
    cells: list[Cell] = []
    for metric in data.metrics:
        value = score.metrics.get(metric)
        deviation = score.seed_deviations.get(metric)
        if with_deviations and deviation is not None and deviation >= _SMALLEST_SHOWN:
            cells.append(f"{value:.4f} ± {deviation:.4f}")
        else:
            cells.append(value)
    return cells


def _change(test: PairedTest | None) -> str | None:
    """The difference of a test as ``−.013``."""
    if test is None:
        return None
    return short_ends([test.difference])


def _change_with_interval(test: PairedTest | None) -> str | None:
    """The difference of a test with its interval as ``−0.0130 [−0.0150, −0.0110]``."""
    if test is None:
        return None
    return f"{signed(test.difference)} [{signed(test.low)}, {signed(test.high)}]"


def _p_text(test: PairedTest | None) -> str | None:
    """The p-value of a test, the corrected one where there is one."""
    if test is None:
        return None
    p_value = test.p_value
    if test.p_adjusted is not None:
        p_value = test.p_adjusted
    if p_value < 0.001:
        return "< .001"
    return f"{p_value:.3f}"


def _p_note(comparison: Comparison) -> str:
    """How p-values were computed, and for how many tests they are corrected."""
    data = comparison.data
    tests = 0
    for score in comparison.scores:
        for metric in data.metrics:
            if metric in score.against:
                tests += 1
    words = "p: by exchanging the answers of the two methods on random items"
    if data.correct == "holm":
        return f"{words}, Holm's correction for {counted(tests, 'test')} against {UNIFORM}."
    return f"{words}, not corrected for {counted(tests, 'test')} against {UNIFORM}."


def _seeds_note(data: ComparedData, with_deviations: bool) -> str:
    """How the answers of several seeds make one value."""
    note = f"Means over {data.seeds} seeds"
    if with_deviations:
        note += " ± standard deviation, where it is not 0"
    whole_metrics = [METRIC[metric].short for metric in data.metrics if not METRIC[metric].is_mean]
    if whole_metrics:
        note += f"; for {listed(whole_metrics)}, one value of the answers of all seeds together"
    return f"{note}."


def _interval_note(comparison: Comparison) -> str:
    """What the differences are of."""
    data = comparison.data
    short = METRIC[data.headline_metric].short
    return (
        f"Δ: the {short} less that of {UNIFORM} (the plain mean of the members) or of {CONSTANT}"
        f" ({SHARES[data.constant.source]}), each with its {100 * data.level:g}% interval."
    )


def _skipped_notes(comparison: Comparison) -> list[str]:
    """A sentence per reason, with the methods that were left out for it."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in comparison.skipped.items():
        names_by_reason.setdefault(reason, []).append(name)
    return [f"Without {', '.join(names)}: {reason}." for reason, names in names_by_reason.items()]


def _title(data: ComparedData, methods: int) -> str:
    """How many methods were fitted and evaluated, and on how many items."""
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


def _best_cells(scores: Sequence[Score], metrics: Sequence[str]) -> set[tuple[int, int]]:
    """Row and column of the best value of each metric, after rounding."""
    cells: set[tuple[int, int]] = set()
    for column, metric in enumerate(metrics, start=1):
        values: dict[int, float] = {}
        for row, score in enumerate(scores):
            if metric in score.metrics:
                values[row] = round(score.metrics[metric], 4)
        if not values:
            continue
        best = max(values.values()) if METRIC[metric].higher else min(values.values())
        cells.update((row, column) for row, value in values.items() if value == best)
    return cells
