"""Put the verdicts on the paper's findings, by kind of member, into docs/findings.md.

    python tools/findings_table.py

The verdicts are read from the pages that `python -m reproduction lewidi2023` wrote.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "findings.md"
RESULTS = {
    "our members, 4 datasets": "benchmarks/lewidi2023/RESULTS.md",
    "paper's protocol, MiniLM, 3 datasets": "benchmarks/lewidi2023_protocol/minilm/RESULTS.md",
    "paper's protocol, MPNet, 2 datasets": "benchmarks/lewidi2023_protocol/mpnet/RESULTS.md",
}
BEGIN = "<!-- verdicts: begin -->"
END = "<!-- verdicts: end -->"
_FINDING = re.compile(r"^- \*(.+?)\* \*\*(.+?)\*\* \((\d+ of \d+) cases\)", re.MULTILINE)


def verdicts(page: Path) -> dict[str, str]:
    """The verdict on each finding of a page of results, with its cases."""
    figures = {}
    for match in _FINDING.finditer(page.read_text(encoding="utf-8")):
        finding, verdict, cases = match.groups()
        figures[finding] = f"{verdict.lower()} ({cases})"
    return figures


def table() -> str:
    """The verdicts as a Markdown table, a finding a row."""
    columns = {title: verdicts(ROOT / path) for title, path in RESULTS.items()}
    lines = [
        "| the paper says | " + " | ".join(columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    findings = next(iter(columns.values()))
    for finding in findings:
        cells = [column[finding] for column in columns.values()]
        lines.append(f"| {finding} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The page with its table replaced by the current one."""
    before, _, remainder = text.partition(BEGIN)
    _, _, after = remainder.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> None:
    """Write the table into the page."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
