"""Write the table of metrics in docs/metrics.md, made from the registry of metrics.

    python tools/metric_table.py

A test compares the committed table with what this writes, so it never goes stale.
"""

from __future__ import annotations

from pathlib import Path

from edokit.metrics import METRIC, Metric
from edokit.metrics.registry import ALL_SCALES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"
HEADER = "| metric | name | measures | scales | best possible |"


def table() -> str:
    """The table of all metrics."""
    lines = [HEADER, "|---|---|---|---|---|"]
    for metric in METRIC.values():
        cells = (_title(metric), f"`{metric.name}`", metric.help, _scales(metric), _best(metric))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _title(metric: Metric) -> str:
    """``cross-entropy, CE``; an abbreviation is added unless the title has it."""
    if not metric.short.isupper() or metric.short in metric.title:
        return metric.title
    return f"{metric.title}, {metric.short}"


def _scales(metric: Metric) -> str:
    if metric.scales == ALL_SCALES:
        return "all"
    return ", ".join(metric.scales)


def _best(metric: Metric) -> str:
    if metric.best:
        return metric.best
    return "1" if metric.higher else "0"


def page(text: str) -> str:
    """The page with its table replaced."""
    before, after = text.split(f"{HEADER}\n")
    _, remainder = after.split("\n\n", maxsplit=1)
    return f"{before}{table()}\n\n{remainder}"


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
