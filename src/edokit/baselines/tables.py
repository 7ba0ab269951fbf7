"""A comparison as tables: short for the terminal, full for papers, numbers for programs."""

from __future__ import annotations

from edokit._io.markup import Cell, Table
from edokit.baselines.compare import REFERENCE, Comparison
from edokit.baselines.scores import METRICS, Score
from edokit.metrics import PairedTest

_LABELS = {"f1": "F1 ↑", "ce": "CE ↓", "md": "MD ↓", "bs": "BS ↓"}
_TEST = ("difference", "low", "high", "p_value")


def short_table(comparison: Comparison) -> Table:
    """The four metrics, and how the CE compares with the uniform mean's."""
    tested = _tested(comparison)
    header = ["method", *_LABELS.values()]
    # Narrow enough for a terminal of 80 characters; the full table has the rest.
    header += [f"ΔCE vs {REFERENCE}", "p"] if tested else ["size"]
    rows = []
    for score in comparison.scores:
        row: list[Cell] = [score.name, *(getattr(score, metric) for metric in METRICS)]
        if tested:
            near = "≈" if score.within_noise else " "
            row[1 + METRICS.index("ce")] = f"{score.ce:.4f}{near}"
            test = score.against.get("ce")
            ends = "–" if test is None else _range(test).replace("0.", ".").replace(" ", "")
            row += [ends, "–" if test is None else _p_value(test).replace("0.", ".")]
        else:
            row.append(score.size)
        rows.append(row)
    return Table(_title(comparison), header, rows, _notes(comparison, tested), _best(comparison))


def full_table(comparison: Comparison) -> Table:
    """Every metric with its interval, and the CE's test against the uniform mean."""
    tested = _tested(comparison)
    if not tested:
        return short_table(comparison)
    rows: list[list[Cell]] = [
        [
            score.name,
            *(f"{getattr(score, metric):.4f} ({_ends(score, metric)})" for metric in METRICS),
            *_against(score.against.get("ce")),
            "≈" if score.within_noise else "",
        ]
        for score in comparison.scores
    ]
    header = ["method", *_LABELS.values(), f"ΔCE vs {REFERENCE}", "p", "≈ lowest"]
    return Table(_title(comparison), header, rows, _notes(comparison, tested), _best(comparison))


def number_table(comparison: Comparison) -> Table:
    """One column per number: metrics, ends of intervals, tests against the uniform mean, dev."""
    header = ["method", "about", *METRICS, *(f"dev_{metric}" for metric in METRICS)]
    header += ["size", "seconds"]
    tested = _tested(comparison)
    if tested:
        header += [f"{metric}_{end}" for metric in METRICS for end in ("low", "high")]
        header += [f"{metric}_vs_{REFERENCE}_{part}" for metric in METRICS for part in _TEST]
        header.append("within_noise_of_lowest_ce")
    rows = []
    for score in comparison.scores:
        row: list[Cell] = [score.name, score.about, *(getattr(score, m) for m in METRICS)]
        row += [*(score.dev[metric] for metric in METRICS), score.size, score.seconds]
        if tested:
            row += [end for metric in METRICS for end in score.intervals[metric]]
            for metric in METRICS:
                test = score.against.get(metric)
                row += [None if test is None else getattr(test, part) for part in _TEST]
            row.append(int(score.within_noise))
        rows.append(row)
    return Table(_title(comparison), header, rows)


def _tested(comparison: Comparison) -> bool:
    return bool(comparison.scores[0].intervals)


def _title(comparison: Comparison) -> str:
    items = comparison.facts["items"]
    return (
        f"{len(comparison.scores)} methods, fitted on {items['dev']} items,"
        f" evaluated on {items['test']}"
    )


def _ends(score: Score, metric: str) -> str:
    low, high = score.intervals[metric]
    return f"{low:.4f} … {high:.4f}"


def _against(test: PairedTest | None) -> tuple[Cell, Cell]:
    if test is None:
        return None, None
    return f"{test.difference:+.4f} ({_range(test)})".replace("-", "−"), _p_value(test)


def _range(test: PairedTest) -> str:
    return f"{test.low:+.4f} … {test.high:+.4f}".replace("-", "−")


def _p_value(test: PairedTest) -> str:
    return "<.001" if test.p_value < 0.001 else f"{test.p_value:.3f}"


def _best(comparison: Comparison) -> set[tuple[int, int]]:
    """Where the best values stand: the largest F1, the lowest of the others."""
    found = set()
    for column, metric in enumerate(METRICS, start=1):
        values = [round(getattr(score, metric), 4) for score in comparison.scores]
        best = max(values) if metric == "f1" else min(values)
        found |= {(row, column) for row, value in enumerate(values) if value == best}
    return found


def _notes(comparison: Comparison, tested: bool) -> list[str]:
    lines = [f"The lowest possible CE on these soft labels is {comparison.facts['ce_floor']:.4f}."]
    if tested:
        level = f"{comparison.facts['level']:.0%}"
        lines.append(
            f"ΔCE vs {REFERENCE}: {level} bootstrap interval of the difference to the uniform mean,"
            " and the p-value of a paired sign-flip test (not corrected for the number of tests)."
            f" ≈: not significantly above the lowest CE, {comparison.lowest.name}'s."
        )
    lines += [f"Without {name}: {reason}." for name, reason in comparison.skipped.items()]
    return lines
