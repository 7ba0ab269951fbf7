"""A comparison as tables: short for the terminal, full for papers, numbers for programs."""

from __future__ import annotations

from edokit._io.markup import Cell, Table
from edokit.baselines.compare import REFERENCE, Comparison
from edokit.baselines.scores import Score
from edokit.metrics import MAIN_METRICS

_LABELS = {"f1": "F1 ↑", "ce": "CE ↓", "md": "MD ↓", "bs": "BS ↓"}
_TEST = ("difference", "low", "high", "p_value")


def text_table(comparison: Comparison, *, full: bool) -> Table:
    """The four metrics, and the test of the CE against the uniform mean; ``full`` with intervals.

    The short one fits into a terminal of 80 characters.
    """
    header = ["method", *_LABELS.values()]
    if not _tested(comparison):
        header.append("size")
        rows = [[*_values(score), score.size] for score in comparison.scores]
    elif full:
        header += [f"ΔCE vs {REFERENCE}", "p", "≈ lowest"]
        rows = [_full_row(score) for score in comparison.scores]
    else:
        header += [f"ΔCE vs {REFERENCE}", "p"]
        rows = [_short_row(score) for score in comparison.scores]
    items = comparison.facts["items"]
    title = f"{len(rows)} methods, fitted on {items['dev']} items, evaluated on {items['test']}"
    return Table(title, header, rows, _notes(comparison), _best(comparison))


def number_table(comparison: Comparison) -> Table:
    """One column per number: metrics, ends of intervals, tests against the uniform mean, dev."""
    header = ["method", "about", *MAIN_METRICS, *(f"dev_{metric}" for metric in MAIN_METRICS)]
    header += ["size", "seconds"]
    tested = _tested(comparison)
    if tested:
        header += [f"{metric}_{end}" for metric in MAIN_METRICS for end in ("low", "high")]
        header += [f"{metric}_vs_{REFERENCE}_{part}" for metric in MAIN_METRICS for part in _TEST]
        header.append("within_noise_of_lowest_ce")
    rows = []
    for score in comparison.scores:
        row: list[Cell] = [score.name, score.about, *_values(score)[1:]]
        row += [*(score.dev[metric] for metric in MAIN_METRICS), score.size, score.seconds]
        if tested:
            row += [end for metric in MAIN_METRICS for end in score.intervals[metric]]
            tests = [score.against.get(metric) for metric in MAIN_METRICS]
            row += [None if t is None else getattr(t, part) for t in tests for part in _TEST]
            row.append(int(score.within_noise))
        rows.append(row)
    return Table("", header, rows)


def _tested(comparison: Comparison) -> bool:
    return bool(comparison.scores[0].intervals)


def _values(score: Score) -> list[Cell]:
    return [score.name, *(getattr(score, metric) for metric in MAIN_METRICS)]


def _full_row(score: Score) -> list[Cell]:
    cells: list[Cell] = [score.name]
    for metric in MAIN_METRICS:
        low, high = score.intervals[metric]
        cells.append(f"{getattr(score, metric):.4f} ({low:.4f} … {high:.4f})")
    test, near = score.against.get("ce"), "≈" if score.within_noise else ""
    if test is None:
        return [*cells, None, None, near]
    ends = f"{_signed(test.low)} … {_signed(test.high)}"
    return [*cells, f"{_signed(test.difference)} ({ends})", _p_value(test.p_value), near]


def _short_row(score: Score) -> list[Cell]:
    cells, test = _values(score), score.against.get("ce")
    cells[1 + MAIN_METRICS.index("ce")] = f"{score.ce:.4f}{'≈' if score.within_noise else ' '}"
    if test is None:
        return [*cells, None, None]
    ends = f"{_signed(test.low)}…{_signed(test.high)}".replace("0.", ".")
    return [*cells, ends, _p_value(test.p_value).replace("0.", ".")]


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def _p_value(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _best(comparison: Comparison) -> set[tuple[int, int]]:
    """Cells of the best values: the largest F1, the lowest of the others."""
    found = set()
    for column, metric in enumerate(MAIN_METRICS, start=1):
        values = [round(getattr(score, metric), 4) for score in comparison.scores]
        best = max(values) if metric == "f1" else min(values)
        found |= {(row, column) for row, value in enumerate(values) if value == best}
    return found


def _notes(comparison: Comparison) -> list[str]:
    floor = comparison.facts["ce_floor"]
    lines = [f"The lowest possible CE on these soft labels is {floor:.4f}."]
    if _tested(comparison):
        level = f"{comparison.facts['level']:.0%}"
        lines.append(
            f"ΔCE vs {REFERENCE}: {level} bootstrap interval of the difference to the uniform mean,"
            " and the p-value of a paired sign-flip test (not corrected for the number of tests)."
            f" ≈: not significantly above the lowest CE, {comparison.lowest.name}'s."
        )
    lines += [f"Without {name}: {reason}." for name, reason in comparison.skipped.items()]
    return lines
