"""Sentences and tables made of a gate."""

from __future__ import annotations

from edokit._errors import are, counted, signed
from edokit._io.markup import Cell, Table
from edokit.analysis.gate.result import Gate, GateRow
from edokit.metrics import METRIC


def notes(gate: Gate) -> list[str]:
    """A note where new items have texts of the fit."""
    if gate.fit_texts == 0:
        return []
    return [
        f"The texts of {are(gate.fit_texts, gate.total.items, noun='item')} among those of the fit:"
        " the ensemble has learned from them, which hides a fall."
    ]


def headline(gate: Gate) -> list[str]:
    """The verdict, why, and what a pass does not rule out."""
    total = gate.total
    metric = METRIC[gate.metric].short
    items = counted(total.items, "item")
    new_items = counted(total.items, "new item")
    numbers = f"{metric} {total.loss:.4f}, {total.fit_loss:.4f} on the items of the fit"
    change = ""
    if total.change is not None and total.low is not None and total.high is not None:
        change = f"; difference {signed(total.change)}, {signed(total.low)} to {signed(total.high)}"
    if total.is_fall:
        lines = [f"FAIL: {items} are answered clearly worse ({numbers}{change})."]
    elif gate.passes:
        lines = [f"PASS: No clear drop in quality on {new_items} ({numbers}{change})."]
    else:
        lines = [
            f"FAIL: Some of the {items} are answered clearly worse, though not all of them taken"
            f" together ({numbers}{change})."
        ]
    for row in gate.slices:
        if row.is_fall:
            lines.append(f"Clearly worse: {row.column} {_value(row)} ({_numbers(gate, row)}).")
    for row in gate.members:
        if row.is_fall:
            lines.append(f"Member {row.value} got clearly worse ({_numbers(gate, row)}).")
    if gate.passes and total.detectable is not None:
        lines.append(
            f"A rise by {total.detectable:.4f} or more would have been found with a probability of"
            " 80 % or more."
        )
    return [*lines, *gate.notes]


def _numbers(gate: Gate, row: GateRow) -> str:
    return f"{METRIC[gate.metric].short} {row.loss:.4f} against {row.fit_loss:.4f}"


def _value(row: GateRow) -> str:
    return "(none)" if row.value is None else row.value


def tables(gate: Gate) -> list[Table]:
    """All items and slices, and the members, if there are several."""
    title = "New items beside those of the fit"
    result_tables: list[Table] = []
    if gate.slices:
        column = str(gate.slices[0].column)
        rows = [_record(gate, gate.total, column, "all")]
        rows += [_record(gate, row, column, _value(row)) for row in gate.slices]
        note = "Verdicts are corrected for all comparisons (Holm); intervals are not."
        result_tables.append(Table.from_records(title, rows, [note]))
    else:
        result_tables.append(Table.from_records(title, [_record(gate, gate.total, "of", "all")]))
    if gate.members:
        rows = [_record(gate, row, "member", _value(row)) for row in gate.members]
        result_tables.append(Table.from_records("Members", rows))
    return result_tables


def _record(gate: Gate, row: GateRow, column: str, value: str) -> dict[str, Cell]:
    metric = METRIC[gate.metric].short
    change: str | None = None
    if row.change is not None and row.low is not None and row.high is not None:
        change = f"{signed(row.change)} ({signed(row.low)} … {signed(row.high)})"
    return {
        column: value,
        "items": row.items,
        f"{metric} of the fit": row.fit_loss,
        f"{metric} now": row.loss,
        f"change, {100 * gate.level:g}% interval": change,
        "verdict": row.verdict,
    }
