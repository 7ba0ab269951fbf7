"""The table of methods: those of a comparison, else those of the evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from edokit.report.data import ReportData
from edokit.report.formatting import clean, interval, number, signed

COLUMNS = {"f1": "F1 ↑", "ce": "CE ↓", "md": "MD ↓", "bs": "BS ↓"}
UP = ("f1",)
ABOUT = {
    "constant": "same probabilities for every item",
    "best-single": "member with the lowest CE on the fit data",
    "uniform": "uniform mean of all members",
    "edo": "EDO, kind of pool selected on dev",
    "edo-paper": "EDO with the search of the paper",
}


@dataclass(frozen=True)
class Row:
    """One method: its metrics as numbers and as text."""

    name: str
    about: str
    """What it does."""
    ours: bool
    ce: float
    ends: tuple[float, float] | None
    """Interval of the CE."""
    cells: list[tuple[str, str, bool]]
    """For each metric: the value, its interval, and whether it is the best."""
    against: tuple[str, str]
    """ΔCE vs uniform and its interval; empty if it is not known."""


def method_rows(data: ReportData) -> list[Row]:
    """The methods, lowest cross-entropy first."""
    usable = [row for row in _given(data) if _number(row.get("ce")) is not None]
    best = {}
    for column in COLUMNS:
        values = [v for row in usable if (v := _number(row.get(column))) is not None]
        if values:
            best[column] = max(values) if column in UP else min(values)
    return [_row(row, best) for row in sorted(usable, key=lambda row: float(row["ce"]))]


def skipped_methods(data: ReportData) -> list[str]:
    """Methods that the comparison could not fit, each with its reason."""
    skipped = (data.comparison or {}).get("skipped")
    rows = [row for row in skipped if isinstance(row, dict)] if isinstance(skipped, list) else []
    return [f"{clean(row.get('name'), 60)}: {clean(row.get('reason'), 300)}" for row in rows]


def _given(data: ReportData) -> list[dict[str, Any]]:
    evaluation = data.evaluation
    ours = dict(evaluation.metrics) if evaluation is not None else {}
    difference = evaluation.differences.get("ce") if evaluation is not None else None
    if ours and difference is not None:
        ours["against_reference"] = {"ce": asdict(difference)}
    if data.comparison is None:
        return [ours, *evaluation.methods[1:]] if evaluation is not None and ours else []
    rows = [dict(row) for row in data.comparison["methods"]]
    for row in rows:
        # A demo's comparison does not keep the difference.
        same = row["name"] == "edo" and ours and number(row.get("ce"), 6) == number(ours["ce"], 6)
        if same and "against_reference" not in row and "against_reference" in ours:
            row["against_reference"] = ours["against_reference"]
    return rows


def _row(row: Mapping[str, Any], best: Mapping[str, float]) -> Row:
    cells = []
    for column in COLUMNS:
        value = _number(row.get(column))
        leads = value is not None and number(value) == number(best.get(column))
        ends = _ends(row, column)
        cells.append((number(value), interval(ends), leads))
    name = str(row["name"])
    return Row(
        name=clean(name, 60),
        about=clean(row.get("about") or ABOUT.get(name, ""), 120),
        ours=name == "edo" or name.startswith(("edo-", "edo:")),
        ce=float(row["ce"]),
        ends=_ends(row, "ce"),
        cells=cells,
        against=_against(row),
    )


def _ends(row: Mapping[str, Any], column: str) -> tuple[float, float] | None:
    ends = (row.get("intervals") or {}).get(column)
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    low, high = _number(ends[0]), _number(ends[1])
    return None if low is None or high is None else (low, high)


def _against(row: Mapping[str, Any]) -> tuple[str, str]:
    difference = (row.get("against_reference") or {}).get("ce") or {}
    parts = [_number(difference.get(key)) for key in ("difference", "low", "high")]
    if any(part is None for part in parts):
        return "", ""
    return signed(parts[0]), f"{signed(parts[1])} to {signed(parts[2])}"


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None
