"""Sentences and tables made of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from edokit._errors import counted, money
from edokit._io.markup import Cell, Table
from edokit.analysis.plan.learning import FEWEST_TEXTS
from edokit.analysis.plan.result import Plan
from edokit.metrics import METRIC

NO_PREDICTIONS = "How large a difference between two models shows needs their predictions."
NO_TEXTS = "The loss of a trained model is not planned: the pilot lacks texts."
FEW_TEXTS = (
    f"The loss of a trained model is not planned: the pilot has fewer than {FEWEST_TEXTS} items."
)


def unanimous_note(items: int) -> str:
    """A note on a pilot of this many items in which nobody disagrees."""
    # The highest probability of a difference with which no item shows one in 5 % of the pilots.
    share = 1 - 0.05 ** (1 / items)
    return (
        "All annotators of an item agree in the pilot. It may only be too small to show that they"
        f" differ: two annotators of an item may give different labels in up to {share:.1%} of the"
        " cases (95% confidence)."
    )


def headline(plan: Plan) -> list[str]:
    """The decision in sentences."""
    purposes = {
        "model": "to train a model",
        "comparison": f"to compare two models in {METRIC[plan.metric].short}",
    }
    lines = []
    for purpose, words in purposes.items():
        # A single planned number is not the best of several.
        if purpose in plan.best and len(plan.curve) > 1:
            lines.append(_best_split(plan, words, plan.best[purpose]))
    return [*lines, *plan.notes]


def _best_split(plan: Plan, purpose: str, best: Sequence[int]) -> str:
    """How to spend the budget: the numbers of annotators not clearly worse than the best one."""
    items = {row["annotators"]: row["items"] for row in plan.curve}
    counts = list(items)
    lowest = min(best)
    highest = max(best)
    start = f"{purpose[0].upper()}{purpose[1:]}, {_budget(plan)} is best spent on"
    if lowest == highest:
        return (
            f"{start} {counted(lowest, 'annotator')} for each of {counted(items[lowest], 'item')}."
        )
    # From the smallest number to one in the upper half: the pilot says hardly anything.
    if lowest == counts[0] and counts.index(highest) >= len(counts) // 2:
        return (
            f"The pilot can't tell how many annotators per item are best {purpose}. Take the"
            f" smallest number and more items ({counted(lowest, 'annotator')} for each of"
            f" {counted(items[lowest], 'item')} with {_budget(plan)}), or enlarge the pilot."
        )
    return (
        f"{start} {lowest} to {highest} annotators for each item ({items[lowest]} to"
        f" {items[highest]} items): the pilot can't tell which of these numbers is best. If in"
        " doubt, take the smallest."
    )


def _budget(plan: Plan) -> str:
    budget = f"a budget of {money(plan.budget)}"
    if plan.price == 1 and not plan.item_price:
        return f"{budget} annotations"
    return budget


def tables(plan: Plan) -> list[Table]:
    """The error of the soft label, and what the budget buys."""
    return [soft_label_table(plan), _budget_table(plan)]


def soft_label_table(plan: Plan) -> Table:
    """The error of the soft label by annotators per item."""
    records = []
    for row in plan.curve:
        record = {"annotators": str(row["annotators"])}
        for name, values in row["soft_label"].items():
            record[METRIC[name].label] = _cell(values, 3)
        records.append(record)
    note = (
        "Error of the mean of this number of annotators, against the distribution of all who could"
        f" be asked; {100 * plan.level:g}% intervals from the pilot."
    )
    return Table.from_records("The soft label of an item", records, [note])


def _budget_table(plan: Plan) -> Table:
    short = METRIC[plan.metric].short
    records = []
    for row in plan.curve:
        record: dict[str, Cell] = {"annotators": str(row["annotators"]), "items": row["items"]}
        for values in row["model"].values():
            record[f"{short} of a model"] = _cell(values, 3)
        for name, values in row["comparison"].items():
            column = f"Δ{METRIC[name].short}"
            if name == plan.metric:
                record[column] = _cell(values, 4)
            else:
                record[column] = values[0]
        records.append(record)
    notes = []
    if plan.compared:
        notes.append(
            f"Δ: the smallest difference between {' and '.join(plan.compared)} that a test of"
            f" level {100 * (1 - plan.level):g}% shows with probability {plan.power:.0%}."
        )
    return Table.from_records(f"What {_budget(plan)} buys", records, notes)


def _cell(values: Sequence[float], digits: int) -> str:
    """``0.312 (0.291–0.330)``."""
    estimate, low, high = (f"{value:.{digits}f}" for value in values)
    return f"{estimate} ({low}–{high})"
